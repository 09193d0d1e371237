"""The measuring part of a campaign: parity, warm-up, canaries, mirrored rounds, the search for the cliff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from npuprof.campaign import budget, parity
from npuprof.campaign.clock import Clock
from npuprof.campaign.process import TimedProcess
from npuprof.campaign.schedule import Visit, canary, middle_of, mirrored_round, warm_up
from npuprof.campaign.tracing import Tracing, mark
from npuprof.model.condition import Condition, conditions
from npuprof.model.events import Event, Note, PassDone, RoundsPlanned
from npuprof.model.passes import Pass
from npuprof.model.record import Cliff, ParityRow
from npuprof.model.request import Request
from npuprof.stats.cliff import find_cliff, gaps_from_rounds
from npuprof.stats.paired import MIN_BLOCKS, differences
from npuprof.stats.samples import by_condition, round_series
from npuprof.stats.summarise import samples_of

_CANARY_AFTER_S = 60.0


class Course:
    """Runs a request on a timed process and keeps what it sees in `passes` and `parity_rows`, however it ends."""

    def __init__(
        self,
        request: Request,
        seed: int,
        process: TimedProcess,
        checks_parity: bool,
        observe: Callable[[Event], None],
        clock: Clock,
        after_idle: Callable[[], None],
        tracing: Tracing | None = None,
    ) -> None:
        self._request = request
        self._random = Random(seed)
        self._process = process
        self._checks_parity = checks_parity
        self._observe = observe
        self._clock = clock
        self._after_idle = after_idle
        self._measured = conditions(request.rows, request.start)
        self._began = clock.monotonic_ns()
        self._middle_done = False
        self._tracing = tracing
        self._traced = False
        self.passes: list[Pass] = []
        self.parity_rows: list[ParityRow] = []
        self.rounds_planned = request.repeats
        self.rounds_done = 0
        self.stopped = False

    def stop(self) -> None:
        """Ends after the pass that is running."""
        self.stopped = True
        self._process.stop()

    def run(self) -> None:
        """The whole course, or what of it there was until `stop`."""
        self._measured = self._admit(self._measured)
        step = Condition(1, self._request.start[0], len(self._request.start) > 1)
        self._visit(canary(step))
        if self._request.budget is not None:
            self._plan(self._request.budget)
        while self.rounds_done < self.rounds_planned and not self.stopped:
            self._round(self._measured)
            if (
                not self._middle_done
                and 2 * self.rounds_done >= self.rounds_planned
                and self._elapsed() > _CANARY_AFTER_S
            ):
                self._middle_done = True
                self._visit(canary(step))
        if self._request.find_cliff:
            self._bisect(step)
        self._visit(canary(step))

    def _elapsed(self) -> float:
        return (self._clock.monotonic_ns() - self._began) / 1e9

    def _admit(self, wanted: Sequence[Condition]) -> list[Condition]:
        """Parity and warm-up; returns the conditions that may be timed."""
        admitted = list(wanted)
        if self._checks_parity:
            for c in wanted:
                if self.stopped:
                    break
                self.parity_rows += parity.check(self._process, [c])
            admitted = parity.allowed(wanted, self.parity_rows)
            refused = [c.name for c in wanted if c not in admitted]
            if refused:
                self._observe(Note(f"parity failed: {', '.join(refused)} will not be timed"))
        self._visit(warm_up(admitted, self._request.warmup))
        return admitted

    def _visit(self, visits: Sequence[Visit]) -> None:
        if self.stopped or not visits:
            return
        idle = False
        for done in self._process.visit(visits):
            measured = mark(done) if self._traced else done
            self.passes.append(measured)
            self._observe(PassDone(measured))
            idle = idle or "after_idle_s" in measured.extra
        if idle:
            self._after_idle()

    def _round(self, among: Sequence[Condition]) -> None:
        if self._tracing is None:
            self._visit(mirrored_round(among, self.rounds_done + 1, self._request.steps, self._random))
        else:
            self._both_ways(self._tracing, among)
        if not self.stopped:
            self.rounds_done += 1

    def _both_ways(self, tracing: Tracing, among: Sequence[Condition]) -> None:
        """A round with the driver's events recorded and one without, which comes first in turn."""
        for on in (True, False) if self.rounds_done % 2 == 0 else (False, True):
            self._traced = on
            tracing.switch(on=on)
            self._visit(mirrored_round(among, self.rounds_done + 1, self._request.steps, self._random))
        self._traced = False
        tracing.switch(on=False)

    def _announce(self) -> None:
        self._observe(RoundsPlanned(self.rounds_planned, tuple(c.name for c in self._measured)))

    def _plan(self, seconds: float) -> None:
        spent = self._elapsed()
        self.rounds_planned = budget.PILOT_ROUNDS
        self._announce()
        while self.rounds_done < self.rounds_planned and not self.stopped:
            self._round(self._measured)
        if self.stopped:
            return
        round_s = (self._elapsed() - spent) / budget.PILOT_ROUNDS
        samples = by_condition(samples_of(self.passes))
        steps = {c.start: round_series(samples, c.name) for c in self._measured if c.is_step}
        series = [differences(round_series(samples, c.name), steps[c.start]) for c in self._measured if not c.is_step]
        planned = budget.plan(series, round_s, self._elapsed(), seconds)
        self.rounds_planned = planned.rounds
        self._observe(Note(planned.text))
        self._announce()

    def _bisect(self, step: Condition) -> None:
        """Narrows the cliff of the first start to adjacent M, a few rounds a probe, then says what it found."""
        cliff = self._cliff(step.start)
        if cliff is None:
            self._observe(Note("no cliff between the rows asked for: nothing to bisect"))
            return
        low, high = cliff.last_cheap_rows, cliff.first_costly_rows
        while (middle := middle_of(low, high)) is not None and not self.stopped:
            self._observe(Note(f"cliff between {low} and {high} rows: trying {middle}"))
            probe = Condition(middle, step.start, step.named_start)
            if not self._admit([probe]):
                return
            self._measured.append(probe)
            ends = [Condition(m, step.start, step.named_start) for m in (low, high) if m != 1]
            rounds = max(MIN_BLOCKS, self._request.repeats)
            self.rounds_planned += rounds
            self._announce()
            for _ in range(rounds):
                self._round([step, *ends, probe])
            gaps = {g.low_rows: g for g in gaps_from_rounds(self._by_rows(step.start))}
            if low not in gaps or middle not in gaps:
                return
            low, high = (low, middle) if gaps[low].factor > gaps[middle].factor else (middle, high)

    def _by_rows(self, start: int) -> dict[int, dict[int, list[float]]]:
        samples = by_condition(samples_of(self.passes))
        return {c.rows: round_series(samples, c.name) for c in self._measured if c.start == start}

    def _cliff(self, start: int) -> Cliff | None:
        return find_cliff(gaps_from_rounds(self._by_rows(start)))
