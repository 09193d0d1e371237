"""Rules that class a message: read from YAML, the user's before the shipped ones, the first match deciding.

    - {class: benign, kind: debug-bo, pattern: '^Get bo 4 failed', note: "printed at every normal use before XRT 2.24"}

`pattern` is sought in the text after tag and function; `function` (optional) in the name of the function that printed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from collectors.kernel.tags import Tagged

RuleClass = Literal["fatal", "taint", "benign", "info"]
_CLASSES = ("fatal", "taint", "benign", "info")
_FLAGS = ("root", "incident", "own", "joins")
_KEYS = {"class", "kind", "pattern", "function", "note", *_FLAGS}


class RuleError(ValueError):
    """A rule that cannot be used: names file, rule number, key and reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`root`: the first message of an incident. `incident` false: opens none. `own`: caused by the observer's own queries.

    `joins`: what is benign alone belongs to an open fatal incident.
    """

    kind: str
    rule_class: RuleClass
    pattern: re.Pattern[str]
    function: re.Pattern[str] | None
    root: bool
    incident: bool
    own: bool
    joins: bool
    note: str

    def matches(self, message: Tagged) -> bool:
        if self.function is not None and not self.function.search(message.function):
            return False
        return self.pattern.search(message.text) is not None


UNKNOWN = Rule("unknown", "taint", re.compile(""), None, False, True, False, False, "an error that no rule knows")
SILENT = Rule("other", "info", re.compile(""), None, False, False, False, False, "")


def decide(rules: Sequence[Rule], message: Tagged, level: int | None) -> Rule:
    """The first rule that matches; else UNKNOWN for an error (`*ERROR*`, or level err and worse), else SILENT."""
    for rule in rules:
        if rule.matches(message):
            return rule
    return UNKNOWN if message.error or (level is not None and level <= 3) else SILENT


def load_rules(files: Iterable[Path]) -> list[Rule]:
    """The rules of these files, in their order. Raises RuleError or OSError."""
    return [rule for file in files for rule in _load(file)]


def _load(file: Path) -> list[Rule]:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise RuleError(f"{file}: not YAML: {' '.join(str(e).split())}") from None
    if not isinstance(data, list):
        raise RuleError(f"{file}: must be a list of rules, each with class, kind and pattern")
    return [_rule(file, n, item) for n, item in enumerate(data, 1)]


def _rule(file: Path, number: int, item: Any) -> Rule:
    def refuse(key: str, reason: str) -> RuleError:
        return RuleError(f"{file}: rule {number}: {key}: {reason}")

    if not isinstance(item, dict):
        raise RuleError(f"{file}: rule {number}: must have class, kind and pattern")
    unknown = sorted(map(str, set(item) - _KEYS))
    if unknown:
        raise refuse(unknown[0], f"unknown key; a rule has {', '.join(sorted(_KEYS))}")
    if item.get("class") not in _CLASSES:
        raise refuse("class", f"must be one of {', '.join(_CLASSES)}")
    if not isinstance(item.get("kind"), str) or not item["kind"]:
        raise refuse("kind", "must be a name")
    for flag in _FLAGS:
        if not isinstance(item.get(flag, False), bool):
            raise refuse(flag, "must be true or false")

    def compiled(key: str) -> re.Pattern[str]:
        try:
            return re.compile(item[key] if isinstance(item.get(key), str) else "(")
        except (re.error, RecursionError):
            raise refuse(key, "must be a regular expression in quotes") from None

    return Rule(
        kind=item["kind"],
        rule_class=item["class"],
        pattern=compiled("pattern"),
        function=compiled("function") if "function" in item else None,
        root=item.get("root", False),
        incident=item.get("incident", item["class"] in ("fatal", "taint")),
        own=item.get("own", False),
        joins=item.get("joins", False),
        note=str(item.get("note", "")),
    )
