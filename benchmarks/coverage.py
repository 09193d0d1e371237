"""Coverage and false alarms of this tool's verdicts on simulated machines, beside the naive ones.

    python benchmarks/coverage.py [--campaigns 1000]

Each simulated campaign has six conditions in mirrored rounds with 1 % noise a pass; the pair of interest has a true
ratio of 1, so every "changed" is false. "A then B" and "pooled medians" are what people do by hand: their verdict is
"changed" when two medians differ by more than 1 % and their 95 % intervals do not overlap.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import exp
from random import Random

from npuprof.model.condition import Condition
from npuprof.stats.judge import NOISE_THRESHOLD, judge
from npuprof.stats.order import median, median_interval
from npuprof.stats.paired import centre, differences
from npuprof.stats.samples import Sample, by_condition, round_series, stability, stability_reasons

NOISE = 0.01
CONDITIONS = [Condition(m) for m in (1, 2, 3, 5, 8, 16)]
A, B = "rows=2", "rows=3"
Machine = Callable[[Random, int, int], Callable[[float], float]]
"""Given randomness and how many passes and rounds there are: a factor on the pass at a fraction of the campaign."""


def steady(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    return lambda at: 1.0


def drift(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    return lambda at: 1 + 0.04 * at


def spikes(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    return lambda at: 1 + (random.expovariate(10) if random.random() < 0.08 else 0)


def staircase(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    return lambda at: 1.3 if at >= 0.5 else 1.0


def two_states(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    """Another power mode, 2x slower, for a stretch of the campaign: it begins and ends anywhere, inside rounds too."""
    begin, end = sorted((random.random(), random.random()))
    return lambda at: 2.0 if begin <= at < end else 1.0


def slow_rounds(random: Random, passes: int, rounds: int) -> Callable[[float], float]:
    factors = [random.choice((1.0, random.uniform(1.7, 2.9))) for _ in range(rounds)]
    return lambda at: factors[min(rounds - 1, int(at * rounds))]


MACHINES: dict[str, Machine] = {
    "steady": steady,
    "4 % linear drift": drift,
    "positive spikes": spikes,
    "staircase +30 %": staircase,
    "two power states 2x": two_states,
    "rounds 1.7-2.9x slower": slow_rounds,
}


def mirrored(random: Random, rounds: int, machine: Machine) -> list[Sample]:
    """A campaign in the tool's own order; every condition has the same true time."""
    names = [c.name for c in CONDITIONS]
    total = 2 * rounds * len(names)
    factor = machine(random, total, rounds)
    samples: list[Sample] = []
    for number in range(1, rounds + 1):
        order = names[:]
        random.shuffle(order)
        for name in [*order, *reversed(order)]:
            wall = 1000 * factor(len(samples) / total) * exp(random.gauss(0, NOISE))
            samples.append(Sample(name, number, len(samples), wall))
    return samples


def a_then_b(random: Random, n: int, machine: Machine) -> tuple[list[float], list[float]]:
    factor = machine(random, 2 * n, 1)
    walls = [1000 * factor(i / (2 * n)) * exp(random.gauss(0, NOISE)) for i in range(2 * n)]
    return walls[:n], walls[n:]


def naive_changed(a: list[float], b: list[float]) -> bool:
    first, second = median_interval(a), median_interval(b)
    assert first is not None
    assert second is not None
    apart = first.high_ms < second.low_ms or second.high_ms < first.low_ms
    return apart and abs(median(b) / median(a) - 1) > NOISE_THRESHOLD


def measure(name: str, machine: Machine, rounds: int, campaigns: int) -> str:
    random = Random(f"{name} {rounds}")
    covered = changed = any_changed = distrusted = pooled = blobs = 0
    stated = 0.0
    for _ in range(campaigns):
        samples = mirrored(random, rounds, machine)
        groups = by_condition(samples)
        base = round_series(groups, A)
        pair = differences(round_series(groups, B), base)
        _, low, high, coverage = centre(pair)
        assert low is not None
        assert high is not None
        stated = coverage or 0.0
        covered += low <= 0 <= high
        changed += judge({B: pair})[B] == "changed"
        all_pairs = {c.name: differences(round_series(groups, c.name), base) for c in CONDITIONS if c.name != A}
        any_changed += "changed" in judge(all_pairs).values()
        canaries = [median([1000 * exp(random.gauss(0, NOISE)) for _ in range(3)]) for _ in range(2)]
        distrusted += bool(stability_reasons(stability(samples, canaries, seed=1)))
        pooled += naive_changed([s.wall_ms for s in groups[A]], [s.wall_ms for s in groups[B]])
        blobs += naive_changed(*a_then_b(random, 2 * rounds, machine))

    def share(n: int) -> str:
        return f"{n / campaigns:.3f}"

    cells = [
        name,
        str(rounds),
        f"{stated:.3f}",
        *map(share, (covered, changed, any_changed, distrusted, pooled, blobs)),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--campaigns", type=int, default=1000)
    campaigns = parser.parse_args().campaigns
    print(f"{campaigns} campaigns a row; true ratio 1\n")
    print(
        "| machine | rounds | stated | coverage | changed | any of 5 changed | ms not trusted "
        "| pooled medians changed | A then B changed |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for rounds in (4, 6, 8):
        for name, machine in MACHINES.items():
            print(measure(name, machine, rounds, campaigns), flush=True)


if __name__ == "__main__":
    main()
