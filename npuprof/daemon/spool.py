"""A running campaign's events, one JSON a line in a file: its worker writes them, and whoever survives reads them.

The worker holds the file's lock for as long as it lives, so that its end shows whatever ended it. The file outlives the
daemon and the worker: what was measured is in it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from npuprof.campaign.locks import is_locked, lock_exclusive
from npuprof.model.wire import parse_line


def spool_file(folder: Path, run_id: str, attempt: int) -> Path:
    return folder / f"{run_id}.{attempt}.events"


class SpoolWriter:
    """Made by the worker, before anything else. FileExistsError where the attempt was given up meanwhile."""

    def __init__(self, file: Path) -> None:
        # Locked before it has its name: nobody ever sees it without a living writer.
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        self._fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            lock_exclusive(self._fd)
            os.link(draft, file)
        except BaseException:
            os.close(self._fd)
            raise
        finally:
            draft.unlink()

    def write(self, line: dict[str, Any]) -> None:
        """Whole lines only; a full disk loses the event, never the campaign: its record is written by itself."""
        with contextlib.suppress(OSError):
            os.write(self._fd, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._fd)


def unknown_spools(folder: Path, known: Callable[[str], bool]) -> Iterator[tuple[Path, str, int]]:
    """File, run and attempt of spools whose run the queue does not know: it was lost, and they were not."""
    for file in sorted(folder.glob("*.events")):
        run_id, _, attempt = file.stem.partition(".")
        if attempt.isdigit() and file.stat().st_size and not known(run_id):
            yield file, run_id, int(attempt)


def give_up(file: Path) -> bool:
    """Makes the file in the worker's stead, so that a late one does not begin. False if it has begun."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640))
    except FileExistsError:
        return False
    return True


class SpoolReader:
    """Reads what has been written so far, again and again."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._rest = b""

    def new_lines(self) -> Iterator[dict[str, Any]]:
        """Whole lines since the last call."""
        while chunk := os.read(self._fd, 1 << 18):
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            for raw in whole:
                line = parse_line(raw)
                if line is not None:
                    yield line

    @property
    def alive(self) -> bool:
        """Does the worker still hold its lock?"""
        return is_locked(self._fd)

    def close(self) -> None:
        os.close(self._fd)
