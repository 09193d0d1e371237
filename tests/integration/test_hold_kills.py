"""Hundreds of random kill -9 of holders, wrappers and waiters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "hold_soak.py"


@pytest.mark.slow
def test_never_two_holders_never_a_lost_place() -> None:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--kills", "300", "--seed", "11"],
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    found = json.loads(done.stdout)
    assert found["two_holders"] == 0
    assert found["out_of_order"] == 0
    assert found["entered"] > 50
    assert found["handovers"] > 50
