"""Schedule, budget, voiding, parity outcome: pure parts of a campaign."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import make_passes, usual_walls

from npuprof.campaign import budget, parity
from npuprof.campaign.provenance import provenance
from npuprof.campaign.schedule import canary, middle_of, mirrored_round, warm_up
from npuprof.campaign.voiding import Window, void_passes
from npuprof.model.condition import Condition, conditions
from npuprof.model.record import ParityRow


@given(st.sets(st.integers(2, 99), min_size=1, max_size=8), st.integers(0, 2**32), st.integers(1, 4))
def test_a_round_is_mirrored_and_every_pair_an_abba_block(rows: set[int], seed: int, steps: int) -> None:
    wanted = conditions(sorted(rows), [0])
    visits = mirrored_round(wanted, 3, steps, Random(seed))
    names = [v.condition for v in visits]
    assert names == names[::-1]
    assert sorted(names[: len(wanted)]) == sorted(c.name for c in wanted)
    assert {v.samples for v in visits if v.rows == 1} == {steps}
    assert {v.samples for v in visits if v.rows > 1} == {1}
    assert {v.round for v in visits} == {3}


def test_the_seed_decides_the_order() -> None:
    wanted = conditions([2, 3, 5, 8], [0])
    a, b = (mirrored_round(wanted, 1, 1, Random(9)) for _ in range(2))
    assert a == b
    assert a != mirrored_round(wanted, 1, 1, Random(10))


def test_warm_up_is_per_condition_and_canaries_are_steps() -> None:
    assert [(v.condition, v.samples, v.phase) for v in warm_up(conditions([2], [0]), 2)] == [
        ("step", 2, "warmup"),
        ("rows=2", 2, "warmup"),
    ]
    assert warm_up(conditions([2], [0]), 0) == []
    assert [(v.rows, v.phase) for v in canary(Condition(1))] == [(1, "canary")]


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_bisecting_ends_at_adjacent_rows(low: int, width: int) -> None:
    high, tries = low + width, 0
    while (middle := middle_of(low, high)) is not None:
        assert low < middle < high
        low, high = (middle, high) if tries % 2 else (low, middle)
        tries += 1
    assert high - low == 1
    assert tries <= 10


def test_a_budget_buys_what_the_noise_needs_and_no_more() -> None:
    quiet = [[0.001, 0.0, -0.001]]
    assert budget.plan(quiet, 1.0, 5.0, 600.0).rounds == 6
    noisy = [[0.03, 0.0, -0.03]]
    assert budget.plan(noisy, 1.0, 5.0, 600.0).rounds > 6
    assert budget.plan(noisy, 1.0, 5.0, 9.5).rounds == 7
    assert budget.plan(noisy, 1.0, 20.0, 9.5).rounds == budget.PILOT_ROUNDS
    hopeless = budget.plan([[0.5, 0.0, -0.5]], 1.0, 5.0, 30.0)
    assert hopeless.rounds == 28
    assert "more rounds than make sense" in hopeless.text
    assert hopeless.cost_s == 30.0


def test_voiding_by_window_spares_what_does_not_touch_it() -> None:
    passes = make_passes(usual_walls())
    end_of_2 = passes[2].at_ns + int(passes[2].wall_ms * 1e6)
    found = void_passes(passes, [Window(end_of_2, passes[4].at_ns, "page fault")])
    assert [p.seq for p in found if p.phase == "void"] == [2, 3, 4]
    assert {p.void_reason for p in found if p.phase == "void"} == {"page fault"}
    assert void_passes(passes, []) == passes


def test_parity_outcome() -> None:
    good, bad = (
        ParityRow(rows=2, start=0, agreed=True, ties=1),
        ParityRow(rows=3, start=0, agreed=False, ties=0, detail="row 2"),
    )
    assert parity.outcome([good], True).agreed
    found = parity.outcome([good, bad], True)
    assert (found.checked, found.agreed, found.ties, found.detail) == (True, False, 1, "rows=3 from start 0: row 2")
    assert not parity.outcome([], False).checked
    assert [c.name for c in parity.allowed(conditions([2, 3], [0]), [good, bad])] == ["step", "rows=2"]


def test_provenance_tells_what_the_system_tells(tmp_path: object) -> None:
    from pathlib import Path

    root = Path(str(tmp_path))
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text("processor : 0\nmodel name : Fake CPU 9\n")
    found = provenance({}, root)
    assert found["host"]["cpu"] == "Fake CPU 9"
    assert found["host"]["governor"] is None
    governor = root / "sys/devices/system/cpu/cpu0/cpufreq"
    governor.mkdir(parents=True)
    (governor / "scaling_governor").write_text("performance\n")
    assert provenance({}, root)["host"]["governor"] == "performance"
    assert provenance({}, root / "nowhere")["host"]["cpu"] is None


@pytest.mark.parametrize("name", ["rows=2", "rows=17"])
def test_middle_of_adjacent_is_none(name: str) -> None:
    rows = int(name[5:])
    assert middle_of(rows, rows + 1) is None
