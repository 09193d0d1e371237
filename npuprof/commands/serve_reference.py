"""`npuprof serve-reference`: a small real inference server on the reference transformer."""

from __future__ import annotations

import socket
import sys

import click

from npuprof.commands.options import debug_option
from npuprof.errors import DeviceProblem


@click.command("serve-reference")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free.")
@debug_option
def serve_reference(host: str, port: int) -> int:
    """Serve the reference transformer (on the CPU, not an NPU): /v1/completions, /v1/models, /health, /tokenize.

    Greedy, one request at a time, with a prefix cache; `[bs]` and import lines on standard error.

    Example: npuprof serve-reference --port 8080 2> server.log
    """
    import uvicorn
    from threadpoolctl import threadpool_limits

    from npuprof.targets.reference.serving.app import make_app
    from npuprof.targets.reference.serving.engine import Engine

    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as e:
        raise DeviceProblem(
            f"--host {host} --port {port}: cannot listen there: {e.strerror}; --port 0 takes a free one"
        ) from e
    with threadpool_limits(limits=1, user_api="blas"):
        engine = Engine(lambda line: print(line, file=sys.stderr, flush=True))
        click.echo(f"listening on http://{host}:{listening.getsockname()[1]}")
        sys.stdout.flush()
        try:
            server = uvicorn.Server(uvicorn.Config(make_app(engine), log_level="warning", access_log=False))
            server.run(sockets=[listening])
        finally:
            engine.close()
            listening.close()
    return 0
