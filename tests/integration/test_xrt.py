"""The XRT target over a fake pyxrt: nothing here ran on an NPU. Each known failure, by the sentence a user reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.settings import built_in

FAKES = Path(__file__).parents[1] / "fakes"
NPUPROF = [sys.executable, "-m", "npuprof"]
PERMISSION = "Open /dev/accel/accel0 failed (err=-13): Permission denied"
MEMLOCK = (
    "mmap(addr=.., len=67108864, prot=3, flags=8209, offset=..) failed (err=-11): Resource temporarily unavailable"
)
CONTEXT = "DRM_IOCTL_AMDXDNA_CREATE_HWCTX IOCTL failed (err=-2): No such file or directory"


class Bench:
    """A folder with the shipped GEMM plan, fake binaries and the fake's knobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = folder / "plan.yaml"
        self.plan.write_text((built_in() / "plans" / "gemm.yaml").read_text())
        self.xclbin({"MLIR_AIE": 8})
        (folder / "insts.bin").write_bytes(bytes(64))
        (folder / "nop.bin").write_bytes(bytes(4))
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(FAKES / "fake_pyxrt"), str(FAKES)]),
            "FAKE_PYXRT_CONTROL": str(folder / "knobs"),
            "PYTHONWARNINGS": "error::DeprecationWarning:npuprof",
            "COLUMNS": "140",
        }

    def xclbin(self, kernels: dict[str, int]) -> None:
        (self.folder / "final.xclbin").write_text("FAKEXCLBIN\n" + json.dumps({"uuid": "u", "kernels": kernels}))

    def knobs(self, **knobs: object) -> None:
        (self.folder / "knobs").write_text("".join(f"{k}={v}\n" for k, v in knobs.items()))

    def add(self, text: str) -> None:
        with self.plan.open("a") as f:
            f.write(text + "\n")

    def npuprof(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*NPUPROF, *args], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=240
        )

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        common = ("--target", "xrt", "--plan", "plan.yaml", "--rows", "2,16", "--repeats", "3", "--warmup", "1")
        return self.npuprof("run", *common, *args)

    def record(self) -> dict[str, Any]:
        files = sorted((self.folder / "state/npuprof/runs").glob("*.json"))
        found: dict[str, Any] = json.loads(files[-1].read_text())
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_campaign_over_the_fake(bench: Bench) -> None:
    bench.add("noop: {rows: 16, insts: nop.bin}\nembed: {rows: 100, bytes_per_row: 1024}\nlayers: 3")
    bench.add(
        "head:\n  - {name: lm_head, insts: {16: insts.bin}, in_bytes_per_row: 16, out_bytes_per_row: 64, weights_bytes: 256}"
    )
    done = bench.run("--launch-stamps")
    assert done.returncode in (0, 4), done.stderr
    record = bench.record()
    assert record["target"]["device"] == "fake NPU of a fake pyxrt (0000:fa:4e.0)"
    assert record["target"]["simulated"] is True
    assert record["target"]["on_npu"] is False, "no amdxdna driver has that device"
    assert record["target"]["backend"] == "pyxrt, of XRT 2.26 or later"
    assert record["target"]["waiting"] == "blocking in run.wait, deadline 20 s a launch"
    assert record["target"]["floor_ms"] >= 0.2
    assert record["target"]["wait_cost_ms"] < record["target"]["floor_ms"]
    assert record["parity"]["agreed"]
    assert "launch gemm, its output poisoned beforehand, gives what numpy computes" in done.stdout
    assert "floor   a no-op launch takes 0." in done.stdout
    for p in record["passes"]:
        assert sum(p["terms"].values()) + p["rest_ms"] == pytest.approx(p["wall_ms"], abs=2e-6)
        assert p["launches"] == 3
        assert p["head_rows"] == p["rows"]
        assert p["terms"]["device_wait_ms"] >= 3 * 0.15
        assert 0.15 <= p["head_device_ms"] <= p["terms"]["lm_head_ms"]
        assert re.match(r"\[bs\] M=", p["line"])
        stamps = p["extra"]["launch_stamps_ns"]
        assert [s[0] for s in stamps] == ["gemm", "gemm", "gemm", "lm_head"]
        flat = [t for s in stamps for t in s[1:]]
        assert flat == sorted(flat)
        assert p["at_ns"] <= flat[0]


