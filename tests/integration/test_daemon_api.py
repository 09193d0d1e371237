"""The daemon's OpenAPI against a server that answers by it: requests made up from the schema, valid and not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from ports import free_port, wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import CHECKS, load_all_checks

from hypothesis import HealthCheck
from hypothesis import settings as budget

from npuprof.daemon.app import make_app
from npuprof.daemon.queue import Queue
from npuprof.daemon.supervise import Supervisor
from npuprof.settings import load_settings

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


class Idle(Supervisor):
    """Takes campaigns and starts none."""

    async def run(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state: Path = tmp_path_factory.mktemp("api")
    (state / "runs").mkdir()
    settings = load_settings().settings
    hold = settings.hold.model_copy(update={"directory": state / "hold"})
    port = free_port()
    app: list[Any] = []

    async def as_root(scope: Any, receive: Any, send: Any) -> None:
        # The Unix socket's peer, which a TCP connection has not.
        await app[0]({**scope, "client": ("0", 1)}, receive, send)

    def serve() -> None:
        queue = Queue(state / "queue.sqlite")
        supervisor = Idle(queue, state, settings.daemon, None, None)
        app.append(make_app(supervisor, settings.model_copy(update={"hold": hold})))
        server = uvicorn.Server(uvicorn.Config(as_root, port=port, log_level="error", ws="none", lifespan="on"))
        servers.append(server)
        server.run()
        queue.close()

    servers: list[uvicorn.Server] = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    import httpx

    wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/v1/health").status_code == 200)
    yield f"http://127.0.0.1:{port}"
    servers[0].should_exit = True
    thread.join(10)


def test_requests_made_from_the_schema(url: str) -> None:
    load_all_checks()
    checks = [CHECKS.get_one(name) for name in _CHECKS]
    schema = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")
    tested = []
    for result in schema.get_all_operations():
        operation = result.ok()
        # A stream has no end while its campaign waits; it is tested with processes.
        if operation.path.endswith("/events"):
            continue
        tested.append(operation.label)

        @budget(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def run(case: Any) -> None:
            case.call_and_validate(checks=checks)

        schemathesis_run(operation, run)
    assert sorted(tested) == [
        "DELETE /v1/campaigns/{run_id}",
        "GET /v1/campaigns",
        "GET /v1/campaigns/{run_id}",
        "GET /v1/health",
        "GET /v1/hold",
        "POST /v1/campaigns",
    ]


def schemathesis_run(operation: Any, run: Any) -> None:
    """Hypothesis over both kinds of cases of one operation."""
    from hypothesis import given
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode

    given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))(run)()
    if operation.method.upper() == "POST":
        given(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))(run)()
    else:
        # Most of these have no parameter that could be wrong.
        with contextlib.suppress(Unsatisfiable):
            given(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))(run)()
