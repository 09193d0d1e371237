"""A pass plan as a target: every term of a pass is timed at its own borders."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuprof.errors import DeviceProblem
from npuprof.lines import format_line
from npuprof.model.passes import Terms
from npuprof.model.record import Family, TargetInfo
from npuprof.targets.base import ParityOutcome, Timing
from npuprof.targets.xrt.checks import check_launch
from npuprof.targets.xrt.layout import Layout, Step
from npuprof.targets.xrt.numbers import activations
from npuprof.targets.xrt.parts import Npu, Waiter, explain
from npuprof.targets.xrt.plan import Plan, load_plan

_FLOOR_LAUNCHES = 20
_DRIVER = Path("/sys/bus/pci/devices")


class Spent:
    """Nanoseconds of the launches of one part of a pass, by where they went."""

    __slots__ = ("pack", "quantise_launch", "readback", "wait")

    def __init__(self) -> None:
        self.pack = self.quantise_launch = self.wait = self.readback = 0

    @property
    def total(self) -> int:
        return self.pack + self.quantise_launch + self.wait + self.readback


class XrtTarget:
    """Runs a plan. `launch_stamps` keeps the stamps of every launch in the pass's `extra`."""

    def __init__(self, plan_file: Path, launch_stamps: bool) -> None:
        self._plan, _ = load_plan(plan_file)
        self._folder = plan_file.parent
        pyxrt = importlib.import_module("pyxrt")
        plan = self._plan
        self._npu = Npu(pyxrt, plan.device)
        self._waiter = Waiter(pyxrt, plan.wait.mode, plan.wait.grain_us, plan.wait.deadline_s)
        self._layout = Layout(self._npu, plan, self._folder)
        self._launch_stamps = launch_stamps
        self._stamps: list[tuple[str, int, int, int, int, int, int]] | None = None
        self._table = None if plan.embed is None else activations(plan.embed.rows, plan.embed.bytes_per_row // 4)
        self._tokens: NDArray[np.intp] = np.zeros(1, np.intp)
        self._sources: dict[str, NDArray[np.float32]] = {}
        self._rows = 1
        self._start = 0
        self._steps: list[Step] = []
        self._head: list[tuple[Step, slice]] = []

    def describe(self) -> TargetInfo:
        """The device as XRT names it; no NPU, and simulated, where no amdxdna driver has that device on this system."""
        bdf = self._npu.info("bdf")
        backed = bdf is not None and (_DRIVER / bdf / "driver").resolve().name == "amdxdna"
        name = self._npu.info("name") or "a device that does not tell its name"
        floor, wait_cost = self._floor()
        return TargetInfo(
            kind="xrt",
            device=f"{name} ({bdf or 'no BDF'})",
            backend=f"pyxrt, {_features(self._npu.pyxrt)}",
            simulated=not backed,
            families=[Family(rows=f.rows, kernel=f"{f.xclbin or f.elf}: {f.kernel}") for f in self._plan.families],
            on_npu=backed,
            parity_means=self._parity_means(),
            waiting=self._waiter.describe(),
            floor_ms=floor,
            wait_cost_ms=wait_cost,
        )

    def _parity_means(self) -> str | None:
        check = self._plan.check
        if check is None:
            return None
        against = "its golden output" if check.kind == "golden" else "what numpy computes"
        return f"launch {check.launch}, its output poisoned beforehand, gives {against}"

    def prepare(self, rows: int, start: int) -> None:
        """Looks up the steps and cuts the activations; a plan's launches do not depend on `start`."""
        family = self._plan.family_of(rows)
        self._rows, self._start = rows, start
        self._steps = self._layout.layers[family.rows]
        self._head = self._head_steps(rows)
        self._tokens = (np.arange(rows) + start) % (self._plan.embed.rows if self._plan.embed else rows)
        for launch in (*self._plan.launches, *self._plan.head):
            width = launch.in_bytes_per_row // (2 if launch.dtype == "bf16" else 1)
            self._sources[launch.name] = activations(rows, width) if width else np.zeros((rows, 0), np.float32)

    def _head_steps(self, rows: int) -> list[tuple[Step, slice]]:
        """The head's launches: in its own smallest family that holds the rows, else in its largest, several times."""
        families = sorted(self._layout.head)
        if not families:
            return []
        size = next((f for f in families if f >= rows), families[-1])
        chunks = [slice(at, min(at + size, rows)) for at in range(0, rows, size)]
        return [(step, chunk) for chunk in chunks for step in self._layout.head[size]]

    def run_step(self) -> Timing:
        return self._run()

    def run_pass(self) -> Timing:
        return self._run()

    def _run(self) -> Timing:
        layers, head = Spent(), Spent()
        self._stamps = [] if self._launch_stamps else None
        now = time.monotonic_ns
        failed: str | None = None
        try:
            begin = now()
            if self._table is not None:
                self._table[self._tokens]
            embedded = now()
            failed = self._launch_all(self._steps, layers)
            launched = now()
            if failed is None:
                failed = self._launch_head(head)
            end = now()
        except RuntimeError as e:
            raise explain(e, "a launch") from e
        terms = Terms(
            embed_ms=(embedded - begin) / 1e6,
            pack_ms=layers.pack / 1e6,
            quantise_launch_ms=layers.quantise_launch / 1e6,
            device_wait_ms=layers.wait / 1e6,
            readback_ms=layers.readback / 1e6,
            layers_host_ms=(launched - embedded - layers.total) / 1e6,
            lm_head_ms=(end - launched) / 1e6,
        )
        extra: dict[str, Any] = {}
        if self._stamps is not None:
            extra["launch_stamps_ns"] = [list(s) for s in self._stamps]
        wall, head_device = (end - begin) / 1e6, head.total / 1e6
        return Timing(
            at_ns=begin,
            end_ns=end,
            terms=terms,
            head_device_ms=head_device,
            launches=len(self._steps),
            kind="verify",
            head_rows=self._rows if self._head else 0,
            line=format_line(self._rows, self._start, wall, terms, head_device, len(self._steps)),
            void_reason=failed,
            extra=extra,
        )

    def _launch_all(self, steps: list[Step], spent: Spent) -> str | None:
        """Every launch in order; what failed, in words, or None."""
        sources, stamps = self._sources, self._stamps
        now, wait, completed = time.monotonic_ns, self._waiter.wait, self._waiter.states.completed
        rows = self._rows
        for step in steps:
            t0 = t1 = t2 = now()
            if step.quantise is not None and step.packed is not None and step.send is not None:
                q = step.quantise(sources[step.launch.name])
                t1 = now()
                step.packed[:rows] = q
                t2 = now()
                step.send()
            step.start()
            t3 = now()
            state = wait(step.run)
            t4 = t5 = now()
            if step.receive is not None and step.result is not None and step.produced is not None:
                step.receive()
                step.result[:rows] = step.produced[:rows]
                t5 = now()
            spent.quantise_launch += t1 - t0 + t3 - t2
            spent.pack += t2 - t1
            spent.wait += t4 - t3
            spent.readback += t5 - t4
            if stamps is not None:
                stamps.append((step.launch.name, t0, t1, t2, t3, t4, t5))
            if state != completed:
                return self._failure(step, state)
        return None

    def _launch_head(self, spent: Spent) -> str | None:
        """The head's launches, each with its own rows; the same borders as in the layers."""
        whole, sources = self._rows, self._sources
        for step, chunk in self._head:
            self._rows = chunk.stop - chunk.start
            self._sources = {step.launch.name: sources[step.launch.name][chunk]}
            failed = self._launch_all([step], spent)
            self._rows, self._sources = whole, sources
            if failed is not None:
                return failed
        return None

    def _failure(self, step: Step, state: Any) -> str:
        name = self._waiter.states.failed.get(state, str(state))
        return f"launch {step.launch.name} ended in ERT_CMD_STATE_{name}"

    def _floor(self) -> tuple[float | None, float | None]:
        """A no-op launch's median, ms, and what waiting costs on a launch that is over already."""
        noop = self._layout.noop
        if noop is None:
            return None, None
        walls, waits = [], []
        for _ in range(_FLOOR_LAUNCHES):
            begin = time.monotonic_ns()
            noop.start()
            if self._waiter.wait(noop.run) != self._waiter.states.completed:
                raise DeviceProblem("the plan's no-op launch failed: npuprof errors")
            end = time.monotonic_ns()
            self._waiter.wait(noop.run)
            waits.append((time.monotonic_ns() - end) / 1e6)
            walls.append((end - begin) / 1e6)
        return median(walls), median(waits)

    def close(self) -> None:
        """Nothing is in flight here: every launch was waited for, and a hung one leaves the process at once."""


class CheckedXrtTarget(XrtTarget):
    """A plan that says what one of its launches must compute."""

    def check_parity(self, rows: int, start: int) -> ParityOutcome:
        """The checked launch in the family that these rows use, its output poisoned beforehand."""
        self.prepare(rows, start)
        check = self._plan.check
        assert check is not None
        step = next(s for s in self._steps if s.launch.name == check.launch)
        try:
            return check_launch(check, step, rows, self._sources[check.launch], self._waiter, self._folder)
        except RuntimeError as e:
            raise explain(e, f"launch {check.launch}") from e


def _features(pyxrt: Any) -> str:
    """There is no version to ask: what the module can do tells how old it is at least."""
    known = (
        (hasattr(pyxrt, "graph"), "of XRT 2.26 or later"),
        (hasattr(getattr(pyxrt, "run", None), "get_ctrl_scratchpad_bo"), "of XRT 2.25 or later"),
        (hasattr(getattr(pyxrt, "hw_context", None), "add_config"), "of XRT 2.23 or later"),
        (hasattr(pyxrt, "runlist"), "of XRT 2.20 or later"),
        (hasattr(pyxrt, "elf"), "of XRT 2.19 or later"),
        (hasattr(pyxrt, "hw_context"), "of XRT 2.16 or later"),
    )
    return next((text for has, text in known if has), "older than XRT 2.16")


def make_xrt(plan: str, launch_stamps: bool) -> XrtTarget:
    """The target of a plan file. UsageProblem or DeviceProblem if it cannot be set up."""
    file = Path(plan)
    parsed: Plan = load_plan(file)[0]
    return (CheckedXrtTarget if parsed.check is not None else XrtTarget)(file, launch_stamps)
