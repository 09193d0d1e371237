"""The bootstrap over prompts: what it covers, and where it is refused."""

from __future__ import annotations

from random import Random

import pytest

from npuprof.accept.verdict import tokens_per_round
from npuprof.model.replay import KCounts, PromptCounts
from npuprof.stats import bootstrap
from npuprof.stats.bootstrap import ratio_of_sums


def prompt(random: Random) -> tuple[float, float]:
    """40 tokens in rounds of up to 5; how often drafts are accepted differs from prompt to prompt."""
    p, tokens, rounds = random.betavariate(2, 2), 0, 0
    while tokens < 40:
        accepted = 0
        while accepted < 4 and random.random() < p:
            accepted += 1
        tokens += min(accepted + 1, 40 - tokens)
        rounds += 1
    return 40.0, float(rounds)


def test_it_covers_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_RESAMPLES", 300)
    random = Random(7)
    many = [prompt(random) for _ in range(10_000)]
    truth = sum(a for a, _ in many) / sum(b for _, b in many)
    inside = 0
    for _ in range(200):
        low, high = ratio_of_sums([prompt(random) for _ in range(20)])
        inside += low <= truth <= high
    assert 0.91 <= inside / 200 <= 0.995


def test_few_prompts_have_no_bootstrap() -> None:
    with pytest.raises(ValueError, match="19 prompts, 20 are needed"):
        ratio_of_sums([(40.0, 10.0)] * 19)
    assert ratio_of_sums([(40.0, 10.0)] * 20) == (4.0, 4.0)


@pytest.mark.parametrize(("n", "how"), [(19, "min and max over 19 prompts"), (20, "bootstrap over 20 prompts, 95 %")])
def test_tokens_per_round_takes_the_one_or_the_other(n: int, how: str) -> None:
    random = Random(3)
    prompts = {f"p{i}": PromptCounts(tokens=40, rounds=int(prompt(random)[1])) for i in range(n)}
    rounds = sum(p.rounds for p in prompts.values())
    counts = KCounts(tokens=40 * n, rounds=rounds, accepted=0, offered=0, by_prompt=prompts)
    found, said = tokens_per_round(counts, "reference")
    assert said == how
    assert found is not None
    assert found.value == 40 * n / rounds
    worst = min(40 / p.rounds for p in prompts.values())
    assert (found.low == worst) is (n == 19)
    assert found.low < found.value < found.high
