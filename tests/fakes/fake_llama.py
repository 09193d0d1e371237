"""A fake of llama.cpp's HTTP routes, in a thread: words are tokens, what it says is a script. Computes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ["<s>", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"]
"""Word i is token i; 0 begins a text."""


@dataclass
class FakeLlama:
    """`says(ids, n)` gives the tokens behind ids. Faults: what `sampling` echoes, a vocabulary of other `words`, a `context`
    too short, a begin-of-text token that is added (`adds_bos`), `prompt_n` of a lost cache, `ids` that it does not give."""

    says: Callable[[Sequence[int], int], list[int]]
    words: list[str] = field(default_factory=lambda: list(WORDS))
    sampling: dict[str, Any] = field(default_factory=dict)
    context: int = 1024
    slots: int = 1
    adds_bos: bool = False
    prompt_n: int = 1
    native: bool = True
    ids: bool = True
    tokenizes: bool = True
    asked: list[tuple[int, ...]] = field(default_factory=list)
    url: str = ""
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tokenize(self, text: str, special: bool) -> list[int]:
        known = {w: i for i, w in enumerate(self.words)}
        front = [0] if special and self.adds_bos else []
        return front + [known.get(w, len(self.words) - 1) for w in text.split()]

    def text(self, ids: Sequence[int]) -> str:
        return "".join(f" {self.words[i]}" for i in ids)

    def get(self, path: str) -> tuple[int, Any]:
        if path == "/v1/models":
            return 200, {"data": [{"id": "fake", "meta": {"n_vocab": len(self.words), "simulated": True, "size": 1}}]}
        if path == "/props" and self.native:
            props = {"default_generation_settings": {"n_ctx": self.context}, "total_slots": self.slots}
            return 200, {**props, "bos_token": self.words[0], "build_info": "fake"}
        return 404, {"error": {"message": "no such route"}}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/tokenize" and self.tokenizes:
            return 200, {"tokens": self.tokenize(body["content"], body.get("add_special", False))}
        if path == "/detokenize" and self.tokenizes:
            return 200, {"content": self.text(body["tokens"])}
        if path == "/completion" and self.native:
            return 200, self.complete(body["prompt"], body["n_predict"], tokens=True)
        if path == "/v1/completions":
            prompt = body["prompt"] if isinstance(body["prompt"], list) else self.tokenize(body["prompt"], True)
            return 200, self.complete(prompt, body["max_tokens"], tokens=False)
        return 404, {"error": {"message": "no such route"}}

    def complete(self, prompt: list[int], n: int, *, tokens: bool) -> dict[str, Any]:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.asked.append(tuple(prompt))
        found = self.says(prompt, n)
        timings = {"prompt_ms": 2.0, "predicted_ms": 1.0 * n, "prompt_n": self.prompt_n, "cache_n": len(prompt) - 1}
        with self._lock:
            self._now -= 1
        if tokens:
            settings = {"temperature": 0.0, "top_k": 40, "repeat_penalty": 1.0, **self.sampling}
            return {"tokens": found, "content": self.text(found), "timings": timings, "generation_settings": settings}
        top = [{"id": 0, "logprob": -0.5}, {"id": 1, "logprob": -2.5}]
        content = [{"id": t, "logprob": -0.5, "top_logprobs": top} for t in found]
        choice = {"text": self.text(found), "finish_reason": "length", "logprobs": {"content": content}}
        if not self.ids:
            choice["logprobs"] = None
        return {"choices": [choice], "usage": {"prompt_tokens": len(prompt)}, "timings": timings}


@contextmanager
def serving(fake: FakeLlama) -> Iterator[FakeLlama]:
    """On a free port, for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # headers and body in one segment

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer(*fake.get(self.path))

        def do_POST(self) -> None:
            self.answer(*fake.post(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
