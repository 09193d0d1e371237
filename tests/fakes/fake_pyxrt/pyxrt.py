"""A fake pyxrt: nothing runs on an NPU. It behaves as the real one is known to, failures, texts and traps included.

It holds the interpreter lock while it waits and syncs, crashes the process where the real one does, and a command takes as
long as a knob says. A fake xclbin is a file of FAKE_MAGIC and JSON: {"uuid", "kernels": {name: number of arguments}}.

Knobs: key=value lines in the file named by FAKE_PYXRT_CONTROL, read at every device(), start() and wait.
  us             a command's time (200)
  fail_every, fail_state   every n-th command ends in that state (8 = TIMEOUT)
  hang_every     every n-th command never ends
  segv_after, abort_after, exit_after   the n-th start kills the process so
  wrong, untouched   1: outputs are wrong, or left as they were
  device_error, submit_errno, context_error   texts or errno of refusals
  wait_ms_raises  1: wait(ms) raises where it should give TIMEOUT, as shims since XRT 2.20 do (1)
FAKE_PYXRT_VERSION (2.26): what the module has.
"""

from __future__ import annotations

import atexit
import ctypes
import enum
import json
import os
import signal
import time
import warnings
import weakref
from pathlib import Path

import numpy as _numpy

FAKE_MAGIC = b"FAKEXCLBIN\n"
VERSION = tuple(int(p) for p in os.environ.get("FAKE_PYXRT_VERSION", "2.26").split("."))
_libc = ctypes.PyDLL(None)  # PyDLL keeps the interpreter lock, as the real binding does
_starts = 0
_in_flight: weakref.WeakSet[run] = weakref.WeakSet()


def _knobs() -> dict[str, str]:
    path = os.environ.get("FAKE_PYXRT_CONTROL")
    if not path or not Path(path).exists():
        return {}
    return dict(line.split("=", 1) for line in Path(path).read_text().splitlines() if "=" in line)


def _number(knobs: dict[str, str], name: str, default: float = 0) -> float:
    return float(knobs.get(name, default))


def _hold_for(seconds: float) -> None:
    """Sleeps with the interpreter lock held."""
    if seconds > 0:
        _libc.usleep(int(seconds * 1e6))


class ert_cmd_state(enum.IntEnum):
    ERT_CMD_STATE_NEW = 1
    ERT_CMD_STATE_QUEUED = 2
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5
    ERT_CMD_STATE_ABORT = 6
    ERT_CMD_STATE_SUBMITTED = 7
    ERT_CMD_STATE_TIMEOUT = 8
    ERT_CMD_STATE_NORESPONSE = 9
    ERT_CMD_STATE_SKERROR = 10
    ERT_CMD_STATE_SKCRASHED = 11


class xclBOSyncDirection(enum.IntEnum):
    XCL_BO_SYNC_BO_TO_DEVICE = 0
    XCL_BO_SYNC_BO_FROM_DEVICE = 1


class xrt_info_device(enum.IntEnum):
    bdf = 0
    max_clock_frequency_mhz = 3
    name = 5


class uuid:
    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        return self._text


class xclbin:
    class xclbinkernel:
        def __init__(self, name: str, args: int) -> None:
            self._name, self._args = name, args

        def get_name(self) -> str:
            return self._name

        def get_num_args(self) -> int:
            return self._args

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise RuntimeError(f"No such file '{path}'")
        data = Path(path).read_bytes()
        if len(data) < 8:
            raise RuntimeError("xclbin: buffer too small to contain header")
        if not data.startswith(FAKE_MAGIC):
            raise RuntimeError("Invalid xclbin")
        self._meta = json.loads(data[len(FAKE_MAGIC) :])

    def get_kernels(self) -> list[xclbinkernel]:
        return [xclbin.xclbinkernel(n, a) for n, a in self._meta["kernels"].items()]

    def get_uuid(self) -> uuid:
        return uuid(self._meta["uuid"])


