"""What a campaign needs to know of the machine's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """`hold_command`, if not empty, is the site's own hold, used around the timed process instead of ours.

    `settle_s` and `linger_s` are the seconds of quiet before the first and the last snapshot of a target on an NPU;
    `profiles` are the files of line profiles that a server's log is read with.
    """

    hold_directory: Path
    hold_command: tuple[str, ...]
    runs: Path
    settle_s: float
    linger_s: float
    profiles: tuple[Path, ...] = ()
