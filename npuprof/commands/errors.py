"""`npuprof errors`: the driver's error count, now or of a saved log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json
from npuprof.errors import UsageProblem

_SHOWN = 200


@click.command()
@click.option("--file", "log", type=click.Path(path_type=Path), help="A saved log: dmesg, journalctl, JSON, kmsg.")
@json_option
@config_option
@debug_option
def errors(log: Path | None, as_json: bool, config_file: Path | None) -> int:
    """Count the kernel's messages of the NPU by class, and group them into incidents.

    The count is of fatal and taint lines; known noise stands beside it.

    Example: npuprof errors --file dmesg.txt
    """
    from npuprof.commands.evidence import kernel_rules
    from npuprof.render.errors import error_lines

    rules = kernel_rules(configuration(config_file))
    found = _of_file(log, rules) if log is not None else _now(rules)
    if as_json:
        print_json(found)
    else:
        for line in error_lines(found, _SHOWN):
            click.echo(line)
    return 0


def _of_file(log: Path, rules: Any) -> dict[str, Any]:
    from collectors.kernel.report import report_file

    try:
        with log.open("rb") as stream:
            found = report_file(stream, rules)
    except OSError as e:
        raise UsageProblem(f"--file {log}: cannot be read: {e.strerror}") from e
    return {**found, "sources": {"file": {"status": "live", "path": str(log)}}, "complete": True}


def _now(rules: Any) -> dict[str, Any]:
    from collectors.device import find_npus
    from collectors.kernel.report import Follower, incident_dict
    from collectors.kernel.sources import Unreadable, open_source

    follower = Follower(rules, [n.bdf for n in find_npus()])
    try:
        source = open_source(Path("/"))
        lines, incidents = follower.take(source.read())
    except Unreadable as e:
        empty = {"fatal": None, "taint": None, "benign": None, "info": None}
        sources = {"kernel_log": {"status": "not_available", "detail": str(e)}}
        return {
            "count": None,
            "by_class": empty,
            "own": None,
            "unknown": None,
            "incidents": [],
            "lines": [],
            "sources": sources,
            "complete": False,
        }
    return {
        "count": follower.tally.count,
        "by_class": follower.tally.as_dict(),
        "own": follower.tally.own,
        "unknown": follower.tally.unknown,
        "incidents": [incident_dict(i) for i in incidents],
        "lines": [{"line_no": x.line_no, "class": x.line_class} for x in lines],
        "sources": {"kernel_log": {"status": "live", "source": source.name, "detail": source.lost}},
        "complete": not source.lost,
    }
