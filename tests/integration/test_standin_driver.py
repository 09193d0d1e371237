"""The collectors against fakexdna, a stand-in for the kernel driver: nothing here says anything of a real NPU."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FAKES = Path(__file__).parents[1] / "fakes"
VERSIONS = ["0.0", "0.1", "0.2", "0.6", "0.8", "head", "legacy"]

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the stand-in driver is C: apt-get install gcc")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fakexdna")
    subprocess.run(["make", "-C", str(FAKES / "fakexdna"), f"O={out}", "roots"], check=True, capture_output=True)
    return out


class Standin:
    """The environment of clients of the stand-in; `set` replaces its control file, `stats` reads its counters."""

    def __init__(self, built: Path, folder: Path) -> None:
        self._folder = folder
        self.env = {
            **os.environ,
            "LD_PRELOAD": str(built / "libfakexdna.so"),
            "FAKE_XDNA_ROOT": str(built / "roots" / "strix-halo"),
            "FAKE_XDNA_CONTROL": str(folder / "control"),
            "FAKE_XDNA_STATS": str(folder / "stats"),
            "PYTHONPATH": str(FAKES),
            "COLUMNS": "140",
        }
        self.built = built
        self.set()

    def set(self, **knobs: object) -> None:
        draft = self._folder / "control.new"
        draft.write_text("".join(f"{k}={v}\n" for k, v in knobs.items()))
        draft.replace(self._folder / "control")

    def stats(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self._folder / "stats").read_text().splitlines())

    def run(self, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *args], env=self.env, capture_output=True, text=True, timeout=120, **more
        )


class Client:
    """evidence_client.py, asked word by word."""

    def __init__(self, standin: Standin, deadline: float = 5.0) -> None:
        command = [sys.executable, str(FAKES / "evidence_client.py"), str(deadline)]
        self.process = subprocess.Popen(
            command, env=standin.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, word: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture
def standin(built: Path, tmp_path: Path) -> Standin:
    return Standin(built, tmp_path)


@pytest.fixture
def client(standin: Standin) -> Iterator[Callable[..., Client]]:
    started: list[Client] = []

    def start(deadline: float = 5.0) -> Client:
        started.append(Client(standin, deadline))
        return started[-1]

    yield start
    for c in started:
        c.close()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("machine", ["phoenix", "strix-halo", "krackan"])
def test_every_driver_version_is_asked_only_what_it_knows(
    standin: Standin, client: Callable[..., Client], version: str, machine: str
) -> None:
    standin.env["FAKE_XDNA_ROOT"] = str(standin.built / "roots" / machine)
    standin.set(driver=version, pmode=3)
    c = client()
    c.ask("context")
    reading = c.ask("snapshot")["amdxdna"]
    assert reading["status"] == "live", reading
    found = reading["reading"]
    assert standin.stats()["kernel_error_lines"] == "0"
    assert found["problems"] == {}
    assert found["power_mode"] == "performance"
    assert found["clocks"]["h_mhz"] > 0
    assert [x["pid"] for x in found["contexts"]] == [c.process.pid]
    assert found["contexts"][0]["errors"] == 0
    new = version in ("0.2", "0.6", "0.8", "head", "legacy")
    assert (found["async_error"] is not None) == new
    assert (found["resources"] is not None) == (version in ("0.6", "0.8", "head", "legacy"))
    assert found["firmware"].count(".") == 3


@pytest.mark.parametrize(
    ("knobs", "status", "said"),
    [
        ({"gone": 1}, "not_available", "ENODEV: the device is gone"),
        ({"eacces": 1}, "not_available", "EACCES: no permission; join the node's group: sudo usermod"),
        ({"open_errno": errno.ENOENT}, "not_available", "ENOENT: there is no such node"),
        ({"open_errno": errno.EPERM}, "not_available", "EPERM: not permitted"),
        ({"info_errno": "3:EOPNOTSUPP"}, "live", "clocks: EOPNOTSUPP"),
        ({"info_errno": "9:EPERM"}, "live", "power_mode: EPERM"),
        ({"info_errno": "8:EINVAL"}, "live", "firmware: EINVAL"),
        ({"info_errno": "12:EINTR"}, "live", "resources: EINTR"),
        ({"array_errno": "0:ENOSPC"}, "live", "contexts: ENOSPC"),
        ({"info_errno": "2:ENODEV"}, "not_available", "ENODEV"),
    ],
)
def test_every_errno_is_a_named_state(
    standin: Standin, client: Callable[..., Client], knobs: dict[str, object], status: str, said: str
) -> None:
    standin.set(driver="head", **knobs)
    reading = client().ask("snapshot")["amdxdna"]
    assert reading["status"] == status
    assert said in reading["detail"]


def test_a_driver_that_hangs_is_stale_with_its_last_answer(standin: Standin, client: Callable[..., Client]) -> None:
    c = client(1.0)
    first = c.ask("snapshot")["amdxdna"]
    standin.set(slow_ms=8000, slow_param=9)
    second = c.ask("snapshot")["amdxdna"]
    assert first["status"] == "live"
    assert second["status"] == "stale"
    assert "did not answer within 1 s" in second["detail"]
    assert second["reading"] == first["reading"]


def test_foreign_contexts_are_seen_and_hidden_ones_counted(standin: Standin, client: Callable[..., Client]) -> None:
    c = client()
    c.ask("context")
    clean = c.ask("snapshot")["foreign"]
    assert clean["status"] == "live"
    assert (clean["reading"]["foreign"], clean["reading"]["hidden_contexts"]) == ([], 0)
    standin.set(ghosts="4242:4:10:8:llm,999999:4:1:1")
    seen = c.ask("snapshot")["foreign"]["reading"]
    assert [(f["pid"], f["contexts"]) for f in seen["foreign"]] == [(4242, 1), (999999, 1)]
    assert seen["foreign"][1]["name"] == "ghost0"
    assert seen["foreign"][1]["busy_ns"] == 123456789
    standin.set(ghosts="4242:4:10:8", unprivileged=1)
    hidden = c.ask("snapshot")["foreign"]["reading"]
    assert (hidden["foreign"], hidden["hidden_contexts"]) == ([], 1)
    blind = c.ask("blind")["foreign"]
    assert blind["status"] == "not_available"
    assert "cannot be told apart" in blind["detail"]


def test_without_a_global_count_hidden_contexts_make_it_not_available(
    standin: Standin, client: Callable[..., Client]
) -> None:
    standin.set(driver="head", info_errno="12:EOPNOTSUPP", array_errno="0:EOPNOTSUPP")
    found = client().ask("snapshot")["foreign"]
    assert found["status"] == "not_available"
    assert "hidden from you" in found["detail"]


def test_own_use_is_in_fdinfo(standin: Standin, client: Callable[..., Client]) -> None:
    c = client()
    c.ask("context")
    reading = c.ask("snapshot")["fdinfo"]["reading"]
    [own] = [p for p in reading["processes"] if p["pid"] == c.process.pid]
    assert own["clients"][0]["bdf"] == "0000:c5:00.1"


def test_the_last_async_error_is_compared_with_its_stamp(standin: Standin, client: Callable[..., Client]) -> None:
    c = client()
    assert set(c.ask("snapshot")["amdxdna"]["reading"]["async_error"].values()) == {0}
    standin.set(async_err="5:1000:7")
    one = c.ask("snapshot")["amdxdna"]["reading"]["async_error"]
    standin.set(async_err="5:2000:7")
    two = c.ask("snapshot")["amdxdna"]["reading"]["async_error"]
    assert one["err_code"] == two["err_code"] == 5
    assert (one["ts_us"], two["ts_us"]) == (1000, 2000)


def test_legacy_has_no_element_where_there_was_no_error(standin: Standin, client: Callable[..., Client]) -> None:
    standin.set(driver="legacy")
    assert set(client().ask("snapshot")["amdxdna"]["reading"]["async_error"].values()) == {0}


def test_power_and_sensors(standin: Standin, client: Callable[..., Client]) -> None:
    standin.set(pmode=4, sensors="on", power_mw=2500, temp_c=61)
    c = client()
    reading = c.ask("state")["reading"]
    assert reading["power_mode"] == "turbo"
    assert (reading["power_w"], reading["temperature_c"]) == (2.5, 61.0)
    assert reading["runtime_status"] == "active"
    standin.set(sensors="ENODEV")
    without = c.ask("state")
    assert without["reading"]["power_w"] is None
    assert "not available: " in without["detail"]


def campaign(standin: Standin, tmp_path: Path, *args: str) -> tuple[int, dict[str, Any], str]:
    done = standin.run("-m", "npuprof", "run", "--target", "fake_targets:on_npu", "--rows", "2,17", *args, cwd=tmp_path)
    files = sorted((tmp_path / "state/npuprof/runs").glob("*.json"))
    record: dict[str, Any] = json.loads(files[-1].read_text()) if files else {}
    return done.returncode, record, done.stdout + done.stderr


def test_a_clean_window_is_trusted_and_the_device_is_asked_only_before_and_after(
    standin: Standin, tmp_path: Path
) -> None:
    standin.env["FAKE_XDNA_LOG"] = str(tmp_path / "ioctls")
    standin.set(pmode=3, runtime="auto", autosuspend_ms=20)
    code, record, out = campaign(standin, tmp_path, "--repeats", "6")
    assert code == 0, out
    assert record["target"]["device"].startswith("fake NPU behind the stand-in driver")
    assert record["ticket"]["device"] == "accel0"
    assert record["errors"]["live_sources"] == ["kernel_log", "async_error"]
    assert record["provenance"]["power_mode"] == "performance"
    assert record["provenance"]["driver"] == "0.16"
    assert "nobody else on the device" in out
    assert "amdxdna error count" in out
    assert standin.stats()["kernel_error_lines"] == "0"
    assert standin.stats()["wakes"] == "2", "once for each snapshot"
    assert standin.run("-m", "npuprof", "check", "latest", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("during", "code", "said"),
    [
        ({"ghosts": "4242:4:10:8:llm"}, "foreign_use", "somebody else is on the device: pid 4242"),
        ({"pmode": 1}, "power_mode_changed", "power mode changed: performance -> powersaver"),
        ({"async_err": "5:now:7", "pmode": 3}, "async_error", "last async error changed: code 0x5"),
        ({"h_mhz": 900, "pmode": 3}, "clocks_changed", "clocks changed"),
        ({"gone": 1}, "device_lost", "answered before and not after: /dev/accel/accel0: ENODEV"),
    ],
)
def test_what_happens_in_the_window_costs_trust(
    standin: Standin, tmp_path: Path, during: dict[str, object], code: str, said: str
) -> None:
    standin.set(pmode=3)
    command = [
        sys.executable,
        "-m",
        "npuprof",
        "run",
        "--target",
        "fake_targets:on_npu",
        "--rows",
        "2",
        "--repeats",
        "400",
    ]
    process = subprocess.Popen(command, env=standin.env, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "measure round 1" in line:
            break
    standin.set(**during)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 4, out
    assert said in out
    [file] = (tmp_path / "state/npuprof/runs").glob("*.json")
    assert code in [r["code"] for r in json.loads(file.read_text())["trust"]["reasons"]]


def test_a_required_power_mode(standin: Standin, tmp_path: Path) -> None:
    standin.set(pmode=0)
    code, record, out = campaign(standin, tmp_path, "--require-power-mode", "performance")
    assert (code, record) == (3, {})
    assert "the power mode is default, not performance: sudo xrt-smi configure --pmode performance" in out
    standin.set(pmode=3)
    assert campaign(standin, tmp_path, "--require-power-mode", "performance")[0] == 0
    standin.set(gone=1)
    assert "is not known" in campaign(standin, tmp_path, "--require-power-mode", "performance")[2]
    done = standin.run(
        "-m", "npuprof", "run", "--target", "fake_targets:quick", "--require-power-mode", "turbo", cwd=tmp_path
    )
    assert done.returncode == 3
    assert "runs on no NPU" in done.stderr


def test_a_machine_without_npu_has_no_error_source_for_such_a_target(tmp_path: Path) -> None:
    """The fake target says NPU, and there is none: its numbers must not pass for clean."""
    env = {**os.environ, "PYTHONPATH": str(FAKES)}
    command = [
        sys.executable,
        "-m",
        "npuprof",
        "run",
        "--target",
        "fake_targets:on_npu",
        "--rows",
        "2",
        "--device",
        "accel9",
    ]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if Path("/dev/accel/accel9").exists():
        pytest.skip("this machine has ten NPUs")
    assert done.returncode == 4
    assert "no_error_source: no source could have shown an error: no NPU named accel9" in done.stdout


@pytest.mark.parametrize("machine", ["phoenix", "strix-halo", "krackan"])
def test_doctor(standin: Standin, machine: str) -> None:
    standin.env["FAKE_XDNA_ROOT"] = str(standin.built / "roots" / machine)
    standin.set(pmode=0)
    done = standin.run("-m", "npuprof", "doctor", "--json")
    assert done.returncode == 0
    checks = {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    assert checks["driver"]["status"] == "ok"
    assert checks["power mode"]["next"] == "sudo xrt-smi configure --pmode performance"
    assert checks["node"]["status"] == "ok"
    standin.set(pmode=3)
    assert "ok             power mode: performance" in standin.run("-m", "npuprof", "doctor").stdout
    standin.set(gone=1)
    gone = {c["name"]: c for c in json.loads(standin.run("-m", "npuprof", "doctor", "--json").stdout)["checks"]}
    assert "ENODEV" in gone["power mode"]["detail"]
