"""Round costs, bars, projections and verdicts: the published figures, identities, and monotonicity."""

from __future__ import annotations

from math import inf, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.economics.acceptance import break_even_rate, equal_probability, expected_tokens
from npuprof.economics.costs import Times, one_pass, two_pass, window_factor
from npuprof.economics.estimate import Estimate
from npuprof.economics.verdict import Thresholds, best_k, case_of, judge, longer_drafts

PUBLISHED = [
    # k, pass, draft, tokens, rounds, round, bar, projected, two-pass round, bar, projected
    (4, 1049.1, 5.76, 160, 54, 1072.1, 1.05, 2.822, 2093.3, 2.05, 1.445),
    (7, 1056.1, 6.42, 160, 47, 1101.0, 1.078, 3.157, 2122.2, 2.078, 1.638),
]
STEP = 1021.2
ms = st.floats(0.01, 1e5)


def times(pass_ms: float, step_ms: float = STEP) -> Times:
    return Times.of(Estimate.exactly(pass_ms), Estimate.exactly(step_ms))


@pytest.mark.parametrize(
    ("k", "pass_ms", "draft", "tokens", "rounds", "round1", "bar1", "x1", "round2", "bar2", "x2"), PUBLISHED
)
def test_published_rounds_bars_and_projections(
    k: int,
    pass_ms: float,
    draft: float,
    tokens: int,
    rounds: int,
    round1: float,
    bar1: float,
    x1: float,
    round2: float,
    bar2: float,
    x2: float,
) -> None:
    per_round = Estimate.exactly(tokens / rounds)
    case = case_of(k, times(pass_ms), Estimate.exactly(k * draft), per_round, Thresholds())
    one, two = case.one_pass, case.two_pass
    assert one.projected is not None
    assert two.projected is not None
    assert [round(one.round.ms.value, 1), round(one.round.bar.value, 3), round(one.projected.value, 3)] == [
        round1,
        bar1,
        x1,
    ]
    assert [round(two.round.ms.value, 1), round(two.round.bar.value, 3), round(two.projected.value, 3)] == [
        round2,
        bar2,
        x2,
    ]
    assert one.verdict == two.verdict == "pays"


@given(ms, ms, ms, st.integers(1, 16), st.floats(0.1, 17))
def test_at_the_window_factor_the_round_breaks_even(
    pass_ms: float, step_ms: float, drafts: float, k: int, tokens: float
) -> None:
    del k
    for two in (False, True):
        factor = window_factor(tokens, times(pass_ms, step_ms), drafts, two=two)
        if factor <= 1e-6:
            continue
        # The plain step is unslowed: only the verifying pass costs F times as much.
        cost = factor * pass_ms + drafts + (step_ms if two else 0)
        assert isclose(cost / step_ms, tokens, rel_tol=1e-9, abs_tol=1e-9)


@given(ms, ms, ms, ms)
def test_a_bar_is_the_round_in_steps_and_rises_with_every_cost(
    pass_ms: float, step_ms: float, drafts: float, more: float
) -> None:
    t, d = times(pass_ms, step_ms), Estimate.exactly(drafts)
    one, two = one_pass(t, d), two_pass(t, d)
    assert isclose(one.bar.value, one.ms.value / step_ms, rel_tol=1e-9)
    assert isclose(two.bar.value, two.ms.value / step_ms, rel_tol=1e-9)
    assert isclose(two.bar.value, one.bar.value + 1, rel_tol=1e-9)
    assert one_pass(times(pass_ms + more, step_ms), d).bar.value >= one.bar.value
    assert one_pass(t, Estimate.exactly(drafts + more)).bar.value >= one.bar.value
    assert one_pass(times(pass_ms, step_ms + more), d).bar.value <= one.bar.value


@given(st.integers(1, 16), st.floats(0, 1))
def test_the_equal_probability_is_the_inverse(k: int, alpha: float) -> None:
    found = equal_probability(expected_tokens(alpha, k), k)
    assert found is not None
    assert isclose(expected_tokens(found, k), expected_tokens(alpha, k), rel_tol=1e-9)


