"""The driver's own answers: versions, clocks, power mode, contexts, the last async error.

Every query wakes a sleeping device (on drivers 0.0 and 0.1 so does the open descriptor): read only before, after and
between rounds. Cannot see: contexts of other users without CAP_SYS_ADMIN; more than the last async error. The contexts'
`errors` is 0 in every known driver and is no evidence.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collectors import ioctl
from collectors.base import live, not_available, stale
from npuprof.model.record import Reading

DEADLINE_S = 5.0
_TRIES = 3
POWER_MODES = ("default", "powersaver", "balanced", "performance", "turbo")
_ROOM_FOR_CONTEXTS = 64
_CONTEXT_ENTRY = 160

_MEANING = {
    errno.ENODEV: "the device is gone (unplugged, or its driver unbound): see `npuprof errors`",
    errno.EINTR: "interrupted again and again",
    errno.EACCES: "no permission; join the node's group: sudo usermod -aG render $USER, then log in again",
    errno.EPERM: "not permitted to you; it needs root",
    errno.ENOENT: "there is no such node; is the amdxdna driver loaded? sudo modprobe amdxdna",
    errno.EOPNOTSUPP: "this driver or firmware does not have it",
    errno.EINVAL: "this driver refused the query's form",
    errno.ENOSPC: "more contexts than there was room for",
}


def meaning(e: OSError) -> str:
    """The errno's name, and what it means here."""
    # ENOTSUP is Linux's other name for the same number.
    name = "EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode.get(e.errno or 0, str(e.errno))
    return f"{name}: {_MEANING.get(e.errno or 0, e.strerror)}"


class Amdxdna:
    """Opens the node, asks, and closes it again at once."""

    name = "amdxdna"

    def __init__(self, node: Path, deadline_s: float = DEADLINE_S) -> None:
        self._node = node
        self._deadline = deadline_s
        self._last: dict[str, Any] | None = None

    def read(self) -> Reading:
        try:
            reading = ioctl.within(self._deadline, self._ask)
        except ioctl.Hung:
            return stale(self._last, f"the driver did not answer within {self._deadline:g} s: the device hangs")
        except OSError as e:
            return not_available(f"{self._node}: {meaning(e)}")
        self._last = reading
        problems = reading["problems"]
        return live(reading, "; ".join(f"{k}: {v}" for k, v in problems.items()))

    def _ask(self) -> dict[str, Any]:
        fd = ioctl.open_node(str(self._node))
        try:
            driver, name = ioctl.version(fd)
            problems: dict[str, str] = {}

            def ask(what: str, call: Callable[[], Any]) -> Any:
                for attempt in range(_TRIES):
                    try:
                        return call()
                    except OSError as e:
                        if e.errno == errno.ENODEV:
                            raise
                        if e.errno != errno.EINTR or attempt == _TRIES - 1:
                            problems[what] = meaning(e)
                            break
                return None

            return {
                "driver": f"{driver[0]}.{driver[1]}",
                "driver_name": name,
                "firmware": ask("firmware", lambda: _firmware(fd)),
                "aie_version": ask("aie_version", lambda: _aie_version(fd)),
                "clocks": ask("clocks", lambda: _clocks(fd)),
                "power_mode": ask("power_mode", lambda: _power_mode(fd)),
                "resources": ask("resources", lambda: _resources(fd, driver)),
                "contexts": ask("contexts", lambda: _contexts(fd, driver)),
                "async_error": ask("async_error", lambda: _async_error(fd, driver)),
                "problems": problems,
            }
        finally:
            os.close(fd)


def _firmware(fd: int) -> str:
    return ".".join(map(str, struct.unpack("=4I", ioctl.get_info(fd, ioctl.FIRMWARE, 16))))


def _aie_version(fd: int) -> str:
    return ".".join(map(str, struct.unpack("=2I", ioctl.get_info(fd, ioctl.AIE_VERSION, 8))))


def _clocks(fd: int) -> dict[str, int]:
    raw = ioctl.get_info(fd, ioctl.CLOCKS, 48)
    return {"mp_npu_mhz": struct.unpack_from("=I", raw, 16)[0], "h_mhz": struct.unpack_from("=I", raw, 40)[0]}


def _power_mode(fd: int) -> str:
    mode = ioctl.get_info(fd, ioctl.POWER_MODE, 8)[0]
    return POWER_MODES[mode] if mode < len(POWER_MODES) else f"mode {mode}"


def _resources(fd: int, driver: ioctl.Version) -> dict[str, int] | None:
    if not ioctl.has_info(driver, ioctl.RESOURCES):
        return None
    values = struct.unpack("=5Q", ioctl.get_info(fd, ioctl.RESOURCES, 40))
    return dict(zip(("clk_max", "tops_max", "task_max", "tops_curr", "task_curr"), values, strict=True))


def _contexts(fd: int, driver: ioctl.Version) -> list[dict[str, int]]:
    """Only those that this user may see. Entries grew over the versions: fields beyond an entry's size are left out."""
    if ioctl.has_array(driver, ioctl.ARRAY_CONTEXTS):
        entries = ioctl.get_array(fd, ioctl.ARRAY_CONTEXTS, _CONTEXT_ENTRY, _ROOM_FOR_CONTEXTS)
    else:
        entries = ioctl.contexts_by_list(fd, driver)
    return [_context(e) for e in entries if len(e) >= 64]


def _context(entry: bytes) -> dict[str, int]:
    context, start, columns, _, pid, submitted, completed = struct.unpack_from("=4I3q", entry)
    found = {
        "context_id": context,
        "pid": pid,
        "start_col": start,
        "num_col": columns,
        "submitted": submitted,
        "completed": completed,
        "errors": struct.unpack_from("=Q", entry, 56)[0],
    }
    if len(entry) >= 140:
        found["fatal_error_type"] = struct.unpack_from("=I", entry, 124)[0]
    return found


def _async_error(fd: int, driver: ioctl.Version) -> dict[str, int] | None:
    """The one slot of the last async error; all zero where there was none. None where this driver has no such query."""
    if not ioctl.has_array(driver, ioctl.ARRAY_ASYNC_ERROR):
        return None
    elements = ioctl.get_array(fd, ioctl.ARRAY_ASYNC_ERROR, 24, 1)
    values = struct.unpack_from("=3Q", elements[0]) if elements and len(elements[0]) >= 24 else (0, 0, 0)
    return dict(zip(("err_code", "ts_us", "ex_err_code"), values, strict=True))
