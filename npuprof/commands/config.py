"""`npuprof config`: the configuration in force, and where each value came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from npuprof.commands.options import config_option, configuration, debug_option, json_option, print_json


@click.group()
def config() -> None:
    """The configuration in force.

    Example: npuprof config show
    """


@config.command("show")
@json_option
@config_option
@debug_option
def show(as_json: bool, config_file: Path | None) -> int:
    """Every value, with the file and line or the variable that gave it.

    Example: npuprof config show --config my.yaml
    """
    from npuprof.render.text import printable

    found = configuration(config_file)
    data = found.settings.model_dump(mode="json")
    if as_json:
        print_json({"settings": data, "origins": found.origins})
        return 0
    for key, origin in found.origins.items():
        click.echo(printable(f"{key} = {_value(data, key)}  ({origin})"))
    return 0


def _value(data: Any, key: str) -> Any:
    for part in key.split("."):
        data = data[part]
    return data


@config.command("check")
@json_option
@config_option
@debug_option
def check(as_json: bool, config_file: Path | None) -> int:
    """Read every configuration file, line profile and kernel-message rule; names the first that is wrong, by file, line and key.

    Example: npuprof config check --config my.yaml
    """
    from npuprof.commands.evidence import kernel_rules
    from npuprof.commands.profiles import chosen_profiles

    found = configuration(config_file)
    _, profiles = chosen_profiles(found, None)
    rules = kernel_rules(found)
    read = [str(p) for p in found.searched if p.exists()]
    names = [p.name for p in profiles]
    if as_json:
        print_json({"files": read, "line_profiles": names, "kernel_rules": len(rules)})
    else:
        click.echo(
            f"{len(read)} configuration files are right; line profiles: bs, {', '.join(names)}; {len(rules)} kernel rules"
        )
    return 0


@config.command("path")
@json_option
@config_option
@debug_option
def path(as_json: bool, config_file: Path | None) -> int:
    """The files that are read, later ones winning, and whether each exists.

    Example: npuprof config path
    """
    from npuprof.settings import search_path

    files = search_path(config_file)
    if as_json:
        print_json({"files": [{"path": str(f), "exists": f.exists()} for f in files]})
        return 0
    for f in files:
        click.echo(f"{f}{'' if f.exists() else '  (not there)'}")
    return 0
