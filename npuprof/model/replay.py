"""What `accept replay --json` prints, and `accept verdict --replay` and `audit` read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from npuprof.model.record import Interval, Trust

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class PromptCounts(_Part):
    """Rounds of one prompt, or of all. `tokens_per_round` has the target's own token in it; None without rounds.

    Of figures that others published the counts by prompt may be all there is: what is not known of them is None.
    """

    tokens: Count
    rounds: Count
    accepted: Count | None = None
    offered: Count | None = None
    tokens_per_round: Positive | None = None
    rate: Share | None = None
    unfinished_rounds: Count = 0
    plain: Count = 0
    histogram: list[Count] = []
    survival: list[Share] | None = None
    conditional: list[Share | None] | None = None

    def per_round(self, rule: str) -> float | None:
        """As stated, else by the rule; None where that cannot be known."""
        if self.tokens_per_round is not None or not self.rounds:
            return self.tokens_per_round
        if rule == "reference":
            return self.tokens / self.rounds
        return None if self.accepted is None else 1 + self.accepted / self.rounds


class DraftMs(_Part):
    """ms a drafted token over warm requests, with the median's interval; `first` is the mean of the prompts' first requests.

    `by` says whose clock it was.
    """

    median: Positive
    min: Positive
    max: Positive
    interval: Interval | None = None
    warm: int
    cold: int
    first: float | None
    by: str


class KCounts(PromptCounts):
    """All prompts of one k."""

    accepted: Count
    offered: Count
    draft_ms_per_token: Positive | None = None
    draft_ms: DraftMs | None = None
    rejections: Count = 0
    near_ties: int | None = None
    by_prompt: dict[str, PromptCounts] = {}


class Replay(_Part):
    """`trust` is None where the recording does not state its own and nothing else speaks against the replay."""

    rule: str
    drafter: str
    about: dict[str, Any] = {}
    k: dict[str, KCounts]
    recording: dict[str, Any]
    trust: Trust | None = None
    controls: dict[str, Any] | None = None
    repeats: dict[str, Any] | None = None
