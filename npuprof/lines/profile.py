"""Line profiles: other engines' pass lines, described in YAML by a regular expression with named groups.

    name: v12
    pattern: '\\[\\d+\\] batch=(?P<rows>\\d+) tok=\\d+ (?P<wall>\\d+)ms attn=(?P<attn>\\d+)ms lm=(?P<lm>\\d+)ms'
    terms: {layers_host_ms: attn, lm_head_ms: lm}
    unit: ms
    looks_like: '\\[\\d+\\] batch='

Groups `rows` and `wall` are required; `start` and `launches` are read where named; a group that no term names is kept
under `extra`. A line that matches `looks_like` and not `pattern` is counted as unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from npuprof.lines.reconcile import adds_up, half_unit
from npuprof.lines.unreadable import Broken
from npuprof.model.passes import TERM_KEYS, PassLine, Terms, rest_of

_UNITS = {"s": 1000.0, "ms": 1.0, "us": 0.001}
_KEYS = {"name", "pattern", "terms", "unit", "looks_like"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}\Z")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?\Z", re.ASCII)
_COUNT = re.compile(r"\d{1,9}\Z", re.ASCII)


class ProfileError(ValueError):
    """A line profile that cannot be used: names the file, the key and the reason."""


@dataclass(frozen=True)
class LineProfile:
    """One engine's pass line. `scale` turns its unit into ms; `terms` maps a term's key to a group's name."""

    name: str
    pattern: re.Pattern[str]
    terms: dict[str, str]
    scale: float
    looks_like: re.Pattern[str] | None

    def read(self, text: str, line_no: int) -> PassLine | None:
        """The pass that the line states; None if it is no line of this engine; raises Broken if it cannot be read."""
        found = self.pattern.search(text)
        if found is None:
            alike = self.looks_like.search(text) if self.looks_like else None
            if alike is not None:
                raise Broken(alike.end(), "looks like a pass line and does not match the profile's pattern")
            return None
        groups = {k: v for k, v in found.groupdict().items() if v is not None}
        rows = self._count(found, groups, "rows")
        if rows is None or rows < 1:
            raise Broken(max(found.start("rows"), 0), "rows must be 1 or more")
        wall = self._time(found, groups, "wall")
        if wall is None:
            raise Broken(max(found.start("wall"), 0), "the line gives no wall time")
        given = {term: t for term, name in self.terms.items() if (t := self._time(found, groups, name)) is not None}
        terms = Terms(**{term: value for term, (value, _) in given.items()})
        used = {"rows", "wall", "start", "launches", *self.terms.values()}
        return PassLine(
            rows=rows,
            start=self._count(found, groups, "start") or 0,
            wall_ms=wall[0],
            terms=terms,
            head_device_ms=None,
            rest_ms=rest_of(wall[0], terms),
            launches=self._count(found, groups, "launches"),
            line_no=line_no,
            extra={"profile": self.name, **{k: v for k, v in groups.items() if k not in used}},
            consistent=adds_up(wall, given.values(), exhaustive=False),
        )

    def _time(self, found: re.Match[str], groups: dict[str, str], name: str) -> tuple[float, float] | None:
        text = groups.get(name)
        if text is None:
            return None
        if not _NUMBER.match(text):
            raise Broken(found.start(name), f"{name} is no time: {text[:40]!r}")
        return float(text) * self.scale, half_unit(text) * self.scale

    def _count(self, found: re.Match[str], groups: dict[str, str], name: str) -> int | None:
        text = groups.get(name)
        if text is None:
            return None
        if not _COUNT.match(text):
            raise Broken(found.start(name), f"{name} is no whole number: {text[:40]!r}")
        return int(text)


def load_profiles(files: Iterable[Path]) -> dict[str, LineProfile]:
    """The profiles in these YAML files by name, a later file winning. Raises ProfileError or OSError."""
    return {profile.name: profile for profile in map(load_profile, files)}


def load_profile(file: Path) -> LineProfile:
    """One profile. Raises ProfileError naming file, key and reason."""
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ProfileError(f"{file}: not YAML: {' '.join(str(e).split())}") from None
    if not isinstance(data, dict):
        raise ProfileError(f"{file}: a line profile is a mapping with name, pattern, terms and unit")

    def refuse(key: str, reason: str) -> ProfileError:
        return ProfileError(f"{file}: {key}: {reason}")

    unknown = sorted(map(str, set(data) - _KEYS))
    if unknown:
        raise refuse(unknown[0], f"unknown key; a line profile has {', '.join(sorted(_KEYS))}")
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        raise refuse("name", "must be lower-case letters, digits, dot, dash or underscore")
    pattern = _pattern(data, "pattern", refuse)
    if pattern is None:
        raise refuse("pattern", "is missing")
    for group in ("rows", "wall"):
        if group not in pattern.groupindex:
            raise refuse("pattern", f"has no group (?P<{group}>...)")
    unit = data.get("unit", "ms")
    if unit not in _UNITS:
        raise refuse("unit", f"must be one of {', '.join(_UNITS)}, not {unit!r}")
    terms = data.get("terms", {})
    if not isinstance(terms, dict):
        raise refuse("terms", "must map a term to a group of the pattern")
    for term, group in terms.items():
        if term not in TERM_KEYS:
            raise refuse(f"terms.{term}", f"no such term; the terms are {', '.join(TERM_KEYS)}")
        if group not in pattern.groupindex or group in ("rows", "wall", "start", "launches"):
            raise refuse(f"terms.{term}", f"the pattern has no group of its own named {group!r}")
    if len(set(terms.values())) != len(terms):
        raise refuse("terms", "one group cannot be two terms")
    return LineProfile(name, pattern, dict(terms), _UNITS[unit], _pattern(data, "looks_like", refuse))


def _pattern(data: dict[str, Any], key: str, refuse: Any) -> re.Pattern[str] | None:
    text = data.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise refuse(key, "must be a regular expression in quotes")
    try:
        return re.compile(text)
    except (re.error, RecursionError) as e:
        raise refuse(key, f"is no regular expression: {e}") from None
