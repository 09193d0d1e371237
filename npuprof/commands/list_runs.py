"""`npuprof list`: the records, oldest first."""

from __future__ import annotations

from typing import Any

import click

from npuprof.commands.options import debug_option, json_option, print_json, stores


@click.command("list")
@json_option
@debug_option
def list_runs(as_json: bool) -> int:
    """One line a record: id, target, rows, trust, reason.

    Example: npuprof list
    """
    from npuprof.errors import UsageProblem
    from npuprof.render.text import printable
    from npuprof.store.runs import read_all, run_files

    rows: list[dict[str, Any]] = []
    for file, found in read_all(run_files(stores())):
        if isinstance(found, UsageProblem):
            rows.append({"id": file.stem, "problem": str(found)})
            continue
        rows.append(
            {
                "id": found.id,
                "device": found.target.device,
                "simulated": found.target.simulated,
                "rows": found.request.rows,
                "absolute": found.trust.absolute,
                "ratios": found.trust.ratios,
                "reason": found.ticket.reason,
            }
        )
    if as_json:
        print_json({"runs": rows})
        return 0
    for row in rows:
        if "problem" in row:
            click.echo(printable(f"{row['id']}  {row['problem']}"))
            continue
        measured = ",".join(map(str, row["rows"]))
        trust = (
            "trusted"
            if row["absolute"] == row["ratios"] == "trusted"
            else f"ms {row['absolute']}, ratios {row['ratios']}"
        )
        click.echo(printable(f"{row['id']}  {row['device']}  rows {measured}  {trust}  {row['reason']}".rstrip()))
    if not rows:
        click.echo("no record yet; make one with: npuprof run")
    return 0
