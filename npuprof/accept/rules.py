"""The verify loop against a recording, by the two rules that are counted in the field.

`reference`: the first round proposes behind the bare prompt; min(len(draft), k) drafts are offered in every round, also past the
end of the recording; a round whose accepted drafts reach the end has no token of the target's own.
`llama-server`: as a live one counts. The first token comes from the prompt pass, drafts are clipped to what remains less one,
and a step with nothing to draft is a plain one, no round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Rule = Literal["reference", "llama-server"]
RULES: tuple[str, ...] = get_args(Rule)

Propose = Callable[[int, int], Sequence[int]]
"""(committed tokens, how many) -> that many proposals or fewer."""


@dataclass(frozen=True)
class Round:
    """One verification behind `position` committed tokens. `committed` = accepted + 1, or accepted at the recording's end."""

    position: int
    offered: int
    accepted: int
    committed: int

    @property
    def unfinished(self) -> bool:
        """It ended without a token of the target's own."""
        return self.committed == self.accepted


@dataclass(frozen=True)
class Played:
    """One prompt under one rule: `plain` counts single steps that are no rounds, `free` the token of the prompt pass."""

    tokens: int
    rounds: tuple[Round, ...]
    plain: int = 0
    free: int = 0


def play(rule: Rule, ids: Sequence[int], k: int, propose: Propose) -> Played:
    """All rounds of one prompt whose continuation is `ids`."""
    return _as_llama_server(ids, k, propose) if rule == "llama-server" else _as_reference(ids, k, propose)


def _as_reference(ids: Sequence[int], k: int, propose: Propose) -> Played:
    rounds = []
    at = 0
    while at < len(ids):
        draft = propose(at, k)[:k]
        accepted = matching(draft, ids[at : at + k])
        committed = accepted if at + accepted == len(ids) else accepted + 1
        rounds.append(Round(at, len(draft), accepted, committed))
        at += committed
    return Played(len(ids), tuple(rounds))


def _as_llama_server(ids: Sequence[int], k: int, propose: Propose) -> Played:
    rounds = []
    plain = 0
    at = 1
    while at < len(ids):
        room = min(k, len(ids) - at - 1)
        draft = propose(at, room)[:room] if room else ()
        if not draft:
            plain += 1
            at += 1
            continue
        accepted = matching(draft, ids[at : at + room])
        rounds.append(Round(at, len(draft), accepted, accepted + 1))
        at += accepted + 1
    return Played(len(ids), tuple(rounds), plain, free=1)


def matching(draft: Sequence[int], truth: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    n = min(len(draft), len(truth))
    return next((i for i in range(n) if draft[i] != truth[i]), n)
