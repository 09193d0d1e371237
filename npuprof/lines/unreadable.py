"""A line that looks like a pass line and cannot be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`column` counts characters from 1, in the line as it stands in the log (escape sequences included)."""

    line_no: int
    column: int
    reason: str


class Broken(Exception):
    """Raised while a line is read, at `at` characters from its start."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason
