"""A server's log, followed: its pass lines as they are written, and its import line back to its start.

Sources: `file:PATH` (late creation, truncation and rotation are followed), `journal:UNIT`, `unix:PATH` and `fifo:PATH` (made if
they are missing), and the standard error of a server that the campaign started itself. Cannot see: what the server buffers.
"""

from __future__ import annotations

import io
import os
import queue
import re
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from npuprof.lines import LineProfile, Unreadable, scan
from npuprof.model.passes import PassLine

_POLL_S = 0.04
_CHUNK = 1 << 16
_IMPORT = re.compile(r"import: incomplete \d{1,9} \|[^\n]*")
_KEEP = 4096
_NEEDLES = (b"[bs]", b"wall", b"import: ", b"\x1b", b"{")
"""Without one of these a stretch of log holds nothing for us; a line profile can have any."""

Chunks = Iterator[bytes]


@dataclass(frozen=True)
class Seen:
    """One pass line, readable or not, and when it was read (CLOCK_MONOTONIC, ns)."""

    at_ns: int
    line: PassLine | Unreadable


class ServeLog:
    """Follows a source in a thread; `take` gives what has come, in order. `bs` and `profiles` as for `scan`."""

    def __init__(
        self, source: str, profiles: Sequence[LineProfile] = (), *, bs: bool = True, stderr: IO[bytes] | None = None
    ) -> None:
        self.source = source
        self._profiles = profiles
        self._bs = bs
        self._seen: queue.SimpleQueue[Seen] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._import: str | None = None
        self._partial = b""
        chunks = _open(source, stderr, self._ended, self._look_back)
        self._thread = threading.Thread(target=self._follow, args=(chunks,), name="serve-log", daemon=True)
        self._thread.start()

    @property
    def import_line(self) -> str | None:
        """The server's last import line so far; None if it was not seen."""
        return self._import

    def take(self, seconds: float) -> Seen | None:
        """The next pass line; None if none comes in that time."""
        try:
            return self._seen.get(timeout=seconds) if seconds > 0 else self._seen.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        self._ended.set()
        # The standard error of a server that still runs has no end yet; every other source notices.
        self._thread.join(1 if self.source != "stderr" else 0)

    def _follow(self, chunks: Chunks) -> None:
        for chunk in chunks:
            now = time.monotonic_ns()
            whole, newline, self._partial = (self._partial + chunk).rpartition(b"\n")
            if newline:
                self._read(whole + newline, now)
            elif len(self._partial) > _CHUNK:
                self._partial = self._partial[-_CHUNK:]

    def _read(self, text: bytes, now: int) -> None:
        if not self._profiles and not any(n in text for n in _NEEDLES):
            return
        self._look_back(text)
        for line in scan(io.BytesIO(text), self._profiles, bs=self._bs):
            self._seen.put(Seen(now, line))

    def _look_back(self, text: bytes) -> None:
        at = text.rfind(b"import: incomplete ")
        if at >= 0:
            found = _IMPORT.match(text[at : at + _KEEP].decode("utf-8", "replace"))
            self._import = found[0].strip() if found else self._import


def _open(source: str, stderr: IO[bytes] | None, ended: threading.Event, back: Callable[[bytes], None]) -> Chunks:
    """The source's bytes as they come; what stood there before goes to `back`. OSError, ValueError."""
    kind, _, where = source.partition(":")
    if kind == "stderr" and stderr is not None:
        return _pipe(stderr)
    if kind == "file":
        return _file(Path(where), ended, back)
    if kind == "journal":
        return _journal(where, ended, back)
    if kind == "fifo":
        return _fifo(Path(where), ended)
    if kind == "unix":
        return _unix(Path(where), ended)
    raise ValueError(f"--log {source}: must be file:PATH, journal:UNIT, unix:PATH, fifo:PATH, or stderr with --spawn")


def _pipe(stream: IO[bytes]) -> Chunks:
    while chunk := os.read(stream.fileno(), _CHUNK):
        yield chunk


