"""Power mode and clocks (from the driver's answer), and what can be read quietly: sleep state, watts, temperature, supply.

Cannot see: throttling inside the NPU; its power or temperature on boards and kernels without those sensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collectors.base import live
from collectors.device import line_of
from npuprof.model.record import Reading

NAME = "power"


def quiet(sysfs: Path | None, root: Path = Path("/")) -> dict[str, Any]:
    """Readings that wake nothing; null where there is no such sensor. Watts, degrees Celsius."""
    hwmon = _hwmon(sysfs) if sysfs is not None else None
    return {
        "runtime_status": line_of(sysfs / "power/runtime_status") if sysfs else None,
        "autosuspend": line_of(sysfs / "power/control") if sysfs else None,
        "power_w": _scaled(hwmon, "power1_input", 1e6),
        "temperature_c": _scaled(hwmon, "temp1_input", 1e3),
        "on_ac": _on_ac(root),
        "governor": line_of(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "throttled": _throttled(root),
    }


def read(sysfs: Path | None, amdxdna: Reading, root: Path = Path("/")) -> Reading:
    """The quiet readings, with mode and clocks as the driver last gave them."""
    answer = amdxdna.reading if amdxdna.status == "live" and amdxdna.reading else {}
    reading = {"power_mode": answer.get("power_mode"), "clocks": answer.get("clocks"), **quiet(sysfs, root)}
    missing = [k for k, v in reading.items() if v is None]
    return live(reading, f"not available: {', '.join(missing)}" if missing else "")


def _hwmon(sysfs: Path) -> Path | None:
    try:
        folders = sorted((sysfs / "hwmon").iterdir())
    except OSError:
        return None
    return folders[0] if folders else None


def _scaled(hwmon: Path | None, name: str, unit: float) -> float | None:
    text = line_of(hwmon / name) if hwmon else None
    return int(text) / unit if text and text.lstrip("-").isdigit() else None


def _on_ac(root: Path) -> bool | None:
    """True on mains; None on machines that have no power supply to report, as desktops."""
    try:
        supplies = sorted((root / "sys/class/power_supply").iterdir())
    except OSError:
        return None
    mains = [line_of(s / "online") for s in supplies if line_of(s / "type") in ("Mains", "USB")]
    batteries = [line_of(s / "status") for s in supplies if line_of(s / "type") == "Battery"]
    if mains:
        return "1" in mains
    return "Discharging" not in batteries if batteries else None


def _throttled(root: Path) -> int | None:
    """How often cpu0's core was throttled since boot, where the CPU counts that."""
    text = line_of(root / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count")
    return int(text) if text and text.isdigit() else None
