"""Where proposals come from: a live server, a recording that holds them, or the committed text itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from npuprof.accept.server import TokenServer
from npuprof.errors import UsageProblem
from npuprof.model.acceptance import RecordedPrompt, Recording

Timing = tuple[float, float, int, int]


@dataclass(frozen=True)
class Proposal:
    """What was proposed behind a prefix; `asked` tokens were asked for. `wall_ms` is None for a recorded one."""

    ids: list[int]
    asked: int
    timing: Timing | None
    wall_ms: float | None


class Drafter(Protocol):
    """`propose` is called with prompts side by side, never twice at once for one prompt."""

    name: str

    def describe(self) -> dict[str, Any]: ...
    def propose(self, prompt: RecordedPrompt, at: int, n: int, slot: int) -> Proposal: ...


class ServerDrafter:
    """Proposes from every committed prefix, by id. `context` makes what is sent of prompt ids, continuation and position."""

    def __init__(self, server: TokenServer, ignore_eos: bool) -> None:
        self._server = server
        self._ignore_eos = ignore_eos
        self.name = str(server.client.model or server.url)

    def describe(self) -> dict[str, Any]:
        return self._server.describe()

    def propose(self, prompt: RecordedPrompt, at: int, n: int, slot: int) -> Proposal:
        return self.behind([*prompt.prompt_ids, *prompt.ids[:at]], n, slot)

    def behind(self, context: Sequence[int], n: int, slot: int) -> Proposal:
        """n tokens behind any context: what the control arms ask."""
        got = self._server.propose(context, n, ignore_eos=self._ignore_eos, slot=slot)
        return Proposal(got.ids, n, got.timing, got.wall_ms)


class RecordedDrafter:
    """Proposals out of a recording. UsageProblem where it was never asked, or for fewer tokens."""

    def __init__(self, recording: Recording, name: str | None) -> None:
        known = sorted({d for p in recording.prompts for d in p.proposals})
        if not known:
            raise UsageProblem(
                "--draft-recorded: the file holds no proposals; make one with: accept replay --keep FILE"
            )
        if name is None and len(known) > 1:
            raise UsageProblem(f"--draft-recorded: the file holds {', '.join(known)}; name one with --drafter")
        if name is not None and name not in known:
            raise UsageProblem(f"--drafter {name}: the file holds {', '.join(known)}")
        self.name = name or known[0]
        self._about = recording.drafters.get(self.name, {})
        self._prompts = {p.name: p for p in recording.prompts}

    def describe(self) -> dict[str, Any]:
        return dict(self._about)

    def propose(self, prompt: RecordedPrompt, at: int, n: int, slot: int) -> Proposal:
        del slot
        held = self._prompts.get(prompt.name)
        if held is None or held.prompt_ids != prompt.prompt_ids or held.ids != prompt.ids:
            raise UsageProblem(f"--draft-recorded: prompt {prompt.name!r} is not that of the recording: its ids differ")
        if self.name not in held.proposals:
            raise UsageProblem(f"--draft-recorded: {self.name} proposed nothing for prompt {prompt.name!r}")
        ids = held.proposals[self.name][at]
        if ids is None:
            raise UsageProblem(
                f"--draft-recorded: {self.name} was never asked behind token {at} of prompt {prompt.name!r}; the file was "
                f"kept with {self._kept_with()}: take one of these, or a live --draft"
            )
        if len(ids) < n and not self._was_asked_for(n):
            raise UsageProblem(
                f"--draft-recorded: {self.name} drafted {len(ids)} tokens behind token {at} of prompt {prompt.name!r}, "
                f"k={n} asks for more; the file was kept with {self._kept_with()}"
            )
        timings = held.proposal_timings_ms.get(self.name)
        return Proposal(ids, len(ids), timings[at] if timings else None, None)

    def _kept_with(self) -> str:
        k = self._about.get("k")
        return f"k={','.join(map(str, k)) if isinstance(k, list) else k}"

    def _was_asked_for(self, n: int) -> bool:
        """A draft may be shorter than it was asked to be, because its text ended."""
        k = self._about.get("k")
        return n in k if isinstance(k, list) else isinstance(k, int) and n <= k


def look_up(context: Sequence[int], n: int, longest: int = 3) -> list[int]:
    """Drafting without a model: what followed the latest earlier occurrence of the context's last 3 (then 2, then 1) tokens."""
    for size in range(min(longest, len(context) - 1), 0, -1):
        key = list(context[-size:])
        for i in range(len(context) - size - 1, -1, -1):
            if list(context[i : i + size]) == key:
                return list(context[i + size : i + size + n])
    return []
