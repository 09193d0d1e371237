"""Driver phases on the real tracefs of this machine: uprobes on a fake driver's functions, named into the system amdxdna."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FAKES = Path(__file__).parents[1] / "fakes"
TRACEFS = Path("/sys/kernel/tracing")
NPUPROF = [sys.executable, "-m", "npuprof"]
PROBES = {
    "amdxdna_debug_point": ("fake_debug_point", "name=+0(%di):ustring number=%si:u64 str=+0(%dx):ustring"),
    "xdna_job": ("fake_job", "name=+0(%di):ustring seq=%si:u64 str=+0(%dx):ustring"),
    "xdna_job_queue": ("fake_job_queue", "name=+0(%di):ustring seq=%si:u64 str=+0(%dx):ustring"),
    "mbox_set_tail": ("fake_set_tail", "name=+0(%di):ustring chann=%si:u64 id=%dx:x64 opcode=%cx:x64"),
    "mbox_irq_handle": ("fake_irq", "name=+0(%di):ustring chann=%si:u64"),
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("gcc") is None or os.uname().machine != "x86_64",
    reason="needs root, gcc and x86_64",
)


def _define(line: str) -> None:
    """Appended without a seek, which that file refuses."""
    fd = os.open(TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, f"{line}\n".encode())
    finally:
        os.close(fd)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The library with its uprobes; both gone afterwards."""
    if not (TRACEFS / "uprobe_events").exists():
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(TRACEFS)], check=False)
    if not (TRACEFS / "uprobe_events").exists():
        pytest.skip("this kernel has no uprobes")
    # One pair of probes a machine: another worker of this test run waits for its turn.
    with Path("/tmp/npuprof-test-uprobes.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if (TRACEFS / "events/amdxdna").exists():
            pytest.skip("a real amdxdna driver is here")
        yield from _probed(tmp_path_factory)


def _probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    library = tmp_path_factory.mktemp("driver") / "libfake.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(FAKES / "fake_driver.c")], check=True)
    table = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True).stdout
    offsets = {line.split()[2]: line.split()[0] for line in table.splitlines() if len(line.split()) == 3}
    names = []
    try:
        for event, (function, fields) in PROBES.items():
            _define(f"p:amdxdna/{event} {library}:0x{offsets[function]} {fields}")
            names.append(event)
        yield library
    finally:
        for event in names:
            _define(f"-:amdxdna/{event}")


@pytest.fixture
def env(driver: Path, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(FAKES),
        "FAKE_DRIVER": str(driver),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NPUPROF_HOLD_DIR": str(tmp_path / "hold"),
    }


def run(env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*NPUPROF, *args], env=env, capture_output=True, text=True, timeout=120)


