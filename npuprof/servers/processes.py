"""The server's process: started by the campaign, or found by the address it listens at."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psutil

from npuprof.errors import UsageProblem

_STOP_S = 15


class Server:
    """A server that we started. Its output goes to `output`, or to our own standard error.

    `stderr` is a copy of its standard error, where `copied`: whoever asks for it has to read it, or the server stands still.
    """

    def __init__(self, command: str, output: IO[bytes] | None = None, *, copied: bool = False) -> None:
        try:
            words = shlex.split(command)
            self._process = subprocess.Popen(
                words,
                stdout=output or sys.stderr,
                stderr=subprocess.PIPE if copied else output or sys.stderr,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as e:
            raise UsageProblem(f"--spawn {command!r}: cannot be started: {e}") from e
        self.pid = self._process.pid
        self.stderr = None if self._process.stderr is None else _tee(self._process.stderr)

    def state(self) -> str | None:
        """Empty while it runs; how it ended otherwise."""
        code = self._process.poll()
        if code is None:
            return ""
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def stop(self) -> None:
        """SIGTERM to it and what it started, then by force."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
                return


def _tee(stream: IO[bytes]) -> IO[bytes]:
    """What comes out of `stream`, with a copy to our own standard error."""
    read, write = os.pipe()

    def copy() -> None:
        with stream, os.fdopen(write, "wb", buffering=0) as out:
            while chunk := os.read(stream.fileno(), 65536):
                # Full disk, or a reader that has gone: the server must be able to write on.
                with contextlib.suppress(OSError):
                    os.write(2, chunk)
                with contextlib.suppress(OSError):
                    out.write(chunk)

    threading.Thread(target=copy, name="server-stderr", daemon=True).start()
    return os.fdopen(read, "rb", buffering=0)


def listening_pids(url: str) -> list[int]:
    """Processes on this machine that listen at the URL's port, where we may see that."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        return []
    with contextlib.suppress(psutil.AccessDenied, OSError):
        found = psutil.net_connections("tcp")
        return sorted(
            {c.pid for c in found if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr[1] == port and c.pid}
        )
    return []


def uses_npu(pids: list[int]) -> bool:
    """Has one of these processes an accel node open?"""
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(entry.readlink()).startswith("/dev/accel/"):
                        return True
    return False
