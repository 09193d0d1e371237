"""`npuprof args`: a record's figures as flags for acceptance tooling."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, find, json_option, print_json, run_argument
from npuprof.errors import NOT_TRUSTED, OK, UsageProblem


@click.command()
@run_argument
@click.option("--rows", type=click.IntRange(min=2), help="Rows of the pass.")
@click.option("--k", type=click.IntRange(min=1), help="Drafts: a pass of k+1 rows.")
@click.option("--start", type=click.IntRange(min=0), help="Position of the first row (default: the first asked).")
@json_option
@debug_option
def args(run: str, rows: int | None, k: int | None, start: int | None, as_json: bool) -> int:
    """One line for a shell: --pass-ms and --step-ms, the medians of RUN.

    Rows that were not measured take the next larger measured rows below the cliff, and standard error says so.

    Example: npuprof args latest --k 4
    """
    from npuprof.render.text import ms, printable
    from npuprof.stats.derive import contradictions
    from npuprof.stats.lookup import NotMeasured, look_up

    if (rows is None) == (k is None):
        raise UsageProblem("exactly one of --rows and --k is needed, as in: npuprof args latest --k 4")
    wanted = rows if rows is not None else (k or 0) + 1
    record = find(run)
    trust, differs = contradictions(record)
    try:
        found = look_up(record, wanted, start)
    except NotMeasured as e:
        raise UsageProblem(f"{record.id}: {e}") from None
    if as_json:
        print_json(found.as_dict() | {"trust": trust.model_dump()})
    else:
        click.echo(f"--pass-ms {ms(found.pass_ms)} --step-ms {ms(found.step_ms)}")
    notes = [
        f"rows={wanted} was not measured: the pass of {found.rows} rows stands for it, an upper bound"
        if found.upper_bound_of is not None
        else "",
        "the pass is a prefill, whose LM head may run for fewer rows than a verify pass needs: it may understate one"
        if found.may_understate
        else "",
        *(f"not trusted: {r.text}" for r in trust.reasons),
        *(f"not trusted: differs from its passes: {d}" for d in differs),
    ]
    for note in filter(None, notes):
        click.echo(f"npuprof: {printable(note)}", err=True)
    return OK if trust.trusted and not differs else NOT_TRUSTED
