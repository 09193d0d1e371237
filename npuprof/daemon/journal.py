"""One event per fact in the journal, with the run's id as a field: `journalctl NPUPROF_RUN=ID` tells a number's story."""

from __future__ import annotations

import contextlib
import logging
import socket
from pathlib import Path

_SOCKET = Path("/run/systemd/journal/socket")
_LOG = logging.getLogger("npuprof")

# Fixed, so that an administrator can filter by fact.
MESSAGE_IDS = {
    "accepted": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c001",
    "began": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c002",
    "granted": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c003",
    "void": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c004",
    "ended": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c005",
    "cancelled": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c006",
    "aborted": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c007",
    "damaged": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c008",
    "removed": "7b1f0c1a8d7e4f0f9c53a1f2f1a8c009",
}


def tell(fact: str, message: str, run_id: str | None = None, **fields: str) -> None:
    """Through journald's own socket; to the log where there is none."""
    entry = {"MESSAGE": message, "MESSAGE_ID": MESSAGE_IDS[fact], "PRIORITY": "6", "SYSLOG_IDENTIFIER": "npuprof"}
    if run_id is not None:
        entry["NPUPROF_RUN"] = run_id
    entry |= {f"NPUPROF_{k.upper()}": v for k, v in fields.items()}
    with contextlib.suppress(OSError):
        if _SOCKET.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.sendto(_encoded(entry), str(_SOCKET))
            return
    _LOG.info("%s%s", f"{run_id}: " if run_id else "", message)


def _encoded(entry: dict[str, str]) -> bytes:
    """Every value with its length, so that no text of others can end a field."""
    out = b""
    for key, value in entry.items():
        data = value.encode("utf-8", "replace")
        out += key.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
    return out
