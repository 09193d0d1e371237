"""What this machine has for timing an NPU. Reads only; the driver is asked once."""

from __future__ import annotations

import grp
import os
import resource
from pathlib import Path

from collectors.amdxdna import Amdxdna
from collectors.device import Npu, find_npus, line_of, unbound_npus
from collectors.kernel.sources import Unreadable, open_source

Check = dict[str, str]

_MEMLOCK_ENOUGH = 8 << 30


def examine(root: Path = Path("/")) -> list[Check]:
    """One entry a check: name, status ok|warn|missing|not_applicable, detail, and the command that mends it."""
    npus = find_npus(root)
    checks = [_driver(npus, root)]
    for npu in npus:
        checks += [*_node(npu, root), *_state(npu)]
    if not npus:
        names = ("firmware", "node", "power mode", "power")
        checks += [_check(n, "not_applicable", "there is no NPU that the amdxdna driver serves") for n in names]
    return [*checks, _memlock(), _log(root), _iommu(root)]


def _check(name: str, status: str, detail: str, then: str = "") -> Check:
    return {"name": name, "status": status, "detail": detail, "next": then}


def _driver(npus: list[Npu], root: Path) -> Check:
    if npus:
        what = "; ".join(f"{n.name} {n.bdf} {n.vbnv or n.generation or 'of unknown kind'}" for n in npus)
        return _check("driver", "ok", f"amdxdna serves {what}")
    unbound = unbound_npus(root)
    if unbound:
        return _check(
            "driver", "missing", f"an AMD NPU is at {', '.join(unbound)} and no driver has it", "sudo modprobe amdxdna"
        )
    return _check(
        "driver",
        "not_applicable",
        "this machine has no AMD NPU; the reference target works: npuprof run --target reference",
    )


def _node(npu: Npu, root: Path) -> list[Check]:
    firmware = (
        _check("firmware", "ok", npu.firmware)
        if npu.firmware
        else _check("firmware", "warn", "sysfs gives no fw_version")
    )
    if not npu.node.exists():
        return [
            firmware,
            _check("node", "missing", f"{npu.node} is not there", "sudo udevadm trigger --subsystem-match=accel"),
        ]
    if os.access(npu.node, os.R_OK | os.W_OK):
        return [firmware, _check("node", "ok", f"{npu.node} can be opened by you")]
    try:
        group = grp.getgrgid(npu.node.stat().st_gid).gr_name
    except (KeyError, OSError):
        group = "render"
    mend = f"sudo usermod -aG {group} $USER"
    return [
        firmware,
        _check(
            "node",
            "missing",
            f"{npu.node} cannot be opened by you; it belongs to group {group}, and a new login learns of it",
            mend,
        ),
    ]


def _state(npu: Npu) -> list[Check]:
    reading = Amdxdna(npu.node).read()
    runtime = line_of(npu.sysfs / "power/runtime_status") or "not available"
    delay = line_of(npu.sysfs / "power/autosuspend_delay_ms") or "not available"
    power = _check("power", "ok", f"runtime status {runtime}, autosuspend after {delay} ms")
    if reading.status != "live" or reading.reading is None:
        return [power, _check("power mode", "warn", reading.detail)]
    mode = reading.reading["power_mode"]
    clocks = reading.reading["clocks"]
    detail = f"{mode}, clocks {clocks}, driver {reading.reading['driver']}, firmware {reading.reading['firmware']}"
    if mode in (None, "default", "powersaver"):
        return [
            power,
            _check(
                "power mode", "warn", f"{detail}: timings depend on it", "sudo xrt-smi configure --pmode performance"
            ),
        ]
    return [power, _check("power mode", "ok", detail)]


def _memlock() -> Check:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or soft >= _MEMLOCK_ENOUGH:
        return _check("memlock", "ok", "unlimited" if soft == resource.RLIM_INFINITY else f"{soft >> 20} MiB")
    mend = "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/99-memlock.conf"
    return _check("memlock", "warn", f"{soft >> 20} MiB: buffers of a model need more, after the next login", mend)


def _log(root: Path) -> Check:
    try:
        source = open_source(root)
    except Unreadable as e:
        return _check("kernel log", "missing", str(e), "sudo usermod -aG systemd-journal $USER")
    return _check("kernel log", "ok", f"readable through the {source.name}")


def _iommu(root: Path) -> Check:
    """The driver does not run without an IOMMU; where SVA is missing every open fails."""
    try:
        groups = len(list((root / "sys/kernel/iommu_groups").iterdir()))
    except OSError:
        groups = 0
    command = line_of(root / "proc/cmdline") or ""
    if "amd_iommu=off" in command:
        return _check(
            "iommu",
            "missing",
            "amd_iommu=off: the driver does not run without it",
            "remove amd_iommu=off from the kernel command line",
        )
    if groups:
        return _check("iommu", "ok", f"{groups} groups")
    return _check(
        "iommu",
        "warn",
        "no IOMMU groups: the amdxdna driver needs one",
        "enable the IOMMU (AMD-Vi) in the firmware setup",
    )
