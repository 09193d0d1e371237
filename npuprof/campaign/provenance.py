"""What the numbers were taken on, as the running system tells it; what it does not tell is null."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npuprof import __version__
from npuprof.model.record import Reading


def provenance(before: Mapping[str, Reading], root: Path = Path("/")) -> dict[str, Any]:
    """Versions, host facts, and what the first snapshot says of the NPU. `root` is for tests with fixture trees."""
    driver, power = (before[k].reading or {} if k in before else {} for k in ("amdxdna", "power"))
    return {
        "npuprof": __version__,
        "python": platform.python_version(),
        "host": {
            "cpu": _cpu(root / "proc/cpuinfo"),
            "cpus": os.cpu_count(),
            "kernel": platform.release(),
            "governor": _line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            "load": [round(x, 2) for x in os.getloadavg()],
        },
        "driver": driver.get("driver"),
        "firmware": driver.get("firmware"),
        "runtime": None,
        "power_mode": power.get("power_mode"),
        "clocks": power.get("clocks"),
        "pack": None,
    }


def _line(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None


def _cpu(cpuinfo: Path) -> str | None:
    for line in (_line(cpuinfo) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return None