class device:
    def __init__(self, which: int | str = 0) -> None:
        text = _knobs().get("device_error")
        if text:
            raise RuntimeError(text)
        if isinstance(which, int) and which > 0:
            raise RuntimeError(f" No such device with index '{which}'")
        if isinstance(which, str) and which != "0000:fa:4e.0":
            raise RuntimeError(f"No such device '{which}': Invalid argument")
        self._registered: dict[str, xclbin] = {}

    def get_info(self, what: xrt_info_device) -> str:
        if what == xrt_info_device.name:
            return "fake NPU of a fake pyxrt"
        if what == xrt_info_device.bdf:
            return "0000:fa:4e.0"
        raise RuntimeError(f"No such query request ({int(what)})")

    def register_xclbin(self, binary: xclbin) -> uuid:
        self._registered[binary.get_uuid().to_string()] = binary
        return binary.get_uuid()

    def load_xclbin(self, binary: object) -> uuid:
        if VERSION >= (2, 23):
            warnings.warn("device.load_xclbin is deprecated", DeprecationWarning, stacklevel=2)
            raise RuntimeError("xrtDeviceLoadXclbin failed in load_xclbin compatibility shim")
        raise RuntimeError("load_axlf not supported")


class hw_context:
    _next = 0

    def __init__(self, on: device, what: object) -> None:
        text = _knobs().get("context_error")
        if text:
            raise RuntimeError(text)
        if isinstance(what, uuid):
            if what.to_string() not in on._registered:
                raise RuntimeError(f"No xclbin with uuid '{what.to_string()}': Invalid argument")
            self._binary: object = on._registered[what.to_string()]
        elif VERSION < (2, 23):
            raise TypeError("__init__(): incompatible constructor arguments")
        else:
            self._binary = what
        hw_context._next += 1
        self._slot = hw_context._next % 256

    if VERSION >= (2, 23):

        def add_config(self, binary: object) -> None:
            self._binary = binary


class kernel:
    def __init__(self, context: object, name: str, *rest: object) -> None:
        if not isinstance(context, hw_context):
            warnings.warn("kernel(device, uuid, name) is deprecated", DeprecationWarning, stacklevel=2)
            raise RuntimeError("kernel(device, ...) is not for an NPU")
        binary = context._binary
        if isinstance(binary, _Elf):
            self._args = 99
        else:
            assert isinstance(binary, xclbin)
            kernels = binary._meta["kernels"]
            if name not in kernels:
                raise RuntimeError(f"No such kernel '{name}': Invalid argument")
            if name.startswith("vadd"):
                raise RuntimeError(f"CU name ({name}:{name}_1) not found (err=2): No such file or directory")
            self._args = kernels[name]
        self._context = context
        self._first = 0 if isinstance(binary, _Elf) else 3

    def group_id(self, argument: int) -> int:
        return (self._context._slot << 16) | (0 if argument < self._args else 0xFFFF)

    def __call__(self, *args: object) -> run:
        raise AssertionError("npuprof must not use kernel(...): it swallows the errors of set_arg")


class bo:
    class flags(enum.IntFlag):
        normal = 0
        cacheable = 0x01000000
        svm = 0x08000000
        device_only = 0x10000000
        host_only = 0x20000000
        p2p = 0x40000000

    normal, cacheable, host_only, device_only = flags.normal, flags.cacheable, flags.host_only, flags.device_only

    def __init__(self, on: object, size: int, flags: int, group: int) -> None:
        if flags in (self.normal, self.device_only):
            raise RuntimeError("unsupported buffer type: none flag (err=95)")
        if flags not in (self.cacheable, self.host_only):
            raise RuntimeError("Bad BO type. (err=22)")
        self._memory = bytearray(size)
        self._bank = group & 0xFFFF

    def map(self) -> memoryview:
        return memoryview(self._memory)

    def size(self) -> int:
        return len(self._memory)

    def sync(self, direction: xclBOSyncDirection, size: int | None = None, offset: int = 0) -> None:
        if size is not None and offset + size > len(self._memory):
            raise RuntimeError("Invalid BO offset and size for sync'ing: Invalid argument")


