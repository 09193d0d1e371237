"""What the device wait is made of: the phases' table, a pass's under its breakdown, a launch's by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npuprof.render.text import digits3, ms, printable

_ORDER = ("queue_ms", "submit_ms", "device_ms", "complete_ms", "wake_ms", "unseen_ms")
_MEANS = "device: doorbell to interrupt, firmware and array together; unseen: the rest of the device wait"


def phases_lines(phases: Mapping[str, Any]) -> list[str]:
    """A record's or a trace's; medians with min, max and the median's interval."""
    lines: list[str] = []
    for name, c in phases.get("by_condition", {}).items():
        wait, before = ms(c["device_wait_median_ms"]), ms(c["before_wait_median_ms"])
        lines.append(f"{name}: device wait median {wait} ms in {c['n']} traced passes, launches before it {before} ms")
        lines += _table({p: c["phases"][p] for p in _ORDER if p in c["phases"]}, shares=True)
        lines.append("")
    for launch in phases["launches"]:
        known = {p: launch["spread"][p] for p in _ORDER if launch["spread"].get(p) is not None}
        lines.append(f"launch {launch['name']}: n={launch['n']}, per launch")
        lines += _table(known, shares=False) if known else ["    no phase has both its ends in the trace"]
        lines.append("")
    lines.append(_MEANS)
    cost = phases.get("cost") or {}
    lines += [f"recording costs {name}: {_ratio(r)}" for name, r in cost.items()]
    busy = phases.get("busy")
    if busy is not None:
        named = f", they DISAGREE by {100 * busy['disagreement']:+.1f} %" if busy["named"] else ""
        lines.append(f"fdinfo says busy for {ms(busy['busy_ms'])} ms, device phases {ms(busy['device_ms'])} ms{named}")
    by_kind = ", ".join(f"{n} {kind}" for kind, n in phases["unjoined_by_kind"].items())
    lines.append(
        f"{phases['events']} events, {phases['unjoined']} not joined{f' ({by_kind})' if by_kind else ''}, "
        f"{phases['lost']} lost, {phases['timedout']} jobs timed out"
    )
    return [printable(line) for line in lines]


def _table(rows: Mapping[str, Any], *, shares: bool) -> list[str]:
    """Aligned; every figure in ms but the share."""
    cells = [["phase", "median", "min", "max", "interval", *(["share"] if shares else [])]]
    for name, r in rows.items():
        interval = r["interval"]
        ends = (
            "–"
            if interval is None
            else f"[{ms(interval['low_ms'], r['median'])}, {ms(interval['high_ms'], r['median'])}]"
        )
        share = ["–" if r["share"] is None else f"{100 * r['share']:.1f} %"] if shares else []
        like = r["median"]
        cells.append([name.removesuffix("_ms"), ms(like), ms(r["min"], like), ms(r["max"], like), ends, *share])
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return ["    " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]


def _ratio(r: Mapping[str, Any]) -> str:
    if r["low"] is None:
        return f"x {digits3(r['value'])} (no interval: {r['blocks']} blocks, 3 are needed)"
    ends = f"[{digits3(r['low'])}, {digits3(r['high'])}]"
    return f"x {digits3(r['value'])} {ends} ({100 * r['coverage']:.1f} %, {r['blocks']} blocks)"
