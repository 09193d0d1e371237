"""Parity finds every kind of wrong model, and nothing in a right one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from npuprof.targets.parity import TIE_MARGIN, check_parity


class FakeModel:
    """A counting model: the next token is a hash of all committed ones. `wrong` breaks one thing."""

    def __init__(self, wrong: str = "", margin: float = 1.0) -> None:
        self.wrong, self.margin = wrong, margin
        self.tokens: list[int] = []
        self.rows: list[int] = []

    def _next(self, tokens: Sequence[int]) -> int:
        return sum((i + 3) * t for i, t in enumerate(tokens, 1)) % 997

    def reset(self, start: int) -> int:
        self.tokens = list(range(start))
        return 5

    def step(self, token: int) -> tuple[int, float]:
        self.tokens.append(token)
        return self._next(self.tokens), self.margin

    def verify(self, tokens: Sequence[int]) -> tuple[list[int], list[float]]:
        self.rows = list(tokens)
        out = [self._next(self.tokens + self.rows[: i + 1]) for i in range(len(tokens))]
        if self.wrong == "row 2":
            out[2] += 1
        return out, [self.margin] * len(out)

    def commit(self, accepted: int) -> None:
        keep = accepted + (self.wrong == "rollback" and accepted == 3)
        self.tokens += self.rows[:keep]

    def state(self) -> bytes:
        return bytes(str(self.tokens), "ascii")


@pytest.mark.parametrize("rows", [2, 5, 17])
@pytest.mark.parametrize("start", [0, 40])
def test_a_right_model_agrees(rows: int, start: int) -> None:
    assert check_parity(FakeModel(), rows, start).agreed


def test_the_first_differing_row_is_named() -> None:
    found = check_parity(FakeModel("row 2"), 5, 0)
    assert not found.agreed
    assert found.detail.startswith("row 2 gives token")


def test_a_difference_at_a_tiny_margin_is_a_tie() -> None:
    found = check_parity(FakeModel("row 2", TIE_MARGIN / 2), 5, 0)
    assert (found.agreed, found.ties) == (True, 1)
    assert str(TIE_MARGIN) in found.detail


def test_a_rollback_that_keeps_a_rejected_row_is_found() -> None:
    found = check_parity(FakeModel("rollback"), 5, 0)
    assert not found.agreed
    assert "after committing 3 of 5 rows" in found.detail
