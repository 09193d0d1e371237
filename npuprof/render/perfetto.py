"""Passes, launches, phases and kernel events on one time axis: the Trace Event Format, which Perfetto loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from npuprof.model.passes import TERM_KEYS, TERM_LABELS, Pass
from npuprof.model.record import Record

_PASSES, _TERMS, _LAUNCHES, _DRIVER = 1, 2, 3, 4
_PROCESS = 1


def perfetto(record: Record, jobs: Iterable[tuple[str, list[tuple[str, int, int]]]]) -> dict[str, Any]:
    """`jobs`: a name and its stages (phase, from ns, to ns) each. Times in the file are microseconds."""
    label = f"{record.target.device}{' [simulated]' if record.target.simulated else ''}"
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": f"npuprof {record.id}: {label}"}},
        *(
            {"ph": "M", "pid": _PROCESS, "tid": tid, "name": "thread_name", "args": {"name": name}}
            for tid, name in (
                (_PASSES, "passes"),
                (_TERMS, "terms"),
                (_LAUNCHES, "launches"),
                (_DRIVER, "driver phases"),
            )
        ),
    ]
    for p in record.passes:
        events += _pass(p)
    for name, stages in jobs:
        for phase, begin, end in stages:
            events.append(_slice(_DRIVER, phase, begin, end, {"launch": name}))
    return {
        "displayTimeUnit": "ms",
        "otherData": {"run": record.id, "target": label, "trusted": str(record.trust.trusted)},
        "traceEvents": events,
    }


def _slice(tid: int, name: str, begin: int, end: int, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": _PROCESS,
        "tid": tid,
        "name": name,
        "ts": begin / 1e3,
        "dur": (end - begin) / 1e3,
        "args": args,
    }


def _pass(p: Pass) -> Iterator[dict[str, Any]]:
    end = p.at_ns + round(p.wall_ms * 1e6)
    args = {"seq": p.seq, "phase": p.phase, "round": p.round, "void_reason": p.void_reason}
    yield _slice(_PASSES, p.condition, p.at_ns, end, args)
    stamps = p.extra.get("launch_stamps_ns")
    for s in stamps or []:
        yield _slice(_LAUNCHES, f"{s[0]} submit", int(s[1]), int(s[4]), {})
        yield _slice(_LAUNCHES, f"{s[0]} wait", int(s[4]), int(s[5]), {})
    if stamps:
        return
    # Without stamps a term's place in the pass is not known, only its length: laid out in the order of the line.
    at = p.at_ns
    for key in TERM_KEYS:
        value = getattr(p.terms, key)
        if value:
            yield _slice(
                _TERMS, TERM_LABELS[key], at, at + round(value * 1e6), {"order": "as in the line, not as measured"}
            )
            at += round(value * 1e6)
