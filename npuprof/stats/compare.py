"""Samples from anywhere: each condition, the series, and every other condition against one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npuprof.model.record import Class, Drift, Interval, Ratio, Reason, Trust
from npuprof.stats.judge import Verdict, judge, need_blocks
from npuprof.stats.order import median, median_interval
from npuprof.stats.outliers import outliers
from npuprof.stats.paired import differences, ratio_of
from npuprof.stats.samples import Sample, by_condition, interleaved, round_series, stability, stability_reasons
from npuprof.stats.trust import trust_of


@dataclass(frozen=True)
class ConditionFigures:
    n: int
    median_ms: float
    min_ms: float
    max_ms: float
    interval: Interval | None
    outliers: list[int]


@dataclass(frozen=True)
class Comparison:
    """`of` over `to`; `need_blocks` is set where the verdict is undecided and some number of rounds would decide it."""

    of: str
    to: str
    ratio: Ratio | None
    verdict: Verdict
    need_blocks: int | None


@dataclass(frozen=True)
class Figures:
    conditions: dict[str, ConditionFigures]
    series: Class
    drift: Drift
    ratios: list[Comparison]
    trust: Trust

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `summarize`."""
        return {
            "conditions": {
                name: {**vars(c), "interval": None if c.interval is None else c.interval.model_dump()}
                for name, c in self.conditions.items()
            },
            "class": self.series,
            "drift": self.drift.model_dump(),
            "ratios": [
                {
                    "of": r.of,
                    "to": r.to,
                    **(r.ratio.model_dump() if r.ratio else _NO_RATIO),
                    "verdict": r.verdict,
                    "need_blocks": r.need_blocks,
                }
                for r in self.ratios
            ],
            "trust": self.trust.model_dump(),
        }


_NO_RATIO = {"value": None, "low": None, "high": None, "coverage": None, "blocks": 0}


def compare(samples: Sequence[Sample], to: str) -> Figures:
    """Everything that `summarize` prints. `to` must be one of the conditions."""
    groups = by_condition(samples)
    conditions = {}
    for name, group in groups.items():
        walls = [s.wall_ms for s in group]
        conditions[name] = ConditionFigures(
            len(walls),
            median(walls),
            min(walls),
            max(walls),
            median_interval(walls),
            [group[i].seq for i in outliers(walls)],
        )
    base = round_series(groups, to)
    apart = [name for name in groups if name != to and not interleaved(groups[name], groups[to])]
    series = {name: differences(round_series(groups, name), base) for name in groups if name not in (to, *apart)}
    verdicts = judge(series)
    ratios = [
        Comparison(name, to, ratio_of(d), verdicts[name], need_blocks(d) if verdicts[name] == "undecided" else None)
        for name, d in series.items()
    ]
    ratios += [Comparison(name, to, None, "undecided", None) for name in apart]
    found = stability(samples)
    reasons = stability_reasons(found)
    if apart:
        text = f"rounds of {', '.join(apart)} and {to} overlap by their seq: they ran one after the other and make no blocks"
        reasons.append(Reason(code="not_interleaved", text=text, affects="all"))
    return Figures(conditions, found.series, found.drift, ratios, trust_of(reasons))
