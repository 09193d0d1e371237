"""`npuprof submit`: a campaign through the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json
from npuprof.commands.request import request_options


@click.command()
@click.argument("request_file", metavar="[REQUEST.yaml]", required=False, type=click.Path(path_type=Path))
@request_options
@json_option
@config_option
@debug_option
def submit(request_file: Path | None, as_json: bool, config_file: Path | None, **flags: Any) -> int:
    """Queue a campaign with the daemon and print its id; takes what `run` takes.

    Example: npuprof watch $(npuprof submit --rows 2,5,16,17 --reason "verify cost of pack X")
    """
    from npuprof.commands.request import make_request
    from npuprof.daemon.client import Daemon

    request = make_request(configuration(config_file).settings.campaign, request_file, flags)
    daemon = Daemon()
    try:
        answer = daemon.ask("POST", "/v1/campaigns", request.model_dump(mode="json"))
    finally:
        daemon.close()
    if as_json:
        print_json(answer)
    else:
        click.echo(answer["id"])
    return 0