def test_the_tabulated_break_even_probabilities() -> None:
    table = {
        1: (0.200, 0.500, 1, None, None, None),
        2: (0.171, 0.366, 0.618, 0.823, 1, None),
        4: (0.167, 0.336, 0.519, 0.644, 0.741, 0.888),
        7: (0.167, 0.333, 0.502, 0.607, 0.682, 0.787),
    }
    for k, row in table.items():
        for bar, wanted in zip((1.2, 1.5, 2, 2.5, 3, 4), row, strict=True):
            found = equal_probability(bar, k)
            assert (found if found is None else round(found, 3)) == wanted
    assert equal_probability(0.9, 4) == 0
    # Measured with two real drafters: nearly the same over k, where accepted/offered falls.
    assert [round(equal_probability(t, k) or 0, 3) for k, t in ((4, 160 / 42), (7, 160 / 33))] == [0.864, 0.850]


@given(st.floats(1, 9), st.integers(1, 8))
def test_the_break_even_rate_gives_the_bar(bar: float, k: int) -> None:
    rate = break_even_rate(bar, k)
    if bar > k + 1:
        assert rate is None
    else:
        assert rate is not None
        assert isclose(1 + k * rate, bar)


def test_verdicts_hold_for_the_whole_interval_or_are_undecided() -> None:
    limits = Thresholds()
    shape = one_pass(times(15.0, 10.0), Estimate.exactly(0.0))

    def said(low: float, high: float, limits: Thresholds = limits) -> str:
        return judge(shape, 4, Estimate((low + high) / 2, low, high), limits)

    assert said(1.6, 3.0) == "pays"
    assert said(1.4, 3.0) == "undecided"
    assert said(1.1, 1.4) == "does_not_pay"
    assert said(1.6, 3.0, Thresholds(1.2, 1.0)) == "undecided"
    assert judge(one_pass(times(50.0, 10.0), Estimate.exactly(0.0)), 4, None, limits) == "cannot_win"
    assert judge(one_pass(times(49.9, 10.0), Estimate.exactly(0.0)), 4, None, limits) == "undecided"
    unknown = Times(Estimate.exactly(15.0), Estimate.exactly(10.0), Estimate.unknown(1.5))
    assert judge(one_pass(unknown, Estimate.exactly(0.0)), 4, Estimate.exactly(5.0), limits) == "undecided"


@given(st.lists(st.tuples(ms, ms, ms), min_size=2, max_size=2))
def test_intervals_contain_what_their_parts_can_be(parts: list[tuple[float, float, float]]) -> None:
    (a0, a1, a2), (b0, b1, b2) = (sorted(p) for p in parts)
    a, b = Estimate(a1, a0, a2), Estimate(b1, b0, b2)
    for x in (a0, a1, a2):
        for y in (b0, b1, b2):
            assert (a + b).low <= x + y <= (a + b).high
            assert (a / b).low <= x / y <= (a / b).high
    assert (a / Estimate.unknown(b1)).as_dict()["low"] is None
    assert (a / Estimate.unknown(b1)).high == inf


def test_an_estimate_that_is_none_is_refused() -> None:
    for wrong in ((1.0, 2.0, 3.0), (-1.0, -1.0, 1.0), (5.0, 1.0, 4.0)):
        with pytest.raises(ValueError, match="not an estimate"):
            Estimate(*wrong)


def test_the_k_that_pays_best_and_what_longer_drafts_bought() -> None:
    def case(k: int, tokens: float):  # type: ignore[no-untyped-def]
        return case_of(k, times(1049.1), Estimate.exactly(5.76 * k), Estimate.exactly(tokens), Thresholds())

    cases = {4: case(4, 160 / 54), 7: case(7, 160 / 47)}
    assert best_k(cases) == 7
    [bought] = longer_drafts(cases, {4: 0.5, 7: 0.353})
    assert (round(100 * bought.tokens), round(-bought.rate_points)) == (15, 15)
