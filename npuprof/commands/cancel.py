"""`npuprof cancel`: a campaign is taken out of the queue, or ended."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, json_option, print_json


@click.command()
@click.argument("run_id", metavar="ID")
@json_option
@debug_option
def cancel(run_id: str, as_json: bool) -> int:
    """Take a queued campaign out, or end a running one after its running pass (once more: at once). Its owner or root may.

    Example: npuprof cancel 20261130T033852Z-9927a6
    """
    from urllib.parse import quote

    from npuprof.daemon.client import Daemon
    from npuprof.render.text import printable

    daemon = Daemon()
    try:
        answer = daemon.ask("DELETE", f"/v1/campaigns/{quote(run_id, safe='')}")
    finally:
        daemon.close()
    if as_json:
        print_json(answer)
    else:
        click.echo(printable(f"{answer['id']}: {answer['state']}"))
    return 0
