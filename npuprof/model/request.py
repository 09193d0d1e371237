"""What a campaign was asked to do. Keys are the long flags with underscores for dashes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Rows = Annotated[int, Field(ge=2, le=65536)]
Start = Annotated[int, Field(ge=0, le=1 << 24)]


class Request(BaseModel):
    """A campaign's request, with defaults filled in; refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str = "reference"
    device: str | None = None
    rows: list[Rows] = [2, 3, 5, 8, 16, 17]
    start: list[Start] = [0]
    repeats: Annotated[int, Field(ge=1, le=100_000)] = 6
    steps: Annotated[int, Field(ge=1, le=10_000)] = 1
    warmup: Annotated[int, Field(ge=0, le=10_000)] = 2
    find_cliff: bool = False
    seed: Annotated[int, Field(ge=0)] | None = None
    budget: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    hold_timeout: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    reason: str = ""
    plan: str | None = None
    launch_stamps: bool = False
    phases: bool = False
    url: str | None = None
    log: str | None = None
    spawn: str | None = None
    require_power_mode: Literal["default", "powersaver", "balanced", "performance", "turbo"] | None = None

    @model_validator(mode="after")
    def _plan_with_xrt(self) -> Request:
        if (self.target == "xrt") != (self.plan is not None):
            raise ValueError("plan: the target xrt needs a pass plan, and only that one takes it")
        return self

    @model_validator(mode="after")
    def _url_with_serve(self) -> Request:
        if (self.target == "serve") != (self.url is not None):
            raise ValueError("url: the target serve needs the server's URL, and only that one takes it")
        if self.target != "serve" and (self.log or self.spawn):
            raise ValueError("log: only the target serve has a log or is spawned")
        if self.log == "stderr" and not self.spawn:
            raise ValueError("log: stderr is that of a server which --spawn starts")
        return self

    @field_validator("url")
    @classmethod
    def _no_credentials(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^/\s]", value):
            raise ValueError("must begin with http:// or https://")
        if value is not None and "@" in value.split("/")[2]:
            raise ValueError("must not carry credentials; set NPUPROF_API_KEY or the setting serve.api_key_file")
        return value

    @field_validator("log")
    @classmethod
    def _log(cls, value: str | None) -> str | None:
        if value is not None and value != "stderr" and not re.match(r"(file|journal|unix|fifo):.", value):
            raise ValueError("must be file:PATH, journal:UNIT, unix:PATH, fifo:PATH, or stderr with --spawn")
        return value

    @field_validator("*")
    @classmethod
    def _text(cls, value: object) -> object:
        """A record must be able to hold what was asked: bytes that are no text come as lone surrogates."""
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("is not UTF-8 text") from None
        return value

    @field_validator("rows", "start")
    @classmethod
    def _distinct(cls, value: list[int]) -> list[int]:
        if not value:
            raise ValueError("must name at least one")
        if len(set(value)) != len(value):
            raise ValueError("names the same value twice")
        return value

    @field_validator("rows")
    @classmethod
    def _ascending(cls, value: list[int]) -> list[int]:
        return sorted(value)

    @field_validator("target")
    @classmethod
    def _target(cls, value: str) -> str:
        module, colon, factory = value.partition(":")
        if value in ("reference", "xrt", "serve") or (
            colon and factory.isidentifier() and all(map(str.isidentifier, module.split(".")))
        ):
            return value
        raise ValueError("must be reference, xrt, serve or MODULE:FACTORY")
