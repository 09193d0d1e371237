"""`npuprof trace`: driver phases out of a saved trace."""

from __future__ import annotations

from pathlib import Path

import click

from npuprof.commands.options import debug_option, json_option, print_json
from npuprof.errors import UsageProblem


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@debug_option
def trace(file: Path, as_json: bool) -> int:
    """Split the driver's part of each launch by its tracepoints: FILE is a saved trace_pipe, trace or `perf script` text.

    Phases a launch: queue, submit, device, complete, wake. A trace has no passes: `run --phases` joins them.

    Example: npuprof trace trace.txt
    """
    from npuprof.render.phases import phases_lines
    from npuprof.trace.analyse import analyse

    try:
        with file.open("rb") as stream:
            found = analyse(stream)
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
    if not found["launches"]:
        raise UsageProblem(
            f"{file}: has {found['events']} events and no job of the amdxdna driver; record with: npuprof run --phases, or "
            "trace-cmd record -e amdxdna (-e amdxdna_trace for the out-of-tree driver)"
        )
    if as_json:
        print_json(found)
    else:
        for line in phases_lines(found):
            click.echo(line)
    return 0
