"""The report's block on the window: each source, before, after, and what it says."""

from __future__ import annotations

from typing import Any

from npuprof.model.record import Reading, Record
from npuprof.render.lines import error_line

_ORDER = ("kernel_log", "amdxdna", "foreign", "power", "fdinfo", "host")


def window_lines(record: Record) -> list[str]:
    """One line a source."""
    if record.errors is None:
        return ["window  not applicable: the target runs on no NPU", *_host(record)]
    sources = ", ".join(record.errors.live_sources) or "NONE"
    lines = [f"window  {error_line(record.errors)}; error sources that could have moved: {sources}"]
    for name in _ORDER:
        before, after = record.snapshots.before.get(name), record.snapshots.after.get(name)
        if before is not None and after is not None:
            lines.append(f"        {name}: {_source(name, before, after)}")
    return lines


def _host(record: Record) -> list[str]:
    before, after = record.snapshots.before.get("host"), record.snapshots.after.get("host")
    return [f"        host: {_source('host', before, after)}"] if before is not None and after is not None else []


def _source(name: str, before: Reading, after: Reading) -> str:
    if before.status != "live" or after.status != "live":
        reading = after if after.status != "live" else before
        return f"{reading.status}: {reading.detail}"
    a, b = before.reading or {}, after.reading or {}
    return _SAYS[name](a, b)


def _kernel_log(a: dict[str, Any], b: dict[str, Any]) -> str:
    window = b.get("window", {})
    lost = f", LOST: {b['lost']}" if b.get("lost") else ""
    lines = f"{len(window.get('lines', []))} fatal or taint, {window.get('benign', 0)} benign lines in the window"
    return f"{b['source']}, {lines}, {len(window.get('incidents', []))} incidents{lost}"


def _amdxdna(a: dict[str, Any], b: dict[str, Any]) -> str:
    slots = [_async(r.get("async_error")) for r in (a, b)]
    refused = f"; {', '.join(b['problems'])} not given" if b.get("problems") else ""
    return f"driver {b['driver']}, firmware {b['firmware']}, last async error {slots[0]} -> {slots[1]}{refused}"


def _async(slot: dict[str, int] | None) -> str:
    if slot is None:
        return "not available"
    return f"{slot['err_code']:#x} at {slot['ts_us']} us" if any(slot.values()) else "none"


def _foreign(a: dict[str, Any], b: dict[str, Any]) -> str:
    there = {f["pid"]: f["name"] or "name not visible" for r in (a, b) for f in r["foreign"]}
    hidden = max(a["hidden_contexts"], b["hidden_contexts"])
    who = [f"pid {pid} ({name})" for pid, name in there.items()]
    who += [f"{hidden} hidden contexts"] if hidden else []
    return f"SOMEBODY ELSE: {', '.join(who)}" if who else "nobody else on the device"


def _power(a: dict[str, Any], b: dict[str, Any]) -> str:
    parts = []
    for key in ("power_mode", "clocks", "runtime_status", "power_w", "temperature_c", "on_ac", "governor"):
        old, new = _plain(a.get(key)), _plain(b.get(key))
        if old != "not available" or new != "not available":
            parts.append(f"{key} {old}" if old == new else f"{key} {old} -> {new}")
    return ", ".join(parts) or "nothing available"


def _plain(value: Any) -> str:
    if value is None:
        return "not available"
    return "/".join(map(str, value.values())) + " MHz" if isinstance(value, dict) else str(value)


def _fdinfo(a: dict[str, Any], b: dict[str, Any]) -> str:
    hidden = f", {b['hidden']} not visible" if b["hidden"] else ""
    return f"{len(a['processes'])} -> {len(b['processes'])} processes have the node open{hidden}"


def _load(a: dict[str, Any], b: dict[str, Any]) -> str:
    swapped = b["swapped_in_bytes"] + b["swapped_out_bytes"] - a["swapped_in_bytes"] - a["swapped_out_bytes"]
    swapping = f", SWAPPED {swapped >> 20} MB" if swapped else ""
    memory = f"memory available {a['memory_available_mb']} -> {b['memory_available_mb']} MB"
    return f"load {a['load'][0]} -> {b['load'][0]}, {memory}{swapping}"


_SAYS = {
    "kernel_log": _kernel_log,
    "amdxdna": _amdxdna,
    "foreign": _foreign,
    "power": _power,
    "fdinfo": _fdinfo,
    "host": _load,
}
