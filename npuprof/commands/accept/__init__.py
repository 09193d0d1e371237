"""`npuprof accept`: acceptance tooling."""

from __future__ import annotations

import importlib

import click

_VERBS = {
    "record": "A target's greedy text, twice, under the ticket.",
    "replay": "A drafter's proposals played against a recording.",
    "live": "Record and replay in one go, on two live servers.",
    "loop": "Tokens per second of an engine with and without speculation.",
    "verdict": "Does it pay: acceptance against the bar.",
}


class _Accept(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(f"npuprof.commands.accept.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_Accept)
def accept() -> None:
    """Whether a drafter's tokens pay for a speculative round on this machine.

    Example: npuprof accept replay --recording rec.json --draft http://127.0.0.1:8081 --k 4
    """
