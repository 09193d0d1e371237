"""The serve target against the reference server, a real llama.cpp server, and a scripted one for the published figures."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ports import free_port, wait_for

FAKES = Path(__file__).parents[1] / "fakes"
NPUPROF = [sys.executable, "-m", "npuprof"]
IMPORT = "import: incomplete 0 | attention 3584/3584 tiles byte for byte | MLP 9856/9856 groups byte for byte | 70 s"


class Place:
    """A folder to run in, a port, and scripted servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {**os.environ, "COLUMNS": "140", "PYTHONPATH": str(FAKES)}
        self.started: list[subprocess.Popen[bytes]] = []

    def script(self, **script: Any) -> str:
        """A command that serves the script, logging to its standard error."""
        (self.folder / "script.json").write_text(json.dumps(script))
        return f"{sys.executable} {FAKES / 'scripted_server.py'} {self.port} {self.folder / 'script.json'} stderr"

    def run(self, *args: str, spawn: str | None = None, log: str | None = "stderr") -> subprocess.CompletedProcess[str]:
        command = [*NPUPROF, "run", "--target", "serve", "--url", self.url]
        command += ["--spawn", spawn] if spawn else []
        command += ["--log", log] if log else []
        return subprocess.run(
            [*command, *args], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=280
        )

    def record(self) -> dict[str, Any]:
        files = sorted((self.folder / "state/npuprof/runs").glob("*.json"))
        found: dict[str, Any] = json.loads(files[-1].read_text())
        return found

    def start(self, command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        self.started.append(subprocess.Popen(command, env=self.env, cwd=self.folder, **more))
        return self.started[-1]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    p = Place(tmp_path)
    yield p
    for process in p.started:
        process.kill()
        process.wait()


def ran(done: subprocess.CompletedProcess[str], place: Place) -> None:
    """Trusted, but for one thing that a busy machine may do to passes of 15 ms: the client's share of them drifts."""
    assert done.returncode in (0, 4), done.stdout + done.stderr
    if done.returncode == 4:
        assert {r["code"] for r in place.record()["trust"]["reasons"]} == {"clocks_differ"}, done.stdout


def reference(place: Place) -> str:
    return f"{sys.executable} -m npuprof serve-reference --port {place.port}"


def test_the_reference_server_from_its_standard_error(place: Place) -> None:
    done = place.run("--rows", "2,16,17", "--start", "0,40", "--repeats", "6", "--warmup", "1", spawn=reference(place))
    assert done.returncode in (0, 4), done.stderr
    record = place.record()
    assert done.stdout.index("import: incomplete 0 | attention 56/56") < done.stdout.index(
        "target  reference-transformer"
    )
    assert record["target"]["simulated"] is True
    assert record["target"]["device"].endswith("reference transformer on the CPU, not an NPU")
    assert record["provenance"]["pack"]["import_line"].startswith("import: incomplete 0 | attention 56/56")
    assert {p["phase"] for p in record["passes"]} == {"warmup", "canary", "measure"}
    for p in record["passes"]:
        assert p["kind"] == ("step" if p["rows"] == 1 else "verify")
        assert p["head_rows"] == p["rows"]
        assert p["extra"]["client_ms"] > p["wall_ms"]
        assert p["line"].startswith("[bs] M=")
        assert f"start={p['start']:2d}" in p["line"]
        assert p["launches"] == 112
    cliff = record["summary"]["cliff"]
    assert (cliff["last_cheap_rows"], cliff["first_costly_rows"]) == (16, 17)
    assert "twice   client's wall minus the server's: median" in done.stdout
    [log] = (place.folder / "state/npuprof/runs").glob("*.log")
    assert "[bs] M=16" in log.read_text(), "the server's output is kept"
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{place.url}/health")


def published(median: float, low: float, high: float, wait: float, rows: int, n: int) -> list[str]:
    """n lines with that median, min and max of the wall, and that median of the device wait; warm-up lines stand before."""
    import statistics

    if n == 4:
        walls = [round(median - 0.1, 1), high, low, round(median + 0.1, 1)]
    else:
        walls = [*[median] * (n // 2 - 1), high, low, *[median] * (n // 2 - 1)]
    assert round(statistics.median(walls), 1) == median
    waits = [round(wait + d, 1) for d in (-1.0, -0.1, 0.1, 1.0)] if n == 4 else [wait] * n
    lines = []
    for wall, w in zip(walls, waits, strict=True):
        gemm = w + 50.0
        lines.append(
            f"[bs] M={rows:2d} start= 0 wall= {wall:.1f} | embed= 1.0 | layers= {gemm + 40:.1f} (gemm pack= 0.0 ql= 49.00 "
            f"wait= {w:.1f} rb= 1.0 sum= {gemm:.1f} host= 40.0 n=112) | epilogue= {wall - gemm - 41.0:.1f} "
            f"(head= {wall - gemm - 41.0:.1f} sum= 1.0 host= {wall - gemm - 42.0:.1f})"
        )
    return lines


def test_the_published_figures_come_out_to_the_digit(place: Place) -> None:
    figures = {
        5: (1049.1, 1025.0, 1067.9, 872.2),
        8: (1056.1, 1039.5, 1076.2, 864.2),
        16: (1073.4, 1054.3, 1085.5, 854.0),
        17: (6992.2, 6906.0, 7017.6, 6335.5),
    }
    warm = (
        "[bs] M={:2d} start= 0 wall= 9999.9 | embed= 0.0 | layers= 9999.9 (gemm pack= 0.0 ql= 0.00 wait= 9999.9 rb= 0.0 "
        "sum= 9999.9 host= 0.0 n=112) | epilogue= 0.0 (head= 0.0 sum= 0.0 host= 0.0)"
    )
    lines = {str(m): [warm.format(m)] * 2 + published(*f, m, 4) for m, f in figures.items()}
    steps = published(1021.2, 1005.9, 1065.5, 852.9, 1, 32)
    # Two warm-up steps, three canary steps, then the measured ones; the last canary goes round to the warm-up lines.
    lines["1"] = [warm.format(1)] * 2 + [steps[1]] * 3 + steps + [steps[1]] * 3
    done = place.run(
        "--rows", "5,8,16,17", "--repeats", "2", "--steps", "8", spawn=place.script(lines=lines, **{"import": IMPORT})
    )
    ran(done, place)
    assert (
        done.stdout.splitlines()[
            next(i for i, s in enumerate(done.stdout.splitlines()) if s.startswith("npuprof ")) + 1
        ]
        == IMPORT
    )
    for m, (median, low, high, wait) in figures.items():
        assert (
            f"pass M={m}:  n=4 wall median {median} ms (min {low} max {high}), device wait median {wait}" in done.stdout
        )
    assert "decode step: n=32 wall median 1021.2 ms (min 1005.9 max 1065.5)" in done.stdout
    assert "no interval: 2 blocks, 3 are needed" in done.stdout
    assert place.record()["summary"]["passes"]["5"]["ratio_to_step"]["low"] is None
    assert {p["kind"] for p in place.record()["passes"]} == {"step", "prefill"}
    assert "passes  are prefills" in done.stdout


@pytest.mark.parametrize("source", ["file", "unix", "fifo"])
def test_log_sources(place: Place, source: str) -> None:
    log = place.folder / "log"
    script = place.folder / "script.json"
    script.write_text(json.dumps({"import": IMPORT}))
    command = [sys.executable, str(FAKES / "scripted_server.py"), str(place.port), str(script)]
    if source == "file":
        place.start([*command, str(log)])
    elif source == "fifo":
        os.mkfifo(log)
        place.start([*command, str(log)])
    else:
        pump = (
            "import socket, subprocess, sys, time\n"
            "p = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "while s.connect_ex(sys.argv[1]): time.sleep(0.05)\n"
            "while c := p.stderr.read1(): s.sendall(c)\n"
        )
        place.start([sys.executable, "-c", pump, str(log), *command, "stderr"], start_new_session=True)
    if source != "fifo":
        wait_for(lambda: httpx.get(f"{place.url}/v1/models").status_code == 200)
    done = place.run("--rows", "2,5", "--repeats", "3", log=f"{source}:{log}")
    if source == "unix":
        os.killpg(place.started[-1].pid, 9)
    ran(done, place)
    record = place.record()
    assert record["summary"]["passes"]["5"]["median_ms"] == 15.0
    assert record["provenance"]["pack"]["import_line"] == IMPORT


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ({"split": 4}, "the server split the 8 rows into passes of 4 and 4: above its limit"),
        ({"hide": 3}, "the server ran 5 rows of 8: a cached prefix hid the others"),
        ({"foreign": 9}, "a pass of M=9 of somebody else ran in between"),
        ({"lines": {"8": ["[bs] M= 8 start= 0 wall= nan | embed"]}}, "a pass line could not be read: wall= is no time"),
    ],
)
def test_what_was_not_asked_for_is_named_and_not_counted(place: Place, script: dict[str, Any], said: str) -> None:
    done = place.run("--rows", "8", "--repeats", "3", spawn=place.script(**script))
    assert done.returncode == 4, done.stdout + done.stderr
    void = {p["void_reason"] for p in place.record()["passes"] if p["phase"] == "void" and p["rows"] == 8}
    assert any(said in str(v) for v in void), void


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ({"silent": True}, 3, "the server answered and logged no pass line in stderr"),
        ({"status": 500, "status_text": "out of [bold]memory\x1b[2J"}, 3, "answered 500: out of [bold]memory\\x1b[2J"),
        ({"status": 429, "status_after": 12}, 3, "answered 429: no"),
        ({"garbage": True}, 3, "answered something that is no completion: '<html>'"),
        ({"die_after": 14}, 3, "broke off"),
        (
            {"import": IMPORT.replace("incomplete 0", "incomplete 7")},
            4,
            "the server's import is incomplete: import: incomplete 7",
        ),
        ({"slow_by": 2}, 4, "the client's times drift from the server's by"),
    ],
)
def test_failures_by_the_sentence_that_a_user_reads(place: Place, script: dict[str, Any], code: int, said: str) -> None:
    done = place.run("--rows", "2", "--repeats", "3", spawn=place.script(**script))
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    if script.get("status_after") or script.get("die_after"):
        assert place.record()["passes"], "what was measured is kept"


