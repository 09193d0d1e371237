"""One campaign in a process of its own, which outlives the daemon: it takes the ticket, measures, and writes the spool."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from npuprof.daemon.journal import tell
from npuprof.daemon.spool import SpoolWriter
from npuprof.errors import INTERNAL, NOT_TRUSTED, OK, NpuprofError
from npuprof.model.events import Event, Finished, PassDone, Started, Waiting
from npuprof.model.wire import to_wire


class _Job:
    """What the daemon asked for, in one line on standard input."""

    def __init__(self, line: bytes) -> None:
        data: dict[str, Any] = json.loads(line)
        self.run_id = str(data["id"])
        self.request: dict[str, Any] = data["request"]
        self.user = str(data["user"])
        self.runs = Path(data["runs"])
        self.spool = Path(data["spool"])
        self.config = Path(data["config"]) if data.get("config") else None


def work(line: bytes) -> int:
    """Runs the campaign of one line; the exit code is that of `npuprof run`."""
    # Whoever started the daemon may have it ignore this; a campaign must be cancellable from here on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    job = _Job(line)
    if (job.runs / f"{job.run_id}.json").exists():
        # Started so late that the campaign has been run by another one.
        return OK
    try:
        spool = SpoolWriter(job.spool)
    except FileExistsError:
        return OK
    # For whatever the campaign starts: a server's log or a target may name the run that it is of.
    os.environ["NPUPROF_RUN"] = job.run_id
    begun = {"pid": os.getpid(), "id": job.run_id, "user": job.user, "request": job.request}
    spool.write({"event": "begun", "data": begun})
    code, detail = INTERNAL, ""
    try:
        code, detail = _campaign(job, spool)
    except NpuprofError as e:
        code, detail = e.exit_code, str(e)
    except KeyboardInterrupt:
        code, detail = 130, "cancelled before it began to measure"
    except Exception as e:  # noqa: BLE001 - a bug in a worker is told in its campaign, not lost with it
        detail = f"internal error: {type(e).__name__}: {e}"
    spool.write({"event": "ended", "data": {"exit_code": code, "detail": detail}})
    tell("ended", f"the campaign ended with code {code}{': ' + detail if detail else ''}", job.run_id)
    spool.close()
    return code


def _campaign(job: _Job, spool: SpoolWriter) -> tuple[int, str]:
    from npuprof.campaign.runner import Campaign
    from npuprof.commands.evidence import evidence_for
    from npuprof.commands.key import provide_key
    from npuprof.commands.place import place_of
    from npuprof.model.request import Request
    from npuprof.settings import load_settings

    config = load_settings(job.config)
    request = Request.model_validate(job.request)
    environment = None
    if request.target == "xrt":
        from npuprof.commands.plan import verified_environment

        environment = verified_environment(Path(str(request.plan)))
    elif request.target == "serve":
        provide_key(config.settings)

    def observe(event: Event) -> None:
        line = to_wire(event)
        if line is not None:
            spool.write(line)
        _story(job.run_id, event)

    place = place_of(config, job.runs)
    campaign = Campaign(request, place, observe, evidence_for(config), environment, run_id=job.run_id, user=job.user)

    def interrupted(number: int, frame: object) -> None:
        del number, frame
        if not campaign.interrupt():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    outcome = campaign.run()
    if outcome.problem is not None:
        return outcome.problem.exit_code, str(outcome.problem)
    if outcome.record.ending.how == "interrupted":
        return 130, "cancelled"
    return OK if outcome.record.trust.trusted else NOT_TRUSTED, ""


def _story(run_id: str, event: Event) -> None:
    """The facts that the journal keeps; between passes, as every event is."""
    if isinstance(event, Started):
        tell(
            "granted", f"the ticket is granted, measuring on {event.target.device}", run_id, device=event.target.device
        )
    elif isinstance(event, Waiting):
        tell("began", f"waiting for {event.device}, held by pid {event.pid} ({event.user})", run_id)
    elif isinstance(event, PassDone) and event.measured.void_reason:
        tell("void", f"pass {event.measured.seq} is void: {event.measured.void_reason}", run_id)
    elif isinstance(event, Finished):
        for reason in event.record.trust.reasons:
            tell("ended", f"not trusted: {reason.code}: {reason.text}", run_id)


def main() -> int:
    """Standard input is the daemon's line: a pipe, or the connection that a socket unit hands over."""
    line = sys.stdin.buffer.readline()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return work(line)


if __name__ == "__main__":
    sys.exit(main())
