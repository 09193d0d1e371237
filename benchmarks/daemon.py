"""The daemon: from submit to the first pass, from a pass's end to a watcher, what ten watchers do to the passes, and rest.

The target's device wait sleeps, so that its own scatter is small; the effect of watchers is taken in mirrored blocks of one
campaign, half a second with and without them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import httpx

from npuprof.stats.paired import ratio_of

HERE = Path(__file__).parent
SUBMITS = 8
BLOCKS = 24
BLOCK_S = 0.5
REST_S = 20.0


class Bench:
    def __init__(self, folder: Path) -> None:
        (folder / "state").mkdir()
        (folder / "config.yaml").write_text("daemon: {targets: ['sleeper:make']}\n")
        self.socket = folder / "s.sock"
        env = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "STATE_DIRECTORY": str(folder / "state"),
            "NPUPROF_SOCKET": str(self.socket),
            "NPUPROF_HOLD_DIR": str(folder / "hold"),
            "NPUPROF_CONFIG": str(folder / "config.yaml"),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "npuprof.daemon.main"], env=env, stderr=subprocess.DEVNULL
        )
        self.http = self.client()
        while not self.socket.exists():
            time.sleep(0.05)

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), base_url="http://d", timeout=60)

    def submit(self, repeats: int) -> str:
        body = {"target": "sleeper:make", "device": "bench", "rows": [2], "warmup": 0, "repeats": repeats}
        found: str = self.http.post("/v1/campaigns", json=body).json()["id"]
        return found

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def events(bench: Bench, run_id: str):  # type: ignore[no-untyped-def]
    """(kind, data, ns of arrival) to the end of the campaign."""
    with bench.client() as http, http.stream("GET", f"/v1/campaigns/{run_id}/events") as answer:
        kind = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:]), time.monotonic_ns()
                if kind == "end":
                    return


def first_pass(bench: Bench) -> None:
    took, latencies = [], []
    for _ in range(SUBMITS):
        begin = time.monotonic_ns()
        run_id = bench.submit(1)
        first = None
        for kind, data, now in events(bench, run_id):
            if kind == "pass":
                latencies.append((now - data["at_ns"]) / 1e6 - data["wall_ms"])
                first = first or data["at_ns"]
            for e in data.get("events", []):
                if e["event"] == "pass":
                    first = first or e["data"]["measured"]["at_ns"]
        assert first is not None
        took.append((first - begin) / 1e9)
    print(f"submit to the first pass: median {median(took):.3f} s ({min(took):.3f} to {max(took):.3f})")
    print(
        f"pass's end to a watcher: median {median(latencies):.1f} ms, largest {max(latencies):.1f} of {len(latencies)}"
    )


def watchers(bench: Bench) -> None:
    run_id = bench.submit(500)
    while not any((bench.socket.parent / "state/work").glob("*.events")):
        time.sleep(0.05)
    time.sleep(2)
    stop = threading.Event()
    code = "import sys, httpx\nt = httpx.HTTPTransport(uds=sys.argv[1])\n"
    code += "h = httpx.Client(transport=t, base_url='http://d', timeout=60)\n"
    code += "with h.stream('GET', sys.argv[2]) as a:\n for _ in a.iter_lines(): pass\n"
    pattern = [(False, True, True, False), (True, False, False, True)]
    spans: list[tuple[bool, int, int]] = []
    for block in range(BLOCKS):
        for on in pattern[block % 2]:
            command = [sys.executable, "-c", code, str(bench.socket), f"/v1/campaigns/{run_id}/events"]
            some = [subprocess.Popen(command) for _ in range(10)] if on else []
            time.sleep(0.8 if on else 0.1)
            begin = time.monotonic_ns()
            time.sleep(BLOCK_S)
            spans.append((on, begin, time.monotonic_ns()))
            for p in some:
                p.kill()
                p.wait()
    stop.set()
    bench.http.delete(f"/v1/campaigns/{run_id}")
    passes = []
    for kind, data, _ in events(bench, run_id):
        del kind
        passes += [e["data"]["measured"] for e in data.get("events", []) if e["event"] == "pass"]
    record = bench.http.get(f"/v1/campaigns/{run_id}").json()["record"]
    passes = record["passes"]
    medians = [
        median([p["wall_ms"] for p in passes if begin <= p["at_ns"] < end - 60e6] or [float("nan")])
        for _, begin, end in spans
    ]
    blocks = []
    for i in range(0, len(spans), 4):
        four = list(zip([s[0] for s in spans[i : i + 4]], medians[i : i + 4], strict=True))
        with_, without = [m for on, m in four if on], [m for on, m in four if not on]
        from math import log

        blocks.append(sum(map(log, with_)) / 2 - sum(map(log, without)) / 2)
    ratio = ratio_of(blocks)
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    print(
        f"ten watchers, passes' median with / without: {100 * (ratio.value - 1):+.3f} % "
        f"[{100 * (ratio.low - 1):+.3f}, {100 * (ratio.high - 1):+.3f}] ({len(blocks)} blocks)"
    )


def rest(bench: Bench) -> None:
    time.sleep(2)
    before = bench.cpu_s()
    time.sleep(REST_S)
    print(f"at rest: {100 * (bench.cpu_s() - before) / REST_S:.3f} % of a core, {bench.rss_mb():.0f} MB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            time.sleep(2)
            rest(bench)
            first_pass(bench)
            watchers(bench)
        finally:
            bench.http.close()
            bench.process.terminate()
            bench.process.wait()


if __name__ == "__main__":
    main()
