"""`npuprof accept record`: a target's greedy text."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npuprof.commands.accept.held import hold_options, holding, under_site_hold
from npuprof.commands.accept.shared import read_prompts, save, server_url, teller, text_options, writable
from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json, quiet_option
from npuprof.errors import NOT_TRUSTED, OK, DeviceProblem, UsageProblem

if TYPE_CHECKING:
    from npuprof.campaign.window import Window
    from npuprof.model.acceptance import Recording
    from npuprof.servers.processes import Server


@click.command()
@click.option("--url", required=True, callback=server_url, help="The target's server.")
@text_options(min_tokens=1)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The recording.")
@click.option("--repeat", type=click.IntRange(1, 2), default=2, show_default=True, help="2: record twice and compare.")
@click.option("--spawn", help="Start this server for the recording, anew for the second one, and end it.")
@click.option("--restart-cmd", help="What restarts the server between the two recordings.")
@click.option(
    "--ignore-eos", is_flag=True, help="Go on behind the end of the text; recorded, since it changes what is compared."
)
@hold_options
@json_option
@config_option
@quiet_option
@debug_option
def record(
    url: str,
    prompts_file: Path,
    tokens: int,
    out: Path,
    repeat: int,
    spawn: str | None,
    restart_cmd: str | None,
    ignore_eos: bool,
    device: str | None,
    hold_timeout: float | None,
    reason: str,
    as_json: bool,
    config_file: Path | None,
    quiet: bool,
) -> int:
    """Record what the target says, greedily and by token id, for drafters to be replayed against.

    Example: npuprof accept record --url http://127.0.0.1:8080 --prompts prompts.json --tokens 40 --out rec.json
    """
    from npuprof.accept.keep import as_text

    if spawn is not None and restart_cmd is not None:
        raise UsageProblem("one of --spawn and --restart-cmd: a server that is spawned is started anew by itself")
    writable(out, "--out")
    prompts = read_prompts(prompts_file)
    config = configuration(config_file)
    code = under_site_hold(config, device, reason)
    if code is not None:
        return code
    from npuprof.commands.key import provide_key

    provide_key(config.settings)
    say = teller(quiet or as_json)
    with holding(config, device, reason, hold_timeout, quiet=quiet or as_json) as held:
        recording = make_recording(
            held,
            url,
            prompts,
            tokens,
            repeat,
            spawn,
            restart_cmd,
            out.with_suffix(".server.log"),
            ignore_eos=ignore_eos,
            say=say,
        )
    save(out, as_text(recording), "--out")
    if as_json:
        print_json(recording.model_dump(mode="json"))
    else:
        from npuprof.render.recording import recording_lines

        for line in recording_lines(recording, str(out)):
            click.echo(line)
    return OK if recording.trust is not None and recording.trust.trusted else NOT_TRUSTED


def make_recording(
    held: Window,
    url: str,
    prompts: list[tuple[str, str]],
    tokens: int,
    repeat: int,
    spawn: str | None,
    restart_cmd: str | None,
    output: Path | None,
    *,
    ignore_eos: bool,
    say: Callable[[str], None],
) -> Recording:
    """Under the hold that is `held`: connect, snapshot, record, record again, snapshot. `output` keeps a spawned server's."""
    from npuprof.accept.record import compare, record_prompts, repeat_reasons, round_trips, target_of
    from npuprof.accept.server import TokenServer
    from npuprof.campaign.provenance import provenance
    from npuprof.model.acceptance import Recording
    from npuprof.servers.processes import listening_pids, uses_npu
    from npuprof.stats.trust import trust_of

    with ExitStack() as cleanup:
        process = _Spawned(spawn, output) if spawn and output else None
        if process is not None:
            cleanup.callback(process.stop)
        server = TokenServer(url, say, process.state if process else lambda: None)
        cleanup.callback(lambda: server.close())
        if process is not None and process.state():
            raise DeviceProblem(f"the server that was started {process.state()}, and another one answers at {url}")
        target = target_of(server, ignore_eos=ignore_eos)
        pids = sorted({*listening_pids(url), *([process.pid] if process else [])})
        before = held.begin(pids, on_npu=uses_npu(pids))
        found = record_prompts(server, prompts, tokens, ignore_eos=ignore_eos, say=say)
        reasons = round_trips(server, found)
        second = None
        if repeat == 2:
            if process is not None or restart_cmd is not None:
                server.close()
                if process is not None:
                    process.again()
                else:
                    _restart(str(restart_cmd))
                server = TokenServer(url, say, process.state if process else lambda: None)
            how = "restarted" if process is not None or restart_cmd is not None else "same server"
            again = record_prompts(server, prompts, tokens, ignore_eos=ignore_eos, say=say)
            second = compare(found, again, how)
            reasons += repeat_reasons(second)
        ticket, snapshots, moved = held.end()
    reasons += moved
    return Recording(
        target=target,
        n_tokens=tokens,
        prompts=found,
        repeat=second,
        ticket=ticket,
        snapshots=snapshots,
        provenance=provenance(before),
        trust=trust_of(reasons),
    )


class _Spawned:
    """A server that is started for the recording, and started anew for the second one. Its output is kept in a file."""

    def __init__(self, command: str, output: Path) -> None:
        self._command = command
        try:
            self._log = output.open("ab")
        except OSError as e:
            raise UsageProblem(f"{output}: cannot be written: {e.strerror}") from e
        self._server = self._started()

    @property
    def pid(self) -> int:
        return self._server.pid

    def state(self) -> str | None:
        return self._server.state()

    def again(self) -> None:
        self._server.stop()
        self._server = self._started()

    def stop(self) -> None:
        self._server.stop()
        self._log.close()

    def _started(self) -> Server:
        from npuprof.servers.processes import Server

        return Server(self._command, self._log)


def _restart(command: str) -> None:
    try:
        done = subprocess.run(shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    except (OSError, ValueError, IndexError) as e:
        raise UsageProblem(f"--restart-cmd {command!r}: cannot be started: {e}") from e
    if done.returncode:
        raise DeviceProblem(
            f"--restart-cmd {command!r} ended with code {done.returncode}: the server was not restarted"
        )
