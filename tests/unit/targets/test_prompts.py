"""Prompts whose rows no cache can hide."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from npuprof.targets.serve import prompts
from npuprof.targets.serve.prompts import Prompts


@pytest.mark.parametrize("ids", [True, False])
def test_the_first_new_token_is_never_that_of_the_prompt_before(ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_HIGH", prompts._LOW + 2)
    monkeypatch.setattr(prompts, "_WORDS", ("red", "blue"))
    client = SimpleNamespace(
        meta={}, complete=lambda prompt, n: None, tokenize=lambda text: list(range(len(text.split())))
    )
    made = Prompts(client)  # type: ignore[arg-type]
    made._as_ids = ids
    seen = [made.make(3, 2, len) for _ in range(50)]
    firsts = [p[3] if isinstance(p, list) else p.split()[3] for p in seen]
    assert all(a != b for a, b in pairwise(firsts))
