"""A target's greedy continuation of each prompt, taken twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from npuprof.accept.checks import check_bos, check_context
from npuprof.accept.replay import NEAR_TIE_NATS
from npuprof.accept.server import Continued, TokenServer
from npuprof.errors import DeviceProblem
from npuprof.model.acceptance import RecordedPrompt, Repeat
from npuprof.model.record import Reason

Prompts = Sequence[tuple[str, str]]
"""(name, text) each."""


def record_prompts(
    server: TokenServer, prompts: Prompts, n: int, *, ignore_eos: bool, say: Callable[[str], None]
) -> list[RecordedPrompt]:
    """n tokens each, fewer where the text ends. UsageProblem for prompts that cannot be recorded."""
    bos = server.bos()
    found = []
    for name, text in prompts:
        ids = server.tokenize(text, special=True)
        if ids is not None:
            check_bos(name, ids, bos)
            check_context(server, name, len(ids) + n)
        got = server.complete(ids if ids is not None else text, n, ignore_eos=ignore_eos, margins=True)
        found.append(_recorded(server, name, text, ids, got))
        say(f"{name}: {len(got.ids)} tokens, {got.finish}")
    return found


def _recorded(server: TokenServer, name: str, text: str, ids: list[int] | None, got: Continued) -> RecordedPrompt:
    if not got.ids:
        raise DeviceProblem(f"the server at {server.url} gave no token for prompt {name!r}")
    counted = (got.body.get("usage") or {}).get("prompt_tokens")
    if ids is not None and isinstance(counted, int) and counted != len(ids):
        raise DeviceProblem(
            f"the server at {server.url} counts {counted} prompt tokens for the {len(ids)} ids of prompt {name!r}: "
            "it puts something in front"
        )
    if ids is None:
        given = got.body.get("prompt_token_ids") or (got.body.get("choices") or [{}])[0].get("prompt_token_ids")
        if not isinstance(given, list):
            raise DeviceProblem(
                f"the server at {server.url} tells no ids of a prompt: it needs /tokenize, or prompt_token_ids"
            )
        ids = given
    margins = got.margins if got.margins is not None and len(got.margins) == len(got.ids) else None
    return RecordedPrompt(
        name=name,
        prompt=text,
        prompt_ids=ids,
        ids=got.ids,
        text=got.text,
        finish_reason=got.finish,
        top2_margin_nats=margins,
        ids_from="the whole text, tokenised again" if got.retokenised else "the server",
    )


def round_trips(server: TokenServer, prompts: Sequence[RecordedPrompt]) -> list[Reason]:
    """The ids must read as the text: ids that hold more, or other ones, would be replayed and mean nothing."""
    bad = []
    for p in prompts:
        ids = p.ids[:-1] if p.finish_reason == "stop" else p.ids
        here = server.detokenize(ids)
        if here is not None and here.strip("�") != p.text.strip("�"):
            bad.append(p.name)
    text = f"the recorded ids of {', '.join(bad)} do not read as the recorded text"
    return [Reason(code="ids_differ_from_text", text=text, affects="all")] if bad else []


def compare(first: Sequence[RecordedPrompt], second: Sequence[RecordedPrompt], server: str) -> Repeat:
    """Where the second recording left the first, with the target's own margin there."""
    differs = []
    for a, b in zip(first, second, strict=True):
        if a.ids == b.ids:
            continue
        n = min(len(a.ids), len(b.ids))
        at = next((i for i in range(n) if a.ids[i] != b.ids[i]), n)
        margins = a.top2_margin_nats
        margin = margins[at] if margins is not None and at < len(margins) else None
        differs.append({"prompt": a.name, "position": at, "top2_margin_nats": margin})
    return Repeat(server=server, equal=not differs, differs=differs)


def repeat_reasons(repeat: Repeat) -> list[Reason]:
    if repeat.equal:
        return []
    places = []
    for d in repeat.differs:
        margin = d["top2_margin_nats"]
        near = (
            ""
            if margin is None
            else f" (top-2 margin {margin:.3f} nats{', a near tie' if margin < NEAR_TIE_NATS else ''})"
        )
        places.append(f"{d['prompt']} at token {d['position']}{near}")
    text = f"recorded twice ({repeat.server}), the text differs: {'; '.join(places)}"
    return [Reason(code="not_deterministic", text=text, affects="all")]


def target_of(server: TokenServer, *, ignore_eos: bool) -> dict[str, Any]:
    """What was recorded: everything as the server itself says it. UsageProblem for one that samples or penalises."""
    sampling = server.sampling()
    server.must_be_greedy(sampling)
    fingerprint = server.fingerprint()
    return {
        **server.describe(),
        "sampling": sampling or "asked for temperature 0; the server does not echo its sampling",
        "ignore_eos": ignore_eos,
        "vocabulary": None if fingerprint is None else asdict(fingerprint),
    }
