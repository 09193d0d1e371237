"""`npuprof run`: one campaign in the foreground."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json, quiet_option
from npuprof.commands.request import request_options
from npuprof.errors import UsageProblem

if TYPE_CHECKING:
    from npuprof.campaign.runner import Campaign
    from npuprof.model.record import Record


@click.command()
@click.argument("request_file", metavar="[REQUEST.yaml]", required=False, type=click.Path(path_type=Path))
@request_options
@click.option("--out", type=click.Path(path_type=Path), help="A copy of the record.")
@click.option("--no-live", is_flag=True, help="Plain lines on a terminal too.")
@json_option
@config_option
@quiet_option
@debug_option
def run(
    request_file: Path | None,
    out: Path | None,
    no_live: bool,
    as_json: bool,
    config_file: Path | None,
    quiet: bool,
    **flags: Any,
) -> int:
    """Measure decode steps and passes of M rows under the device hold, and print what each millisecond was.

    A REQUEST.yaml holds the same names as the flags, dashes as underscores; flags win over it.

    Example: npuprof run --target reference --rows 2,5,16,17 --reason "verify cost of pack X"
    """
    from npuprof.campaign.runner import Campaign
    from npuprof.commands.evidence import evidence_for
    from npuprof.commands.key import provide_key
    from npuprof.commands.place import place_of
    from npuprof.commands.request import make_request
    from npuprof.commands.watcher import watcher
    from npuprof.render.text import printable
    from npuprof.store.runs import user_runs

    config = configuration(config_file)
    settings = config.settings
    request = make_request(settings.campaign, request_file, flags)
    if out is not None and not out.parent.is_dir():
        raise UsageProblem(f"--out {out}: there is no folder {out.parent}; make it, or name another place")
    environment = None
    if request.target == "xrt":
        from npuprof.commands.plan import verified_environment

        environment = verified_environment(Path(str(request.plan)))
    elif request.target == "serve":
        provide_key(settings)
    place = place_of(config, user_runs())
    with watcher(live=not no_live, silent=as_json or quiet) as observe:
        campaign = Campaign(request, place, observe, evidence_for(config), environment)
        with _interrupts(campaign) as received:
            outcome = campaign.run()
    problem = outcome.problem
    if out is not None:
        from npuprof.store.runs import write_whole

        try:
            write_whole(out, outcome.record.model_dump_json(indent=1) + "\n")
        except OSError as e:
            problem = problem or UsageProblem(f"--out {out}: cannot be written: {e.strerror}; see: npuprof show latest")
    _print(outcome.record, as_json)
    if problem is not None and as_json:
        # The record is the one object on standard output; the problem is told beside it.
        click.echo(f"npuprof: {printable(str(problem))}", err=True)
        return problem.exit_code
    if problem is not None:
        raise problem
    if received:
        return 128 + received[0]
    from npuprof.commands.options import trust_code

    return trust_code(outcome.record)


def _print(record: Record, as_json: bool) -> None:
    if as_json:
        print_json(record.model_dump(mode="json"))
        return
    from rich.console import Console

    from npuprof.render.report import Report

    Report(Console(highlight=False)).render(record)


class _interrupts:
    """While a campaign measures, Ctrl-C and SIGTERM end it after the running pass; the list holds what was received."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._received: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> list[int]:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._heard)
        return self._received

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, frame: object) -> None:
        del frame
        if not self._campaign.interrupt():
            raise KeyboardInterrupt
        self._received.append(number)
