"""`npuprof accept replay`: a drafter against a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npuprof.commands.accept.shared import numbers, save, server_url, teller, writable
from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json, quiet_option
from npuprof.errors import NOT_TRUSTED, OK, UsageProblem

if TYPE_CHECKING:
    from npuprof.accept.drafters import Drafter
    from npuprof.accept.server import TokenServer
    from npuprof.model.acceptance import Recording
    from npuprof.model.replay import Replay


@click.command()
@click.option(
    "--recording", "recording_file", required=True, type=click.Path(path_type=Path), help="What accept record wrote."
)
@click.option("--draft", callback=server_url, help="A live drafter.")
@click.option(
    "--draft-recorded", type=click.Path(path_type=Path), help="A recording that holds its proposals (see --keep)."
)
@click.option("--drafter", help="Which drafter of --draft-recorded.")
@click.option("--k", "ks", required=True, callback=numbers, help="Drafts a round, like 1,2,4,7.")
@click.option("--rule", type=click.Choice(["reference", "llama-server"]), default="reference", show_default=True)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Replay so often; shows what moved."
)
@click.option("--keep", type=click.Path(path_type=Path), help="Write the recording with every proposal received.")
@click.option("--controls", is_flag=True, help="Run the control arms too, at the smallest k.")
@json_option
@config_option
@quiet_option
@debug_option
def replay(
    recording_file: Path,
    draft: str | None,
    draft_recorded: Path | None,
    drafter: str | None,
    ks: list[int],
    rule: str,
    repeat: int,
    keep: Path | None,
    controls: bool,
    as_json: bool,
    config_file: Path | None,
    quiet: bool,
) -> int:
    """Count what a drafter's proposals are worth: it proposes behind every committed prefix of the recording.

    Takes no ticket: the target does not run. tokens/round has the target's own token in it.

    Example: npuprof accept replay --recording rec.json --draft http://127.0.0.1:8081 --k 1,2,4,7
    """
    from npuprof.accept.drafters import RecordedDrafter, ServerDrafter
    from npuprof.accept.keep import read_recording
    from npuprof.commands.key import provide_key

    if (draft is None) == (draft_recorded is None):
        raise UsageProblem("exactly one of --draft URL and --draft-recorded FILE is needed")
    if drafter is not None and draft is not None:
        raise UsageProblem("--drafter names a drafter of --draft-recorded; a live --draft has only one")
    writable(keep, "--keep")
    config = configuration(config_file)
    recording, digest = read_recording(recording_file, "--recording")
    about = {"file": str(recording_file), "sha256": digest, "target": recording.target.get("model")}
    if draft_recorded is not None:
        held = read_recording(draft_recorded, "--draft-recorded")[0]
        return play_and_print(
            recording, about, RecordedDrafter(held, drafter), None, ks, rule, repeat, keep, controls, as_json, quiet
        )
    from npuprof.accept.checks import check_drafter
    from npuprof.accept.server import TokenServer

    provide_key(config.settings)
    server = TokenServer(str(draft), teller(quiet))
    try:
        check_drafter(server, recording, ks)
        live = ServerDrafter(server, recording.ignores_eos)
        return play_and_print(recording, about, live, server, ks, rule, repeat, keep, controls, as_json, quiet)
    finally:
        server.close()


def play_and_print(
    recording: Recording,
    about: dict[str, Any],
    drafter: Drafter,
    server: TokenServer | None,
    ks: list[int],
    rule: str,
    repeat: int,
    keep: Path | None,
    controls: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Replays, prints, and gives the exit code."""
    from npuprof.accept.keep import as_text, with_proposals
    from npuprof.accept.session import Session

    session = Session(recording, drafter, server, ks, rule, teller(quiet or as_json))
    result = session.run(repeat, controls=controls, about=about)
    if keep is not None:
        kept = with_proposals(recording, drafter.name, drafter.describe(), ks, session.played)
        save(keep, as_text(kept), "--keep")
    show(result, as_json)
    return OK if result.trust is None or result.trust.trusted else NOT_TRUSTED


def show(result: Replay, as_json: bool) -> None:
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    from npuprof.render.acceptance import replay_lines

    for line in replay_lines(result):
        click.echo(line)
