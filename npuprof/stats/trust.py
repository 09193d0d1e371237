"""What a campaign's record is worth: every reason not to believe it, by what it spoils."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from npuprof.model.passes import Pass
from npuprof.model.record import Ending, Parity, Reason, Trust
from npuprof.stats.reconcile import rest_is_negative
from npuprof.stats.samples import Stability, stability_reasons

VOID_SHARE = 0.2


def trust_of(reasons: Sequence[Reason]) -> Trust:
    """trusted unless a reason speaks against it; a reason that affects `all` spoils ratios too."""
    return Trust(
        absolute="not_trusted" if reasons else "trusted",
        ratios="not_trusted" if any(r.affects == "all" for r in reasons) else "trusted",
        reasons=list(reasons),
    )


def campaign_reasons(passes: Sequence[Pass], parity: Parity, ending: Ending, series: Stability | None) -> list[Reason]:
    """Every check that applies to any target; the evidence of the device's window is judged apart."""
    reasons = []
    if ending.how != "done":
        done = f"{ending.rounds_done} of {ending.rounds_planned} rounds done"
        detail = f": {ending.detail}" if ending.detail else ""
        reasons.append(
            Reason(code=ending.how, text=f"the campaign was {_ended(ending.how)}, {done}{detail}", affects="all")
        )
    reasons += [
        Reason(
            code="parity", text=f"{_where(row.rows, row.start)}: {row.detail}; no time is given for it", affects="all"
        )
        for row in parity.rows
        if not row.agreed
    ]
    reasons += _void(passes)
    if series is None:
        reasons.append(Reason(code="nothing_measured", text="no pass was measured", affects="all"))
    else:
        reasons += stability_reasons(series)
    negative = [p for p in passes if p.is_timed and p.rest_ms is not None and _overdrawn(p, p.rest_ms)]
    if negative:
        worst = min(negative, key=lambda p: p.rest_ms or 0.0)
        text = f"{len(negative)} passes have terms that exceed their wall, pass {worst.seq} by {-(worst.rest_ms or 0):.3f} ms"
        reasons.append(Reason(code="negative_rest", text=text, affects="all"))
    return reasons


def _overdrawn(p: Pass, rest_ms: float) -> bool:
    """Terms beyond the wall: by more than 1 us for stamps, by more than its printed digits explain for a server's line."""
    consistent = p.extra.get("consistent")
    return rest_is_negative(rest_ms) if consistent is None else rest_ms < 0 and not consistent


def _ended(how: str) -> str:
    return "interrupted" if how == "interrupted" else "cut off"


def _where(rows: int, start: int) -> str:
    return f"rows={rows} from start {start}"


def _void(passes: Sequence[Pass]) -> list[Reason]:
    # Warm-ups and canaries have no round: one that failed costs no measured pass.
    void = Counter(p.condition for p in passes if p.phase == "void" and p.round is not None)
    counted = Counter(p.condition for p in passes if p.is_timed)
    reasons = []
    for name, n in void.items():
        total = n + counted[name]
        if n > VOID_SHARE * total:
            why = Counter(p.void_reason for p in passes if p.phase == "void" and p.condition == name).most_common(1)
            text = f"{name}: {n} of {total} passes are void ({why[0][0]}), more than a fifth"
            reasons.append(Reason(code="too_many_void", text=text, affects="all"))
    return reasons
