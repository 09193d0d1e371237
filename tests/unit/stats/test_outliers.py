"""Outlier cuts: their family-wise error by simulation."""

from __future__ import annotations

from random import Random

import pytest

from npuprof.stats.outliers import cut, outliers, scores


@pytest.mark.parametrize("n", [5, 6, 8, 9, 12, 20, 30, 100])
def test_a_clean_sample_is_flagged_in_about_five_percent(n: int) -> None:
    random = Random(n)
    flagged = sum(bool(outliers([random.gauss(100, 1) for _ in range(n)])) for _ in range(3000))
    assert 0.025 <= flagged / 3000 <= 0.075


def test_a_real_outlier_is_found_and_few_samples_have_none() -> None:
    assert outliers([10.0, 10.1, 9.9, 10.05, 9.95, 30.0]) == [5]
    assert outliers([10.0, 10.1, 9.9, 900.0]) == []
    assert cut(4) is None


def test_identical_samples_do_not_divide_by_zero() -> None:
    assert scores([10.0] * 6) == [0.0] * 6
    assert outliers([10.0] * 6 + [10.1]) == [6]
