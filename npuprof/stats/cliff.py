"""The cliff: the gap between two neighbouring M where a pass suddenly costs more than its rows explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from npuprof.model.record import Cliff
from npuprof.stats.order import median
from npuprof.stats.paired import MIN_BLOCKS, ByRound, centre

_STEEPER = 3
_SHARE_OF_PASS = 0.05
_SHARE_ALONE = 0.5


@dataclass(frozen=True)
class Gap:
    """Between `low_rows` and `high_rows`: cost and its interval's low end, ms; `base_ms` is T(low_rows)."""

    low_rows: int
    high_rows: int
    base_ms: float
    cost_ms: float
    cost_low_ms: float

    @property
    def marginal(self) -> float:
        """ms a row."""
        return self.cost_ms / (self.high_rows - self.low_rows)

    @property
    def factor(self) -> float:
        return (self.base_ms + self.cost_ms) / self.base_ms


def gaps_from_rounds(by_rows: Mapping[int, ByRound]) -> list[Gap]:
    """Neighbouring M (the step is M = 1), each gap's cost paired per round; gaps of under 3 blocks are left out."""
    gaps = []
    for low, high in _neighbours(by_rows):
        rounds = [b for b in sorted(by_rows[low].keys() & by_rows[high].keys()) if by_rows[low][b] and by_rows[high][b]]
        if len(rounds) < MIN_BLOCKS:
            continue
        cost, cost_low, _, _ = centre([fmean(by_rows[high][b]) - fmean(by_rows[low][b]) for b in rounds])
        base = median([t for b in rounds for t in by_rows[low][b]])
        gaps.append(Gap(low, high, base, cost, cost if cost_low is None else cost_low))
    return gaps


def gaps_from_medians(medians: Mapping[int, float]) -> list[Gap]:
    """The same from published medians alone: the point value stands for the interval."""
    return [
        Gap(low, high, medians[low], medians[high] - medians[low], medians[high] - medians[low])
        for low, high in _neighbours(medians)
    ]


def find_cliff(gaps: Sequence[Gap]) -> Cliff | None:
    """The cliff among the gaps, that of the largest factor if several qualify.

    A gap qualifies if its cost a row lies, interval included, above 3 times the median of the other gaps' and its cost
    exceeds 5 % of the cheaper pass; with no other gap, if it exceeds 50 %.
    """
    cliffs = [gap for i, gap in enumerate(gaps) if _qualifies(gap, [*gaps[:i], *gaps[i + 1 :]])]
    if not cliffs:
        return None
    worst = max(cliffs, key=lambda gap: gap.factor)
    return Cliff(last_cheap_rows=worst.low_rows, first_costly_rows=worst.high_rows, factor=worst.factor)


def _qualifies(gap: Gap, others: Sequence[Gap]) -> bool:
    if not others:
        return gap.cost_low_ms > 0 and gap.cost_ms > _SHARE_ALONE * gap.base_ms
    usual = max(0.0, median([o.marginal for o in others]))
    steep = gap.cost_low_ms / (gap.high_rows - gap.low_rows) > _STEEPER * usual
    return steep and gap.cost_ms > _SHARE_OF_PASS * gap.base_ms


def _neighbours(by_rows: Mapping[int, object]) -> list[tuple[int, int]]:
    return list(pairwise(sorted(by_rows)))
