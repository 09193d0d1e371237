"""`npuprof audit`: every stated figure, derived again."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from npuprof.commands.options import debug_option, json_option, print_json
from npuprof.errors import CHECK_FAILED, OK, UsageProblem

if TYPE_CHECKING:
    from npuprof.audit.figure import Figure


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--all", "everything", is_flag=True, help="List the figures that hold, too.")
@json_option
@debug_option
def audit(file: Path, everything: bool, as_json: bool) -> int:
    """Derive every figure that FILE states from the others in it: a record, a replay, a verdict, or a pasted text (- reads it).

    Exits with 5 if any differs. Printed digits are intervals, and derivation carries them.

    Example: npuprof audit pull-request.txt
    """
    from npuprof.render.text import printable

    figures = _figures(file)
    if not figures:
        raise UsageProblem(
            f"{file}: states no figure that is known here; docs/acceptance.md lists the forms that are read"
        )
    counts = Counter(f.status for f in figures)
    if as_json:
        print_json({"figures": [f.as_dict() for f in figures], "differs": counts["differs"]})
    else:
        for f in figures:
            if everything or f.status in ("differs", "underivable"):
                click.echo(printable(_text(f)))
        click.echo(
            f"{len(figures)} figures: {counts['ok']} ok, {counts['within_rounding']} within rounding, "
            f"{counts['differs']} differ, {counts['underivable']} underivable"
        )
    return CHECK_FAILED if counts["differs"] else OK


def _text(f: Figure) -> str:
    word = {"ok": "ok", "within_rounding": "rounding", "differs": "DIFFERS", "underivable": "underivable"}[f.status]
    derived = f"{f.derived:.6g}" if isinstance(f.derived, float) else f.derived
    if isinstance(f.derived, tuple):
        derived = f"{f.derived[0]:g} to {f.derived[1]:g}"
    what = f"{f.name}: {f.stated if f.stated is not None else 'nothing'} stated"
    against = "" if f.derived is None else f", {derived} derived from {', '.join(dict.fromkeys(f.sources))}"
    return f"{word:<11}  {f.where}: {what}{against}{'; ' + f.detail if f.detail else ''}"


def _figures(file: Path) -> list[Figure]:
    """By what the file is."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
    if data.lstrip()[:1] == b"{":
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return _of_object(file, found)
    from npuprof.audit.text import audit_text

    return audit_text(data.decode("utf-8", "replace").splitlines())


def _of_object(file: Path, data: dict[str, Any]) -> list[Figure]:
    from npuprof.audit.saved import audit_record, audit_replay, audit_verdict

    if str(data.get("schema", "")).startswith("npuprof.record/"):
        from npuprof.store.runs import read_record

        return list(audit_record(read_record(file)))
    try:
        if "rule" in data and "k" in data:
            from npuprof.model.replay import Replay

            return list(audit_replay(Replay.model_validate(data)))
        if "verdict" in data and "by_k" in data:
            return list(audit_verdict(data))
    except ValidationError as e:
        first = e.errors()[0]
        raise UsageProblem(f"{file}: is no whole replay: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as e:
        raise UsageProblem(f"{file}: is no whole verdict: {type(e).__name__}: {e}") from None
    raise UsageProblem(f"{file}: is neither a record, a replay nor a verdict, and no text")
