"""`npuprof accept verdict`: acceptance against the bar."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npuprof.commands.accept.shared import read_json, save, writable
from npuprof.commands.options import debug_option, find, json_option, print_json
from npuprof.economics.estimate import Estimate
from npuprof.errors import CHECK_FAILED, NOT_TRUSTED, OK, UsageProblem

if TYPE_CHECKING:
    from npuprof.accept.verdict import Criterion, TimesFound
    from npuprof.model.record import Record
    from npuprof.model.replay import Replay


_LEAST_MS, _MOST_MS = Decimal("1e-6"), Decimal(86_400_000)


def _printed(ctx: click.Context, param: click.Parameter, value: str | None) -> Estimate | None:
    """A figure as it was printed: known to half a unit of its last digit."""
    del ctx
    if value is None:
        return None
    try:
        number = Decimal(value)
        positive = number.is_finite() and _LEAST_MS <= number <= _MOST_MS
    except InvalidOperation:
        positive = False
    if not positive:
        raise click.BadParameter("must be milliseconds above 0, like 1049.1, and at most a day", param=param)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return Estimate.around(float(number), 0.5 * 10.0**exponent)


@click.command()
@click.option(
    "--replay", "replay_file", type=click.Path(path_type=Path), help="The saved output of accept replay --json."
)
@click.option("--timing", metavar="RUN", help="A record: both times with their intervals.")
@click.option("--pass-ms", callback=_printed, help="A pass of k+1 rows, with --step-ms.")
@click.option("--step-ms", callback=_printed, help="A decode step, with --pass-ms.")
@click.option(
    "--k", type=click.IntRange(min=1), help="Drafts a round; default: the criterion's, else what projects best."
)
@click.option("--draft-ms", callback=_printed, help="A drafted token, instead of the replay's.")
@click.option("--block-ms", callback=_printed, help="All drafts of a round at once, for a drafter that emits blocks.")
@click.option("--criterion", type=click.Path(path_type=Path), help="YAML, written down before the replay.")
@click.option(
    "--supersedes", type=click.Path(path_type=Path), help="An older verdict, which is told of this one; needs --out."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the JSON there.")
@click.option("--assert", "asserted", type=click.Choice(["pays"]), help="Exit 4 if not trusted, else 5 unless it pays.")
@json_option
@debug_option
def verdict(
    replay_file: Path | None,
    timing: str | None,
    pass_ms: Estimate | None,
    step_ms: Estimate | None,
    k: int | None,
    draft_ms: Estimate | None,
    block_ms: Estimate | None,
    criterion: Path | None,
    supersedes: Path | None,
    out: Path | None,
    asserted: str | None,
    as_json: bool,
) -> int:
    """Say whether speculation pays, does not pay, cannot win, or cannot be told.

    Every figure is arithmetic over measured parts. Without --replay only "cannot win" can be told.

    Example: npuprof accept verdict --replay replay.json --timing latest --k 4
    """
    from npuprof.accept.verdict import decide
    from npuprof.render.verdict import verdict_lines

    if draft_ms is not None and block_ms is not None:
        raise UsageProblem("one of --draft-ms and --block-ms: a round's drafts cost k tokens, or one block")
    if supersedes is not None and out is None:
        raise UsageProblem("--supersedes needs --out FILE: the older verdict is told the name of the new one")
    writable(out, "--out")
    stated = _criterion(criterion)
    replay = None if replay_file is None else _replay(replay_file)
    older = None if supersedes is None else _older(supersedes)
    wanted = k or stated.k
    ks = [wanted] if replay is None and wanted else [] if replay is None else sorted(int(x) for x in replay.k)
    if not ks:
        raise UsageProblem("without --replay, --k is needed: the drafts of a round")
    if replay is not None and wanted is not None and wanted not in ks:
        raise UsageProblem(f"--k {wanted}: the replay has none; it has {', '.join(map(str, ks))}")
    times = _times(ks, wanted, timing, pass_ms, step_ms, drafting=replay is not None or draft_ms is not None)
    finding = decide(times, replay, k, stated, draft_ms, block_ms)
    data = finding.as_dict() | {"supersedes": None if supersedes is None else str(supersedes), "superseded_by": None}
    if criterion is not None:
        data["criterion"] = {"file": str(criterion), **read_yaml(criterion)}
    if out is not None:
        save(out, json.dumps(data, indent=1) + "\n", "--out")
    if supersedes is not None and older is not None:
        save(supersedes, json.dumps({**older, "superseded_by": str(out)}, indent=1) + "\n", "--supersedes")
    if as_json:
        print_json(data)
    else:
        for line in verdict_lines(finding):
            click.echo(line)
    if finding.verdict == "not_trusted":
        return NOT_TRUSTED
    return CHECK_FAILED if asserted is not None and finding.verdict != asserted else OK


def _times(
    ks: list[int],
    wanted: int | None,
    timing: str | None,
    pass_ms: Estimate | None,
    step_ms: Estimate | None,
    *,
    drafting: bool,
) -> dict[int, TimesFound]:
    """The times of every k that they are known of. UsageProblem names the half that is missing."""
    from npuprof.accept.verdict import TimesFound
    from npuprof.economics.costs import Times

    if timing is not None and (pass_ms is not None or step_ms is not None):
        raise UsageProblem("one of --timing RUN and the pair --pass-ms X --step-ms Y")
    if timing is not None:
        return _timed(find(timing), ks, wanted, drafting=drafting)
    if pass_ms is None and step_ms is None:
        raise UsageProblem("--timing RUN, or --pass-ms X and --step-ms Y, is needed; see: npuprof args latest --k 4")
    if pass_ms is None or step_ms is None:
        missing, given = ("--pass-ms", "--step-ms") if pass_ms is None else ("--step-ms", "--pass-ms")
        raise UsageProblem(f"{missing} is missing: {given} alone says nothing; see: npuprof args latest --k 4")
    if wanted is None and len(ks) > 1:
        raise UsageProblem(f"--k is needed: --pass-ms is of one k, and the replay has {', '.join(map(str, ks))}")
    note = "the times are taken as typed, to half a unit of their last digit: no interval was given"
    return {wanted or ks[0]: TimesFound(Times.of(pass_ms, step_ms), (note,), None)}


def _timed(record: Record, ks: list[int], wanted: int | None, *, drafting: bool) -> dict[int, TimesFound]:
    """Out of a record: medians as they are printed, the paired ratio's interval, and the record's trust."""
    from npuprof.accept.verdict import TimesFound
    from npuprof.economics.costs import Times
    from npuprof.render.text import ms
    from npuprof.stats.derive import contradictions
    from npuprof.stats.lookup import NotMeasured, look_up

    trust, differs = contradictions(record)
    # A drift leaves the paired ratio as it is, and the step that drafts are measured in not.
    trusted = trust.ratios == "trusted" and (trust.absolute == "trusted" or not drafting) and not differs
    because = (*(f"{record.id}: {r.code}: {r.text}" for r in trust.reasons), *(f"{record.id}: {d}" for d in differs))
    found: dict[int, TimesFound] = {}
    missing = ""
    for k in ks:
        try:
            seen = look_up(record, k + 1, None)
        except NotMeasured as e:
            missing = missing or f"{record.id}: {e}"
            if k == wanted:
                raise UsageProblem(missing) from None
            continue
        notes = [f"times of run {record.id}, {record.target.device}"]
        if record.target.simulated:
            notes.append("the target of that run is simulated")
        if seen.upper_bound_of is not None:
            notes.append(f"rows={k + 1} was not measured: the pass of {seen.rows} rows stands for it, an upper bound")
        if seen.may_understate:
            notes.append("the pass is a prefill, whose LM head may run for fewer rows: it may understate a verify pass")
        step, passed = seen.summaries
        printed = Estimate.exactly(float(ms(passed.median_ms)))
        pass_ms = (
            printed if passed.interval is None else printed.reaching(passed.interval.low_ms, passed.interval.high_ms)
        )
        printed = Estimate.exactly(float(ms(step.median_ms)))
        step_ms = printed if step.interval is None else printed.reaching(step.interval.low_ms, step.interval.high_ms)
        quotient = Estimate.exactly(pass_ms.value / step_ms.value)
        ratio = passed.ratio_to_step
        if ratio is None or ratio.low is None or ratio.high is None:
            over = Estimate.unknown(quotient.value)
        else:
            over = quotient.reaching(ratio.low, ratio.high)
            notes.append(f"pass over step covers {100 * (ratio.coverage or 0):.1f} % ({ratio.blocks} blocks)")
        found[k] = TimesFound(Times(pass_ms, step_ms, over), tuple(notes), trusted, because)
    if not found:
        raise UsageProblem(missing)
    return found


def _replay(file: Path) -> Replay:
    from npuprof.model.replay import Replay

    try:
        found = Replay.model_validate(read_json(file, "--replay"))
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageProblem(
            f"--replay {file}: is no replay: {where}: {first['msg']}; make one with: npuprof accept replay --json"
        ) from None
    bad = next((k for k in found.k if not k.isascii() or not k.isdigit() or int(k) < 1), None)
    if bad is not None or not found.k:
        raise UsageProblem(f"--replay {file}: is no replay: k has {bad!r}; make one with: npuprof accept replay --json")
    return found


class _CriterionFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    k: int | None = Field(None, ge=1)
    pays_above: float = Field(1.0, gt=0)
    fails_below: float = Field(1.0, gt=0)
    control_margin: float | None = Field(None, ge=0, le=1)


def read_yaml(file: Path) -> dict[str, Any]:
    from npuprof.yamlfile import load_yaml

    return load_yaml(file)[0]


def _criterion(file: Path | None) -> Criterion:
    """What was written down; the bar where nothing was. UsageProblem names file, line and key."""
    from npuprof.accept.verdict import Criterion
    from npuprof.economics.verdict import Thresholds
    from npuprof.yamlfile import explain, load_yaml

    if file is None:
        return Criterion()
    data, lines = load_yaml(file)
    try:
        read = _CriterionFile.model_validate(data)
    except ValidationError as e:
        raise explain(e, file, lines) from None
    if read.fails_below > read.pays_above:
        raise UsageProblem(f"{file}: fails_below {read.fails_below:g} is above pays_above {read.pays_above:g}")
    return Criterion(read.k, Thresholds(read.pays_above, read.fails_below), read.control_margin)


def _older(file: Path) -> dict[str, Any]:
    data = read_json(file, "--supersedes")
    if not isinstance(data, dict) or "verdict" not in data or "one_pass" not in data:
        raise UsageProblem(f"--supersedes {file}: is no verdict; one is written by: npuprof accept verdict --out FILE")
    return data
