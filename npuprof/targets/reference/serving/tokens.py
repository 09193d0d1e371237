"""The reference server's tokens: 256 bytes, and one ideograph for each further id, so that every id can be written."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.targets.reference.weights import VOCABULARY

_FIRST = 0x4E00
_BYTES = 256


def tokenize(text: str) -> list[int]:
    """Ids of a text: bytes of its UTF-8, but one id for an ideograph that stands for one."""
    ids: list[int] = []
    for c in text:
        number = ord(c) - _FIRST
        if _BYTES <= number < VOCABULARY:
            ids.append(number)
        else:
            ids += c.encode("utf-8", "replace")
    return ids


def detokenize(ids: Sequence[int]) -> str:
    """The text of ids; bytes that are no UTF-8 become U+FFFD."""
    parts: list[str] = []
    raw = bytearray()
    for i in ids:
        if i < _BYTES:
            raw.append(i)
            continue
        parts.append(raw.decode("utf-8", "replace"))
        raw.clear()
        parts.append(chr(_FIRST + i))
    return "".join([*parts, raw.decode("utf-8", "replace")])
