"""Figures of saved records, replays and verdicts, derived from what is raw in them: in full, so they must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from npuprof.audit.figure import Figure, exactly
from npuprof.model.record import Record
from npuprof.model.replay import KCounts, PromptCounts, Replay
from npuprof.stats.derive import rederive

_ROUNDED_MS = 1e-6


def audit_record(record: Record) -> Iterator[Figure]:
    """Every figure of the summary from the passes, every pass's terms and rest to its wall, and error counts."""
    summary, _ = rederive(record)
    yield from _walk(record.summary.model_dump(mode="json"), summary.model_dump(mode="json"), "summary")
    for p in record.passes:
        terms = [t for t in p.terms.values() if t is not None]
        if not terms or p.rest_ms is None:
            continue
        spent = sum(terms) + p.rest_ms
        stated = spent if abs(spent - p.wall_ms) <= _ROUNDED_MS else p.wall_ms
        yield exactly("wall_ms = terms + rest_ms", f"pass {p.seq}", stated, spent, ("terms", "rest_ms"))
    if record.errors is not None:
        for name in ("count", "benign"):
            before, after = getattr(record.errors, f"{name}_before"), getattr(record.errors, f"{name}_after")
            if before is not None and after is not None:
                falls = f"falls from {before} to {after}" if after < before else ""
                where = f"errors.{name}_after"
                yield Figure(
                    where, "errors", after, f">= {before}", "differs" if falls else "ok", (f"{name}_before",), falls
                )


def _walk(stated: Any, derived: Any, at: str) -> Iterator[Figure]:
    if isinstance(derived, dict):
        keys = [*derived, *(k for k in stated if k not in derived)] if isinstance(stated, dict) else derived
        for key in keys:
            yield from _walk(stated.get(key) if isinstance(stated, dict) else None, derived.get(key), f"{at}.{key}")
    elif isinstance(derived, bool) or not isinstance(derived, int | float):
        if stated != derived and not isinstance(stated, int | float):
            yield Figure(at, "record", str(stated), str(derived), "differs", ("passes",), "is not what the passes say")
        elif stated is not None and derived is None:
            yield exactly(at, "record", stated, None, ("passes",))
    elif not isinstance(stated, dict | list | str):
        yield exactly(at, "record", stated, derived, ("passes",))
    else:
        yield Figure(at, "record", str(stated), derived, "differs", ("passes",), "is not what the passes say")


def audit_replay(replay: Replay) -> Iterator[Figure]:
    """Rates, tokens/round and survival from the counts, totals from the prompts, and the identity."""
    for k, counts in replay.k.items():
        yield from _counts(counts, replay.rule, f"k={k}")
        for name, prompt in counts.by_prompt.items():
            yield from _counts(prompt, replay.rule, f"k={k} {name}", prompts=1)
        if counts.by_prompt:
            for field in ("tokens", "rounds", "accepted", "offered", "unfinished_rounds", "plain"):
                each = [getattr(p, field) for p in counts.by_prompt.values()]
                if None in each or (field == "unfinished_rounds" and not any(each)):
                    continue
                total = sum(each)
                yield exactly(f"k={k} {field}", "replay", getattr(counts, field), total, tuple(counts.by_prompt))


def _counts(c: PromptCounts, rule: str, name: str, prompts: int | None = None) -> Iterator[Figure]:
    where = "replay"
    if c.tokens_per_round is not None and c.rounds:
        derived = c.model_copy(update={"tokens_per_round": None}).per_round(rule)
        sources = ("tokens", "rounds") if rule == "reference" else ("accepted", "rounds")
        yield exactly(f"{name} tokens_per_round", where, c.tokens_per_round, derived, sources)
    if c.offered and c.accepted is not None:
        yield exactly(f"{name} rate", where, c.rate, c.accepted / c.offered, ("accepted", "offered"))
    if c.accepted is not None and rule == "reference":
        total = c.rounds + c.accepted - c.unfinished_rounds
        yield exactly(f"{name} tokens", where, c.tokens, total, ("rounds", "accepted", "unfinished_rounds"))
    elif c.accepted is not None:
        free = prompts or (len(c.by_prompt) if isinstance(c, KCounts) else 1)
        total = free + c.rounds + c.accepted + c.plain
        yield exactly(f"{name} tokens", where, c.tokens, total, ("prompts", "rounds", "accepted", "plain"))
    if c.histogram:
        yield exactly(f"{name} rounds", where, c.rounds, sum(c.histogram), ("histogram",))
        accepted = sum(a * n for a, n in enumerate(c.histogram))
        yield exactly(f"{name} accepted", where, c.accepted, accepted, ("histogram",))
        for i, s in enumerate(c.survival or [], 1):
            yield exactly(f"{name} survival {i}", where, s, sum(c.histogram[i:]) / c.rounds, ("histogram",))


def audit_verdict(data: Mapping[str, Any]) -> Iterator[Figure]:
    """Rounds, bars and projections of every k from its times and drafts. KeyError or TypeError for no whole verdict."""
    for k, case in data["by_k"].items():
        name = f"k={k}"
        pass_ms, step_ms, drafts = case["pass_ms"], case["step_ms"], case["drafts_ms"]
        yield exactly(
            f"{name} pass_over_step",
            "verdict",
            case["pass_over_step"],
            pass_ms / step_ms,
            ("pass_ms", "step_ms"),
        )
        for shape, extra in (("one_pass", 0.0), ("two_pass", step_ms)):
            s = case[shape]
            derived = pass_ms + drafts + extra
            yield exactly(f"{name} {shape} round_ms", "verdict", s["round_ms"], derived, ("pass_ms", "drafts_ms"))
            yield exactly(
                f"{name} {shape} bar", "verdict", s["bar"]["value"], derived / step_ms, ("round_ms", "step_ms")
            )
            tokens = case["tokens_per_round"]
            if tokens is not None and s["projected"] is not None:
                value = tokens["value"] / (derived / step_ms)
                sources = ("tokens_per_round", "bar")
                yield exactly(f"{name} {shape} projected", "verdict", s["projected"]["value"], value, sources)
                used = tokens["value"] - (1 if extra else 0)
                factor = (used * step_ms - drafts) / pass_ms
                yield exactly(
                    f"{name} {shape} survives_window_factor", "verdict", s["survives_window_factor"], factor, sources
                )
