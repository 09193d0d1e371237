"""`npuprof run` as a process: records, exit codes, interrupts, failures of targets, the hold around it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAKES = Path(__file__).parents[1] / "fakes"
NPUPROF = [sys.executable, "-m", "npuprof"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(FAKES), "COLUMNS": "140"}


@pytest.fixture
def run(env: dict[str, str], tmp_path: Path) -> Run:
    def call(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*NPUPROF, *args], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=240, **more
        )

    return call


def records(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted((tmp_path / "state/npuprof/runs").glob("*.json"))]


def test_a_campaign_on_the_reference_target(run: Run, tmp_path: Path) -> None:
    """Trust depends on the machine's quiet; everything else does not."""
    done = run(
        "run",
        "--target",
        "reference",
        "--rows",
        "5,16,17",
        "--repeats",
        "6",
        "--seed",
        "7",
        "--json",
        "--reason",
        "why",
    )
    assert done.returncode in (0, 4), done.stderr
    record = json.loads(done.stdout)
    assert record == records(tmp_path)[0]
    assert record["target"]["simulated"] is True
    assert record["target"]["device"] == "reference transformer on the CPU, not an NPU"
    assert record["parity"]["checked"]
    assert record["parity"]["agreed"]
    assert record["ticket"]["reason"] == "why"
    assert record["errors"] is None
    assert record["seed"] == 7
    phases = [p["phase"] for p in record["passes"]]
    assert (phases.count("warmup"), phases.count("canary"), phases.count("measure")) == (8, 6, 48)
    for p in record["passes"]:
        assert sum(p["terms"].values()) + p["rest_ms"] == pytest.approx(p["wall_ms"], abs=2e-6)
        assert p["rest_ms"] >= -0.001
        assert re.match(r"\[bs\] M= ?\d+ start= 0 wall= ", p["line"])
    ends = [p["at_ns"] + p["wall_ms"] * 1e6 for p in record["passes"]]
    assert all(p["at_ns"] >= end for p, end in zip(record["passes"][1:], ends, strict=False)), "passes overlap"
    cliff = record["summary"]["cliff"]
    assert (cliff["last_cheap_rows"], cliff["first_costly_rows"]) == (16, 17)
    assert run("check", "latest").returncode == done.returncode


