"""Passes voided after the fact: evidence that something was wrong arrives when they are long over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from npuprof.model.passes import Pass
from npuprof.model.record import Errors


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of CLOCK_MONOTONIC, nanoseconds, both ends included, in which passes must not count, and why."""

    from_ns: int
    to_ns: int
    reason: str


_MARGIN_S = 1.0


def incident_windows(errors: Errors | None) -> list[Window]:
    """The stretches of a campaign's kernel incidents, a second wider on both sides; those without stamps have none."""
    windows = []
    for incident in errors.incidents if errors else ():
        first, last = incident.get("first_stamp_s"), incident.get("last_stamp_s")
        if first is not None and last is not None:
            reason = f"kernel incident: {incident['text']}"
            windows.append(Window(int((first - _MARGIN_S) * 1e9), int((last + _MARGIN_S) * 1e9), reason))
    return windows


def void_passes(passes: Sequence[Pass], windows: Iterable[Window]) -> list[Pass]:
    """The passes, those that overlap a window marked void with its reason; warm-ups and canaries stay what they are."""
    found = list(passes)
    for w in windows:
        for i, p in enumerate(found):
            ends = p.at_ns + int(p.wall_ms * 1e6)
            if p.phase == "measure" and p.at_ns <= w.to_ns and ends >= w.from_ns:
                found[i] = replace(p, phase="void", void_reason=w.reason)
    return found
