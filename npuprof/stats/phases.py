"""What a tracing campaign's events say against its numbers."""

from __future__ import annotations

from typing import Any

from npuprof.model.record import Reason


def phases_reasons(phases: dict[str, Any] | None) -> list[Reason]:
    """A timeout taints the window: on kernels 6.14 to 6.18 this event is its only trace anywhere. Lost events cost phases."""
    if phases is None:
        return []
    found = []
    if phases["timedout"]:
        text = f"the driver timed {phases['timedout']} jobs out"
        found.append(Reason(code="job_timedout", text=text, affects="all"))
    if phases["lost"]:
        text = f"{phases['lost']} driver events were lost: phases of some passes are too short"
        found.append(Reason(code="trace_events_lost", text=text, affects="absolute"))
    return found
