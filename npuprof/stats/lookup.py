"""A pass's and a step's median out of a record, for rows that may not have been measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npuprof.model.condition import Condition
from npuprof.model.record import Cliff, ConditionSummary, PassSummary, Record


class NotMeasured(ValueError):
    """The record neither has these rows nor bounds them."""


@dataclass(frozen=True)
class Found:
    """Medians, ms. `rows` is what was measured; `upper_bound_of` the rows asked for where it stands in for them."""

    pass_ms: float
    step_ms: float
    rows: int
    start: int
    upper_bound_of: int | None
    kind: str
    head_rows: int | None
    summaries: tuple[ConditionSummary, PassSummary]

    @property
    def may_understate(self) -> bool:
        """A prefill may compute the LM head for fewer rows than a verify pass needs."""
        return self.kind == "prefill" and (self.head_rows is None or self.head_rows < self.rows)

    def as_dict(self) -> dict[str, Any]:
        """The figures alone."""
        return {k: v for k, v in vars(self).items() if k != "summaries"}


def look_up(record: Record, rows: int, start: int | None) -> Found:
    """NotMeasured if the start was not asked, no step was measured there, or nothing bounds these rows from above."""
    starts = record.request.start
    at = starts[0] if start is None else start
    if at not in starts:
        raise NotMeasured(f"start {at} was not measured; there are {', '.join(map(str, starts))}")
    several = len(starts) > 1
    by_start = record.summary.by_start
    here = by_start[str(at)] if by_start is not None else None
    step = here.step if here is not None else record.summary.step
    cliff = here.cliff if here is not None else record.summary.cliff
    if step is None:
        raise NotMeasured("no decode step was measured")
    keys = {m: Condition(m, at, several).key for m in _measured_rows(record, at)}
    chosen = _choose(rows, [m for m in sorted(keys) if keys[m] in record.summary.passes], cliff)
    pass_summary = record.summary.passes[keys[chosen]]
    example = next(p for p in record.passes if p.rows == chosen and p.start == at and p.is_timed)
    return Found(
        pass_ms=pass_summary.median_ms,
        step_ms=step.median_ms,
        rows=chosen,
        start=at,
        upper_bound_of=None if chosen == rows else rows,
        kind=example.kind,
        head_rows=example.head_rows,
        summaries=(step, pass_summary),
    )


def _measured_rows(record: Record, start: int) -> set[int]:
    return {p.rows for p in record.passes if p.is_timed and p.rows > 1 and p.start == start}


def _choose(rows: int, measured: list[int], cliff: Cliff | None) -> int:
    if rows in measured:
        return rows
    have = ", ".join(map(str, measured)) or "none"
    larger = [m for m in measured if m > rows]
    if not larger:
        raise NotMeasured(
            f"rows={rows} was not measured, and nothing larger was; measured rows: {have}; try: npuprof run --rows {rows}"
        )
    if cliff is not None and larger[0] > cliff.last_cheap_rows:
        raise NotMeasured(
            f"rows={rows} was not measured, and the next larger, {larger[0]}, lies beyond the cliff "
            f"({cliff.last_cheap_rows}|{cliff.first_costly_rows}); try: npuprof run --rows {rows}"
        )
    return larger[0]
