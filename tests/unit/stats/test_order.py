"""The interval of a median against counting and against simulation."""

from __future__ import annotations

from itertools import product
from random import Random
from statistics import median as reference_median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.stats.order import mad, median, median_interval, median_rank


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_median_is_the_standard_librarys(values: list[float]) -> None:
    assert median(values) == pytest.approx(reference_median(values))


def test_nothing_has_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        median([])
    assert median_interval([]) is None
    assert median_interval([3.0]) is None


def covered_by_counting(n: int, k: int) -> float:
    """Each sample lies below or above the true median with equal chance: count the 2^n ways in which it is inside."""
    ways = [sum(sides) for sides in product((0, 1), repeat=n)]
    return sum(k <= below <= n - k for below in ways) / 2**n


@pytest.mark.parametrize("n", range(2, 15))
def test_coverage_is_what_counting_gives_and_k_is_the_largest(n: int) -> None:
    k, coverage = median_rank(n)
    assert coverage == pytest.approx(covered_by_counting(n, k))
    if n >= 6:
        assert coverage >= 0.95
        assert covered_by_counting(n, k + 1) < 0.95
    else:
        assert k == 1


def test_interval_covers_the_median_of_a_skewed_distribution() -> None:
    random = Random(1)
    true = 0.6931471805599453
    inside = 0
    for _ in range(4000):
        found = median_interval([random.expovariate(1) for _ in range(9)])
        assert found is not None
        inside += found.low_ms <= true <= found.high_ms
    assert inside / 4000 == pytest.approx(median_rank(9)[1], abs=0.015)


def test_few_samples_give_min_and_max() -> None:
    found = median_interval([3.0, 1.0, 2.0, 5.0])
    assert found is not None
    assert (found.low_ms, found.high_ms, found.coverage) == (1.0, 5.0, 0.875)


def test_mad() -> None:
    assert mad([1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]) == 1.0
