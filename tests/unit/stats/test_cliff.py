"""The cliff: published medians, and constructed rounds."""

from __future__ import annotations

import pytest

from npuprof.stats.cliff import find_cliff, gaps_from_medians, gaps_from_rounds


def test_the_published_rows_give_16_17() -> None:
    cliff = find_cliff(gaps_from_medians({1: 1021.2, 16: 1073.4, 17: 6992.2}))
    assert cliff is not None
    assert (cliff.last_cheap_rows, cliff.first_costly_rows) == (16, 17)
    assert cliff.factor == pytest.approx(6992.2 / 1073.4)


@pytest.mark.parametrize(
    "medians",
    [
        {1: 100.0, 2: 110.0, 4: 130.0, 8: 170.0, 16: 250.0},
        {1: 100.0, 8: 140.0},
        {1: 100.0},
        {},
        {1: 100.0, 8: 104.0, 9: 108.0},
    ],
)
def test_no_cliff_where_rows_explain_the_cost(medians: dict[int, float]) -> None:
    assert find_cliff(gaps_from_medians(medians)) is None


def test_one_gap_alone_needs_half_a_pass() -> None:
    assert find_cliff(gaps_from_medians({1: 100.0, 8: 160.0})) is not None


def test_the_larger_factor_wins() -> None:
    cliff = find_cliff(gaps_from_medians({1: 10.0, 2: 10.1, 3: 10.2, 4: 15.0, 5: 15.1, 6: 15.2, 7: 60.0, 8: 60.1}))
    assert cliff is not None
    assert cliff.last_cheap_rows == 6


def rounds(walls: dict[int, list[float]]) -> dict[int, dict[int, list[float]]]:
    return {rows: {b: [w] for b, w in enumerate(values)} for rows, values in walls.items()}


def test_a_gap_whose_interval_reaches_the_usual_cost_is_no_cliff() -> None:
    flat = {1: [10.0] * 4, 8: [10.1] * 4, 16: [10.2] * 4}
    assert find_cliff(gaps_from_rounds(rounds({**flat, 17: [14.0, 14.1, 13.9, 14.0]}))) is not None
    assert find_cliff(gaps_from_rounds(rounds({**flat, 17: [10.0, 22.0, 9.0, 15.0]}))) is None


def test_under_three_blocks_there_is_no_cliff() -> None:
    assert gaps_from_rounds(rounds({1: [10.0, 10.0], 2: [90.0, 90.0]})) == []
