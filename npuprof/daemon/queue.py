"""The queue on disk: SQLite with a write-ahead log, synced at every change. What was accepted is never lost or run twice."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from npuprof.errors import UsageProblem

State = Literal["queued", "running", "done", "failed", "cancelled", "aborted"]
ENDED = ("done", "failed", "cancelled", "aborted")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS campaigns (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  uid INTEGER NOT NULL,
  user TEXT NOT NULL,
  request TEXT NOT NULL,
  submitted REAL NOT NULL,
  began REAL,
  ended REAL,
  exit_code INTEGER,
  detail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS by_state ON campaigns (state, seq);
"""


@dataclass(frozen=True)
class Entry:
    """One campaign as the queue knows it. Instants are seconds since the epoch."""

    seq: int
    id: str
    state: State
    attempt: int
    uid: int
    user: str
    request: str
    submitted: float
    began: float | None
    ended: float | None
    exit_code: int | None
    detail: str


class QueueFull(Exception):
    """Nothing can be written: the disk is full or read-only. Its text says which."""


class Queue:
    """One file. A file that is no database any more is kept aside, and `damaged` names it."""

    def __init__(self, file: Path) -> None:
        self.damaged: Path | None = None
        try:
            self._open(file)
        except sqlite3.DatabaseError as e:
            if isinstance(e, sqlite3.OperationalError) and "disk" not in str(e) and "malformed" not in str(e):
                raise UsageProblem(f"the queue {file} cannot be used: {e}; is its folder writable?") from e
            self.damaged = file.with_name(f"{file.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
            file.rename(self.damaged)
            for tail in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    file.with_name(file.name + tail).rename(self.damaged.with_name(self.damaged.name + tail))
            self._open(file)

    def _open(self, file: Path) -> None:
        self._db = sqlite3.connect(file, isolation_level=None, timeout=10)
        try:
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            if self._db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("malformed")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error:
            self._db.close()
            raise

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as e:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise QueueFull(str(e)) from e

    def add(self, run_id: str, uid: int, user: str, request: str, state: State = "queued", attempt: int = 0) -> None:
        """On disk when this returns. QueueFull where it cannot be."""
        with self._writing() as db:
            db.execute(
                "INSERT INTO campaigns (id, state, attempt, uid, user, request, submitted) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (run_id, state, attempt, uid, user, request, time.time()),
            )

    def start(self, run_id: str) -> int:
        """queued to running, before its worker is started; the number of the attempt."""
        with self._writing() as db:
            db.execute(
                "UPDATE campaigns SET state='running', attempt=attempt+1, began=? WHERE id=? AND state='queued'",
                (time.time(), run_id),
            )
        entry = self.get(run_id)
        assert entry is not None
        return entry.attempt

    def requeue(self, run_id: str) -> None:
        """A worker that never began: the campaign keeps its place."""
        with self._writing() as db:
            db.execute("UPDATE campaigns SET state='queued', began=NULL WHERE id=? AND state='running'", (run_id,))

    def end(self, run_id: str, state: State, exit_code: int | None, detail: str) -> None:
        with self._writing() as db:
            db.execute(
                "UPDATE campaigns SET state=?, ended=?, exit_code=?, detail=? WHERE id=? AND state IN ('queued', 'running')",
                (state, time.time(), exit_code, detail, run_id),
            )

    def get(self, run_id: str) -> Entry | None:
        row = self._db.execute("SELECT * FROM campaigns WHERE id=?", (run_id,)).fetchone()
        return None if row is None else Entry(**dict(row))

    def open_ones(self) -> list[Entry]:
        """The running one, then the queued ones in the order of their arrival."""
        rows = self._db.execute(
            "SELECT * FROM campaigns WHERE state IN ('running', 'queued') ORDER BY state='queued', seq"
        ).fetchall()
        return [Entry(**dict(r)) for r in rows]

    def next(self) -> Entry | None:
        row = self._db.execute("SELECT * FROM campaigns WHERE state='queued' ORDER BY seq LIMIT 1").fetchone()
        return None if row is None else Entry(**dict(row))

    def position(self, entry: Entry) -> int | None:
        """How many are ahead of a queued one, the running one included; 0 for the running one, None for an ended one."""
        if entry.state != "queued":
            return 0 if entry.state == "running" else None
        count = self._db.execute(
            "SELECT count(*) FROM campaigns WHERE state='running' OR (state='queued' AND seq<?)", (entry.seq,)
        ).fetchone()
        return int(count[0])

    def recent_seconds(self) -> list[float]:
        """How long the last campaigns took."""
        rows = self._db.execute(
            "SELECT ended-began FROM campaigns WHERE state='done' AND ended>began ORDER BY seq DESC LIMIT 9"
        ).fetchall()
        return [float(r[0]) for r in rows]

    def forget(self, run_ids: list[str]) -> None:
        """Ended campaigns whose records are gone."""
        with self._writing() as db:
            db.executemany("DELETE FROM campaigns WHERE id=? AND ended IS NOT NULL", [(i,) for i in run_ids])

    def close(self) -> None:
        self._db.close()