def campaign(env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return run(env, "run", "--target", "traced_target:make", "--device", "traced0", "--rows", "2", "--phases", *args)


def record(env: dict[str, str]) -> dict[str, Any]:
    [file] = (Path(env["XDG_STATE_HOME"]) / "npuprof/runs").glob("*.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_tracing_campaign(env: dict[str, str], tmp_path: Path) -> None:
    done = campaign(env, "--repeats", "6")
    assert done.returncode in (0, 4), done.stdout + done.stderr
    found = record(env)
    phases = found["phases"]
    traced = [p for p in found["passes"] if p["extra"].get("traced")]
    assert len(traced) == 2 * 2 * 6
    assert found["summary"]["passes"]["2"]["n"] == 12, "traced passes are in no statistic with the others"
    assert len(phases["passes"]) == len(traced)
    for entry in phases["passes"]:
        assert entry["launches"] == 4
        assert sum(entry["phases"].values()) == pytest.approx(entry["device_wait_ms"], abs=1e-6)
        # The fake device sleeps 2 ms a launch between doorbell and interrupt.
        assert 8.0 <= entry["phases"]["device_ms"] <= entry["device_wait_ms"]
    [launch] = phases["launches"]
    assert launch["name"] == "gemm"
    assert launch["n"] == 4 * len(traced)
    assert launch["phases"]["device_ms"] > 2.0
    assert launch["spread"]["queue_ms"]["n"] == launch["n"]
    if (TRACEFS / "events/syscalls/sys_exit_ioctl").exists():
        assert launch["spread"]["wake_ms"]["n"] == launch["n"]
        assert launch["phases"]["wake_ms"] < launch["phases"]["device_ms"]
    assert set(phases["cost"]) == {"step", "rows=2"}
    assert phases["cost"]["rows=2"]["blocks"] == 6
    assert (phases["lost"], phases["timedout"], phases["unjoined"]) == (0, 0, 0)
    assert not list((TRACEFS / "instances").glob("npuprof-*"))
    shown = run(env, "show", "latest", "--phases")
    assert "phase     median" in shown.stdout
    assert "recording costs rows=2: x " in shown.stdout
    exported = run(env, "export", "latest", "--format", "perfetto", "--out", str(tmp_path / "p.json"))
    assert exported.returncode == 0, exported.stderr
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    for e in events:
        # The Trace Event Format: complete events with a start and a duration in us, metadata with a name.
        assert e["ph"] in ("X", "M")
        assert isinstance(e["pid"], int)
        assert isinstance(e["args"], dict)
        if e["ph"] == "X":
            assert isinstance(e["tid"], int)
            assert e["ts"] > 0
            assert e["dur"] >= 0
    device = [e for e in events if e.get("name") == "device"]
    waits = [e for e in events if e.get("name") == "gemm wait"]
    assert len(device) == 4 * len(traced)
    assert len(waits) == 4 * len(found["passes"])
    # One axis: every device phase lies inside a launch's wait or overlaps it.
    assert all(any(w["ts"] - 500 <= d["ts"] <= w["ts"] + w["dur"] for w in waits) for d in device[:20])
    assert run(env, "check", "latest").returncode == done.returncode
    trace = next((Path(env["XDG_STATE_HOME"]) / "npuprof/runs").glob("*.trace"))
    alone = json.loads(run(env, "trace", str(trace), "--json").stdout)
    assert alone["launches"][0]["n"] == launch["n"]
    assert alone["passes"] == []


def test_no_events_while_passes_ran_is_an_error(env: dict[str, str]) -> None:
    done = campaign({**env, "FAKE_DRIVER_SILENT": "1"}, "--repeats", "3")
    assert done.returncode == 3
    assert "passes ran and no driver event came" in done.stderr
    assert record(env)["phases"] is None


def test_a_timeout_voids_its_pass_and_taints_the_window(env: dict[str, str]) -> None:
    done = campaign({**env, "FAKE_DRIVER_TIMEOUT_AT": "40"}, "--repeats", "3")
    assert done.returncode == 4, done.stderr
    found = record(env)
    assert found["phases"]["timedout"] == 1
    assert "job_timedout" in {r["code"] for r in found["trust"]["reasons"]}
    assert [p for p in found["passes"] if p["void_reason"] and "timed job" in p["void_reason"]]


def test_a_stale_instance_of_a_killed_run_is_cleared(env: dict[str, str]) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale = TRACEFS / f"instances/npuprof-{gone.pid}"
    stale.mkdir()
    assert campaign(env, "--repeats", "3").returncode in (0, 4)
    assert not stale.exists()


def test_without_the_right_or_the_driver_one_sentence(env: dict[str, str], tmp_path: Path) -> None:
    from collectors.tracepoints import NoTracing, Tracepoints

    with (tmp_path / "out").open("wb") as out:
        with pytest.raises(NoTracing, match="there is no tracefs at"):
            Tracepoints(out, tmp_path / "nowhere").open(4)
        (tmp_path / "instances").mkdir()
        with pytest.raises(NoTracing, match="sudo modprobe amdxdna"):
            Tracepoints(out, tmp_path).open(4)
