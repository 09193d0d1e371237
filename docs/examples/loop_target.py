"""A target of one's own in 30 lines: any Python loop that can do one row, or M rows at once.

npuprof run --target loop_target:make --rows 2,8,16,17
"""

import time

from npuprof.model.record import TargetInfo
from npuprof.targets.base import Timing


class Loop:
    def describe(self) -> TargetInfo:
        return TargetInfo(kind="example", device="a Python loop on the CPU", backend="CPython", simulated=True)

    def prepare(self, rows: int, start: int) -> None:
        self.work = 200_000 if rows <= 16 else 800_000

    def run_pass(self) -> Timing:
        begin = time.monotonic_ns()
        sum(range(self.work))
        return Timing(begin, time.monotonic_ns())

    run_step = run_pass

    def close(self) -> None:
        pass


def make() -> Loop:
    return Loop()
