"""Records of a fake device, derived by the real code from made-up passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from npuprof.model.condition import Condition
from npuprof.model.passes import Pass, Terms, rest_of
from npuprof.model.record import Ending, Parity, Record, Snapshots, TargetInfo, Ticket
from npuprof.model.request import Request
from npuprof.stats.derive import derive


def terms_of(wall: float) -> Terms:
    """All but 0.05 ms of the wall, the device's wait taking what the others leave."""
    return Terms(0.5, 0.1, 1.0, wall - 3.95, 0.4, 1.2, 0.7)


ID = "20261110T150211Z-abc123"


def make_passes(walls: Mapping[Condition, Sequence[Sequence[float]]]) -> list[Pass]:
    """`walls[condition][round]` are that round's wall times, ms; order within a round is that of the mapping."""
    passes: list[Pass] = []
    for b in range(max(map(len, walls.values()))):
        for c, rounds in walls.items():
            for wall in rounds[b] if b < len(rounds) else ():
                passes.append(
                    Pass(
                        seq=len(passes),
                        phase="measure",
                        condition=c.name,
                        kind="step" if c.is_step else "verify",
                        rows=c.rows,
                        start=c.start,
                        head_rows=c.rows,
                        round=b + 1,
                        at_ns=10**9 * len(passes),
                        wall_ms=wall,
                        terms=terms_of(wall),
                        head_device_ms=0.5,
                        rest_ms=rest_of(wall, terms_of(wall)),
                        launches=112,
                    )
                )
    return passes


def make_record(
    passes: Sequence[Pass],
    *,
    rows: Sequence[int] = (5, 16, 17),
    starts: Sequence[int] = (0,),
    parity: Parity | None = None,
    ending: Ending | None = None,
    **more: Any,
) -> Record:
    agreed = parity or Parity(checked=False, agreed=False, ties=0, detail="the fake has no way to check it")
    end = ending or Ending(how="done", rounds_planned=6, rounds_done=6)
    snapshots = more.get("snapshots", Snapshots())
    target = more.get("target", TargetInfo(kind="fake", device="fake device", backend="fake", simulated=True))
    summary, trust = derive(passes, starts, 1, agreed, end, target, snapshots)
    values: dict[str, Any] = {
        "id": ID,
        "created": "2026-11-10T15:02:11.000Z",
        "request": Request(device="reference", rows=list(rows), start=list(starts)),
        "seed": 1,
        "target": TargetInfo(kind="fake", device="fake device", backend="fake", simulated=True),
        "provenance": {
            "npuprof": "0.1.0",
            "host": {"cpu": "fake CPU", "cpus": 2, "kernel": "6.18", "governor": None, "load": [0.1, 0.2, 0.3]},
        },
        "ticket": Ticket(
            device="reference",
            asked="2026-11-10T15:02:11.000Z",
            granted="2026-11-10T15:02:11.000Z",
            released="2026-11-10T15:03:11.000Z",
            waited_s=0.0,
            reason="",
            enforced=False,
            through="npuprof",
        ),
        "snapshots": Snapshots(),
        "errors": None,
        "passes": list(passes),
        "summary": summary,
        "parity": agreed,
        "trust": trust,
        "ending": end,
    }
    return Record(**{**values, **more})


def usual_walls(rounds: int = 6) -> dict[Condition, list[list[float]]]:
    """A quiet machine with the cliff at 16|17: step 10 ms, 5 rows 10.3, 16 rows 10.5, 17 rows 41."""
    jitter = [0.00, 0.03, -0.02, 0.01, -0.03, 0.02, 0.015, -0.01]
    centres = {1: 10.0, 5: 10.3, 16: 10.5, 17: 41.0}
    return {
        Condition(m): [[c + jitter[(b + m) % 8], c + jitter[(b + m + 3) % 8]] for b in range(rounds)]
        for m, c in centres.items()
    }


def usual_record(**more: Any) -> Record:
    return make_record(make_passes(usual_walls()), **more)


def voided(passes: Sequence[Pass], seqs: set[int], reason: str = "foreign context") -> list[Pass]:
    return [replace(p, phase="void", void_reason=reason) if p.seq in seqs else p for p in passes]
