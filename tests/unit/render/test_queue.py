"""The queue's table at two widths."""

from __future__ import annotations

from typing import Any

import pytest

from npuprof.render.queue import queue_lines


def campaign(state: str, position: int, reason: str) -> dict[str, Any]:
    return {
        "id": f"20261201T010833Z-7dde3{position}",
        "state": state,
        "position": position,
        "user": "somebody",
        "reason": reason,
        "submitted": "2026-12-01T01:08:33.000Z",
        "expected_start": None if state == "running" else "2026-12-01T02:08:33.000Z",
    }


@pytest.mark.parametrize("width", [80, 140])
def test_names_stay_whole_and_the_reason_gives_way(width: int) -> None:
    campaigns = [campaign("running", 0, "[bold]short\x1b[2J"), campaign("queued", 1, "long " * 40)]
    lines = queue_lines(campaigns, width)
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    assert lines[1].startswith("running  20261201T010833Z-7dde30  somebody  ")
    assert "[bold]short\\x1b[2J" in lines[1]
    assert "02:08:33Z" in lines[2]
    assert lines[2].endswith("…")
    assert ("submitted" in lines[0]) is (width == 140)


def test_an_empty_queue() -> None:
    assert queue_lines([], 80) == ["nothing is running, nothing waits"]
