"""The building blocks of a pass on the NPU, public for targets of one's own: device, kernels, buffers, launches.

They work with pyxrt of XRT 2.16 to 2.26, told apart by what the module has, never by a number.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuprof.errors import DeviceHung, DeviceProblem
from npuprof.targets.xrt.verify import kernel_name

OPCODE_RUN = 3
_FAILED = ("ERROR", "ABORT", "TIMEOUT", "NORESPONSE", "SKERROR", "SKCRASHED")
_IN_FLIGHT_TEXT = "unexpected command state"


@dataclass(frozen=True)
class States:
    """The command states that this pyxrt binds; RUNNING has no name there, so only what is final is listed."""

    completed: Any
    failed: dict[Any, str]

    @staticmethod
    def of(pyxrt: Any) -> States:
        enum = pyxrt.ert_cmd_state
        named = {n: getattr(enum, f"ERT_CMD_STATE_{n}", None) for n in _FAILED}
        return States(enum.ERT_CMD_STATE_COMPLETED, {v: n for n, v in named.items() if v is not None})

    def is_final(self, state: Any) -> bool:
        return state == self.completed or state in self.failed


class Waiter:
    """How a launch is waited for: `block` in run.wait, or `poll` run.state with a grain of sleep.

    Calling it with a started run gives its final state, COMPLETED or a failed one. DeviceHung past the deadline.
    """

    def __init__(self, pyxrt: Any, mode: str = "block", grain_us: float = 20.0, deadline_s: float = 20.0) -> None:
        self.states = States.of(pyxrt)
        self.mode = mode
        self._grain_s = grain_us / 1e6
        self._deadline_s = deadline_s
        self._deadline_ms = int(deadline_s * 1000)
        self.wait = self._block if mode == "block" else self._poll

    def describe(self) -> str:
        grain = "" if self.mode == "block" else f" every {self._grain_s * 1e6:g} us"
        call = "run.wait" if self.mode == "block" else "run.state"
        return f"{self.mode}ing in {call}{grain}, deadline {self._deadline_s:g} s a launch"

    def _block(self, run: Any) -> Any:
        try:
            state = run.wait(self._deadline_ms)
        except RuntimeError as e:
            # Shims since XRT 2.20 raise this whenever the wait itself was cut short; the command goes on.
            if _IN_FLIGHT_TEXT not in str(e):
                raise
            return self._poll(run)
        if state == self.states.completed:
            return state
        # A TIMEOUT that is only the wait's own leaves the run in flight; the device's own is final.
        now = run.state()
        return now if self.states.is_final(now) else self._poll(run)

    def _poll(self, run: Any) -> Any:
        end = time.monotonic() + self._deadline_s
        while not self.states.is_final(state := run.state()):
            if time.monotonic() > end:
                raise DeviceHung(
                    f"a launch did not end within {self._deadline_s:g} s; the device may need: sudo modprobe -r amdxdna"
                )
            time.sleep(self._grain_s)
        return state


class Npu:
    """One device. Contexts are made once an xclbin; the newest API that this pyxrt has is used."""

    def __init__(self, pyxrt: Any, device: int | str) -> None:
        self.pyxrt = pyxrt
        try:
            self.device = pyxrt.device(device)
        except RuntimeError as e:
            raise DeviceProblem(_explain(str(e), device)) from e
        self._contexts: dict[Path, tuple[Any, Any]] = {}

    def info(self, what: str) -> str | None:
        """`name`, `bdf` and so on; None where the device does not answer."""
        try:
            return str(self.device.get_info(getattr(self.pyxrt.xrt_info_device, what)))
        except (RuntimeError, AttributeError):
            return None

    def context(self, xclbin: Path) -> tuple[Any, Any]:
        """The hardware context and the xclbin. DeviceProblem if the device has none left or refuses it."""
        if xclbin not in self._contexts:
            try:
                binary = self.pyxrt.xclbin(str(xclbin))
                if hasattr(self.pyxrt.hw_context, "add_config"):  # XRT 2.23 and later
                    context = self.pyxrt.hw_context(self.device, binary)
                else:
                    self.device.register_xclbin(binary)
                    context = self.pyxrt.hw_context(self.device, binary.get_uuid())
            except RuntimeError as e:
                raise DeviceProblem(_explain(str(e), xclbin)) from e
            self._contexts[xclbin] = (context, binary)
        return self._contexts[xclbin]

    def kernel(self, xclbin: Path, name: str) -> Kernel:
        """The kernel of that name, or the one that begins with it."""
        context, binary = self.context(xclbin)
        counts = {k.get_name(): k.get_num_args() for k in binary.get_kernels()}
        found = kernel_name(name, list(counts))
        if found is None:
            raise DeviceProblem(f"{xclbin} has no kernel {name!r}; it has {', '.join(counts)}")
        try:
            return Kernel(self, self.pyxrt.kernel(context, found), counts[found])
        except RuntimeError as e:
            raise DeviceProblem(_explain(str(e), found)) from e

    def elf_kernel(self, elf: Path, name: str) -> Kernel:
        """A kernel of a full ELF, named `kernel:instance`; needs XRT 2.23."""
        if not hasattr(self.pyxrt, "ext") or not hasattr(self.pyxrt.hw_context, "add_config"):
            raise DeviceProblem(f"{elf}: this XRT's pyxrt cannot run a full ELF; it needs XRT 2.23 or later")
        try:
            binary = self.pyxrt.elf(str(elf))
            context = self.pyxrt.hw_context(self.device, binary)
            return Kernel(self, self.pyxrt.ext.kernel(context, name), None)
        except RuntimeError as e:
            raise DeviceProblem(_explain(str(e), elf)) from e

    def buffer(self, kernel: Kernel, argument: int, size: int, *, instructions: bool = False) -> Buffer:
        """A buffer in the bank of the kernel's argument."""
        flags = self.pyxrt.bo.cacheable if instructions else self.pyxrt.bo.host_only
        try:
            return Buffer(self.pyxrt, self.pyxrt.bo(self.device, size, flags, kernel.raw.group_id(argument)), size)
        except RuntimeError as e:
            raise DeviceProblem(_explain(str(e), f"a buffer of {size} bytes")) from e


