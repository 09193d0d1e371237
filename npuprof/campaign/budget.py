"""How many rounds fit a budget, planned from a pilot: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import stdev

from npuprof.stats.paired import EXACT_BLOCKS, MIN_BLOCKS
from npuprof.stats.plan import blocks_needed

PILOT_ROUNDS = MIN_BLOCKS
HALF_WIDTH = 0.02
"""The relative half-width of a ratio's interval that a budget is spent to reach."""


@dataclass(frozen=True)
class Plan:
    """`rounds` in all, the pilot included; `cost_s` is what they take; `text` says why so many."""

    rounds: int
    cost_s: float
    text: str


def plan(differences: Sequence[Sequence[float]], round_s: float, spent_s: float, budget_s: float) -> Plan:
    """From the pilot's per-round log differences (one series a ratio) and seconds: how long to go on.

    At least the pilot; at most what the budget pays; otherwise what the noisiest ratio needs for +- 2 %, and not under
    the 6 rounds from which an interval is exact.
    """
    noise = max((stdev(d) for d in differences if len(d) >= 2), default=0.0)
    needed = blocks_needed(noise, HALF_WIDTH)
    affordable = PILOT_ROUNDS + int(max(0.0, budget_s - spent_s) / round_s) if round_s > 0 else PILOT_ROUNDS
    wanted = max(EXACT_BLOCKS, needed if needed is not None else inf)
    rounds = int(min(wanted, affordable))
    cost = spent_s + (rounds - PILOT_ROUNDS) * round_s
    want = "more rounds than make sense" if needed is None else f"{needed} rounds"
    text = (
        f"plan: noise {noise * 100:.2g} % a round, so {want} for +-{HALF_WIDTH * 100:.0f} % on every ratio; "
        f"{rounds} rounds cost {cost:.0f} s of device time, of a budget of {budget_s:g} s"
    )
    return Plan(rounds, cost, text)
