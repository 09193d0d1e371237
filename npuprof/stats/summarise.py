"""Passes to the record's summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from npuprof.model.condition import Condition, parse_condition
from npuprof.model.passes import TERM_KEYS, Pass
from npuprof.model.record import Cliff, ConditionSummary, Drift, PassSummary, StartSummary, Summary
from npuprof.stats.cliff import find_cliff, gaps_from_rounds
from npuprof.stats.order import median, median_interval
from npuprof.stats.paired import differences, ratio_of
from npuprof.stats.samples import Sample, Stability, by_condition, round_series, stability


def samples_of(passes: Sequence[Pass]) -> list[Sample]:
    """The measured ones: warm-ups, canaries and void passes are kept in the record and never counted."""
    return [Sample(p.condition, p.round or 0, p.seq, p.wall_ms) for p in passes if p.is_timed]


def stability_of(passes: Sequence[Pass], seed: int) -> Stability | None:
    """The campaign's class and drift; None where nothing was measured."""
    samples = samples_of(passes)
    return stability(samples, canaries_of(passes), seed) if samples else None


def canaries_of(passes: Sequence[Pass]) -> list[float]:
    """The median of each run of canary steps, ms: at the campaign's start, perhaps its middle, and its end."""
    runs: list[list[float]] = []
    last_seq = None
    for p in passes:
        if p.phase == "canary":
            if last_seq is None or p.seq != last_seq + 1:
                runs.append([])
            runs[-1].append(p.wall_ms)
            last_seq = p.seq
    return [median(run) for run in runs]


def summarise(passes: Sequence[Pass], starts: Sequence[int], series: Stability | None) -> Summary:
    """Medians, intervals, terms, ratios and cliffs of a campaign's passes. `starts` in the order asked."""
    counted: dict[str, list[Pass]] = defaultdict(list)
    void: dict[str, int] = defaultdict(int)
    for p in passes:
        if p.is_timed:
            counted[p.condition].append(p)
        elif p.phase == "void":
            void[p.condition] += 1
    samples = by_condition(samples_of(passes))
    found = sorted(
        (parse_condition(name, starts[0]) for name in counted), key=lambda c: (starts.index(c.start), c.rows)
    )
    several = len(starts) > 1
    by_start: dict[str, StartSummary] = {}
    summaries: dict[str, PassSummary] = {}
    for start in starts:
        here = [c for c in found if c.start == start]
        step_name = Condition(1, start, several).name
        step = _condition(counted[step_name], void[step_name]) if step_name in counted else None
        for c in here:
            if not c.is_step:
                ratio = ratio_of(differences(round_series(samples, c.name), round_series(samples, step_name)))
                waits = _given(counted[c.name], "device_wait_ms")
                base = _condition(counted[c.name], void[c.name])
                summaries[c.key] = PassSummary(
                    **dict(base), device_wait_median_ms=median(waits) if waits else None, ratio_to_step=ratio
                )
        by_start[str(start)] = StartSummary(step=step, cliff=_cliff(here, samples))
    first = by_start[str(starts[0])]
    return Summary(
        step=first.step,
        passes=summaries,
        cliff=first.cliff,
        by_start=by_start if several else None,
        series=series.series if series else "not_testable",
        drift=series.drift if series else Drift(tested=False, flagged=False),
        outliers=series.outliers if series else [],
    )


def _cliff(here: Sequence[Condition], samples: dict[str, list[Sample]]) -> Cliff | None:
    return find_cliff(gaps_from_rounds({c.rows: round_series(samples, c.name) for c in here}))


def _given(passes: Sequence[Pass], term: str) -> list[float]:
    values = (getattr(p.terms, term) for p in passes)
    return [v for v in values if v is not None]


def _condition(passes: Sequence[Pass], void: int) -> ConditionSummary:
    walls = [p.wall_ms for p in passes]
    total = sum(walls)
    medians: dict[str, float | None] = {}
    shares: dict[str, float | None] = {}
    for term in TERM_KEYS:
        values = _given(passes, term)
        medians[term] = median(values) if values else None
        # Shares come from summed times: medians of terms do not add up to the median of the wall.
        shares[term] = sum(values) / total if len(values) == len(passes) else None
    heads = [p.head_device_ms for p in passes if p.head_device_ms is not None]
    rests = [p.rest_ms for p in passes if p.rest_ms is not None]
    return ConditionSummary(
        n=len(walls),
        void=void,
        median_ms=median(walls),
        min_ms=min(walls),
        max_ms=max(walls),
        interval=median_interval(walls),
        terms_median_ms=medians,
        terms_share=shares,
        head_device_median_ms=median(heads) if heads else None,
        rest_median_ms=median(rests) if rests else None,
    )
