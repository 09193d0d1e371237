"""Targets by name."""

from __future__ import annotations

import pytest

from npuprof.errors import UsageProblem
from npuprof.targets.load import load_target


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module:make", "no module named 'no_such_module'"),
        ("fake_targets:nothing", "has no callable 'nothing'"),
        ("fake_targets:not_callable", "has no callable 'not_callable'"),
        ("fake_targets:no_target", r"has no describe\(\)"),
    ],
)
def test_a_wrong_target_says_what_is_wrong(name: str, reason: str) -> None:
    with pytest.raises(UsageProblem, match=reason):
        load_target(name)


def test_a_factory_of_ones_own() -> None:
    target = load_target("fake_targets:quick")
    assert target.describe().device == "fake target that states made-up times"
    target.close()
