"""`npuprof export`: a record for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npuprof.commands.options import debug_option, run_argument, stores
from npuprof.errors import UsageProblem

if TYPE_CHECKING:
    from npuprof.trace.jobs import Job


@click.command()
@run_argument
@click.option("--format", "form", required=True, type=click.Choice(["perfetto"]), help="For ui.perfetto.dev.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to; default: standard output.")
@debug_option
def export(run: str, form: str, out: Path | None) -> int:
    """RUN's passes, launches, driver phases and kernel events on one time axis.

    Example: npuprof export latest --format perfetto --out run.perfetto.json
    """
    from npuprof.render.perfetto import perfetto
    from npuprof.store.runs import find_run, read_record, write_whole
    from npuprof.trace.analyse import name_of
    from npuprof.trace.phases import stages

    del form
    file = find_run(run, stores())
    record = read_record(file)
    jobs = _jobs(file.with_suffix(".trace"))
    text = json.dumps(perfetto(record, ((name_of(j), stages(j)) for j in jobs)))
    if out is None:
        click.echo(text)
        return 0
    try:
        write_whole(out, text + "\n")
    except OSError as e:
        raise UsageProblem(f"--out {out}: cannot be written: {e.strerror}") from e
    return 0


def _jobs(file: Path) -> list[Job]:
    """Of the trace that lies beside a record of `--phases`; none elsewhere."""
    from npuprof.trace.events import TraceText
    from npuprof.trace.jobs import Joiner

    if not file.exists():
        return []
    joiner = Joiner()
    found: list[Job] = []
    with file.open("rb") as stream:
        for events in TraceText().read(stream):
            joiner.feed(events)
            found += joiner.jobs()
    return [*found, *joiner.end()]
