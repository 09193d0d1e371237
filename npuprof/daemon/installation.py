"""What `doctor` says of the daemon and of what `make install` puts on a machine."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

from npuprof.daemon.client import Daemon
from npuprof.daemon.main import socket_path
from npuprof.errors import NpuprofError

Check = dict[str, str]

_UNITS = ("npuprofd.socket", "npuprofd.service", "npuprof-run.socket", "npuprof-run@.service")
_PLACES = ("etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")


def examine_installation(root: Path = Path("/")) -> list[Check]:
    """Units, user, group and the daemon's answer: name, status ok|warn|missing|not_applicable, detail, next command."""
    return [_units(root), _group(), _daemon()]


def _check(name: str, status: str, detail: str, then: str = "") -> Check:
    return {"name": name, "status": status, "detail": detail, "next": then}


def _units(root: Path) -> Check:
    found = {u: next((root / p / u for p in _PLACES if (root / p / u).exists()), None) for u in _UNITS}
    absent = [u for u, place in found.items() if place is None]
    if len(absent) == len(_UNITS):
        return _check(
            "units", "not_applicable", "the daemon is not installed; campaigns run without it", "sudo make install"
        )
    if absent:
        return _check("units", "missing", f"of the daemon's units {', '.join(absent)} are missing", "sudo make install")
    return _check("units", "ok", f"installed in {', '.join(sorted({str(p.parent) for p in found.values() if p}))}")


def _group() -> Check:
    try:
        pwd.getpwnam("npuprof")
        group = grp.getgrnam("npuprof")
    except KeyError:
        return _check(
            "user", "not_applicable", "there is no user and group npuprof; the daemon under systemd needs both"
        )
    if os.geteuid() in (0, pwd.getpwnam("npuprof").pw_uid) or group.gr_gid in os.getgroups():
        return _check("user", "ok", "user npuprof is there, and you may use its queue and hold")
    return _check(
        "user",
        "missing",
        "you are not in group npuprof: its queue and hold are closed to you",
        "sudo usermod -aG npuprof $USER",
    )


def _daemon() -> Check:
    path = socket_path()
    if not path.exists():
        return _check("daemon", "not_applicable", f"no socket at {path}: campaigns run without the daemon")
    daemon = Daemon()
    try:
        health = daemon.ask("GET", "/v1/health")
    except NpuprofError as e:
        return _check("daemon", "missing", str(e), "sudo systemctl enable --now npuprofd.socket npuprof-run.socket")
    finally:
        daemon.close()
    if health["damaged_queue"]:
        return _check("daemon", "warn", f"its queue could not be read and is kept in {health['damaged_queue']}")
    running = f"running {health['running']}" if health["running"] else "idle"
    return _check("daemon", "ok", f"version {health['version']} at {path}, {running}, {health['queued']} queued")
