"""The ticket around work on live servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from npuprof.commands.options import F
from npuprof.settings import Configuration

if TYPE_CHECKING:
    from npuprof.campaign.hold import Claim
    from npuprof.campaign.window import Window

_UNDER = "NPUPROF_UNDER_SITE_HOLD"


def hold_options(f: F) -> F:
    """`--device`, `--hold-timeout`, `--reason`."""
    f = click.option("--reason", default="", help="Shown to those who wait, and recorded.")(f)
    f = click.option(
        "--hold-timeout", type=click.FloatRange(min=0), help="Seconds to wait for the hold; 0: do not wait."
    )(f)
    return click.option("--device", help="The device whose hold is taken, like accel0.")(f)


def under_site_hold(config: Configuration, device: str | None, reason: str) -> int | None:
    """Where the site has its own hold command: this very command again under it, and its exit code; None elsewhere."""
    command = config.settings.hold.command
    if not command or os.environ.get(_UNDER):
        return None
    from npuprof.campaign.hold import default_device
    from npuprof.campaign.under import run_under

    os.environ[_UNDER] = "1"
    fill = {"device": device or default_device(), "reason": reason}
    return run_under(None, [*(w.format_map(fill) for w in command), sys.executable, "-m", "npuprof", *sys.argv[1:]])


@contextmanager
def holding(
    config: Configuration, device: str | None, reason: str, timeout: float | None, *, quiet: bool
) -> Iterator[Window]:
    """The ticket with evidence; who is waited for is told on standard error."""
    from npuprof.campaign.window import window
    from npuprof.commands.accept.shared import teller
    from npuprof.commands.evidence import evidence_for
    from npuprof.commands.place import place_of
    from npuprof.store.runs import user_runs

    say = teller(quiet)

    def tell(holder: Claim, ahead: int) -> None:
        say(f"waiting: held by pid {holder.pid} ({holder.user}) since {holder.since}, {ahead} ahead")

    place = place_of(config, user_runs())
    with window(place, device, reason, timeout, evidence_for(config), tell) as opened:
        yield opened
