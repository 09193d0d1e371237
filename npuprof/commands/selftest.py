"""`npuprof selftest`: the published cases on the installed package; needs no device and no server."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from io import BytesIO
from typing import Any

import click

from npuprof.commands.options import debug_option, json_option, print_json
from npuprof.errors import CHECK_FAILED, OK


@click.command()
@json_option
@debug_option
def selftest(as_json: bool) -> int:
    """Reproduce the published figures with this installation.

    Example: npuprof selftest
    """
    results = []
    for name, case in _CASES.items():
        try:
            case()
            results.append({"name": name, "ok": True, "detail": ""})
        except AssertionError as e:
            results.append({"name": name, "ok": False, "detail": str(e)})
    if as_json:
        print_json({"cases": results})
    else:
        for r in results:
            click.echo(f"{'ok    ' if r['ok'] else 'FAILED'}  {r['name']}{': ' if r['detail'] else ''}{r['detail']}")
    return OK if all(r["ok"] for r in results) else CHECK_FAILED


def _same(what: str, got: Any, want: Any) -> None:
    if got != want:
        raise AssertionError(f"{what} is {got!r}, published is {want!r}")


def _published() -> dict[str, Any]:
    import yaml

    text = (files("npuprof") / "config" / "published.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def _pass_line() -> None:
    from npuprof.lines import scan

    wanted = _published()["pass_line"]
    found: Any = next(scan(BytesIO(wanted["line"].encode())))
    terms = found.terms.values()
    _same("terms", list(terms), wanted["terms"])
    _same("M, start, launches", [found.rows, found.start, found.launches], wanted["counts"])
    _same("wall, head_device", [found.wall_ms, found.head_device_ms], wanted["times"])
    _same("sum of terms", round(sum(terms), 2), wanted["terms_sum"])
    _same("consistent", found.consistent, True)


def _cliff() -> None:
    from npuprof.stats.cliff import find_cliff, gaps_from_medians

    wanted = _published()["cliff"]
    cliff = find_cliff(gaps_from_medians({int(m): t for m, t in wanted["medians"].items()}))
    _same("cliff", None if cliff is None else [cliff.last_cheap_rows, cliff.first_costly_rows], wanted["between"])


def _bars() -> None:
    from npuprof.render.text import digits3

    for case in _published()["bars"]:
        round_ms = case["pass_ms"] + case["k"] * case["draft_ms"]
        _same(f"k={case['k']} round", f"{round_ms:.1f}", f"{case['round_ms']:.1f}")
        _same(f"k={case['k']} bar", digits3(round_ms / case["step_ms"]), digits3(case["bar"]))
        _same(
            f"k={case['k']} tokens/round", digits3(case["tokens"] / case["rounds"]), digits3(case["tokens_per_round"])
        )


def _intervals() -> None:
    from npuprof.stats.order import median_rank
    from npuprof.stats.paired import walsh_rank

    wanted = _published()["coverage_percent"]
    _same("median interval", {n: round(median_rank(n)[1] * 100, 1) for n in wanted["median"]}, wanted["median"])
    _same("Walsh interval", {n: round(walsh_rank(n)[1] * 100, 1) for n in wanted["walsh"]}, wanted["walsh"])


def _replay_rule() -> None:
    from npuprof.accept.rules import play

    for case in _published()["replay_rule"]:
        ids = list(range(case["tokens"]))
        drafts = ids if case["right"] else [-1] * len(ids)
        padding = [] if case["right"] else [-1] * case["k"]
        played = play("reference", ids, case["k"], _drafter(drafts + padding))
        _same(case["name"], [r.accepted for r in played.rounds], case["accepted"])
        _same(f"{case['name']}: offered", sum(r.offered for r in played.rounds), case["offered"])


def _drafter(drafts: list[int]) -> Callable[[int, int], list[int]]:
    return lambda at, n: drafts[at : at + n]


def _text() -> None:
    from npuprof.audit.text import audit_text

    text = _published()["text"]
    figures = audit_text(text.splitlines())
    _same("figures that hold", sum(f.status == "ok" for f in figures), len(figures))
    altered = audit_text(text.replace("bar 1.05,", "bar 1.06,").splitlines())
    _same(
        "figures that differ in an altered text",
        [f.name for f in altered if f.status == "differs"],
        ["k=4 one_pass bar"],
    )


_CASES: dict[str, Callable[[], None]] = {
    "the published pass line parses to the published table": _pass_line,
    "the published rows 1, 16, 17 give the cliff 16|17": _cliff,
    "the published round costs, bars and tokens/round": _bars,
    "the published cases of the replay's rule": _replay_rule,
    "the published text, audited": _text,
    "coverages of the intervals of the median and of paired ratios": _intervals,
}
