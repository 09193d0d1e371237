"""Starts a worker: by systemd through its socket template, else as a child in a session of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from npuprof.errors import DeviceProblem

RUN_SOCKET = Path("/run/npuprof/run.sock")


def launch(job: dict[str, Any], run_socket: Path | None) -> subprocess.Popen[bytes] | None:
    """Hands the job over; the child, or None where systemd started it. DeviceProblem if neither could be."""
    line = json.dumps(job).encode() + b"\n"
    if run_socket is not None:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(str(run_socket))
                s.sendall(line)
        except OSError as e:
            raise DeviceProblem(
                f"no worker could be started through {run_socket}: {e.strerror or e}; see: systemctl status npuprof-run.socket"
            ) from e
        return None
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "npuprof.daemon.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS")},
        )
    except OSError as e:
        raise DeviceProblem(f"no worker could be started: {e.strerror}") from e
    assert child.stdin is not None
    try:
        child.stdin.write(line)
        child.stdin.close()
    except OSError as e:
        raise DeviceProblem(f"the worker ended before it began: {e.strerror}") from e
    return child
