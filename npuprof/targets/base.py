"""The protocol of a target: anything that can run one decode step and one pass of M rows, and say what it is.

A target lives in the timed process. `prepare` may do as much work as it likes; between the two stamps of a Timing only
the step or pass itself may happen. See docs/targets.md for an example of 30 lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from npuprof.model.passes import NO_TERMS, Kind, Terms
from npuprof.model.record import TargetInfo


@dataclass(frozen=True, slots=True)
class Timing:
    """The raw stamps of one step or pass: CLOCK_MONOTONIC nanoseconds (`time.monotonic_ns()`) at its two ends.

    `terms` and `head_device_ms` are milliseconds inside those stamps. `void_reason` says that the device itself
    reported this pass as failed: it is kept and never counted. `kind` of a pass is `verify` (M rows after a cached
    prefix, logits for all) or `prefill`; `head_rows` is the number of rows that the LM head was computed for.
    """

    at_ns: int
    end_ns: int
    terms: Terms = NO_TERMS
    head_device_ms: float | None = None
    launches: int | None = None
    kind: Kind = "verify"
    head_rows: int | None = None
    line: str | None = None
    void_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def wall_ms(self) -> float:
        return (self.end_ns - self.at_ns) / 1e6


class Target(Protocol):
    """What a factory returns. Any exception from a method ends the campaign with what was measured so far."""

    def describe(self) -> TargetInfo:
        """What really runs, found on the running system. Called once, before anything is timed."""
        ...

    def prepare(self, rows: int, start: int) -> None:
        """Make the next `run_pass` (rows >= 2) or `run_step` (rows = 1) one from position `start`.

        Called before every step and pass, outside the timed region. ValueError if the target cannot do it.
        """
        ...

    def run_step(self) -> Timing:
        """One forward of one row that yields one token."""
        ...

    def run_pass(self) -> Timing:
        """One batched forward of the rows prepared, its results rejected afterwards: the state stays at `start`."""
        ...

    def close(self) -> None:
        """Frees what the target holds; called once, also after an error."""
        ...


@dataclass(frozen=True, slots=True)
class ParityOutcome:
    """Whether an M-row pass does what M steps do. `ties` counts rows that differ at a margin under the threshold."""

    agreed: bool
    ties: int = 0
    detail: str = ""


@runtime_checkable
class ChecksParity(Protocol):
    """A target that can compare a pass with single steps before it is timed."""

    def check_parity(self, rows: int, start: int) -> ParityOutcome:
        """Parity of M rows from `start`; not timed."""
        ...
