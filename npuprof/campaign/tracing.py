"""A tracing campaign: rounds with the driver's events recorded and without, and what the events say of the device wait."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from collectors.tracepoints import NoTracing, Tracepoints
from npuprof.campaign.voiding import Window
from npuprof.errors import DeviceProblem
from npuprof.model.passes import Pass
from npuprof.stats.order import median, median_interval
from npuprof.stats.paired import differences, ratio_of
from npuprof.trace.analyse import summary
from npuprof.trace.events import TraceText
from npuprof.trace.jobs import Job, Joiner
from npuprof.trace.passes import PassJoiner

TRACED = "traced"
_BUSY_TOLERANCE = 0.05


class Tracing:
    """Around a campaign; `passes` run in a round. DeviceProblem where tracepoints cannot be read."""

    def __init__(self, file: Path, passes: int) -> None:
        self.file = file
        self._out: IO[bytes] = file.open("wb")
        self._points = Tracepoints(self._out)
        try:
            self._points.open(passes)
        except (NoTracing, OSError) as e:
            self._out.close()
            file.unlink(missing_ok=True)
            self._points.close()
            raise DeviceProblem(f"--phases: {e}") from None

    def watch(self, pids: Collection[int]) -> None:
        """The timed process's wake-ups; of several none, since only one thread can be filtered for."""
        if len(pids) == 1:
            self._points.watch_thread(next(iter(pids)))

    def switch(self, *, on: bool) -> None:
        """Between rounds. What was recorded is drained when it is switched off."""
        if on:
            self._points.on()
        else:
            self._points.off()
            self._points.drain()

    def close(self) -> dict[str, int]:
        """Ends it; events lost by CPU."""
        try:
            self._points.off()
            self._points.drain()
            return self._points.lost()
        finally:
            self._points.close()
            self._out.close()


def mark(p: Pass) -> Pass:
    """A pass that ran while events were recorded: never in one statistic with the others."""
    return replace(p, extra={**p.extra, TRACED: True})


def phases_of(
    file: Path, passes: Sequence[Pass], pids: Collection[int], lost: dict[str, int]
) -> tuple[dict[str, Any], list[Window]]:
    """The record's `phases`, and the stretches of timed-out jobs, in which passes are void.

    DeviceProblem where passes ran and not one event came: an empty table would look like an answer.
    """
    text, joiner = TraceText(), Joiner()
    jobs: list[Job] = []
    with file.open("rb") as stream:
        for events in text.read(stream):
            joiner.feed(events)
            jobs += joiner.jobs()
    jobs += joiner.end()
    traced = [p for p in passes if p.extra.get(TRACED) and p.phase == "measure"]
    if traced and not jobs:
        raise DeviceProblem(
            f"{len(traced)} passes ran and no driver event came: did they run on this machine's NPU? {text.events} events "
            f"of other kinds are in {file}"
        )
    found = PassJoiner(jobs, pids)
    entries = []
    for p in traced:
        outcome = found.of(p)
        if outcome is None:
            continue
        phases, here = outcome
        entry = {
            "seq": p.seq,
            "condition": p.condition,
            "device_wait_ms": phases.device_wait_ms,
            "phases": phases.phases,
            "before_wait_ms": phases.before_wait_ms,
            "launches": len(here),
        }
        if "busy_ms" in p.extra:
            entry["busy_ms"] = p.extra["busy_ms"]
        entries.append(entry)
    unjoined = dict(joiner.unjoined)
    left = len(jobs) - found.foreign - found.joined
    if left:
        unjoined["job outside of every traced pass"] = left
    if found.foreign:
        unjoined["job of another process"] = found.foreign
    data = summary(
        entries, found.launches.as_list(), text.events, unjoined, sum(lost.values()) + text.lost, joiner.timedout
    )
    data |= {"lost_by_cpu": lost, "by_condition": _by_condition(entries), "cost": _cost(passes), "busy": _busy(entries)}
    return data, _timed_out(jobs)


def _timed_out(jobs: Sequence[Job]) -> list[Window]:
    """The stretches in which the driver timed a job out: passes in them are void."""
    return [Window(j.first, j.last, f"the driver timed job {j.context} {j.seq} out") for j in jobs if j.timedout]


def _by_condition(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians with min, max and interval of each phase, ms, and their shares of the summed device wait."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(e["condition"] for e in entries):
        here = [e for e in entries if e["condition"] == name]
        total = sum(e["device_wait_ms"] for e in here)
        phases = {}
        for phase in here[0]["phases"]:
            values = [e["phases"][phase] for e in here]
            interval = median_interval(values)
            phases[phase] = {
                "median": median(values),
                "min": min(values),
                "max": max(values),
                "interval": None if interval is None else interval.model_dump(),
                "share": sum(values) / total if total else None,
            }
        found[name] = {
            "n": len(here),
            "device_wait_median_ms": median([e["device_wait_ms"] for e in here]),
            "before_wait_median_ms": median([e["before_wait_ms"] for e in here]),
            "phases": phases,
        }
    return found


def _cost(passes: Sequence[Pass]) -> dict[str, Any]:
    """What recording costs: traced over untraced passes, paired in the rounds, by condition."""
    found = {}
    measured = [p for p in passes if p.phase == "measure" and p.round is not None]
    for name in dict.fromkeys(p.condition for p in measured):
        series: list[dict[int, list[float]]] = []
        for traced in (True, False):
            by_round: dict[int, list[float]] = {}
            for p in measured:
                if p.condition == name and bool(p.extra.get(TRACED)) is traced:
                    by_round.setdefault(p.round or 0, []).append(p.wall_ms)
            series.append(by_round)
        ratio = ratio_of(differences(series[0], series[1]))
        if ratio is not None:
            found[name] = ratio.model_dump()
    return found


def _busy(entries: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """fdinfo's busy time over the same passes, beside `device`; a disagreement beyond 5 % is named."""
    both = [(e["busy_ms"], e["phases"]["device_ms"]) for e in entries if "busy_ms" in e]
    if not both:
        return None
    busy, device = sum(b for b, _ in both), sum(d for _, d in both)
    off = busy / device - 1 if device else None
    return {
        "busy_ms": busy,
        "device_ms": device,
        "disagreement": off,
        "named": off is not None and abs(off) > _BUSY_TOLERANCE,
    }
