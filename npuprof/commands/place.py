"""What a campaign needs to know of the machine, out of the configuration."""

from __future__ import annotations

from pathlib import Path

from npuprof.campaign.settings import Place
from npuprof.commands.profiles import profile_files
from npuprof.settings import Configuration


def place_of(config: Configuration, runs: Path) -> Place:
    """`runs` is where the records go."""
    settings = config.settings
    return Place(
        settings.hold.directory,
        tuple(settings.hold.command),
        runs,
        settings.evidence.settle_s,
        settings.evidence.linger_s,
        tuple(profile_files(config)),
    )
