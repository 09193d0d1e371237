"""What a table shows of a condition, from a summary; shared by the live table and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuprof.model.condition import parse_condition
from npuprof.model.record import ConditionSummary, Ratio, Summary


@dataclass(frozen=True)
class Row:
    """One line of a table; `summary` is None while nothing of it was measured."""

    name: str
    summary: ConditionSummary | None
    ratio: Ratio | None


def rows_of(summary: Summary, names: Sequence[str]) -> list[Row]:
    """One row a condition, in the order of `names`."""
    rows = []
    for name in names:
        c = parse_condition(name)
        if c.is_step:
            by_start = summary.by_start or {}
            found = by_start[str(c.start)].step if c.named_start and str(c.start) in by_start else summary.step
            rows.append(Row(name, found, None))
        else:
            passes = summary.passes.get(c.key)
            rows.append(Row(name, passes, passes.ratio_to_step if passes else None))
    return rows
