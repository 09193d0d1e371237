"""`npuprof accept loop`: the end-to-end figure."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from npuprof.commands.accept.held import hold_options, holding, under_site_hold
from npuprof.commands.accept.shared import read_json, read_prompts, save, server_url, teller, text_options, writable
from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json, quiet_option
from npuprof.errors import NOT_TRUSTED, OK, UsageProblem


@click.command()
@click.option("--plain", required=True, callback=server_url, help="The engine without speculation.")
@click.option("--spec", required=True, callback=server_url, help="The same engine with it.")
@text_options(min_tokens=2)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Rounds; each runs every prompt twice on both.",
)
@click.option("--seed", type=int, help="Of the shuffled orders; recorded.")
@click.option(
    "--projection", type=click.Path(path_type=Path), help="A verdict saved by --out, to stand beside what is measured."
)
@click.option("--ignore-eos", is_flag=True, help="Go on behind the end of the text.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the JSON there.")
@hold_options
@json_option
@config_option
@quiet_option
@debug_option
def loop(
    plain: str,
    spec: str,
    prompts_file: Path,
    tokens: int,
    repeats: int,
    seed: int | None,
    projection: Path | None,
    ignore_eos: bool,
    out: Path | None,
    device: str | None,
    hold_timeout: float | None,
    reason: str,
    as_json: bool,
    config_file: Path | None,
    quiet: bool,
) -> int:
    """Tokens per second with and without speculation, in mirrored rounds under one ticket; the texts must be equal.

    This is a measured loop, HTTP and the prompt's pass included; a verdict's projection is arithmetic.

    Example: npuprof accept loop --plain http://127.0.0.1:8080 --spec http://127.0.0.1:8081 --prompts p.json --tokens 40
    """
    from npuprof.accept.loop import run_loop
    from npuprof.accept.record import target_of
    from npuprof.accept.server import TokenServer
    from npuprof.commands.key import provide_key
    from npuprof.render.loop import loop_lines
    from npuprof.servers.processes import listening_pids, uses_npu
    from npuprof.stats.trust import trust_of

    writable(out, "--out")
    prompts = read_prompts(prompts_file)
    projected = None if projection is None else _projection(projection)
    config = configuration(config_file)
    code = under_site_hold(config, device, reason)
    if code is not None:
        return code
    provide_key(config.settings)
    say = teller(quiet or as_json)
    chosen = secrets.randbits(32) if seed is None else seed
    with holding(config, device, reason, hold_timeout, quiet=quiet or as_json) as held:
        servers = {"plain": TokenServer(plain, say), "spec": TokenServer(spec, say)}
        try:
            targets = {arm: target_of(s, ignore_eos=ignore_eos) for arm, s in servers.items()}
            pids = sorted({*listening_pids(plain), *listening_pids(spec)})
            held.begin(pids, on_npu=uses_npu(pids))
            ids = [(name, servers["plain"].tokenize(text, special=True) or text) for name, text in prompts]
            result = run_loop(
                servers["plain"], servers["spec"], ids, tokens, repeats, chosen, ignore_eos=ignore_eos, say=say
            )
            ticket, snapshots, moved = held.end()
        finally:
            for s in servers.values():
                s.close()
    trust = trust_of([*result.reasons, *moved])
    data: dict[str, Any] = {
        **result.as_dict(),
        "seed": chosen,
        "targets": targets,
        "projection": projected,
        "ticket": ticket.model_dump(mode="json"),
        "snapshots": snapshots.model_dump(mode="json"),
        "trust": trust.model_dump(mode="json"),
    }
    if out is not None:
        import json

        save(out, json.dumps(data, indent=1) + "\n", "--out")
    if as_json:
        print_json(data)
    else:
        for line in loop_lines(result, projected, trust):
            click.echo(line)
    return OK if trust.trusted else NOT_TRUSTED


def _projection(file: Path) -> dict[str, Any]:
    """The projections of a saved verdict."""
    data = read_json(file, "--projection")
    try:
        found = {shape: data[shape]["projected"] for shape in ("one_pass", "two_pass")}  # type: ignore[index]
        numbers = [float(found[s]["value"]) for s in found]
    except (TypeError, KeyError, ValueError):
        raise UsageProblem(
            f"--projection {file}: is no verdict with a replay; one is written by: npuprof accept verdict --out FILE"
        ) from None
    del numbers
    return found
