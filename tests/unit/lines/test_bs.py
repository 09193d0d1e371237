"""The [bs] grammar: published lines, every shape it may take, and every way in which it may be broken."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.lines import Unreadable, format_line, parse_line, scan
from npuprof.lines.unreadable import Broken
from npuprof.model.passes import PassLine, Terms

PUBLISHED = (
    "[bs] M= 5 start= 0 wall= 1067.9 | embed= 5.6 | layers= 975.2 (gemm pack= 0.1 ql= 48.55 wait= 878.0 rb= 1.0 "
    "sum= 927.6 host= 47.6 n=112) | epilogue= 87.1 (head= 87.1 sum= 84.4 host= 2.7)"
)


def read(text: str | bytes) -> list[PassLine | Unreadable]:
    return list(scan(io.BytesIO(text if isinstance(text, bytes) else text.encode())))


def only(text: str | bytes) -> PassLine:
    [found] = read(text)
    assert isinstance(found, PassLine), found
    return found


def broken(text: str | bytes) -> Unreadable:
    [found] = read(text)
    assert isinstance(found, Unreadable), found
    return found


def test_published_line_is_the_published_table() -> None:
    p = only(PUBLISHED)
    assert p.terms == Terms(5.6, 0.1, 48.55, 878.0, 1.0, 47.6, 87.1)
    assert (p.rows, p.start, p.wall_ms, p.head_device_ms, p.launches) == (5, 0, 1067.9, 84.4, 112)
    assert p.rest_ms == -0.05
    assert p.consistent


def test_constructed_lines(data: Path) -> None:
    found = read((data / "bs-constructed.txt").read_bytes())
    assert [(p.rows, p.start, p.consistent) for p in found if isinstance(p, PassLine)] == [
        (1, 40, True),
        (16, 128, True),
        (17, 0, True),
        (8, 0, True),
    ]


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-10T15:02:11.123456+00:00 host forward-serve[4242]: ",
        "Nov 10 15:02:11 host serve: ",
        "<30>1 2026-11-10T15:02:11Z host app - - - ",
        "2026-11-10T15:02:11Z stderr F ",
        "\x1b[32mINFO\x1b[0m \x1b[1;31m",
        "[bold]markup[/bold] ",
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
)
def test_any_prefix(prefix: str) -> None:
    assert replace(only(prefix + PUBLISHED), line_no=1) == only(PUBLISHED)


def test_json_entries_of_journal_and_container() -> None:
    escaped = PUBLISHED.replace('"', '\\"')
    for entry in (f'{{"MESSAGE": "{escaped}"}}', f'{{"log": "{escaped}\\n", "stream": "stderr"}}'):
        assert only(entry).wall_ms == 1067.9
    as_bytes = list((PUBLISHED + "\x1b[0m").encode())
    assert only(f'{{"MESSAGE": {as_bytes}}}').rows == 5


def test_colours_inside_and_after_the_line() -> None:
    coloured = PUBLISHED.replace("[bs]", "\x1b[36m[bs]\x1b[0m").replace("878.0", "\x1b[1m878.0\x1b[0m") + "\x1b[K"
    assert only(coloured).terms == only(PUBLISHED).terms
    assert broken(coloured.replace("1067.9", "nan")).column == len("\x1b[36m[bs]\x1b[0m M= 5 start= 0 wall= ") + 1


def test_groups_and_keys_in_any_order_with_unknown_ones_kept() -> None:
    p = only(
        "[bs] wall=1067.9 start=0 M=5 req=abc | epilogue=87.1(sum=84.4 head=87.1 host=2.7)|sample= 0.4 | "
        "layers=    975.2 (n=112 host=47.6 rb=1.0 wait=878.0 ql=48.55 gemm pack=0.1 sum=927.6 dma= 3.5) | embed=5.6"
    )
    assert p.terms == only(PUBLISHED).terms
    assert p.extra == {"req": "abc", "sample": 0.4, "layers.dma": 3.5}
    assert p.consistent


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (PUBLISHED.replace("1067.9", "nan"), "nan"),
        (PUBLISHED.replace("1067.9", "inf"), "inf"),
        (PUBLISHED.replace("1067.9", "1e3"), "1e3"),
        (PUBLISHED.replace("1067.9", "-1067.9"), "-1067.9"),
        (PUBLISHED.replace("1067.9", "1,067.9"), "1,067.9"),
        (PUBLISHED.replace("1067.9", "1067.9.1"), "1067.9.1"),
        (PUBLISHED.replace("1067.9", "9" * 400), "9" * 400),
        (PUBLISHED.replace("1067.9", "١٠٦٧"), "١٠٦٧"),
        (PUBLISHED.replace("M= 5", "M=-1"), "-1"),
        (PUBLISHED.replace("M= 5", "M= 0"), "0 start"),
        (PUBLISHED.replace("M= 5", "M= 5.5"), "5.5"),
        (PUBLISHED.replace("878.0", "--"), "--"),
        (PUBLISHED.replace("n=112", "n=1.2"), "1.2"),
        (PUBLISHED.replace("wait= 878.0", "wait= 878.0 wait= 878.0"), "878.0 rb"),
        (PUBLISHED + " " + PUBLISHED, " [bs] M"),
        (PUBLISHED + PUBLISHED, "[bs] M"),
        (PUBLISHED + " trailing words", "trailing"),
        (PUBLISHED.replace("(gemm", "((gemm"), "(gemm"),
        (PUBLISHED.replace("| embed", "| $ | embed"), "$"),
        (PUBLISHED.replace("embed= 5.6", "embed="), "| layers"),
        (PUBLISHED.replace("gemm pack", "gemm new pack"), "new pack"),
    ],
)
def test_column_of_what_broke(line: str, at: str) -> None:
    start = line.rfind(at) if at.strip().startswith("[bs]") else line.find(at)
    assert broken(line).column == start + 1 + (at.startswith(" ") or 0)


@given(st.integers(0, len(PUBLISHED) - 1))
def test_a_truncated_line_never_becomes_a_pass(cut: int) -> None:
    """Cut anywhere: before the marker's end it is no line of ours; after it, it is unreadable, or it is cut at its end."""
    text = PUBLISHED[:cut]
    found = read(text)
    if "[bs]" not in text:
        assert found == []
    else:
        assert len(found) == 1
        assert isinstance(found[0], Unreadable)


