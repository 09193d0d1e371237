"""Records on disk: whole or not at all, and one clear sentence for everything that is no record."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records import ID, usual_record

from npuprof.errors import UsageProblem
from npuprof.model.record import Record
from npuprof.store.runs import (
    find_run,
    keep_record,
    read_all,
    read_record,
    ready_store,
    run_files,
    user_runs,
    write_record,
    write_whole,
)


def test_a_record_reads_back_as_it_was(tmp_path: Path) -> None:
    record = usual_record()
    file = write_record(record, tmp_path)
    assert file.name == f"{ID}.json"
    assert read_record(file) == record
    data = json.loads(file.read_text())
    assert data["schema"] == "npuprof.record/1"
    assert data["summary"]["class"] == "flat"
    assert set(data["passes"][0]["terms"]) == {
        "embed_ms",
        "pack_ms",
        "quantise_launch_ms",
        "device_wait_ms",
        "readback_ms",
        "layers_host_ms",
        "lm_head_ms",
    }


def test_what_a_later_version_adds_is_kept(tmp_path: Path) -> None:
    file = write_record(usual_record(), tmp_path)
    data = json.loads(file.read_text())
    data["weather"] = "fine"
    file.write_text(json.dumps(data))
    assert json.loads(read_record(file).model_dump_json())["weather"] == "fine"


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.json"
    write_whole(file, "old")

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no record: not whole JSON"),
        ('{"schema": "npuprof.record/1", "id"', "is no record: not whole JSON"),
        ("[1]", "has no schema npuprof.record/1"),
        ('{"schema": "other/1"}', "has no schema npuprof.record/1"),
        ('{"schema": "npuprof.record/2"}', "newer than this npuprof reads"),
        ('{"schema": "npuprof.record/1"}', "is no whole record: id"),
        ("[" * 100_000, "is no record"),
    ],
)
def test_what_is_no_record_says_so_in_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UsageProblem) as e:
        read_record(file)
    assert reason in str(e.value)
    assert str(file) in str(e.value)
    assert "\n" not in str(e.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.floats(0.02, 0.98))
def test_a_truncated_record_is_never_read(tmp_path: Path, share: float) -> None:
    file = write_record(usual_record(), tmp_path)
    text = file.read_text()
    file.write_text(text[: int(len(text) * share)])
    with pytest.raises(UsageProblem):
        read_record(file)


def test_runs_are_found_by_id_prefix_latest_and_file(tmp_path: Path) -> None:
    mine, daemons = tmp_path / "mine", tmp_path / "daemon"
    mine.mkdir()
    daemons.mkdir()
    for where, name in (
        (mine, "20260101T000000Z-aaaaaa"),
        (daemons, "20260102T000000Z-bbbbbb"),
        (mine, "20260102T000000Z-cccccc"),
    ):
        write_record(usual_record(id=name), where)
    (mine / "notes.json").write_text("{}")
    stores = [mine, daemons, tmp_path / "missing"]
    assert find_run("latest", stores).stem == "20260102T000000Z-cccccc"
    assert find_run("20260101", stores).parent == mine
    assert find_run("20260102T000000Z-b", stores).parent == daemons
    assert find_run("./x", stores) == Path("x")
    for run, reason in (("2026", "beginning of 3 records"), ("1999", "no record '1999'"), ("", "no record ''")):
        with pytest.raises(UsageProblem, match=reason):
            find_run(run, stores)
    with pytest.raises(UsageProblem, match="no record yet"):
        find_run("latest", [tmp_path / "missing"])
    with pytest.raises(UsageProblem, match="cannot be read"):
        read_record(tmp_path / "missing.json")


def test_a_list_goes_on_past_a_broken_file(tmp_path: Path) -> None:
    write_record(usual_record(), tmp_path)
    (tmp_path / "20260101T000000Z-aaaaaa.json").write_text("{")
    kinds = [type(found) for _, found in read_all(run_files([tmp_path]))]
    assert kinds == [UsageProblem, Record]


def test_where_the_users_records_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert user_runs() == tmp_path / "npuprof/runs"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_runs() == tmp_path / ".local/state/npuprof/runs"


def test_a_store_that_cannot_be_used_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageProblem, match=r"cannot be made: .*XDG_STATE_HOME"):
        ready_store(file / "runs")
    ready_store(tmp_path / "a" / "runs")
    assert (tmp_path / "a" / "runs").is_dir()


def test_a_full_store_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = usual_record()
    assert keep_record(record, tmp_path) is None
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    problem = keep_record(record, tmp_path / "gone")
    assert problem is not None
    kept = re.search(r"the record is kept in (\S+)", str(problem))
    assert kept is not None
    assert read_record(Path(kept[1])) == record
