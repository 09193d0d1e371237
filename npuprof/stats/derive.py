"""Everything in a record that is not raw, from what is: used when it is made and again whenever it is doubted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isclose
from typing import Any

from npuprof.model.passes import Pass
from npuprof.model.record import Ending, Parity, Record, Snapshots, Summary, TargetInfo, Trust
from npuprof.stats.phases import phases_reasons
from npuprof.stats.serve import serve_reasons
from npuprof.stats.summarise import stability_of, summarise
from npuprof.stats.trust import campaign_reasons, trust_of
from npuprof.stats.window import window_reasons


def derive(
    passes: Sequence[Pass],
    starts: Sequence[int],
    seed: int,
    parity: Parity,
    ending: Ending,
    target: TargetInfo,
    snapshots: Snapshots,
    phases: dict[str, Any] | None = None,
) -> tuple[Summary, Trust]:
    """Summary and trust of a campaign; the window's evidence counts for a target on an NPU."""
    series = stability_of(passes, seed)
    reasons = campaign_reasons(passes, parity, ending, series)
    reasons += serve_reasons(target, passes)
    reasons += phases_reasons(phases)
    if target.on_npu:
        reasons += window_reasons(snapshots, passes)
    return summarise(passes, starts, series), trust_of(reasons)


def rederive(record: Record) -> tuple[Summary, Trust]:
    """The same from a saved record."""
    return derive(
        record.passes,
        record.request.start,
        record.seed,
        record.parity,
        record.ending,
        record.target,
        record.snapshots,
        record.phases,
    )


def contradictions(record: Record) -> tuple[Trust, list[str]]:
    """The trust derived again, and the dotted names of stated summary figures that the passes do not bear out."""
    summary, trust = rederive(record)
    stated, derived = record.summary.model_dump(mode="json"), summary.model_dump(mode="json")
    differs = list(_differences(stated, derived, "summary"))
    differs += [f"summary.passes.{key} (no such pass)" for key in stated["passes"] if key not in derived["passes"]]
    if (record.trust.absolute, record.trust.ratios) != (trust.absolute, trust.ratios):
        differs.append("trust")
    return trust, differs


def _differences(stated: Any, derived: Any, at: str) -> Iterator[str]:
    if isinstance(stated, dict) and isinstance(derived, dict):
        for key in derived:
            yield from _differences(stated.get(key), derived[key], f"{at}.{key}")
    elif isinstance(stated, float | int) and isinstance(derived, float):
        if not isclose(stated, derived, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{at} ({stated} stated, {derived:.9g} derived)"
    elif stated != derived:
        yield at