def test_plain_lines_report_and_copies(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "copy.json"
    done = run("run", "--target", "fake_targets:quick", "--rows", "2,16,17", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "#0 warmup step 10." in done.stdout
    assert "finding: fake target that states made-up times: a pass of k+1 rows costs" in done.stdout
    assert "\x1b" not in done.stdout
    assert json.loads(out.read_text()) == records(tmp_path)[0]
    assert run("show", str(out)).stdout.splitlines()[0] == next(
        line for line in done.stdout.splitlines() if line.startswith("npuprof ")
    )
    assert run("args", "latest", "--k", "16").stdout.startswith("--pass-ms 40.8")
    assert not list((tmp_path / "state/npuprof/runs").glob("*.log"))


def test_request_file_with_flags_winning(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "target: fake_targets:quick\nrows: [2, 3]\nrepeats: 4\nstart: [512, 0]\nsteps: 2\n"
    )
    done = run("run", "r.yaml", "--repeats", "3", "--quiet")
    assert done.returncode == 0, done.stderr
    record = records(tmp_path)[0]
    assert record["request"]["repeats"] == 3
    assert set(record["summary"]["passes"]) == {"2@512", "3@512", "2@0", "3@0"}
    assert record["summary"]["step"] == record["summary"]["by_start"]["512"]["step"]
    assert record["summary"]["step"]["n"] == 12
    assert "#0" not in done.stdout


def test_parity_that_fails_is_never_timed(run: Run, tmp_path: Path) -> None:
    done = run("run", "--target", "fake_targets:paritied", "--rows", "2,3,5", "--repeats", "3")
    assert done.returncode == 4
    record = records(tmp_path)[0]
    assert "rows=3" not in {p["condition"] for p in record["passes"]}
    assert record["parity"]["ties"] == 1
    assert [r["code"] for r in record["trust"]["reasons"]] == ["parity"]
    assert "row 1 gives token 7" in done.stdout
    assert "pass M=3:" not in done.stdout
    assert run("args", "latest", "--rows", "3").returncode == 4


def test_the_cliff_is_bisected_to_adjacent_rows(run: Run, tmp_path: Path) -> None:
    done = run("run", "--target", "fake_targets:quick", "--rows", "4,64", "--repeats", "3", "--find-cliff")
    assert done.returncode == 0, done.stderr
    cliff = records(tmp_path)[0]["summary"]["cliff"]
    assert (cliff["last_cheap_rows"], cliff["first_costly_rows"]) == (16, 17)
    assert "cliff between 4 and 64 rows: trying 34" in done.stdout
    none = run("run", "--target", "fake_targets:quick", "--rows", "4,8", "--repeats", "3", "--find-cliff")
    assert "nothing to bisect" in none.stdout


def test_a_budget_plans_the_rounds_and_says_the_cost(run: Run, tmp_path: Path) -> None:
    done = run("run", "--target", "fake_targets:quick", "--rows", "2", "--budget", "5")
    assert done.returncode == 0, done.stderr
    assert "rounds cost" in done.stdout
    ending = records(tmp_path)[0]["ending"]
    assert ending["rounds_done"] == ending["rounds_planned"] >= 6


def test_void_passes_are_kept_counted_and_cost_trust(run: Run, tmp_path: Path) -> None:
    done = run("run", "--target", "fake_targets:voiding", "--rows", "2,17")
    assert done.returncode == 4
    record = records(tmp_path)[0]
    void = [p for p in record["passes"] if p["phase"] == "void"]
    assert void
    assert {p["void_reason"] for p in void} == {"the fake device reported ERT_CMD_STATE_TIMEOUT"}
    assert record["summary"]["passes"]["17"]["void"] > 0
    assert "too_many_void" in [r["code"] for r in record["trust"]["reasons"]]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("failing", "the target failed: RuntimeError: the fake device said [red]no[/red]"),
        ("crashing", "the timed process was ended by signal 11"),
    ],
)
def test_a_target_that_fails_ends_with_what_was_measured(run: Run, tmp_path: Path, target: str, said: str) -> None:
    done = run("run", "--target", f"fake_targets:{target}", "--rows", "2,17")
    assert done.returncode == 3
    assert said in done.stderr
    record = records(tmp_path)[0]
    assert record["ending"]["how"] == "failed"
    assert len(record["passes"]) == 20
    assert record["trust"]["ratios"] == "not_trusted"
    assert "finding:" in done.stdout
    status = json.loads(run("hold", "status", "--json").stdout)
    assert status["devices"]["reference"]["holder"] is None
    if target == "failing":
        [log] = (tmp_path / "state/npuprof/runs").glob("*.log")
        assert "RuntimeError" in log.read_text()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("untyped", "the target gave a pass that cannot be kept: launches: "),
        ("timeless", "the target's stamps are no whole nanoseconds in order"),
    ],
)
def test_what_is_no_time_never_becomes_a_number(run: Run, tmp_path: Path, target: str, said: str) -> None:
    done = run("run", "--target", f"fake_targets:{target}", "--rows", "2", "--json")
    assert done.returncode == 3
    assert said in done.stderr
    assert json.loads(done.stdout) == records(tmp_path)[0], "one object, and what was measured is kept"
    assert len(records(tmp_path)[0]["passes"]) in (5, 6)
    assert run("show", "latest").returncode == 0


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("fake_targets:no_target", 2, "has no describe()"),
        ("no_such:thing", 2, "no module named 'no_such'"),
        ("fake_targets:broken_factory", 3, "OSError: no such fake device"),
    ],
)
def test_a_target_that_cannot_start_leaves_no_record(
    run: Run, tmp_path: Path, target: str, code: int, said: str
) -> None:
    done = run("run", "--target", target)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert records(tmp_path) == []


def test_a_targets_own_words_go_to_the_log(run: Run, tmp_path: Path) -> None:
    done = run("run", "--target", "fake_targets:chatty", "--rows", "2", "--repeats", "3")
    assert done.returncode == 0
    [log] = (tmp_path / "state/npuprof/runs").glob("*.log")
    assert "on standard output" in log.read_text()
    assert "on standard error" in log.read_text()


def started(env: dict[str, str], tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*NPUPROF, "run", *args], env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "measure round" in line:
            return process
    raise AssertionError(process.stderr.read() if process.stderr else "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_cleanly_with_what_was_measured(
    env: dict[str, str], tmp_path: Path, number: int, code: int
) -> None:
    process = started(env, tmp_path, "--target", "fake_targets:slow", "--rows", "2", "--repeats", "500")
    time.sleep(0.3)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the campaign was interrupted" in out
    record = records(tmp_path)[0]
    assert record["ending"]["how"] == "interrupted"
    assert [p for p in record["passes"] if p["phase"] == "measure"]


def test_a_second_interrupt_ends_at_once(env: dict[str, str], tmp_path: Path) -> None:
    process = started(env, tmp_path, "--target", "fake_targets:stuck", "--rows", "2", "--warmup", "0")
    for _ in range(2):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=25)
    assert process.returncode == 130
    assert records(tmp_path)[0]["ending"]["how"] == "interrupted"


