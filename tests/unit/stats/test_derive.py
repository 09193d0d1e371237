"""Summary, trust, look-up and advice of records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from records import make_passes, make_record, usual_record, usual_walls, voided

from npuprof.model.condition import Condition, conditions, parse_condition
from npuprof.model.passes import NO_TERMS, Pass
from npuprof.model.record import Ending, Parity, ParityRow
from npuprof.stats.advice import advice
from npuprof.stats.derive import contradictions
from npuprof.stats.lookup import NotMeasured, look_up


def test_condition_names() -> None:
    assert [c.name for c in conditions([2, 17], [0])] == ["step", "rows=2", "rows=17"]
    several = conditions([2], [0, 512])
    assert [c.name for c in several] == ["step,start=0", "rows=2,start=0", "step,start=512", "rows=2,start=512"]
    assert [parse_condition(c.name) for c in several] == several
    assert several[3].key == "2@512"
    with pytest.raises(ValueError, match="no condition"):
        parse_condition("rows=x")


def test_summary_of_a_quiet_campaign() -> None:
    s = usual_record().summary
    assert s.step is not None
    assert s.step.n == 12
    assert s.step.interval is not None
    assert s.step.interval.coverage == pytest.approx(0.961, abs=0.001)
    five = s.passes["5"]
    assert five.ratio_to_step is not None
    assert five.ratio_to_step.value == pytest.approx(1.03, abs=0.005)
    assert five.ratio_to_step.blocks == 6
    assert five.device_wait_median_ms == pytest.approx(five.median_ms - 3.95)
    assert five.terms_share["device_wait_ms"] == pytest.approx(6.35 / 10.3, abs=0.01)
    assert s.cliff is not None
    assert (s.cliff.last_cheap_rows, s.cliff.first_costly_rows) == (16, 17)
    assert usual_record().trust.trusted


def test_only_measured_passes_count() -> None:
    passes = make_passes(usual_walls())
    extra = [
        replace(passes[0], seq=1000 + i, phase=phase, wall_ms=999.0)
        for i, phase in enumerate(("warmup", "canary", "void"))
    ]
    s = make_record([*passes, *extra]).summary  # type: ignore[list-item]
    assert s.step is not None
    assert s.step.max_ms < 11
    assert s.step.void == 1


def test_several_starts() -> None:
    walls = {Condition(m, s, True): [[10.0 * m + s, 10.1 * m + s]] * 3 for s in (512, 0) for m in (1, 2)}
    record = make_record(make_passes(walls), rows=[2], starts=[512, 0])
    s = record.summary
    assert set(s.passes) == {"2@512", "2@0"}
    assert s.by_start is not None
    assert s.step == s.by_start["512"].step
    ratio = s.passes["2@0"].ratio_to_step
    assert ratio is not None
    assert ratio.value == pytest.approx(2.0)
    assert look_up(record, 2, 0).step_ms == pytest.approx(10.05)
    assert look_up(record, 2, None).step_ms == pytest.approx(522.05)
    with pytest.raises(NotMeasured, match="start 7 was not measured"):
        look_up(record, 2, 7)


def reasons(record_passes: list[Pass], **more: object) -> dict[str, str]:
    trust = make_record(record_passes, **more).trust  # type: ignore[arg-type]
    return {r.code: r.affects for r in trust.reasons}


def test_trust_reasons() -> None:
    passes = make_passes(usual_walls())
    assert reasons(passes) == {}
    assert reasons([]) == {"nothing_measured": "all"}
    cut = Ending(how="interrupted", rounds_planned=6, rounds_done=2)
    assert reasons(passes, ending=cut) == {"interrupted": "all"}
    failed = Ending(how="failed", rounds_planned=6, rounds_done=2, detail="gone")
    assert reasons(passes, ending=failed) == {"failed": "all"}
    seventeen = [p.seq for p in passes if p.rows == 17]
    assert reasons(voided(passes, set(seventeen[:2]))) == {}
    assert reasons(voided(passes, set(seventeen[:3]))) == {"too_many_void": "all"}
    negative = [replace(p, rest_ms=-0.002) if p.seq == 3 else p for p in passes]
    assert reasons(negative) == {"negative_rest": "all"}
    assert reasons([replace(p, rest_ms=-0.0005) for p in passes]) == {}
    row = ParityRow(rows=5, start=0, agreed=False, ties=0, detail="row 1")
    assert reasons(passes, parity=Parity(checked=True, agreed=False, ties=0, rows=[row])) == {"parity": "all"}


def test_a_step_in_the_series_costs_only_the_milliseconds() -> None:
    walls = {c: [[w * (1.3 if b >= 3 else 1) for w in ws] for b, ws in enumerate(r)] for c, r in usual_walls().items()}
    trust = make_record(make_passes(walls)).trust
    assert (trust.absolute, trust.ratios) == ("not_trusted", "trusted")
    assert trust.reasons[0].code == "step"
    assert "+30" in trust.reasons[0].text


def test_look_up_takes_an_upper_bound_below_the_cliff_and_refuses_beyond() -> None:
    record = usual_record()
    assert look_up(record, 5, 0).upper_bound_of is None
    found = look_up(record, 8, None)
    assert (found.rows, found.upper_bound_of) == (16, 8)
    with pytest.raises(NotMeasured, match="nothing larger"):
        look_up(record, 18, None)
    walls = {c: r for c, r in usual_walls().items() if c.rows != 16}
    with pytest.raises(NotMeasured, match="beyond the cliff"):
        look_up(make_record(make_passes(walls), rows=[5, 17]), 12, None)
    no_step = {c: r for c, r in usual_walls().items() if not c.is_step}
    with pytest.raises(NotMeasured, match="no decode step"):
        look_up(make_record(make_passes(no_step)), 5, None)


def test_contradictions_are_found_by_name() -> None:
    record = usual_record()
    assert contradictions(record)[1] == []
    assert record.summary.step is not None
    step = record.summary.step.model_copy(update={"median_ms": 9.0})
    forged = record.model_copy(update={"summary": record.summary.model_copy(update={"step": step, "cliff": None})})
    names = " ".join(contradictions(forged)[1])
    assert "summary.step.median_ms (9.0 stated" in names
    assert "summary.cliff" in names
    distrusted = record.model_copy(update={"trust": record.trust.model_copy(update={"ratios": "not_trusted"})})
    assert contradictions(distrusted)[1] == ["trust"]


def test_advice() -> None:
    assert advice(usual_record()) == []
    large = [replace(p, rest_ms=31.1) if p.seq == 6 else p for p in make_passes(usual_walls())]
    assert advice(make_record(large)) == [
        "rest: 1 passes have more than 2 % and 0.5 ms outside every term, pass 6 31.1 ms"
    ]
    few = {c: r[:2] for c, r in usual_walls().items()}
    assert any("n=4 cannot give" in line for line in advice(make_record(make_passes(few))))
    walls = usual_walls()
    walls[Condition(5)][0][0] = 30.0
    found = advice(make_record(make_passes(walls)))
    assert any("slow initial pass (30.0 ms); try --warmup 4" in line for line in found)
    assert any(line.startswith("outliers: passes") for line in found)
    walls[Condition(5)] = [[10.0, 20.0]] * 6
    assert any("wide, above 5 %" in line for line in advice(make_record(make_passes(walls))))


def test_terms_that_are_not_given_stay_null() -> None:
    passes = [replace(p, terms=NO_TERMS, rest_ms=None, head_device_ms=None) for p in make_passes(usual_walls())]
    s = make_record(passes).summary
    assert s.step is not None
    assert set(s.step.terms_median_ms.values()) == {None}
    assert set(s.step.terms_share.values()) == {None}
    assert s.step.rest_median_ms is None
    assert s.passes["5"].device_wait_median_ms is None
