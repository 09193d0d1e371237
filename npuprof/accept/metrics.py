"""A server's own counters of speculation, out of its /metrics: llama.cpp's and vLLM's, which bear the same names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_SAMPLE = re.compile(
    r"^(?:llamacpp|vllm):spec_decode_num_(drafts|draft_tokens|accepted_tokens|accepted_tokens_per_pos)(?:_total)?"
    r"(?:\{([^}]*)\})?\s+([0-9.eE+-]+)"
)
_POSITION = re.compile(r'position="(\d+)"')


@dataclass(frozen=True)
class Speculated:
    """Counts since the server's start: rounds with a draft, tokens drafted, tokens accepted, accepted by position."""

    drafts: int
    drafted: int
    accepted: int
    per_position: tuple[int, ...]

    def since(self, before: Speculated) -> Speculated:
        old = (*before.per_position, *[0] * len(self.per_position))
        return Speculated(
            self.drafts - before.drafts,
            self.drafted - before.drafted,
            self.accepted - before.accepted,
            tuple(a - b for a, b in zip(self.per_position, old, strict=False)),
        )

    @property
    def mean_length(self) -> float | None:
        """1 + accepted/rounds, the target's own token included; steps without a draft are no rounds."""
        return 1 + self.accepted / self.drafts if self.drafts else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "num_drafts": self.drafts,
            "draft_n": self.drafted,
            "draft_n_accepted": self.accepted,
            "mean_length": self.mean_length,
            "accepted_per_position": list(self.per_position),
        }


def read_speculated(text: str) -> Speculated | None:
    """None where the text has none of these counters. Help lines are passed over; several engines' counts are added."""
    totals: dict[str, float] = {}
    positions: dict[int, float] = {}
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found is None:
            continue
        name, labels, value = found.groups()
        position = _POSITION.search(labels or "")
        if name == "accepted_tokens_per_pos" and position is not None:
            positions[int(position.group(1))] = positions.get(int(position.group(1)), 0.0) + float(value)
        else:
            totals[name] = totals.get(name, 0.0) + float(value)
    if not {"drafts", "draft_tokens", "accepted_tokens"} <= totals.keys():
        return None
    return Speculated(
        int(totals["drafts"]),
        int(totals["draft_tokens"]),
        int(totals["accepted_tokens"]),
        tuple(int(positions.get(i, 0)) for i in range(max(positions, default=-1) + 1)),
    )
