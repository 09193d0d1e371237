"""Verdicts: false alarms by simulation, clear cases by construction."""

from __future__ import annotations

from random import Random

import pytest

from npuprof.stats.judge import judge, need_blocks
from npuprof.stats.plan import blocks_needed


def noisy(random: Random, centre: float, blocks: int, noise: float = 0.01) -> list[float]:
    return [random.gauss(centre, noise) for _ in range(blocks)]


@pytest.mark.parametrize("blocks", [3, 5, 6, 8])
def test_identical_conditions_are_called_changed_in_at_most_five_percent_of_campaigns(blocks: int) -> None:
    random = Random(blocks)
    false = 0
    for _ in range(1000):
        base = noisy(random, 0, blocks)
        campaign = {f"c{i}": [v - b for v, b in zip(noisy(random, 0, blocks), base, strict=True)] for i in range(5)}
        false += "changed" in judge(campaign).values()
    assert false / 1000 <= 0.05


def test_a_clear_change_among_several_is_found_at_the_default_rounds() -> None:
    random = Random(2)
    found = judge(
        {"same": noisy(random, 0, 6, 0.001), "slower": noisy(random, 0.3, 6), "faster": noisy(random, -0.3, 6)}
    )
    assert found == {"same": "not_changed", "slower": "changed", "faster": "changed"}


def test_significant_but_within_the_noise_threshold_is_no_change() -> None:
    assert judge({"a": [0.004, 0.0041, 0.0042, 0.0043, 0.0044, 0.0045]}) == {"a": "not_changed"}


def test_a_wide_interval_is_undecided_and_says_what_it_needs() -> None:
    d = [0.05, -0.03, 0.02, -0.04, 0.03, 0.01]
    assert judge({"a": d}) == {"a": "undecided"}
    need = need_blocks(d)
    assert need is not None
    assert need > 6


def test_under_three_blocks_all_is_undecided() -> None:
    assert judge({"a": [0.5, 0.5], "b": []}) == {"a": "undecided", "b": "undecided"}
    assert need_blocks([0.5]) == 3


def test_exactly_equal_differences() -> None:
    assert judge({"a": [0.5] * 6, "b": [0.0] * 6}) == {"a": "changed", "b": "not_changed"}


def test_series_of_different_lengths_fall_back_to_their_own_p() -> None:
    random = Random(3)
    found = judge({"a": noisy(random, 0.3, 6), "b": noisy(random, 0.0, 7, 0.001)})
    assert found == {"a": "changed", "b": "not_changed"}


def test_many_blocks_are_sampled() -> None:
    random = Random(4)
    found = judge({"a": noisy(random, 0.05, 20), "b": noisy(random, 0.0, 20, 0.002)})
    assert found == {"a": "changed", "b": "not_changed"}


@pytest.mark.parametrize(
    ("noise", "half", "blocks"),
    [(0.005, 0.01, 4), (0.01, 0.01, 7), (0.02, 0.01, 18), (0.01, 0.02, 4), (0.05, 0.05, 7), (0.005, 0.05, 3)],
)
def test_blocks_needed_against_the_published_plan(noise: float, half: float, blocks: int) -> None:
    assert blocks_needed(noise, half) == blocks


def test_no_number_of_blocks_mends_a_broken_machine() -> None:
    assert blocks_needed(0.5, 0.01) is None
