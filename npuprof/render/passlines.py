"""Pass lines as a table that is printed as it grows, so that a log of any length needs no memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TextIO

from npuprof.model.passes import TERM_KEYS, TERM_LABELS, PassLine
from npuprof.render.text import printable

_HEADS = ("line", "M", "start", "wall", *TERM_LABELS.values(), "rest", "head dev", "n")
_WIDTHS = tuple(max(len(h), w) for h, w in zip(_HEADS, (6, 3, 5, 8, *[7] * len(TERM_KEYS), 6, 8, 4), strict=True))


class BadLine(Protocol):
    """A line that could not be read, as `npuprof.lines.Unreadable` has it."""

    @property
    def line_no(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def reason(self) -> str: ...


class PassLineTable:
    """Milliseconds as the log printed them; what a line does not give is a dash."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = False

    def add(self, p: PassLine) -> None:
        if not self._begun:
            self._begun = True
            self._write([*_HEADS])
        figures = [p.line_no, p.rows, p.start, p.wall_ms, *p.terms.values(), p.rest_ms, p.head_device_ms, p.launches]
        note = "" if p.consistent else "  does not add up"
        extra = "".join(f"  {printable(f'{k}={v}')}" for k, v in p.extra.items())
        self._write(["–" if f is None else f"{f:g}" if isinstance(f, float) else str(f) for f in figures], note + extra)

    def end(self, passes: int, bad: Sequence[BadLine], unreadable: int) -> None:
        for b in bad:
            self._out.write(f"line {b.line_no}, column {b.column}: {printable(b.reason)}\n")
        if unreadable > len(bad):
            self._out.write(f"and {unreadable - len(bad)} more unreadable lines\n")
        self._out.write(f"{passes} passes, {unreadable} unreadable; times in ms\n")

    def _write(self, cells: Sequence[str], tail: str = "") -> None:
        row = " ".join(f"{c:>{w}}" for c, w in zip(cells, _WIDTHS, strict=True))
        self._out.write(f"{row}{tail}\n")
