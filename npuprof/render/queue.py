"""The queue as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.render.text import printable

_WIDE = 100


def queue_lines(campaigns: Sequence[dict[str, Any]], width: int) -> list[str]:
    """One line a campaign: names and places whole, the reason cut where `width` ends; instants in UTC."""
    if not campaigns:
        return ["nothing is running, nothing waits"]
    wide = width >= _WIDE
    rows = [["", "id", "user", *(["submitted"] if wide else []), "expected", "reason"]]
    for c in campaigns:
        place = "running" if c["state"] == "running" else str(c["position"])
        instants = [c["submitted"], c["expected_start"]] if wide else [c["expected_start"]]
        rows.append([printable(x) for x in (place, c["id"], c["user"], *map(_clock, instants), c["reason"])])
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]) - 1)]
    left = max(1, width - sum(widths) - 2 * len(widths))
    return [
        "  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), _cut(r[-1], left)]).rstrip() for r in rows
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _clock(instant: str | None) -> str:
    """`03:38:52Z` of an RFC 3339 instant."""
    return "–" if instant is None else f"{instant[11:19]}Z"
