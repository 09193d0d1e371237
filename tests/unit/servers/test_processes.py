"""A server that prints more than a pipe holds must not stand still."""

from __future__ import annotations

import shlex
import sys
import time

import pytest

from npuprof.servers.processes import Server

_BYTES = 1_000_000
_CODE = f"import sys; sys.stderr.write('x' * {_BYTES}); sys.stderr.flush()"
COMMAND = f"{sys.executable} -c {shlex.quote(_CODE)}"


def ended(server: Server) -> str | None:
    for _ in range(2000):
        if state := server.state():
            return state
        time.sleep(0.01)
    server.stop()
    return "still runs"


def test_where_nobody_asks_for_a_copy_there_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    server = Server(COMMAND)
    assert ended(server) == "ended with code 0"
    assert server.stderr is None
    assert capfd.readouterr().err == "x" * _BYTES


def test_a_reader_that_goes_away(capfd: pytest.CaptureFixture[str]) -> None:
    server = Server(COMMAND, copied=True)
    assert server.stderr is not None
    assert server.stderr.read(10) == b"x" * 10
    server.stderr.close()
    assert ended(server) == "ended with code 0"
    assert capfd.readouterr().err.startswith("x" * 10)
