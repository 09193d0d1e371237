"""The daemon as processes: campaigns through it, watchers, and the faults that it must survive."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ports import wait_for

FAKES = Path(__file__).parents[1] / "fakes"
SOAK = Path(__file__).parents[2] / "benchmarks/daemon_soak.py"
NPUPROF = [sys.executable, "-m", "npuprof"]
QUICK = ("--target", "fake_targets:Counted", "--device", "fake0", "--rows", "2", "--warmup", "1")
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Daemon:
    """A daemon of its own state; `config` is its configuration file."""

    def __init__(self, folder: Path, config: str = "") -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir()
        self.socket = folder / "s.sock"
        (folder / "config.yaml").write_text(
            config or "daemon: {targets: ['fake_targets:Counted', 'fake_targets:Quick']}"
        )
        self.env = {
            **os.environ,
            "PYTHONPATH": str(FAKES),
            "COLUMNS": "140",
            "STATE_DIRECTORY": str(self.state),
            "NPUPROF_SOCKET": str(self.socket),
            "NPUPROF_HOLD_DIR": str(folder / "hold"),
            "NPUPROF_CONFIG": str(folder / "config.yaml"),
            "COUNTED_LOG": str(folder / "starts"),
        }
        self.http = httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), base_url="http://d", timeout=20)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **more: Any) -> subprocess.Popen[bytes]:
        with (self.folder / "daemon.log").open("ab") as log:
            command = [sys.executable, "-m", "npuprof.daemon.main"]
            self.process = subprocess.Popen(
                command, env=self.env, stdout=log, stderr=log, start_new_session=True, **more
            )
        wait_for(self._listens)
        return self.process

    def _listens(self) -> bool:
        # A connection that httpx cannot make leaves its socket open: ask without it first.
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(self.socket)):
                return False
        return self.http.get("/v1/health").status_code == 200

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*NPUPROF, *args], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=120
        )

    def submit(self, *args: str) -> str:
        done = self.run("submit", *QUICK, *args)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def campaign(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/v1/campaigns/{run_id}").json()
        return found

    def measuring(self, run_id: str) -> int:
        """Waits until its first pass is over; the worker's pid."""
        [spool] = list(self.spools(run_id))
        wait_for(lambda: b'"event": "pass"' in spool.read_bytes())
        pid: int = json.loads(spool.read_text().splitlines()[0])["data"]["pid"]
        return pid

    def spools(self, run_id: str) -> Iterator[Path]:
        wait_for(lambda: any((self.state / "work").glob(f"{run_id}.*.events")))
        yield from (self.state / "work").glob(f"{run_id}.*.events")

    def close(self) -> None:
        self.http.close()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    d = Daemon(tmp_path)
    yield d
    d.close()


def test_a_campaign_from_submit_to_report(daemon: Daemon) -> None:
    daemon.start()
    first, second = daemon.submit("--repeats", "12", "--reason", "[bold]one"), daemon.submit("--repeats", "3")
    third = daemon.submit("--repeats", "3")
    queued = daemon.run("queue")
    assert "[bold]one" in queued.stdout
    waiting = [c["id"] for c in json.loads(daemon.run("queue", "--json").stdout)["campaigns"]]
    assert waiting == [i for i in (first, second, third) if i in waiting]
    assert third in waiting
    assert daemon.run("cancel", third).stdout == f"{third}: cancelled\n"
    done = daemon.run("watch", first)
    assert done.returncode == 0, done.stderr
    assert "pass M=2:  n=24 wall median" in done.stdout
    assert "fake target that states made-up times" in done.stdout
    plain = daemon.run("run", *QUICK, "--repeats", "3")
    assert daemon.run("watch", second).returncode == plain.returncode == 0
    assert daemon.run("watch", third).returncode == 130
    assert daemon.run("watch", "--once", first).stdout.startswith(f"{first}: done, ")
    record = json.loads((daemon.state / "runs" / f"{first}.json").read_text())
    assert record["id"] == first
    assert record["provenance"]["requested_by"]
    assert json.loads(daemon.run("watch", "--once", "--json", second).stdout)["record"]["id"] == second
    assert list((daemon.state / "work").iterdir()) == []
    maps = Path(f"/proc/{daemon.process.pid}/maps").read_text() if daemon.process else ""
    assert "pydantic_core" in maps
    assert "numpy" not in maps
    assert "pyxrt" not in maps