def test_loading_is_waited_for_with_progress(place: Place) -> None:
    done = place.run("--rows", "2", "--repeats", "3", spawn=place.script(loading=3))
    ran(done, place)
    assert f"waiting: the server at {place.url}" in done.stdout
    assert "import not seen" in done.stdout


def test_nobody_there_and_a_server_that_does_not_start(place: Place) -> None:
    refused = place.run("--rows", "2", log=None)
    assert refused.returncode == 3
    assert "does not answer (ConnectError): is it running? curl" in refused.stderr
    died = place.run("--rows", "2", spawn="false")
    assert died.returncode == 3
    assert "the server that was started ended with code 1" in died.stderr
    unknown = place.run("--rows", "2", spawn="no-such-server")
    assert unknown.returncode == 2
    assert "--spawn 'no-such-server': cannot be started" in unknown.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--url", "ftp://x"), "--url: must begin with http"),
        (("--url", "http://me:secret@x"), "--url: must not carry credentials; set NPUPROF_API_KEY or"),
        (("--url", "http://x", "--log", "magic:y"), "--log: must be file:PATH, journal:UNIT"),
        (("--url", "http://x", "--log", "stderr"), "--log: stderr is that of a server which --spawn starts"),
    ],
)
def test_wrong_requests(place: Place, args: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [*NPUPROF, "run", "--target", "serve", *args], env=place.env, cwd=place.folder, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "secret" not in done.stdout


@pytest.mark.parametrize("way", ["variable", "file"])
def test_the_key_is_sent_and_never_kept(place: Place, way: str) -> None:
    if way == "variable":
        place.env["NPUPROF_API_KEY"] = "sesame-4711"
    else:
        secret = place.folder / "key"
        secret.write_text("sesame-4711\n")
        place.env["NPUPROF_CONFIG"] = str(place.folder / "config.yaml")
        (place.folder / "config.yaml").write_text(f"serve: {{api_key_file: {secret}}}")
        secret.chmod(0o644)
        readable = place.run("--rows", "2", log=None)
        assert readable.returncode == 2
        assert f"everybody may read it; type: chmod o-r {secret}" in readable.stderr
        secret.chmod(0o600)
    done = place.run("--rows", "2", "--repeats", "3", spawn=place.script(key="sesame-4711"))
    ran(done, place)
    kept = "".join(p.read_text() for p in (place.folder / "state").rglob("*") if p.is_file())
    assert "sesame" not in kept + done.stdout + done.stderr


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ({"ids": False}, "words, counted by /tokenize"),
        ({"ids": False, "tokenize": False}, "words, counted by trial"),
        ({"ids": False, "tokenize": False, "uncounted": True}, "words, counted by trial"),
    ],
)
def test_prompts_of_exactly_so_many_tokens(place: Place, script: dict[str, Any], how: str) -> None:
    done = place.run("--rows", "5", "--repeats", "3", spawn=place.script(**script))
    ran(done, place)
    assert how in place.record()["target"]["backend"]
    assert {p["rows"] for p in place.record()["passes"] if p["phase"] == "measure"} == {1, 5}


