"""The record, `npuprof.record/1`: everything a campaign saw. Its JSON schema is that of `Record`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from npuprof.model.passes import TERM_KEYS, Pass
from npuprof.model.request import Request

SCHEMA = "npuprof.record/1"

Status = Literal["live", "not_available", "not_applicable", "stale"]
Class = Literal["flat", "warm-up", "slowdown", "speedup", "step", "not_testable"]
Scope = Literal["absolute", "all"]
How = Literal["done", "interrupted", "failed"]
Judgement = Literal["trusted", "not_trusted"]


class _Part(BaseModel):
    # A record written by a later version within the same schema may carry more; it is kept when written again.
    model_config = ConfigDict(extra="allow", frozen=True)


class Family(_Part):
    """A kernel family: passes of up to `rows` rows run in kernels compiled for exactly that many."""

    rows: int
    kernel: str


class TargetInfo(_Part):
    """What really ran, as the target found it on the running system.

    `pack` is what a server said of the pack it imported.
    `parity_means` says what agreement is, where that is not tokens and states; `floor_ms` is a no-op launch's median, and
    `wait_cost_ms` what waiting costs on a launch that is over.
    """

    kind: str
    device: str
    backend: str
    simulated: bool
    families: list[Family] = []
    on_npu: bool = False
    waiting: str | None = None
    model: str | None = None
    pack: dict[str, Any] | None = None
    parity_means: str | None = None
    floor_ms: float | None = None
    wait_cost_ms: float | None = None


class Reading(_Part):
    """One collector's answer at one instant. `reading` is null unless status is live or stale."""

    status: Status
    reading: dict[str, Any] | None = None
    at: str
    detail: str = ""


class Snapshots(_Part):
    """A reading a collector before and after; `between`: power mode and clocks, read again after each idle gap."""

    before: dict[str, Reading] = {}
    after: dict[str, Reading] = {}
    between: list[Reading] = []


class Ticket(_Part):
    """The hold under which the campaign ran. `enforced`: others could not have opened the device without it."""

    device: str
    asked: str
    granted: str
    released: str | None
    waited_s: float
    reason: str
    enforced: bool
    through: str


class Errors(_Part):
    count_before: int | None = None
    count_after: int | None = None
    benign_before: int | None = None
    benign_after: int | None = None
    incidents: list[dict[str, Any]] = []
    live_sources: list[str] = []


class Interval(_Part):
    low_ms: float
    high_ms: float
    coverage: float


class Ratio(_Part):
    """`value` with its interval; low and high are null under 3 blocks."""

    value: float
    low: float | None
    high: float | None
    coverage: float | None
    blocks: int


class ConditionSummary(_Part):
    n: int
    void: int
    median_ms: float
    min_ms: float
    max_ms: float
    interval: Interval | None
    terms_median_ms: dict[str, float | None] = dict.fromkeys(TERM_KEYS)
    terms_share: dict[str, float | None] = dict.fromkeys(TERM_KEYS)
    head_device_median_ms: float | None = None
    rest_median_ms: float | None = None


class PassSummary(ConditionSummary):
    device_wait_median_ms: float | None = None
    ratio_to_step: Ratio | None = None


class Cliff(_Part):
    last_cheap_rows: int
    first_costly_rows: int
    factor: float


class StartSummary(_Part):
    step: ConditionSummary | None
    cliff: Cliff | None


class Drift(_Part):
    """Mann-Kendall's S over the pooled residuals, the Theil-Sen drift over the campaign and the canary's change, in %."""

    tested: bool
    flagged: bool
    S: int | None = None
    percent: float | None = None
    canary_percent: float | None = None
    detail: str | None = None


class Summary(_Part):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, serialize_by_alias=True)

    step: ConditionSummary | None
    passes: dict[str, PassSummary] = {}
    cliff: Cliff | None
    by_start: dict[str, StartSummary] | None = None
    series: Class = Field(alias="class")
    drift: Drift
    outliers: list[int] = []


class ParityRow(_Part):
    """One M at one start: `detail` names the first row or the committed length that differed."""

    rows: int
    start: int
    agreed: bool
    ties: int
    detail: str = ""


class Parity(_Part):
    """`checked` is false where the target has no way to check; `rows` holds one entry for each condition checked."""

    checked: bool
    agreed: bool
    ties: int
    rows: list[ParityRow] = []
    detail: str = ""


class Reason(_Part):
    code: str
    text: str
    affects: Scope


class Trust(_Part):
    absolute: Judgement
    ratios: Judgement
    reasons: list[Reason] = []

    @property
    def trusted(self) -> bool:
        return self.absolute == "trusted" and self.ratios == "trusted"


class Ending(_Part):
    """How the campaign ended: `done`, `interrupted`, `failed`; with what was planned and what was reached."""

    how: How
    rounds_planned: int
    rounds_done: int
    detail: str = ""


class Record(_Part):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, serialize_by_alias=True)

    schema_: str = Field(default=SCHEMA, alias="schema")
    id: str
    created: str
    request: Request
    seed: int
    target: TargetInfo
    provenance: dict[str, Any]
    ticket: Ticket
    snapshots: Snapshots
    errors: Errors | None
    passes: list[Pass]
    summary: Summary
    parity: Parity
    phases: dict[str, Any] | None = None
    trust: Trust
    ending: Ending
