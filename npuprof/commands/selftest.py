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


_CASES: dict[str, Callable[[], None]] = {
    "the published pass line parses to the published table": _pass_line,
    "the published rows 1, 16, 17 give the cliff 16|17": _cliff,
    "the published round costs, bars and tokens/round": _bars,
    "coverages of the intervals of the median and of paired ratios": _intervals,
}