def test_without_lines_only_wall_times_are_known(place: Place) -> None:
    done = place.run("--rows", "2", "--repeats", "3", spawn=place.script(silent=True), log=None)
    assert done.returncode in (0, 4), done.stdout + done.stderr
    record = place.record()
    assert "source  no pass lines: only wall times are known" in done.stdout
    assert all(set(p["terms"].values()) == {None} and p["rest_ms"] is None for p in record["passes"])
    assert {p["extra"]["from"] for p in record["passes"]} == {
        "time to first token, HTTP included",
        "time between two streamed tokens",
    }
    steps = [p["wall_ms"] for p in record["passes"] if p["rows"] == 1]
    assert min(steps) > 3
    talks = place.run("--rows", "2", "--repeats", "1", spawn=place.script(silent=True, chatter=100_000), log=None)
    assert "pass M=2:  n=2 wall median" in talks.stdout, "what it prints fills no pipe that nobody reads"
    broken = place.run("--rows", "2", spawn=place.script(silent=True, break_stream=True), log=None)
    assert broken.returncode == 3
    assert "broke its stream off after" in broken.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed (make test does it)"
)
def test_a_real_llama_cpp_server_and_a_real_model(place: Place) -> None:
    done = place.run(
        "--rows",
        "2,8",
        "--start",
        "0,64",
        "--repeats",
        "3",
        spawn=f"{sys.executable} {FAKES / 'llama_server.py'} {place.port}",
        log=None,
    )
    assert done.returncode in (0, 4), done.stdout + done.stderr
    record = place.record()
    passes = [p for p in record["passes"] if p["rows"] > 1]
    assert {p["extra"]["from"] for p in passes if p["phase"] != "void"} == {"the server's timings.prompt_ms"}
    assert not [p for p in passes if p["phase"] == "void"]
    assert record["summary"]["passes"]["8@64"]["ratio_to_step"]["value"] > 1
    assert all(p["kind"] == "prefill" for p in passes)


