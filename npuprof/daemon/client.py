"""The daemon as its clients reach it: HTTP over its Unix socket."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from npuprof.daemon.main import socket_path
from npuprof.errors import DeviceProblem, UsageProblem

_TIMEOUT_S = 30.0
_RECONNECT_S = 0.3
_GIVE_UP_S = 60.0


@dataclass(frozen=True)
class ServerEvent:
    """One server-sent event: `kind` is state, pass or end, `number` its place."""

    kind: str
    number: int
    data: dict[str, Any]


class Daemon:
    """DeviceProblem where nobody listens, UsageProblem with the daemon's own sentence where it refuses."""

    def __init__(self) -> None:
        self.path = socket_path()
        transport = httpx.HTTPTransport(uds=str(self.path))
        self._http = httpx.Client(transport=transport, base_url="http://npuprofd", timeout=_TIMEOUT_S, trust_env=False)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.TransportError as e:
            raise self._nobody(e) from e
        try:
            data = answer.json()
        except ValueError:
            data = {}
        if answer.status_code >= 400:
            said = data.get("error", {}).get("message") or f"answered {answer.status_code}"
            raise UsageProblem(f"the daemon refuses: {said}")
        found: dict[str, Any] = data
        return found

    def events(self, run_id: str) -> Iterator[ServerEvent]:
        """To the end of the campaign, through restarts of the daemon. DeviceProblem when it stays away for a minute."""
        last = 0
        lost = None
        while True:
            with contextlib.suppress(httpx.TransportError):
                headers = {"Last-Event-ID": str(last)} if last else {}
                timeout = httpx.Timeout(_TIMEOUT_S, read=60.0)
                with self._http.stream(
                    "GET", f"/v1/campaigns/{run_id}/events", headers=headers, timeout=timeout
                ) as answer:
                    if answer.status_code == 404:
                        raise UsageProblem(f"no campaign {run_id!r}; see: npuprof queue")
                    for event in _parsed(answer.iter_lines()):
                        lost = None
                        last = event.number or last
                        yield event
                        if event.kind == "end":
                            return
            lost = lost or time.monotonic()
            if time.monotonic() - lost > _GIVE_UP_S:
                raise DeviceProblem(f"the daemon at {self.path} has been away for {_GIVE_UP_S:g} s; is it running?")
            time.sleep(_RECONNECT_S)

    def close(self) -> None:
        self._http.close()

    def _nobody(self, e: Exception) -> DeviceProblem:
        return DeviceProblem(
            f"no daemon listens at {self.path} ({type(e).__name__}: {e}); start one: systemctl start npuprofd.socket, or npuprofd"
        )


def _parsed(lines: Iterator[str]) -> Iterator[ServerEvent]:
    kind, number = "", 0
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id" and value.isdigit():
            number = int(value)
        elif name == "data":
            yield ServerEvent(kind, number, json.loads(value))
