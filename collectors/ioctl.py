"""The amdxdna ioctls that only ask: version, GET_INFO, GET_ARRAY. Layouts are those of the kernel's uapi header."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_VERSION = 0xC0406400
_GET_INFO = 0xC0106447
_GET_ARRAY = 0xC018644A

AIE_VERSION, CLOCKS, CONTEXTS, FIRMWARE, POWER_MODE, RESOURCES = 2, 3, 5, 8, 9, 12
ARRAY_CONTEXTS, ARRAY_ASYNC_ERROR = 0, 2

_SINCE = {RESOURCES: (0, 4)}
_ARRAY_SINCE = {ARRAY_CONTEXTS: (0, 1), ARRAY_ASYNC_ERROR: (0, 2)}
_LEGACY = 1
"""Major version of the out-of-tree driver; it has every parameter asked for here."""

Version = tuple[int, int]


class Hung(Exception):
    """An ioctl did not return within its deadline."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """The call's result, or Hung; whatever it raises comes through.

    The thread of a call that hangs stays behind: a process in the kernel's uninterruptible sleep cannot be ended.
    """
    result: list[T] = []
    error: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as e:  # noqa: BLE001 - handed to the caller's thread
            error.append(e)

    thread = threading.Thread(target=run, name="ioctl", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise Hung
    if error:
        raise error[0]
    return result[0]


def version(fd: int) -> tuple[Version, str]:
    """Driver version (major, minor) and name, by DRM_IOCTL_VERSION, which wakes nothing."""
    name, date, text = (ctypes.create_string_buffer(64) for _ in range(3))
    buffers = [v for b in (name, date, text) for v in (63, ctypes.addressof(b))]
    request = bytearray(struct.pack("=iiiiQQQQQQ", 0, 0, 0, 0, *buffers))
    fcntl.ioctl(fd, _VERSION, request, True)
    major, minor = struct.unpack_from("=ii", request)
    return (major, minor), name.value.decode("ascii", "replace")


def has_info(driver: Version, param: int) -> bool:
    """Does this version know the parameter? Asking for another one prints an error into the log that is counted."""
    return driver[0] == _LEGACY or driver >= _SINCE.get(param, (0, 0))


def has_array(driver: Version, param: int) -> bool:
    return driver[0] == _LEGACY or driver >= _ARRAY_SINCE[param]


def get_info(fd: int, param: int, size: int) -> bytes:
    """The answer to a GET_INFO of a fixed size. OSError."""
    return _info(fd, param, size)[1][:size]


def _info(fd: int, param: int, size: int) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(size)
    request = bytearray(struct.pack("=IIQ", param, size, ctypes.addressof(buffer)))
    fcntl.ioctl(fd, _GET_INFO, request, True)
    return struct.unpack_from("=IIQ", request)[1], buffer.raw


def get_array(fd: int, param: int, element: int, count: int) -> list[bytes]:
    """The elements that a GET_ARRAY returned, each of the size that the driver says it has. OSError."""
    buffer = ctypes.create_string_buffer(element * count)
    request = bytearray(struct.pack("=IIIIQ", param, element, count, 0, ctypes.addressof(buffer)))
    fcntl.ioctl(fd, _GET_ARRAY, request, True)
    _, size, n, _, _ = struct.unpack("=IIIIQ", request)
    if size == 0 or size * n > len(buffer.raw):
        return []
    return [buffer.raw[i * size : (i + 1) * size] for i in range(n)]


def contexts_by_list(fd: int, driver: Version) -> list[bytes]:
    """Contexts by GET_INFO 5, 64 bytes each, for drivers without GET_ARRAY.

    What comes back as buffer_size differs: the bytes needed on driver 0.0 and the out-of-tree one, else the bytes left.
    """
    size = 64 * 64
    returned, raw = _info(fd, CONTEXTS, size)
    used = returned if driver[0] == _LEGACY or driver < (0, 1) else size - returned
    return [raw[i : i + 64] for i in range(0, min(max(used, 0), size), 64)]


def open_node(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
