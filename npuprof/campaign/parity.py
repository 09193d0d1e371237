"""Parity before time: which conditions may be timed at all."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.campaign.process import TimedProcess
from npuprof.model.condition import Condition
from npuprof.model.record import Parity, ParityRow


def check(process: TimedProcess, conditions: Sequence[Condition]) -> list[ParityRow]:
    """One row for each pass condition."""
    rows = []
    for c in conditions:
        if not c.is_step:
            found = process.parity(c.rows, c.start)
            rows.append(
                ParityRow(
                    rows=c.rows, start=c.start, agreed=found["agreed"], ties=found["ties"], detail=found["detail"]
                )
            )
    return rows


def outcome(rows: Sequence[ParityRow], checks_parity: bool) -> Parity:
    """The record's parity block."""
    if not checks_parity:
        return Parity(checked=False, agreed=False, ties=0, detail="the target has no way to check it")
    wrong = [r for r in rows if not r.agreed]
    detail = f"rows={wrong[0].rows} from start {wrong[0].start}: {wrong[0].detail}" if wrong else ""
    return Parity(
        checked=bool(rows),
        agreed=bool(rows) and not wrong,
        ties=sum(r.ties for r in rows),
        rows=list(rows),
        detail=detail,
    )


def allowed(conditions: Sequence[Condition], rows: Sequence[ParityRow]) -> list[Condition]:
    """The conditions that may be timed: those whose parity did not fail."""
    failed = {(r.rows, r.start) for r in rows if not r.agreed}
    return [c for c in conditions if (c.rows, c.start) not in failed]
