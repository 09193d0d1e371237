"""Drift and steps: exact distributions by enumeration, false alarms and power by simulation."""

from __future__ import annotations

from itertools import permutations
from math import exp
from random import Random

import pytest

from npuprof.stats import drift
from npuprof.stats.order import median
from npuprof.stats.samples import Sample, stability


@pytest.mark.parametrize("n", [3, 5, 7])
def test_kendall_p_against_all_orders(n: int) -> None:
    scores = [drift.kendall_s(order) for order in permutations(range(n))]
    for s in set(scores):
        exact = sum(abs(x) >= abs(s) for x in scores) / len(scores)
        assert drift.kendall_p([float(v) for v in range(n)], s) == pytest.approx(exact)


@pytest.mark.parametrize(("n", "threshold"), [(5, 10), (6, 13), (8, 18), (10, 23), (12, 30), (16, 46), (20, 62)])
def test_published_thresholds_of_s(n: int, threshold: int) -> None:
    distinct = [float(v) for v in range(n)]
    assert drift.kendall_p(distinct, threshold) <= 0.05
    assert drift.kendall_p(distinct, threshold - 2) > 0.05


def test_ties_and_long_series_use_the_normal_form() -> None:
    assert drift.kendall_p([1.0] * 8) == 1.0
    random = Random(1)
    rising = [i + random.gauss(0, 1) for i in range(60)]
    assert drift.kendall_p(rising) < 1e-9
    tied = [float(i // 2) for i in range(20)]
    assert drift.kendall_p(tied) < 1e-4


def test_theil_sen_ignores_a_spike() -> None:
    assert drift.theil_sen([0.0, 1.0, 2.0, 300.0, 4.0, 5.0, 6.0]) == 1.0


def brute_step(r: list[float]) -> tuple[int, float]:
    splits = range(3, len(r) - 2)
    best = max(splits, key=lambda t: abs(median(r[t:]) - median(r[:t])))
    return best, median(r[best:]) - median(r[:best])


def test_largest_step_is_what_trying_every_split_gives() -> None:
    random = Random(7)
    for n in (6, 7, 12, 31):
        r = [random.gauss(0, 1) for _ in range(n)]
        tau, size = drift.largest_step(r)
        assert (tau, size) == (brute_step(r)[0], pytest.approx(brute_step(r)[1]))
    assert drift.largest_step([1.0] * 5) == (0, 0.0)


def campaign(random: Random, rounds: int, factor: object = None, noise: float = 0.01) -> list[Sample]:
    total = rounds * 8
    assert factor is None or callable(factor)
    return [
        Sample(
            f"c{i % 4}",
            i // 8 + 1,
            i,
            100 * (i % 4 + 1) * (factor(i / total) if factor else 1) * exp(random.gauss(0, noise)),
        )
        for i in range(total)
    ]


def test_a_clean_campaign_is_rarely_called_anything() -> None:
    random = Random(11)
    flagged = sum(stability(campaign(random, 6), [100.0, 100.0]).series not in ("flat", "warm-up") for _ in range(250))
    assert flagged / 250 <= 0.03


def test_classes() -> None:
    random = Random(5)
    assert stability(campaign(random, 6), [100, 100]).series == "flat"
    assert stability(campaign(random, 6, lambda at: 1 + 0.08 * at, 0.003), []).series in ("slowdown", "step")
    assert stability(campaign(random, 6, lambda at: 1.3 if at >= 0.5 else 1), []).series == "step"
    assert stability(campaign(random, 1)[:4], []).series == "not_testable"
    found = stability(campaign(random, 12, lambda at: 1.05 if at < 1 / 12 else 1.0), [])
    assert found.series in ("warm-up", "step")


def test_gentle_drifts_are_named_with_their_sign() -> None:
    random = Random(9)
    slower = stability(campaign(random, 12, lambda at: 1 + 0.02 * at, 0.004), [])
    faster = stability(campaign(random, 12, lambda at: 1 - 0.02 * at, 0.004), [])
    assert {slower.series, faster.series} <= {"slowdown", "speedup", "step"}
    assert slower.drift.flagged
    assert slower.drift.percent is not None
    assert slower.drift.percent > 0 > (faster.drift.percent or 0)


def test_only_the_canary_sees_a_drift_hidden_by_noise() -> None:
    random = Random(3)
    found = stability(campaign(random, 2), [100.0, 140.0])
    assert found.drift.flagged
    assert found.series == "slowdown"
    assert found.drift.canary_percent == pytest.approx(40)
    assert "canary" in (found.drift.detail or "")
    assert stability(campaign(random, 2), [140.0, 100.0]).series == "speedup"


def test_a_harmless_drift_under_one_percent_is_not_flagged() -> None:
    found = stability(campaign(Random(2), 6, lambda at: 1 + 0.005 * at, 0.0005), [100, 100])
    assert found.series == "flat"


def test_first_round_slower() -> None:
    random = Random(8)
    r = [random.gauss(0.05 if i < 6 else 0, 0.003) for i in range(60)]
    assert drift.first_round_slower(r, [i < 6 for i in range(60)], 1)
    flat = [random.gauss(0, 0.003) for _ in range(60)]
    assert not drift.first_round_slower(flat, [i < 6 for i in range(60)], 1)
    assert not drift.first_round_slower(r, [True] * 60, 1)


def test_a_very_long_series_is_thinned() -> None:
    random = Random(6)
    samples = [Sample("a", i, i, 100 * (1 + 0.1 * i / 5000) * exp(random.gauss(0, 0.01))) for i in range(5000)]
    found = stability(samples, [])
    assert found.drift.flagged
