"""Records that are too old or too many go, the oldest first; never the last one."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from npuprof.store.runs import run_files

_DAY_S = 86400


def remove_old(runs: Path, keep_days: float, keep_mb: float, now: float | None = None) -> list[str]:
    """The ids of the records removed, with their logs. Age is the file's own: an id's clock may have stepped."""
    moment = time.time() if now is None else now
    files = run_files([runs])
    sizes = {}
    for f in files:
        with contextlib.suppress(OSError):
            sizes[f] = (f.stat().st_size, f.stat().st_mtime)
    kept = sum(size for size, _ in sizes.values())
    removed = []
    for f in files[:-1]:
        if f not in sizes:
            continue
        size, written = sizes[f]
        if moment - written <= keep_days * _DAY_S and kept <= keep_mb * 1e6:
            continue
        with contextlib.suppress(OSError):
            f.unlink()
            f.with_suffix(".log").unlink(missing_ok=True)
            kept -= size
            removed.append(f.stem)
    return removed
