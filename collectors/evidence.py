"""All collectors of one device, asked together: the evidence before and after a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collectors import foreign, host, power
from collectors.amdxdna import DEADLINE_S, Amdxdna
from collectors.base import Own, not_applicable, not_available
from collectors.device import find_npus
from collectors.fdinfo import Fdinfo
from collectors.kernel.rules import Rule
from collectors.kernel_log import KernelLog
from npuprof.model.record import Reading

DEVICE_SOURCES = (KernelLog.name, Amdxdna.name, Fdinfo.name, foreign.NAME, power.NAME)


class Evidence:
    """`device` is the accel node's name; `root` is for fake trees."""

    def __init__(
        self, device: str, rules: Sequence[Rule], root: Path = Path("/"), deadline_s: float = DEADLINE_S
    ) -> None:
        self._root = root
        self._npu = next((n for n in find_npus(root) if n.name == device), None)
        self._device = device
        self._log = KernelLog(rules, [self._npu.bdf] if self._npu else [], root)
        self._amdxdna = Amdxdna(self._npu.node if self._npu else root / "dev/accel" / device, deadline_s)
        self._fdinfo = Fdinfo(self._npu.bdf if self._npu else None, root)

    def snapshot(self, own: Own, *, on_npu: bool) -> dict[str, Reading]:
        """Every source once. Wakes the device: never during a pass. Device evidence only for a target on an NPU."""
        readings = {host.NAME: host.read(self._root)}
        if not on_npu:
            return {name: not_applicable("the target runs on no NPU") for name in DEVICE_SOURCES} | readings
        # Asked first: a line that our own queries cause must be in the log by the time it is read.
        driver = self._driver()
        besides = [c["pid"] for c in (driver.reading or {}).get("contexts") or []]
        clients = self._fdinfo.read(besides)
        readings |= {
            Amdxdna.name: driver,
            Fdinfo.name: clients,
            foreign.NAME: foreign.judge(own, driver, clients),
            power.NAME: power.read(self._npu.sysfs if self._npu else None, driver, self._root),
        }
        return {KernelLog.name: self._kernel_log(), **readings}

    def state(self) -> Reading:
        """Power mode and clocks again, after an idle gap. Wakes the device: never during a pass."""
        return power.read(self._npu.sysfs if self._npu else None, self._driver(), self._root)

    def _kernel_log(self) -> Reading:
        """Without an NPU the log can only ever say "fine", which is no evidence."""
        return self._log.read() if self._npu is not None else self._no_npu()

    def _no_npu(self) -> Reading:
        return not_available(f"no NPU named {self._device}: sudo modprobe amdxdna, then: npuprof doctor")

    def _driver(self) -> Reading:
        if self._npu is None:
            return self._no_npu()
        return self._amdxdna.read()