def test_the_daemon_is_killed_in_the_middle_and_the_campaign_followed_by_the_next(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "20")
    watcher = subprocess.Popen(
        [*NPUPROF, "watch", run_id], env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    daemon.measuring(run_id)
    daemon.kill()
    time.sleep(0.3)
    daemon.start()
    out, err = watcher.communicate(timeout=60)
    assert watcher.returncode == 0, err
    shown = [line for line in out.splitlines() if line.startswith("#")]
    assert len(shown) == len({s.split()[0] for s in shown}), "no pass is shown twice"
    record = daemon.campaign(run_id)["record"]
    assert len(shown) == len(record["passes"])
    assert record["trust"]["ratios"] == "trusted"
    assert (daemon.folder / "starts").read_text().split() == [run_id]


def test_a_killed_worker_is_named_and_what_it_measured_is_kept(daemon: Daemon) -> None:
    daemon.start()
    run_id, after = daemon.submit("--repeats", "50"), daemon.submit("--repeats", "1")
    os.kill(daemon.measuring(run_id), signal.SIGKILL)
    done = daemon.run("watch", run_id)
    assert done.returncode == 3
    assert "aborted: its worker was killed or crashed" in done.stderr
    assert daemon.campaign(run_id)["record"]["passes"]
    shown = subprocess.run(
        [*NPUPROF, "check", str(daemon.state / "runs" / f"{run_id}.json")],
        env=daemon.env,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 4
    assert "its worker was killed" in shown.stdout + shown.stderr
    assert daemon.run("watch", after).returncode in (0, 4)


def test_killed_while_the_daemon_is_down(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "50")
    worker = daemon.measuring(run_id)
    daemon.kill()
    os.kill(worker, signal.SIGKILL)
    daemon.start()
    wait_for(lambda: daemon.campaign(run_id)["state"] == "aborted")
    assert daemon.campaign(run_id)["record"]["passes"]


def test_a_worker_that_never_began_is_started_again(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "1")
    daemon.run("watch", run_id)
    daemon.kill()
    import sqlite3

    with contextlib.closing(sqlite3.connect(daemon.state / "queue.sqlite")) as db, db:
        db.execute("UPDATE campaigns SET state='running', ended=NULL, exit_code=NULL")
    (daemon.state / "runs" / f"{run_id}.json").unlink()
    daemon.start()
    wait_for(lambda: daemon.campaign(run_id)["state"] == "done")
    assert daemon.campaign(run_id)["record"]["id"] == run_id


def test_cancel_and_the_longest_runtime(daemon: Daemon) -> None:
    (daemon.folder / "config.yaml").write_text("daemon: {targets: ['fake_targets:Counted'], max_runtime_s: 1.5}")
    daemon.start()
    run_id, long = daemon.submit("--repeats", "500"), daemon.submit("--repeats", "500")
    daemon.measuring(run_id)
    assert daemon.run("cancel", run_id).returncode == 0
    done = daemon.run("watch", run_id)
    assert done.returncode == 130
    assert daemon.campaign(run_id)["record"]["ending"]["how"] == "interrupted"
    assert daemon.run("cancel", run_id).returncode == 2
    assert daemon.run("watch", long).returncode == 130
    assert daemon.campaign(long)["state"] == "cancelled"


def test_fifty_watchers_one_of_them_deaf(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "30")
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(str(daemon.socket))
    deaf.sendall(f"GET /v1/campaigns/{run_id}/events HTTP/1.1\r\nHost: d\r\n\r\n".encode())
    ends: list[dict[str, Any]] = []

    def watch() -> None:
        with (
            httpx.Client(
                transport=httpx.HTTPTransport(uds=str(daemon.socket)), base_url="http://d", timeout=60
            ) as http,
            http.stream("GET", f"/v1/campaigns/{run_id}/events") as answer,
        ):
            kind, passes = "", set()
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                    if kind == "pass":
                        passes.add(data["seq"])
                    for e in data.get("events", []):
                        if e["event"] == "pass":
                            passes.add(e["data"]["measured"]["seq"])
                    if kind == "end":
                        ends.append({**data, "passes": len(passes)})

    threads = [threading.Thread(target=watch) for _ in range(50)]
    for t in threads:
        t.start()
        time.sleep(0.02)
    for t in threads:
        t.join(90)
    deaf.close()
    assert len(ends) == 50
    everything = len(daemon.campaign(run_id)["record"]["passes"])
    assert {(e["exit_code"], e["passes"]) for e in ends} == {(0, everything)}


def test_watchers_that_leave_in_the_middle_stop_nobody(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "30")
    daemon.measuring(run_id)
    for n in range(60):
        leaving = socket.socket(socket.AF_UNIX)
        leaving.connect(str(daemon.socket))
        leaving.sendall(f"GET /v1/campaigns/{run_id}/events HTTP/1.1\r\nHost: d\r\n\r\n".encode())
        time.sleep(0.002 * (n % 20))
        leaving.close()
    wait_for(lambda: daemon.campaign(run_id)["state"] == "done")
    assert daemon.campaign(run_id)["record"]["ending"]["how"] == "done"


def test_a_thousand_campaigns_wait_in_order(daemon: Daemon) -> None:
    daemon.start()
    ids = [daemon.submit("--repeats", "500")]
    body = {"target": "fake_targets:Counted", "device": "fake0", "rows": [2], "repeats": 1}
    answers = [daemon.http.post("/v1/campaigns", json=body).json() for _ in range(999)]
    assert [a["position"] for a in answers] == list(range(1, 1000))
    daemon.kill()
    daemon.start()
    found = daemon.http.get("/v1/campaigns").json()["campaigns"]
    assert [c["id"] for c in found] == [*ids, *(a["id"] for a in answers)]
    with_worker = daemon.measuring(ids[0])
    os.kill(with_worker, signal.SIGKILL)


def test_malformed_oversized_and_slow_requests(daemon: Daemon) -> None:
    daemon.start()
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(str(daemon.socket))
    slow.sendall(b"POST /v1/campaigns HTTP/1.1\r\nHost: d\r\nContent-Len")
    for garbage in (b"\x00\xff\x00\r\n\r\n", b"GET / SMTP\r\n\r\n", b"POST /v1/campaigns HTTP/1.1\r\n\r\n" * 3):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(daemon.socket))
            s.sendall(garbage)
            assert b" 4" in s.recv(200)[:15]
    post = daemon.http.post
    assert post("/v1/campaigns", content=b"x" * 100_000).status_code == 413
    assert post("/v1/campaigns", content=b"{", headers={"content-type": "application/json"}).status_code == 422
    assert post("/v1/campaigns", json={"rows": "all"}).json()["error"]["message"].startswith("rows")
    assert post("/v1/campaigns", json={"colour": "red"}).status_code == 422
    refused = post("/v1/campaigns", json={"target": "serve", "url": "http://x", "spawn": "ls"})
    assert (refused.status_code, refused.json()["error"]["rule"]) == (403, "no spawn")
    assert daemon.http.get("/v1/campaigns/../../etc/passwd").status_code == 404
    assert daemon.http.get("/v1/health").json()["queued"] == 0
    slow.close()
    other = daemon.run("watch", "no-such-id")
    assert other.returncode == 2
    assert "no campaign 'no-such-id'" in other.stderr
    assert daemon.run("watch").returncode == 2


@root
def test_only_the_owner_or_root_cancels(daemon: Daemon) -> None:
    daemon.start()
    run_id, waiting = daemon.submit("--repeats", "100"), daemon.submit("--repeats", "1")
    daemon.socket.chmod(0o666)
    code = f"""
import json, os, socket
os.setgid(65534); os.setuid(65534)
def ask(text):
    s = socket.socket(socket.AF_UNIX); s.connect({str(daemon.socket)!r}); s.sendall(text.encode()); return s.makefile().read()
print(ask("DELETE /v1/campaigns/{waiting} HTTP/1.1\\r\\nHost: d\\r\\nConnection: close\\r\\n\\r\\n").split()[1])
body = json.dumps({{"rows": [2]}})
head = "POST /v1/campaigns HTTP/1.1\\r\\nHost: d\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\nContent-Length: "
answer = ask(head + str(len(body)) + "\\r\\n\\r\\n" + body)
print(json.loads(answer[answer.index("{{"):])["id"])
"""
    for folder in [daemon.folder, *daemon.folder.parents][:4]:
        folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, cwd="/")
    status, theirs = done.stdout.split()
    assert status == "403"
    assert daemon.campaign(theirs)["user"] != daemon.campaign(run_id)["user"]
    assert daemon.run("cancel", theirs).returncode == 0, "root may"
    os.kill(daemon.measuring(run_id), signal.SIGKILL)


