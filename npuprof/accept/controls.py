"""Control arms: the drafter given a wrong context on purpose. Acceptance that does not notice is of a broken input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from npuprof.accept.counts import Counts, count, pool
from npuprof.accept.drafters import ServerDrafter, look_up
from npuprof.accept.replay import PromptPlayed, Result
from npuprof.accept.rules import Rule, play
from npuprof.model.acceptance import RecordedPrompt, Recording
from npuprof.model.record import Reason

SAME_WITHIN = 0.02
"""Rates closer than this, 2 points, are not told apart."""
_WINDOWS = (8, 32, 128, 512, 2048)
_CONSISTENT = 0.95

Context = Callable[[RecordedPrompt, int], list[int]]


@dataclass(frozen=True)
class Arm:
    """`kind`: `destroyed` contexts must cost acceptance; `shifted` ones, off by one; `window` W; `baseline` without a model."""

    name: str
    kind: str
    counts: Counts

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.counts.as_dict()}


def _all(prompt: RecordedPrompt, at: int) -> list[int]:
    return [*prompt.prompt_ids, *prompt.ids[:at]]


def _scrambled(prompt: RecordedPrompt, at: int) -> list[int]:
    ids = _all(prompt, at)
    Random(at).shuffle(ids)
    return ids


def _scrambled_but_last(prompt: RecordedPrompt, at: int) -> list[int]:
    *front, last = _all(prompt, at)
    Random(at).shuffle(front)
    return [*front, last]


def _last_only(prompt: RecordedPrompt, at: int) -> list[int]:
    return _all(prompt, at)[-1:]


def _one_short(prompt: RecordedPrompt, at: int) -> list[int]:
    return _all(prompt, at)[:-1] or _all(prompt, at)


def _one_ahead(prompt: RecordedPrompt, at: int) -> list[int]:
    return [*prompt.prompt_ids, *prompt.ids[: at + 1]]


_ARMS: list[tuple[str, str, Context]] = [
    ("scrambled", "destroyed", _scrambled),
    ("scrambled, last token kept", "destroyed", _scrambled_but_last),
    ("one token of context", "destroyed", _last_only),
    ("prefix one short", "shifted", _one_short),
    ("prefix one ahead", "shifted", _one_ahead),
]


def _windows(recording: Recording) -> Iterator[tuple[str, str, Context]]:
    """Context cut to its last W tokens, for every W that cuts something."""
    longest = max(len(p.prompt_ids) + len(p.ids) for p in recording.prompts)
    for w in _WINDOWS:
        if w < longest:
            yield f"last {w} tokens", "window", lambda prompt, at, w=w: _all(prompt, at)[-w:]  # type: ignore[misc]


def lookup_arm(recording: Recording, rule: Rule, k: int) -> Arm:
    """The n-gram look-up, which needs no server: what a drafter has to beat."""
    counts = [
        count(rule, k, play(rule, p.ids, k, lambda at, n, p=p: look_up(_all(p, at), n)))  # type: ignore[misc]
        for p in recording.prompts
    ]
    return Arm("n-gram look-up, no model", "baseline", pool(counts))


def run_arms(
    recording: Recording,
    drafter: ServerDrafter,
    rule: Rule,
    k: int,
    played: Sequence[PromptPlayed],
    progress: Callable[[str], None],
) -> list[Arm]:
    """Every arm that needs the drafter, one after the other: their contexts leave no cache to share.

    What was asked once, in the aligned replay (`played`) or by another arm, is not asked again.
    """
    known = {tuple(_all(p.prompt, at)): q.ids for p in played for at, q in p.asked.proposals.items() if q.asked >= k}
    arms = []
    for name, kind, context in [*_ARMS, *_windows(recording)]:
        counts = [_misled(p, drafter, rule, k, context, known) for p in recording.prompts]
        arms.append(Arm(name, kind, pool(counts)))
        progress(name)
    return arms


def _misled(
    prompt: RecordedPrompt,
    drafter: ServerDrafter,
    rule: Rule,
    k: int,
    context: Context,
    known: dict[tuple[int, ...], list[int]],
) -> Counts:
    def propose(at: int, n: int) -> list[int]:
        key = tuple(context(prompt, at))
        if key not in known:
            known[key] = drafter.behind(key, k, 0).ids
        return known[key][:n]

    return count(rule, k, play(rule, prompt.ids, k, propose))


@dataclass(frozen=True)
class Shifts:
    """If the first draft behind a position is right, the others must be those of the next position."""

    checked: int
    consistent: int

    def as_dict(self) -> dict[str, int]:
        return {"checked": self.checked, "consistent": self.consistent}


def shift_consistency(played: Sequence[PromptPlayed]) -> Shifts:
    """Over all neighbouring positions that were asked; true of any drafter that drafts one token after the other."""
    checked = consistent = 0
    for p in played:
        asked = p.asked.proposals
        for at, here in asked.items():
            there = asked.get(at + 1)
            if there is None or not here.ids or here.ids[0] != p.prompt.ids[at]:
                continue
            n = min(len(here.ids) - 1, len(there.ids))
            checked += 1
            consistent += here.ids[1 : 1 + n] == there.ids[:n]
    return Shifts(checked, consistent)


def findings(
    aligned: Result, arms: Sequence[Arm], shifts: Shifts, played: Sequence[PromptPlayed], *, itself: bool
) -> list[Reason]:
    """Reasons to hold the input for broken, rather than the drafter for weak. `itself`: the drafter is the target."""
    rate = aligned.pooled.rate
    found: list[tuple[str, str]] = []
    if rate is None:
        return []
    if itself and aligned.rejections > (aligned.near_ties or 0):
        found.append(
            ("broken_input", f"the drafter is the target, and rejects its own text {aligned.rejections} times")
        )
    for arm in arms:
        other = arm.counts.rate
        if other is None:
            continue
        if arm.kind == "destroyed" and other >= rate - SAME_WITHIN:
            found.append(
                (
                    "broken_input",
                    f"acceptance does not move with the context: {rate:.3f} aligned, {other:.3f} {arm.name}",
                )
            )
        if arm.kind == "shifted" and other >= rate - SAME_WITHIN:
            found.append(("broken_input", f"positions seem off by one: {rate:.3f} aligned, {other:.3f} {arm.name}"))
    windows = [a.counts.rate for a in arms if a.kind == "window" and a.counts.rate is not None]
    if windows and all(abs(w - rate) < SAME_WITHIN / 2 for w in windows):
        found.append(("broken_input", f"acceptance is {rate:.3f} whatever the length of the context"))
    firsts = {q.ids[0] for p in played for q in p.asked.proposals.values() if q.ids}
    if len(firsts) == 1 and sum(len(p.asked.proposals) for p in played) > 1:
        found.append(("broken_input", f"the drafter proposes token {firsts.pop()} first behind every prefix"))
    if shifts.checked and shifts.consistent < _CONSISTENT * shifts.checked:
        found.append(
            (
                "broken_input",
                f"drafts behind neighbouring prefixes contradict each other: {shifts.consistent} of {shifts.checked} agree",
            )
        )
    return [Reason(code=code, text=text, affects="all") for code, text in found]
