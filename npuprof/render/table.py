"""The table of conditions: all terms where there is room, one stacked bar where there is not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from npuprof.model.passes import TERM_KEYS, TERM_LABELS
from npuprof.model.record import ConditionSummary, Ratio
from npuprof.render.bar import bar, legend
from npuprof.render.text import digits3, ms
from npuprof.render.view import Row

WIDE = 120
_BAR = 16


def condition_table(rows: Sequence[Row], width: int) -> RenderableType:
    """For a terminal of `width` columns; from 120 on with a column a term."""
    wide = width >= WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for head in ("condition", "n", "median ms", "interval", "x step"):
        table.add_column(head, justify="left" if head == "condition" else "right", no_wrap=True)
    if wide:
        for head in (*TERM_LABELS.values(), "rest"):
            table.add_column(
                head.replace("quant+launch", "q+launch").replace("device wait", "wait"), justify="right", no_wrap=True
            )
    else:
        table.add_column("share of the wall", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, wide))
    return table if wide else Group(table, legend())


def _cells(row: Row, wide: bool) -> list[RenderableType]:
    s = row.summary
    if s is None:
        return [Text(row.name), Text("0")]
    n = f"{s.n} of {s.n + s.void}" if s.void else str(s.n)
    cells: list[RenderableType] = [
        Text(row.name),
        Text(n),
        Text(ms(s.median_ms)),
        Text(interval(s)),
        _ratio(row.ratio, wide),
    ]
    if not wide:
        return [*cells, bar(s, _BAR)]
    return [*cells, *(Text(ms(s.terms_median_ms.get(t))) for t in TERM_KEYS), Text(ms(s.rest_median_ms))]


def interval(s: ConditionSummary) -> str:
    """`[low, high]`, ms; under 6 samples only `min–max`, since nothing covers 95 % there."""
    if s.interval is None:
        return "–"
    low, high = ms(s.interval.low_ms, s.median_ms), ms(s.interval.high_ms, s.median_ms)
    return f"{low}–{high}" if s.n < 6 else f"[{low}, {high}]"


def _ratio(ratio: Ratio | None, wide: bool) -> Text:
    if ratio is None:
        return Text("–")
    if wide and ratio.low is not None and ratio.high is not None:
        return Text(f"{digits3(ratio.value)} [{digits3(ratio.low)}, {digits3(ratio.high)}]")
    return Text(digits3(ratio.value))
