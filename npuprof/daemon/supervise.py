"""Runs the queue: one campaign at a time, followed through its spool, closed however its worker ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuprof.daemon.aborted import aborted_record
from npuprof.daemon.journal import tell
from npuprof.daemon.launch import launch
from npuprof.daemon.notify import notify
from npuprof.daemon.queue import Entry, Queue, QueueFull, State
from npuprof.daemon.retention import remove_old
from npuprof.daemon.spool import SpoolReader, give_up, spool_file, unknown_spools
from npuprof.errors import DEVICE, INTERRUPTED, NpuprofError
from npuprof.settings import DaemonSettings
from npuprof.store.runs import keep_record

_POLL_S = 0.02
_LIVENESS_S = 0.2
_BEGIN_S = 30.0
_GRACE_S = 30.0
_RETRY_S = 5.0


class Bell:
    """Rung at every change. Waiters hold no lock: one that is cancelled in the middle can stop nobody else."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def ring(self) -> None:
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    @property
    def next(self) -> asyncio.Event:
        """Taken before one looks, and waited for after: what changes between is not missed."""
        return self._next


async def heard(event: asyncio.Event, seconds: float) -> bool:
    """Did it ring within so many seconds?"""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        return False
    return True


@dataclass
class Following:
    """One campaign's events so far, as the spool holds them; `changed` rings at new ones and at the end."""

    entry: Entry
    lines: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False
    changed: Bell = field(default_factory=Bell)

    def add(self, lines: list[dict[str, Any]]) -> None:
        self.lines += lines
        self.changed.ring()

    def end(self) -> None:
        self.over = True
        self.changed.ring()

    @property
    def pid(self) -> int | None:
        """The worker's, from its first line."""
        return next((line["data"]["pid"] for line in self.lines if line["event"] == "begun"), None)


