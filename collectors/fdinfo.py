"""Who has the NPU's node open, and for how long it was busy for each: /proc/PID/fdinfo, which wakes nothing.

Cannot see: processes of other users without ptrace rights (said in `detail`), and busy time before driver 0.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collectors.base import live, not_available
from npuprof.model.record import Reading

DRIVERS = ("amdxdna_accel_driver", "amdxdna")
_NUMBER = re.compile(r"(\d+)\s*(\w*)")
_SCALE = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_fdinfo(text: str) -> dict[str, Any] | None:
    """One client of the NPU: client id, BDF, busy nanoseconds, memory in bytes; None if it is no NPU's file."""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    driver = fields.get("drm-driver", "").strip()
    if driver not in DRIVERS:
        return None
    busy = fields.get(f"drm-engine-{driver}")
    memory = fields.get("drm-total-memory")
    return {
        "client": fields.get("drm-client-id", "").strip(),
        "bdf": fields.get("drm-pdev", "").strip() or None,
        "busy_ns": _value(busy) if busy is not None else None,
        "memory_bytes": _value(memory) if memory is not None else None,
    }


def _value(text: str) -> int | None:
    found = _NUMBER.match(text.strip())
    return int(found[1]) * _SCALE.get(found[2], 1) if found else None


def clients_of(process: Path) -> list[dict[str, Any]]:
    """The NPU clients of one process, each once however many descriptors share it. PermissionError, OSError."""
    found: dict[str, dict[str, Any]] = {}
    for entry in (process / "fd").iterdir():
        try:
            if not str(entry.readlink()).startswith("/dev/accel/"):
                continue
            client = parse_fdinfo((process / "fdinfo" / entry.name).read_text(errors="replace"))
        except (FileNotFoundError, OSError):
            continue
        if client is not None:
            found.setdefault(client["client"] or entry.name, client)
    return list(found.values())


class Fdinfo:
    """All processes under root/proc, and those named besides, which a listing need not show."""

    name = "fdinfo"

    def __init__(self, bdf: str | None, root: Path = Path("/")) -> None:
        self._bdf = bdf
        self._proc = root / "proc"

    def read(self, besides: Iterable[int] = ()) -> Reading:
        try:
            pids = {int(p.name) for p in self._proc.iterdir() if p.name.isdigit()}
        except OSError as e:
            return not_available(f"{self._proc} cannot be read: {e.strerror}")
        processes, hidden = [], 0
        for pid in sorted(pids | set(besides)):
            try:
                clients = clients_of(self._proc / str(pid))
            except PermissionError:
                hidden += 1
                continue
            except OSError:
                continue
            ours = [c for c in clients if self._bdf is None or c["bdf"] in (None, self._bdf)]
            if ours:
                processes.append({"pid": pid, "name": self._name(pid), "since": self._since(pid), "clients": ours})
        detail = (
            f"{hidden} processes of other users cannot be looked into; it needs ptrace rights or root" if hidden else ""
        )
        return live({"processes": processes, "hidden": hidden}, detail)

    def _name(self, pid: int) -> str:
        try:
            return (self._proc / str(pid) / "comm").read_text(errors="replace").strip()
        except OSError:
            return ""

    def _since(self, pid: int) -> float | None:
        """Seconds after boot at which the process started."""
        try:
            stat = (self._proc / str(pid) / "stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        return int(fields[19]) / 100 if len(fields) > 19 else None
