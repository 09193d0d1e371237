"""Acceptance that a bar asks for, and acceptance that tokens/round amounts to, in closed form where there is one."""

from __future__ import annotations

from math import sqrt

_ROUNDS = 60


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens/round of k drafts that are each accepted with probability alpha: 1 + alpha + ... + alpha^k.

    Leviathan et al. 2023, equation 1, the target's own token included.
    """
    return sum(alpha**i for i in range(k + 1))


def break_even_rate(bar: float, k: int) -> float | None:
    """accepted/offered at which rounds of k drafts break even: (bar - 1) / k. None if no rate suffices.

    Exact for any distribution of the accepted, rounds at a recording's end left aside: tokens/round = 1 + k rate.
    """
    rate = (bar - 1) / k
    return None if rate > 1 else max(0.0, rate)


def equal_probability(tokens_per_round: float, k: int) -> float | None:
    """The acceptance probability, the same for each draft, that gives these tokens/round; None above k+1.

    The inverse of `expected_tokens`: closed for k = 1 and 2, by bisection beyond. Of a bar it is the break-even probability.
    """
    if tokens_per_round > k + 1:
        return None
    if tokens_per_round <= 1:
        return 0.0
    if k == 1:
        return tokens_per_round - 1
    if k == 2:
        return (sqrt(4 * tokens_per_round - 3) - 1) / 2
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_tokens(middle, k) < tokens_per_round else (low, middle)
    return (low + high) / 2
