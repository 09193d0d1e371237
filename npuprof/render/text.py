"""Text from outside, made safe for a terminal; numbers, as they are printed everywhere."""

from __future__ import annotations

import unicodedata

_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text with everything that could steer a terminal shown as an escape: controls, direction marks, newlines."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNSAFE else c for c in text)


def ms(value: float | None, like: float | None = None) -> str:
    """Milliseconds with one decimal from 100 ms, two from 10, three below; a dash for none.

    `like` is the value whose size decides, so that figures of one line have the same decimals.
    """
    if value is None:
        return "–"
    size = abs(value if like is None else like)
    return f"{value:.{1 if size >= 100 else 2 if size >= 10 else 3}f}"


def digits3(value: float) -> str:
    """A ratio or rate: three decimals, trailing zeros dropped."""
    text = f"{value:.3f}".rstrip("0")
    return text.rstrip(".")
