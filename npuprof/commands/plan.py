"""`npuprof plan`: pass plans of the XRT target."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npuprof.commands.options import debug_option, json_option, print_json
from npuprof.errors import OK, USAGE, DeviceProblem, UsageProblem

if TYPE_CHECKING:
    from npuprof.targets.xrt.find import Found
    from npuprof.targets.xrt.verify import Problem
    from npuprof.yamlfile import Loc

_VERIFY_TIMEOUT_S = 120


@click.group()
def plan() -> None:
    """Pass plans of the XRT target.

    Example: npuprof plan check my-plan.yaml
    """


@plan.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@debug_option
def check(file: Path, as_json: bool) -> int:
    """Verify a plan without the device: files, kernels, argument counts, generation, memory. Exits with 2 if it is wrong.

    Example: npuprof plan check my-plan.yaml
    """
    from npuprof.render.text import printable

    problems, note = verify(file)
    if as_json:
        print_json({"file": str(file), "problems": problems, "note": note})
    else:
        for line in [*problems, *filter(None, [note])] or [
            f"{file}: everything that can be known without the device is right"
        ]:
            click.echo(printable(line))
    return USAGE if problems else OK


@plan.command("template")
@click.option("--decoder", is_flag=True, help="That of a 28-layer decoder instead of one GEMM.")
@click.option("--schema", is_flag=True, help="The plan's JSON schema instead.")
@debug_option
def template(decoder: bool, schema: bool) -> int:
    """Print a plan to start from: one GEMM as the mlir-aie examples build it, or a whole decoder.

    Example: npuprof plan template > my-plan.yaml
    """
    from npuprof.settings import built_in

    if schema:
        from npuprof.targets.xrt.plan import Plan

        click.echo(json.dumps(Plan.model_json_schema(), indent=1))
        return OK
    name = "decoder-28.yaml" if decoder else "gemm.yaml"
    click.echo((built_in() / "plans" / name).read_text(encoding="utf-8"), nl=False)
    return OK


def verify(file: Path) -> tuple[list[str], str]:
    """What is wrong, as `FILE:LINE: key: text`, and what could not be looked at and why. UsageProblem if it is no plan."""
    from npuprof.targets.xrt.find import find_pyxrt
    from npuprof.targets.xrt.plan import load_plan
    from npuprof.targets.xrt.verify import problems_of_files, problems_of_generation, problems_of_memory

    parsed, lines = load_plan(file)
    problems = problems_of_files(parsed, file.parent)
    problems += problems_of_generation(parsed)
    note = ""
    if not problems:
        problems += problems_of_memory(parsed, file.parent)
        found = find_pyxrt()
        if found.problem:
            note = f"kernels and argument counts were not looked at: {found.problem}; type: {found.mend}"
        else:
            problems += _in_xrt(file, found)
    return [_line(file, loc, text, lines) for loc, text in problems], note


def _in_xrt(file: Path, found: Found) -> list[Problem]:
    """The part of the verification that needs pyxrt, in a process of its own."""
    command = [sys.executable, "-m", "npuprof.targets.xrt.verify", str(file)]
    try:
        done = subprocess.run(
            command, env=found.environment(), capture_output=True, text=True, timeout=_VERIFY_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeviceProblem(f"looking at the kernels of {file} did not end within {_VERIFY_TIMEOUT_S} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        raise DeviceProblem(f"looking at the kernels of {file} ended with {done.returncode}: {last}")
    return [(tuple(loc), text) for loc, text in json.loads(done.stdout.splitlines()[-1])]


def _line(file: Path, loc: Loc, text: str, lines: dict[Loc, int]) -> str:
    known = loc
    while known and known not in lines:
        known = known[:-1]
    return f"{file}:{lines.get(known, 1)}: {'.'.join(map(str, loc))}: {text}"


def verified_environment(file: Path) -> dict[str, str]:
    """Before the ticket is taken: the plan verified, and XRT's environment for the timed process."""
    from npuprof.targets.xrt.find import find_pyxrt

    problems, _ = verify(file)
    if problems:
        more = f" (and {len(problems) - 1} more: npuprof plan check {file})" if len(problems) > 1 else ""
        raise UsageProblem(f"{problems[0]}{more}")
    found = find_pyxrt()
    if found.problem:
        raise DeviceProblem(f"{found.problem}; type: {found.mend}")
    return found.environment()
