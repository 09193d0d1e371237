"""A replay and a machine's times, brought together: which k, at what cost, with which trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npuprof.economics.costs import Times
from npuprof.economics.estimate import Estimate
from npuprof.economics.finding import Finding
from npuprof.economics.verdict import Case, Thresholds, Verdict, best_k, case_of
from npuprof.errors import UsageProblem
from npuprof.model.replay import KCounts, Replay
from npuprof.stats.bootstrap import MIN_PROMPTS, ratio_of_sums


@dataclass(frozen=True)
class Criterion:
    """What was written down before the replay: None where nothing was said of it."""

    k: int | None = None
    limits: Thresholds = field(default_factory=Thresholds)
    control_margin: float | None = None


@dataclass(frozen=True)
class TimesFound:
    """Times of one k with what is to be said of them; `trusted` is None where it is not stated."""

    times: Times
    notes: tuple[str, ...]
    trusted: bool | None
    untrusted_because: tuple[str, ...] = ()


def tokens_per_round(counts: KCounts, rule: str) -> tuple[Estimate | None, str]:
    """The pooled figure; from 20 prompts on with a bootstrap's interval, below with the worst and the best prompt's."""
    value = counts.per_round(rule)
    if value is None:
        return None, "no rounds"
    each = [(x, p.rounds) for p in counts.by_prompt.values() if (x := p.per_round(rule)) is not None]
    if len(each) >= MIN_PROMPTS:
        low, high = ratio_of_sums([(x * rounds, rounds) for x, rounds in each])
        return Estimate.exactly(value).reaching(low, high), f"bootstrap over {len(each)} prompts, 95 %"
    if not each:
        return Estimate.unknown(value), "no figures by prompt"
    figures = [x for x, _ in each]
    return Estimate.exactly(value).reaching(min(figures), max(figures)), f"min and max over {len(each)} prompts"


def drafts_cost(k: int, counts: KCounts | None, draft_ms: Estimate | None, block_ms: Estimate | None) -> Estimate:
    """All drafts of a round, ms: one block's, or k times a token's, given or replayed. UsageProblem where nothing says it."""
    if block_ms is not None:
        return block_ms
    if draft_ms is not None:
        return draft_ms.times(k)
    if counts is None:
        return Estimate.exactly(0.0)
    if counts.draft_ms_per_token is None:
        raise UsageProblem(f"the replay knows no draft time for k={k}; add --draft-ms X")
    # As it is printed, so that a reader can derive the round again.
    value = Estimate.exactly(round(counts.draft_ms_per_token, 2))
    if counts.draft_ms is not None and counts.draft_ms.interval is not None:
        value = value.reaching(counts.draft_ms.interval.low_ms, counts.draft_ms.interval.high_ms)
    return value.times(k)


def decide(
    found: Mapping[int, TimesFound],
    replay: Replay | None,
    k: int | None,
    criterion: Criterion,
    draft_ms: Estimate | None,
    block_ms: Estimate | None,
) -> Finding:
    """`found` has the times of every k that can be judged. `k` None: the criterion's, else the one that projects best."""
    cases: dict[int, Case] = {}
    hows: dict[int, str] = {}
    for key, times in found.items():
        counts = None if replay is None else replay.k[str(key)]
        tokens, hows[key] = (
            (None, "not replayed") if counts is None or replay is None else tokens_per_round(counts, replay.rule)
        )
        cases[key] = case_of(key, times.times, drafts_cost(key, counts, draft_ms, block_ms), tokens, criterion.limits)
    chosen = k or criterion.k or best_k(cases)
    if chosen not in cases:
        raise UsageProblem(f"--k {chosen}: there is none in the replay; it has {', '.join(map(str, cases))}")
    case = cases[chosen]
    verdict: Verdict = case.one_pass.verdict
    reasons, broken = _distrust(found[chosen], replay)
    if broken:
        verdict = "not_trusted"
    elif verdict == "undecided":
        reasons += _why_undecided(case, hows[chosen])
    if not broken and criterion.control_margin is not None and verdict == "pays":
        missing = _margin(replay, criterion.control_margin)
        if missing is not None:
            verdict, reasons = "undecided", [*reasons, missing]
    notes = list(found[chosen].notes)
    if replay is not None and replay.trust is None:
        notes.append("the recording does not state its trust")
    return Finding(
        verdict,
        chosen,
        cases,
        None if replay is None else len(replay.k[str(chosen)].by_prompt) or None,
        hows[chosen],
        tuple(reasons),
        tuple(notes),
        {} if replay is None else {key: replay.k[str(key)] for key in cases},
    )


def _distrust(times: TimesFound, replay: Replay | None) -> tuple[list[str], bool]:
    reasons = list(times.untrusted_because) if times.trusted is False else []
    if replay is not None and replay.trust is not None and not replay.trust.trusted:
        reasons += [f"{r.code}: {r.text}" for r in replay.trust.reasons]
        return reasons, True
    return reasons, times.trusted is False


def _why_undecided(case: Case, how: str) -> list[str]:
    if case.tokens_per_round is None:
        return ["no acceptance was replayed: below the ceiling of k+1, only a drafter can tell"]
    if not case.times.pass_over_step.known:
        return ["the ratio of pass to step has no interval: measure with 3 rounds or more"]
    p = case.one_pass.projected
    assert p is not None
    return [f"the projection reaches from {p.low:.3f} to {p.high:.3f} ({how}; interval of the bar)"]


def _margin(replay: Replay | None, wanted: float) -> str | None:
    """The criterion's margin between the aligned rate and the best arm whose context is wrong."""
    if replay is None or replay.controls is None:
        return "the criterion has a control_margin, and the replay has no control arms: accept replay --controls"
    arms = {
        n: a
        for n, a in replay.controls["arms"].items()
        if a["kind"] in ("destroyed", "shifted") and a["rate"] is not None
    }
    rate = replay.controls["aligned"]["rate"]
    if rate is None or not arms:
        return "the replay has no control arms with a rate"
    best = max(arms, key=lambda n: arms[n]["rate"])
    if rate - arms[best]["rate"] >= wanted:
        return None
    return f"the aligned rate {rate:.3f} is less than {wanted:g} above control arm {best!r} ({arms[best]['rate']:.3f})"
