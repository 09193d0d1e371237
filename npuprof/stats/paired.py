"""Two conditions visited in the same rounds: the paired log-ratio and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import exp, floor, log, sqrt
from statistics import NormalDist, fmean, stdev

from npuprof.model.record import Ratio
from npuprof.stats.order import CONFIDENCE, median
from npuprof.stats.student import t_quantile

MIN_BLOCKS = 3
_COUNTED_UP_TO = 60
_BLOCK_LIMIT = 600
EXACT_BLOCKS = 6

ByRound = Mapping[int, Sequence[float]]
"""One condition's wall times (ms) by round."""


def differences(of: ByRound, to: ByRound) -> list[float]:
    """Per round, mean ln(of) - mean ln(to); rounds that lack a side are dropped. Linear drift cancels in a round."""
    return [fmean(map(log, of[b])) - fmean(map(log, to[b])) for b in sorted(of.keys() & to.keys()) if of[b] and to[b]]


@cache
def walsh_rank(blocks: int) -> tuple[int, float]:
    """k and the coverage of [W(k), W(M+1-k)] over the M = B(B+1)/2 Walsh averages: the largest k that covers 95 %.

    The null distribution of the signed-rank statistic, counted exactly up to 60 blocks and normal beyond (Hollander &
    Wolfe). Under 6 blocks k = 1 covers less than 95 %.
    """
    if blocks > _COUNTED_UP_TO:
        spread = sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
        half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread
        return max(1, floor(blocks * (blocks + 1) / 4 - half)), CONFIDENCE
    top = blocks * (blocks + 1) // 2
    ways = [1] + [0] * top
    for rank in range(1, blocks + 1):
        for total in range(top, rank - 1, -1):
            ways[total] += ways[total - rank]
    outside, k, coverage = 0, 1, 0.0
    for i in range(top // 2):
        outside += ways[i]
        inside = 1 - 2 * outside / 2**blocks
        if i and inside < CONFIDENCE:
            break
        k, coverage = i + 1, inside
    return k, coverage


def centre(d: Sequence[float]) -> tuple[float, float | None, float | None, float | None]:
    """The centre of the differences, its interval's low and high, and the coverage stated.

    3 to 5 blocks: mean and Student's t at 95 %. From 6: Hodges-Lehmann, the median of the Walsh averages, and their
    exact interval. Under 3 blocks: the mean, and no interval. ValueError if empty. Above 600 blocks neighbours are
    averaged into at most so many, since the Walsh averages are the square of that.
    """
    width = -(-len(d) // _BLOCK_LIMIT)
    d = d if width <= 1 else [fmean(d[i : i + width]) for i in range(0, len(d), width)]
    n = len(d)
    if n < MIN_BLOCKS:
        return fmean(d), None, None, None
    if n < EXACT_BLOCKS:
        mean, half = fmean(d), t_quantile((1 + CONFIDENCE) / 2, n - 1) * stdev(d) / sqrt(n)
        return mean, mean - half, mean + half, CONFIDENCE
    walsh = sorted((a + b) / 2 for a, b in combinations_with_replacement(d, 2))
    k, coverage = walsh_rank(n)
    return median(walsh), walsh[k - 1], walsh[-k], coverage


def ratio_of(d: Sequence[float]) -> Ratio | None:
    """The paired ratio from per-round log differences; None without a block."""
    if not d:
        return None
    value, low, high, coverage = centre(d)
    if low is None or high is None:
        return Ratio(value=exp(value), low=None, high=None, coverage=None, blocks=len(d))
    return Ratio(value=exp(value), low=exp(low), high=exp(high), coverage=coverage, blocks=len(d))