def test_the_reference_servers_own_interface(place: Place) -> None:
    process = place.start(
        [*NPUPROF, "serve-reference", "--port", str(place.port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().decode() == f"listening on {place.url}\n"
    with httpx.Client(base_url=place.url, timeout=60) as http:
        assert http.get("/health").json() == {"status": "ok"}
        assert http.get("/v1/models").json()["data"][0]["meta"]["simulated"] is True
        ids = [5, 300, 4000, 77, 0x41]
        text = http.post("/detokenize", json={"tokens": ids}).json()["content"]
        assert http.post("/tokenize", json={"content": text}).json()["tokens"] == ids
        whole = http.post("/v1/completions", json={"prompt": ids, "max_tokens": 6, "logprobs": 2}).json()
        assert whole["usage"] == {
            "prompt_tokens": 5,
            "completion_tokens": 6,
            "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        chosen = [c["id"] for c in whole["choices"][0]["logprobs"]["content"]]
        again = http.post("/v1/completions", json={"prompt": text, "max_tokens": 6, "stream": True, "logprobs": 1}).text
        chunks = [json.loads(line[6:]) for line in again.splitlines() if line.startswith("data: {")]
        assert [c["choices"][0]["logprobs"]["content"][0]["id"] for c in chunks[:-1]] == chosen
        assert chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 4, "its prefix was in the cache"
        assert again.rstrip().endswith("data: [DONE]")
        stop = http.post("/detokenize", json={"tokens": chosen[2:3]}).json()["content"]
        cut = http.post("/v1/completions", json={"prompt": ids, "max_tokens": 6, "stop": stop}).json()["choices"][0]
        assert cut["finish_reason"] == "stop"
        assert cut["text"] == http.post("/detokenize", json={"tokens": chosen[:2]}).json()["content"]
        echo = http.post(
            "/v1/completions", json={"prompt": [9, 8, 7], "max_tokens": 1, "echo": True, "logprobs": 1}
        ).json()
        assert [c["id"] for c in echo["choices"][0]["logprobs"]["content"]][:3] == [9, 8, 7]
        for body, said in (
            ({"prompt": []}, "the prompt is empty"),
            ({"prompt": [99999]}, "outside 0..4095"),
            ({"prompt": [1] * 2080, "max_tokens": 9}, "exceed the context of 2080"),
            ({"prompt": "x", "temperature": 1}, "temperature must be 0"),
            ({"max_tokens": 3}, "prompt: Field required"),
        ):
            refused = http.post("/v1/completions", json=body)
            assert refused.status_code == 400
            assert said in refused.json()["error"]["message"]
            assert refused.json()["error"]["type"] == "invalid_request_error"
        with http.stream(
            "POST", "/v1/completions", json={"prompt": [1, 2], "max_tokens": 2000, "stream": True}
        ) as left:
            next(left.iter_lines())
        begin = time.monotonic()
        assert http.post("/v1/completions", json={"prompt": [3], "max_tokens": 1}).status_code == 200
        assert time.monotonic() - begin < 50, "a client that left must free the server: 2,000 steps take minutes"
    process.kill()
    assert process.stderr is not None
    log = process.stderr.read().decode()
    process.stdout.close()
    process.stderr.close()
    assert log.startswith(
        "import: incomplete 0 | attention 56/56 tiles byte for byte | MLP 56/56 groups byte for byte | "
    )
    assert "[bs] M= 5 start= 0 wall=" in log
    taken = subprocess.run(
        [*NPUPROF, "serve-reference", "--host", "203.0.113.1"], env=place.env, capture_output=True, text=True
    )
    assert taken.returncode == 3
    assert "cannot listen there" in taken.stderr
