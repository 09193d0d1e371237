"""The tolerant reader's grammar: segments set apart by `|`, each of `key= value`, a value with `(key= value ...)`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof.lines.unreadable import Broken

_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-/]*)[ \t]*(=?)")
_VALUE = re.compile(r"[^\s|()]+")
_MAX_KEY = 64
_MAX_ITEMS = 128

Item = tuple[str, str, int]
"""Dotted key ("layers.wait"), value as written, offset of the value."""


def read_items(text: str, at: int, groups: set[str]) -> Iterator[Item]:
    """Every item of the line from offset `at`; names of groups that were closed are added to `groups`.

    A bare word may stand before a key inside a group ("gemm pack="). Raises Broken at the first character that fits
    nowhere, at a group left open, and at more than 128 items.
    """
    end = len(text.rstrip())
    group: str | None = None
    last_key = ""
    word_at = -1
    count = 0
    while (at := _skip(text, at)) < end:
        char = text[at]
        if char == "|" and group is None:
            at += 1
            last_key = ""
        elif char == "(" and group is None and last_key:
            group, at = last_key, at + 1
        elif char == ")" and group is not None and word_at < 0:
            groups.add(group)
            group, last_key, at = None, "", at + 1
        else:
            key = _KEY.match(text, at)
            if key is None:
                raise Broken(at, f"does not belong in a pass line: {text[at : at + 20]!r}")
            if not key[2]:
                if group is None or word_at >= 0:
                    raise Broken(at, f"a word without a value: {key[1][:40]!r}")
                word_at, at = at, key.end()
                continue
            word_at = -1
            value_at = _skip(text, key.end())
            value = _VALUE.match(text, value_at, end)
            if value is None:
                raise Broken(value_at, f"{key[1][:40]}= has no value: cut short")
            count += 1
            if count > _MAX_ITEMS or len(key[1]) > _MAX_KEY:
                raise Broken(at, "more or longer keys than a pass line has")
            at = value.end()
            if group is None:
                last_key = key[1]
            yield (key[1] if group is None else f"{group}.{key[1]}"), value[0], value_at
    if group is not None or word_at >= 0:
        raise Broken(end, f"({group}) is not closed: cut short")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
