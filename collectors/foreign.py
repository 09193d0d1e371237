"""Is somebody else on the device? From the contexts that are visible, the global task count, and fdinfo.

Cannot see: whose hidden contexts are, or whether they work. Where own and foreign cannot be told apart it says neither.
"""

from __future__ import annotations

from typing import Any

from collectors.base import Own, live, not_available
from npuprof.model.record import Reading

NAME = "foreign"


def judge(own: Own, amdxdna: Reading, fdinfo: Reading) -> Reading:
    """`foreign`: who is there besides; `hidden_contexts`: contexts that nobody visible accounts for."""
    if not own.pids:
        return not_available("the process that does the timed work is not known: own and foreign cannot be told apart")
    contexts = (amdxdna.reading or {}).get("contexts") if amdxdna.status == "live" else None
    resources = (amdxdna.reading or {}).get("resources") if amdxdna.status == "live" else None
    if contexts is None and fdinfo.status != "live":
        return not_available(f"neither contexts ({amdxdna.detail}) nor fdinfo ({fdinfo.detail}) can be read")
    processes = (fdinfo.reading or {}).get("processes", [])
    names = {p["pid"]: p for p in processes}
    foreign: dict[int, dict[str, Any]] = {}

    def entry(pid: int) -> dict[str, Any]:
        known = names.get(pid, {})
        blank = {
            "pid": pid,
            "name": known.get("name", ""),
            "since_boot_s": known.get("since"),
            "contexts": 0,
            "busy_ns": None,
        }
        return foreign.setdefault(pid, blank)

    for c in contexts or []:
        if c["pid"] not in own.pids:
            entry(c["pid"])["contexts"] += 1
    for p in processes:
        busy = sum(c["busy_ns"] or 0 for c in p["clients"])
        memory = sum(c["memory_bytes"] or 0 for c in p["clients"])
        # A monitor has the node open, too, but neither buffers nor work on it.
        if p["pid"] not in own.pids and (busy or memory):
            entry(p["pid"])["busy_ns"] = busy
    hidden = max(0, resources["task_curr"] - len(contexts)) if resources and contexts is not None else 0
    seen = {
        "foreign": sorted(foreign.values(), key=lambda f: f["pid"]),
        "hidden_contexts": hidden,
        "own_pids": sorted(own.pids),
    }
    if not foreign and not hidden and resources is None and not _sees_everybody(contexts, fdinfo):
        return not_available("other users' contexts and processes are hidden from you here; run it as root to see them")
    return live(seen)


def _sees_everybody(contexts: Any, fdinfo: Reading) -> bool:
    """Without a global task count only a look into every process tells that nobody else is there."""
    return fdinfo.status == "live" and not (fdinfo.reading or {}).get("hidden", 0) and contexts is not None
