"""Records on disk, `RUNS/ID.json`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npuprof.errors import UsageProblem
from npuprof.model.record import SCHEMA, Record

_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}\Z")
_FAMILY, _, _VERSION = SCHEMA.rpartition("/")


def user_runs() -> Path:
    """`$XDG_STATE_HOME/npuprof/runs`."""
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state and Path(state).is_absolute() else Path.home() / ".local/state"
    return base / "npuprof/runs"


def write_record(record: Record, directory: Path) -> Path:
    """Saves it as `directory/ID.json`, whole or not at all."""
    file = directory / f"{record.id}.json"
    write_whole(file, record.model_dump_json(indent=1) + "\n")
    return file


def ready_store(directory: Path) -> None:
    """Makes the store before anything is measured. UsageProblem if nothing can be written there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UsageProblem(
            f"the store {directory} cannot be made: {e.strerror}; name another one by XDG_STATE_HOME"
        ) from e
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageProblem(f"the store {directory} cannot be written by you; name another one by XDG_STATE_HOME")


def keep_record(record: Record, directory: Path) -> UsageProblem | None:
    """Saves the record in the store, or, if that is full or gone, where there is room: what was measured is not lost.

    Gives the problem that says where it is then; an error of the second place comes through.
    """
    try:
        write_record(record, directory)
    except OSError as e:
        elsewhere = Path(tempfile.mkdtemp(prefix="npuprof-"))
        file = write_record(record, elsewhere)
        return UsageProblem(f"the store {directory} cannot be written: {e.strerror}; the record is kept in {file}")
    return None


def write_whole(file: Path, text: str) -> None:
    """Temporary file, fsync, rename, fsync of the folder: after a crash there is the old file or the new one."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        with draft.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        draft.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_record(file: Path) -> Record:
    """The record in a file. UsageProblem, in one sentence, for anything else."""
    try:
        data = json.loads(file.read_bytes())
    except OSError as e:
        raise UsageProblem(f"{file}: cannot be read: {e.strerror}") from e
    except (ValueError, RecursionError):
        raise UsageProblem(f"{file}: is no record: not whole JSON, cut short or something else") from None
    _check_schema(file, data)
    try:
        return Record.model_validate(data)
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageProblem(f"{file}: is no whole record: {where}: {first['msg']}") from None


def _check_schema(file: Path, data: Any) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    family, _, version = str(schema).rpartition("/")
    if family != _FAMILY or not version.isdigit():
        raise UsageProblem(f"{file}: is no npuprof record: it has no schema {SCHEMA}")
    if int(version) > int(_VERSION):
        raise UsageProblem(f"{file}: is a {schema}, newer than this npuprof reads ({SCHEMA}): update npuprof")


def run_files(directories: Sequence[Path]) -> list[Path]:
    """All records of these stores, oldest first by id."""
    found = []
    for d in directories:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            found += [p for p in d.iterdir() if p.suffix == ".json" and _ID.match(p.stem)]
    return sorted(found, key=lambda p: p.stem)


def find_run(run: str, directories: Sequence[Path]) -> Path:
    """RUN as users type it: a file, `latest`, an id or a unique prefix. UsageProblem if there is none or several."""
    if ("/" in run or run.endswith(".json")) or (run != "latest" and Path(run).is_file()):
        return Path(run)
    files = run_files(directories)
    stores = " and ".join(map(str, directories))
    if run == "latest":
        if not files:
            raise UsageProblem(f"there is no record yet in {stores}; make one with: npuprof run")
        return files[-1]
    matches = [f for f in files if f.stem.startswith(run)] if run else []
    if not matches:
        raise UsageProblem(f"no record {run!r} in {stores}; see: npuprof list")
    if len(matches) > 1:
        raise UsageProblem(
            f"{run!r} is the beginning of {len(matches)} records, {matches[0].stem} and others; type more of it"
        )
    return matches[0]


def read_all(files: Sequence[Path]) -> Iterator[tuple[Path, Record | UsageProblem]]:
    """Each file's record, or why it is none."""
    for file in files:
        try:
            yield file, read_record(file)
        except UsageProblem as e:
            yield file, e


def daemon_runs() -> Path:
    """Where the daemon keeps its records under systemd, readable by its group."""
    return Path("/var/lib/npuprof/runs")
