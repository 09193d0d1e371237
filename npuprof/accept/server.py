"""A server that continues token ids greedily: llama.cpp by its own route, everyone else by /v1/completions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from npuprof.errors import DeviceProblem, UsageProblem
from npuprof.servers.client import Answer, Client, Rejected

_SAMPLED = 200
_BLOCK = 4096
_NEUTRAL: dict[str, float] = {
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "xtc_probability": 0.0,
    "mirostat": 0,
}


@dataclass(frozen=True)
class Continued:
    """Token ids behind a prompt. `timing` is prompt_ms, predicted_ms, prompt_n, cache_n where the server gives them.

    `margins[i]`: log probability of token i less the runner-up's, nats. `retokenised`: the ids are not the server's own.
    """

    ids: list[int]
    text: str
    finish: str | None
    wall_ms: float
    timing: tuple[float, float, int, int] | None
    margins: list[float | None] | None
    retokenised: bool
    body: dict[str, Any]


@dataclass(frozen=True)
class Fingerprint:
    """A vocabulary by the text of sampled ids below `below`, so that padding at its end does not count."""

    below: int
    sha256: str


class TokenServer:
    """One server and what it says of itself. `say` is told while it loads; `alive` as Client wants it."""

    def __init__(self, url: str, say: Callable[[str], None], alive: Callable[[], str | None] = lambda: None) -> None:
        self.client = Client(url, say, alive)
        self.client.wait_ready()
        self.url = self.client.url
        self.props = self.client.look("/props")
        self.native = "default_generation_settings" in self.props
        self.slots = int(self.props.get("total_slots") or 1)
        self.context = (self.props.get("default_generation_settings") or {}).get("n_ctx")
        vocabulary = self.client.meta.get("n_vocab")
        self.n_vocab = vocabulary if isinstance(vocabulary, int) else None

    def describe(self) -> dict[str, Any]:
        """Model, server and build, as they say it; nothing by hand."""
        return {
            "model": self.client.model,
            "url": self.url,
            "server": "llama.cpp" if self.native else None,
            "build": self.props.get("build_info"),
            "device": self.client.meta.get("device"),
            "simulated": self.client.meta.get("simulated"),
            "parameters": self.client.meta.get("n_params"),
            "size_bytes": self.client.meta.get("size"),
            "n_vocab": self.n_vocab,
        }

    def bos(self) -> int | None:
        """The id that begins a text, where the server names it."""
        text = self.props.get("bos_token")
        ids = self.client.tokenize(str(text)) if text else None
        return ids[0] if ids and len(ids) == 1 else None

    def tokenize(self, text: str, *, special: bool) -> list[int] | None:
        return self.client.tokenize(text, special=special)

    def detokenize(self, ids: Sequence[int]) -> str | None:
        """None where there is no /detokenize, or where it knows one of the ids not."""
        try:
            answer = self.client.post("/detokenize", {"tokens": list(ids)})
        except Rejected:
            return None
        found = answer.body.get("content")
        return found if isinstance(found, str) else None

    def fingerprint(self, below: int | None = None) -> Fingerprint | None:
        """Of ids below `below`, else below the vocabulary's last whole 4096. None where the server has not what it needs."""
        if below is None:
            if self.n_vocab is None:
                return None
            below = self.n_vocab // _BLOCK * _BLOCK or self.n_vocab
        random = Random(below)
        text = self.detokenize([random.randrange(below) for _ in range(_SAMPLED)])
        return None if text is None else Fingerprint(below, hashlib.sha256(text.encode()).hexdigest())

    def sampling(self) -> dict[str, Any] | None:
        """How it samples when asked for greedy text, as it echoes that itself (llama.cpp); None elsewhere."""
        if not self.native:
            return None
        body = {"prompt": [0], "n_predict": 1, "temperature": 0}
        echoed: dict[str, Any] = self.client.post("/completion", body).body.get("generation_settings") or {}
        return {k: echoed.get(k) for k in ("temperature", "top_k", "top_p", "min_p", *_NEUTRAL, "ignore_eos")}

    def must_be_greedy(self, sampling: dict[str, Any] | None) -> None:
        """UsageProblem for one that samples or penalises though asked for greedy text."""
        if sampling is None:
            return
        temperature = sampling.get("temperature")
        if temperature is not None and temperature > 0 and sampling.get("top_k") != 1:
            raise UsageProblem(f"the server at {self.url} samples: temperature {temperature}; start it without that")
        for key, neutral in _NEUTRAL.items():
            if sampling.get(key) not in (None, neutral):
                raise UsageProblem(f"the server at {self.url} penalises: {key} {sampling[key]}; start it without that")

    def propose(self, ids: Sequence[int], n: int, *, ignore_eos: bool, slot: int = 0) -> Continued:
        """n tokens behind `ids`, quickly: no log probabilities where ids come without."""
        if not self.native:
            return self.complete(ids, n, ignore_eos=ignore_eos, margins=False)
        body = {
            "prompt": list(ids),
            "n_predict": n,
            "temperature": 0,
            "return_tokens": True,
            "cache_prompt": True,
            "ignore_eos": ignore_eos,
            "id_slot": slot,
        }
        answer = self.client.post("/completion", body)
        if answer.body.get("truncated"):
            raise DeviceProblem(
                f"the server at {self.url} ran out of its context at {len(ids)} tokens; give it a larger one"
            )
        found = answer.body.get("tokens")
        if not isinstance(found, list) or not all(isinstance(t, int) for t in found):
            raise DeviceProblem(f"the server at {self.url} gave no token ids")
        return Continued(
            found[:n],
            str(answer.body.get("content", "")),
            answer.body.get("stop_type"),
            answer.wall_ms,
            _timing(answer),
            None,
            False,
            answer.body,
        )

    def complete(self, prompt: Sequence[int] | str, n: int, *, ignore_eos: bool, margins: bool) -> Continued:
        """n greedy tokens through /v1/completions: the server's `token_ids`, else its log probabilities' ids, else none."""
        body: dict[str, Any] = {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "max_tokens": n,
            "temperature": 0,
            "logprobs": 2 if margins else 1,
            "return_token_ids": True,
        }
        if ignore_eos:
            body["ignore_eos"] = True
        if self.client.model is not None:
            body["model"] = self.client.model
        answer = self.client.post("/v1/completions", body)
        choice = (answer.body.get("choices") or [{}])[0]
        if not isinstance(choice, dict):
            raise DeviceProblem(f"the server at {self.url} answered something that is no completion")
        text = str(choice.get("text") or "")
        content = (choice.get("logprobs") or {}).get("content")
        content = content if isinstance(content, list) else []
        ids = choice.get("token_ids")
        retokenised = False
        if not isinstance(ids, list):
            ids = [c.get("id") for c in content if isinstance(c, dict)]
        if not ids or not all(isinstance(t, int) for t in ids):
            ids = self._retokenised(prompt, text)
            retokenised = True
        return Continued(
            ids[:n],
            text,
            choice.get("finish_reason"),
            answer.wall_ms,
            _timing(answer),
            [_margin(c) for c in content[:n]] if margins and content else None,
            retokenised,
            answer.body,
        )

    def _retokenised(self, prompt: Sequence[int] | str, text: str) -> list[int]:
        """The whole text's ids behind the prompt's, checked by the way back."""
        front = prompt if isinstance(prompt, str) else self.detokenize(prompt)
        whole = None if front is None else self.tokenize(front + text, special=False)
        known = self.tokenize(front, special=False) if front is not None and isinstance(prompt, str) else list(prompt)
        if whole is None or known is None or whole[: len(known)] != known:
            raise DeviceProblem(
                f"the server at {self.url} gives no token ids, and its text cannot be made into them: it needs "
                "return_token_ids, logprobs with ids, or /tokenize and /detokenize"
            )
        return whole[len(known) :]

    def close(self) -> None:
        self.client.close()


def _timing(answer: Answer) -> tuple[float, float, int, int] | None:
    t = answer.timings
    found = [t.get(k) for k in ("prompt_ms", "predicted_ms", "prompt_n", "cache_n")]
    if not all(isinstance(v, int | float) for v in found):
        return None
    return float(found[0]), float(found[1]), int(found[2]), int(found[3])  # type: ignore[arg-type]


def _margin(entry: Any) -> float | None:
    """The top two log probabilities' difference, nats."""
    top = entry.get("top_logprobs") if isinstance(entry, dict) else None
    given = [t.get("logprob") for t in top or [] if isinstance(t, dict)]
    values = sorted((float(v) for v in given if isinstance(v, int | float)), reverse=True)
    return values[0] - values[1] if len(values) > 1 else None
