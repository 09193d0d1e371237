"""What would make a record better: each line gives the number, the rule and the next command."""

from __future__ import annotations

from npuprof.model.record import ConditionSummary, Record
from npuprof.stats.outliers import cut, scores
from npuprof.stats.reconcile import rest_is_large

_WIDE = 0.05


def advice(record: Record) -> list[str]:
    """Hints on intervals, first passes, outliers and unaccounted time; none of them costs trust."""
    lines = []
    named = {"step": record.summary.step, **{f"rows={k}": v for k, v in record.summary.passes.items()}}
    for name, s in named.items():
        if s is not None:
            lines += _interval(name, s)
    lines += _slow_first(record)
    if record.summary.outliers:
        seqs = ", ".join(map(str, record.summary.outliers))
        lines.append(
            f"outliers: passes {seqs}; kept, since a slow pass is a measurement too; see: npuprof hist {record.id}"
        )
    large = [p for p in record.passes if p.is_timed and p.rest_ms is not None and rest_is_large(p.wall_ms, p.rest_ms)]
    if large:
        worst = max(large, key=lambda p: p.rest_ms or 0.0)
        lines.append(
            f"rest: {len(large)} passes have more than 2 % and 0.5 ms outside every term, pass {worst.seq} {worst.rest_ms:.1f} ms"
        )
    return lines


def _interval(name: str, s: ConditionSummary) -> list[str]:
    if s.interval is None or s.n < 6:
        return [f"{name}: n={s.n} cannot give a 95 % interval of the median; 6 are needed: --repeats 6"]
    width = (s.interval.high_ms - s.interval.low_ms) / s.median_ms
    if width > _WIDE:
        return [
            f"{name}: the median's interval is {width * 100:.0f} % wide, above 5 %; try --repeats 12 on a quieter machine"
        ]
    return []


def _slow_first(record: Record) -> list[str]:
    """The first measured pass of a condition far above the others: its warm-up was too short."""
    walls: dict[str, list[float]] = {}
    for p in record.passes:
        if p.is_timed:
            walls.setdefault(p.condition, []).append(p.wall_ms)
    lines = []
    for name, values in walls.items():
        limit = cut(len(values))
        if limit is not None and scores(values)[0] > limit:
            lines.append(f"{name}: slow initial pass ({values[0]:.1f} ms); try --warmup {record.request.warmup + 2}")
    return lines
