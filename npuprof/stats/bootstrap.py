"""A pooled ratio over prompts: rounds are dependent inside a prompt, so prompts are what is resampled."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt
from random import Random
from statistics import NormalDist

from npuprof.stats.student import t_quantile

MIN_PROMPTS = 20
COVERAGE = 0.95
_RESAMPLES = 4000
_SEED = 20


def ratio_of_sums(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The 95 % interval of sum(a) / sum(b) over prompts (a, b), by the expanded percentile bootstrap.

    The percentiles are those of a normal at sqrt(n/(n-1)) t, which widens for few prompts (Hesterberg 2015, 4.2).
    ValueError under 20 prompts: their minimum and maximum say more than an interval that would not cover.
    """
    n = len(pairs)
    if n < MIN_PROMPTS:
        raise ValueError(f"{n} prompts, {MIN_PROMPTS} are needed")
    random = Random(_SEED)
    found = []
    for _ in range(_RESAMPLES):
        drawn = random.choices(pairs, k=n)
        found.append(sum(a for a, _ in drawn) / sum(b for _, b in drawn))
    found.sort()
    tail = NormalDist().cdf(-sqrt(n / (n - 1)) * t_quantile((1 + COVERAGE) / 2, n - 1))
    rank = floor(tail * _RESAMPLES)
    return found[rank], found[-1 - rank]
