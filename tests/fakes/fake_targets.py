"""Fake targets for the timed process: quick, and failing in every way that a target may fail."""

from __future__ import annotations

import os
import signal
import sys
import time

from npuprof.model.passes import Terms
from npuprof.model.record import TargetInfo
from npuprof.targets.base import ParityOutcome, Timing


class Quick:
    """States made-up durations at once: 10 ms a step, a cliff of 4x beyond 16 rows. Nothing is waited for."""

    device = "fake target that states made-up times"

    def __init__(self) -> None:
        self.rows, self.start, self.count = 1, 0, 0

    def describe(self) -> TargetInfo:
        return TargetInfo(kind="fake", device=self.device, backend="fake", simulated=True)

    def prepare(self, rows: int, start: int) -> None:
        self.rows, self.start = rows, start

    def run_step(self) -> Timing:
        return self.run_pass()

    def run_pass(self) -> Timing:
        self.count += 1
        wall = 10.0 if self.rows <= 16 else 40.0
        wall += 0.05 * self.rows + 0.01 * (self.count * 7 % 5)
        begin = time.monotonic_ns()
        terms = Terms(0.1, 0.1, 1.0, wall - 3, 0.1, 0.5, 1.0)
        return Timing(begin, begin + round(wall * 1e6), terms, head_device_ms=0.8, launches=112, head_rows=self.rows)

    def close(self) -> None:
        pass


class Paritied(Quick):
    def check_parity(self, rows: int, start: int) -> ParityOutcome:
        if rows == 3:
            return ParityOutcome(False, 0, "row 1 gives token 7, a single step gives 9 (top-2 margin 0.5)")
        return ParityOutcome(True, 1 if rows == 5 else 0)


class Slow(Quick):
    def run_pass(self) -> Timing:
        time.sleep(0.05)
        return super().run_pass()

    run_step = run_pass


class OnNpu(Quick):
    """Says that it runs on an NPU, so that the device's evidence is collected: from a stand-in driver, or from nothing."""

    device = "fake NPU behind the stand-in driver fakexdna"

    def describe(self) -> TargetInfo:
        return super().describe().model_copy(update={"on_npu": True})


class Untyped(Quick):
    """Gives what cannot be kept."""

    def run_pass(self) -> Timing:
        timing = super().run_pass()
        return Timing(timing.at_ns, timing.end_ns, launches="many" if self.count > 6 else 1)  # type: ignore[arg-type]

    run_step = run_pass


class Timeless(Quick):
    """Its stamps are no times."""

    def run_pass(self) -> Timing:
        timing = super().run_pass()
        return timing if self.count < 6 else Timing(timing.at_ns, float("nan"))  # type: ignore[arg-type]

    run_step = run_pass


class Stuck(Quick):
    """Its seventh run takes 30 s."""

    def run_pass(self) -> Timing:
        if self.count == 6:
            time.sleep(30)
        return super().run_pass()

    run_step = run_pass


class Failing(Quick):
    def run_pass(self) -> Timing:
        if self.count == 20:
            raise RuntimeError("the fake device said [red]no[/red]")
        return super().run_pass()

    run_step = run_pass


class Crashing(Quick):
    def run_pass(self) -> Timing:
        if self.count == 20:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().run_pass()

    run_step = run_pass


class Voiding(Quick):
    def run_pass(self) -> Timing:
        timing = super().run_pass()
        if self.rows == 17 and self.count % 2:
            return Timing(timing.at_ns, timing.end_ns, void_reason="the fake device reported ERT_CMD_STATE_TIMEOUT")
        return timing


class Chatty(Quick):
    def prepare(self, rows: int, start: int) -> None:
        super().prepare(rows, start)
        print("a target's own words on standard output")
        sys.stderr.write("and on standard error\n")


def quick() -> Quick:
    return Quick()


def paritied() -> Paritied:
    return Paritied()


def slow() -> Slow:
    return Slow()


def on_npu() -> OnNpu:
    return OnNpu()


def untyped() -> Untyped:
    return Untyped()


def timeless() -> Timeless:
    return Timeless()


def stuck() -> Stuck:
    return Stuck()


def failing() -> Failing:
    return Failing()


def crashing() -> Crashing:
    return Crashing()


def voiding() -> Voiding:
    return Voiding()


def chatty() -> Chatty:
    return Chatty()


def no_target() -> object:
    return object()


def broken_factory() -> object:
    raise OSError("no such fake device")


not_callable = 3


class Counted(Slow):
    """Writes the id of its campaign into the file COUNTED_LOG, once a start: whoever runs twice is in it twice."""

    def __init__(self) -> None:
        super().__init__()
        with open(os.environ["COUNTED_LOG"], "a") as log:  # noqa: PTH123 - one write of a short line, appended whole
            log.write(os.environ.get("NPUPROF_RUN", "?") + "\n")
