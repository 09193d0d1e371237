"""Where an NPU's files are: its node, its sysfs folder, its BDF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_AMD = "0x1022"
_GENERATIONS = {"0x1502": "npu1 (Phoenix, Hawk Point)", "0x17f0": "npu4-6 (Strix, Strix Halo, Krackan)"}


@dataclass(frozen=True)
class Npu:
    """One accel node that the amdxdna driver serves. `name` is accel0, `bdf` 0000:c5:00.1."""

    name: str
    node: Path
    sysfs: Path
    bdf: str
    vbnv: str | None
    firmware: str | None
    generation: str | None


def line_of(file: Path) -> str | None:
    """The file's text, stripped; None if it cannot be read or is empty."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def find_npus(root: Path = Path("/")) -> list[Npu]:
    """The NPUs under /sys/class/accel whose driver is amdxdna, in the order of their numbers."""
    found = []
    accel = root / "sys/class/accel"
    try:
        names = sorted((p.name for p in accel.iterdir()), key=lambda n: (len(n), n))
    except OSError:
        return []
    for name in names:
        sysfs = accel / name / "device"
        try:
            driver = (sysfs / "driver").resolve().name
            bdf = sysfs.resolve().name
        except (OSError, RuntimeError):
            continue
        if driver == "amdxdna":
            device = line_of(sysfs / "device") or ""
            found.append(
                Npu(
                    name,
                    root / "dev/accel" / name,
                    sysfs,
                    bdf,
                    line_of(sysfs / "vbnv"),
                    line_of(sysfs / "fw_version"),
                    _GENERATIONS.get(device),
                )
            )
    return found


def unbound_npus(root: Path = Path("/")) -> list[str]:
    """BDFs of AMD NPUs on the PCI bus that no amdxdna driver has bound."""
    bus = root / "sys/bus/pci/devices"
    bound = {n.bdf for n in find_npus(root)}
    try:
        devices = sorted(bus.iterdir())
    except OSError:
        return []
    return [
        d.name
        for d in devices
        if line_of(d / "vendor") == _AMD and line_of(d / "device") in _GENERATIONS and d.name not in bound
    ]
