"""A server that keeps talking and says nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from npuprof.errors import DeviceProblem
from npuprof.servers import client
from npuprof.servers.client import Client


class _KeepsAlive(BaseHTTPRequestHandler):
    """One token, then comments of server-sent events until the client leaves."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'data: {"choices": [{"text": "x"}]}\n\n')
        try:
            while not self.server.ended.wait(0.01):  # type: ignore[attr-defined]
                self.wfile.write(b": still here\n\n")
        except OSError:
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _KeepsAlive)
    server.ended = threading.Event()  # type: ignore[attr-defined]
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.ended.set()  # type: ignore[attr-defined]
    server.shutdown()
    serving.join()
    server.server_close()


def test_comments_that_keep_a_stream_alive_are_no_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.2)
    asking = Client(url, lambda text: None, lambda: None)
    with pytest.raises(DeviceProblem, match=r"keeps its stream open, but after 1 tokens none came for 0\.2 s"):
        asking.complete([1, 2], 3, stream=True)
    asking.close()
