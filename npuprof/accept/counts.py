"""What rounds add up to, per prompt and pooled, and the identity that they must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from npuprof.accept.rules import Played, Rule


@dataclass(frozen=True)
class Counts:
    """`histogram[a]` rounds accepted a drafts; `unfinished` ended without a token of the target's own."""

    rule: Rule
    tokens: int
    rounds: int
    accepted: int
    offered: int
    unfinished: int
    plain: int
    free: int
    histogram: tuple[int, ...]

    @property
    def tokens_per_round(self) -> float | None:
        """The target's own token included. llama-server: 1 + accepted/rounds, as it prints its mean length."""
        if not self.rounds:
            return None
        return self.tokens / self.rounds if self.rule == "reference" else 1 + self.accepted / self.rounds

    @property
    def rate(self) -> float | None:
        """accepted/offered; None where nothing was offered."""
        return self.accepted / self.offered if self.offered else None

    @property
    def survival(self) -> list[float] | None:
        """P(at least i accepted) over all rounds, i = 1..k."""
        if not self.rounds:
            return None
        return [sum(self.histogram[i:]) / self.rounds for i in range(1, len(self.histogram))]

    @property
    def conditional(self) -> list[float | None] | None:
        """P(draft i accepted | those before it were)."""
        if not self.rounds:
            return None
        at_least = [sum(self.histogram[i:]) for i in range(len(self.histogram))]
        return [b / a if a else None for a, b in pairwise(at_least)]

    def missing(self) -> int:
        """0 if N = rounds + accepted - unfinished (and, as a live server counts, + the free token + plain steps)."""
        return self.tokens - (self.free + self.rounds + self.accepted + self.plain - self.unfinished)

    def as_dict(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "rounds": self.rounds,
            "accepted": self.accepted,
            "offered": self.offered,
            "tokens_per_round": self.tokens_per_round,
            "rate": self.rate,
            "unfinished_rounds": self.unfinished,
            "plain": self.plain,
            "histogram": list(self.histogram),
            "survival": self.survival,
            "conditional": self.conditional,
        }


def count(rule: Rule, k: int, played: Played) -> Counts:
    """One prompt's."""
    rounds = played.rounds
    return Counts(
        rule,
        played.tokens,
        len(rounds),
        sum(r.accepted for r in rounds),
        sum(r.offered for r in rounds),
        sum(r.unfinished for r in rounds),
        played.plain,
        played.free,
        tuple(sum(r.accepted == a for r in rounds) for a in range(k + 1)),
    )


def pool(counts: Sequence[Counts]) -> Counts:
    """All prompts' rounds as one. ValueError if there is none."""
    first = counts[0]

    def total(name: str) -> int:
        return sum(getattr(c, name) for c in counts)

    return Counts(
        first.rule,
        total("tokens"),
        total("rounds"),
        total("accepted"),
        total("offered"),
        total("unfinished"),
        total("plain"),
        total("free"),
        tuple(sum(c.histogram[a] for c in counts) for a in range(len(first.histogram))),
    )
