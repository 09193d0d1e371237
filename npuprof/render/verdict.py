"""A verdict as one table, the lines to paste, and one sentence."""

from __future__ import annotations

from npuprof.economics.estimate import Estimate
from npuprof.economics.finding import Finding
from npuprof.economics.verdict import Case, Shape, longer_drafts
from npuprof.render.acceptance import counts_line
from npuprof.render.text import digits3, ms, printable

_WORDS = {
    "pays": "pays",
    "does_not_pay": "does not pay",
    "undecided": "undecided",
    "cannot_win": "cannot win",
    "not_trusted": "not trusted",
}


def verdict_lines(finding: Finding) -> list[str]:
    """Derived figures all: arithmetic over measured parts, and labelled so."""
    lines = ["arithmetic over measured parts, not a measured loop", ""]
    lines += _table(finding)
    lines += ["", *_pasted(finding), ""]
    lines += [_bought(finding, i) for i in range(len(longer_drafts(finding.cases, _rates(finding))))]
    lines += [f"note    {note}" for note in finding.notes]
    lines += [f"because {reason}" for reason in finding.reasons]
    lines += [sentence(finding)]
    return [printable(line) for line in lines]


def _table(finding: Finding) -> list[str]:
    rows = [["k", "shape", "ms", "bar", "projected", "verdict"]]
    for k, case in finding.cases.items():
        for name, shape in (("one_pass", case.one_pass), ("two_pass", case.two_pass)):
            projected = "–" if shape.projected is None else _with_interval(shape.projected)
            bar = _with_interval(shape.round.bar)
            rows.append([str(k), name, ms(shape.round.ms.value), bar, projected, _WORDS[shape.verdict]])
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    table = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    return [*table, f"tokens/round: {finding.how}"]


def _with_interval(e: Estimate) -> str:
    if not e.known:
        return f"{digits3(e.value)} (no interval)"
    return f"{digits3(e.value)} [{digits3(e.low)}, {digits3(e.high)}]"


def _pasted(finding: Finding) -> list[str]:
    lines = []
    for k, case in finding.cases.items():
        t = case.times
        counts = finding.counts.get(k)
        if counts is not None:
            lines.append(counts_line(k, counts))
        lines.append(
            f"k={k}: pass M={k + 1} {ms(t.pass_ms.value)} ms, decode step {ms(t.step_ms.value)} ms, drafts "
            f"{ms(case.drafts_ms.value)} ms a round"
        )
        lines.append("    " + shapes_line(case))
        lines.append("    " + _margins(case))
    return lines


def _margins(case: Case) -> str:
    """How far both shapes are from break-even."""
    return "; ".join(f"{name} {_margin(s)}" for name, s in (("one_pass", case.one_pass), ("two_pass", case.two_pass)))


def _margin(s: Shape) -> str:
    rate = "no acceptance" if s.break_even_rate is None else f"accepted/offered {digits3(s.break_even_rate)}"
    factor = s.survives_window_factor
    if factor is None:
        return f"breaks even with {rate}"
    slower = "no pass, however cheap" if factor <= 0 else f"a pass at {digits3(factor)} times its cost"
    return f"breaks even with {rate}, or with {slower}"


def shapes_line(case: Case) -> str:
    """`one_pass: round 1072.1 ms, bar 1.05, projected 2.822x     two_pass: ...`."""
    parts = []
    for name, shape in (("one_pass", case.one_pass), ("two_pass", case.two_pass)):
        projected = "" if shape.projected is None else f", projected {digits3(shape.projected.value)}x"
        parts.append(f"{name}: round {ms(shape.round.ms.value)} ms, bar {digits3(shape.round.bar.value)}{projected}")
    return "     ".join(parts)


def _rates(finding: Finding) -> dict[int, float | None]:
    return {k: c.rate for k, c in finding.counts.items()}


def _bought(finding: Finding, i: int) -> str:
    step = longer_drafts(finding.cases, _rates(finding))[i]
    kind = "more drafting, not better drafting" if step.tokens > 0 else "more drafting for nothing"
    return (
        f"k={step.of} to k={step.to}: {100 * step.tokens:+.0f} % tokens/round for {-step.rate_points:.0f} points less "
        f"acceptance: {kind}; projection {100 * step.projected:+.0f} %"
    )


def sentence(finding: Finding) -> str:
    """What a reader takes away."""
    k, case = finding.k, finding.case
    cost = f"a pass of {k + 1} rows costs {digits3(case.times.pass_over_step.value)} steps"
    bar = f"bar {digits3(case.one_pass.round.bar.value)} = round cost / step cost"
    if finding.verdict == "cannot_win":
        return f"cannot win: {bar}, and a round of k={k} yields at most {k + 1} tokens, whatever the drafter; {cost}"
    if case.tokens_per_round is None or case.one_pass.projected is None:
        return f"{_WORDS[finding.verdict]}: {bar} (break-even, not a target), no round was replayed; {cost}"
    tokens, projected = digits3(case.tokens_per_round.value), digits3(case.one_pass.projected.value)
    prompts = "" if finding.prompts is None else f"{finding.prompts} "
    other = ""
    if case.two_pass.verdict != case.one_pass.verdict and finding.verdict != "not_trusted":
        other = f"; in two passes: {_WORDS[case.two_pass.verdict]}"
    return (
        f"{_WORDS[finding.verdict]} on these {prompts}prompts: {tokens} tokens/round (the target's own included) "
        f"against {bar} (break-even, not a target), x {projected} projected by arithmetic; {cost}{other}"
    )
