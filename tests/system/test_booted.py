"""A Debian of its own, booted with systemd, the package installed by `make install`, a campaign through its daemon."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).parents[2]
_TOOLS = ("debootstrap", "systemd-nspawn")
_DEBIAN_PYTHON = "3.11"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(800),
    # One machine for the module: it takes a minute to make.
    pytest.mark.xdist_group("booted"),
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(t) is None for t in _TOOLS),
        reason="needs root, debootstrap and systemd-container (.ci/run installs them)",
    ),
]


def _wheels(folder: Path) -> None:
    """Everything that the container's Python needs, and what builds the package: it installs without an index."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"], "wheel"]
    machine = platform.machine()
    platforms = [f"--platform=manylinux{v}_{machine}" for v in ("2014", "_2_17", "_2_27", "_2_28")]
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:"]
    command += [f"--python-version={_DEBIAN_PYTHON}", "--implementation=cp", *platforms, "-d", str(folder)]
    subprocess.run([*command, *needed], check=True)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with the package in it."""
    root = tmp_path_factory.mktemp("machine") / "root"
    include = "--include=systemd,systemd-sysv,dbus,python3,python3-venv,make,procps"
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", include, "bookworm", str(root)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
    _wheels(root / "wheels")
    source = root / "source"
    files = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, files):
        if not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, source / name, follow_symlinks=False)
    # The directories are made at boot, by systemd-tmpfiles.
    script = "cd /source && PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels make install && systemd-sysusers"
    done = subprocess.run(["chroot", str(root), "/bin/sh", "-ec", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return root


@pytest.fixture(scope="module")
def out(machine: Path) -> Path:
    """Boots it once; what its script wrote."""
    shutil.copy(Path(__file__).with_name("booted.sh"), machine / "booted.sh")
    (machine / "out").mkdir()
    shutil.copy(PROJECT / "tests/fakes/scripted_server.py", machine / "scripted_server.py")
    imported = "import: incomplete 0 | attention 2/2 tiles byte for byte | MLP 2/2 groups byte for byte | 1 s"
    (machine / "script.json").write_text(json.dumps({"import": imported}))
    server = "[Service]\nExecStart=/usr/bin/python3 /scripted_server.py 8099 /script.json stderr\n"
    (machine / "etc/systemd/system/fake-server.service").write_text(server)
    unit = (
        "[Unit]\nAfter=multi-user.target\n[Service]\nType=idle\nExecStart=/bin/bash /booted.sh\nTimeoutStartSec=300\n"
    )
    (machine / "etc/systemd/system/booted.service").write_text(unit)
    wants = machine / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "booted.service").symlink_to("/etc/systemd/system/booted.service")
    command = [
        "systemd-nspawn",
        "--boot",
        "--register=no",
        "--keep-unit",
        # Its server's port is its own: another machine's server must not answer.
        "--private-network",
        "--console=pipe",
        "--quiet",
        "-D",
        str(machine),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=400, stdin=subprocess.DEVNULL
    )
    seen = machine / "out"
    assert (seen / "member-code.txt").exists(), done.stdout[-3000:] + done.stderr[-1000:]
    return seen


def read(out: Path, name: str) -> str:
    return (out / name).read_text().strip()


def test_the_first_request_activates_the_daemon(out: Path) -> None:
    assert read(out, "before.txt") == "inactive"
    assert read(out, "after.txt") == "active", read(out, "submit-err.txt")
    assert read(out, "submit-err.txt") == ""
    modes = read(out, "modes.txt").splitlines()
    assert modes == ["root:npuprof 660", "npuprof:npuprof 600", "root:npuprof 2770", "npuprof:npuprof 750"]


def test_the_worker_outlives_the_daemon_and_is_followed_by_the_next(out: Path) -> None:
    assert "npuprof-run@" in read(out, "workers.txt")
    assert "npuprof" in read(out, "worker-user.txt")
    assert read(out, "worker-after-kill.txt") == "alive"
    assert read(out, "first-pid.txt") != read(out, "second-pid.txt")
    assert read(out, "watch-code.txt") in ("0", "4"), read(out, "watch-err.txt")
    report = read(out, "watch.txt")
    assert "reference transformer on the CPU, not an NPU  [simulated]" in report
    assert "pass M=17:  n=24 wall median" in report
    assert read(out, "id.txt") in read(out, "list.txt")
    assert "differs" not in read(out, "check.txt")


def test_the_journal_tells_the_story_of_the_number(out: Path) -> None:
    entries = [json.loads(line) for line in read(out, "journal.jsonl").splitlines()]
    said = [e["MESSAGE"] for e in entries]
    assert said[0] == "accepted from root: booted test"
    assert any(m.startswith("the ticket is granted") for m in said)
    assert any(m.startswith("the campaign ended with code") for m in said)
    assert {e["NPUPROF_RUN"] for e in entries} == {read(out, "id.txt")}
    assert all(len(e["MESSAGE_ID"]) == 32 for e in entries)


def test_units_verify_and_are_hardened(out: Path) -> None:
    assert (read(out, "verify-code.txt"), read(out, "verify.txt")) == ("0", "")
    assert read(out, "security-code.txt") == "0", read(out, "security.txt")[-300:]


def test_the_watchdog_replaces_a_daemon_that_stands_still(out: Path) -> None:
    stopped, now = read(out, "watchdog.txt").split()
    assert stopped != now != "0"
    assert "nothing is running, nothing waits" in read(out, "queue-after-watchdog.txt")


def test_pass_lines_out_of_a_real_journal(out: Path) -> None:
    said = read(out, "journal-run.txt")
    # A busy machine may let the client's share of passes of 15 ms drift; the lines are read all the same.
    around = f"{said}\n{read(out, 'journal-around-run.txt')}"
    assert read(out, "journal-run-code.txt") == "0" or "clocks_differ" in said, around
    assert "import: incomplete 0 | attention 2/2 tiles" in said
    assert "pass M=5:  n=6 wall median 15.00 ms (min 15.00 max 15.00)" in said


def test_doctor_checks_the_installation(out: Path) -> None:
    checks = {c["name"]: c for c in json.loads(read(out, "doctor.json"))["checks"]}
    assert checks["units"] == {
        "name": "units",
        "status": "ok",
        "detail": "installed in /usr/local/lib/systemd/system",
        "next": "",
    }
    assert checks["user"]["status"] == "ok"
    assert checks["daemon"]["status"] == "ok"
    assert checks["daemon"]["detail"].endswith("idle, 0 queued")


def test_uninstall_takes_everything_but_the_records(out: Path) -> None:
    assert read(out, "left.txt") == "", read(out, "uninstall.txt")
    assert f"{read(out, 'id.txt')}.json" in read(out, "kept.txt")


def test_who_may(out: Path) -> None:
    assert read(out, "stranger-code.txt") == "3"
    assert "no daemon listens at /run/npuprof/npuprof.sock" in read(out, "stranger.txt")
    assert read(out, "member-code.txt") in ("0", "4"), read(out, "member-watch.txt")
