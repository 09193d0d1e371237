"""What is compared: `step`, `rows=M`, or with several starts `step,start=S` and `rows=M,start=S`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"(?:step|rows=(\d+))(?:,start=(\d+))?\Z")


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """`rows` is 1 for a step, M >= 2 for a pass; `start` is the position of the first row.

    `named_start` is true where a campaign asked for several starts, so that the name must say which.
    """

    rows: int
    start: int = 0
    named_start: bool = False

    @property
    def is_step(self) -> bool:
        return self.rows == 1

    @property
    def name(self) -> str:
        """The string used in records, `summarize` and tables."""
        base = "step" if self.is_step else f"rows={self.rows}"
        return f"{base},start={self.start}" if self.named_start else base

    @property
    def key(self) -> str:
        """The key under `summary.passes`: "5", or "5@512" with several starts."""
        return f"{self.rows}@{self.start}" if self.named_start else str(self.rows)


def parse_condition(name: str, start: int = 0) -> Condition:
    """The inverse of `Condition.name`; `start` is that of the campaign where the name has none.

    Raises ValueError for any other string.
    """
    found = _NAME.match(name)
    if found is None:
        raise ValueError(f"no condition: {name!r}")
    rows, named = found.groups()
    return Condition(int(rows or 1), int(named) if named is not None else start, named is not None)


def conditions(rows: list[int], starts: list[int]) -> list[Condition]:
    """Every condition of a campaign: for each start the step, then the passes in the order asked."""
    several = len(starts) > 1
    return [Condition(m, s, several) for s in starts for m in (1, *rows)]
