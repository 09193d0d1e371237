"""One verdict with everything that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npuprof.economics.verdict import Case, Verdict
from npuprof.model.replay import KCounts


@dataclass(frozen=True)
class Finding:
    """One verdict. `reasons` say why it is undecided or not trusted; `notes` what else a reader must know."""

    verdict: Verdict
    k: int
    cases: dict[int, Case]
    prompts: int | None
    how: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    counts: dict[int, KCounts]

    @property
    def case(self) -> Case:
        return self.cases[self.k]

    def as_dict(self) -> dict[str, Any]:
        chosen = self.case.as_dict()
        return {
            "verdict": self.verdict,
            "k": self.k,
            **chosen,
            "prompts": self.prompts,
            "tokens_per_round_interval": self.how,
            "derived": True,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "by_k": {str(k): c.as_dict() for k, c in self.cases.items()},
        }
