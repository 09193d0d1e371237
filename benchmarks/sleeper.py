"""A target for benchmarks of the harness: its device wait sleeps, and nothing else takes time."""

from __future__ import annotations

import time

from npuprof.model.passes import Terms
from npuprof.model.record import TargetInfo
from npuprof.targets.base import Timing


class Sleeper:
    """Waits `seconds` a pass."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def describe(self) -> TargetInfo:
        return TargetInfo(kind="benchmark", device="a sleep, not a device", backend="time.sleep", simulated=True)

    def prepare(self, rows: int, start: int) -> None:
        pass

    def run_pass(self) -> Timing:
        begin = time.monotonic_ns()
        time.sleep(self._seconds)
        end = time.monotonic_ns()
        return Timing(begin, end, Terms(0.0, 0.0, 0.0, (end - begin) / 1e6, 0.0, 0.0, 0.0), 0.0, 112)

    run_step = run_pass

    def close(self) -> None:
        pass


def make() -> Sleeper:
    return Sleeper(0.05)


def make_instant() -> Sleeper:
    return Sleeper(0.0)
