"""The reference server's HTTP: OpenAI's completions, and what llama.cpp adds for tokens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from npuprof.targets.reference.serving.engine import Choice, Engine, Logits, Refused, choose, logprob_of
from npuprof.targets.reference.serving.tokens import detokenize, tokenize
from npuprof.targets.reference.target import DEVICE
from npuprof.targets.reference.weights import MAX_CONTEXT, VOCABULARY

MODEL = "reference-transformer"


class CompletionRequest(BaseModel):
    """What is served of OpenAI's completion request; other keys are taken and have no effect."""

    model_config = ConfigDict(extra="ignore")

    prompt: str | list[int]
    max_tokens: Annotated[int, Field(ge=0, le=MAX_CONTEXT)] = 16
    temperature: float = 0.0
    stop: str | list[str] | None = None
    logprobs: Annotated[int, Field(ge=0, le=100)] | None = None
    echo: bool = False
    stream: bool = False


class TokenizeRequest(BaseModel):
    content: str


class DetokenizeRequest(BaseModel):
    tokens: list[Annotated[int, Field(ge=0, lt=VOCABULARY)]]


def _error(status: int, message: str, kind: str = "invalid_request_error") -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)


def make_app(engine: Engine) -> FastAPI:
    """One request at a time: the others wait for their turn."""
    app = FastAPI(title="npuprof reference server", description=DEVICE)
    turn = asyncio.Lock()
    # One thread for the model: a step whose client has left still ends before the next request's first.
    thread = ThreadPoolExecutor(1, "reference-model")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return _error(400, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return _error(400, str(error))

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        meta = {"n_vocab": VOCABULARY, "n_ctx_train": MAX_CONTEXT, "simulated": True, "device": DEVICE}
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "npuprof", "meta": meta}]}

    @app.post("/tokenize")
    async def tokens(body: TokenizeRequest) -> dict[str, Any]:
        return {"tokens": tokenize(body.content)}

    @app.post("/detokenize")
    async def text(body: DetokenizeRequest) -> dict[str, Any]:
        return {"content": detokenize(body.tokens)}

    @app.post("/v1/completions", response_model=None)
    async def completions(body: CompletionRequest, request: Request) -> Any:
        if body.temperature > 0:
            raise Refused("this server is greedy: temperature must be 0")
        prompt = tokenize(body.prompt) if isinstance(body.prompt, str) else body.prompt
        engine.check(prompt, body.max_tokens)
        run = _Completion(engine, thread, body, prompt)
        if body.stream:
            return StreamingResponse(_events(run, turn), media_type="text/event-stream")
        async with turn:
            async for _ in run.pieces():
                if await request.is_disconnected():
                    break
        return run.answer()

    return app


class _Completion:
    """One request's state: what was chosen, and why it ended."""

    def __init__(self, engine: Engine, thread: Executor, body: CompletionRequest, prompt: Sequence[int]) -> None:
        self._engine = engine
        self._thread = thread
        self._body = body
        self._prompt = list(prompt)
        self._stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
        self._id = f"cmpl-{time.monotonic_ns()}"
        self._created = int(time.time())
        self._echoed: list[Choice] = []
        self.cached = 0
        self.chosen: list[Choice] = []
        self.finish = "length"

    async def pieces(self) -> AsyncIterator[Choice]:
        """The tokens as they are chosen; the model works in a thread, and between two tokens others may be heard."""
        every = self._body.echo and self._body.logprobs is not None
        loop = asyncio.get_running_loop()
        self.cached, logits = await loop.run_in_executor(self._thread, self._engine.begin, self._prompt, every)
        if every:
            self._echoed = self._of_prompt(logits)
        top = self._body.logprobs or 0
        for n in range(self._body.max_tokens):
            choice = choose(logits[-1], top)
            self.chosen.append(choice)
            yield choice
            if self._stopped() or n + 1 == self._body.max_tokens:
                return
            logits = await loop.run_in_executor(self._thread, self._engine.step, choice.token)

    def _of_prompt(self, logits: Logits) -> list[Choice]:
        """The evaluated rows' own log probabilities: token i is judged by the logits of the row before it."""
        rows = self._prompt[self.cached :]
        first = [Choice(rows[0], 0.0, [])]
        return first + [Choice(t, logprob_of(logits[i], t), []) for i, t in enumerate(rows[1:])]

    def _stopped(self) -> bool:
        text = detokenize([c.token for c in self.chosen])
        if any(s and s in text for s in self._stops):
            self.finish = "stop"
        return self.finish == "stop"

    def text(self) -> str:
        text = detokenize([c.token for c in self.chosen])
        ends = [text.find(s) for s in self._stops if s and s in text]
        text = text[: min(ends)] if ends else text
        return detokenize(self._prompt) + text if self._body.echo else text

    def usage(self) -> dict[str, Any]:
        done, given = len(self.chosen), len(self._prompt)
        return {
            "prompt_tokens": given,
            "completion_tokens": done,
            "total_tokens": given + done,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }

    def answer(self) -> dict[str, Any]:
        logprobs = None
        if self._body.logprobs is not None:
            logprobs = {"content": [_logprob(c) for c in [*self._echoed, *self.chosen]]}
        choice = {"index": 0, "text": self.text(), "logprobs": logprobs, "finish_reason": self.finish}
        return {**self._head(), "choices": [choice], "usage": self.usage()}

    def chunk(self, choice: Choice) -> dict[str, Any]:
        logprobs = None if self._body.logprobs is None else {"content": [_logprob(choice)]}
        return {**self._head(), "choices": [{"index": 0, "text": detokenize([choice.token]), "logprobs": logprobs}]}

    def last_chunk(self) -> dict[str, Any]:
        end = {"index": 0, "text": "", "logprobs": None, "finish_reason": self.finish}
        return {**self._head(), "choices": [end], "usage": self.usage()}

    def _head(self) -> dict[str, Any]:
        return {"id": self._id, "object": "text_completion", "created": self._created, "model": MODEL}


def _logprob(c: Choice) -> dict[str, Any]:
    top = [{"id": i, "token": detokenize([i]), "logprob": p} for i, p in c.top]
    return {"id": c.token, "token": detokenize([c.token]), "logprob": c.logprob, "top_logprobs": top}


async def _events(run: _Completion, turn: asyncio.Lock) -> AsyncIterator[str]:
    """Server-sent events; a client that leaves cancels this, which frees the turn."""
    async with turn:
        async for choice in run.pieces():
            yield f"data: {json.dumps(run.chunk(choice))}\n\n"
    yield f"data: {json.dumps(run.last_chunk())}\n\n"
    yield "data: [DONE]\n\n"