@pytest.mark.parametrize("version", ["2.16", "2.18", "2.20", "2.23", "2.25"])
def test_every_version_by_what_it_has(bench: Bench, version: str) -> None:
    bench.env["FAKE_PYXRT_VERSION"] = version
    done = bench.run()
    assert done.returncode in (0, 4), done.stderr
    assert bench.record()["parity"]["agreed"]
    known = {"2.18": "2.16", "2.25": "2.23"}.get(version, version)
    assert bench.record()["target"]["backend"] == f"pyxrt, of XRT {known} or later"


@pytest.mark.parametrize("mode", ["{mode: poll, grain_us: 50}", "{mode: block}"])
def test_both_ways_of_waiting(bench: Bench, mode: str) -> None:
    bench.add(f"wait: {mode}")
    assert bench.run().returncode in (0, 4)
    word = "polling" if "poll" in mode else "blocking"
    assert bench.record()["target"]["waiting"].startswith(word[:4])


def test_a_wait_cut_short_means_still_in_flight(bench: Bench) -> None:
    bench.knobs(interrupt_wait=1)
    assert bench.run().returncode in (0, 4)
    assert all(p["phase"] != "void" for p in bench.record()["passes"])


@pytest.mark.parametrize(("state", "name"), [(5, "ERROR"), (6, "ABORT"), (8, "TIMEOUT"), (9, "NORESPONSE")])
def test_a_failed_state_voids_the_pass_and_is_named(bench: Bench, state: int, name: str) -> None:
    bench.knobs(fail_every=13, fail_state=state)
    done = bench.run()
    assert done.returncode in (0, 4)
    record = bench.record()
    void = [p for p in record["passes"] if p["phase"] == "void"]
    assert void
    assert {p["void_reason"] for p in void} == {f"launch gemm ended in ERT_CMD_STATE_{name}"}
    assert record["ending"]["how"] == "done"


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"segv_after": 12}, "the timed process was ended by signal 11"),
        ({"abort_after": 12}, "the timed process was ended by signal 6"),
        ({"exit_after": 12}, "the timed process ended with code 7"),
        ({"hang_every": 12}, "a launch did not end within 3 s"),
    ],
)
def test_a_crash_or_hang_ends_with_what_was_measured(bench: Bench, knobs: dict[str, object], said: str) -> None:
    bench.add("wait: {deadline_s: 3}")
    bench.knobs(**knobs)
    done = bench.run("--repeats", "9")
    assert done.returncode == 3, done.stdout
    assert said in done.stderr
    record = bench.record()
    assert record["ending"]["how"] == "failed"
    assert record["passes"]
    assert record["trust"]["ratios"] == "not_trusted"
    status = json.loads(bench.npuprof("hold", "status", "--json").stdout)
    assert status["devices"]["reference"]["holder"] is None
    assert "Aborted" not in done.stderr


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"wrong": 1}, "row 0, column 1 is"),
        ({"untouched": 1}, "completed and left its output untouched"),
        ({"fail_every": 1, "fail_state": 8}, "launch gemm ended in ERT_CMD_STATE_TIMEOUT"),
    ],
)
def test_wrong_results_are_never_timed(bench: Bench, knobs: dict[str, object], said: str) -> None:
    bench.knobs(**knobs)
    done = bench.run()
    assert done.returncode == 4
    assert said in done.stdout
    assert "pass M=2:" not in done.stdout
    assert not [p for p in bench.record()["passes"] if p["rows"] > 1]


