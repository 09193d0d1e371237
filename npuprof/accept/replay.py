"""A drafter played against a recording: every k, prompts side by side, no prefix asked for twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from npuprof.accept.counts import Counts, count, pool
from npuprof.accept.drafters import Drafter, Proposal
from npuprof.accept.rules import Played, Rule, play
from npuprof.errors import NpuprofError
from npuprof.model.acceptance import RecordedPrompt, Recording
from npuprof.model.record import Interval
from npuprof.stats.order import median, median_interval

NEAR_TIE_NATS = 0.1
_WARM_ROWS = 2
"""A drafter that kept its cache evaluates 1 token after a partial acceptance, 2 after a full one."""


@dataclass
class Asked:
    """All that a drafter proposed for one prompt, by committed tokens."""

    prompt: RecordedPrompt
    proposals: dict[int, Proposal] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptPlayed:
    prompt: RecordedPrompt
    asked: Asked
    by_k: dict[int, Played]


Progress = Callable[[str, int, Played], None]
"""Told (prompt, k, what was played) after each."""


def replay(
    recording: Recording,
    drafter: Drafter,
    ks: Sequence[int],
    rule: Rule,
    slots: int,
    progress: Progress,
    *,
    everywhere: bool = False,
) -> dict[str, PromptPlayed]:
    """Prompts run side by side, one a slot. `everywhere` asks behind every prefix, for the checks that need them all.

    The largest k goes first: what it asked for serves the smaller ones, so no prefix is asked for twice. What a drafter
    raises comes through.
    """
    free: SimpleQueue[int] = SimpleQueue()
    for slot in range(slots):
        free.put(slot)
    stop = threading.Event()

    def one(prompt: RecordedPrompt) -> PromptPlayed:
        slot = free.get()
        try:
            return _one(prompt, drafter, ks, rule, slot, progress, stop, everywhere=everywhere)
        except BaseException:
            stop.set()
            raise
        finally:
            free.put(slot)

    with ThreadPoolExecutor(slots) as side_by_side:
        try:
            played = list(side_by_side.map(one, recording.prompts))
        except BaseException:
            stop.set()
            raise
    return {p.prompt.name: p for p in played}


class _Stopped(NpuprofError):
    """Another prompt failed: its error is the one that counts."""


def _one(
    prompt: RecordedPrompt,
    drafter: Drafter,
    ks: Sequence[int],
    rule: Rule,
    slot: int,
    progress: Progress,
    stop: threading.Event,
    *,
    everywhere: bool,
) -> PromptPlayed:
    asked = Asked(prompt)

    def propose(at: int, n: int) -> list[int]:
        if stop.is_set():
            raise _Stopped("stopped")
        if at not in asked.proposals:
            asked.proposals[at] = drafter.propose(prompt, at, n, slot)
        return asked.proposals[at].ids[:n]

    if everywhere:
        for at in range(len(prompt.ids)):
            propose(at, max(ks))
    by_k = {}
    for k in sorted(set(ks), reverse=True):
        by_k[k] = play(rule, prompt.ids, k, propose)
        progress(prompt.name, k, by_k[k])
    return PromptPlayed(prompt, asked, by_k)


@dataclass(frozen=True)
class DraftCost:
    """ms a drafted token: median, min and max over the warm requests; the prompts' first requests apart.

    A request's time is the server's prompt_ms + predicted_ms, over the tokens it drafted; the client's wall where the
    server gives none. `cold`: later requests that evaluated more than 2 tokens, since the drafter had lost its cache.
    """

    ms_per_token: float
    low_ms: float
    high_ms: float
    interval: Interval | None
    warm: int
    cold: int
    first_ms_per_token: float | None
    by: str


@dataclass(frozen=True)
class Result:
    """One k over all prompts. `near_ties` of the `rejections` stood where the target itself nearly chose otherwise."""

    k: int
    pooled: Counts
    by_prompt: dict[str, Counts]
    cost: DraftCost | None
    rejections: int
    near_ties: int | None


def result_of(rule: Rule, k: int, played: dict[str, PromptPlayed]) -> Result:
    counts = {name: count(rule, k, p.by_k[k]) for name, p in played.items()}
    rejections, ties = 0, 0
    margins = False
    for p in played.values():
        known = p.prompt.top2_margin_nats
        margins = margins or known is not None
        for r in p.by_k[k].rounds:
            at = r.position + r.accepted
            if r.accepted == r.offered or at >= len(p.prompt.ids):
                continue
            rejections += 1
            margin = known[at] if known is not None and at < len(known) else None
            ties += margin is not None and margin < NEAR_TIE_NATS
    return Result(
        k, pool(list(counts.values())), counts, cost_of(k, played.values()), rejections, ties if margins else None
    )


def cost_of(k: int, played: Iterable[PromptPlayed]) -> DraftCost | None:
    """None where nothing is known of what drafting took."""
    warm: list[float] = []
    first: list[float] = []
    cold: list[float] = []
    served = True
    for p in played:
        begin = min(p.asked.proposals, default=0)
        for r in p.by_k[k].rounds:
            proposal = p.asked.proposals[r.position]
            ms = _request_ms(proposal)
            if ms is None or not proposal.asked:
                continue
            served = served and proposal.timing is not None
            if r.position == begin:
                first.append(ms / proposal.asked)
            elif proposal.timing is not None and proposal.timing[2] > _WARM_ROWS:
                cold.append(ms / proposal.asked)
            else:
                warm.append(ms / proposal.asked)
    # Where every request found the cache lost, that is what drafting costs, and it is said to be unsteady.
    counted = warm or cold
    if not counted:
        return None
    return DraftCost(
        median(counted),
        min(counted),
        max(counted),
        median_interval(counted),
        len(warm),
        len(cold),
        sum(first) / len(first) if first else None,
        "the server's prompt and predicted time" if served else "the client's wall time, HTTP included",
    )


def _request_ms(p: Proposal) -> float | None:
    return p.timing[0] + p.timing[1] if p.timing is not None else p.wall_ms
