"""Passes voided after the fact: evidence that something was wrong arrives when they are long over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from npuprof.model.passes import Pass


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of CLOCK_MONOTONIC, nanoseconds, both ends included, in which passes must not count, and why."""

    from_ns: int
    to_ns: int
    reason: str


def void_passes(passes: Sequence[Pass], windows: Iterable[Window]) -> list[Pass]:
    """The passes, those that overlap a window marked void with its reason; warm-ups and canaries stay what they are."""
    found = list(passes)
    for w in windows:
        for i, p in enumerate(found):
            ends = p.at_ns + int(p.wall_ms * 1e6)
            if p.phase == "measure" and p.at_ns <= w.to_ns and ends >= w.from_ns:
                found[i] = replace(p, phase="void", void_reason=w.reason)
    return found
