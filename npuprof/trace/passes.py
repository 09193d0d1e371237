"""Jobs to passes, by time and process: a pass's phases, and its launches by the names that its stamps give."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Any

from npuprof.model.passes import Pass
from npuprof.trace.analyse import Launches, name_of
from npuprof.trace.jobs import Job
from npuprof.trace.phases import PassPhases, Window, partition

STAMPS = "launch_stamps_ns"
"""Name, then begin, quantised, packed, submitted, waited and read, ns each, a launch."""
_SUBMITTED, _WAITED, _READ = 4, 5, 6


def waits_of(p: Pass) -> list[Window]:
    """When a pass waited for the device: each launch's wait, by its stamps; without stamps in one piece, behind the terms
    that come before it. Empty where its device wait is not known."""
    stamps = p.extra.get(STAMPS)
    if stamps:
        return [(int(s[_SUBMITTED]), int(s[_WAITED])) for s in stamps[: p.launches or len(stamps)]]
    t = p.terms
    if t.device_wait_ms is None:
        return []
    before = sum(v or 0.0 for v in (t.embed_ms, t.pack_ms, t.quantise_launch_ms))
    begin = p.at_ns + round(before * 1e6)
    return [(begin, begin + round(t.device_wait_ms * 1e6))]


class PassJoiner:
    """`pids` are the processes of the timed work: jobs of others belong to no pass."""

    def __init__(self, jobs: Sequence[Job], pids: Collection[int]) -> None:
        mine = [j for j in jobs if j.pid is None or j.pid in pids]
        self.foreign = len(jobs) - len(mine)
        self._jobs = sorted(mine, key=lambda j: j.first)
        self._begins = [j.first for j in self._jobs]
        self.joined = 0
        self.launches = Launches()

    def of(self, p: Pass) -> tuple[PassPhases, list[Job]] | None:
        """None for a pass whose device wait is not known."""
        waits = waits_of(p)
        if not waits:
            return None
        end = p.at_ns + round(p.wall_ms * 1e6)
        here = self._jobs[bisect_left(self._begins, p.at_ns) : bisect_left(self._begins, end)]
        self.joined += len(here)
        stamps = list(p.extra.get(STAMPS) or [])
        for job in here:
            self.launches.add(_named(job, stamps), job)
        return partition(here, p.at_ns, end, waits), here


def _named(job: Job, stamps: Sequence[Sequence[Any]]) -> str:
    """The launch in whose stamps the job's first instant lies."""
    at = bisect_left([s[_READ] for s in stamps], job.first)
    if at < len(stamps) and stamps[at][1] <= job.first:
        return str(stamps[at][0])
    return name_of(job)
