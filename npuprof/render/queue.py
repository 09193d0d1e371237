"""The queue as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from npuprof.render.text import printable


def queue_table(campaigns: Sequence[dict[str, Any]]) -> RenderableType:
    """One line a campaign; instants in UTC, without their date where that is today's."""
    if not campaigns:
        return Text("nothing is running, nothing waits")
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for head in ("", "id", "user", "submitted", "expected", "reason"):
        table.add_column(head, no_wrap=True, overflow="ellipsis" if head == "reason" else "fold")
    for c in campaigns:
        place = "running" if c["state"] == "running" else str(c["position"])
        cells = [place, c["id"], c["user"], _clock(c["submitted"]), _clock(c["expected_start"]), c["reason"]]
        table.add_row(*(Text(printable(x)) for x in cells))
    return table


def _clock(instant: str | None) -> str:
    """`03:38:52Z` of an RFC 3339 instant."""
    return "–" if instant is None else f"{instant[11:19]}Z"
