"""Pays, does not pay, cannot win, or cannot tell: an interval against the bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from npuprof.economics.acceptance import break_even_rate, equal_probability
from npuprof.economics.costs import Round, Times, one_pass, two_pass, window_factor
from npuprof.economics.estimate import Estimate

Verdict = Literal["pays", "does_not_pay", "undecided", "cannot_win", "not_trusted"]


@dataclass(frozen=True)
class Thresholds:
    """On tokens/round over the bar; without a criterion of one's own both are break-even."""

    pays_above: float = 1.0
    fails_below: float = 1.0


def judge(shape: Round, k: int, tokens_per_round: Estimate | None, limits: Thresholds) -> Verdict:
    """A round yields at most k+1 tokens: a bar of k+1 or more cannot be won, whatever the drafter."""
    if shape.bar.low >= k + 1:
        return "cannot_win"
    if tokens_per_round is None:
        return "undecided"
    projected = shape.projected(tokens_per_round)
    if projected.low > limits.pays_above:
        return "pays"
    if projected.high < limits.fails_below:
        return "does_not_pay"
    return "undecided"


@dataclass(frozen=True)
class Shape:
    """One way to make a round, judged. The factor is None where no acceptance was replayed."""

    round: Round
    projected: Estimate | None
    verdict: Verdict
    survives_window_factor: float | None
    break_even_rate: float | None
    break_even_probability: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "round_ms": self.round.ms.value,
            "bar": self.round.bar.as_dict(),
            "projected": None if self.projected is None else self.projected.as_dict(),
            "survives_window_factor": self.survives_window_factor,
            "break_even_rate": self.break_even_rate,
            "break_even_probability": self.break_even_probability,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Case:
    """Everything about one k: `tokens_per_round` is None where no acceptance was replayed."""

    k: int
    times: Times
    drafts_ms: Estimate
    tokens_per_round: Estimate | None
    one_pass: Shape
    two_pass: Shape

    def as_dict(self) -> dict[str, Any]:
        return {
            "one_pass": self.one_pass.as_dict(),
            "two_pass": self.two_pass.as_dict(),
            "tokens_per_round": None if self.tokens_per_round is None else self.tokens_per_round.as_dict(),
            "pass_over_step": self.times.pass_over_step.value,
            "pass_over_step_interval": self.times.pass_over_step.as_dict(),
            "pass_ms": self.times.pass_ms.value,
            "step_ms": self.times.step_ms.value,
            "drafts_ms": self.drafts_ms.value,
        }


def case_of(k: int, times: Times, drafts_ms: Estimate, tokens_per_round: Estimate | None, limits: Thresholds) -> Case:
    """Both shapes of a round of k drafts."""
    shapes = []
    for two, make in ((False, one_pass), (True, two_pass)):
        shape = make(times, drafts_ms)
        bar = shape.bar.value
        shapes.append(
            Shape(
                round=shape,
                projected=None if tokens_per_round is None else shape.projected(tokens_per_round),
                verdict=judge(shape, k, tokens_per_round, limits),
                survives_window_factor=None
                if tokens_per_round is None
                else window_factor(tokens_per_round.value, times, drafts_ms.value, two=two),
                break_even_rate=break_even_rate(bar, k),
                break_even_probability=equal_probability(bar, k),
            )
        )
    return Case(k, times, drafts_ms, tokens_per_round, *shapes)


def best_k(cases: Mapping[int, Case]) -> int:
    """The k whose round of one pass projects best; the smallest of equals. ValueError if none was replayed."""
    projected = {k: c.one_pass.projected.value for k, c in cases.items() if c.one_pass.projected is not None}
    return max(sorted(projected), key=projected.__getitem__)


@dataclass(frozen=True)
class LongerDraft:
    """What drafting `to` instead of `of` bought: the changes of tokens/round and projection, and of the rate in points."""

    of: int
    to: int
    tokens: float
    rate_points: float
    projected: float


def longer_drafts(cases: Mapping[int, Case], rates: Mapping[int, float | None]) -> list[LongerDraft]:
    """Each k of `cases` against the next smaller one, where acceptance was replayed."""
    found = []
    for of, to in pairwise(sorted(cases)):
        a, b = _figures(cases[of]), _figures(cases[to])
        rate_a, rate_b = rates.get(of), rates.get(to)
        if a is None or b is None or rate_a is None or rate_b is None:
            continue
        found.append(LongerDraft(of, to, b[0] / a[0] - 1, 100 * (rate_b - rate_a), b[1] / a[1] - 1))
    return found


def _figures(case: Case) -> tuple[float, float] | None:
    if case.tokens_per_round is None or case.one_pass.projected is None:
        return None
    return case.tokens_per_round.value, case.one_pass.projected.value
