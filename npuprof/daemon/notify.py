"""What the service manager is told and gives: readiness, watchdog pings, inherited sockets."""

from __future__ import annotations

import contextlib
import os
import socket

_FIRST_FD = 3


def notify(text: str) -> None:
    """READY=1, STATUS=..., WATCHDOG=1; nothing where no manager listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    target = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), target)


def watchdog_s() -> float | None:
    """Seconds between two pings: half of what the manager allows; None where it does not watch us."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdigit() or os.environ.get("WATCHDOG_PID") not in (None, str(os.getpid())):
        return None
    return int(microseconds) / 2e6


def inherited_socket() -> socket.socket | None:
    """The listening socket that a socket unit hands down."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    return socket.socket(fileno=_FIRST_FD)
