"""The record of a campaign whose worker was killed: what its spool holds, not trusted, and with the reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from npuprof.model.condition import conditions
from npuprof.model.events import PassDone, Started
from npuprof.model.instants import rfc3339
from npuprof.model.record import Ending, Parity, Record, Snapshots, Ticket
from npuprof.model.wire import from_wire
from npuprof.stats.derive import derive


def aborted_record(lines: Sequence[dict[str, Any]], user: str, detail: str) -> Record | None:
    """None where the campaign had not begun to measure. The ticket's instants are not known any more."""
    events = [e for line in lines if (e := from_wire(line)) is not None]
    started = next((e for e in events if isinstance(e, Started)), None)
    if started is None:
        return None
    passes = [e.measured for e in events if isinstance(e, PassDone)]
    rounds = max((p.round or 0 for p in passes), default=0)
    ending = Ending(how="failed", rounds_planned=started.rounds, rounds_done=max(0, rounds - 1), detail=detail)
    parity = Parity(checked=False, agreed=False, ties=0, detail="the worker was killed")
    seed = started.request.seed or 0
    names = conditions(started.request.rows, started.request.start)
    assert names
    summary, trust = derive(passes, started.request.start, seed, parity, ending, started.target, Snapshots())
    now = rfc3339(time.time())
    return Record(
        id=started.run_id,
        created=now,
        request=started.request,
        seed=seed,
        target=started.target,
        provenance={"requested_by": user, "host": {}, "npuprof": None, "aborted": detail},
        ticket=Ticket(
            device=str(started.request.device),
            asked=now,
            granted=now,
            released=now,
            waited_s=0.0,
            reason=started.request.reason,
            enforced=False,
            through="not known: the worker that held it was killed",
        ),
        snapshots=Snapshots(),
        errors=None,
        passes=passes,
        summary=summary,
        parity=parity,
        trust=trust,
        ending=ending,
    )
