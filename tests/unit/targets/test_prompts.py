"""Prompts whose rows no cache can hide."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from npuprof.servers.client import Rejected
from npuprof.targets.serve import prompts
from npuprof.targets.serve.prompts import Prompts


def made(ids: bool) -> Prompts:
    def complete(prompt: Any, n: int) -> None:
        if not ids:
            raise Rejected(400, "http://x", "text only")

    client = SimpleNamespace(meta={}, complete=complete, tokenize=lambda text: list(range(len(text.split()))))
    return Prompts(client)  # type: ignore[arg-type]


def tokens(prompt: Any) -> list[Any]:
    return prompt if isinstance(prompt, list) else prompt.split()


@pytest.mark.parametrize("ids", [True, False])
def test_no_prompt_is_cached_further_than_its_start(ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps every prompt and runs only what none of them begins with."""
    monkeypatch.setattr(prompts, "_WORDS", tuple(f"w{n}" for n in range(200)))
    source = made(ids)
    kept = [tokens(source.make(9, 1, len)), tokens(source.make(3, 1, len)), tokens(source.make(0, 1, len))]
    for start, rows in [(0, 2), (3, 2), (9, 4)] * 30:
        prompt = tokens(source.make(start, rows, len))
        assert len(prompt) == start + rows
        shared = [next((n for n, (a, b) in enumerate(zip(prompt, k, strict=False)) if a != b), 99) for k in kept]
        assert max(shared) == start
        kept.append(prompt)


@pytest.mark.parametrize("ids", [True, False])
def test_where_the_tokens_run_out_only_the_last_prompt_is_avoided(ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_LOW", 1)
    monkeypatch.setattr(prompts, "_HIGH", 3)
    monkeypatch.setattr(prompts, "_WORDS", ("red", "blue"))
    source = made(ids)
    firsts = [tokens(source.make(3, 2, len))[3] for _ in range(50)]
    assert all(a != b for a, b in pairwise(firsts))


def test_campaigns_on_one_server_ask_for_other_prompts() -> None:
    assert made(ids=True).make(0, 8, len) != made(ids=True).make(0, 8, len)


@pytest.mark.parametrize("n_vocab", [2, 256])
def test_a_small_vocabulary(n_vocab: int) -> None:
    client = SimpleNamespace(meta={"n_vocab": n_vocab}, complete=lambda prompt, n: None)
    prompt = Prompts(client).make(4, 60, len)  # type: ignore[arg-type]
    assert all(0 < t < n_vocab for t in tokens(prompt))