class Supervisor:
    """`state` holds the queue, spools and runs."""

    def __init__(
        self, queue: Queue, state: Path, settings: DaemonSettings, config: Path | None, run_socket: Path | None
    ) -> None:
        self.queue = queue
        self.runs = state / "runs"
        self._spools = state / "work"
        self._settings = settings
        self._config = config
        self._run_socket = run_socket
        self.current: Following | None = None
        self._wake = asyncio.Event()
        self.moved = Bell()
        self._children: list[subprocess.Popen[bytes]] = []
        self._cancels: dict[str, int] = {}
        self._spools.mkdir(exist_ok=True)

    def poke(self) -> None:
        """Something was queued, or taken out of the queue."""
        self._wake.set()

    async def run(self) -> None:
        """For ever: first what was running before this daemon, then the queue."""
        await self._recover()
        while True:
            self._wake.clear()
            entry = self.queue.next()
            notify(f"STATUS={'idle' if entry is None else 'running ' + entry.id}")
            if entry is None:
                await self._wake.wait()
                continue
            try:
                await self._begin(entry)
            except QueueFull as e:
                tell("damaged", f"the queue cannot be written, the campaign waits: {e}", entry.id)
                await asyncio.sleep(_RETRY_S)

    async def _recover(self) -> None:
        self._adopt()
        for entry in self.queue.open_ones():
            if entry.state != "running":
                continue
            file = spool_file(self._spools, entry.id, entry.attempt)
            if give_up(file):
                # Its worker never began: nothing ran, and a late one finds the file taken.
                self.queue.requeue(entry.id)
                continue
            await self._follow(entry, file)

    def _adopt(self) -> None:
        """Campaigns of a queue that was lost: their spools say what they are, and they are followed as any other."""
        for file, run_id, attempt in unknown_spools(self._spools, lambda run_id: self.queue.get(run_id) is not None):
            reader = SpoolReader(file)
            begun = next((line["data"] for line in reader.new_lines() if line["event"] == "begun"), None)
            reader.close()
            if begun is None:
                continue
            user = str(begun["user"])
            try:
                uid = pwd.getpwnam(user).pw_uid
            except KeyError:
                uid = 0
            self.queue.add(run_id, uid, user, json.dumps(begun["request"]), "running", attempt)

    async def _begin(self, entry: Entry) -> None:
        attempt = self.queue.start(entry.id)
        entry = self.queue.get(entry.id) or entry
        if entry.state != "running":
            return
        file = spool_file(self._spools, entry.id, attempt)
        job = {
            "id": entry.id,
            "user": entry.user,
            "request": json.loads(entry.request),
            "runs": str(self.runs),
            "spool": str(file),
            "config": None if self._config is None else str(self._config),
        }
        tell("began", "a worker is started", entry.id)
        try:
            child = launch(job, self._run_socket)
        except NpuprofError as e:
            await self._close(Following(entry), "failed", e.exit_code, str(e))
            return
        if child is not None:
            self._children.append(child)
        end = time.monotonic() + _BEGIN_S
        while not file.exists():
            if time.monotonic() > end or (child is not None and child.poll() is not None and not file.exists()):
                if give_up(file):
                    await self._close(Following(entry), "failed", DEVICE, "its worker did not begin")
                    return
                break
            await asyncio.sleep(_POLL_S)
        await self._follow(entry, file)

    async def _follow(self, entry: Entry, file: Path) -> None:
        """To the end of the worker, whoever started it."""
        following = Following(entry)
        self.current = following
        self.moved.ring()
        reader = SpoolReader(file)
        began: float | None = None
        looked = 0.0
        asked_to_end = 0.0
        cancelled = 0
        try:
            while True:
                lines = list(reader.new_lines())
                if lines:
                    following.add(lines)
                    if began is None and any(line["event"] == "started" for line in lines):
                        began = time.monotonic()
                now = time.monotonic()
                if not lines and now - looked > _LIVENESS_S:
                    looked = now
                    if not reader.alive:
                        rest = list(reader.new_lines())
                        following.add(rest)
                        break
                if self._cancels.get(entry.id, 0) > cancelled and following.pid is not None:
                    cancelled += 1
                    self._signal(following, signal.SIGINT)
                if began is not None and now - began > self._settings.max_runtime_s:
                    number = signal.SIGINT if not asked_to_end else signal.SIGKILL
                    if not asked_to_end or now - asked_to_end > _GRACE_S:
                        asked_to_end = now
                        self._signal(following, number)
                await asyncio.sleep(_POLL_S)
        finally:
            reader.close()
        self._reap()
        await self._finish(following, file)

    async def _finish(self, following: Following, file: Path) -> None:
        entry = following.entry
        ended = next((line["data"] for line in following.lines if line["event"] == "ended"), None)
        if ended is not None:
            code = int(ended["exit_code"])
            state: State = "cancelled" if code == INTERRUPTED else "done" if code in (0, 4) else "failed"
            await self._close(following, state, code, str(ended["detail"]))
        else:
            detail = "its worker was killed or crashed; what it had measured is in the record, not trusted"
            with contextlib.suppress(OSError, ValueError):
                record = aborted_record(following.lines, entry.user, detail)
                if record is not None and not (self.runs / f"{entry.id}.json").exists():
                    keep_record(record, self.runs)
            tell("aborted", detail, entry.id)
            await self._close(following, "aborted", DEVICE, detail)
        for spool in file.parent.glob(f"{entry.id}.*.events"):
            with contextlib.suppress(OSError):
                spool.unlink()

    async def _close(self, following: Following, state: State, code: int | None, detail: str) -> None:
        entry = following.entry
        while True:
            try:
                self.queue.end(entry.id, state, code, detail)
                break
            except QueueFull as e:
                tell("damaged", f"the end cannot be written into the queue, trying again: {e}", entry.id)
                await asyncio.sleep(_RETRY_S)
        self._cancels.pop(entry.id, None)
        if self.current is following:
            self.current = None
        following.end()
        self.moved.ring()
        removed = remove_old(self.runs, self._settings.keep_days, self._settings.keep_mb)
        if removed:
            tell("removed", f"records removed by age or size: {', '.join(removed)}")
            with contextlib.suppress(QueueFull):
                self.queue.forget(removed)

    async def cancel(self, entry: Entry) -> None:
        """A queued one at once; a running one after its running pass, at once when asked again."""
        tell("cancelled", "cancelled by its owner or root", entry.id)
        if entry.state == "queued":
            self.queue.end(entry.id, "cancelled", INTERRUPTED, "cancelled while it was queued")
            self.moved.ring()
        else:
            # Sent by its follower, as soon as the worker is known.
            self._cancels[entry.id] = self._cancels.get(entry.id, 0) + 1

    def _signal(self, following: Following, number: int) -> None:
        """To the worker, which is alive as long as its spool is locked."""
        pid = following.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _reap(self) -> None:
        self._children = [c for c in self._children if c.poll() is None]
