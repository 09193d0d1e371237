"""`npuprof show`: a record's report."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, find, json_option, print_json, run_argument


@click.command()
@run_argument
@json_option
@debug_option
def show(run: str, as_json: bool) -> int:
    """Print the report of RUN: an id, a unique prefix of one, `latest`, or a file.

    Example: npuprof show latest
    """
    record = find(run)
    if as_json:
        print_json(record.model_dump(mode="json"))
        return 0
    from rich.console import Console

    from npuprof.render.report import Report

    Report(Console(highlight=False)).render(record)
    return 0
