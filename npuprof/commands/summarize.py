"""`npuprof summarize`: the statistics of this tool for samples from anywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from npuprof.commands.options import debug_option, json_option, print_json
from npuprof.errors import NOT_TRUSTED, OK, UsageProblem


@click.command()
@click.argument("file", metavar="[FILE|-]", default="-")
@click.option("--to", help="The condition that the others are compared with (default: step if there, else the first).")
@json_option
@debug_option
def summarize(file: str, to: str | None, as_json: bool) -> int:
    """Median, interval, drift and paired ratios of JSON lines {"condition", "round", "seq", "wall_ms"}.

    Example: npuprof summarize samples.jsonl --to step
    """
    from npuprof.stats.compare import compare
    from npuprof.stats.samples import by_condition

    samples = _samples(file)
    names = list(by_condition(samples))
    if not samples:
        raise UsageProblem(f"{file}: holds no sample")
    if to is not None and to not in names:
        raise UsageProblem(f"--to {to}: no such condition in {file}; there are {', '.join(names)}")
    found = compare(samples, to or ("step" if "step" in names else names[0]))
    if as_json:
        print_json(found.as_dict())
    else:
        from npuprof.render.comparison import comparison_lines

        for line in comparison_lines(found):
            click.echo(line)
    return OK if found.trust.trusted else NOT_TRUSTED


def _samples(file: str) -> list[Any]:
    try:
        lines = sys.stdin.readlines() if file == "-" else Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
    except UnicodeDecodeError:
        raise UsageProblem(f"{file}: is not UTF-8 text") from None
    return list(_read(file, lines))


def _read(file: str, lines: Iterable[str]) -> Iterable[Any]:
    from math import isfinite

    from npuprof.stats.samples import Sample

    for n, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageProblem(f"{file}:{n}: is no JSON object on one line") from None
        if not isinstance(data, dict):
            raise UsageProblem(f"{file}:{n}: is no JSON object on one line")
        for key, kind in (("condition", str), ("round", int), ("seq", int), ("wall_ms", (int, float))):
            if not isinstance(data.get(key), kind) or isinstance(data[key], bool):
                raise UsageProblem(f"{file}:{n}: {key}: is missing or of the wrong kind")
        if not (isfinite(data["wall_ms"]) and data["wall_ms"] > 0):
            raise UsageProblem(f"{file}:{n}: wall_ms: must be above 0, not {data['wall_ms']}")
        yield Sample(data["condition"], data["round"], data["seq"], float(data["wall_ms"]))
