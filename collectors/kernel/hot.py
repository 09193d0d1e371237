"""The few lines of a large log that may concern the NPU, found without reading the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

_NEEDLES = (
    b"xdna",
    b"AMD-Vi",
    b"callbacks suppressed",
    b"BUG: ",
    b"Oops",
    b"general protection",
    b"WARNING: ",
    b"cut here",
    b"amdnpu",
    b"aie2_",
    b"aie4_",
    b"ctx.",
    b"max_hwctx",
    b"close context",
)
_BLOCK = (b"BUG: ", b"Oops", b"general protection", b"WARNING: ", b"cut here")
_CHUNK = 1 << 20
_LONGEST = 1 << 16
_AFTER = 3
_AFTER_BLOCK = 260


def hot_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes] | int]:
    """`(line number, line)` for a line with a needle and those after it; a whole number for that many lines passed over.

    A needle is followed by 3 lines, which may be wrapped off it, the start of a trace by 260. Of a log under 1 MiB every
    line is given. Memory is that of a chunk.
    """
    line_no = 0
    carry = 0
    whole = None
    while chunk := stream.read(_CHUNK) + stream.readline(_LONGEST):
        whole = len(chunk) < _CHUNK if whole is None else whole
        carry = chunk.count(b"\n") + 1 if whole else carry
        starts = _starts(chunk)
        at, upto, i = 0, len(chunk), 0
        while at < upto:
            if carry == 0:
                while i < len(starts) and starts[i] < at:
                    i += 1
                start = starts[i] if i < len(starts) else upto
                skipped = chunk.count(b"\n", at, start)
                if start == upto and not chunk.endswith(b"\n"):
                    skipped += 1
                if skipped:
                    line_no += skipped
                    yield skipped
                at, carry = start, 1
                if at == upto:
                    carry = 0
                    break
            end = chunk.find(b"\n", at)
            end = upto if end < 0 else end
            line = chunk[at:end]
            line_no += 1
            carry -= 1
            if any(n in line for n in _NEEDLES):
                carry = max(carry, _AFTER_BLOCK if any(n in line for n in _BLOCK) else _AFTER)
            yield line_no, line
            at = end + 1


def _starts(chunk: bytes) -> list[int]:
    """Where the lines with a needle begin."""
    found: set[int] = set()
    for needle in _NEEDLES:
        at = chunk.find(needle)
        while at >= 0:
            found.add(chunk.rfind(b"\n", 0, at) + 1)
            end = chunk.find(b"\n", at)
            at = chunk.find(needle, end) if end >= 0 else -1
    return sorted(found)
