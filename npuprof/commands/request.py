"""A request out of a file and flags, flags winning, the configuration filling in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from npuprof.commands.options import F
from npuprof.errors import UsageProblem
from npuprof.model.request import Request
from npuprof.settings import CampaignSettings
from npuprof.yamlfile import Loc, explain, load_yaml


def make_request(defaults: CampaignSettings, file: Path | None, flags: dict[str, Any]) -> Request:
    """UsageProblem names the flag, or the file, line and key, that is wrong."""
    base = defaults.model_dump()
    given = {k: v for k, v in flags.items() if v is not None}
    data: dict[str, Any] = {}
    lines: dict[Loc, int] = {}
    if file is not None:
        data, lines = load_yaml(file)
    try:
        return Request.model_validate({**base, **data, **given})
    except ValidationError as e:
        first = e.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else first["msg"].removeprefix("Value error, ").split(":")[0]
        if key in given or not first["loc"]:
            reason = first["msg"].removeprefix("Value error, ").removeprefix(f"{key}: ")
            raise UsageProblem(f"--{key.replace('_', '-')}: {reason}; see: npuprof run --help") from None
        raise explain(e, file if key in data and file is not None else "configuration: campaign", lines) from None


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    del ctx
    if value is None:
        return None
    try:
        return [int(v) for v in value.split(",")]
    except ValueError:
        raise click.BadParameter("must be whole numbers with commas between them, like 2,5,16", param=param) from None


_OPTIONS = (
    click.option(
        "--target", help="reference, xrt (--plan), serve (--url), or MODULE:FACTORY for a target of your own."
    ),
    click.option("--rows", callback=_numbers, help="Rows of the passes, like 2,3,5,8,16,17."),
    click.option("--start", callback=_numbers, help="Positions of the first row, like 0,512."),
    click.option("--repeats", type=int, help="Rounds; each visits every condition twice."),
    click.option("--steps", type=int, help="Step samples a visit."),
    click.option("--warmup", type=int, help="Passes a condition that are run first and never counted."),
    click.option("--find-cliff", is_flag=True, default=None, help="Bisect the cliff to adjacent rows."),
    click.option("--seed", type=int, help="Of the shuffled orders; recorded."),
    click.option("--budget", type=float, help="Seconds of device time: plan the rounds from a pilot."),
    click.option("--device", help="The device whose hold is taken, like accel0."),
    click.option("--hold-timeout", type=float, help="Seconds to wait for the hold; 0: do not wait."),
    click.option("--reason", help="Shown to those who wait, and recorded."),
    click.option("--plan", help="The pass plan of the target xrt."),
    click.option("--url", help="The server of the target serve."),
    click.option("--log", help="Where its pass lines are: file:PATH, journal:UNIT, unix:PATH, fifo:PATH, stderr."),
    click.option("--spawn", help="Start this server for the campaign, and end it with it."),
    click.option("--launch-stamps", is_flag=True, default=None, help="Keep the stamps of every launch (xrt)."),
    click.option(
        "--phases",
        is_flag=True,
        default=None,
        help="Split the device wait by the driver's tracepoints (root); a campaign of its own.",
    ),
    click.option("--require-power-mode", help="Refuse to start unless the NPU is in this mode, like performance."),
)


def request_options(f: F) -> F:
    """The flags of a request, the same for `run` and `submit`."""
    for option in reversed(_OPTIONS):
        f = option(f)
    return f
