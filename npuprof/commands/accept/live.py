"""`npuprof accept live`: record and replay on two live servers."""

from __future__ import annotations

from pathlib import Path

import click

from npuprof.commands.accept.held import hold_options, holding, under_site_hold
from npuprof.commands.accept.record import make_recording
from npuprof.commands.accept.replay import play_and_print
from npuprof.commands.accept.shared import numbers, read_prompts, save, server_url, teller, text_options, writable
from npuprof.commands.options import config_option, configuration, debug_option, json_option, quiet_option


@click.command()
@click.option("--url", required=True, callback=server_url, help="The target's server.")
@click.option("--draft", required=True, callback=server_url, help="The drafter's server.")
@text_options(min_tokens=1)
@click.option("--k", "ks", required=True, callback=numbers, help="Drafts a round, like 1,2,4,7.")
@click.option("--rule", type=click.Choice(["reference", "llama-server"]), default="reference", show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Write the recording with every proposal received.")
@click.option("--controls", is_flag=True, help="Run the control arms too, at the smallest k.")
@click.option("--ignore-eos", is_flag=True, help="Go on behind the end of the text; recorded.")
@hold_options
@json_option
@config_option
@quiet_option
@debug_option
def live(
    url: str,
    draft: str,
    prompts_file: Path,
    tokens: int,
    ks: list[int],
    rule: str,
    keep: Path | None,
    controls: bool,
    ignore_eos: bool,
    device: str | None,
    hold_timeout: float | None,
    reason: str,
    as_json: bool,
    config_file: Path | None,
    quiet: bool,
) -> int:
    """Record the target twice under the ticket, then, without it, let the drafter propose behind every prefix.

    Example: npuprof accept live --url http://127.0.0.1:8080 --draft http://127.0.0.1:8081 --prompts p.json --tokens 40 --k 4
    """
    from npuprof.accept.checks import check_drafter
    from npuprof.accept.drafters import ServerDrafter
    from npuprof.accept.keep import as_text
    from npuprof.accept.server import TokenServer
    from npuprof.commands.key import provide_key

    writable(keep, "--keep")
    prompts = read_prompts(prompts_file)
    config = configuration(config_file)
    code = under_site_hold(config, device, reason)
    if code is not None:
        return code
    provide_key(config.settings)
    say = teller(quiet or as_json)
    with holding(config, device, reason, hold_timeout, quiet=quiet or as_json) as held:
        recording = make_recording(held, url, prompts, tokens, 2, None, None, None, ignore_eos=ignore_eos, say=say)
    if keep is not None:
        # What was recorded is kept even if the drafter then fails.
        save(keep, as_text(recording), "--keep")
    server = TokenServer(draft, say)
    try:
        check_drafter(server, recording, ks)
        about = {"file": None if keep is None else str(keep), "target": recording.target.get("model")}
        drafter = ServerDrafter(server, recording.ignores_eos)
        return play_and_print(recording, about, drafter, server, ks, rule, 1, keep, controls, as_json, quiet)
    finally:
        server.close()
