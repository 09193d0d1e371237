"""Parity: an M-row pass must give the tokens, and leave the state, that single steps give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from npuprof.targets.base import ParityOutcome

TIE_MARGIN = 0.001
"""A row whose two best logits lie closer than this may legitimately come out either way."""


class GreedyModel(Protocol):
    """A decoder that can be asked for the same thing in two ways."""

    def reset(self, start: int) -> int:
        """State with `start` tokens committed; returns the token that comes next, the first row's input."""
        ...

    def step(self, token: int) -> tuple[int, float]:
        """Commits one token; returns the greedy next token and the margin between the two best logits."""
        ...

    def verify(self, tokens: Sequence[int]) -> tuple[list[int], list[float]]:
        """One pass over the rows, none of them committed yet: the greedy next token and margin after each."""
        ...

    def commit(self, accepted: int) -> None:
        """Keeps the first `accepted` rows of the last `verify` and rejects the rest."""
        ...

    def state(self) -> bytes:
        """A digest of everything that the next forward depends on."""
        ...


def check_parity(model: GreedyModel, rows: int, start: int) -> ParityOutcome:
    """Compares one pass of `rows` with as many steps, then every committed length 0..rows with as many steps.

    The first difference at a margin of TIE_MARGIN or more is named with its row; smaller ones are counted as ties.
    """
    token = model.reset(start)
    inputs: list[int] = []
    expected: list[tuple[int, float]] = []
    states = [model.state()]
    for _ in range(rows):
        inputs.append(token)
        token, margin = model.step(token)
        expected.append((token, margin))
        states.append(model.state())

    model.reset(start)
    got, _ = model.verify(inputs)
    ties = 0
    for row, ((want, margin), have) in enumerate(zip(expected, got, strict=True)):
        if have == want:
            continue
        if margin >= TIE_MARGIN:
            return ParityOutcome(
                False, ties, f"row {row} gives token {have}, a single step gives {want} (top-2 margin {margin:.3g})"
            )
        ties += 1
    for accepted in range(rows + 1):
        model.reset(start)
        model.verify(inputs)
        model.commit(accepted)
        if model.state() != states[accepted]:
            return ParityOutcome(
                False, ties, f"after committing {accepted} of {rows} rows the state differs from {accepted} steps"
            )
    return ParityOutcome(True, ties, f"{ties} ties under a top-2 margin of {TIE_MARGIN}" if ties else "")
