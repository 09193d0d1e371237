"""YAML that people write, with the line of every key for when something in it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from npuprof.errors import UsageProblem

Loc = tuple[str | int, ...]


def load_yaml(file: Path) -> tuple[dict[str, Any], dict[Loc, int]]:
    """The mapping in the file (an empty file is an empty mapping) and the line of each key path.

    UsageProblem naming file and line if it cannot be read, is no YAML, is no mapping, or has a key twice.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise UsageProblem(f"{file}: is not UTF-8 text: byte {e.start}") from e
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise UsageProblem(f"{file}: has a YAML alias (*name); write the value out")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        raise UsageProblem(f"{where}: is not YAML: {getattr(e, 'problem', None) or 'unreadable character'}") from e
    except (ValueError, RecursionError) as e:
        raise UsageProblem(f"{file}: is not YAML that can be used: {e}") from e
    lines: dict[Loc, int] = {}
    if node is not None:
        if not isinstance(data, dict):
            raise UsageProblem(f"{file}:1: must be keys and values")
        _note_lines(file, node, (), lines)
    return data or {}, lines


def _note_lines(file: Path, node: yaml.Node, at: Loc, lines: dict[Loc, int]) -> None:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if here in lines:
                raise UsageProblem(f"{file}:{key.start_mark.line + 1}: {'.'.join(map(str, here))} stands twice")
            lines[here] = key.start_mark.line + 1
            _note_lines(file, value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            _note_lines(file, value, (*at, i), lines)


def explain(error: ValidationError, file: Path | str, lines: dict[Loc, int]) -> UsageProblem:
    """The first thing wrong, as `FILE:LINE: key: reason`."""
    first = error.errors()[0]
    loc: Loc = first["loc"]
    known = loc
    while known and known not in lines:
        known = known[:-1]
    line = f":{lines[known]}" if known in lines else ""
    key = ".".join(map(str, loc))
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason = "unknown key"
    return UsageProblem(f"{file}{line}: {key}: {reason}")
