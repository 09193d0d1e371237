"""What a campaign needs to know of the machine's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """`hold_command`, if not empty, is the site's own hold, used around the timed process instead of ours."""

    hold_directory: Path
    hold_command: tuple[str, ...]
    runs: Path
