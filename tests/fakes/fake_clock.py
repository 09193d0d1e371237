"""A fake clock and a fake target on it: time passes only when told."""

from __future__ import annotations

from dataclasses import dataclass, field

from npuprof.model.passes import Terms
from npuprof.model.record import TargetInfo
from npuprof.targets.base import Timing


@dataclass
class FakeClock:
    now_ns: int = 1_000_000_000
    suspended_ns: int = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def boottime_ns(self) -> int:
        return self.now_ns + self.suspended_ns

    def wall_s(self) -> float:
        return 1_790_000_000.0 + self.boottime_ns() / 1e9

    def pass_ms(self, ms: float) -> None:
        self.now_ns += round(ms * 1e6)


@dataclass
class FakeTarget:
    """10 ms a row; `before` and `during` hold milliseconds that go by before, or suspended in, the nth run."""

    clock: FakeClock
    before: dict[int, float] = field(default_factory=dict)
    suspended: dict[int, float] = field(default_factory=dict)
    void: dict[int, str] = field(default_factory=dict)
    runs: int = 0
    prepared: list[tuple[int, int]] = field(default_factory=list)

    def describe(self) -> TargetInfo:
        return TargetInfo(kind="fake", device="fake target on a fake clock", backend="fake", simulated=True)

    def prepare(self, rows: int, start: int) -> None:
        self.prepared.append((rows, start))
        self.clock.pass_ms(self.before.pop(self.runs, 0.0))

    def run_step(self) -> Timing:
        return self.run_pass()

    def run_pass(self) -> Timing:
        rows = self.prepared[-1][0]
        begin = self.clock.monotonic_ns()
        self.clock.pass_ms(10 * rows)
        self.clock.suspended_ns += round(self.suspended.get(self.runs, 0.0) * 1e6)
        timing = Timing(
            begin,
            self.clock.monotonic_ns(),
            terms=Terms(device_wait_ms=9.0 * rows),
            void_reason=self.void.get(self.runs),
        )
        self.runs += 1
        return timing

    def close(self) -> None:
        self.prepared.clear()
