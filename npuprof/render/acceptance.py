"""A replay's figures as lines to paste: every one of them can be re-derived from the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.model.replay import DraftMs, KCounts, PromptCounts, Replay
from npuprof.render.text import digits3, printable


def replay_lines(replay: Replay) -> list[str]:
    """The whole report, a line an entry."""
    lines = [f"rule {replay.rule}: {_RULES[replay.rule]}", f"drafter {replay.drafter}"]
    lines += [f"recording {replay.recording.get('file')}: {replay.recording.get('target')}"]
    for k, counts in replay.k.items():
        lines += ["", *k_lines(int(k), counts, replay.rule)]
    if replay.repeats is not None:
        lines += ["", *_repeats(replay.repeats)]
    if replay.controls is not None:
        lines += ["", *control_lines(replay.controls)]
    lines += ["", *_trust(replay)]
    return [printable(line) for line in lines]


_RULES = {
    "reference": "rounds begin behind the bare prompt; each offers min(len(draft), k), also past the recording's end",
    "llama-server": "as a live one counts: the first token is the prompt pass's, drafts are clipped to what remains less one",
}


def counts_line(k: int, c: KCounts) -> str:
    """`k=4: tokens=160 rounds=54 tokens/round=2.963 accepted/offered=108/216=0.5 draft_ms/token=5.76`."""
    cost = "" if c.draft_ms_per_token is None else f" draft_ms/token={c.draft_ms_per_token:.2f}"
    return (
        f"k={k}: tokens={c.tokens} rounds={c.rounds} tokens/round={_three(c.tokens_per_round)} "
        f"accepted/offered={c.accepted}/{c.offered}={_three(c.rate)}{cost}"
    )


def k_lines(k: int, c: KCounts, rule: str) -> list[str]:
    lines = [
        counts_line(k, c),
        f"    {_prompts(c)}",
        f"    {identity(c, rule)}",
        "    tokens/round has the target's own token in it",
        f"    accepted  {'  '.join(f'{a}: {n}' for a, n in enumerate(c.histogram))} rounds",
    ]
    if c.survival is not None and c.conditional is not None:
        given = " ".join("–" if s is None else f"{s:.2f}" for s in c.conditional)
        lines.append(f"    survival  {' '.join(f'{s:.2f}' for s in c.survival)} (draft i and all before it)")
        lines.append(f"    given     {given} (draft i, those before it accepted)")
    if c.draft_ms is not None:
        lines.append(f"    drafting  {_drafting(c.draft_ms)}")
    if c.near_ties is not None:
        near = f"{c.near_ties} of them at a near tie of the target's own (under 0.1 nats)"
        lines.append(f"    rejected  in {c.rejections} rounds, {near}")
    return lines


def identity(c: PromptCounts, rule: str) -> str:
    """N = R + A - T in words."""
    if rule == "reference":
        ended = f"{c.unfinished_rounds} rounds that ended without a token of the target's own"
        return f"{c.tokens} tokens = {c.rounds} rounds + {c.accepted} accepted - {ended}"
    free = c.tokens - c.rounds - (c.accepted or 0) - c.plain
    more = f"{c.rounds} rounds + {c.accepted} accepted + {c.plain} plain steps"
    return f"{c.tokens} tokens = {free} of the prompts' passes + {more}"


def _three(value: float | None) -> str:
    return "n/a" if value is None else digits3(value)


def _prompts(c: KCounts) -> str:
    same = len({p.tokens for p in c.by_prompt.values()}) == 1
    parts = []
    for i, (name, p) in enumerate(c.by_prompt.items()):
        tokens = "" if same and i else f"{p.tokens} tok / "
        rounds = f"{p.rounds} round{'' if p.rounds == 1 else 's'}"
        parts.append(f"{name}: {tokens}{rounds} = {_three(p.tokens_per_round)}")
    return "   ".join(parts)


def _drafting(d: DraftMs) -> str:
    first = "" if d.first is None else f"; the prompts' first rounds apart: {d.first:.2f}"
    cold = f", {d.cold} had lost the cache and are left out" if d.cold else ""
    return f"{d.median:.2f} ms/token (min {d.min:.2f} max {d.max:.2f}, {d.warm} warm requests{cold}){first}, by {d.by}"


def _repeats(repeats: dict[str, Any]) -> list[str]:
    lines = []
    for k, r in repeats["k"].items():
        span = f"{digits3(r['tokens_per_round']['low'])} to {digits3(r['tokens_per_round']['high'])}"
        moved = f"moved: {', '.join(r['moved'])}" if r["moved"] else "no prompt moved"
        rounds = ", ".join(map(str, r["rounds"]))
        lines.append(f"{repeats['n']} replays, k={k}: rounds {rounds}; tokens/round {span}; {moved}")
    return lines


def control_lines(controls: dict[str, Any]) -> list[str]:
    """The arms under the aligned one."""
    aligned = controls["aligned"]
    rows: list[tuple[str, Any]] = [("aligned", aligned), *controls["arms"].items()]
    width = max(len(name) for name, _ in rows)
    lines = [f"control arms at k={controls['k']}: tokens/round, accepted/offered"]
    for name, c in rows:
        rate = f"{c['accepted']}/{c['offered']}={_three(c['rate'])}"
        lines.append(f"    {name:{width}}  {_three(c['tokens_per_round']):>5}  {rate}")
    s = controls["shifts"]
    lines.append(f"    shift consistency: {s['consistent']} of {s['checked']} neighbouring drafts agree")
    return lines


def _trust(replay: Replay) -> list[str]:
    if replay.trust is None:
        return ["trust   not stated by the recording"]
    return acceptance_trust(replay.trust.trusted, [f"{r.code}: {r.text}" for r in replay.trust.reasons])


def acceptance_trust(trusted: bool, reasons: Sequence[str]) -> list[str]:
    return [f"trust   {'trusted' if trusted else 'NOT trusted'}", *(f"        {r}" for r in reasons)]
