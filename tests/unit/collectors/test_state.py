"""Power, host, device and doctor on fixture trees."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from collectors import doctor, host, ioctl, power
from collectors.base import Own, live, not_available
from collectors.device import find_npus, unbound_npus
from collectors.evidence import Evidence
from collectors.fdinfo import Fdinfo, parse_fdinfo
from collectors.foreign import judge


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def npu_tree(root: Path, *, bound: bool = True) -> Path:
    """An NPU as sysfs shows it; returns its device folder."""
    device = root / "sys/devices/pci0000:00/0000:c5:00.1"
    write(device / "vendor", "0x1022\n")
    write(device / "device", "0x17f0\n")
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    (bus / "0000:c5:00.1").symlink_to(device)
    if bound:
        driver = root / "sys/bus/pci/drivers/amdxdna"
        driver.mkdir(parents=True)
        (device / "driver").symlink_to(driver)
        accel = root / "sys/class/accel/accel0"
        accel.mkdir(parents=True)
        (accel / "device").symlink_to(device)
    return device


def test_npus_are_found_by_driver(tmp_path: Path) -> None:
    npu_tree(tmp_path)
    other = tmp_path / "sys/class/accel/accel1"
    other.mkdir()
    [npu] = find_npus(tmp_path)
    assert (npu.name, npu.bdf, npu.vbnv, npu.firmware) == ("accel0", "0000:c5:00.1", None, None)
    assert npu.generation is not None
    assert "Strix" in npu.generation
    assert unbound_npus(tmp_path) == []
    assert find_npus(tmp_path / "none") == []
    assert unbound_npus(tmp_path / "none") == []


def test_an_npu_without_driver_is_named_with_the_command(tmp_path: Path) -> None:
    npu_tree(tmp_path, bound=False)
    assert unbound_npus(tmp_path) == ["0000:c5:00.1"]
    checks = {c["name"]: c for c in doctor.examine(tmp_path)}
    assert checks["driver"]["status"] == "missing"
    assert checks["driver"]["next"] == "sudo modprobe amdxdna"
    assert checks["firmware"]["status"] == "not_applicable"


def test_doctor_on_a_machine_with_nothing(tmp_path: Path) -> None:
    checks = {c["name"]: c for c in doctor.examine(tmp_path)}
    assert checks["driver"]["status"] == "not_applicable"
    assert "reference" in checks["driver"]["detail"]
    for name in ("kernel log", "iommu"):
        assert checks[name]["status"] in ("missing", "warn")
        assert checks[name]["next"]


def test_doctor_on_iommu_and_node(tmp_path: Path) -> None:
    device = npu_tree(tmp_path)
    write(tmp_path / "proc/cmdline", "quiet amd_iommu=off")
    checks = {c["name"]: c for c in doctor.examine(tmp_path)}
    assert "remove amd_iommu=off" in checks["iommu"]["next"]
    assert checks["node"]["status"] == "missing"
    assert checks["firmware"]["status"] == "warn"
    write(tmp_path / "proc/cmdline", "quiet")
    (tmp_path / "sys/kernel/iommu_groups/0").mkdir(parents=True)
    write(tmp_path / "dev/accel/accel0", "")
    write(device / "fw_version", "1.2.3.4\n")
    checks = {c["name"]: c for c in doctor.examine(tmp_path)}
    assert (checks["iommu"]["status"], checks["node"]["status"], checks["firmware"]["detail"]) == (
        "ok",
        "ok",
        "1.2.3.4",
    )
    assert checks["power mode"]["status"] == "warn", "a plain file answers no ioctl"


def test_doctor_names_the_nodes_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npu_tree(tmp_path)
    write(tmp_path / "dev/accel/accel0", "")
    monkeypatch.setattr(os, "access", lambda *a: False)
    found = {c["name"]: c for c in doctor.examine(tmp_path)}["node"]
    assert found["status"] == "missing"
    assert found["next"].startswith("sudo usermod -aG ")


def test_power_is_read_quietly(tmp_path: Path) -> None:
    device = tmp_path / "npu"
    write(device / "power/runtime_status", "suspended\n")
    write(device / "hwmon/hwmon5/power1_input", "1234000\n")
    write(device / "hwmon/hwmon5/temp1_input", "-5000\n")
    write(tmp_path / "sys/class/power_supply/AC/type", "Mains\n")
    write(tmp_path / "sys/class/power_supply/AC/online", "1\n")
    write(tmp_path / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n")
    found = power.quiet(device, tmp_path)
    assert found["runtime_status"] == "suspended"
    assert (found["power_w"], found["temperature_c"], found["on_ac"], found["throttled"]) == (1.234, -5.0, True, 3)
    nothing = power.read(None, not_available("x"), tmp_path / "none")
    assert nothing.status == "live"
    assert set((nothing.reading or {}).values()) == {None}
    assert "power_mode" in nothing.detail


def test_supplies(tmp_path: Path) -> None:
    supply = tmp_path / "sys/class/power_supply"
    write(supply / "BAT0/type", "Battery\n")
    write(supply / "BAT0/status", "Discharging\n")
    assert power.quiet(None, tmp_path)["on_ac"] is False
    write(supply / "BAT0/status", "Full\n")
    assert power.quiet(None, tmp_path)["on_ac"] is True
    write(supply / "BAT0/type", "UPS\n")
    assert power.quiet(None, tmp_path)["on_ac"] is None


def test_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "proc/pressure/memory", "some avg10=1.50 avg60=0.00 avg300=0.00 total=0\n")
    reading = host.read(tmp_path)
    assert reading.reading is not None
    assert reading.reading["memory_pressure_avg10"] == 1.5
    assert reading.reading["memory_available_mb"] > 0
    plain = host.read(tmp_path / "none").reading
    assert plain is not None
    assert plain["memory_pressure_avg10"] is None

    def broken() -> None:
        raise RuntimeError("no /proc/vmstat")

    monkeypatch.setattr(psutil, "swap_memory", broken)
    assert host.read().status == "not_available"


FDINFO = (
    "pos:\t0\ndrm-driver:\tamdxdna_accel_driver\ndrm-client-id:\t77\ndrm-pdev:\t0000:c5:00.1\n"
    "drm-engine-amdxdna_accel_driver:\t123456789 ns\ndrm-total-memory:\t65644 KiB\n"
)


def test_fdinfo_texts() -> None:
    found = parse_fdinfo(FDINFO)
    assert found == {"client": "77", "bdf": "0000:c5:00.1", "busy_ns": 123456789, "memory_bytes": 65644 * 1024}
    assert parse_fdinfo("drm-driver:\tamdgpu\n") is None
    assert parse_fdinfo("no colon") is None
    old = parse_fdinfo("drm-driver: amdxdna\ndrm-client-id: 3\ndrm-total-memory: x\n")
    assert old is not None
    assert (old["busy_ns"], old["memory_bytes"], old["bdf"]) == (None, None, None)


def proc_tree(root: Path, pid: int, text: str = FDINFO, link: str = "/dev/accel/accel0") -> None:
    process = root / "proc" / str(pid)
    write(process / "comm", "llm\x1b\n")
    write(process / "stat", f"{pid} (a b) c) " + " ".join(["S", *["0"] * 18, "1200", "0"]))
    write(process / "fdinfo/7", text)
    (process / "fd").mkdir(parents=True)
    (process / "fd/7").symlink_to(link)
    (process / "fd/8").symlink_to("/dev/null")
    (process / "fd/9").symlink_to(link)


def test_processes_that_have_the_node_open(tmp_path: Path) -> None:
    proc_tree(tmp_path, 42)
    proc_tree(tmp_path, 43, FDINFO.replace("c5", "c6"))
    reading = Fdinfo("0000:c5:00.1", tmp_path).read([99])
    assert reading.reading is not None
    [process] = reading.reading["processes"]
    assert (process["pid"], process["name"], process["since"]) == (42, "llm\x1b", 12.0)
    assert len(process["clients"]) == 1
    assert Fdinfo(None, tmp_path / "none").read().status == "not_available"


def test_processes_that_hide_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from collectors import fdinfo

    proc_tree(tmp_path, 42)

    def refused(process: Path) -> list[object]:
        raise PermissionError

    monkeypatch.setattr(fdinfo, "clients_of", refused)
    reading = Fdinfo(None, tmp_path).read()
    assert "1 processes of other users cannot be looked into" in reading.detail


def test_foreign_use_from_fdinfo_alone() -> None:
    busy = {"pid": 8, "name": "llm", "since": 1.0, "clients": [{"busy_ns": 5, "memory_bytes": 0}]}
    monitor = {"pid": 9, "name": "top", "since": 1.0, "clients": [{"busy_ns": 0, "memory_bytes": 0}]}
    seen = judge(Own(frozenset({7})), not_available("old driver"), live({"processes": [busy, monitor], "hidden": 0}))
    assert seen.reading is not None
    assert [f["pid"] for f in seen.reading["foreign"]] == [8]
    only_monitor = judge(Own(frozenset({7})), not_available("old"), live({"processes": [monitor], "hidden": 0}))
    assert only_monitor.status == "not_available"
    nothing = judge(Own(frozenset({7})), not_available("a"), not_available("b"))
    assert nothing.status == "not_available"
    everybody = judge(
        Own(frozenset({7})), live({"contexts": [], "resources": None}), live({"processes": [], "hidden": 0})
    )
    assert everybody.status == "live"


def test_a_target_on_no_npu_has_no_device_evidence(tmp_path: Path) -> None:
    readings = Evidence("reference", [], tmp_path).snapshot(Own(frozenset({1})), on_npu=False)
    assert {k: r.status for k, r in readings.items()} == {
        "kernel_log": "not_applicable",
        "amdxdna": "not_applicable",
        "fdinfo": "not_applicable",
        "foreign": "not_applicable",
        "power": "not_applicable",
        "host": "live",
    }
    missing = Evidence("accel3", [], tmp_path)
    assert "no NPU named accel3" in missing.snapshot(Own(frozenset({1})), on_npu=True)["amdxdna"].detail
    assert missing.state().status == "live"


def test_within_hands_errors_on() -> None:
    with pytest.raises(ZeroDivisionError):
        ioctl.within(5, lambda: 1 / 0)
    assert ioctl.within(5, lambda: 3) == 3
