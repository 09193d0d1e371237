"""A server's own words about itself: what it imported, and whether its times and the client's tell the same story."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from npuprof.model.passes import Pass
from npuprof.model.record import Reason, TargetInfo
from npuprof.stats import drift
from npuprof.stats.order import median

_IMPORT = re.compile(r"import: incomplete (\d{1,9}) ")


def offsets(passes: Sequence[Pass]) -> list[float]:
    """Per measured pass with both, the client's wall minus the server's, ms, in run order."""
    return [p.extra["client_ms"] - p.wall_ms for p in passes if p.phase == "measure" and "client_ms" in p.extra]


def _residuals(passes: Sequence[Pass]) -> list[float]:
    """The offsets without what is constant for each condition: answers of different sizes take different times to send."""
    both = [p for p in passes if p.phase == "measure" and "client_ms" in p.extra]
    by_condition: dict[str, list[float]] = defaultdict(list)
    for p, offset in zip(both, offsets(passes), strict=True):
        by_condition[p.condition].append(offset)
    middles = {name: median(values) for name, values in by_condition.items()}
    return [offset - middles[p.condition] for p, offset in zip(both, offsets(passes), strict=True)]


def serve_reasons(target: TargetInfo, passes: Sequence[Pass]) -> list[Reason]:
    """An incomplete import; a client's clock that drifts away from the server's by more than 1 % of a pass."""
    found = []
    line = (target.pack or {}).get("import_line") or ""
    incomplete = _IMPORT.match(line)
    if incomplete is not None and int(incomplete[1]):
        text = f"the server's import is incomplete: {line}"
        found.append(Reason(code="import_incomplete", text=text, affects="all"))
    between = _residuals(passes)
    if len(between) >= drift.MIN_SAMPLES:
        change = drift.theil_sen(between) * len(between)
        share = abs(change) / median([p.wall_ms for p in passes if p.phase == "measure"])
        if share > drift.SIZE_FLOOR and drift.kendall_p(between) < drift.TREND_ALPHA:
            text = (
                f"the client's times drift from the server's by {change:+.1f} ms over the campaign: their clocks differ"
            )
            found.append(Reason(code="clocks_differ", text=text, affects="all"))
    return found