def test_a_golden_output(bench: Bench) -> None:
    import numpy as np

    text = bench.plan.read_text().replace(
        "{launch: gemm, kind: int8_gemm, out: int32}", "{launch: gemm, kind: golden, input: in.bin, golden: out.bin}"
    )
    bench.plan.write_text(text)
    x = np.arange(16 * 256, dtype=np.int64).astype(np.int8).reshape(16, 256)
    weights = np.frombuffer(np.random.RandomState(0).bytes(65536), np.int8).reshape(256, 256)
    golden = x.astype(np.int32) @ weights.astype(np.int32)
    (bench.folder / "in.bin").write_bytes(x.tobytes())
    (bench.folder / "out.bin").write_bytes(golden.tobytes())
    assert bench.run().returncode in (0, 4)
    assert bench.record()["parity"]["agreed"]
    (bench.folder / "out.bin").write_bytes((golden + 1).tobytes())
    assert bench.run().returncode == 4
    assert "4096 of 4096 values differ" in bench.record()["parity"]["detail"]
    (bench.folder / "out.bin").write_bytes(b"1234")
    assert bench.run().returncode == 4
    assert "out.bin has 4 bytes, the launch gives 16384" in bench.record()["parity"]["detail"]
    (bench.folder / "in.bin").write_bytes(b"1234")
    assert bench.run().returncode == 4
    assert "in.bin has 4 bytes, the launch takes 4096" in bench.record()["parity"]["detail"]


def no(bench: Bench, name: str) -> None:
    (bench.folder / name).unlink()


FAILURES: list[tuple[Callable[[Bench], object], int, str]] = [
    (
        lambda b: b.knobs(device_error=" No such device with index '0'"),
        3,
        "no NPU answers: the driver is not bound or XRT's xdna plugin",
    ),
    (
        lambda b: b.plan.write_text('device: "0000:ff:00.1"\n' + b.plan.read_text().replace("device: 0", "# device")),
        3,
        "there is no device of that BDF",
    ),
    (lambda b: b.knobs(device_error=PERMISSION), 3, "sudo usermod -aG render $USER"),
    (lambda b: b.knobs(device_error=MEMLOCK), 3, "the memlock limit is too small: ulimit -l unlimited"),
    (lambda b: b.knobs(context_error=CONTEXT), 3, "no context or column is left on the device"),
    (lambda b: b.knobs(submit_errno=22), 3, "the driver refused the command: npuprof errors"),
    (lambda b: no(b, "final.xclbin"), 2, "plan.yaml:7: families.0.xclbin: "),
    (lambda b: (b.folder / "final.xclbin").write_text("junk of some length"), 2, "Invalid xclbin"),
    (lambda b: (b.folder / "final.xclbin").write_text("x"), 2, "buffer too small to contain header"),
    (lambda b: (b.folder / "final.xclbin").write_text(""), 2, "final.xclbin is empty"),
    (lambda b: b.xclbin({"NOPE": 8}), 2, "has no kernel 'MLIR_AIE'; it has NOPE"),
    (lambda b: b.xclbin({"MLIR_AIE": 5}), 2, "takes 5 arguments, and launch gemm would set 6"),
    (lambda b: no(b, "insts.bin"), 2, "plan.yaml:11: launches.0.insts.16: "),
    (
        lambda b: (b.xclbin({"vadd": 8}), b.plan.write_text(b.plan.read_text().replace("MLIR_AIE", "vadd"))),
        3,
        "that kernel is none that the NPU runs",
    ),
]


@pytest.mark.parametrize(("spoil", "code", "said"), FAILURES)
def test_each_failure_reads_as_one_sentence(
    bench: Bench, spoil: Callable[[Bench], object], code: int, said: str
) -> None:
    spoil(bench)
    done = bench.run()
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_elf_families(bench: Bench) -> None:
    text = (
        bench.plan.read_text()
        .replace("xclbin: final.xclbin", "elf: final.elf")
        .replace("    insts: {16: insts.bin}", "    dtype: int8 #")
    )
    bench.plan.write_text(text)
    (bench.folder / "final.elf").write_bytes(b"\x7fELF config")
    done = bench.run()
    assert done.returncode in (0, 4), done.stderr
    assert bench.record()["parity"]["agreed"]
    (bench.folder / "final.elf").write_bytes(b"\x7fELF")
    assert "the file is no full ELF" in bench.run().stderr
    (bench.folder / "final.elf").write_bytes(b"no ELF at all")
    assert "the file is missing or no ELF" in bench.run().stderr
    bench.env["FAKE_PYXRT_VERSION"] = "2.18"
    assert "it needs XRT 2.23 or later" in bench.run().stderr


