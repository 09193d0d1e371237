"""changed, not changed, or undecided: the decision on paired ratios, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import exp, sqrt
from random import Random
from statistics import fmean, stdev
from typing import Literal

from npuprof.stats.order import CONFIDENCE
from npuprof.stats.paired import EXACT_BLOCKS, MIN_BLOCKS, centre
from npuprof.stats.plan import blocks_needed
from npuprof.stats.student import t_cdf

NOISE_THRESHOLD = 0.01
_ALL_FLIPS_UP_TO = 12
_SAMPLED_FLIPS = 4096

Verdict = Literal["changed", "not_changed", "undecided"]


def judge(series: Mapping[str, Sequence[float]], threshold: float = NOISE_THRESHOLD) -> dict[str, Verdict]:
    """The verdict on each ratio, from its per-round log differences (the same rounds in the same order).

    changed: its interval excludes 1, |ratio - 1| > threshold, and the difference survives the step-down over all
    ratios judged. not_changed: the interval lies inside 1 +- threshold. Everything else, and everything under 3 blocks,
    is undecided.
    """
    significant = _step_down(series) if len(series) > 1 else set(series)
    return {name: _verdict(d, threshold, name in significant) for name, d in series.items()}


def _verdict(d: Sequence[float], threshold: float, significant: bool) -> Verdict:
    if len(d) < MIN_BLOCKS:
        return "undecided"
    value, low, high, _ = centre(d)
    if low is None or high is None:
        return "undecided"
    if significant and (low > 0 or high < 0) and abs(exp(value) - 1) > threshold:
        return "changed"
    inside = exp(low) - 1 >= -threshold and exp(high) - 1 <= threshold
    return "not_changed" if inside else "undecided"


def need_blocks(d: Sequence[float], threshold: float = NOISE_THRESHOLD) -> int | None:
    """Rounds that an undecided ratio would need for an interval of +- threshold; None if no sensible number does."""
    return blocks_needed(stdev(d), threshold) if len(d) >= 2 else MIN_BLOCKS


def _step_down(series: Mapping[str, Sequence[float]]) -> set[str]:
    """Names whose difference is not zero at a family-wise 5 %.

    Holm's step-down. Where all series have the same 6 or more rounds, the largest remaining |t| is held against its
    joint distribution under flips of whole rounds (Westfall & Young 1993): exact, and, unlike Bonferroni's bound, not
    blind at 6 rounds, where one ratio's p cannot go under 2/64. Otherwise each t's own p against 5 % / remaining.
    """
    open_names = sorted((n for n, d in series.items() if len(d) >= MIN_BLOCKS), key=lambda n: -_t(series[n]))
    lengths = {len(series[n]) for n in open_names}
    joint = len(lengths) == 1 and lengths.pop() >= EXACT_BLOCKS
    kept: set[str] = set()
    for i, name in enumerate(open_names):
        remaining = open_names[i:]
        if joint:
            p = _joint_p(_t(series[name]), [series[n] for n in remaining])
        else:
            p = min(1.0, 2 * (1 - t_cdf(_t(series[name]), len(series[name]) - 1)) * len(remaining))
        if p > 1 - CONFIDENCE:
            break
        kept.add(name)
    return kept


def _t(d: Sequence[float]) -> float:
    spread = stdev(d)
    mean = abs(fmean(d))
    return mean / (spread / sqrt(len(d))) if spread > 0 else (float("inf") if mean > 0 else 0.0)


def _joint_p(observed: float, series: Sequence[Sequence[float]]) -> float:
    """Share of sign flips of whole rounds under which the largest |t| of the series reaches the one observed."""
    n = len(series[0])
    squares = [sum(v * v for v in d) for d in series]
    reached = tried = 0
    for signs in _flips(n):
        tried += 1
        for d, square in zip(series, squares, strict=True):
            total = sum(s * v for s, v in zip(signs, d, strict=True))
            variance = (square - total * total / n) / (n - 1)
            t = abs(total) / sqrt(n * variance) if variance > 1e-30 * square else (float("inf") if total else 0.0)
            if t >= observed * (1 - 1e-9):
                reached += 1
                break
    return reached / tried


def _flips(n: int) -> list[tuple[int, ...]]:
    # |t| is the same for a flip and its negative, so the first sign stays: half the flips, the same share.
    if n <= _ALL_FLIPS_UP_TO:
        return [(1, *rest) for rest in product((1, -1), repeat=n - 1)]
    random = Random(n)
    return [(1,) * n, *(tuple(random.choice((1, -1)) for _ in range(n)) for _ in range(_SAMPLED_FLIPS - 1))]
