"""The timed process's inner loop: visits to passes. Nothing here runs between a pass's two stamps."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

from npuprof.campaign.clock import Clock
from npuprof.campaign.schedule import Visit
from npuprof.model.passes import Pass, Phase, rest_of
from npuprof.targets.base import Target, Timing

IDLE_LIMIT_S = 5.0
"""The driver suspends an idle device after 5 s; the pass after such a pause is a cold one."""

_SUSPEND_NS = 100_000_000


def _checked(timing: Timing) -> None:
    """ValueError for stamps or terms that are no times: they must never become a number that looks like any other."""
    stamps = (timing.at_ns, timing.end_ns)
    if not all(type(t) is int for t in stamps) or timing.end_ns <= timing.at_ns:
        raise ValueError(f"the target's stamps are no whole nanoseconds in order: {stamps}")
    given = [*timing.terms.values(), timing.head_device_ms]
    wrong = [t for t in given if t is not None and not (isinstance(t, int | float) and isfinite(t))]
    if wrong:
        raise ValueError(f"the target gave a term that is no number of milliseconds: {wrong[0]!r}")


class Executor:
    """Runs visits on a target, numbers the passes, and hands each one to `emit` before the next begins.

    `counters` are read before and after each pass, outside its stamps; what rose is kept in the pass's `extra`.
    """

    def __init__(
        self,
        target: Target,
        clock: Clock,
        emit: Callable[[Pass], None],
        stopped: Callable[[], bool],
        counters: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self._target = target
        self._clock = clock
        self._emit = emit
        self._stopped = stopped
        self._counters = counters
        self._seq = 0
        self._last_end: int | None = None

    def run(self, visits: Iterable[Visit]) -> bool:
        """False if it was told to stop before all visits were done."""
        gc.collect()
        gc.disable()
        try:
            for visit in visits:
                for _ in range(visit.samples):
                    if self._stopped():
                        return False
                    self._sample(visit)
            return True
        finally:
            gc.enable()

    def _sample(self, visit: Visit) -> None:
        self._target.prepare(visit.rows, visit.start)
        idle = self._idle_s()
        if idle > IDLE_LIMIT_S and visit.phase != "warmup":
            self._one(visit, "warmup", {"after_idle_s": round(idle, 3)})
            self._target.prepare(visit.rows, visit.start)
        self._one(visit, visit.phase, {})

    def _idle_s(self) -> float:
        """Since the last pass ended, by a clock that also counts a suspended machine's time."""
        return 0.0 if self._last_end is None else (self._clock.boottime_ns() - self._last_end) / 1e9

    def _one(self, visit: Visit, phase: Phase, extra: dict[str, Any]) -> None:
        counted = self._counters()
        boot, mono = self._clock.boottime_ns(), self._clock.monotonic_ns()
        timing = self._target.run_step() if visit.rows == 1 else self._target.run_pass()
        self._last_end = self._clock.boottime_ns()
        _checked(timing)
        rose = {k: round(v - counted[k], 6) for k, v in self._counters().items() if k in counted and v > counted[k]}
        asleep = (self._last_end - boot) - (self._clock.monotonic_ns() - mono)
        reason = timing.void_reason or ("the machine was suspended during the pass" if asleep > _SUSPEND_NS else None)
        self._emit(self._as_pass(visit, phase if reason is None else "void", reason, timing, {**rose, **extra}))
        self._seq += 1

    def _as_pass(
        self, visit: Visit, phase: Phase, void_reason: str | None, timing: Timing, extra: dict[str, Any]
    ) -> Pass:
        return Pass(
            seq=self._seq,
            phase=phase,
            condition=visit.condition,
            kind="step" if visit.rows == 1 else timing.kind,
            rows=visit.rows,
            start=visit.start,
            head_rows=timing.head_rows,
            round=visit.round if phase != "warmup" else None,
            at_ns=timing.at_ns,
            wall_ms=timing.wall_ms,
            terms=timing.terms,
            head_device_ms=timing.head_device_ms,
            rest_ms=rest_of(timing.wall_ms, timing.terms),
            launches=timing.launches,
            line=timing.line,
            void_reason=void_reason,
            extra={**timing.extra, **extra},
        )
