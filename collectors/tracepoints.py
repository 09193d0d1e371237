"""The driver's tracepoints, in an own instance of tracefs: never the global buffer, on the clock of the passes' stamps."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import IO

ROOT = Path("/sys/kernel/tracing")
_SYSTEMS = ("amdxdna", "amdxdna_trace")
_INSTANCE = re.compile(r"npuprof-(\d+)\Z")
_KB_A_PASS = 512
"""A pass of 112 launches leaves 11 events of some 50 to 100 bytes a launch, on whichever CPU."""
_LEAST_KB, _MOST_KB = 2048, 65536
_PIECE = 1 << 16


class NoTracing(Exception):
    """Tracepoints cannot be read here: one sentence, and what to type."""


class Tracepoints:
    """One instance: made by `open`, recording from `on` to `off`, removed by `close`, or after a kill by the next one."""

    def __init__(self, out: IO[bytes], root: Path = ROOT) -> None:
        self._root = root
        self._out = out
        self._pipe: int | None = None
        self.system = ""
        self.bytes = 0
        self._instance = root / f"instances/npuprof-{os.getpid()}"

    def open(self, passes: int) -> None:
        """The buffer of each CPU is sized to `passes`, as many as run between two drains.

        NoTracing where there is no tracefs, no right to it, or no driver that has events."""
        if not self._root.is_dir() or not (self._root / "instances").exists():
            raise NoTracing(f"there is no tracefs at {self._root}; type: sudo mount -t tracefs nodev {self._root}")
        found = [s for s in _SYSTEMS if (self._root / "events" / s).is_dir()]
        if not found:
            raise NoTracing(
                "no driver with tracepoints is loaded: events/amdxdna and events/amdxdna_trace are not there; "
                "type: sudo modprobe amdxdna"
            )
        self.system = found[0]
        clear_stale(self._root)
        try:
            self._instance.mkdir()
        except PermissionError:
            raise NoTracing(
                "tracing needs root or a tracefs that is delegated to you; type: sudo npuprof run --phases ..., or "
                f"sudo mount -o remount,gid=$(id -g) {self._root}"
            ) from None
        except FileExistsError:
            pass
        self._write("tracing_on", "0")
        self._write("trace_clock", "mono")
        self._write("buffer_size_kb", str(min(_MOST_KB, max(_LEAST_KB, _KB_A_PASS * passes))))
        self._write(f"events/{self.system}/enable", "1")
        with contextlib.suppress(OSError):
            self._write("events/dma_fence/dma_fence_wait_end/enable", "1")
        self._pipe = os.open(self._instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def on(self) -> None:
        self._write("tracing_on", "1")

    def off(self) -> None:
        self._write("tracing_on", "0")

    def watch_thread(self, tid: int) -> None:
        """The wake-up: returns from ioctls of one thread. Costs nothing to other processes."""
        with contextlib.suppress(OSError):
            self._write("events/syscalls/sys_exit_ioctl/filter", f"common_pid=={tid}")
            self._write("events/syscalls/sys_exit_ioctl/enable", "1")

    def drain(self) -> None:
        """Everything recorded so far, into the file: between rounds, never in a pass."""
        if self._pipe is None:
            return
        while True:
            try:
                piece = os.read(self._pipe, _PIECE)
            except BlockingIOError:
                return
            if not piece:
                return
            self._out.write(piece)
            self.bytes += len(piece)

    def lost(self) -> dict[str, int]:
        """Events lost since `open`, by CPU; only CPUs that lost some."""
        found = {}
        for stats in sorted(self._instance.glob("per_cpu/cpu*/stats")):
            counts = dict(line.partition(": ")[::2] for line in stats.read_text().splitlines())
            n = sum(int(counts.get(k, "0")) for k in ("overrun", "dropped events"))
            if n:
                found[stats.parent.name] = n
        return found

    def close(self) -> None:
        """Nothing of it is left."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        _remove(self._instance)

    def _write(self, name: str, text: str) -> None:
        (self._instance / name).write_text(text)


def clear_stale(root: Path) -> list[str]:
    """Instances of runs that were killed: their events would go on costing everybody."""
    removed = []
    for instance in (root / "instances").iterdir():
        found = _INSTANCE.match(instance.name)
        if found is not None and not Path(f"/proc/{found.group(1)}").exists():
            _remove(instance)
            removed.append(instance.name)
    return removed


def _remove(instance: Path) -> None:
    with contextlib.suppress(OSError):
        (instance / "tracing_on").write_text("0")
        (instance / "events/enable").write_text("0")
    with contextlib.suppress(OSError):
        instance.rmdir()