def test_ctrl_c_while_waiting_for_the_hold(env: dict[str, str], tmp_path: Path) -> None:
    holder = subprocess.Popen([*NPUPROF, "hold", "run", "--", "sleep", "60"], env=env, cwd=tmp_path)
    wait_for_holder(env, tmp_path)
    process = subprocess.Popen(
        [*NPUPROF, "run", "--target", "fake_targets:quick"], env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("waiting for reference: held by pid")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    holder.kill()
    holder.wait()
    assert records(tmp_path) == []


def wait_for_holder(env: dict[str, str], tmp_path: Path) -> dict[str, Any]:
    for _ in range(200):
        found = subprocess.run(
            [*NPUPROF, "hold", "status", "--json"], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        holder: dict[str, Any] | None = json.loads(found.stdout)["devices"]["reference"]["holder"]
        if holder is not None:
            return holder
    raise AssertionError("nobody took the hold")


def test_busy_and_status(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [*NPUPROF, "hold", "run", "--reason", "bring-up [bs]", "--", "sleep", "60"], env=env, cwd=tmp_path
    )
    seen = wait_for_holder(env, tmp_path)
    assert seen["reason"] == "bring-up [bs]"
    assert seen["pid"] == holder.pid
    busy = run("run", "--target", "fake_targets:quick", "--hold-timeout", "0")
    assert busy.returncode == 75
    assert f"held by pid {holder.pid}" in busy.stderr
    assert run("hold", "run", "--hold-timeout", "0.1", "--quiet", "--", "true").returncode == 75
    assert f"reference (advisory): pid {holder.pid}" in run("hold", "status").stdout
    holder.kill()
    holder.wait()
    assert "reference (advisory): free" in run("hold", "status").stdout


def test_hold_run_passes_codes_and_signals_through(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    assert run("hold", "run", "--", "sh", "-c", "exit 42").returncode == 42
    assert run("hold", "run", "--", "sh", "-c", "kill -TERM $$").returncode == 143
    assert run("hold", "run", "--", "no-such-command").returncode == 127
    (tmp_path / "plain").write_text("")
    assert run("hold", "run", "--", "./plain").returncode == 126
    trap = "trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [*NPUPROF, "hold", "run", "--", "sh", "-c", trap], env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (7, "got\n")


def test_the_command_dies_with_its_wrapper(env: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*NPUPROF, "hold", "run", "--", "sh", "-c", "echo $$; exec sleep 60"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.stdout.close()
    process.kill()
    process.wait()
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    raise AssertionError("the command outlived its wrapper")


def test_a_descendant_keeps_the_hold_until_it_ends(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    done = run("hold", "run", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    pid = int(done.stdout)
    assert done.returncode == 0
    assert json.loads(run("hold", "status", "--json").stdout)["devices"]["reference"]["holder"]["pid"] == pid
    assert run("hold", "run", "--hold-timeout", "0", "--", "true").returncode == 75
    os.kill(pid, signal.SIGKILL)
    assert run("hold", "run", "--hold-timeout", "20", "--", "true").returncode == 0


def test_a_campaign_inside_a_hold_rides_on_it(run: Run, tmp_path: Path) -> None:
    inner = [*NPUPROF, "run", "--target", "fake_targets:quick", "--rows", "2", "--repeats", "3", "--quiet"]
    done = run("hold", "run", "--", *inner)
    assert done.returncode == 0, done.stderr
    assert records(tmp_path)[0]["ticket"]["through"] == "an enclosing npuprof hold"


def test_a_sites_own_hold_command_is_used_instead(run: Run, tmp_path: Path) -> None:
    site = tmp_path / "sitehold"
    site.write_text('#!/bin/sh\necho "$1 $2" >> took\n[ -e busy ] && exit 75\nshift 2\nexec "$@"\n')
    site.chmod(0o755)
    (tmp_path / "c.yaml").write_text(f'hold:\n  command: ["{site}", "{{device}}", "{{reason}}"]\n')
    common = ("--config", "c.yaml", "--reason", "why")
    done = run("run", "--target", "fake_targets:quick", "--rows", "2", "--repeats", "3", *common)
    assert done.returncode == 0, done.stderr
    assert records(tmp_path)[0]["ticket"]["through"] == f"command {site}"
    assert run("hold", "run", *common, "--", "sh", "-c", "exit 9").returncode == 9
    assert (tmp_path / "took").read_text() == "reference why\n" * 2
    assert "this site's own hold is used" in run("hold", "status", "--config", "c.yaml").stdout
    (tmp_path / "busy").touch()
    busy = run("run", "--target", "fake_targets:quick", *common)
    assert busy.returncode == 75
    assert "did not obtain the hold" in busy.stderr
    site.unlink()
    gone = run("run", "--target", "fake_targets:quick", *common)
    assert gone.returncode == 2
    assert "cannot be started" in gone.stderr


def test_a_reader_that_goes_away_is_no_error(env: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[1] batch=2 tok=2 9ms attn=1ms lm=2ms\n" * 20_000)
    pipe = f"{sys.executable} -m npuprof parse {log} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", pipe], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
