"""One condition: its median with an exact, distribution-free interval."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, floor, sqrt
from statistics import NormalDist

from npuprof.model.record import Interval

CONFIDENCE = 0.95
_COUNTED_UP_TO = 1000


def median(values: Sequence[float]) -> float:
    """The middle of the sorted values, the mean of the two middle ones for an even number. ValueError if empty."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, in the unit of the values, not scaled."""
    middle = median(values)
    return median([abs(v - middle) for v in values])


def median_rank(n: int) -> tuple[int, float]:
    """k and the coverage of [x(k), x(n+1-k)] for the median of n values: the largest k that covers 95 %, else k = 1.

    coverage = 1 - 2 sum_{i<k} C(n,i) / 2^n, for any continuous distribution (David & Nagaraja, Order Statistics, 7.1);
    normal beyond 1,000 values.
    """
    if n > _COUNTED_UP_TO:
        # The binomial's normal limit, rounded outwards.
        k = max(1, floor(n / 2 - NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * sqrt(n) / 2))
        return k, CONFIDENCE
    outside, k, coverage = 0, 1, 0.0
    for i in range((n + 1) // 2):
        outside += comb(n, i)
        inside = 1 - 2 * outside / 2**n
        if i and inside < CONFIDENCE:
            break
        k, coverage = i + 1, inside
    return k, coverage


def median_interval(values: Sequence[float]) -> Interval | None:
    """The interval of the median, ms, with the coverage it achieves; min and max at n 2 to 5; None at n < 2."""
    n = len(values)
    if n < 2:
        return None
    k, coverage = median_rank(n)
    ordered = sorted(values)
    return Interval(low_ms=ordered[k - 1], high_ms=ordered[n - k], coverage=coverage)
