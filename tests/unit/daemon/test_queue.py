"""The queue's file, the rules, the spool, retention, and events on the wire."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from records import usual_record

from npuprof.daemon.aborted import aborted_record
from npuprof.daemon.queue import Queue, QueueFull
from npuprof.daemon.retention import remove_old
from npuprof.daemon.rules import Forbidden, admit
from npuprof.daemon.spool import SpoolReader, SpoolWriter, give_up, spool_file
from npuprof.errors import UsageProblem
from npuprof.model.events import Finished, Note, PassDone, RoundsPlanned, Started, Waiting
from npuprof.model.request import Request
from npuprof.model.wire import from_wire, parse_line, to_wire


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with closing(Queue(tmp_path / "queue.sqlite")) as opened:
        yield opened


def test_order_is_by_arrival_and_survives(queue: Queue, tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        queue.add(name, 1000, "me", "{}")
    assert queue.start("c") == 1
    queue.close()
    again = Queue(tmp_path / "queue.sqlite")
    assert [(e.id, e.state) for e in again.open_ones()] == [("c", "running"), ("a", "queued"), ("b", "queued")]
    assert [again.position(e) for e in again.open_ones()] == [0, 1, 2]
    again.requeue("c")
    first = again.next()
    assert first is not None
    assert first.id == "c"
    assert again.start("c") == 2
    again.end("c", "done", 0, "")
    again.end("c", "failed", 3, "too late")
    ended = again.get("c")
    assert ended is not None
    assert (ended.state, ended.exit_code) == ("done", 0)
    assert again.position(ended) is None
    assert len(again.recent_seconds()) == 1
    again.forget(["a", "c"])
    assert again.get("c") is None
    assert again.get("a") is not None, "a campaign that has not ended is never forgotten"
    again.end("a", "cancelled", 130, "")
    assert again.start("a") == 0, "what is cancelled does not start"
    again.close()


def test_order_does_not_follow_a_clock_that_steps(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5000.0, 1000.0, 9000.0, 10.0, 20.0, 30.0])
    monkeypatch.setattr("npuprof.daemon.queue.time.time", lambda: next(times))
    for name in ("first", "second", "third"):
        queue.add(name, 0, "root", "{}")
    assert [e.id for e in queue.open_ones()] == ["first", "second", "third"]
    queue.start("first")
    queue.end("first", "done", 0, "")
    assert queue.recent_seconds() == [10.0]


@pytest.mark.parametrize("damage", [b"no database at all", None])
def test_a_damaged_file_is_kept_aside(queue: Queue, tmp_path: Path, damage: bytes | None) -> None:
    file = tmp_path / "queue.sqlite"
    for n in range(400):
        queue.add(f"x{n}", 0, "root", "{}" * 50)
    queue.close()
    data = damage or file.read_bytes()[:8000] + os.urandom(4000) + file.read_bytes()[12000:]
    file.write_bytes(data)
    again = Queue(file)
    assert again.damaged is not None
    assert again.damaged.read_bytes() == data
    assert again.open_ones() == []
    again.add("new", 0, "root", "{}")
    again.close()


def test_a_folder_that_is_none_and_a_full_disk(queue: Queue, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot be used"):
        Queue(tmp_path / "nowhere/queue.sqlite")
    queue._db.execute("PRAGMA max_page_count=4")

    def fill() -> None:
        for n in range(100):
            queue.add(f"x{n}", 0, "root", "{}" * 100)

    with pytest.raises(QueueFull, match="full"):
        fill()
    accepted = len(queue.open_ones())
    queue._db.execute("PRAGMA max_page_count=1000")
    queue.add("y", 0, "root", "{}")
    assert len(queue.open_ones()) == accepted + 1


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (Request(target="serve", url="http://x", spawn="ls"), "no spawn"),
        (Request(target="evil:factory"), "daemon.targets"),
        (Request(target="xrt", plan="/etc/plan.yaml"), "daemon.directories"),
        (Request(target="xrt", plan="plan.yaml"), "daemon.directories"),
        (Request(target="serve", url="http://x", log="file:ALLOWED/../secret"), "daemon.directories"),
        (Request(target="serve", url="http://x", log="file:ALLOWED/link"), "daemon.directories"),
        (Request(target="serve", url="http://x", log="unix:/tmp/s"), "daemon.directories"),
        (Request(target="serve", url="http://x", log="file:ALLOWED/log"), None),
        (Request(target="serve", url="http://x", log="journal:llama.service"), None),
        (Request(target="mine:factory"), None),
        (Request(), None),
    ],
)
def test_what_a_request_may_make_the_service_run(request_: Request, rule: str | None, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link").symlink_to("/etc/shadow")
    if request_.log:
        request_ = request_.model_copy(update={"log": request_.log.replace("ALLOWED", str(allowed))})
    if rule is None:
        admit(request_, ["mine:factory"], [allowed])
    else:
        with pytest.raises(Forbidden) as e:
            admit(request_, ["mine:factory"], [allowed])
        assert e.value.rule == rule


def test_the_spool_is_locked_by_its_writer_and_given_up_once(tmp_path: Path) -> None:
    file = spool_file(tmp_path, "id", 1)
    writer = SpoolWriter(file)
    assert not give_up(file)
    writer.write({"event": "note", "data": {"text": "a\nb"}})
    reader = SpoolReader(file)
    assert [line["event"] for line in reader.new_lines()] == ["note"]
    assert reader.alive
    os.write(writer._fd, b'{"event": "no')
    assert list(reader.new_lines()) == []
    os.write(writer._fd, b'te"}\n{"event": broken}\n[]\n')
    assert [line["event"] for line in reader.new_lines()] == ["note"]
    writer.close()
    assert not reader.alive
    reader.close()
    late = spool_file(tmp_path, "id", 2)
    assert give_up(late)
    with pytest.raises(FileExistsError):
        SpoolWriter(late)


def test_events_come_back_from_the_wire() -> None:
    record = usual_record()
    started = Started(record.id, record.request, record.target, ("step", "rows=2"), 6)
    events = [
        Waiting("accel0", 1, "u", "since", "[bs]", 2),
        started,
        Note("x"),
        RoundsPlanned(3, ("step",)),
        PassDone(record.passes[0]),
    ]
    for event in events:
        assert from_wire(to_wire(event) or {}) == event
    assert to_wire(Finished(record)) is None
    assert from_wire({"event": "pass", "data": {"measured": 3}}) is None
    assert from_wire({"event": "begun"}) is None
    assert parse_line(b"{") is None


def test_an_aborted_campaign_keeps_what_it_measured() -> None:
    record = usual_record()
    started = Started(record.id, record.request, record.target, ("step",), 6)
    lines = [to_wire(e) or {} for e in [started, *map(PassDone, record.passes[:20])]]
    kept = aborted_record(lines, "me", "its worker was killed")
    assert kept is not None
    assert kept.id == record.id
    assert len(kept.passes) == 20
    assert not kept.trust.trusted
    assert kept.provenance["requested_by"] == "me"
    assert aborted_record(lines[1:], "me", "x") is None


def test_old_records_go_and_the_last_one_stays(tmp_path: Path) -> None:
    from npuprof.store.runs import write_record

    ids = [f"2026010{d}T000000Z-00000{d}" for d in range(1, 6)]
    for n, run_id in enumerate(ids):
        file = write_record(usual_record().model_copy(update={"id": run_id}), tmp_path)
        os.utime(file, (1000 + n, 1000 + n))
    size = (tmp_path / f"{ids[0]}.json").stat().st_size / 1e6
    assert remove_old(tmp_path, 365, 3.5 * size, now=2000) == ids[:2]
    assert remove_old(tmp_path, 1e-9, 1000, now=2000) == ids[2:4]
    assert remove_old(tmp_path, 1e-9, 1e-9, now=2000) == []
    assert (tmp_path / f"{ids[4]}.json").exists()


def test_sqlite_syncs_and_writes_ahead(queue: Queue) -> None:
    assert queue._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert queue._db.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert isinstance(queue._db, sqlite3.Connection)
    queue.add("x", 0, "root", "{}")
    entry = queue.get("x")
    assert entry is not None
    assert replace(entry, seq=0).state == "queued"
