"""What a running campaign tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from npuprof.model.passes import Pass
from npuprof.model.record import Record, TargetInfo
from npuprof.model.request import Request


@dataclass(frozen=True, slots=True)
class Waiting:
    """The ticket is not ours yet: who holds the device, and how many are ahead in all."""

    device: str
    pid: int
    user: str
    since: str
    reason: str
    ahead: int


@dataclass(frozen=True, slots=True)
class Started:
    """The ticket is granted and the target says what it is. `conditions` are the names in the order of the request."""

    run_id: str
    request: Request
    target: TargetInfo
    conditions: tuple[str, ...]
    rounds: int


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence about the campaign's course: parity, a plan, a cliff being bisected, an interrupt."""

    text: str


@dataclass(frozen=True, slots=True)
class RoundsPlanned:
    """The campaign will be this many rounds long; conditions may have been added."""

    rounds: int
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PassDone:
    """A step or pass ended; `measured` says how it counts."""

    measured: Pass


@dataclass(frozen=True, slots=True)
class Finished:
    record: Record


Event = Waiting | Started | Note | RoundsPlanned | PassDone | Finished
