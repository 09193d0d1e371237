"""`npuprof check`: what a record is worth, derived again from its passes."""

from __future__ import annotations

import click

from npuprof.commands.options import debug_option, find, json_option, print_json, run_argument
from npuprof.errors import NOT_TRUSTED, OK


@click.command()
@run_argument
@json_option
@debug_option
def check(run: str, as_json: bool) -> int:
    """Derive RUN's summary and trust again from its raw passes, and say what speaks against it and what to do.

    Exits with 4 if it is not trusted, or states anything that its passes do not bear out.

    Example: npuprof check latest
    """
    from npuprof.render.report import trust_lines
    from npuprof.render.text import printable
    from npuprof.stats.advice import advice
    from npuprof.stats.derive import contradictions

    record = find(run)
    trust, differs = contradictions(record)
    hints = advice(record)
    if as_json:
        print_json({"id": record.id, "trust": trust.model_dump(), "differs": differs, "advice": hints})
    else:
        for line in [*trust_lines(trust), *(f"differs from its passes: {d}" for d in differs), *hints]:
            click.echo(printable(line))
    return OK if trust.trusted and not differs else NOT_TRUSTED
