"""Did the campaign drift or step? Judged once, on the residuals of all conditions pooled in run order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from math import erfc, exp, log, sqrt
from random import Random

from npuprof.stats.order import mad, median

SIZE_FLOOR = 0.01
ALPHA = 0.01
TREND_ALPHA = 0.005
"""Trend and step are two tests of one campaign: at 1 % each, 2.3 % of clean campaigns of 4 rounds were called drifting."""
MIN_SAMPLES = 5
_EXACT_UP_TO = 40
_SHUFFLES = 2000
_EDGE = 3


def residuals(samples: Sequence[tuple[str, float]]) -> list[float]:
    """r_i = ln x_i - median over its condition of ln x, in the order given. Samples are (condition, wall ms)."""
    logs: dict[str, list[float]] = defaultdict(list)
    for condition, wall in samples:
        logs[condition].append(log(wall))
    middles = {condition: median(values) for condition, values in logs.items()}
    return [log(wall) - middles[condition] for condition, wall in samples]


def noise(r: Sequence[float]) -> float:
    """s_noise = 1.4826 MAD of the residuals: a robust standard deviation of one pass, relative."""
    return 1.4826 * mad(r)


def kendall_s(r: Sequence[float]) -> int:
    """Mann-Kendall's S = sum over i < j of sign(r_j - r_i)."""
    return sum((b > a) - (b < a) for i, a in enumerate(r) for b in r[i + 1 :])


@cache
def _kendall_tail(n: int) -> tuple[float, ...]:
    """P(inversions <= i) over all orders of n distinct values, i = 0, 1, ..."""
    ways = [1]
    for m in range(2, n + 1):
        longer = [0] * (len(ways) + m - 1)
        for i, w in enumerate(ways):
            for j in range(m):
                longer[i + j] += w
        ways = longer
    total, seen, tail = sum(ways), 0, []
    for w in ways:
        seen += w
        tail.append(seen / total)
    return tuple(tail)


def kendall_p(r: Sequence[float], s: int | None = None) -> float:
    """Two-sided p of S: counted exactly up to 40 distinct values, else normal with the correction for ties."""
    n = len(r)
    s = kendall_s(r) if s is None else s
    if len(set(r)) == n and n <= _EXACT_UP_TO:
        pairs = n * (n - 1) // 2
        return min(1.0, 2 * _kendall_tail(n)[(pairs - abs(s)) // 2])
    counts: dict[float, int] = defaultdict(int)
    for v in r:
        counts[v] += 1
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in counts.values())) / 18
    if variance <= 0 or s == 0:
        return 1.0
    return erfc((abs(s) - 1) / sqrt(variance) / sqrt(2))


def theil_sen(r: Sequence[float]) -> float:
    """The median slope over all pairs, per sample; times n it is the drift over the campaign, relative."""
    return median([(b - a) / (j - i) for i, a in enumerate(r) for j, b in enumerate(r[i + 1 :], i + 1)])


def largest_step(r: Sequence[float]) -> tuple[int, float]:
    """The split tau (samples before it) with the largest |median after - median before|, and that signed difference.

    Splits leave at least 3 samples on each side; (0, 0.0) where there are fewer than 6.
    """
    n = len(r)
    if n < 2 * _EDGE:
        return 0, 0.0
    before = _running_medians(r)
    after = _running_medians(r[::-1])[::-1]
    best = max(range(_EDGE, n - _EDGE + 1), key=lambda tau: abs(after[tau] - before[tau - 1]))
    return best, after[best] - before[best - 1]


def _running_medians(r: Sequence[float]) -> list[float]:
    """The median of r[:i+1] for every i."""
    ordered: list[float] = []
    out = []
    for i, v in enumerate(r, 1):
        insort(ordered, v)
        out.append(ordered[i // 2] if i % 2 else (ordered[i // 2 - 1] + ordered[i // 2]) / 2)
    return out


def step_is_real(r: Sequence[float], size: float, seed: int) -> bool:
    """Permutation test of the largest step: p < 0.01 over 2,000 seeded shuffles, (1 + reached) / (1 + shuffles).

    Ends as soon as the answer is certain (Besag & Clifford 1991), which is most of the time after some dozens.
    """
    random = Random(seed)
    shuffled = list(r)
    allowed = ALPHA * (1 + _SHUFFLES) - 1
    reached = 0
    for _ in range(_SHUFFLES):
        random.shuffle(shuffled)
        reached += abs(largest_step(shuffled)[1]) >= size
        if reached >= allowed:
            return False
    return True


def first_round_slower(r: Sequence[float], in_first: Sequence[bool], seed: int) -> bool:
    """Is the first measured round alone slower, by more than 1 % and at p < 0.01 by permutation?"""
    first = [v for v, f in zip(r, in_first, strict=True) if f]
    others = sorted(v for v, f in zip(r, in_first, strict=True) if not f)
    if not first or len(others) < _EDGE:
        return False
    size = median(first) - median(others)
    if size <= SIZE_FLOOR:
        return False
    ordered = sorted(r)
    # Rank sum of the first round against that of random draws of as many samples.
    ranks = [bisect_left(ordered, v) for v in r]
    observed = sum(k for k, f in zip(ranks, in_first, strict=True) if f)
    random = Random(seed)
    reached = sum(sum(random.sample(ranks, len(first))) >= observed for _ in range(_SHUFFLES))
    return (1 + reached) / (1 + _SHUFFLES) < ALPHA


def canary_change(canaries: Sequence[float]) -> float | None:
    """ln(last / first) of the canaries, ms each; None with fewer than two."""
    return log(canaries[-1] / canaries[0]) if len(canaries) >= 2 else None


def percent(log_change: float) -> float:
    """A log change as percent."""
    return (exp(log_change) - 1) * 100
