"""Verbs through the entry point."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npuprof.cli import main

Verb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def verb(capsys: pytest.CaptureFixture[str]) -> Verb:
    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            main(list(args))
        assert isinstance(e.value.code, int)
        out, err = capsys.readouterr()
        return e.value.code, out, err

    return call
