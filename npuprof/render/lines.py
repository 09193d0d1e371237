"""The lines that people paste: their forms are read back by scripts."""

from __future__ import annotations

from npuprof.model.condition import parse_condition
from npuprof.model.record import ConditionSummary, Errors, PassSummary, Ratio, Record
from npuprof.render.text import digits3, ms
from npuprof.render.view import rows_of


def condition_lines(record: Record) -> list[str]:
    """One line a measured condition, steps last."""
    names = list(dict.fromkeys(p.condition for p in record.passes if p.is_timed))
    names.sort(key=lambda n: (parse_condition(n).is_step, parse_condition(n)))
    lines = []
    for row in rows_of(record.summary, names):
        c = parse_condition(row.name)
        at = f" start={c.start}" if c.named_start else ""
        if isinstance(row.summary, PassSummary):
            wait = row.summary.device_wait_median_ms
            waits = "" if wait is None else f", device wait median {ms(wait)}"
            lines.append(f"pass M={c.rows}{at}:  {wall(row.summary)}{waits}{covers(row.summary)}")
        elif row.summary is not None:
            lines.append(f"decode step{at}: {wall(row.summary)}{covers(row.summary)}")
    return lines


def wall(s: ConditionSummary) -> str:
    """`n=4 wall median 1049.1 ms (min 1025.0 max 1067.9)`."""
    return f"n={s.n} wall median {ms(s.median_ms)} ms (min {ms(s.min_ms, s.median_ms)} max {ms(s.max_ms, s.median_ms)})"


def covers(s: ConditionSummary) -> str:
    """The median's interval and its coverage, and the void passes."""
    void = f", {s.n} of {s.n + s.void} passes, {s.void} void" if s.void else ""
    if s.interval is None:
        return void
    i = s.interval
    return f", [{ms(i.low_ms, s.median_ms)}, {ms(i.high_ms, s.median_ms)}] covers {i.coverage * 100:.1f} %{void}"


def ratio_text(ratio: Ratio) -> str:
    """`1.027 steps [1.021, 1.034] (96.9 %, 6 blocks)`."""
    if ratio.low is None or ratio.high is None or ratio.coverage is None:
        return f"{digits3(ratio.value)} steps (no interval: {ratio.blocks} blocks, 3 are needed)"
    ends = f"[{digits3(ratio.low)}, {digits3(ratio.high)}]"
    return f"{digits3(ratio.value)} steps {ends} ({ratio.coverage * 100:.1f} %, {ratio.blocks} blocks)"


def error_line(errors: Errors) -> str:
    """`amdxdna error count 2561 -> 2561 (benign 40 -> 42)`."""
    count = f"{_count(errors.count_before)} -> {_count(errors.count_after)}"
    return f"amdxdna error count {count} (benign {_count(errors.benign_before)} -> {_count(errors.benign_after)})"


def _count(n: int | None) -> str:
    return "not available" if n is None else str(n)
