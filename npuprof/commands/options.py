"""Options that mean the same wherever they appear, and the output that goes with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from npuprof.errors import NOT_TRUSTED, OK
from npuprof.model.record import Record
from npuprof.settings import Configuration, load_settings

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
config_option = click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="A configuration file that counts last."
)
quiet_option = click.option("--quiet", is_flag=True, help="Only the result.")
run_argument = click.argument("run", metavar="RUN")


def debug_option(f: F) -> F:
    """`--debug` is read by the command line's entry point, which shows the traceback; here it is only accepted."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")(f)


def configuration(file: Path | None) -> Configuration:
    return load_settings(file)


def stores() -> list[Path]:
    """Where records are looked up: the user's store, then the daemon's."""
    from npuprof.store.runs import daemon_runs, user_runs

    return [user_runs(), daemon_runs()]


def find(run: str) -> Record:
    """The record that RUN names."""
    from npuprof.store.runs import find_run, read_record

    return read_record(find_run(run, stores()))


def print_json(data: Any) -> None:
    """One object on standard output."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")


def trust_code(record: Record) -> int:
    return OK if record.trust.trusted else NOT_TRUSTED
