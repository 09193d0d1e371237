"""An OpenAI-compatible server over HTTP, with what llama.cpp and vLLM add where they have it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from npuprof.errors import DeviceProblem

_LOADING_S = 300.0
_TIMEOUT_S = 120.0
_SILENT = "the server at {} keeps its stream open, but after {} tokens none came for {:g} s"
_SHOWN = 300

Prompt = str | list[int]


@dataclass(frozen=True)
class Answer:
    """One completion: client stamps (CLOCK_MONOTONIC ns) of sending, of each streamed token, and of its end."""

    begin_ns: int
    end_ns: int
    token_ns: tuple[int, ...]
    body: dict[str, Any]

    @property
    def wall_ms(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e6

    @property
    def timings(self) -> dict[str, Any]:
        """llama.cpp's own timings of the request; empty elsewhere."""
        found = self.body.get("timings")
        return found if isinstance(found, dict) else {}

    @property
    def prompt_tokens(self) -> int | None:
        """All of the prompt's tokens, by the server's usage."""
        given = (self.body.get("usage") or {}).get("prompt_tokens")
        return given if isinstance(given, int) else None

    @property
    def rows(self) -> int | None:
        """How many of them it evaluated: llama.cpp's timings, else usage less what was cached (vLLM and others)."""
        evaluated = self.timings.get("prompt_n")
        if isinstance(evaluated, int):
            return evaluated
        details = (self.body.get("usage") or {}).get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens")
        return self.prompt_tokens - cached if self.prompt_tokens is not None and isinstance(cached, int) else None

    def prompt_logprobs(self) -> int:
        """How many of the prompt's own tokens the answer gives log probabilities for."""
        choice = (self.body.get("choices") or [{}])[0]
        content = ((choice.get("logprobs") or {}).get("content")) or []
        done = (self.body.get("usage") or {}).get("completion_tokens", 1)
        return max(0, len(content) - int(done or 0))


