"""A request out of a file and flags, flags winning, the configuration filling in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npuprof.errors import UsageProblem
from npuprof.model.request import Request
from npuprof.settings import CampaignSettings
from npuprof.yamlfile import Loc, explain, load_yaml


def make_request(defaults: CampaignSettings, file: Path | None, flags: dict[str, Any]) -> Request:
    """UsageProblem names the flag, or the file, line and key, that is wrong."""
    base = defaults.model_dump()
    given = {k: v for k, v in flags.items() if v is not None}
    data: dict[str, Any] = {}
    lines: dict[Loc, int] = {}
    if file is not None:
        data, lines = load_yaml(file)
    try:
        return Request.model_validate({**base, **data, **given})
    except ValidationError as e:
        first = e.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else first["msg"].removeprefix("Value error, ").split(":")[0]
        if key in given or not first["loc"]:
            reason = first["msg"].removeprefix("Value error, ").removeprefix(f"{key}: ")
            raise UsageProblem(f"--{key.replace('_', '-')}: {reason}; see: npuprof run --help") from None
        raise explain(e, file if key in data and file is not None else "configuration: campaign", lines) from None
