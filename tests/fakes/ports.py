"""Ports and waiting, for tests with servers of their own."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import httpx


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def wait_for(true: Callable[[], bool]) -> None:
    """Up to 20 s, through a server's not answering yet."""
    for _ in range(400):
        try:
            if true():
                return
        except (httpx.TransportError, FileNotFoundError):
            pass
        time.sleep(0.05)
    raise AssertionError("it did not come true")
