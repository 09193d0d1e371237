"""The daemon's HTTP: campaigns, their events, the hold, and how it is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from npuprof import __version__
from npuprof.campaign.hold import default_device, devices, status_of
from npuprof.campaign.runner import new_run_id
from npuprof.daemon import models
from npuprof.daemon.events import stream
from npuprof.daemon.journal import tell
from npuprof.daemon.peers import peer_of
from npuprof.daemon.queue import ENDED, Entry, QueueFull
from npuprof.daemon.rules import Forbidden, admit
from npuprof.daemon.supervise import Supervisor
from npuprof.errors import NpuprofError
from npuprof.model.instants import rfc3339
from npuprof.settings import Settings

_BODY_LIMIT = 65536


class Refused(Exception):
    """A request that is not carried out: the status, and one sentence."""

    def __init__(self, status: int, text: str, **more: Any) -> None:
        self.status, self.more = status, more
        super().__init__(text)


def make_app(supervisor: Supervisor, settings: Settings) -> FastAPI:
    """Everything under /v1. `supervisor.run` runs for as long as the app does."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(supervisor.run())
        app.state.supervisor_task = task
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app = FastAPI(
        title="npuprofd",
        version=__version__,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    _errors(app)
    queue = supervisor.queue

    def known(run_id: str) -> Entry:
        entry = queue.get(run_id)
        if entry is None:
            raise Refused(404, f"no campaign {run_id!r}; see: npuprof queue")
        return entry

    refusals: dict[int | str, dict[str, Any]] = {
        c: {"model": models.Problem} for c in (400, 403, 404, 409, 413, 422, 507)
    }

    @app.post("/v1/campaigns", status_code=201, response_model=models.Submitted, responses=refusals)
    async def submit(body: models.CampaignRequest, request: Request) -> Any:
        peer = peer_of(request)
        try:
            admit(body, settings.daemon.targets, settings.daemon.directories)
        except Forbidden as e:
            raise Refused(403, str(e), rule=e.rule) from None
        run_id = new_run_id(time.time())
        queue.add(run_id, peer.uid, peer.user, body.model_dump_json())
        tell("accepted", f"accepted from {peer.user}: {body.reason or 'no reason given'}", run_id, user=peer.user)
        entry = known(run_id)
        position = queue.position(entry)
        supervisor.poke()
        return {"id": run_id, "position": position}

    @app.get("/v1/campaigns", response_model=models.Campaigns)
    async def campaigns() -> Any:
        return {"campaigns": [_described(e, supervisor) for e in queue.open_ones()]}

    @app.get("/v1/campaigns/{run_id}", response_model=models.CampaignWithRecord, responses=refusals)
    async def campaign(run_id: str) -> Any:
        entry = known(run_id)
        return {**_described(entry, supervisor), "record": _record(supervisor.runs, entry)}

    @app.delete("/v1/campaigns/{run_id}", response_model=models.Campaign, responses=refusals)
    async def cancel(run_id: str, request: Request) -> Any:
        entry, peer = known(run_id), peer_of(request)
        if peer.uid not in (0, entry.uid):
            raise Refused(
                403, f"campaign {run_id} is {entry.user}'s: its owner or root cancels it", rule="owner or root"
            )
        if entry.state in ENDED:
            raise Refused(409, f"campaign {run_id} has ended: {entry.state}")
        await supervisor.cancel(entry)
        return _described(known(run_id), supervisor)

    @app.get("/v1/campaigns/{run_id}/events", response_model=None, responses=refusals)
    async def events(run_id: str, request: Request) -> StreamingResponse:
        entry = known(run_id)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
        return StreamingResponse(stream(supervisor, entry, after), media_type="text/event-stream")

    @app.get("/v1/hold", response_model=models.HoldStatus, responses=refusals)
    async def hold() -> Any:
        directory = settings.hold.directory
        names = sorted({*(devices(directory) if directory.is_dir() else []), default_device()})
        return {"devices": status_of(directory, names)}

    @app.get("/v1/health", response_model=models.Health)
    async def health() -> Any:
        open_ones = queue.open_ones()
        running = next((e.id for e in open_ones if e.state == "running"), None)
        damaged = None if queue.damaged is None else str(queue.damaged)
        queued = sum(e.state == "queued" for e in open_ones)
        return {"status": "ok", "version": __version__, "running": running, "queued": queued, "damaged_queue": damaged}

    return app


def _errors(app: FastAPI) -> None:
    @app.middleware("http")
    async def limited(request: Request, call_next: Any) -> Any:
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _BODY_LIMIT or "transfer-encoding" in request.headers:
            return _problem(413, f"a request is at most {_BODY_LIMIT} bytes, with its length told")
        return await call_next(request)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return _problem(error.status, str(error), **error.more)

    @app.exception_handler(HTTPException)
    async def general(request: Request, error: HTTPException) -> JSONResponse:
        return _problem(error.status_code, str(error.detail))

    @app.exception_handler(QueueFull)
    async def full(request: Request, error: QueueFull) -> JSONResponse:
        return _problem(507, f"the queue cannot be written, nothing was accepted: {error}")

    @app.exception_handler(NpuprofError)
    async def unusable(request: Request, error: NpuprofError) -> JSONResponse:
        return _problem(409, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"] if p != "body")
        return _problem(422, f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}")


def _problem(status: int, text: str, **more: Any) -> JSONResponse:
    return JSONResponse({"error": {"message": text, "rule": more.get("rule")}}, status)


def _described(entry: Entry, supervisor: Supervisor) -> dict[str, Any]:
    position = supervisor.queue.position(entry)
    request = json.loads(entry.request)
    return {
        "id": entry.id,
        "state": entry.state,
        "position": position,
        "user": entry.user,
        "reason": request.get("reason", ""),
        "submitted": rfc3339(entry.submitted),
        "began": None if entry.began is None else rfc3339(entry.began),
        "ended": None if entry.ended is None else rfc3339(entry.ended),
        "expected_start": _expected(entry, position, supervisor),
        "exit_code": entry.exit_code,
        "detail": entry.detail,
        "request": request,
    }


def _expected(entry: Entry, position: int | None, supervisor: Supervisor) -> str | None:
    """By how long the last campaigns took; null without any to go by."""
    took = supervisor.queue.recent_seconds()
    if entry.state != "queued" or position is None or not took:
        return None
    usual = median(took)
    spent = 0.0
    current = supervisor.current
    if current is not None and current.entry.began is not None:
        spent = min(usual, time.time() - current.entry.began)
    return rfc3339(time.time() + max(0.0, position * usual - spent))


def _record(runs: Path, entry: Entry) -> Any:
    try:
        return json.loads((runs / f"{entry.id}.json").read_bytes())
    except (OSError, ValueError):
        return None
