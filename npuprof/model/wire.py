"""Events as JSON lines: what a worker writes, the daemon hands on, and `watch` reads."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from npuprof.model.events import Event, Note, PassDone, RoundsPlanned, Started, Waiting

_KINDS: dict[str, TypeAdapter[Any]] = {
    "waiting": TypeAdapter(Waiting),
    "started": TypeAdapter(Started),
    "note": TypeAdapter(Note),
    "planned": TypeAdapter(RoundsPlanned),
    "pass": TypeAdapter(PassDone),
}
_NAMES: dict[type, str] = {
    Waiting: "waiting",
    Started: "started",
    Note: "note",
    RoundsPlanned: "planned",
    PassDone: "pass",
}


def to_wire(event: Event) -> dict[str, Any] | None:
    """`{"event": kind, "data": {...}}`; None for the end of a campaign, which its record tells."""
    kind = _NAMES.get(type(event))
    if kind is None:
        return None
    return {"event": kind, "data": _KINDS[kind].dump_python(event, mode="json")}


def from_wire(line: dict[str, Any]) -> Event | None:
    """The inverse; None for a line of another kind, or one that is no whole event."""
    adapter = _KINDS.get(str(line.get("event")))
    if adapter is None:
        return None
    try:
        event: Event = adapter.validate_python(line.get("data"))
    except ValidationError:
        return None
    return event


def parse_line(line: bytes) -> dict[str, Any] | None:
    """A whole line as an object; None for half a line."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) and isinstance(data.get("event"), str) else None
