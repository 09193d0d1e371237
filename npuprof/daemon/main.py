"""`npuprofd`: the daemon, under systemd or by hand."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
from pathlib import Path

from npuprof import __version__
from npuprof.daemon.launch import RUN_SOCKET
from npuprof.daemon.notify import inherited_socket, notify, watchdog_s
from npuprof.errors import NpuprofError, UsageProblem
from npuprof.settings import load_settings


def socket_path() -> Path:
    """NPUPROF_SOCKET, else the machine's, else the user's own."""
    named = os.environ.get("NPUPROF_SOCKET")
    if named:
        return Path(named)
    machine = Path("/run/npuprof/npuprof.sock")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if machine.exists() or not runtime:
        return machine
    return Path(runtime) / "npuprof.sock"


def _state_directory() -> Path:
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    from npuprof.store.runs import user_runs

    return user_runs().parent


def _own_socket(path: Path) -> socket.socket:
    """Bound here, readable by the user and the group alone. UsageProblem where another daemon listens."""
    with contextlib.suppress(OSError):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
        raise UsageProblem(f"another daemon listens at {path}; name another place by NPUPROF_SOCKET")
    listening = socket.socket(socket.AF_UNIX)
    old = os.umask(0o117)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        listening.bind(str(path))
    except OSError as e:
        raise UsageProblem(
            f"the socket {path} cannot be made: {e.strerror}; name another place by NPUPROF_SOCKET"
        ) from e
    finally:
        os.umask(old)
    listening.listen(128)
    return listening


def serve(config: Path | None) -> None:
    """Until it is told to stop. UsageProblem for a state directory or socket that cannot be used."""
    import uvicorn

    from npuprof.daemon.app import make_app
    from npuprof.daemon.journal import tell
    from npuprof.daemon.peers import PeerProtocol
    from npuprof.daemon.queue import Queue
    from npuprof.daemon.supervise import Supervisor
    from npuprof.store.runs import ready_store

    settings = load_settings(config).settings
    state = _state_directory()
    ready_store(state / "runs")
    queue = Queue(state / "queue.sqlite")
    if queue.damaged is not None:
        tell("damaged", f"the queue could not be read and is kept in {queue.damaged}; a new one is begun")
    listening = inherited_socket()
    under_systemd = listening is not None
    listening = listening or _own_socket(socket_path())

    class Server(uvicorn.Server):
        """One tick a second is enough at rest, and pings the watchdog from this very loop."""

        async def main_loop(self) -> None:
            notify("READY=1")
            period = watchdog_s()
            while not self.should_exit:
                notify("WATCHDOG=1")
                await asyncio.sleep(1.0 if period is None else min(1.0, period))

        async def on_tick(self, counter: int) -> bool:
            del counter
            return self.should_exit

    async def main() -> None:
        run_socket = RUN_SOCKET if under_systemd and RUN_SOCKET.exists() else None
        supervisor = Supervisor(queue, state, settings.daemon, config, run_socket)
        served = uvicorn.Config(
            make_app(supervisor, settings),
            http=PeerProtocol,
            ws="none",
            proxy_headers=False,
            log_level="warning",
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
            limit_concurrency=512,
        )
        await Server(served).serve(sockets=[listening])

    try:
        asyncio.run(main())
    finally:
        notify("STOPPING=1")
        queue.close()
        if not under_systemd:
            with contextlib.suppress(OSError):
                socket_path().unlink()


def main(argv: list[str] | None = None) -> None:
    """Entry point of `npuprofd`."""
    parser = argparse.ArgumentParser(
        prog="npuprofd", description="Queues campaigns and shows them live, at a Unix socket."
    )
    parser.add_argument("--config", type=Path, help="a configuration file that counts last")
    parser.add_argument("--worker", action="store_true", help="run one campaign, told on standard input (by systemd)")
    parser.add_argument("--version", action="version", version=__version__)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="npuprofd: %(message)s", stream=sys.stderr)
    try:
        if args.worker:
            from npuprof.daemon.worker import main as work

            sys.exit(work())
        serve(args.config)
    except NpuprofError as e:
        print(f"npuprofd: {e}", file=sys.stderr)
        sys.exit(e.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
