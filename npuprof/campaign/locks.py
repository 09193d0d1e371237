"""Open-file-description locks: held by a descriptor and all its copies, asked about without being taken."""

from __future__ import annotations

import fcntl
import struct

_FLOCK = struct.Struct("@hhqqi4x")
_WHENCE_SET = 0


def _request(kind: int) -> bytes:
    return _FLOCK.pack(kind, _WHENCE_SET, 0, 0, 0)


def lock_exclusive(fd: int) -> None:
    """Blocks until no other description holds a lock on the file. `fd` must be open for writing."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, _request(fcntl.F_WRLCK))


def wait_unlocked(fd: int) -> None:
    """Blocks until nobody holds the file's exclusive lock. `fd` must be open for reading; it then shares the lock."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, _request(fcntl.F_RDLCK))


def is_locked(fd: int) -> bool:
    """Does another description hold the exclusive lock? Takes nothing."""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _request(fcntl.F_RDLCK))
    return bool(_FLOCK.unpack(answer)[0] == fcntl.F_WRLCK)
