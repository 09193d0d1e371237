"""What every collector is: one read-only source that answers with a Reading and never raises."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from npuprof.model.instants import rfc3339
from npuprof.model.record import Reading


@dataclass(frozen=True)
class Own:
    """The processes that do the timed work: the worker, or the measured server. Empty where they are not known."""

    pids: frozenset[int]


def live(reading: dict[str, Any], detail: str = "") -> Reading:
    return Reading(status="live", reading=reading, at=_now(), detail=detail)


def not_available(why: str) -> Reading:
    """`why` also says what would make it available."""
    return Reading(status="not_available", at=_now(), detail=why)


def not_applicable(why: str) -> Reading:
    return Reading(status="not_applicable", at=_now(), detail=why)


def stale(reading: dict[str, Any] | None, why: str) -> Reading:
    """The last reading that there was, and why there is no newer one."""
    return Reading(status="stale", reading=reading, at=_now(), detail=why)


def _now() -> str:
    return rfc3339(time.time())
