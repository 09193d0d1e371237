"""Paired ratios against enumeration of all signs, and against what a drifting machine does to them."""

from __future__ import annotations

from itertools import product
from math import exp, log
from random import Random

import pytest

from npuprof.stats.paired import centre, differences, ratio_of, walsh_rank
from npuprof.stats.student import t_cdf, t_quantile


def covered_by_enumeration(blocks: int, k: int) -> float:
    """Under symmetry every sign pattern of |d| = 1..B (distinct sums) is equally likely: is 0 inside [W(k), W(M+1-k)]?"""
    sizes = [1 + 0.001 * 2.0**i for i in range(blocks)]
    inside = 0
    for signs in product((1, -1), repeat=blocks):
        d = [s * v for s, v in zip(signs, sizes, strict=True)]
        walsh = sorted((d[i] + d[j]) / 2 for i in range(blocks) for j in range(i, blocks))
        inside += walsh[k - 1] <= 0 <= walsh[-k]
    return inside / 2**blocks


@pytest.mark.parametrize("blocks", range(6, 12))
def test_walsh_coverage_is_what_enumeration_gives_and_k_is_the_largest(blocks: int) -> None:
    k, coverage = walsh_rank(blocks)
    assert coverage == pytest.approx(covered_by_enumeration(blocks, k))
    assert coverage >= 0.95
    assert covered_by_enumeration(blocks, k + 1) < 0.95


def test_beyond_what_is_counted_the_rank_is_nearly_that_of_counting() -> None:
    counted, coverage = walsh_rank(60)
    beyond, stated = walsh_rank(61)
    assert coverage >= 0.95
    assert stated == 0.95
    assert 0 < beyond - counted < 0.08 * counted


def test_thousands_of_blocks_are_averaged_and_keep_their_centre() -> None:
    random = Random(5)
    value, low, high, _ = centre([random.gauss(0.02, 0.01) for _ in range(10_000)])
    assert low is not None
    assert high is not None
    assert low < 0.02 < high
    assert value == pytest.approx(0.02, abs=0.0005)


def test_linear_drift_cancels_in_a_mirrored_round() -> None:
    walls = [100.0 + 3 * i for i in range(4)]  # A B B A, both truly equal
    [d] = differences({1: [walls[1], walls[2]]}, {1: [walls[0], walls[3]]})
    assert abs(d) < 0.002
    assert log(walls[2] / walls[0]) > 0.05


def test_rounds_that_lack_a_side_are_dropped() -> None:
    assert differences({1: [2.0], 2: [2.0], 4: []}, {2: [1.0], 3: [1.0], 4: [1.0]}) == [pytest.approx(log(2))]


def test_under_three_blocks_there_is_no_interval() -> None:
    found = ratio_of([0.1, 0.2])
    assert found is not None
    assert found.value == pytest.approx(exp(0.15))
    assert (found.low, found.high, found.coverage, found.blocks) == (None, None, None, 2)
    assert ratio_of([]) is None


def test_t_form_from_three_to_five_blocks() -> None:
    _, low, high, coverage = centre([0.0, 0.01, 0.02])
    assert coverage == 0.95
    assert low == pytest.approx(0.01 - 4.303 * 0.01 / 3**0.5, rel=1e-3)
    assert high == pytest.approx(0.01 + 4.303 * 0.01 / 3**0.5, rel=1e-3)


def test_six_blocks_use_the_extreme_walsh_averages() -> None:
    d = [0.01, 0.02, 0.03, 0.04, 0.05, 0.09]
    value, low, high, coverage = centre(d)
    assert (low, high) == (0.01, 0.09)
    assert coverage == pytest.approx(1 - 2 / 64)
    assert value == pytest.approx(0.0375, abs=0.0026)


@pytest.mark.parametrize(
    ("df", "published"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)]
)
def test_t_quantile_against_the_published_table(df: int, published: float) -> None:
    assert t_quantile(0.975, df) == pytest.approx(published, abs=0.0006)


@pytest.mark.parametrize("df", [1, 2, 5, 8])
def test_t_cdf_against_simulation(df: int) -> None:
    random = Random(df)
    draws = 20_000
    below = 0
    for _ in range(draws):
        chi = sum(random.gauss(0, 1) ** 2 for _ in range(df))
        below += random.gauss(0, 1) / (chi / df) ** 0.5 <= 1.3
    assert below / draws == pytest.approx(t_cdf(1.3, df), abs=0.012)
