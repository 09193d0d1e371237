"""In which order conditions are visited: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from npuprof.model.condition import Condition
from npuprof.model.passes import Phase

_CANARY_STEPS = 3


@dataclass(frozen=True, slots=True)
class Visit:
    """`samples` steps or passes of one condition, one after the other."""

    condition: str
    rows: int
    start: int
    phase: Phase
    round: int | None
    samples: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def warm_up(conditions: Sequence[Condition], count: int) -> list[Visit]:
    """Each condition's own warm-up: shapes compile and allocate separately."""
    return [_visit(c, "warmup", None, count) for c in conditions] if count else []


def canary(step: Condition) -> list[Visit]:
    """Three steps whose median is compared only with the other canaries of its campaign.

    Three, since the median of one step against another's exceeds four times the noise in 1 to 3 % of clean campaigns.
    """
    return [_visit(step, "canary", None, _CANARY_STEPS)]


def mirrored_round(conditions: Sequence[Condition], number: int, steps: int, random: Random) -> list[Visit]:
    """Every condition once in shuffled order, then in reverse: each pair of conditions forms an ABBA block."""
    order = list(conditions)
    random.shuffle(order)
    return [_visit(c, "measure", number, steps if c.is_step else 1) for c in [*order, *reversed(order)]]


def _visit(c: Condition, phase: Phase, number: int | None, samples: int) -> Visit:
    return Visit(c.name, c.rows, c.start, phase, number, samples)


def middle_of(low: int, high: int) -> int | None:
    """The M between the two sides of a cliff to measure next; None where they are adjacent."""
    return (low + high) // 2 if high - low > 1 else None
