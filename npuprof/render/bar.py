"""One stacked bar of a pass's terms: a letter a term, so that it also reads without colour."""

from __future__ import annotations

from rich.text import Text

from npuprof.model.passes import TERM_KEYS, TERM_LABELS
from npuprof.model.record import ConditionSummary

_LETTERS = dict(zip(TERM_KEYS, "epqwrhL", strict=True))
_STYLES = dict(
    zip(
        TERM_KEYS,
        (
            "black on bright_cyan",
            "black on bright_white",
            "black on bright_yellow",
            "white on blue",
            "black on bright_magenta",
            "black on bright_green",
            "white on red",
        ),
        strict=True,
    )
)
_REST = "."


def bar(summary: ConditionSummary, width: int) -> Text:
    """`width` cells shared out by the terms' shares of the summed walls, the rest last; empty without terms."""
    shares = {t: s for t in TERM_KEYS if (s := summary.terms_share.get(t)) is not None}
    if not shares:
        return Text("no terms", style="dim")
    text = Text()
    done, reached = 0, 0.0
    for term, share in shares.items():
        reached += share
        cells = min(width, round(reached * width)) - done
        text.append(_LETTERS[term] * max(0, cells), style=_STYLES[term])
        done += max(0, cells)
    text.append(_REST * (width - done), style="dim")
    return text


def legend() -> Text:
    """What the letters mean."""
    text = Text()
    for term in TERM_KEYS:
        text.append(_LETTERS[term], style=_STYLES[term])
        text.append(f" {TERM_LABELS[term]} ")
    text.append(f"{_REST} rest", style="dim")
    return text