@dataclass(frozen=True)
class Kernel:
    """`arguments` is how many it takes, None where its file does not say (ELF)."""

    npu: Npu
    raw: Any
    arguments: int | None


class Buffer:
    """A buffer shared with the device; `view` is its memory as bytes, without a copy."""

    def __init__(self, pyxrt: Any, bo: Any, size: int) -> None:
        self.bo = bo
        self.size = size
        self.view: NDArray[np.uint8] = np.frombuffer(bo.map(), np.uint8)[:size]
        self._to = pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE
        self._from = pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE

    def fill(self, data: bytes | NDArray[Any]) -> None:
        """Writes the bytes at its start and syncs all of it to the device."""
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.view(np.uint8).ravel()
        self.view[: raw.size] = raw
        self.to_device()

    def to_device(self) -> None:
        self.bo.sync(self._to)

    def from_device(self) -> None:
        self.bo.sync(self._from)


@dataclass
class LaunchRun:
    """One prebuilt run with its arguments set once. Keep it until its state is final: dropping it in flight aborts."""

    name: str
    run: Any
    inputs: Buffer | None
    output: Buffer | None
    held: list[Buffer] = field(default_factory=list)

    def start(self) -> None:
        self.run.start()


def make_launch(
    kernel: Kernel,
    name: str,
    instructions: Buffer | None,
    words: int,
    buffers: list[Buffer | None],
    *,
    elf: bool = False,
) -> LaunchRun:
    """A run of `kernel` on input, weights and output (None is left out), arguments set once with set_arg.

    The call form `kernel(...)` is never used: it swallows the errors of arguments that it cannot set.
    """
    given = [b for b in buffers if b is not None]
    first = 0 if elf else 3
    if kernel.arguments is not None and first + len(given) > kernel.arguments:
        raise DeviceProblem(
            f"launch {name} would set {first + len(given)} arguments of a kernel that takes {kernel.arguments}"
        )
    run = kernel.npu.pyxrt.run(kernel.raw)
    try:
        if not elf:
            assert instructions is not None
            run.set_arg(0, OPCODE_RUN)
            run.set_arg(1, instructions.bo)
            run.set_arg(2, words)
        for i, b in enumerate(given, first):
            run.set_arg(i, b.bo)
    except RuntimeError as e:
        raise DeviceProblem(_explain(str(e), f"launch {name}")) from e
    held = [*given, *([instructions] if instructions is not None else [])]
    return LaunchRun(name, run, buffers[0], buffers[2], held)


def read_instructions(file: Path) -> bytes:
    """The instruction stream: raw little-endian words, or one hexadecimal word a line in a .txt file."""
    if file.suffix != ".txt":
        return file.read_bytes()
    words = [int(w, 16) for w in file.read_text().split()]
    return np.array(words, "<u4").tobytes()


_MEANINGS = (
    (
        "No such device with index",
        "no NPU answers: the driver is not bound or XRT's xdna plugin is missing: npuprof doctor",
    ),
    ("No such device '", "there is no device of that BDF: xrt-smi examine lists them"),
    ("(err=-13): Permission denied", "no permission for the node: sudo usermod -aG render $USER, then log in again"),
    ("(err=-11): Resource temporarily unavailable", "the memlock limit is too small: ulimit -l unlimited"),
    (
        "CREATE_HWCTX IOCTL failed (err=-2)",
        "no context or column is left on the device: npuprof hold status, npuprof doctor",
    ),
    ("EXEC_CMD IOCTL failed", "the driver refused the command: npuprof errors"),
    ("CU name (", "that kernel is none that the NPU runs (AMD's validate xclbins list such ones first)"),
    ("No such file '", "the file is missing"),
    ("Invalid xclbin", "the file is no xclbin"),
    ("too small to contain header", "the file is no xclbin: it is empty or cut short"),
    ("No xclbin with uuid", "the xclbin was never registered with this device"),
    ("No such kernel", "the xclbin has no kernel of that name"),
    ("load_xclbin compatibility shim", "this XRT cannot load an xclbin in the old way"),
    ("unsupported buffer type", "an NPU has no buffers of that kind"),
    ("Bad BO type", "an NPU has no buffers of that kind"),
    ("not found or is not a valid ELF", "the file is missing or no ELF"),
    ("ELF is missing xrt configuration", "the file is no full ELF: it needs an xclbin beside it"),
    ("No host side buffer in destination buffer", "the buffer lies in another bank than the kernel's argument"),
)


def _explain(text: str, what: object) -> str:
    """What XRT said, and what it means."""
    meaning = next((m for sign, m in _MEANINGS if sign in text), None)
    said = " ".join(text.split())
    return f"{what}: {meaning} (XRT says: {said})" if meaning else f"{what}: XRT says: {said}"


def explain(error: RuntimeError, what: object) -> DeviceProblem:
    """For targets of one's own: an XRT exception as the tool's own."""
    return DeviceProblem(_explain(str(error), what))
