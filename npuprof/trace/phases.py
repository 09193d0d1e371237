"""Jobs to phases: durations a launch, and a partition of a pass's device wait in which each instant counts once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from npuprof.trace.jobs import Job

PHASES = ("queue", "submit", "device", "complete", "wake")
UNSEEN = "unseen"

Window = tuple[int, int]


def stages(job: Job) -> list[tuple[str, int, int]]:
    """(phase, from ns, to ns) of a job in order; one whose border is missing is not there.

    queue: received to run; submit: run to doorbell; device: doorbell to interrupt, firmware and array together; complete:
    interrupt to completion; wake: completion to user.
    """
    ends = (job.received, job.run, job.doorbell, job.irq, job.complete, job.wake)
    return [
        (name, a, b)
        for name, a, b in zip(PHASES, ends, ends[1:], strict=False)
        if a is not None and b is not None and a < b
    ]


@dataclass(frozen=True)
class PassPhases:
    """ms. The phases and `unseen` sum to the device wait; `before_wait_ms`: a launch was under way outside of it."""

    device_wait_ms: float
    phases: dict[str, float]
    before_wait_ms: float


def partition(jobs: Sequence[Job], begin: int, end: int, waits: Sequence[Window]) -> PassPhases:
    """One pass from `begin` to `end` ns, whose device wait is `waits`, in order and apart.

    An instant counts under `device` if any launch is there, else under the phase of the earliest open launch, else unseen.
    """
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].first)
    spans = [(rank, name, a, b) for rank, i in enumerate(order) for name, a, b in stages(jobs[i])]
    inside = dict.fromkeys((*PHASES, UNSEEN), 0)
    outside = 0
    for a, b, waiting in _pieces(begin, end, waits):
        for name, length in _segments(spans, a, b):
            if waiting:
                inside[name] += length
            elif name != UNSEEN:
                outside += length
    total = sum(b - a for a, b in waits)
    return PassPhases(total / 1e6, {f"{n}_ms": v / 1e6 for n, v in inside.items()}, outside / 1e6)


def _pieces(begin: int, end: int, waits: Sequence[Window]) -> list[tuple[int, int, bool]]:
    """The pass in order: what is wait, and what is not."""
    pieces = []
    at = begin
    for a, b in waits:
        if a > at:
            pieces.append((at, a, False))
        pieces.append((a, b, True))
        at = max(at, b)
    if end > at:
        pieces.append((at, end, False))
    return pieces


def _segments(spans: Sequence[tuple[int, str, int, int]], begin: int, end: int) -> list[tuple[str, int]]:
    """The piece from begin to end cut at every border in it: (phase, ns) each."""
    here = [s for s in spans if s[2] < end and s[3] > begin]
    borders = sorted({begin, end, *(t for s in here for t in s[2:] if begin < t < end)})
    opened = sorted(here, key=lambda s: s[2])
    active: list[tuple[int, str, int, int]] = []
    found = []
    n = 0
    for a, b in pairwise(borders):
        while n < len(opened) and opened[n][2] <= a:
            active.append(opened[n])
            n += 1
        active = [s for s in active if s[3] > a]
        on_device = any(s[1] == "device" for s in active)
        found.append(("device" if on_device else min(active)[1] if active else UNSEEN, b - a))
    return found
