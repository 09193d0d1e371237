"""The live table in a real terminal of 80 columns, by tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAKES = Path(__file__).parents[1] / "fakes"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: apt-get install tmux"),
]


def test_the_live_table_fits_80_columns_and_the_report_stands_alone(tmp_path: Path) -> None:
    socket = str(tmp_path / "tmux")

    def tmux(*args: str) -> str:
        return subprocess.run(["tmux", "-S", socket, *args], capture_output=True, text=True, check=True).stdout

    command = f"{sys.executable} -m npuprof run --target fake_targets:slow --rows 5,16,17 --repeats 6; echo code $?; sleep 100"
    environment = [f"{k}={v}" for k, v in os.environ.items() if k.startswith(("XDG_", "NPUPROF_", "COVERAGE"))]
    tmux(
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "80",
        "-y",
        "40",
        f"env {' '.join(environment)} PYTHONPATH={FAKES} sh -c '{command}'",
    )
    try:
        live = ""
        for _ in range(300):
            screen = tmux("capture-pane", "-p")
            if "round" in screen and "passes" in screen:
                live = screen
            if "code 0" in screen:
                break
            time.sleep(0.1)
        report = tmux("capture-pane", "-p")
    finally:
        tmux("kill-server")
    assert "share of the wall" in live
    assert "e embed p pack q quant+launch w device wait r readback h host L LM head . rest" in live
    assert "rows=17" in live
    assert "code 0" in report
    assert "finding: fake target" in report
    assert "round 6 of 6" not in report, "the live table must be gone when the report is printed"
    assert live.count("share of the wall") == 1
