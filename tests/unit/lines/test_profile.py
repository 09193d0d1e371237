"""Line profiles: the shipped one, and everything that may be wrong with one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from npuprof.lines import LineProfile, ProfileError, Unreadable, load_profiles, scan
from npuprof.model.passes import PassLine
from npuprof.settings import built_in

V12 = built_in() / "line-profiles" / "v12.yaml"


def v12() -> LineProfile:
    return load_profiles([V12])["v12"]


def test_v12_reads_its_line_behind_a_prefix() -> None:
    log = b"Nov 10 host serve: [12] batch=5 tok=5 1049ms attn=47ms lm=87ms\nother\n"
    [p] = list(scan(io.BytesIO(log), [v12()]))
    assert isinstance(p, PassLine)
    assert (p.rows, p.wall_ms, p.terms.layers_host_ms, p.terms.lm_head_ms) == (5, 1049.0, 47.0, 87.0)
    assert p.terms.device_wait_ms is None
    assert p.rest_ms == 915.0
    assert p.extra == {"profile": "v12"}
    assert p.consistent


def test_a_line_like_it_that_does_not_match_is_unreadable() -> None:
    [bad] = list(scan(io.BytesIO(b"[12] batch=5 tok=5 nanms attn=47ms lm=87ms\n"), [v12()]))
    assert isinstance(bad, Unreadable)
    assert bad.reason.startswith("v12: ")


def test_terms_beyond_the_wall_do_not_add_up() -> None:
    [p] = list(scan(io.BytesIO(b"[1] batch=5 tok=5 100ms attn=90ms lm=87ms\n"), [v12()]))
    assert isinstance(p, PassLine)
    assert not p.consistent


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return file


def test_units_start_launches_and_extra(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "name: mine\nunit: us\n"
        r"pattern: 'm=(?P<rows>\S+) at=(?P<start>\S+) w=(?P<wall>\S+) n=(?P<launches>\S+) d=(?P<dev>\S+)( x=(?P<tag>\w+))?'"
        "\nterms: {device_wait_ms: dev}\n",
    )
    profiles = list(load_profiles([file]).values())
    [p] = list(scan(io.BytesIO(b"m=8 at=512 w=1500.5 n=112 d=1200 x=q4\n"), profiles))
    assert isinstance(p, PassLine)
    assert (p.rows, p.start, p.launches, p.wall_ms, p.terms.device_wait_ms) == (8, 512, 112, 1.5005, 1.2)
    assert p.extra == {"profile": "mine", "tag": "q4"}
    for line, reason in (
        (b"m=x at=0 w=1 n=1 d=1", "rows is no whole number"),
        (b"m=0 at=0 w=1 n=1 d=1", "rows must be 1 or more"),
        (b"m=1 at=0 w=nan n=1 d=1", "wall is no time"),
        (b"m=1 at=0 w=1 n=1 d=-1", "dev is no time"),
    ):
        [bad] = list(scan(io.BytesIO(line), profiles))
        assert isinstance(bad, Unreadable)
        assert reason in bad.reason


def test_an_optional_wall_that_is_missing(tmp_path: Path) -> None:
    file = write(tmp_path, "name: mine\npattern: 'm=(?P<rows>\\d+)( w=(?P<wall>\\d+))?'\n")
    [bad] = list(scan(io.BytesIO(b"m=8\n"), list(load_profiles([file]).values())))
    assert isinstance(bad, Unreadable)
    assert "no wall time" in bad.reason


GOOD = "name: mine\npattern: '(?P<rows>1) (?P<wall>2) (?P<a>3)'\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a list\n", "is a mapping"),
        ("name: [\n", "not YAML"),
        ("pattern: x\n", "name: must be lower-case"),
        ("name: Bad Name\n", "name: must be lower-case"),
        ("name: mine\n", "pattern: is missing"),
        ("name: mine\npattern: 3\n", "pattern: must be a regular expression"),
        ("name: mine\npattern: '('\n", "pattern: is no regular expression"),
        ("name: mine\npattern: '(?P<rows>1)'\n", "pattern: has no group (?P<wall>"),
        (GOOD + "unit: hours\n", "unit: must be one of"),
        (GOOD + "terms: [a]\n", "terms: must map"),
        (GOOD + "terms: {gpu_ms: a}\n", "terms.gpu_ms: no such term"),
        (GOOD + "terms: {embed_ms: b}\n", "terms.embed_ms: the pattern has no group"),
        (GOOD + "terms: {embed_ms: wall}\n", "terms.embed_ms: the pattern has no group of its own"),
        (GOOD + "terms: {embed_ms: a, pack_ms: a}\n", "terms: one group cannot be two terms"),
        (GOOD + "colour: red\n", "colour: unknown key"),
        (GOOD + "looks_like: '('\n", "looks_like: is no regular expression"),
    ],
)
def test_a_wrong_profile_is_refused_with_file_key_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ProfileError) as e:
        load_profiles([file])
    assert str(e.value).startswith(f"{file}: ")
    assert reason in str(e.value)