def test_pyxrt_missing_or_for_another_python(bench: Bench) -> None:
    bench.env["PYTHONPATH"] = str(FAKES)
    missing = bench.run()
    assert missing.returncode == 3
    assert "no pyxrt was found; type: sudo apt-get install python3-xrt" in missing.stderr
    check = bench.npuprof("plan", "check", "plan.yaml")
    assert check.returncode == 0
    assert "kernels and argument counts were not looked at: no pyxrt was found" in check.stdout
    folder = bench.folder / "python"
    folder.mkdir()
    bench.env["PYTHONPATH"] = str(folder)
    (folder / "pyxrt.py").write_text(
        "raise ImportError('libxrt_coreutil.so.2: cannot open shared object file: No such file')\n"
    )
    assert "its library libxrt_coreutil.so.2 is not; type: install XRT's libraries" in bench.run().stderr
    (folder / "pyxrt.py").write_text(
        "raise ImportError('Python version mismatch: module was compiled for Python 3.9')\n"
    )
    assert "pyxrt is built for another Python than" in bench.run().stderr
    (folder / "pyxrt.py").write_text("import os; os.abort()\n")
    assert "importing pyxrt crashed with signal 6" in bench.run().stderr


def test_plan_verbs(bench: Bench) -> None:
    assert bench.npuprof("plan", "template").stdout == (built_in() / "plans" / "gemm.yaml").read_text()
    assert "28-layer decoder" in bench.npuprof("plan", "template", "--decoder").stdout
    assert "families" in json.loads(bench.npuprof("plan", "template", "--schema").stdout)["properties"]
    good = bench.npuprof("plan", "check", "plan.yaml")
    assert (good.returncode, good.stdout) == (
        0,
        "plan.yaml: everything that can be known without the device is right\n",
    )
    (bench.folder / "decoder.yaml").write_text((built_in() / "plans" / "decoder-28.yaml").read_text())
    bad = bench.npuprof("plan", "check", "decoder.yaml")
    assert bad.returncode == 2
    assert bad.stdout.count("is missing") == 16
    as_json = json.loads(bench.npuprof("plan", "check", "decoder.yaml", "--json").stdout)
    assert len(as_json["problems"]) == 16
    refused = bench.run("--plan", "decoder.yaml")
    assert refused.returncode == 2
    assert "and 15 more: npuprof plan check decoder.yaml" in refused.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--target", "xrt"), "--plan: the target xrt needs a pass plan"),
        (
            ("--target", "reference", "--plan", "x.yaml"),
            "--plan: the target xrt needs a pass plan, and only that one takes it",
        ),
        (("--target", "xrt", "--plan", "none.yaml"), "none.yaml: cannot be read"),
    ],
)
def test_half_a_request(bench: Bench, args: tuple[str, ...], said: str) -> None:
    done = bench.npuprof("run", *args)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_example_of_a_target_from_the_public_parts(bench: Bench) -> None:
    bench.env["PYTHONPATH"] += os.pathsep + str(FAKES.parents[1] / "docs" / "examples")
    done = bench.npuprof("run", "--target", "attention_target:make", "--rows", "2,8", "--repeats", "3")
    assert done.returncode in (0, 4), done.stderr
    record = bench.record()
    assert record["target"]["device"].startswith("fake NPU of a fake pyxrt")
    assert all(p["terms"]["device_wait_ms"] > 0.2 for p in record["passes"])
    bench.knobs(fail_every=9)
    bench.npuprof("run", "--target", "attention_target:make", "--rows", "2,8", "--repeats", "3")
    assert {p["void_reason"] for p in bench.record()["passes"]} == {None, "launch qkv: TIMEOUT"}


def test_rows_beyond_the_largest_family(bench: Bench) -> None:
    done = bench.run("--rows", "2,17")
    assert done.returncode == 3
    assert "the plan has kernels for up to 16 rows, not 17" in done.stderr
