"""`npuprof parse`: pass lines to a table or JSON."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json
from npuprof.errors import NOT_TRUSTED, OK, UsageProblem

_KEPT = 1000


@click.command()
@click.argument("file", metavar="[FILE|-]", default="-")
@click.option("--profile", help="Read only lines of this profile (bs, v12, or one of yours).")
@json_option
@config_option
@debug_option
def parse(file: str, profile: str | None, as_json: bool, config_file: Path | None) -> int:
    """Read the pass lines out of a log: `[bs]` lines behind any prefix, and other engines' by line profile.

    Exits with 4 if a line looks like a pass line and cannot be read.

    Example: journalctl -u forward-serve | npuprof parse -
    """
    from npuprof.commands.profiles import chosen_profiles
    from npuprof.lines import Unreadable, scan
    from npuprof.render.passlines import PassLineTable

    bs, profiles = chosen_profiles(configuration(config_file), profile)
    table = PassLineTable(sys.stdout)
    bad: list[Unreadable] = []
    passes = unreadable = 0
    with _opened(file) as stream:
        for found in scan(stream, profiles, bs=bs):
            if isinstance(found, Unreadable):
                unreadable += 1
                if len(bad) < _KEPT:
                    bad.append(found)
            else:
                passes += 1
                if as_json:
                    print_json(asdict(found))
                else:
                    table.add(found)
    if as_json:
        print_json({"passes": passes, "unreadable": [asdict(b) for b in bad], "unreadable_total": unreadable})
    else:
        table.end(passes, bad, unreadable)
    return NOT_TRUSTED if unreadable else OK


def _opened(file: str) -> BinaryIO:
    if file == "-":
        return sys.stdin.buffer
    try:
        return Path(file).open("rb")
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
