"""The configuration in force: built in, then the machine's, the user's, and the one named; later wins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from npuprof.errors import UsageProblem
from npuprof.model.request import Rows
from npuprof.yamlfile import Loc, explain, load_yaml

MACHINE = Path("/etc/npuprof/config.yaml")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HoldSettings(_Section):
    directory: Path
    command: list[Annotated[str, Field(min_length=1)]]

    @field_validator("directory")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        if not value.is_absolute():
            raise ValueError("must be an absolute path: there is one hold for the whole machine")
        return value


class CampaignSettings(_Section):
    """The defaults of `run`'s flags."""

    rows: list[Rows]
    repeats: Annotated[int, Field(ge=1)]
    steps: Annotated[int, Field(ge=1)]
    warmup: Annotated[int, Field(ge=0)]


class EvidenceSettings(_Section):
    """Seconds of quiet around a campaign on an NPU, since page faults arrive late."""

    settle_s: Annotated[float, Field(ge=0, le=600)]
    linger_s: Annotated[float, Field(ge=0, le=600)]


class ServeSettings(_Section):
    """Servers: the file that holds the key of one that wants a key."""

    api_key_file: Path | None


class DaemonSettings(_Section):
    """What the daemon lets others make its user run, and what it keeps."""

    targets: list[str]
    directories: list[Path]
    max_runtime_s: Annotated[float, Field(gt=0)]
    keep_days: Annotated[float, Field(gt=0)]
    keep_mb: Annotated[float, Field(gt=0)]


class Settings(_Section):
    hold: HoldSettings
    campaign: CampaignSettings
    evidence: EvidenceSettings
    serve: ServeSettings
    daemon: DaemonSettings


@dataclass(frozen=True)
class Configuration:
    """`origins` says for each dotted key which file, line or variable gave it; `searched` lists all places, in order."""

    settings: Settings
    origins: dict[str, str]
    searched: list[Path]

    @property
    def folders(self) -> list[Path]:
        """Where `line-profiles.d` is looked for, in order."""
        return [p.parent for p in self.searched]


def built_in() -> Path:
    """The folder of the default configuration, inside the installed package."""
    return Path(str(files("npuprof") / "config"))


def search_path(named: Path | None) -> list[Path]:
    """Every configuration file that counts, whether it exists or not, in the order in which later wins."""
    home = os.environ.get("XDG_CONFIG_HOME")
    user = Path(home) if home and Path(home).is_absolute() else Path.home() / ".config"
    variable = os.environ.get("NPUPROF_CONFIG")
    last = named or (Path(variable) if variable else None)
    return [built_in() / "default.yaml", MACHINE, user / "npuprof/config.yaml", *([last] if last else [])]


def load_settings(named: Path | None = None) -> Configuration:
    """Reads the search path. A file named by --config or NPUPROF_CONFIG must exist; the others may.

    UsageProblem names file, line and key.
    """
    searched = search_path(named)
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for i, file in enumerate(searched):
        optional = 0 < i < 3
        if optional and not file.exists():
            continue
        data, lines = load_yaml(file)
        _merge(merged, data, (), file, lines, origins)
        try:
            settings = Settings.model_validate(merged)
        except ValidationError as e:
            raise explain(e, file, lines) from None
    directory = os.environ.get("NPUPROF_HOLD_DIR")
    if directory:
        if not Path(directory).is_absolute():
            raise UsageProblem(f"NPUPROF_HOLD_DIR={directory!r}: must be an absolute path")
        origins["hold.directory"] = "NPUPROF_HOLD_DIR"
        held = settings.hold.model_copy(update={"directory": Path(directory)})
        settings = settings.model_copy(update={"hold": held})
    return Configuration(settings, origins, searched)


def _merge(
    into: dict[str, Any], data: dict[str, Any], at: Loc, file: Path, lines: dict[Loc, int], origins: dict[str, str]
) -> None:
    for key, value in data.items():
        here = (*at, str(key))
        if isinstance(value, dict) and isinstance(into.get(key, {}), dict):
            _merge(into.setdefault(key, {}), value, here, file, lines, origins)
        else:
            into[key] = value
            origins[".".join(map(str, here))] = f"{file}:{lines.get(here, 1)}"
