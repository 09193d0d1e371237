"""A campaign's events for one client: the state so far, then each pass, then the end. A client never slows the campaign."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from npuprof.daemon.queue import ENDED, Entry
from npuprof.daemon.supervise import Following, Supervisor, heard

_BEHIND = 200
"""Events that a client may lag behind; beyond, it gets the newest state in one piece."""
_QUIET_S = 15.0


async def stream(supervisor: Supervisor, entry: Entry, after: int) -> AsyncIterator[str]:
    """Server-sent events from number `after` on. Comments keep an idle connection open."""
    told: tuple[str, int | None] | None = None
    while True:
        moved = supervisor.moved.next
        now = supervisor.queue.get(entry.id)
        if now is None or now.state in ENDED:
            yield _end(now or entry, after)
            return
        following = supervisor.current
        if following is not None and following.entry.id == entry.id:
            async for text in _followed(following, after):
                yield text
                after = 0
            entry = now
            continue
        place = (now.state, supervisor.queue.position(now))
        if place != told:
            told = place
            yield _event("state", 0, {"state": now.state, "position": place[1], "reset": False, "events": []})
        else:
            yield ": still queued\n\n"
        await heard(moved, _QUIET_S)


async def _followed(following: Following, after: int) -> AsyncIterator[str]:
    """Until the campaign is over: first what there is in one state, then each event as it comes."""
    at = after if 0 < after <= len(following.lines) else 0
    first = at == 0
    while True:
        changed = following.changed.next
        lines = following.lines
        if first or len(lines) - at > _BEHIND:
            first = False
            at = len(lines)
            yield _event("state", at, {"state": "running", "position": 0, "reset": True, "events": lines[:at]})
        elif at < len(lines):
            line = lines[at]
            at += 1
            if line["event"] == "pass":
                yield _event("pass", at, line["data"]["measured"])
            else:
                yield _event("state", at, {"state": "running", "position": 0, "reset": False, "events": [line]})
        elif following.over:
            return
        elif not await heard(changed, _QUIET_S):
            yield ": still running\n\n"


def _end(entry: Entry, after: int) -> str:
    data = {"state": entry.state, "exit_code": entry.exit_code, "detail": entry.detail, "id": entry.id}
    return _event("end", after + 1, data)


def _event(kind: str, number: int, data: dict[str, Any]) -> str:
    return f"event: {kind}\nid: {number}\ndata: {json.dumps(data)}\n\n"
