"""Random kill -9 of daemon, worker and client while campaigns are queued: nothing accepted may be lost or run twice.

Prints one JSON object. The target is a fake that says so: it waits and states made-up times.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import httpx

from npuprof.campaign.hold import Hold

FAKES = Path(__file__).parents[1] / "tests/fakes"
DEVICE = "soak"
REQUEST = {"target": "fake_targets:Counted", "device": DEVICE, "rows": [2], "repeats": 2, "warmup": 1}


class Bench:
    """A state directory, a daemon that is started again whenever it is killed, and everything that was accepted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir()
        (folder / "config.yaml").write_text("daemon: {targets: ['fake_targets:Counted']}\n")
        self.socket = folder / "s.sock"
        self.env = {
            **os.environ,
            "PYTHONPATH": str(FAKES),
            "STATE_DIRECTORY": str(self.state),
            "NPUPROF_SOCKET": str(self.socket),
            "NPUPROF_HOLD_DIR": str(folder / "hold"),
            "NPUPROF_CONFIG": str(folder / "config.yaml"),
            "COUNTED_LOG": str(folder / "starts"),
        }
        self.log = (folder / "daemon.log").open("ab")
        self.daemon = self._start()
        self.http = httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), base_url="http://d", timeout=5)
        self.accepted: list[str] = []

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "npuprof.daemon.main"]
        return subprocess.Popen(command, env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """None where the daemon is away: it may be killed at any moment."""
        with contextlib.suppress(httpx.HTTPError, ValueError):
            answer = self.http.request(method, path, json=body)
            return answer.json() if answer.status_code < 400 else None
        return None

    def top_up(self) -> None:
        """Three campaigns in the queue at all times."""
        open_ones = self.ask("GET", "/v1/campaigns")
        if open_ones is not None and len(open_ones["campaigns"]) < 3:
            answer = self.ask("POST", "/v1/campaigns", REQUEST)
            if answer is not None:
                self.accepted.append(answer["id"])

    def worker(self) -> int | None:
        for file in (self.state / "work").glob("*.events"):
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
                return int(json.loads(file.read_text().splitlines()[0])["data"]["pid"])
        return None

    def kill_daemon(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = self._start()

    def kill_worker(self) -> float | None:
        """ms until the ticket is another's or free; None where no worker held it."""
        pid = self.worker()
        hold = Hold(self.folder / "hold", DEVICE)
        holder = hold.status()[0]
        if pid is None or holder is None or holder.pid != pid:
            return None
        begin = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        while (now := hold.status()[0]) is not None and now.pid == pid and time.monotonic() - begin < 5:
            time.sleep(0.001)
        return (time.monotonic() - begin) * 1000

    def kill_client(self) -> None:
        client = subprocess.Popen(
            [sys.executable, "-m", "npuprof", "watch"],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.4)
        client.kill()
        client.wait()

    def drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            open_ones = self.ask("GET", "/v1/campaigns")
            if open_ones is not None and not open_ones["campaigns"]:
                return
            time.sleep(0.1)

    def close(self) -> None:
        self.http.close()
        self.daemon.terminate()
        self.daemon.wait()
        self.log.close()


def soak(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    random = Random(seed)
    bench = Bench(folder)
    killed = {"daemon": 0, "worker": 0, "client": 0}
    handovers = []
    try:
        while sum(killed.values()) < kills:
            bench.top_up()
            time.sleep(random.uniform(0.0, 0.3))
            kind = random.choices(["daemon", "worker", "client"], [4, 5, 1])[0]
            if kind == "daemon":
                bench.kill_daemon()
            elif kind == "client":
                bench.kill_client()
            else:
                took = bench.kill_worker()
                if took is None:
                    continue
                handovers.append(took)
            killed[kind] += 1
        bench.drain(120)
        found = {i: bench.ask("GET", f"/v1/campaigns/{i}") for i in bench.accepted}
        damaged = bench.ask("GET", "/v1/health")
        states: dict[str, int] = {}
        for c in found.values():
            states["lost" if c is None else c["state"]] = states.get("lost" if c is None else c["state"], 0) + 1
        starts = (folder / "starts").read_text().split()
        without = [i for i, c in found.items() if c is not None and c["state"] == "done" and c["record"] is None]
    finally:
        bench.close()
    return {
        "kills": killed,
        "accepted": len(found),
        "states": states,
        "lost": states.get("lost", 0),
        "ended": sum(n for s, n in states.items() if s in ("done", "aborted", "failed", "cancelled")),
        "run_twice": len(starts) - len(set(starts)),
        "done_without_record": len(without),
        "damaged_queue": damaged["damaged_queue"],
        "ticket_free_ms": {"median": median(handovers), "max": max(handovers), "n": len(handovers)}
        if handovers
        else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npuprof-soak-") as folder:
        print(json.dumps(soak(args.kills, args.seed, Path(folder))))


if __name__ == "__main__":
    main()