def test_a_line_that_lost_its_beginning_is_counted() -> None:
    assert "marker is missing" in broken(PUBLISHED[10:]).reason


def test_other_lines_are_passed_over() -> None:
    assert read("[bs] warming up\nsee [bs] docs\nfirewall=3 layers=4\n\nhello\n") == []


def test_a_megabyte_on_one_line() -> None:
    found = read(b"x" * 1_000_000 + PUBLISHED.encode() + b"\n" + PUBLISHED.encode() + b"\n" + b"y" * 1_000_000 + b"\n")
    assert isinstance(found[0], Unreadable)
    assert "longer than" in found[0].reason
    assert found[0].line_no == 1
    assert isinstance(found[1], PassLine)
    assert found[1].line_no == 2
    assert len(found) == 2


def test_a_marker_across_the_chunk_border_is_seen() -> None:
    found = read(b"x" * 65_534 + b"[bs] M= 5 wall= 3\n")
    assert len(found) == 1
    assert isinstance(found[0], Unreadable)


def test_invalid_utf8_in_a_number_is_no_number() -> None:
    assert broken(PUBLISHED.encode().replace(b"878.0", b"87\xff8.0")).column == PUBLISHED.find("878.0") + 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum= 927.6", "sum= 930.6"),
        ("layers= 975.2", "layers= 970.2"),
        ("epilogue= 87.1", "epilogue= 88.1"),
        ("sum= 84.4", "sum= 80.0"),
        ("wall= 1067.9", "wall= 1060.0"),
    ],
)
def test_what_does_not_add_up_is_said(old: str, new: str) -> None:
    assert not only(PUBLISHED.replace(old, new)).consistent
    assert not only(PUBLISHED.replace(old, new).replace("| embed", "| x= 0 | embed")).consistent


def test_half_units_of_the_printed_digits_decide() -> None:
    # pack + ql + wait + rb = 927.65; the half-units of all five printed numbers are 0.05 x 4 + 0.005 = 0.205.
    assert only(PUBLISHED.replace("sum= 927.6", "sum= 927.8").replace("layers= 975.2", "layers= 975.4")).consistent
    assert not only(PUBLISHED.replace("sum= 927.6", "sum= 927.9").replace("layers= 975.2", "layers= 975.5")).consistent


milliseconds = st.integers(0, 9_999_999_999).map(lambda ns: ns / 1e6)


@given(
    st.integers(1, 512),
    st.integers(0, 4096),
    st.tuples(*[milliseconds] * 7),
    milliseconds,
    st.floats(0, 1),
    st.integers(0, 999),
)
def test_what_is_emitted_reads_back(
    rows: int, start: int, values: tuple[float, ...], rest: float, share: float, launches: int
) -> None:
    terms = Terms(*values)
    wall = (terms.total() or 0.0) + rest
    head_device = values[6] * share
    p = parse_line(format_line(rows, start, wall, terms, head_device, launches))
    assert p.consistent
    assert (p.rows, p.start, p.launches) == (rows, start, launches)
    assert p.wall_ms == pytest.approx(wall, abs=0.0501)
    for got, want in zip(p.terms.values(), values, strict=True):
        assert got == pytest.approx(want, abs=0.0501)


@given(st.integers(1, 64), st.tuples(*[milliseconds] * 7))
def test_the_fast_form_and_the_tolerant_reader_agree(rows: int, values: tuple[float, ...]) -> None:
    line = format_line(rows, 0, sum(values), Terms(*values), values[6], 112)
    tolerant = parse_line(line.replace("[bs]", "[bs] |"))
    assert tolerant == parse_line(line)


@given(st.text(max_size=60), st.integers(0, len(PUBLISHED)))
def test_hostile_insertions_never_crash_or_invent(noise: str, at: int) -> None:
    text = PUBLISHED[:at] + noise + PUBLISHED[at:]
    for found in read(text.encode("utf-8", "surrogatepass")):
        if isinstance(found, PassLine):
            assert found.wall_ms >= 0
            assert found.rows >= 1


def test_no_marker_at_all() -> None:
    with pytest.raises(Broken, match="marker is missing"):
        parse_line("nothing")
