"""One replay as users ask for it: repeats, control arms, and what both say of its trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from npuprof.accept.controls import Arm, findings, lookup_arm, run_arms, shift_consistency
from npuprof.accept.drafters import Drafter, ServerDrafter
from npuprof.accept.replay import PromptPlayed, Result, replay, result_of
from npuprof.accept.rules import Played, Rule
from npuprof.accept.saved import cache_reasons, joined, k_counts, repeats_of
from npuprof.accept.server import TokenServer
from npuprof.errors import NpuprofError
from npuprof.model.acceptance import Recording
from npuprof.model.record import Reason
from npuprof.model.replay import Replay

_SAME_MODEL = ("model", "parameters", "size_bytes", "n_vocab")


class Session:
    """`played` holds the first replay's proposals once it has run."""

    def __init__(
        self,
        recording: Recording,
        drafter: Drafter,
        server: TokenServer | None,
        ks: Sequence[int],
        rule: str,
        say: Callable[[str], None],
    ) -> None:
        self._recording = recording
        self._drafter = drafter
        self._slots = server.slots if server is not None else 1
        self._ks = sorted(ks)
        self._rule = cast(Rule, rule)
        self._say = say
        self.played: dict[str, PromptPlayed] = {}

    def run(self, repeat: int, *, controls: bool, about: Mapping[str, Any]) -> Replay:
        """What the drafter or its server raises comes through."""
        runs = [self._once(n, everywhere=controls) for n in range(repeat)]
        first = runs[0]
        reasons = cache_reasons(first)
        found = None
        if controls:
            found, broken = self._controls(first[self._ks[0]])
            reasons += broken
        return Replay(
            rule=self._rule,
            drafter=self._drafter.name,
            about={**self._drafter.describe(), "side_by_side": min(self._slots, len(self._recording.prompts))},
            k={str(k): k_counts(first[k]) for k in self._ks},
            recording={**about, "prompts": len(self._recording.prompts), "n_tokens": self._recording.n_tokens},
            trust=joined(self._recording.trust, reasons),
            controls=found,
            repeats=repeats_of(runs) if repeat > 1 else None,
        )

    def _once(self, n: int, *, everywhere: bool) -> dict[int, Result]:
        def progress(prompt: str, k: int, played: Played) -> None:
            self._say(f"replay {n + 1}, {prompt}: k={k}, {played.tokens} tokens in {len(played.rounds)} rounds")

        everywhere = everywhere and n == 0 and isinstance(self._drafter, ServerDrafter)
        played = replay(
            self._recording, self._drafter, self._ks, self._rule, self._slots, progress, everywhere=everywhere
        )
        if n == 0:
            self.played = played
        results = {k: result_of(self._rule, k, played) for k in self._ks}
        for k, r in results.items():
            lost = r.pooled.missing()
            if lost:
                raise NpuprofError(f"k={k}: the counts do not add up, {lost} tokens are unaccounted for: a bug")
        return results

    def _controls(self, aligned: Result) -> tuple[dict[str, Any], list[Reason]]:
        arms: list[Arm] = []
        played = list(self.played.values())
        if isinstance(self._drafter, ServerDrafter):
            arms = run_arms(
                self._recording,
                self._drafter,
                self._rule,
                aligned.k,
                played,
                lambda name: self._say(f"control arm: {name}"),
            )
        arms.append(lookup_arm(self._recording, self._rule, aligned.k))
        shifts = shift_consistency(played)
        described, target = self._drafter.describe(), self._recording.target
        itself = all(described.get(key) is not None and described.get(key) == target.get(key) for key in _SAME_MODEL)
        found = {
            "k": aligned.k,
            "aligned": aligned.pooled.as_dict(),
            "itself": itself,
            "arms": {a.name: a.as_dict() for a in arms},
            "shifts": shifts.as_dict(),
        }
        return found, findings(aligned, arms, shifts, played, itself=itself)
