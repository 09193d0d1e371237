"""Outliers are flagged, named and never deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from statistics import NormalDist

from npuprof.stats.order import mad, median

# n, and the cut of |0.6745 (x - median) / MAD| that a clean normal sample of n exceeds anywhere in 5 % of cases.
# From simulation (tests recompute it); the textbook 3.5 flags a fifth of clean samples at n = 5.
_CUTS = ((5, 7.9), (6, 5.5), (8, 4.9), (10, 4.5), (12, 4.4), (16, 4.2), (20, 4.0), (30, 3.8))


def cut(n: int) -> float | None:
    """The cut for n samples at a family-wise 5 %; None under 5, where nothing can be called an outlier."""
    sizes = [size for size, _ in _CUTS]
    if n < sizes[0]:
        return None
    i = bisect_right(sizes, n) - 1
    low_n, low = _CUTS[i]
    if i + 1 < len(_CUTS):
        high_n, high = _CUTS[i + 1]
        return low + (high - low) * (n - low_n) / (high_n - low_n)
    # Beyond the table the MAD is nearly exact: the normal quantile of the same family-wise 5 % takes over.
    return max(low, NormalDist().inv_cdf(1 - (1 - 0.95 ** (1 / n)) / 2))


def scores(values: Sequence[float], resolution: float = 1e-6) -> list[float]:
    """M_i = 0.6745 (x_i - median) / MAD (Iglewicz & Hoaglin 1993).

    A MAD of zero is lifted to the clock's resolution (ms) or 0.05 % of the median.
    """
    middle = median(values)
    spread = mad(values)
    if spread == 0:
        spread = max(resolution, 0.0005 * middle)
    return [0.6745 * (v - middle) / spread for v in values]


def outliers(values: Sequence[float]) -> list[int]:
    """Indices of the values beyond the cut."""
    limit = cut(len(values))
    if limit is None:
        return []
    return [i for i, m in enumerate(scores(values)) if abs(m) > limit]
