"""Following a server's log through everything that may happen to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.serve_log import Seen, ServeLog
from npuprof.lines import Unreadable, load_profiles
from npuprof.model.passes import PassLine
from npuprof.settings import built_in

IMPORT = "import: incomplete 0 | attention 3584/3584 tiles byte for byte | MLP 9856/9856 groups byte for byte | 70 s"


def line(wall: float) -> str:
    return (
        f"[bs] M= 5 start= 0 wall= {wall:.1f} | embed= 5.6 | layers= 975.2 (gemm pack= 0.1 ql= 48.55 wait= 878.0 rb= 1.0 "
        "sum= 927.6 host= 47.6 n=112) | epilogue= 87.1 (head= 87.1 sum= 84.4 host= 2.7)\n"
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


class Following:
    def __init__(self, source: str) -> None:
        self.log = ServeLog(source, list(load_profiles([built_in() / "line-profiles/v12.yaml"]).values()))

    def next(self) -> Seen:
        seen = self.log.take(20)
        assert seen is not None
        return seen

    def wall(self) -> float:
        found = self.next().line
        assert isinstance(found, PassLine)
        return found.wall_ms


@pytest.fixture
def follow(path: Path) -> Iterator[Following]:
    path.write_text(f"start\n{IMPORT}\n{line(1.0)}half")
    following = Following(f"file:{path}")
    yield following
    following.log.close()


def append(path: Path, text: str) -> None:
    with path.open("a") as f:
        f.write(text)


def test_only_what_comes_is_given_and_the_import_is_looked_up_behind(follow: Following, path: Path) -> None:
    assert follow.log.import_line == IMPORT
    assert follow.log.take(0.2) is None
    append(path, "\n" + line(2.0)[:40])
    assert follow.log.take(0.2) is None, "a line is given when it is whole"
    before = time.monotonic_ns()
    append(path, line(2.0)[40:] + "[12] batch=3 tok=3 9ms attn=1ms lm=1ms\n[bs] M= x\n")
    first = follow.next()
    assert isinstance(first.line, PassLine)
    assert first.line.wall_ms == 2.0
    assert first.at_ns >= before
    assert follow.wall() == 9.0
    assert isinstance(follow.next().line, Unreadable)
    append(path, IMPORT.replace("incomplete 0", "incomplete 3") + "\n" + line(3.0))
    assert follow.wall() == 3.0
    assert follow.log.import_line == IMPORT.replace("incomplete 0", "incomplete 3")


def test_rotation_and_truncation(follow: Following, path: Path) -> None:
    append(path, "\n" + line(2.0))
    assert follow.wall() == 2.0
    path.rename(path.with_suffix(".1"))
    path.write_text(line(3.0))
    assert follow.wall() == 3.0
    os.truncate(path, 0)
    time.sleep(0.1)
    append(path, line(4.0))
    assert follow.wall() == 4.0
    path.unlink()
    time.sleep(0.1)
    path.write_text(line(5.0))
    assert follow.wall() == 5.0


def test_a_file_that_comes_late(path: Path) -> None:
    following = Following(f"file:{path}")
    assert following.log.take(0.1) is None
    path.write_text(f"{IMPORT}\n{line(1.0)}")
    assert following.wall() == 1.0
    assert following.log.import_line == IMPORT
    following.log.close()


def test_an_endless_line_needs_no_memory(follow: Following, path: Path) -> None:
    append(path, "x" * 300_000)
    append(path, "\n" + line(2.0))
    assert follow.wall() == 2.0


def test_a_fifo_is_made_and_outlives_its_writer(path: Path) -> None:
    following = Following(f"fifo:{path}")
    for wall in (1.0, 2.0):
        with path.open("w") as f:
            f.write(line(wall))
        assert following.wall() == wall
    following.log.close()
    with pytest.raises(ValueError, match="is no FIFO"):
        ServeLog(f"fifo:{Path(__file__)}")


def test_a_journal_by_fake_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No journal runs in every place where tests do: journalctl and systemctl are fakes that print what these print."""
    journal, up = tmp_path / "journal", tmp_path / "up"
    journal.write_text(f"{IMPORT}\n{line(6.0)}")
    fakes = {
        "systemctl": "echo 0123456789abcdef0123456789abcdef",
        "journalctl": f"""
            case "$*" in
            *INVOCATION*) cat {journal};;
            *--show-cursor*) tail -n 1 {journal}; echo "-- cursor: s=a;i=$(wc -l < {journal})";;
            *)  until [ -e {up} ]; do sleep 0.01; done
                seen=$(echo "$*" | sed -n 's/.*--no-tail --after-cursor=s=a;i=\\([0-9]*\\) .*/\\1/p')
                exec tail -f -n "${{seen:++$((seen + 1))}}" {journal};;
            esac""",
    }
    for name, body in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    following = Following("journal:forward-serve")
    assert following.log.import_line == IMPORT
    append(journal, line(7.0))
    up.touch()
    # What came before the follower was up, and nothing from before.
    assert following.wall() == 7.0
    append(journal, line(8.0))
    assert following.wall() == 8.0
    following.log.close()


def test_a_source_that_is_none() -> None:
    with pytest.raises(ValueError, match="must be file:PATH"):
        ServeLog("magic")
