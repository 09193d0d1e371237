"""Recordings of a target's greedy text, and what drafters proposed for it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from npuprof.model.record import Snapshots, Ticket, Trust

RECORDING = "accept-fixture/1"

Ids = list[Annotated[int, Field(ge=0)]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, serialize_by_alias=True)


class RecordedPrompt(_Part):
    """One prompt with its continuation.

    `proposals[drafter][i]` is what the drafter proposed behind the prompt and the first i tokens of the continuation, null
    where it was not asked; `proposal_timings_ms` the same with prompt_ms, predicted_ms, prompt_n, cache_n.
    `top2_margin_nats[i]`: log probability of token i less that of the runner-up.
    """

    name: Annotated[str, Field(min_length=1)]
    prompt: str
    prompt_ids: Ids
    ids: Annotated[Ids, Field(min_length=1)]
    text: str
    finish_reason: str | None = None
    proposals: dict[str, list[Ids | None]] = {}
    proposal_timings_ms: dict[str, list[tuple[float, float, int, int] | None]] = {}
    top2_margin_nats: list[float | None] | None = None

    @model_validator(mode="after")
    def _as_long_as_the_text(self) -> RecordedPrompt:
        lengths = {name: len(held) for name, held in self.proposals.items()}
        for name, n in {**lengths, **{name: len(held) for name, held in self.proposal_timings_ms.items()}}.items():
            if n != len(self.ids):
                raise ValueError(f"{self.name}: {n} entries of drafter {name} for {len(self.ids)} tokens")
        return self


class Repeat(_Part):
    """How the second recording compared; `server` is "restarted" or "same server"."""

    server: str
    equal: bool
    differs: list[dict[str, Any]] = []


class Recording(_Part):
    """`trust` is None where the recording does not state it."""

    schema_: str = Field(default=RECORDING, alias="schema")
    target: dict[str, Any]
    n_tokens: int
    drafters: dict[str, dict[str, Any]] = {}
    prompts: Annotated[list[RecordedPrompt], Field(min_length=1)]
    repeat: Repeat | None = None
    ticket: Ticket | None = None
    snapshots: Snapshots | None = None
    provenance: dict[str, Any] | None = None
    trust: Trust | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Recording:
        names = [p.name for p in self.prompts]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"several prompts are named {twice[0]!r}")
        return self

    @property
    def ignores_eos(self) -> bool:
        """Was the end-of-text token suppressed? Also out of a sampling that is stated in words."""
        return bool(self.target.get("ignore_eos", "ignore_eos true" in str(self.target.get("sampling", ""))))
