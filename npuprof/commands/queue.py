"""`npuprof queue`: what is running and what waits."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, json_option, print_json


@click.command()
@json_option
@debug_option
def queue(as_json: bool) -> int:
    """The running campaign and those that wait, with owner, reason and expected start (by how long the last ones took).

    Example: npuprof queue
    """
    from npuprof.daemon.client import Daemon

    daemon = Daemon()
    try:
        answer = daemon.ask("GET", "/v1/campaigns")
    finally:
        daemon.close()
    if as_json:
        keys = ("id", "state", "position", "user", "reason", "submitted", "expected_start")
        print_json({"campaigns": [{k: c[k] for k in keys} for c in answer["campaigns"]]})
        return 0
    from rich.console import Console

    from npuprof.render.queue import queue_lines

    for line in queue_lines(answer["campaigns"], Console().width):
        click.echo(line)
    return 0