def _file(path: Path, ended: threading.Event, back: Callable[[bytes], None]) -> Chunks:
    """From the end of what is there now; from the beginning of what comes to stand there later."""
    position = _look_through(path, back)
    opened: IO[bytes] | None = path.open("rb") if path.exists() else None
    if opened is not None:
        opened.seek(position)

    def chunks() -> Chunks:
        nonlocal opened
        while not ended.is_set():
            if opened is not None and (chunk := opened.read(_CHUNK)):
                yield chunk
                continue
            opened = _renewed(path, opened)
            time.sleep(_POLL_S)
        if opened is not None:
            opened.close()

    return chunks()


def _renewed(path: Path, opened: IO[bytes] | None) -> IO[bytes] | None:
    """The file that now stands at the path, from its beginning, if it is another one or was cut; else the same."""
    try:
        now = path.stat()
    except OSError:
        return opened
    if opened is not None:
        held = os.fstat(opened.fileno())
        if (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino):
            if now.st_size < opened.tell():
                opened.seek(0)
            return opened
        opened.close()
    try:
        return path.open("rb")
    except OSError:
        return None


def _look_through(path: Path, back: Callable[[bytes], None]) -> int:
    """Everything that is in the file already, for its import line; returns its size."""
    if not path.exists():
        return 0
    tail = b""
    with path.open("rb") as f:
        while chunk := f.read(1 << 20):
            back(tail + chunk)
            tail = chunk[-_KEEP:]
        return f.tell()


def _journal(unit: str, ended: threading.Event, back: Callable[[bytes], None]) -> Chunks:
    """The unit's messages: those of its present invocation for the import line, then the new ones.

    Followed from a place that was read before the first request: `journalctl -f -n 0` takes its own only once it runs,
    and loses what comes until then.
    """
    place = _journal_end()
    shown = subprocess.run(
        ["systemctl", "show", "-p", "InvocationID", "--value", unit], capture_output=True, text=True, check=False
    ).stdout.strip()
    since = [f"_SYSTEMD_INVOCATION_ID={shown}"] if re.fullmatch(r"[0-9a-f]{32}", shown) else ["-b", "-u", unit]
    back(
        subprocess.run(["journalctl", "-q", "-o", "cat", "--no-pager", *since], capture_output=True, check=False).stdout
    )
    command = ["journalctl", "-q", "-f", "--no-tail", *place, "-o", "cat", "-u", unit]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def chunks() -> Chunks:
        assert process.stdout is not None
        threading.Thread(target=_kill_after, args=(ended, process), daemon=True).start()
        with process:
            yield from _pipe(process.stdout)

    return chunks()


def _journal_end() -> list[str]:
    """What makes journalctl begin after the last message that the journal holds now; it has no end while it is empty."""
    last = subprocess.run(
        ["journalctl", "-q", "-n", "1", "-o", "cat", "--no-pager", "--show-cursor"], capture_output=True, check=False
    ).stdout
    cursor = re.search(rb"(?:^|\n)-- cursor: (\S+)\s*\Z", last)
    return [f"--after-cursor={cursor[1].decode()}"] if cursor else []


def _kill_after(ended: threading.Event, process: subprocess.Popen[bytes]) -> None:
    ended.wait()
    process.kill()


def _fifo(path: Path, ended: threading.Event) -> Chunks:
    if not path.exists():
        os.mkfifo(path, 0o600)
    if not stat.S_ISFIFO(path.stat().st_mode):
        raise ValueError(f"--log fifo:{path}: is no FIFO")
    # Open for writing too: a server that closes it and comes back must not look like the end.
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def chunks() -> Chunks:
        while not ended.is_set():
            try:
                yield os.read(fd, _CHUNK)
            except BlockingIOError:
                time.sleep(_POLL_S)
        os.close(fd)

    return chunks()


def _unix(path: Path, ended: threading.Event) -> Chunks:
    """A stream socket at the path: connected to if somebody listens there, else listened on."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.connect(str(path))
        return _connection(listening, ended)
    except (ConnectionRefusedError, FileNotFoundError):
        listening.close()
    if path.is_socket():
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()
    listening.settimeout(0.2)

    def chunks() -> Chunks:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            yield from _connection(connection, ended)
        listening.close()
        path.unlink(missing_ok=True)

    return chunks()


def _connection(connection: socket.socket, ended: threading.Event) -> Chunks:
    connection.settimeout(0.2)
    while not ended.is_set():
        try:
            chunk = connection.recv(_CHUNK)
        except TimeoutError:
            continue
        if not chunk:
            break
        yield chunk
    connection.close()