class Client:
    """One server. The key, if there is one, comes from NPUPROF_API_KEY and is sent and never shown."""

    def __init__(self, url: str, say: Callable[[str], None], alive: Callable[[], str | None]) -> None:
        key = os.environ.get("NPUPROF_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=_TIMEOUT_S, trust_env=False)
        self._say = say
        self._alive = alive
        self.completions = 0
        self.model: str | None = None
        self.meta: dict[str, Any] = {}

    def wait_ready(self) -> None:
        """Until the server answers: a 503 is loading and is waited for. DeviceProblem when it is no use."""
        end = time.monotonic() + _LOADING_S
        told = 0.0
        while True:
            try:
                answer = self._http.get("/v1/models")
                if answer.status_code != 503:
                    return self._learn(answer)
                what = "is loading its model"
            except httpx.TransportError as e:
                what = f"does not answer ({type(e).__name__})"
                if self._alive() is None:
                    raise DeviceProblem(
                        f"the server at {self.url} {what}: is it running? curl {self.url}/v1/models"
                    ) from e
                if self._alive():
                    raise DeviceProblem(
                        f"the server that was started {self._alive()}; what it printed is in the log"
                    ) from e
            if time.monotonic() > end:
                raise DeviceProblem(f"the server at {self.url} {what} for {_LOADING_S:g} s")
            if time.monotonic() > told:
                told = time.monotonic() + 5
                self._say(f"waiting: the server at {self.url} {what}")
            time.sleep(0.2)

    def _learn(self, answer: httpx.Response) -> None:
        try:
            data = answer.json()["data"][0]
            self.model, self.meta = str(data["id"]), data.get("meta") or {}
        except (ValueError, LookupError, TypeError):
            self.model, self.meta = None, {}

    def tokenize(self, text: str, *, special: bool = False) -> list[int] | None:
        """By /tokenize; None where there is none. `special`: with what the model wants in front (llama.cpp)."""
        body = {"content": text, "add_special": True} if special else {"content": text}
        try:
            answer = self._http.post("/tokenize", json=body)
            tokens = answer.json()["tokens"] if answer.status_code == 200 else None
        except (httpx.TransportError, ValueError, KeyError):
            return None
        return [t for t in tokens if isinstance(t, int)] if isinstance(tokens, list) else None

    def complete(self, prompt: Prompt, tokens: int, *, stream: bool = False, every: bool = False) -> Answer:
        """A greedy completion. `every` asks for the log probabilities of all prompt rows. DeviceProblem with its text."""
        body: dict[str, Any] = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": stream}
        if self.model is not None:
            body["model"] = self.model
        if every:
            body |= {"echo": True, "logprobs": 1}
        if stream:
            with self._failing():
                answer = self._streamed(body, time.monotonic_ns())
        else:
            answer = self.post("/v1/completions", body)
        self.completions += 1
        return answer

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """One request, answered by an object. Rejected with what the server said, DeviceProblem where it said nothing."""
        begin = time.monotonic_ns()
        with self._failing():
            answer = self._http.post(path, json=body)
        end = time.monotonic_ns()
        if answer.status_code != 200:
            raise Rejected(answer.status_code, self.url, answer.text)
        return Answer(begin, end, (), _object(answer.text, self.url))

    def look(self, path: str) -> dict[str, Any]:
        """What a GET answers, where it is an object; empty elsewhere."""
        try:
            answer = self._http.get(path)
            found = answer.json() if answer.status_code == 200 else None
        except (httpx.TransportError, ValueError):
            found = None
        return found if isinstance(found, dict) else {}

    def text(self, path: str) -> str:
        """What a GET answers as text; empty where there is nothing."""
        try:
            answer = self._http.get(path)
        except httpx.TransportError:
            return ""
        return answer.text if answer.status_code == 200 else ""

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as e:
            raise DeviceProblem(f"the server at {self.url} did not answer within {_TIMEOUT_S:g} s") from e
        except httpx.TransportError as e:
            raise DeviceProblem(f"the server at {self.url} broke off: {type(e).__name__}: {e}") from e

    def _streamed(self, body: dict[str, Any], begin: int) -> Answer:
        stamps: list[int] = []
        last: dict[str, Any] = {}
        ended = False
        with self._http.stream(
            "POST", "/v1/completions", json={**body, "stream_options": {"include_usage": True}}
        ) as answer:
            if answer.status_code != 200:
                raise Rejected(answer.status_code, self.url, answer.read().decode("utf-8", "replace"))
            heard = begin
            for line in answer.iter_lines():
                now = time.monotonic_ns()
                if not line.startswith("data:"):
                    # Comments that keep the connection alive are no answer.
                    if now - heard > _TIMEOUT_S * 1e9:
                        raise DeviceProblem(_SILENT.format(self.url, len(stamps), _TIMEOUT_S))
                    continue
                heard = now
                if line[5:].strip() == "[DONE]":
                    ended = True
                    break
                chunk = _object(line[5:], self.url)
                if chunk.get("choices") and chunk["choices"][0].get("text"):
                    stamps.append(now)
                last |= {k: v for k, v in chunk.items() if v}
        if not ended:
            raise DeviceProblem(f"the server at {self.url} broke its stream off after {len(stamps)} tokens")
        return Answer(begin, time.monotonic_ns(), tuple(stamps), last)

    def close(self) -> None:
        self._http.close()


class Rejected(DeviceProblem):
    """An answer that is no completion, with what the server said."""

    def __init__(self, status: int, url: str, text: str) -> None:
        self.status = status
        try:
            error = json.loads(text)["error"]
            said = error["message"] if isinstance(error, dict) else str(error)
        except (ValueError, LookupError, TypeError):
            said = text
        super().__init__(f"the server at {url} answered {status}: {' '.join(str(said).split())[:_SHOWN]}")


def _object(text: str, url: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise DeviceProblem(f"the server at {url} answered something that is no completion: {text[:_SHOWN]!r}")
    return data
