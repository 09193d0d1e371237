"""`npuprof watch`: a queued campaign as `run` would show it."""

from __future__ import annotations

from typing import Any

import click

from npuprof.commands.options import debug_option, json_option, print_json, quiet_option
from npuprof.errors import DEVICE, NpuprofError, UsageProblem


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@click.option("--once", is_flag=True, help="Show the campaign as it is now, and end.")
@click.option("--no-live", is_flag=True, help="Plain lines on a terminal too.")
@json_option
@quiet_option
@debug_option
def watch(run_id: str | None, once: bool, no_live: bool, as_json: bool, quiet: bool) -> int:
    """Watch a campaign to its end, with the live table and the report of `run`; exits as the campaign does.

    Without an ID: the running one, else the next. Comes back by itself when the daemon restarts.

    Example: npuprof watch
    """
    from urllib.parse import quote

    from npuprof.daemon.client import Daemon

    daemon = Daemon()
    try:
        chosen = run_id or _first(daemon)
        path = f"/v1/campaigns/{quote(chosen, safe='')}"
        if once:
            return _once(daemon.ask("GET", path), as_json)
        _follow(daemon, chosen, live=not no_live, silent=as_json or quiet)
        return _ended(daemon.ask("GET", path), as_json)
    finally:
        daemon.close()


def _first(daemon: Any) -> str:
    open_ones = daemon.ask("GET", "/v1/campaigns")["campaigns"]
    if not open_ones:
        raise UsageProblem("nothing is running and nothing waits; queue one with: npuprof submit")
    found: str = open_ones[0]["id"]
    return found


def _follow(daemon: Any, run_id: str, *, live: bool, silent: bool) -> None:
    from npuprof.commands.watcher import watcher
    from npuprof.model.events import Note
    from npuprof.model.wire import from_wire

    with watcher(live=live, silent=silent) as observe:
        shown = 0
        for event in daemon.events(run_id):
            data = event.data
            single = [{"event": "pass", "data": {"measured": data}}] if event.kind == "pass" else None
            lines = data.get("events", []) if single is None else single
            if data.get("reset"):
                # What was shown before the connection was lost is in the state once more.
                lines, shown = lines[shown:], len(lines)
            else:
                shown += len(lines)
            if data.get("state") == "queued":
                observe(Note(f"{run_id} is queued, {data['position']} ahead"))
            for line in lines:
                known = from_wire(line)
                if known is not None:
                    observe(known)


def _once(campaign: dict[str, Any], as_json: bool) -> int:
    from npuprof.render.text import printable

    if as_json:
        print_json(campaign)
        return 0
    place = "" if campaign["position"] in (None, 0) else f", {campaign['position']} ahead"
    click.echo(printable(f"{campaign['id']}: {campaign['state']}{place}, {campaign['user']}, {campaign['reason']}"))
    return 0


def _ended(campaign: dict[str, Any], as_json: bool) -> int:
    """The report, and the campaign's own exit code."""
    from npuprof.model.record import Record
    from npuprof.render.text import printable

    code = campaign["exit_code"]
    if as_json:
        print_json(campaign["record"] if campaign["record"] is not None else campaign)
    elif campaign["record"] is not None:
        from rich.console import Console

        from npuprof.render.report import Report

        Report(Console(highlight=False)).render(Record.model_validate(campaign["record"]))
    if campaign["state"] != "done":
        click.echo(printable(f"npuprof: {campaign['id']}: {campaign['state']}: {campaign['detail']}"), err=True)
    if code is None:
        raise NpuprofError(f"{campaign['id']} ended without an exit code")
    return int(code) if campaign["state"] != "aborted" else DEVICE
