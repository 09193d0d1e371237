"""The finding of a campaign in one sentence."""

from __future__ import annotations

from npuprof.model.record import PassSummary, Record, Trust
from npuprof.render.lines import ratio_text
from npuprof.render.text import digits3

_TELLING = 1.25
"""High end over low end of a ratio's interval, up to which it could have shown a pass that costs a quarter more."""


def finding(record: Record) -> str:
    """What a pass of k+1 rows costs in steps, up to which M, what it is beyond, and whether that is trusted."""
    start = record.request.start[0]
    passes = sorted(_of_start(record, start).items())
    at = f" from start {start}" if len(record.request.start) > 1 else ""
    trusted = _trusted(record.trust)
    if not passes:
        return f"nothing can be said of {record.target.device}: no pass was measured beside a step; {trusted}."
    cliff = record.summary.cliff
    cheap = [(m, s) for m, s in passes if cliff is None or m <= cliff.last_cheap_rows]
    dear = [(m, s) for m, s in passes if cliff is not None and m >= cliff.first_costly_rows]
    parts = []
    if cheap:
        last, summary = cheap[-1]
        values = [s.ratio_to_step.value for _, s in cheap if s.ratio_to_step]
        span = (
            ""
            if len(values) < 2
            else f"{digits3(min(values))} to {digits3(max(values))} steps up to M={last} (k={last - 1}), there "
        )
        alone = f" at M={last} (k={last - 1})" if not span else ""
        parts.append(f"a pass of k+1 rows{at} costs {span}{_cost(summary)}{alone}")
    if dear and cliff is not None:
        first, summary = dear[0]
        jump = f"from M={first} on it costs {_cost(summary)}: the cliff is between {cliff.last_cheap_rows} and {first} rows"
        parts.append(jump)
    elif cheap:
        parts.append(_no_cliff(cheap))
    return f"{record.target.device}: {'; '.join(parts)}; {trusted}."


def _no_cliff(passes: list[tuple[int, PassSummary]]) -> str:
    """Not having found a cliff says something only where the intervals are narrow enough to have shown one."""
    wide = [
        (r.high / r.low, m, r) for m, s in passes if (r := s.ratio_to_step) and r.low is not None and r.high is not None
    ]
    width, rows, ratio = max(wide, default=(1.0, 0, None), key=lambda w: w[0])
    if ratio is None or width <= _TELLING:
        return "no cliff was found among the rows measured"
    ends = f"[{digits3(ratio.low or 0)}, {digits3(ratio.high or 0)}]"
    return f"whether there is a cliff cannot be decided, with intervals as wide as {ends} at M={rows}"


def _trusted(trust: Trust) -> str:
    if trust.trusted:
        return "trusted"
    if trust.ratios == "trusted":
        return f"these ratios are trusted, the milliseconds are NOT: {trust.reasons[0].text}"
    return "NOT trusted: " + next(r.text for r in trust.reasons if r.affects == "all")


def _cost(summary: PassSummary) -> str:
    return "an unknown number of steps" if summary.ratio_to_step is None else ratio_text(summary.ratio_to_step)


def _of_start(record: Record, start: int) -> dict[int, PassSummary]:
    found = {}
    for key, summary in record.summary.passes.items():
        rows, _, at = key.partition("@")
        if not at or int(at) == start:
            found[int(rows)] = summary
    return found
