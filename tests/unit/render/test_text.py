"""Text, numbers and lines as printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import make_passes, make_record, usual_record, usual_walls, voided
from rich.console import Console

from npuprof.model.condition import Condition
from npuprof.model.record import Ending, Errors, Parity, ParityRow
from npuprof.render.finding import finding
from npuprof.render.histogram import histogram
from npuprof.render.lines import condition_lines, error_line
from npuprof.render.report import parity_text
from npuprof.render.text import digits3, ms, printable


@given(st.text())
def test_nothing_printable_steers_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\u200b" for c in shown)


def test_printable_keeps_what_people_write() -> None:
    assert printable("Größe 5 → 6 [bs]") == "Größe 5 → 6 [bs]"
    assert printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\nb\\u202e"


@pytest.mark.parametrize(
    ("value", "text"), [(1049.1, "1049.1"), (19.554, "19.55"), (0.05, "0.050"), (None, "–"), (-0.05, "-0.050")]
)
def test_milliseconds(value: float | None, text: str) -> None:
    assert ms(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.5"), (1.05, "1.05"), (4.0, "4"), (2.8221, "2.822"), (0.0, "0")])
def test_ratios_drop_trailing_zeros(value: float, text: str) -> None:
    assert digits3(value) == text


def published() -> list[str]:
    """Four passes of 5 rows and steps with the published median, min and max."""
    walls = {Condition(5): [[1025.0, 1067.9], [1049.0, 1049.2]], Condition(1): [[1005.9, 1065.5], [1021.2, 1021.2]]}
    return condition_lines(make_record(make_passes(walls), rows=[5]))


def test_lines_have_the_published_form() -> None:
    line, step = published()
    assert line.startswith("pass M=5:  n=4 wall median 1049.1 ms (min 1025.0 max 1067.9), device wait median 1045.2")
    assert step.startswith("decode step: n=4 wall median 1021.2 ms (min 1005.9 max 1065.5)")
    assert step.endswith("[1005.9, 1065.5] covers 87.5 %")


def test_void_passes_and_several_starts_are_said() -> None:
    passes = make_passes(usual_walls())
    void = voided(passes, {p.seq for p in passes if p.rows == 17 and p.round == 1})
    assert any("10 of 12 passes, 2 void" in line for line in condition_lines(make_record(void)))
    walls = {Condition(m, s, True): [[10.0], [11.0]] for s in (0, 512) for m in (1, 2)}
    lines = condition_lines(make_record(make_passes(walls), rows=[2], starts=[0, 512]))
    assert [line.split(":")[0] for line in lines] == [
        "pass M=2 start=0",
        "pass M=2 start=512",
        "decode step start=0",
        "decode step start=512",
    ]
    one = make_record(make_passes({Condition(1): [[10.0]]}))
    assert condition_lines(one) == ["decode step: n=1 wall median 10.00 ms (min 10.00 max 10.00)"]


def test_error_line() -> None:
    errors = Errors(count_before=2561, count_after=2561, benign_before=40, benign_after=42)
    assert error_line(errors) == "amdxdna error count 2561 -> 2561 (benign 40 -> 42)"
    assert error_line(Errors()).startswith("amdxdna error count not available -> not available")


def test_findings() -> None:
    usual = finding(usual_record())
    assert usual.startswith(
        "fake device: a pass of k+1 rows costs 1.03 to 1.05 steps up to M=16 (k=15), there 1.05 steps ["
    )
    assert "from M=17 on it costs 4.098 steps [" in usual
    assert "the cliff is between 16 and 17 rows; trusted." in usual
    walls = {c: r for c, r in usual_walls().items() if c.rows in (1, 5)}
    flat = finding(make_record(make_passes(walls)))
    assert "at M=5 (k=4); no cliff was found among the rows measured; trusted." in flat
    loose = {Condition(m): [[10.0 + m], [30.0 + m], [11.0 * m]] for m in (1, 5)}
    assert "whether there is a cliff cannot be decided, with intervals as wide as [" in finding(
        make_record(make_passes(loose))
    )
    nothing = finding(make_record([], ending=Ending(how="interrupted", rounds_planned=6, rounds_done=0)))
    assert "nothing can be said of fake device" in nothing
    assert "NOT trusted: the campaign was interrupted, 0 of 6 rounds done" in nothing
    few = finding(make_record(make_passes({c: r[:2] for c, r in usual_walls().items()})))
    assert "no interval: 2 blocks, 3 are needed" in few
    no_step = {c: r for c, r in usual_walls().items() if c.rows == 5}
    assert "an unknown number of steps" in finding(make_record(make_passes(no_step)))
    starts = {Condition(m, s, True): [[10.0 + m]] * 3 for s in (0, 512) for m in (1, 2)}
    assert "from start 0 costs" in finding(make_record(make_passes(starts), rows=[2], starts=[0, 512]))


def test_parity_texts() -> None:
    row = ParityRow(rows=5, start=0, agreed=True, ties=2)
    assert "agreed for rows 5, 2 ties" in parity_text(Parity(checked=True, agreed=True, ties=2, rows=[row]))
    assert parity_text(Parity(checked=True, agreed=False, ties=0, detail="rows=5")) == "FAILED at rows=5"
    assert parity_text(Parity(checked=False, agreed=False, ties=0)) == "not checked: the campaign ended first"


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.integers(20, 200))
def test_histograms_hold_every_sample(values: list[float], width: int) -> None:
    lines = histogram(values, width)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == len(values)


def test_a_console_takes_the_report_of_a_hostile_record() -> None:
    from npuprof.render.report import Report

    record = usual_record()
    hostile = record.model_copy(
        update={"target": record.target.model_copy(update={"device": "[red]x[/red]\x1b]0;title\x07"})}
    )
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        Report(console).render(hostile)
    text = console.export_text()
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
