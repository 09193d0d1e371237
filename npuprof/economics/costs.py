"""What a speculative round costs in decode steps.

With step_ms S, pass_ms P of k+1 rows and d ms for all drafts of a round, a round of one pass costs P + d, and one of two
passes (verify, then the step that consumes the committed token) P + d + S. The bar is a round in steps: the tokens that a
round must yield to break even. Medusa (Cai et al. 2024) calls the same figure overhead, and tokens/round acceleration rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from npuprof.economics.estimate import Estimate


@dataclass(frozen=True)
class Times:
    """Medians in ms. `pass_over_step` has the interval of the paired ratio where there is one; its value is the quotient."""

    pass_ms: Estimate
    step_ms: Estimate
    pass_over_step: Estimate

    @classmethod
    def of(cls, pass_ms: Estimate, step_ms: Estimate) -> Times:
        """Of two figures about whose pairing nothing is known."""
        return cls(pass_ms, step_ms, pass_ms / step_ms)


@dataclass(frozen=True)
class Round:
    """One shape of a round: its cost in ms and its bar in tokens."""

    ms: Estimate
    bar: Estimate

    def projected(self, tokens_per_round: Estimate) -> Estimate:
        """Speed-up over plain decoding, tokens/round over the bar: arithmetic, not a measured loop."""
        return tokens_per_round / self.bar


def one_pass(times: Times, drafts_ms: Estimate) -> Round:
    """`drafts_ms` is what all drafts of a round cost: k times the ms per token, or one block's ms."""
    ms = times.pass_ms + drafts_ms
    bar = times.pass_over_step + drafts_ms / times.step_ms
    return Round(ms, bar)


def two_pass(times: Times, drafts_ms: Estimate) -> Round:
    """One pass, and then the step that consumes the token."""
    single = one_pass(times, drafts_ms)
    return Round(single.ms + times.step_ms, single.bar + Estimate.exactly(1.0))


def window_factor(tokens_per_round: float, times: Times, drafts_ms: float, *, two: bool) -> float:
    """By how much the pass may slow down until the round only breaks even, the plain step unslowed.

    F = (T step - drafts) / pass, and for two passes ((T - 1) step - drafts) / pass. Below 1: it does not even pay now.
    """
    tokens = tokens_per_round - 1 if two else tokens_per_round
    return (tokens * times.step_ms.value - drafts_ms) / times.pass_ms.value
