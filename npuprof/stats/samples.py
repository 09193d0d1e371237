"""Samples in run order, from a campaign or from anywhere, and what the series as a whole looks like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npuprof.model.record import Class, Drift, Reason
from npuprof.stats import drift
from npuprof.stats.order import median
from npuprof.stats.outliers import outliers

_SERIES_LIMIT = 600


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured wall time, ms, of `condition` in `round`; `seq` gives the order in which they ran."""

    condition: str
    round: int
    seq: int
    wall_ms: float


@dataclass(frozen=True)
class Stability:
    series: Class
    drift: Drift
    outliers: list[int]


def by_condition(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Samples by condition, conditions in order of first appearance, samples in run order."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for s in sorted(samples, key=lambda s: s.seq):
        found[s.condition].append(s)
    return dict(found)


def by_round(samples: Iterable[Sample]) -> dict[int, list[float]]:
    """One condition's wall times by round."""
    found: dict[int, list[float]] = defaultdict(list)
    for s in samples:
        found[s.round].append(s.wall_ms)
    return dict(found)


def stability(samples: Sequence[Sample], canaries: Sequence[float] = (), seed: int = 0) -> Stability:
    """Class, drift and outliers of a campaign; `canaries` are its canaries in order, ms."""
    ordered = sorted(samples, key=lambda s: s.seq)
    r = drift.residuals([(s.condition, s.wall_ms) for s in ordered])
    tested = len(r) >= drift.MIN_SAMPLES
    canary = drift.canary_change(canaries)
    canary_flag = canary is not None and tested and abs(canary) > max(drift.SIZE_FLOOR, 4 * drift.noise(r))
    series: Class = "not_testable"
    trend_flag, s, change, detail = False, None, None, None
    if tested:
        thin = _thinned(r)
        s = drift.kendall_s(thin)
        change = drift.theil_sen(thin) * len(thin)
        trend_flag = abs(change) > drift.SIZE_FLOOR and drift.kendall_p(thin, s) < drift.TREND_ALPHA
        series, detail = _classify(thin, ordered, r, trend_flag, change, canary if canary_flag else None, seed)
    if canary_flag and canary is not None and detail is None:
        detail = f"the canary step changed by {drift.percent(canary):+.1f} % from first to last"
    report = Drift(
        tested=tested,
        flagged=trend_flag or canary_flag,
        S=s,
        percent=None if change is None else drift.percent(change),
        canary_percent=None if canary is None else drift.percent(canary),
        detail=detail,
    )
    flagged = []
    for group in by_condition(ordered).values():
        flagged += [group[i].seq for i in outliers([s.wall_ms for s in group])]
    return Stability(series, report, sorted(flagged))


def _classify(
    thin: Sequence[float],
    ordered: Sequence[Sample],
    r: Sequence[float],
    trend_flag: bool,
    change: float,
    canary: float | None,
    seed: int,
) -> tuple[Class, str | None]:
    tau, size = drift.largest_step(thin)
    if abs(size) > drift.SIZE_FLOOR and drift.step_is_real(thin, abs(size), seed):
        at = ordered[min(tau * len(ordered) // len(thin), len(ordered) - 1)]
        return "step", f"a step of {drift.percent(size):+.1f} % before pass {at.seq} (round {at.round})"
    if trend_flag or canary is not None:
        signed = change if trend_flag or canary is None else canary
        return ("slowdown" if signed > 0 else "speedup"), (
            f"a drift of {drift.percent(change):+.1f} % over the campaign" if trend_flag else None
        )
    first = min(s.round for s in ordered)
    if drift.first_round_slower(r, [s.round == first for s in ordered], seed):
        return "warm-up", f"round {first} alone was slower"
    return "flat", None


def _thinned(r: Sequence[float]) -> list[float]:
    """At most 600 values, each the median of equally many neighbours: pairwise tests cost the square of that."""
    width = -(-len(r) // _SERIES_LIMIT)
    return list(r) if width <= 1 else [median(r[i : i + width]) for i in range(0, len(r), width)]


def stability_reasons(found: Stability) -> list[Reason]:
    """What the series costs in trust: a step or a drift spoils each condition's own milliseconds, not the ratios."""
    if found.series not in ("step", "slowdown", "speedup"):
        return []
    text = found.drift.detail or found.series
    return [Reason(code=found.series, text=f"{text}: milliseconds are not comparable across it", affects="absolute")]


def interleaved(a: Sequence[Sample], b: Sequence[Sample]) -> bool:
    """Is each round of the two over, by their seq, before the next one of them begins? Only then is a round a block."""
    spans: dict[int, tuple[int, int]] = {}
    for s in (*a, *b):
        low, high = spans.get(s.round, (s.seq, s.seq))
        spans[s.round] = min(low, s.seq), max(high, s.seq)
    ordered = sorted(spans.values())
    return all(before[1] < after[0] for before, after in pairwise(ordered))


def round_series(samples: Mapping[str, Sequence[Sample]], name: str) -> dict[int, list[float]]:
    """The named condition's wall times by round; empty where it was not measured."""
    return by_round(samples.get(name, ()))
