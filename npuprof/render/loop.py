"""The end-to-end figure beside the projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from npuprof.model.record import Ratio, Trust
from npuprof.render.acceptance import acceptance_trust
from npuprof.render.text import digits3, printable


class Measured(Protocol):
    @property
    def tokens_per_second(self) -> Mapping[str, float]: ...
    @property
    def speed_up(self) -> Ratio: ...
    @property
    def differs(self) -> Sequence[str]: ...
    @property
    def speculated(self) -> Speculated | None: ...
    def drafted(self, name: str) -> dict[str, int] | None: ...


class Speculated(Protocol):
    @property
    def drafts(self) -> int: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def mean_length(self) -> float | None: ...


def loop_lines(result: Measured, projection: dict[str, Any] | None, trust: Trust) -> list[str]:
    """Measured loop, then what arithmetic said, then the trust."""
    plain, spec = result.tokens_per_second["plain"], result.tokens_per_second["spec"]
    lines = [
        f"measured loop: plain {plain:.1f} tokens/s, speculative {spec:.1f} tokens/s, HTTP and the prompt's pass included",
        f"measured speed-up {_ratio(result.speed_up)}",
    ]
    if projection is not None:
        for shape, p in projection.items():
            ends = "" if p["low"] is None else f" [{digits3(p['low'])}, {digits3(p['high'])}]"
            lines.append(f"projected by arithmetic, {shape}: x {digits3(p['value'])}{ends}")
    accepted, drafted = result.drafted("draft_n_accepted"), result.drafted("draft_n")
    if accepted is not None and drafted is not None:
        each = "   ".join(f"{name}: {accepted[name]}/{drafted[name]}" for name in drafted)
        lines.append(f"the server's own accepted/drafted: {each}")
    s = result.speculated
    if s is not None and s.mean_length is not None:
        lines.append(
            f"the server's counters: {s.accepted}/{s.drafted} accepted in {s.drafts} rounds, "
            f"{digits3(s.mean_length)} tokens/round (1 + accepted/rounds, the target's own included)"
        )
    lines.append("texts   equal" if not result.differs else f"texts   DIFFER for {', '.join(result.differs)}")
    lines += acceptance_trust(trust.trusted, [f"{r.code}: {r.text}" for r in trust.reasons])
    return [printable(line) for line in lines]


def _ratio(r: Ratio) -> str:
    if r.low is None or r.high is None or r.coverage is None:
        return f"x {digits3(r.value)} (no interval: {r.blocks} rounds, 3 are needed)"
    return f"x {digits3(r.value)} [{digits3(r.low)}, {digits3(r.high)}] ({100 * r.coverage:.1f} %, {r.blocks} rounds)"
