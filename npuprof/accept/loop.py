"""An engine with and without its speculative loop, end to end: tokens per second in mirrored rounds, and equal texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from npuprof.accept.metrics import Speculated, read_speculated
from npuprof.accept.server import Continued, TokenServer
from npuprof.model.record import Ratio, Reason
from npuprof.stats.order import median
from npuprof.stats.paired import differences, ratio_of

Prompts = Sequence[tuple[str, Sequence[int] | str]]


@dataclass(frozen=True)
class Sample:
    """One completion: seconds of the client's clock, tokens, and the server's own draft counts where it gives them."""

    arm: str
    prompt: str
    round: int
    seconds: float
    tokens: int
    draft_n: int | None
    draft_n_accepted: int | None


@dataclass(frozen=True)
class LoopResult:
    """`speed_up` is the paired ratio plain/spec of seconds a token: above 1, speculation is faster. Measured, not projected."""

    tokens_per_second: Mapping[str, float]
    speed_up: Ratio
    samples: Sequence[Sample]
    differs: Sequence[str]
    reasons: Sequence[Reason]
    speculated: Speculated | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "tokens_per_second": dict(self.tokens_per_second),
            "speed_up": self.speed_up.model_dump(),
            "measured_loop": True,
            "texts_differ": list(self.differs),
            "speculated": None if self.speculated is None else self.speculated.as_dict(),
            "draft_n": self.drafted("draft_n"),
            "draft_n_accepted": self.drafted("draft_n_accepted"),
            "samples": [vars(s) for s in self.samples],
        }

    def drafted(self, name: str) -> dict[str, int] | None:
        """By prompt, of the last round; None where the server does not count."""
        found = {s.prompt: getattr(s, name) for s in self.samples if s.arm == "spec"}
        return None if None in found.values() else found


def run_loop(
    plain: TokenServer,
    spec: TokenServer,
    prompts: Prompts,
    n: int,
    rounds: int,
    seed: int,
    *,
    ignore_eos: bool,
    say: Callable[[str], None],
) -> LoopResult:
    """Every prompt on both servers once uncounted, then rounds: all in shuffled order, then in reverse."""
    servers = {"plain": plain, "spec": spec}
    order = [(arm, name) for arm in servers for name, _ in prompts]
    by_name = dict(prompts)
    texts: dict[tuple[str, str], list[int]] = {}
    changed: set[str] = set()
    samples: list[Sample] = []
    random = Random(seed)

    def complete(arm: str, name: str, number: int | None) -> None:
        got = servers[arm].complete(by_name[name], n, ignore_eos=ignore_eos, margins=False)
        if texts.setdefault((arm, name), got.ids) != got.ids:
            changed.add(f"{name} on {arm} from one time to the next")
        if number is not None:
            samples.append(_sample(arm, name, number, got))

    for arm, name in order:
        complete(arm, name, None)
    before = read_speculated(spec.client.text("/metrics"))
    for number in range(1, rounds + 1):
        random.shuffle(order)
        for arm, name in [*order, *reversed(order)]:
            complete(arm, name, number)
        say(f"round {number} of {rounds}")
    after = read_speculated(spec.client.text("/metrics"))
    speed_up = ratio_of(differences(_series(samples, "plain"), _series(samples, "spec")))
    assert speed_up is not None
    differs = [name for name in by_name if texts["plain", name] != texts["spec", name]]
    return LoopResult(
        {arm: _speed(samples, arm) for arm in servers},
        speed_up,
        samples,
        differs,
        _reasons(differs, sorted(changed)),
        None if before is None or after is None else after.since(before),
    )


def _sample(arm: str, name: str, number: int, got: Continued) -> Sample:
    timings = got.body.get("timings") or {}
    return Sample(
        arm,
        name,
        number,
        got.wall_ms / 1000,
        len(got.ids),
        timings.get("draft_n"),
        timings.get("draft_n_accepted"),
    )


def _speed(samples: Sequence[Sample], arm: str) -> float:
    """The median over rounds of all tokens over all seconds."""
    return 1 / median([v for block in _series(samples, arm).values() for v in block])


def _series(samples: Sequence[Sample], arm: str) -> dict[int, list[float]]:
    """Seconds a token of each round, over all prompts together."""
    found = {}
    for number in {s.round for s in samples}:
        here = [s for s in samples if s.arm == arm and s.round == number]
        found[number] = [sum(s.seconds for s in here) / sum(s.tokens for s in here)]
    return found


def _reasons(differs: Sequence[str], changed: Sequence[str]) -> list[Reason]:
    found = []
    if differs:
        text = f"the speculative server says something else than the plain one for {', '.join(differs)}"
        found.append(Reason(code="texts_differ", text=text, affects="all"))
    if changed:
        found.append(Reason(code="not_deterministic", text=f"the text changed: {'; '.join(changed)}", affects="all"))
    return found
