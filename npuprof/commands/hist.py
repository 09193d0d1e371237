"""`npuprof hist`: histograms of a record's wall times."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, find, json_option, print_json, run_argument


@click.command()
@run_argument
@json_option
@debug_option
def hist(run: str, as_json: bool) -> int:
    """One histogram of wall times a condition of RUN, measured passes only.

    Example: npuprof hist latest
    """
    from npuprof.render.histogram import histogram
    from npuprof.render.text import printable

    walls: dict[str, list[float]] = {}
    for p in find(run).passes:
        if p.is_timed:
            walls.setdefault(p.condition, []).append(p.wall_ms)
    if as_json:
        print_json({"wall_ms": walls})
        return 0
    from rich.console import Console

    width = Console().width
    for name, values in walls.items():
        click.echo(f"{printable(name)}  n={len(values)}  ms")
        for line in histogram(values, width):
            click.echo(line)
    if not walls:
        click.echo("no pass was measured")
    return 0
