"""A log to passes, in constant memory whatever its lines are like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from npuprof.lines.bs import MARKER, parse_line
from npuprof.lines.profile import LineProfile
from npuprof.lines.unreadable import Broken, Unreadable
from npuprof.model.passes import PassLine

LINE_LIMIT = 65_536

_MARKER = MARKER.encode()
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_BEGINS = re.compile(r"\[bs\]\s*(?:\Z|M\s*(?:=|\Z))|\[bs\].*?\b(?:M|start|wall|layers|epilogue)\s*=", re.DOTALL)
_HEADLESS = re.compile(r"\bwall\s*=.*\b(?:layers|epilogue)\s*=", re.DOTALL)


def scan(stream: BinaryIO, profiles: Sequence[LineProfile] = (), *, bs: bool = True) -> Iterator[PassLine | Unreadable]:
    """Every pass line of the log, readable or not, in order; other lines are passed over.

    `profiles` are tried on lines that are no `[bs]` line; with `bs` false the `[bs]` grammar is not tried. Lines of
    more than 64 KiB that begin a pass are unreadable. Invalid UTF-8 is replaced, so it can never be part of a number.
    """
    line_no = 0
    while raw := stream.readline(LINE_LIMIT):
        line_no += 1
        if len(raw) == LINE_LIMIT and raw[-1:] != b"\n":
            marked = _skip_rest(stream, raw)
            if marked:
                yield Unreadable(line_no, LINE_LIMIT, f"the line is longer than {LINE_LIMIT} bytes")
            continue
        if bs and (_MARKER in raw or b"\x1b" in raw or b"wall" in raw or _is_byte_list(raw)):
            found = _read_bs(raw, line_no)
            if found is not None:
                yield found
                continue
        if profiles:
            found = _read_profiles(raw, line_no, profiles)
            if found is not None:
                yield found


def _is_byte_list(raw: bytes) -> bool:
    """A journal entry whose message, not being clean text, is given as a list of bytes (115 is the s of `[bs]`)."""
    return raw[:1] == b"{" and b"115" in raw


def _skip_rest(stream: BinaryIO, chunk: bytes) -> bool:
    """Drops what is left of an overlong line; true if a `[bs]` stands anywhere in it, across chunks too."""
    marked = _MARKER in chunk
    while chunk and chunk[-1:] != b"\n":
        tail = chunk[-len(_MARKER) :]
        chunk = stream.readline(LINE_LIMIT)
        marked = marked or _MARKER in tail + chunk
    return marked


def _read_bs(raw: bytes, line_no: int) -> PassLine | Unreadable | None:
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    text, offsets = _without_escapes(_unwrapped(text))
    if MARKER in text:
        if not _BEGINS.search(text):
            return None
    elif not _HEADLESS.search(text):
        return None
    try:
        return parse_line(text, line_no)
    except Broken as broken:
        column = offsets[min(broken.at, len(offsets) - 1)] if offsets else broken.at
        return Unreadable(line_no, column + 1, broken.reason)


def _read_profiles(raw: bytes, line_no: int, profiles: Sequence[LineProfile]) -> PassLine | Unreadable | None:
    text, _ = _without_escapes(_unwrapped(raw.decode("utf-8", "replace").rstrip("\r\n")))
    for profile in profiles:
        try:
            found = profile.read(text, line_no)
        except Broken as broken:
            return Unreadable(line_no, broken.at + 1, f"{profile.name}: {broken.reason}")
        if found is not None:
            return found
    return None


def _unwrapped(text: str) -> str:
    """The message inside a JSON log entry (`journalctl -o json`, a container's json-file); other text as it is."""
    if not text.startswith("{"):
        return text
    try:
        entry: Any = json.loads(text)
    except ValueError:
        return text
    message = entry.get("MESSAGE", entry.get("log"))
    if isinstance(message, list) and all(isinstance(b, int) and 0 <= b < 256 for b in message):
        message = bytes(message).decode("utf-8", "replace")
    return message.rstrip("\r\n") if isinstance(message, str) else text


def _without_escapes(text: str) -> tuple[str, list[int]]:
    """The text without terminal escapes, and for each kept character its offset in the original (empty if unchanged)."""
    if "\x1b" not in text:
        return text, []
    kept: list[str] = []
    offsets: list[int] = []
    at = 0
    for escape in _ESCAPE.finditer(text):
        kept.append(text[at : escape.start()])
        offsets.extend(range(at, escape.start()))
        at = escape.end()
    kept.append(text[at:])
    offsets.extend(range(at, len(text) + 1))
    return "".join(kept), offsets
