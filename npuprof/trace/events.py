"""Lines of trace_pipe, of a `trace` file and of `perf script`, many at a time: (head, ns, event, payload)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import BinaryIO

Event = tuple[str, int, str, str]
"""What stands before the instant (see `thread_of`), the instant in ns, the event's name without its system, its payload."""

NAMES = frozenset(
    {
        "amdxdna_debug_point",
        "xdna_job",
        "xdna_job_queue",
        "mbox_set_tail",
        "mbox_irq_handle",
        "mbox_poll_handle",
        "sys_exit_ioctl",
        "dma_fence_wait_end",
    }
)
"""Events that phases are made of; the others are counted and passed over."""

_CHUNK = 1 << 20
_TO_NS = {6: 1000, 7: 100, 8: 10, 9: 1}
_RETURNED = "sys_ioctl -> "
"""How trace_pipe prints the event sys_exit_ioctl; perf prints it by its name."""
_LOST = re.compile(r"LOST (\d+) EVENTS")
_THREAD = re.compile(r"[ -](\d+)\s+(?:\([ \d-]+\)\s+)?\[\d+\]")
_HEAD = re.compile(r"^(.*?\[\d+\].*? \d+\.\d{6,9}): +(?:\w+:)?(\w+): ?(.*)$")


def _split(line: str) -> list[str] | None:
    """Head, event and payload of any other line of a trace: with a system before the event, or an odd process name."""
    head, _, rest = line.partition(": ")
    if head[-1:].isdigit():
        if rest.startswith(_RETURNED):
            return [head, "sys_exit_ioctl", rest]
        name, _, payload = rest.partition(": ")
        return [head, name.rpartition(":")[2].strip(), payload]
    found = _HEAD.match(line)
    return None if found is None else list(found.groups())


class TraceText:
    """Reads a saved trace in constant memory. `events` counts those of any kind, `lost` what the text says was lost."""

    def __init__(self) -> None:
        self.events = 0
        self.lost = 0

    def read(self, stream: BinaryIO) -> Iterator[list[Event]]:
        """In the order of their instants within each piece of about 1 MB."""
        rest = b""
        while chunk := stream.read(_CHUNK):
            whole, newline, tail = chunk.rpartition(b"\n")
            if not newline:
                rest += chunk
                continue
            yield self.parse((rest + whole).decode("utf-8", "replace"))
            rest = tail
        if rest:
            yield self.parse(rest.decode("utf-8", "replace"))

    def parse(self, text: str) -> list[Event]:
        """One piece of whole lines."""
        if "LOST" in text:
            self.lost += sum(map(int, _LOST.findall(text)))
        found: list[Event] = []
        events = 0
        last, ordered = 0, True
        names = NAMES
        for line in text.split("\n"):
            # The quick way: no process is named so that its name holds a colon and a space.
            parts = line.split(": ", 2)
            if len(parts) < 3 or parts[1] not in names:
                if len(parts) == 3 and parts[1].isidentifier() and parts[0][-1:].isdigit():
                    events += 1
                    continue
                again = _split(line)
                if again is None:
                    continue
                parts = again
                if parts[1] not in names:
                    events += 1
                    continue
            head, name, payload = parts
            seconds, _, fraction = head[head.rfind(" ") + 1 :].partition(".")
            try:
                at = int(seconds + fraction) * _TO_NS[len(fraction)]
            except (ValueError, KeyError):
                continue
            events += 1
            if at < last:
                ordered = False
            last = at
            found.append((head, at, name, payload))
        self.events += events
        if not ordered:
            # Buffers of several CPUs, pasted one after the other: the instants are what orders them.
            found.sort(key=lambda e: e[1])
        return found


@lru_cache(4096)
def _thread(task: str) -> int:
    number = task.rpartition("-")[2]
    if number.isdigit():
        return int(number)
    found = _THREAD.search(f"{task} [0]")
    return int(found.group(1)) if found else -1


def thread_of(head: str) -> int:
    """The thread's number out of `comm-TID [cpu] ...` or `comm TID [cpu] ...`; -1 where there is none."""
    return _thread(head.rpartition(" [")[0])


def events_of(lines: Iterable[str]) -> list[Event]:
    """For short texts."""
    return TraceText().parse("\n".join(lines))
