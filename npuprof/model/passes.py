"""A pass, its terms, and how its wall time is accounted for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["warmup", "measure", "void", "canary"]
Kind = Literal["step", "verify", "prefill"]

TERM_KEYS = (
    "embed_ms",
    "pack_ms",
    "quantise_launch_ms",
    "device_wait_ms",
    "readback_ms",
    "layers_host_ms",
    "lm_head_ms",
)
TERM_LABELS = dict(
    zip(TERM_KEYS, ("embed", "pack", "quant+launch", "device wait", "readback", "host", "LM head"), strict=True)
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The seven named shares of a pass's wall time, milliseconds; None where the source does not give one."""

    embed_ms: float | None = None
    pack_ms: float | None = None
    quantise_launch_ms: float | None = None
    device_wait_ms: float | None = None
    readback_ms: float | None = None
    layers_host_ms: float | None = None
    lm_head_ms: float | None = None

    def values(self) -> tuple[float | None, ...]:
        """The seven in the order of TERM_KEYS."""
        return (
            self.embed_ms,
            self.pack_ms,
            self.quantise_launch_ms,
            self.device_wait_ms,
            self.readback_ms,
            self.layers_host_ms,
            self.lm_head_ms,
        )

    def total(self) -> float | None:
        """The sum of the terms that are given, ms; None if none is."""
        given = [v for v in self.values() if v is not None]
        return sum(given) if given else None


NO_TERMS = Terms()


def rest_of(wall_ms: float, terms: Terms) -> float | None:
    """wall - sum of terms, ms, to the nanosecond: what no term accounts for. None where no term was given."""
    total = terms.total()
    return None if total is None else round(wall_ms - total, 6)


@dataclass(frozen=True, slots=True)
class PassLine:
    """One pass as a server's log line states it; times in ms.

    `consistent` is false where sub-sums or the wall cannot be reconciled within the half-units of the digits printed.
    """

    rows: int
    start: int
    wall_ms: float
    terms: Terms
    head_device_ms: float | None
    rest_ms: float | None
    launches: int | None
    line_no: int
    extra: dict[str, Any]
    consistent: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """One step (`rows` 1) or pass of a campaign, as kept in the record. `at_ns` is CLOCK_MONOTONIC at its start."""

    seq: int
    phase: Phase
    condition: str
    kind: Kind
    rows: int
    start: int
    head_rows: int | None
    round: int | None
    at_ns: int
    wall_ms: float
    terms: Terms = NO_TERMS
    head_device_ms: float | None = None
    rest_ms: float | None = None
    launches: int | None = None
    line: str | None = None
    void_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_timed(self) -> bool:
        """Measured, and not while the driver's events were recorded: those are never in one statistic with the others."""
        return self.phase == "measure" and not self.extra.get("traced")
