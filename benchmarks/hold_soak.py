"""Random kill -9 of holders, wrappers and waiters: never two holders, never a lost place, and how fast the next is in.

    python benchmarks/hold_soak.py [--kills 300] [--clients 6]

Clients are processes forked from this one. Each takes the hold (half of them as `hold run` does, around a command),
writes what it got to a log, works for some milliseconds, and ends or is killed. A witness lock that every holder's work
takes without waiting catches two holders at once. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from hold_work import note, work

from npuprof.campaign.hold import Hold
from npuprof.campaign.under import run_under

SCRIPT = str(Path(__file__).with_name("hold_work.py"))


def client(folder: str, seed: int) -> None:
    """One turn: take the hold, then work here or in a command under it."""
    random = Random(seed)
    pid = os.getpid()
    note(folder, event="ask", client=pid)
    held = Hold(Path(folder) / "hold", "reference").take(f"client {seed}", None)
    note(folder, event="granted", client=pid)
    seconds = random.uniform(0.001, 0.04)
    if random.random() < 0.5:
        work(folder, pid, held.number, seconds)
    else:
        run_under(held, [sys.executable, "-S", SCRIPT, folder, str(pid), str(held.number), str(seconds)])
    held.release()


def soak(folder: str, kills: int, clients: int, seed: int) -> dict[str, Any]:
    random = Random(seed)
    children: set[int] = set()
    killed = started = 0
    while killed < kills:
        while len(children) < clients:
            started += 1
            pid = os.fork()
            if pid == 0:
                try:
                    client(folder, started)
                finally:
                    os._exit(0)
            children.add(pid)
        time.sleep(random.uniform(0, 0.1))
        pid = random.choice(sorted(children))
        note(folder, event="kill", client=pid)
        os.kill(pid, signal.SIGKILL)
        killed += 1
        while children and (done := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            children.discard(done)
    while children:
        children.discard(os.waitpid(-1, 0)[0])
    entries = [json.loads(line) for line in (Path(folder) / "log").read_text().splitlines()]
    return {"kills": killed, "clients": started, **judge(sorted(entries, key=lambda e: e["at"]))}


def judge(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Holders at once, order of entry, and the time from one holder's end to the grant to the next that was waiting."""
    entered = [e for e in entries if e["event"] == "in"]
    granted = [e for e in entries if e["event"] == "granted"]
    asked = {e["client"]: e["at"] for e in entries if e["event"] == "ask"}
    ended = {e["client"]: e["at"] for e in reversed(entries) if e["event"] in ("out", "kill")}
    handovers = [
        1000 * (b["at"] - ended[a["client"]])
        for a, b in pairwise(granted)
        if asked[b["client"]] < ended.get(a["client"], 0)
    ]
    return {
        "entered": len(entered),
        "two_holders": sum(e["event"] == "two holders" for e in entries),
        # Numbers begin again at 1 only when nobody holds or waits.
        "out_of_order": sum(b["number"] <= a["number"] and b["number"] != 1 for a, b in pairwise(entered)),
        "handovers": len(handovers),
        "handover_ms_median": round(median(handovers), 2),
        "handover_ms_max": round(max(handovers), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(soak(folder, args.kills, args.clients, args.seed)))


if __name__ == "__main__":
    main()
