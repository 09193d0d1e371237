"""A saved trace as a whole: phases a launch, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from npuprof.stats.order import median, median_interval
from npuprof.trace.events import TraceText
from npuprof.trace.jobs import Job, Joiner
from npuprof.trace.phases import PHASES

_OPCODES = {
    "0xc": "EXECUTE_BUFFER_CF",
    "0x10": "EXEC_DPU",
    "0x12": "CHAIN_EXEC_BUFFER_CF",
    "0x13": "CHAIN_EXEC_DPU",
    "0x17": "EXEC_NPU",
    "0x18": "CHAIN_EXEC_NPU",
}
_KEYS = tuple(f"{p}_ms" for p in PHASES)
_SAMPLES = 20_000
"""Durations kept a launch and phase; of more, every second one, then every fourth and so on."""


class Series:
    """Durations of one phase of one kind of launch: all of them up to a limit, evenly thinned beyond."""

    def __init__(self) -> None:
        self.n = 0
        self.low = float("inf")
        self.high = float("-inf")
        self.values: list[float] = []
        self._every = 1

    def add(self, value: float) -> None:
        if value < self.low:
            self.low = value
        if value > self.high:
            self.high = value
        if self.n % self._every == 0:
            self.values.append(value)
            if len(self.values) > _SAMPLES:
                self.values = self.values[::2]
                self._every *= 2
        self.n += 1

    def as_dict(self) -> dict[str, Any] | None:
        """Median with min, max and its interval, ms; None without a value."""
        if not self.n:
            return None
        interval = median_interval(self.values)
        return {
            "n": self.n,
            "median": median(self.values),
            "min": self.low,
            "max": self.high,
            "interval": None if interval is None else interval.model_dump(),
        }


class Launches:
    """Phases by kind of launch."""

    def __init__(self) -> None:
        self._series: dict[str, dict[str, Series]] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, job: Job) -> None:
        series = self._series.get(name)
        if series is None:
            series = self._series[name] = {key: Series() for key in _KEYS}
            self._counts[name] = 0
        self._counts[name] += 1
        before = job.received
        for key, at in zip(_KEYS, (job.run, job.doorbell, job.irq, job.complete, job.wake), strict=True):
            if before is not None and at is not None and at >= before:
                series[key].add((at - before) / 1e6)
            before = at

    def as_list(self) -> list[dict[str, Any]]:
        """`phases` are the medians, ms, `spread` what is around them; null where no launch had both ends of a phase."""
        found = []
        for name, series in sorted(self._series.items()):
            spread = {p: s.as_dict() for p, s in series.items()}
            medians = {p: None if s is None else s["median"] for p, s in spread.items()}
            found.append({"name": name, "n": self._counts[name], "phases": medians, "spread": spread})
        return found


def name_of(job: Job) -> str:
    """By its opcode, where no plan names it."""
    return _OPCODES.get(job.opcode or "", f"opcode {job.opcode}" if job.opcode else "opcode not seen")


def analyse(stream: BinaryIO) -> dict[str, Any]:
    """`trace --json`: launches, events, what could not be joined, what was lost, timeouts. No pass stamps are in a trace."""
    text, joiner, launches = TraceText(), Joiner(), Launches()
    for events in text.read(stream):
        joiner.feed(events)
        for job in joiner.jobs():
            launches.add(name_of(job), job)
    for job in joiner.end():
        launches.add(name_of(job), job)
    return summary([], launches.as_list(), text.events, joiner.unjoined, text.lost, joiner.timedout)


def summary(
    passes: Sequence[Mapping[str, Any]],
    launches: Sequence[Mapping[str, Any]],
    events: int,
    unjoined: Mapping[str, int],
    lost: int,
    timedout: int,
) -> dict[str, Any]:
    return {
        "passes": list(passes),
        "launches": list(launches),
        "events": events,
        "unjoined": sum(unjoined.values()),
        "unjoined_by_kind": dict(unjoined),
        "lost": lost,
        "timedout": timedout,
    }
