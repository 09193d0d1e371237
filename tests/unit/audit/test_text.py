"""Pasted texts: the published one holds, and every digit that another one bears out is caught when it changes."""

from __future__ import annotations

import pytest
import yaml

from npuprof.audit.figure import Figure, Printed, compared
from npuprof.audit.text import audit_text
from npuprof.economics.estimate import Estimate
from npuprof.settings import built_in

PUBLISHED: str = yaml.safe_load((built_in() / "published.yaml").read_text())["text"]


def status(text: str) -> dict[str, str]:
    return {f"{f.where}: {f.name}": f.status for f in audit_text(text.splitlines())}


def differs(text: str) -> list[Figure]:
    return [f for f in audit_text(text.splitlines()) if f.status == "differs"]


def test_the_published_figures_all_hold() -> None:
    found = audit_text(PUBLISHED.splitlines())
    assert {f.status for f in found} == {"ok"}
    assert len(found) > 40


@pytest.mark.parametrize(
    ("old", "new", "figure", "off"),
    [
        (
            "rounds=54",
            "rounds=55",
            "k=4 tokens/round",
            "off by +0.054: 2.963 stated, 2.909 derived, digit 3 and 4",
        ),
        ("=2.963", "=3.0", "k=4 tokens/round", "digit 1 and 2 and 3 and 4"),
        ("108/216=0.5 ", "108/216=0.52 ", "k=4 rate", "off by +0.020: 0.520 stated, 0.500 derived, digit 3"),
        ("round 1072.1", "round 1073.1", "k=4 one_pass round", "1073.1 stated, 1072.1 derived, digit 4"),
        ("bar 1.05,", "bar 1.06,", "k=4 one_pass bar", "1.060 stated, 1.050 derived, digit 3"),
        ("2.822x", "2.832x", "k=4 one_pass projected", "2.832 stated, 2.822 derived, digit 3"),
        ("round 2093.3", "round 2072.1", "k=4 two_pass round", ""),
        ("1.445x", "1.545x", "k=4 two_pass projected", ""),
        ("code: 12 rounds = 3.333", "code: 13 rounds = 3.333", "k=4 code tokens/round", ""),
        ("qa: 12 rounds = 3.333\nk=7", "qa: 11 rounds = 3.636\nk=7", "k=4 rounds", ""),
        ("median 1049.1", "median 1079.1", "pass M=5 median", "lies outside [1025, 1067.9]"),
        ("wait median 872.2", "wait median 1872.2", "pass M=5 device wait", ""),
        ("2561 -> 2561", "2561 -> 2560", "error count", "falls from 2561 to 2560"),
        ("sum= 927.6", "sum= 927.9", "[bs] sum", ""),
        ("layers= 975.2", "layers= 957.2", "[bs] layers", ""),
        ("wall= 1067.9", "wall= 1167.9", "[bs] wall", ""),
        ("host= 2.7", "host= 2.2", "[bs] head", ""),
        ("tokens=160 rounds=47", "tokens=170 rounds=47", "k=7 tokens = rounds + accepted - unfinished", ""),
    ],
)
def test_a_changed_digit_is_caught(old: str, new: str, figure: str, off: str) -> None:
    assert old in PUBLISHED
    found = {f.name: f.detail for f in differs(PUBLISHED.replace(old, new, 1))}
    assert figure in found
    assert off in found[figure]


def test_what_only_rounding_explains_is_said_so() -> None:
    # The projection out of rounded parts: 3.404 / 1.078 = 3.158, where the unrounded ones give 3.157.
    found = status(PUBLISHED.replace("3.157x", "3.158x"))
    assert found["line 11: k=7 one_pass projected"] == "within_rounding"


def test_a_missing_part_is_named() -> None:
    without = "\n".join(line for line in PUBLISHED.splitlines() if not line.startswith("decode step"))
    found = [f for f in audit_text(without.splitlines()) if f.status == "underivable"]
    assert {f.detail for f in found} == {"there is no decode step"}
    alone = audit_text(["one_pass: round 1072.1 ms, bar 1.05"])
    assert {f.status for f in alone} == {"underivable"}


def test_a_time_of_zero_is_no_figure() -> None:
    text = "k=4: pass M=5 0 ms, decode step 0 ms, drafts 0 ms a round\none_pass: round 0 ms, bar 0, projected 0x"
    assert "divided" in differs(text)[-1].detail


def test_lines_that_were_counted_give_their_summary() -> None:
    line = "[bs] M= 2 start= 0 wall= {} | embed= 0.0 | layers= 8.0 (gemm pack= 0.0 ql= 1.00 wait= 6.0 rb= 0.0 "
    line += "sum= 7.0 host= 1.0 n=4)"
    line += " | epilogue= 2.0 (head= 2.0 sum= 1.0 host= 1.0)"
    walls = "\n".join(line.format(w) for w in ("10.0", "10.3", "10.1"))
    good = walls + "\npass M=2:  n=3 wall median 10.1 ms (min 10.0 max 10.3), device wait median 6.0"
    assert differs(good) == []
    assert [f.name for f in differs(good.replace("median 10.1", "median 10.25"))] == ["pass M=2 median"]


def test_our_own_reports_and_verdicts_are_read() -> None:
    report = "pass M=5:  n=12 wall median 41.65 ms (min 34.13 max 54.75), device wait median 27.27, [34.82, 50.88] covers 96.1 %"
    assert set(status(report).values()) == {"ok"}
    assert [f.name for f in differs(report.replace("96.1 %", "95.0 %"))] == ["pass M=5 coverage"]
    void = "pass M=2:  n=9 wall median 5.0 ms (min 4.0 max 6.0), [4.5, 5.5] covers 96.1 %, 9 of 10 passes, 2 void"
    assert [f.name for f in differs(void)] == ["pass M=2 passes counted"]
    verdict = (
        "k=4: pass M=5 1049.1 ms, decode step 1021.2 ms, drafts 23.04 ms a round\n"
        "    one_pass: round 1072.1 ms, bar 1.05, projected 2.822x     two_pass: round 2093.3 ms, bar 2.05, projected 1.445x\n"
        "pays on these 4 prompts: 2.963 tokens/round (the target's own included) against bar 1.05 = round cost / step cost "
        "(break-even, not a target), x 2.822 projected by arithmetic; a pass of 5 rows costs 1.027 steps"
    )
    assert not differs(verdict)
    assert "verdict pass over step" in {f.name for f in differs(verdict.replace("1.027 steps", "1.072 steps"))}
    server = (
        "rule llama-server\nk=4: tokens=40 rounds=8 tokens/round=4.75 accepted/offered=30/30=1 draft_ms/token=12.69"
    )
    assert not differs(server)


@pytest.mark.parametrize(
    ("stated", "derived", "status"),
    [
        ("0.5", Estimate(0.5004, 0.5004, 0.5004), "ok"),
        ("0.5", Estimate(0.5006, 0.5006, 0.5006), "differs"),
        ("0.5", Estimate(0.5006, 0.5001, 0.51), "within_rounding"),
        ("4", Estimate.exactly(4.0), "ok"),
    ],
)
def test_ratios_are_known_to_half_a_thousandth(stated: str, derived: Estimate, status: str) -> None:
    assert compared("x", "here", Printed.ratio(stated), derived, ()).status == status
