"""The host's load, by psutil. Cannot see: what other virtual machines on the same hardware do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from collectors.base import live, not_available
from collectors.device import line_of
from npuprof.model.record import Reading

NAME = "host"


def read(root: Path = Path("/")) -> Reading:
    """Load, CPU frequency (MHz), memory available, pages swapped since boot, memory pressure."""
    try:
        memory = psutil.virtual_memory()
        swap = psutil.swap_memory()
        frequency = psutil.cpu_freq()
        load = psutil.getloadavg()
    except (OSError, RuntimeError) as e:
        return not_available(f"psutil: {e}")
    reading: dict[str, Any] = {
        "load": [round(x, 2) for x in load],
        "cpu_mhz": round(frequency.current) if frequency else None,
        "memory_available_mb": memory.available >> 20,
        "swapped_in_bytes": swap.sin,
        "swapped_out_bytes": swap.sout,
        "memory_pressure_avg10": _pressure(root),
    }
    return live(reading)


def _pressure(root: Path) -> float | None:
    """The share of the last 10 s in which some task waited for memory, percent; None without PSI."""
    text = line_of(root / "proc/pressure/memory") or ""
    for field in text.split():
        if field.startswith("avg10="):
            return float(field[6:])
    return None
