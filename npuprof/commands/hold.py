"""`npuprof hold`: any command under the ticket, and who has it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json
from npuprof.render.text import printable

if TYPE_CHECKING:
    from npuprof.campaign.hold import Claim


@click.group()
def hold() -> None:
    """The hold on a device: first come first served, for as long as the command that has it lives.

    Example: npuprof hold run --reason "kernel bring-up" -- ./bench.sh
    """


@hold.command("run", context_settings={"ignore_unknown_options": False})
@click.option("--device", help="Which device; default: the first NPU.")
@click.option("--hold-timeout", type=click.FloatRange(min=0), help="Seconds to wait; 0: do not wait.")
@click.option("--reason", default="", help="Shown to those who wait.")
@click.argument("command", nargs=-1, required=True)
@config_option
@click.option("--quiet", is_flag=True, help="Do not say that the hold is waited for.")
@debug_option
def hold_run(
    device: str | None,
    hold_timeout: float | None,
    reason: str,
    command: tuple[str, ...],
    config_file: Path | None,
    quiet: bool,
) -> int:
    """Run COMMAND while holding the device; exits as it does.

    Example: npuprof hold run --hold-timeout 60 -- python bench.py
    """
    from npuprof.campaign.hold import Hold, default_device
    from npuprof.campaign.under import run_under

    settings = configuration(config_file).settings.hold
    name = device or default_device()
    if settings.command:
        prefix = [w.format_map({"device": name, "reason": reason}) for w in settings.command]
        return run_under(None, [*prefix, *command])

    def tell(holder: Claim, ahead: int) -> None:
        if not quiet:
            text = f"waiting for {name}: held by pid {holder.pid} ({holder.user}) since {holder.since}, {ahead} ahead"
            click.echo(f"npuprof: {printable(text)}", err=True)

    held = Hold(settings.directory, name).take(reason or " ".join(command), hold_timeout, tell)
    try:
        return run_under(held, command)
    finally:
        held.release()


@hold.command("status")
@click.option("--device", help="Only this device.")
@json_option
@config_option
@debug_option
def hold_status(device: str | None, as_json: bool, config_file: Path | None) -> int:
    """Who holds each device, since when and why, and who waits. Takes no lock.

    Example: npuprof hold status --json
    """
    from npuprof.campaign.hold import Hold, default_device, devices, is_enforced, status_of

    settings = configuration(config_file).settings.hold
    known = (
        devices(settings.directory) if settings.directory.is_dir() and os.access(settings.directory, os.R_OK) else []
    )
    names = [device] if device else sorted({*known, default_device()})
    if as_json:
        print_json({"devices": status_of(settings.directory, names)})
        return 0
    if settings.command:
        click.echo(f"this site's own hold is used: {printable(' '.join(settings.command))}; ask it who holds a device")
    for name in names:
        holder, waiters = Hold(settings.directory, name).status()
        kind = "enforced" if is_enforced(settings.directory, name) else "advisory"
        click.echo(printable(f"{name} ({kind}): {'free' if holder is None else _line(holder)}"))
        for i, w in enumerate(waiters, 1):
            click.echo(printable(f"  {i}. {_line(w)}"))
    return 0


def _line(claim: Claim) -> str:
    reason = f": {claim.reason}" if claim.reason else ""
    return f"pid {claim.pid} ({claim.user}) since {claim.since}{reason}"
