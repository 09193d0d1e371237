"""The evidence of a campaign's window on an NPU: what moved between the snapshots, and what that costs in trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuprof.model.passes import Pass
from npuprof.model.record import Errors, Reading, Reason, Snapshots

_BUSY_TOLERANCE = 0.05
_BUSY_FLOOR_MS = 0.5


def _of(snapshot: Mapping[str, Reading], source: str) -> dict[str, Any]:
    reading = snapshot.get(source)
    return reading.reading or {} if reading is not None and reading.status == "live" else {}


def live_sources(snapshots: Snapshots) -> list[str]:
    """Error sources that were read before and after, and could have moved. The contexts' `errors` cannot."""
    log = _of(snapshots.before, "kernel_log"), _of(snapshots.after, "kernel_log")
    slot = [_of(s, "amdxdna").get("async_error") for s in (snapshots.before, snapshots.after)]
    return [*(["kernel_log"] if all(log) else []), *(["async_error"] if None not in slot else [])]


def errors_of(snapshots: Snapshots, on_npu: bool) -> Errors | None:
    """The record's `errors`: counts before and after, and the window's incidents. None for a target on no NPU."""
    if not on_npu:
        return None
    before, after = _of(snapshots.before, "kernel_log"), _of(snapshots.after, "kernel_log")
    return Errors(
        count_before=before.get("count"),
        count_after=after.get("count"),
        benign_before=before.get("by_class", {}).get("benign"),
        benign_after=after.get("by_class", {}).get("benign"),
        incidents=after.get("window", {}).get("incidents", []),
        live_sources=live_sources(snapshots),
    )


def window_reasons(snapshots: Snapshots, passes: Sequence[Pass]) -> list[Reason]:
    """Everything in the window that speaks against the numbers of a target on an NPU."""
    found = [
        *_kernel(_of(snapshots.before, "kernel_log"), _of(snapshots.after, "kernel_log")),
        *_driver(snapshots),
        *_foreign(snapshots),
        *_power(snapshots),
        *_busy(passes),
    ]
    if not live_sources(snapshots):
        why = "; ".join(
            r.detail for s in (snapshots.before,) for k, r in s.items() if k in ("kernel_log", "amdxdna") and r.detail
        )
        found.append(("no_error_source", f"no source could have shown an error: {why or 'none was read'}"))
    return [Reason(code=code, text=text, affects="all") for code, text in found]


_Found = list[tuple[str, str]]


def _kernel(before: dict[str, Any], after: dict[str, Any]) -> _Found:
    found: _Found = []
    lines = after.get("window", {}).get("lines", [])
    if lines:
        classes = " and ".join(sorted({line["class"] for line in lines}))
        texts = "; ".join(line["text"] for line in lines[:3])
        found.append(("kernel_messages", f"{len(lines)} {classes} kernel messages in the window: {texts}"))
    lost = after.get("lost") or before.get("lost")
    if lost:
        found.append(("lost_kernel_messages", lost))
    return found


def _driver(snapshots: Snapshots) -> _Found:
    found: _Found = []
    before, after = _of(snapshots.before, "amdxdna"), _of(snapshots.after, "amdxdna")
    gone = snapshots.after.get("amdxdna")
    if before and not after and gone is not None:
        found.append(("device_lost", f"the driver answered before and not after: {gone.detail}"))
    old, new = before.get("async_error"), after.get("async_error")
    if old is not None and new is not None and old != new:
        found.append(
            ("async_error", f"the driver's last async error changed: code {new['err_code']:#x} at {new['ts_us']} us")
        )
    own = set((_of(snapshots.after, "foreign") or {}).get("own_pids", []))
    for c in after.get("contexts") or []:
        if c["pid"] not in own:
            continue
        if c.get("fatal_error_type"):
            found.append(("firmware_fatal", f"the firmware reports fatal error {c['fatal_error_type']} in our context"))
        if c["submitted"] > c["completed"]:
            left = c["submitted"] - c["completed"]
            found.append(("jobs_unfinished", f"{left} of our jobs were submitted and never completed"))
    return found


def _foreign(snapshots: Snapshots) -> _Found:
    found: dict[int, str] = {}
    hidden = 0
    for snapshot in (snapshots.before, snapshots.after):
        seen = _of(snapshot, "foreign")
        hidden = max(hidden, seen.get("hidden_contexts", 0))
        for f in seen.get("foreign", []):
            since = f" since {f['since_boot_s']:.0f} s after boot" if f.get("since_boot_s") is not None else ""
            found[f["pid"]] = f"pid {f['pid']} ({f['name'] or 'name not visible'}){since}, {f['contexts']} contexts"
    who = [*found.values(), *([f"{hidden} contexts of processes hidden from us"] if hidden else [])]
    return [("foreign_use", f"somebody else is on the device: {'; '.join(who)}")] if who else []


def _power(snapshots: Snapshots) -> _Found:
    readings = [
        _of(snapshots.before, "power"),
        *(r.reading or {} for r in snapshots.between),
        _of(snapshots.after, "power"),
    ]
    found: _Found = []
    for key, code in (("power_mode", "power_mode_changed"), ("clocks", "clocks_changed")):
        values = [r[key] for r in readings if r.get(key) is not None]
        changed = next((v for v in values if v != values[0]), None)
        if changed is not None:
            found.append((code, f"{key.replace('_', ' ')} changed: {_short(values[0])} -> {_short(changed)}"))
    return found


def _short(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def _busy(passes: Sequence[Pass]) -> _Found:
    """busy <= quantise_launch + device_wait + readback + head_device: the device already runs while later launches are
    submitted, but never while nobody submits, waits or reads."""
    worst: tuple[float, Pass] | None = None
    n = 0
    for p in passes:
        busy = p.extra.get("busy_ms")
        parts = (p.terms.quantise_launch_ms, p.terms.device_wait_ms, p.terms.readback_ms, p.head_device_ms)
        given = [v for v in parts if v is not None]
        if p.phase != "measure" or busy is None or len(given) < len(parts):
            continue
        over = busy - sum(given) * (1 + _BUSY_TOLERANCE) - _BUSY_FLOOR_MS
        if over > 0:
            n += 1
            worst = max(worst or (over, p), (over, p), key=lambda w: w[0])
    if worst is None:
        return []
    return [
        (
            "busy_exceeds_terms",
            f"in {n} passes the device was busy for longer than the terms allow, pass {worst[1].seq} by {worst[0]:.1f} ms",
        )
    ]
