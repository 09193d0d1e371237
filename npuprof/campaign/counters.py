"""What the timed process can cheaply say of itself around each pass, and nothing else can say later."""

from __future__ import annotations

import resource
from pathlib import Path

from collectors.fdinfo import clients_of


def process_counters() -> dict[str, float]:
    """Major faults and involuntary context switches of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"major_faults": usage.ru_majflt, "involuntary_switches": usage.ru_nivcsw}


def npu_counters() -> dict[str, float]:
    """The same, and how long the NPU was busy for this process so far, ms (fdinfo, which wakes nothing)."""
    counters = process_counters()
    try:
        busy = [c["busy_ns"] for c in clients_of(Path("/proc/self")) if c["busy_ns"] is not None]
    except OSError:
        return counters
    return {**counters, "busy_ms": sum(busy) / 1e6} if busy else counters