def test_a_damaged_queue_is_kept_aside_and_the_service_comes_up(daemon: Daemon) -> None:
    daemon.start()
    daemon.kill()
    for file in daemon.state.glob("queue.sqlite*"):
        file.write_bytes(b"rubbish" * 1000)
    daemon.start()
    named = daemon.http.get("/v1/health").json()["damaged_queue"]
    assert Path(named).read_bytes().startswith(b"rubbish")
    assert daemon.run("watch", daemon.submit("--repeats", "1")).returncode in (0, 4)


def test_a_campaign_of_a_lost_queue_is_followed_all_the_same(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "15")
    daemon.measuring(run_id)
    daemon.kill()
    for file in daemon.state.glob("queue.sqlite*"):
        file.write_bytes(b"rubbish" * 1000)
    daemon.start()
    done = daemon.run("watch", run_id)
    assert done.returncode == 0, done.stderr
    assert daemon.campaign(run_id)["state"] == "done"
    assert (daemon.folder / "starts").read_text().split() == [run_id]


def test_a_campaign_is_cancelled_before_its_worker_is_known(daemon: Daemon) -> None:
    daemon.start()
    run_id = daemon.submit("--repeats", "500")
    assert daemon.http.delete(f"/v1/campaigns/{run_id}").status_code == 200
    wait_for(lambda: daemon.campaign(run_id)["state"] == "cancelled")


