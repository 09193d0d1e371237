"""The daemon's answers, as its OpenAPI publishes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from npuprof.model import request


class CampaignRequest(request.Request):
    """A request as a client's JSON states it: a number is a number, and no text that reads like one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Error(BaseModel):
    message: str
    rule: str | None = None


class Problem(BaseModel):
    """What was refused, in one sentence, and by which rule."""

    error: Error


class Submitted(BaseModel):
    """`position`: how many are ahead."""

    id: str
    position: int | None


class Campaign(BaseModel):
    """Instants are RFC 3339; `expected_start` is an estimate by how long the last campaigns took."""

    id: str
    state: str
    position: int | None
    user: str
    reason: str
    submitted: str
    began: str | None
    ended: str | None
    expected_start: str | None
    exit_code: int | None
    detail: str
    request: dict[str, Any]


class CampaignWithRecord(Campaign):
    record: dict[str, Any] | None


class Campaigns(BaseModel):
    campaigns: list[Campaign]


class Claim(BaseModel):
    pid: int
    user: str
    since: str
    reason: str


class Waiter(Claim):
    position: int


class Device(BaseModel):
    holder: Claim | None
    waiters: list[Waiter]
    enforced: bool


class HoldStatus(BaseModel):
    devices: dict[str, Device]


class Health(BaseModel):
    """`damaged_queue` names the file that was kept aside when the queue could not be read."""

    status: str
    version: str
    running: str | None
    queued: int
    damaged_queue: str | None
