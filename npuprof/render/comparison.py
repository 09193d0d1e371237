"""`summarize` for people: one line a condition, one a ratio, then the series and what it costs in trust."""

from __future__ import annotations

from npuprof.render.report import trust_lines
from npuprof.render.text import digits3, ms, printable
from npuprof.stats.compare import Comparison, ConditionFigures, Figures


def comparison_lines(found: Figures) -> list[str]:
    """The lines, safe to print."""
    lines = [_condition(name, c) for name, c in found.conditions.items()]
    lines += [_ratio(r) for r in found.ratios]
    detail = f": {found.drift.detail}" if found.drift.detail else ""
    lines.append(f"series  {found.series}{detail}")
    return [printable(line) for line in [*lines, *trust_lines(found.trust)]]


def _condition(name: str, c: ConditionFigures) -> str:
    interval = ""
    if c.interval is not None:
        ends = f"[{ms(c.interval.low_ms, c.median_ms)}, {ms(c.interval.high_ms, c.median_ms)}]"
        interval = f"  {'min–max ' if c.n < 6 else ''}{ends} covers {c.interval.coverage * 100:.1f} %"
    extremes = f"min {ms(c.min_ms, c.median_ms)} max {ms(c.max_ms, c.median_ms)}"
    flagged = f"  outliers (kept): seq {', '.join(map(str, c.outliers))}" if c.outliers else ""
    return f"{name} {ms(c.median_ms)} ms{interval}  n={c.n}  {extremes}{flagged}"


def _ratio(r: Comparison) -> str:
    head = f"{r.of} / {r.to}"
    if r.ratio is None:
        return f"{head}  no block of both  {r.verdict}"
    if r.ratio.low is None or r.ratio.high is None or r.ratio.coverage is None:
        return f"{head} {digits3(r.ratio.value)}  no interval under 3 blocks ({r.ratio.blocks})  {r.verdict}"
    ends = f"[{digits3(r.ratio.low)}, {digits3(r.ratio.high)}] {r.ratio.coverage * 100:.1f} %"
    return f"{head} {digits3(r.ratio.value)}  {ends}  {r.ratio.blocks} blocks  {_verdict(r)}"


def _verdict(r: Comparison) -> str:
    if r.verdict == "changed":
        return "changed (> 1 %)"
    if r.verdict == "not_changed":
        return "not changed (within 1 %)"
    need = (
        "the machine is too noisy to decide within 1 %"
        if r.need_blocks is None
        else f"need about {r.need_blocks} blocks"
    )
    return f"undecided, {need}"