@root
def test_a_full_disk_accepts_nothing_and_loses_nothing(daemon: Daemon) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(daemon.state)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        daemon.start()
        body = {
            "target": "fake_targets:Counted",
            "device": "fake0",
            "rows": [2],
            "repeats": 500,
            "reason": "x" * 20_000,
        }
        accepted = [daemon.http.post("/v1/campaigns", json=body) for _ in range(60)]
        ids = [a.json()["id"] for a in accepted if a.status_code == 201]
        refused = next(a for a in accepted if a.status_code != 201)
        assert refused.status_code == 507
        assert "nothing was accepted" in refused.json()["error"]["message"]
        daemon.kill()
        daemon.start()
        found = daemon.http.get("/v1/campaigns").json()["campaigns"]
        assert [c["id"] for c in found] == ids
        with contextlib.suppress(AssertionError):
            os.kill(daemon.measuring(ids[0]), signal.SIGKILL)
    finally:
        daemon.close()
        subprocess.run(["umount", "-l", str(daemon.state)], check=True)


@root
def test_a_record_directory_of_somebody_else_is_named(daemon: Daemon) -> None:
    runs = daemon.state / "runs"
    runs.mkdir(mode=0o700)
    os.chown(runs, 65534, 65534)
    without = "-dac_override,-dac_read_search"
    drop = ["setpriv", f"--inh-caps={without}", f"--bounding-set={without}"]
    command = [*drop, sys.executable, "-m", "npuprof.daemon.main"]
    done = subprocess.run(command, env=daemon.env, capture_output=True, text=True, cwd="/", timeout=30)
    assert done.returncode == 2
    assert f"the store {runs} cannot be written by you" in done.stderr


def test_nobody_listens(tmp_path: Path) -> None:
    d = Daemon(tmp_path)
    done = d.run("queue")
    assert done.returncode == 3
    assert "no daemon listens at" in done.stderr
    d.start()
    second = subprocess.run([sys.executable, "-m", "npuprof.daemon.main"], env=d.env, capture_output=True, text=True)
    assert second.returncode == 2
    assert "another daemon listens at" in second.stderr
    d.close()


@pytest.mark.slow
def test_a_hundred_random_kills() -> None:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--kills", "100", "--seed", "5"], capture_output=True, text=True, timeout=290
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["lost"], found["run_twice"], found["done_without_record"]) == (0, 0, 0)
    assert found["damaged_queue"] is None
    assert found["ended"] == found["accepted"] > 5
    assert min(found["kills"].values()) > 0
