"""A scripted server: computes nothing, and logs the lines of a script for the rows that it is asked for.

Arguments: PORT SCRIPT LOG. The script is JSON: {"lines": {"5": ["[bs] ...", ...]}, "import": "import: ...", and faults:
"status" (answer with that), "status_text", "loading" (so many 503 first), "silent" (logs nothing), "split" (rows above this
are logged as several passes), "hide" (as many rows fewer), "foreign" (a pass of that M before each), "ids" (false: takes
no token arrays), "tokenize" (false: has none), "die_after" (requests), "slow_by" (ms that each answer takes longer than the
one before), "garbage" (answers no JSON), "break_stream", "chatter" (bytes on standard error before each answer)}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

PORT, SCRIPT, LOG = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), sys.argv[3]
LINES: dict[str, list[str]] = SCRIPT.get("lines", {})
served: dict[str, int] = {}
state = {"requests": 0, "loading": SCRIPT.get("loading", 0)}


def log(line: str) -> None:
    if LOG == "stderr":
        print(line, file=sys.stderr, flush=True)
    else:
        with Path(LOG).open("a") as f:
            f.write(line + "\n")


def plain(rows: int, start: int = 0) -> str:
    wall = 10.0 + rows
    return (
        f"[bs] M={rows:2d} start={start:2d} wall= {wall:.1f} | embed= 0.0 | layers= {wall - 2:.1f} (gemm pack= 0.0 ql= 1.00 "
        f"wait= {wall - 4:.1f} rb= 0.0 sum= {wall - 3:.1f} host= 1.0 n=112) | epilogue= 2.0 (head= 2.0 sum= 1.0 host= 1.0)"
    )


def say_passes(rows: int) -> None:
    if SCRIPT.get("silent"):
        return
    if SCRIPT.get("foreign"):
        log(plain(SCRIPT["foreign"]))
    rows -= SCRIPT.get("hide", 0) if rows > 2 else 0
    limit = SCRIPT.get("split", rows)
    while rows > 0:
        part = min(rows, limit)
        script = LINES.get(str(part))
        if script:
            n = served.get(str(part), 0)
            served[str(part)] = n + 1
            log(script[n % len(script)])
        else:
            log(plain(part))
        rows -= part


class Handler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if state["loading"] > 0:
            state["loading"] -= 1
            self.answer(503, {"error": {"message": "Loading model"}})
        else:
            self.answer(200, {"data": [{"id": "scripted", "meta": {"simulated": True, "device": "a script"}}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            words = body["content"].split()
            self.answer(200, {"tokens": list(range(len(words)))} if SCRIPT.get("tokenize", True) else {})
            return
        state["requests"] += 1
        if SCRIPT.get("die_after") and state["requests"] > SCRIPT["die_after"]:
            os._exit(9)
        if "status" in SCRIPT and state["requests"] > SCRIPT.get("status_after", 0):
            self.answer(SCRIPT["status"], {"error": {"message": SCRIPT.get("status_text", "no")}})
            return
        prompt = body["prompt"]
        if isinstance(prompt, list) and not SCRIPT.get("ids", True):
            self.answer(400, {"error": {"message": "prompt must be text"}})
            return
        if SCRIPT.get("key") and self.headers.get("Authorization") != f"Bearer {SCRIPT['key']}":
            self.answer(401, {"error": {"message": "no such key"}})
            return
        time.sleep(SCRIPT.get("slow_by", 0) * state["requests"] / 1000)
        rows = len(prompt) if isinstance(prompt, list) else len(prompt.split())
        say_passes(rows)
        sys.stderr.write("x" * SCRIPT.get("chatter", 0))
        sys.stderr.flush()
        if SCRIPT.get("garbage"):
            self.answer(200, b"<html>")
            return
        if body.get("stream"):
            self.stream(body["max_tokens"])
            return
        usage = {"completion_tokens": 1} if SCRIPT.get("uncounted") else {"completion_tokens": 1, "prompt_tokens": rows}
        self.answer(200, {"choices": [{"text": "x", "logprobs": None, "finish_reason": "length"}], "usage": usage})

    def stream(self, tokens: int) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(tokens):
            self.wfile.write(b'data: {"choices": [{"text": "x"}]}\n\n')
            self.wfile.flush()
            time.sleep(0.004)
        if not SCRIPT.get("break_stream"):
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


if SCRIPT.get("import"):
    log(SCRIPT["import"])
HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
