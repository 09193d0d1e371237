"""Where the kernel's messages are read from while the machine runs: the journal, else the ring buffer."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from collectors.kernel.entry import Entry, read_json, read_kmsg

_RECORD = 8192
_FIELDS = "MESSAGE,PRIORITY,SYSLOG_FACILITY,_TRANSPORT,_KERNEL_DEVICE,_SOURCE_MONOTONIC_TIMESTAMP,__REALTIME_TIMESTAMP,__CURSOR"


class Source(Protocol):
    """New entries since the last call, the first time all since boot. `lost`: some are missing, and why."""

    name: str
    lost: str

    def read(self) -> Iterator[Entry]: ...


class Unreadable(Exception):
    """The source is not to be had here: why, and what would change that."""


class Journal:
    """journalctl from a cursor on: exact, survives the ring's wrap, and needs only group adm or systemd-journal."""

    name = "journal"

    def __init__(self, root: Path = Path("/")) -> None:
        self.lost = ""
        self._cursor: str | None = None
        self._read = 0
        boot = (root / "proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        self._command = ["journalctl", "-q", "--no-pager", "-o", "json", f"--output-fields={_FIELDS}"]
        if root != Path("/"):
            self._command += ["-D", str(root / "var/log/journal")]
        self._match = ["_TRANSPORT=kernel", f"_BOOT_ID={boot}"]
        if not self._last_line():
            raise Unreadable(
                "the journal shows no kernel message of this boot to you; join group systemd-journal or adm"
            )

    def _last_line(self) -> str:
        try:
            done = subprocess.run(
                [*self._command, "-n", "1", *self._match], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise Unreadable(f"journalctl does not answer: {e}") from None
        return done.stdout

    def read(self) -> Iterator[Entry]:
        after = [f"--after-cursor={self._cursor}"] if self._cursor else []
        with subprocess.Popen(
            [*self._command, *after, *self._match], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as p:
            assert p.stdout is not None
            for raw in p.stdout:
                try:
                    data = json.loads(raw)
                except ValueError:
                    continue
                self._cursor = data.get("__CURSOR", self._cursor)
                self._read += 1
                yield read_json(self._read, data)
        if p.returncode:
            self.lost = f"journalctl ended with {p.returncode}: the journal was rotated away or cannot be read"


class Ring:
    """/dev/kmsg by sequence number; a gap means that the ring was overwritten before it was read."""

    name = "kmsg"

    def __init__(self, root: Path = Path("/")) -> None:
        self.lost = ""
        self._next: int | None = None
        self._file = root / "dev/kmsg"
        try:
            os.close(os.open(self._file, os.O_RDONLY | os.O_NONBLOCK))
        except OSError as e:
            raise Unreadable(
                f"{self._file} cannot be read ({e.strerror}); it needs root, or kernel.dmesg_restrict=0, or the journal"
            ) from None

    def read(self) -> Iterator[Entry]:
        """From the oldest record that is there; those read before are passed over."""
        fd = os.open(self._file, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                try:
                    raw = os.read(fd, _RECORD)
                except BlockingIOError:
                    break
                except OSError as e:
                    if e.errno == errno.EPIPE:  # overwritten while we read; the next read goes on at the oldest
                        continue
                    if e.errno == errno.EINVAL:  # a record longer than any kernel writes
                        self.lost = "a kernel message was too long to read"
                        continue
                    raise
                if not raw:
                    break
                yield from self._records(raw)
        finally:
            os.close(fd)

    def _records(self, raw: bytes) -> Iterator[Entry]:
        # The device gives one record a read; a file that stands in for it gives several.
        text = raw.decode("utf-8", "replace").rstrip("\n")
        records: list[str] = []
        for line in text.split("\n"):
            if line.startswith(" ") and records:
                records[-1] += "\n" + line
            else:
                records.append(line)
        for record in records:
            parsed = read_kmsg(record)
            if parsed is None:
                continue
            seq, entry = parsed
            if self._next is not None and seq < self._next:
                continue
            if self._next is not None and seq > self._next:
                self.lost = f"{seq - self._next} kernel messages were overwritten before they were read"
            self._next = seq + 1
            yield entry


def open_source(root: Path) -> Source:
    """The first that can be read. Unreadable with both reasons if none can."""
    reasons = []
    for make in (Journal, Ring):
        try:
            source: Source = make(root)
        except Unreadable as e:
            reasons.append(str(e))
        except OSError as e:
            reasons.append(f"{make.__name__.lower()}: {e.strerror}")
        else:
            return source
    raise Unreadable("; ".join(reasons))
