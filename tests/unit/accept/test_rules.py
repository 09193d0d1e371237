"""The replay's rules: published cases, exact results of real drafters, identities, and a slow oracle of another make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.accept.counts import count, pool
from npuprof.accept.drafters import look_up
from npuprof.accept.rules import RULES, Rule, matching, play
from npuprof.model.acceptance import Recording

DATA = Path(__file__).parents[2] / "data/acceptance"
RECORDING = Recording.model_validate_json((DATA / "recording.json").read_text())
EXPECTED: dict[str, Any] = json.loads((DATA / "replay-expected.json").read_text())


def test_a_perfect_drafter_of_seven_tokens() -> None:
    ids = list(range(7))
    played = play("reference", ids, 4, lambda at, n: ids[at : at + n])
    assert [r.accepted for r in played.rounds] == [4, 2]
    assert sum(r.offered for r in played.rounds) == 6


def test_an_always_wrong_drafter() -> None:
    played = play("reference", list(range(7)), 4, lambda at, n: [99] * n)
    assert [r.accepted for r in played.rounds] == [0] * 7
    assert sum(r.offered for r in played.rounds) == 28


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("drafter", ["L29", "L24"])
def test_real_drafters_come_out_exactly(drafter: str, k: int) -> None:
    for rule in ("reference", "llama-server"):
        wanted = EXPECTED[rule][drafter][str(k)]
        counts = {
            p.name: count(rule, k, play(rule, p.ids, k, lambda at, n, p=p: (p.proposals[drafter][at] or [])[:n]))  # type: ignore[arg-type,misc]
            for p in RECORDING.prompts
        }
        for name, c in counts.items():
            want = wanted[name]
            assert c.missing() == 0
            if rule == "reference":
                assert (c.tokens, c.rounds, c.offered, c.accepted) == (
                    want["tokens"],
                    want["rounds"],
                    want["offered"],
                    want["accepted"],
                )
                assert c.tokens_per_round == want["tokens_per_round"]
                assert c.rate == want["acc_over_off"]
            else:
                assert (c.rounds, c.offered, c.accepted, c.plain) == (
                    want["num_drafts"],
                    want["draft_n"],
                    want["draft_n_accepted"],
                    want["plain"],
                )
                assert c.tokens_per_round == pytest.approx(want["mean_len"])
                assert [round(s * c.rounds) for s in c.survival or []] == want["per_pos"]
        if rule == "reference":
            everything = pool(list(counts.values()))
            assert (everything.rounds, everything.offered, everything.accepted) == (
                wanted["ALL"]["rounds"],
                wanted["ALL"]["offered"],
                wanted["ALL"]["accepted"],
            )


def oracle(rule: str, ids: Sequence[int], k: int, drafts: Sequence[Sequence[int]]) -> tuple[int, int, int, int]:
    """rounds, offered, accepted, plain, token by token: as a verifier would do it that knows no slices."""
    rounds = offered = accepted = plain = 0
    done = 0 if rule == "reference" else 1
    while done < len(ids):
        limit = k if rule == "reference" else min(k, len(ids) - done - 1)
        draft = []
        for token in drafts[done]:
            if len(draft) == limit:
                break
            draft.append(token)
        if rule == "llama-server" and not draft:
            plain += 1
            done += 1
            continue
        rounds += 1
        offered += len(draft)
        for token in draft:
            if done < len(ids) and token == ids[done]:
                accepted += 1
                done += 1
            else:
                break
        if done < len(ids):
            done += 1
    return rounds, offered, accepted, plain


tokens = st.integers(0, 2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[list[int]], int]:
    ids = draw(st.lists(tokens, min_size=1, max_size=25))
    drafts = [draw(st.lists(tokens, max_size=8)) for _ in ids]
    return ids, drafts, draw(st.integers(1, 8))


@given(cases(), st.sampled_from(RULES))
def test_the_oracle_and_the_identities(case: tuple[list[int], list[list[int]], int], rule: Rule) -> None:
    ids, drafts, k = case
    c = count(rule, k, play(rule, ids, k, lambda at, n: drafts[at][:n]))
    assert (c.rounds, c.offered, c.accepted, c.plain) == oracle(rule, ids, k, drafts)
    assert c.missing() == 0
    assert c.unfinished <= 1
    assert sum(c.histogram) == c.rounds
    assert sum(a * n for a, n in enumerate(c.histogram)) == c.accepted <= c.offered <= c.rounds * k
    if c.rounds:
        assert c.tokens_per_round is not None
        assert 1 <= c.tokens_per_round <= k + 1
        assert c.survival == sorted(c.survival or [], reverse=True)
    else:
        assert c.tokens_per_round is c.survival is c.conditional is None
    if not c.offered:
        assert c.rate is None


@given(st.lists(tokens, min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 10**6))
def test_longer_drafts_of_one_drafter_never_cost_rounds(ids: list[int], k: int, seed: int) -> None:
    """True of drafters whose shorter drafts begin their longer ones, and whose drafts agree with one another."""
    wrong = {i for i in range(len(ids)) if (seed >> (i % 20)) & 1}
    sequence = [t + 10 if i in wrong else t for i, t in enumerate(ids)]

    def rounds(n: int) -> int:
        return len(play("reference", ids, n, lambda at, m: sequence[at : at + m]).rounds)

    assert rounds(k + 1) <= rounds(k)
    assert len(play("reference", ids, k, lambda at, m: ids[at : at + m]).rounds) == -(-len(ids) // (k + 1))
    assert len(play("reference", ids, k, lambda at, m: []).rounds) == len(ids)


def test_look_up_follows_the_latest_longest_match() -> None:
    assert look_up([1, 2, 3, 9, 1, 2, 3, 7, 1, 2, 3], 2) == [7, 1]
    assert look_up([5, 6], 3) == []
    assert look_up([5], 3) == []
    assert matching([1, 2], [1, 3]) == 1
    played = [
        play("reference", p.ids, 4, lambda at, n, p=p: look_up([*p.prompt_ids, *p.ids[:at]], n))
        for p in RECORDING.prompts
    ]  # type: ignore[misc]
    total = pool([count("reference", 4, x) for x in played])
    assert (total.accepted, total.offered, round(total.tokens_per_round or 0, 3)) == (65, 208, 1.649)