class run:
    def __init__(self, of: kernel | None = None) -> None:
        self._kernel = of
        self._args: dict[int, object] = {}
        self._state = ert_cmd_state.ERT_CMD_STATE_NEW
        self._done_at: float | None = None
        self._outcome = ert_cmd_state.ERT_CMD_STATE_COMPLETED
        self._running = False

    def set_arg(self, index: int, value: object) -> None:
        assert self._kernel is not None
        if index >= self._kernel._args:
            os.kill(os.getpid(), signal.SIGSEGV)
        if not isinstance(value, (bo, int)):
            raise TypeError("set_arg(): incompatible function arguments")
        if isinstance(value, bo) and value._bank:
            raise RuntimeError("No host side buffer in destination buffer: Invalid argument")
        self._args[index] = value

    def start(self) -> None:
        global _starts
        if self._running:
            raise RuntimeError("bad command state, can't launch")
        knobs = _knobs()
        _starts += 1
        if "submit_errno" in knobs:
            number = int(knobs["submit_errno"])
            raise RuntimeError(f"DRM_IOCTL_AMDXDNA_EXEC_CMD IOCTL failed (err=-{number}): {os.strerror(number)}")
        for name, act in (("segv_after", signal.SIGSEGV), ("abort_after", signal.SIGABRT)):
            if name in knobs and _starts >= int(knobs[name]):
                os.kill(os.getpid(), act)
        if "exit_after" in knobs and _starts >= int(knobs["exit_after"]):
            os._exit(7)
        seconds = _number(knobs, "us", 200) / 1e6
        self._outcome = ert_cmd_state.ERT_CMD_STATE_COMPLETED
        if "fail_every" in knobs and _starts % int(knobs["fail_every"]) == 0:
            self._outcome = ert_cmd_state(int(knobs.get("fail_state", 8)))
        hangs = "hang_every" in knobs and _starts % int(knobs["hang_every"]) == 0
        self._knobs = knobs
        self._state = ert_cmd_state.ERT_CMD_STATE_NEW
        self._running = True
        self._done_at = float("inf") if hangs else time.monotonic() + seconds
        _in_flight.add(self)

    def state(self) -> ert_cmd_state:
        if self._running and self._done_at is not None and time.monotonic() >= self._done_at:
            self._finish()
        return self._state

    def _finish(self) -> None:
        self._running = False
        _in_flight.discard(self)
        self._state = self._outcome
        if self._outcome == ert_cmd_state.ERT_CMD_STATE_COMPLETED and not _number(self._knobs, "untouched"):
            self._compute()

    def _compute(self) -> None:
        """The int8 GEMM of input, weights and output, where their sizes are those of one."""
        assert self._kernel is not None
        data = [v for i, v in sorted(self._args.items()) if i >= self._kernel._first and isinstance(v, bo)]
        if len(data) != 3:
            return
        x, w, y = (_numpy.frombuffer(b._memory, _numpy.int8) for b in data)
        out = y.view(_numpy.int32)
        # rows * k = |x|, k * n = |w|, rows * n = |y| / 4
        rows = round((x.size * out.size / w.size) ** 0.5) if w.size else 0
        if rows == 0 or x.size % rows or out.size % rows or (x.size // rows) * (out.size // rows) != w.size:
            return
        k, n = x.size // rows, out.size // rows
        result = x.reshape(rows, k).astype(_numpy.int32) @ w.reshape(k, n).astype(_numpy.int32)
        if _number(self._knobs, "wrong"):
            result[0, 1] += 1
        out.reshape(rows, n)[:] = result

    def wait(self, milliseconds: int = 0) -> ert_cmd_state:
        if not self._running:
            return self._state
        assert self._done_at is not None
        left = self._done_at - time.monotonic()
        limit = milliseconds / 1000 if milliseconds else float("inf")
        if left > limit:
            _hold_for(min(limit, 3600))
            if _number(self._knobs, "wait_ms_raises", 1) and VERSION >= (2, 20):
                raise RuntimeError("qds_device::wait() unexpected command state")
            return ert_cmd_state.ERT_CMD_STATE_TIMEOUT
        if _number(self._knobs, "interrupt_wait"):
            raise RuntimeError("qds_device::wait() unexpected command state")
        _hold_for(min(left, 3600))
        while self.state() == ert_cmd_state.ERT_CMD_STATE_NEW:
            pass
        return self._state

    def __del__(self) -> None:
        if getattr(self, "_running", False) and VERSION >= (2, 23):
            os.write(2, b"xrt::run destructed while command is still in progress\n")
            os.abort()


@atexit.register
def _at_exit() -> None:
    if _in_flight and VERSION >= (2, 23):
        os.abort()


class _Elf:
    def __init__(self, path: str) -> None:
        if not Path(path).is_file() or not Path(path).read_bytes().startswith(b"\x7fELF"):
            raise RuntimeError(f"{path} is not found or is not a valid ELF file")
        if b"config" not in Path(path).read_bytes():
            raise RuntimeError("ELF is missing xrt configuration info")


class ext:
    class kernel(kernel):
        pass


if VERSION < (2, 20):
    del ext
if VERSION >= (2, 19):
    elf = _Elf
if VERSION >= (2, 20):

    class runlist:
        pass


if VERSION >= (2, 26):

    class graph:
        pass
