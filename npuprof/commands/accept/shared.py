"""What the verbs of `accept` have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from npuprof.commands.options import F
from npuprof.errors import UsageProblem


def text_options(min_tokens: int) -> Callable[[F], F]:
    """`--prompts` and `--tokens`: what a server is asked to go on with, and how far."""

    def options(f: F) -> F:
        f = click.option("--tokens", required=True, type=click.IntRange(min=min_tokens), help="Tokens a prompt.")(f)
        return click.option(
            "--prompts",
            "prompts_file",
            required=True,
            type=click.Path(path_type=Path),
            help='[{"name": ..., "prompt": ...}]',
        )(f)

    return options


def read_prompts(file: Path) -> list[tuple[str, str]]:
    """(name, text) each; UsageProblem names the entry that is wrong."""
    data = read_json(file, "--prompts")
    if not isinstance(data, list) or not data:
        raise UsageProblem(f'--prompts {file}: must be a list like [{{"name": "prose", "prompt": "..."}}]')
    found: list[tuple[str, str]] = []
    for n, entry in enumerate(data, 1):
        name, text = (entry.get("name"), entry.get("prompt")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not name or not isinstance(text, str) or not text:
            raise UsageProblem(f"--prompts {file}: entry {n} needs a name and a prompt, both text")
        if name in dict(found):
            raise UsageProblem(f"--prompts {file}: entry {n}: the name {name!r} is taken")
        found.append((name, text))
    return found


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """`1,2,4`, each at least 1."""
    del ctx
    if value is None:
        return None
    try:
        found = sorted({int(v) for v in value.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise click.BadParameter(
            "must be whole numbers of at least 1 with commas between them, like 1,2,4,7", param=param
        )
    return found


def teller(quiet: bool) -> Callable[[str], None]:
    """Progress on standard error."""
    from npuprof.render.text import printable

    return lambda text: None if quiet else click.echo(f"npuprof: {printable(text)}", err=True)


def save(file: Path, text: str, flag: str) -> None:
    from npuprof.store.runs import write_whole

    try:
        write_whole(file, text)
    except OSError as e:
        raise UsageProblem(f"{flag} {file}: cannot be written: {e.strerror}") from e


def writable(file: Path | None, flag: str) -> None:
    """Before anything is measured."""
    if file is not None and not file.parent.is_dir():
        raise UsageProblem(f"{flag} {file}: there is no folder {file.parent}; make it, or name another place")


def read_json(file: Path, flag: str) -> object:
    try:
        return json.loads(file.read_bytes())
    except OSError as e:
        raise UsageProblem(f"{flag} {file}: cannot be read: {e.strerror}") from e
    except (ValueError, RecursionError):
        raise UsageProblem(f"{flag} {file}: is not whole JSON") from None


def server_url(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """http or https, without credentials."""
    from urllib.parse import urlsplit

    del ctx
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.BadParameter("must begin with http:// or https://", param=param)
    if parts.username or parts.password:
        raise click.BadParameter(
            "must not carry credentials; set NPUPROF_API_KEY or the setting serve.api_key_file", param=param
        )
    return value
