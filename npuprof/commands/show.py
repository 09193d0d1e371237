"""`npuprof show`: a record's report."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, find, json_option, print_json, run_argument
from npuprof.errors import UsageProblem


@click.command()
@run_argument
@click.option("--phases", is_flag=True, help="What the device wait is made of, of a campaign with --phases.")
@json_option
@debug_option
def show(run: str, phases: bool, as_json: bool) -> int:
    """Print the report of RUN: an id, a unique prefix of one, `latest`, or a file.

    Example: npuprof show latest
    """
    record = find(run)
    if phases and record.phases is None:
        raise UsageProblem(f"{record.id} was recorded without driver events; make one with: sudo npuprof run --phases")
    if phases and as_json:
        print_json(record.phases)
        return 0
    if as_json:
        print_json(record.model_dump(mode="json"))
        return 0
    from rich.console import Console

    from npuprof.render.report import Report

    Report(Console(highlight=False)).render(record)
    if phases and record.phases is not None:
        from npuprof.render.phases import phases_lines

        for line in ["", *phases_lines(record.phases)]:
            click.echo(line)
    return 0
