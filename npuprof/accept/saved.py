"""A replay's results as the object that is printed, saved, and read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuprof.accept.counts import Counts
from npuprof.accept.replay import DraftCost, Result
from npuprof.model.record import Reason, Trust
from npuprof.model.replay import DraftMs, KCounts, PromptCounts
from npuprof.stats.trust import trust_of

_COLD_SHARE = 0.1


def k_counts(result: Result) -> KCounts:
    cost = result.cost
    return KCounts(
        **result.pooled.as_dict(),
        draft_ms_per_token=None if cost is None else cost.ms_per_token,
        draft_ms=None if cost is None else _draft_ms(cost),
        rejections=result.rejections,
        near_ties=result.near_ties,
        by_prompt={name: _prompt(c) for name, c in result.by_prompt.items()},
    )


def _prompt(counts: Counts) -> PromptCounts:
    return PromptCounts(**counts.as_dict())


def _draft_ms(cost: DraftCost) -> DraftMs:
    return DraftMs(
        median=cost.ms_per_token,
        min=cost.low_ms,
        max=cost.high_ms,
        interval=cost.interval,
        warm=cost.warm,
        cold=cost.cold,
        first=cost.first_ms_per_token,
        by=cost.by,
    )


def cache_reasons(results: Mapping[int, Result]) -> list[Reason]:
    """A drafter that lost its cache drafts at another price than a steady one; its counts stand."""
    for k, result in results.items():
        cost = result.cost
        if cost is not None and cost.cold > _COLD_SHARE * (cost.cold + cost.warm):
            of = cost.cold + cost.warm
            text = f"k={k}: the drafter had lost its cache in {cost.cold} of {of} requests: its ms are not steady"
            return [Reason(code="draft_cache_lost", text=text, affects="absolute")]
    return []


def joined(stated: Trust | None, found: Sequence[Reason]) -> Trust | None:
    """The recording's trust with what the replay found; None, not stated, where neither speaks."""
    if stated is None and not found:
        return None
    own = trust_of(found)
    if stated is None:
        return own
    return Trust(
        absolute="trusted" if stated.absolute == own.absolute == "trusted" else "not_trusted",
        ratios="trusted" if stated.ratios == own.ratios == "trusted" else "not_trusted",
        reasons=[*stated.reasons, *found],
    )


def repeats_of(runs: Sequence[Mapping[int, Result]]) -> dict[str, Any]:
    """The range over replays and the prompts whose counts moved."""
    by_k = {}
    for k in runs[0]:
        per_round = [r[k].pooled.tokens_per_round or 0.0 for r in runs]
        names = runs[0][k].by_prompt
        moved = [n for n in names if len({r[k].by_prompt[n] for r in runs}) > 1]
        by_k[str(k)] = {
            "rounds": [r[k].pooled.rounds for r in runs],
            "tokens_per_round": {"low": min(per_round), "high": max(per_round)},
            "moved": moved,
        }
    return {"n": len(runs), "k": by_k}
