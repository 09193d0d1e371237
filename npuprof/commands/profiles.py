"""Line profiles in force: the shipped ones, then those beside each configuration file."""

from __future__ import annotations

from pathlib import Path

from npuprof.errors import UsageProblem
from npuprof.lines import LineProfile, ProfileError, load_profiles
from npuprof.settings import Configuration, built_in

BS = "bs"


def profile_files(config: Configuration) -> list[Path]:
    """Where the profiles are, in the order in which later ones win."""
    files = sorted((built_in() / "line-profiles").glob("*.yaml"))
    for folder in config.folders[1:]:
        files += sorted((folder / "line-profiles.d").glob("*.yaml"))
    return files


def chosen_profiles(config: Configuration, name: str | None) -> tuple[bool, list[LineProfile]]:
    """Whether the `[bs]` grammar is read, and the profiles to try, all or the one named."""
    try:
        profiles = load_profiles(profile_files(config))
    except ProfileError as e:
        raise UsageProblem(str(e)) from e
    except OSError as e:
        raise UsageProblem(f"{e.filename}: cannot be read: {e.strerror}") from e
    if name is None:
        return True, list(profiles.values())
    if name == BS:
        return True, []
    if name not in profiles:
        raise UsageProblem(f"--profile {name}: no such line profile; there are {', '.join([BS, *profiles])}")
    return False, [profiles[name]]
