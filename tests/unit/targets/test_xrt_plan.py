"""Pass plans: what is right, and every way of being wrong, by file, line and key."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from npuprof.errors import UsageProblem
from npuprof.settings import built_in
from npuprof.targets.xrt import verify
from npuprof.targets.xrt.numbers import from_bf16, gemm_bf16, gemm_int8, to_bf16, to_int8
from npuprof.targets.xrt.parts import read_instructions
from npuprof.targets.xrt.plan import Plan, load_plan, memory_bytes

PLANS = built_in() / "plans"

GOOD = """families:
  - {rows: 16, xclbin: final.xclbin}
launches:
  - name: gemm
    insts: {16: insts.bin}
    in_bytes_per_row: 256
    weights_bytes: 65536
    out_bytes_per_row: 1024
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "plan.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("name", ["gemm.yaml", "decoder-28.yaml"])
def test_shipped_plans_are_right_but_for_the_users_binaries(name: str) -> None:
    plan, _ = load_plan(PLANS / name)
    missing = verify.problems_of_files(plan, PLANS)
    assert missing
    assert all(text.endswith("is missing") for _, text in missing)


def test_the_decoders_shape() -> None:
    plan, _ = load_plan(PLANS / "decoder-28.yaml")
    assert plan.layers * len(plan.launches) == 112
    assert [plan.family_of(m).rows for m in (1, 16, 17, 128)] == [16, 16, 128, 128]
    with pytest.raises(ValueError, match="up to 128 rows, not 129"):
        plan.family_of(129)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("families: []\n", "plan.yaml:1: families: "),
        (
            GOOD.replace("xclbin: final.xclbin", "kernel: K"),
            "plan.yaml:2: families.0: needs exactly one of xclbin and elf",
        ),
        (GOOD.replace("final.xclbin}", "final.xclbin, elf: x}"), "plan.yaml:2: families.0: needs exactly one"),
        (GOOD.replace("in_bytes_per_row: 256", "in_bytes_per_row: many"), "plan.yaml:6: launches.0.in_bytes_per_row: "),
        (GOOD + "    speed: 3\n", "plan.yaml:9: launches.0.speed: unknown key"),
        (GOOD + "    weights: w.bin\n", "plan.yaml:4: launches.0: has both weights and weights_bytes"),
        (GOOD.replace("256", "255") + "    dtype: bf16\n", "must be even"),
        (GOOD.replace("{16: insts", "{8: insts"), "plan.yaml:5: launches.0.insts: 8: there is no family"),
        (
            GOOD.replace("insts: {16: insts.bin}", "insts: {}"),
            "plan.yaml:5: launches.0.insts: has no instructions for the family of 16",
        ),
        (GOOD + "head:\n  - {name: h, in_bytes_per_row: 4, out_bytes_per_row: 4}\n", "head.0.insts: names no family"),
        (
            GOOD + "check: {launch: nope, kind: int8_gemm}\n",
            "plan.yaml:9: check.launch: there is no launch 'nope'; there are gemm",
        ),
        (GOOD + "check: {launch: gemm, kind: golden}\n", "plan.yaml:9: check: golden needs input and golden"),
        (GOOD + "noop: {rows: 8, insts: nop.bin}\n", "plan.yaml:9: noop.rows: there is no xclbin family"),
        (GOOD + "wait: {deadline_s: 1}\n", "plan.yaml:9: wait.deadline_s: "),
        (GOOD.replace("  - {rows: 16", "  - {rows: 16, elf: x}\n  - {rows: 16"), "plan.yaml:"),
    ],
)
def test_a_wrong_plan_says_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageProblem) as e:
        load_plan(write(tmp_path, text))
    assert said in str(e.value)


def test_files_are_looked_at(tmp_path: Path) -> None:
    plan, _ = load_plan(write(tmp_path, GOOD + "noop: {rows: 16, insts: nop.bin}\n"))
    (tmp_path / "final.xclbin").write_text("")
    (tmp_path / "insts.bin").write_bytes(b"12345")
    (tmp_path / "nop.bin").mkdir()
    assert [
        (".".join(map(str, loc)), text.split(" ", 1)[1]) for loc, text in verify.problems_of_files(plan, tmp_path)
    ] == [
        ("families.0.xclbin", "is empty"),
        ("launches.0.insts.16", "is no instruction stream: its size is no multiple of 4 bytes"),
        ("noop.insts", "is missing"),
    ]


def test_memory_is_held_against_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = load_plan(write(tmp_path, GOOD.replace("launches:", "layers: 28\nlaunches:")))
    assert memory_bytes(plan, tmp_path) == 28 * 65536 + 16 * (256 + 1024)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    monkeypatch.setattr(verify, "_available_bytes", lambda: 1000)
    texts = [text for _, text in verify.problems_of_memory(plan, tmp_path)]
    assert "locked memory and the limit is 1 MiB: ulimit -l unlimited" in texts[0]
    assert "of memory are available" in texts[1]


def device(root: Path, pci_id: str) -> None:
    folder = root / "sys/class/accel/accel0/device"
    folder.mkdir(parents=True)
    (folder / "device").write_text(pci_id + "\n")
    bus = root / "sys/bus/pci/devices/0000:c5:00.1"
    bus.mkdir(parents=True)
    (bus / "device").write_text(pci_id + "\n")


@pytest.mark.parametrize(
    ("family", "pci_id", "wrong"),
    [
        ("{rows: 16, xclbin: phoenix/final.xclbin}", "0x17f0", True),
        ("{rows: 16, xclbin: strix/final.xclbin}", "0x17f0", False),
        ("{rows: 16, xclbin: final.xclbin, generation: npu1}", "0x17f0", True),
        ("{rows: 16, xclbin: final.xclbin, generation: npu1}", "0x1502", False),
        ("{rows: 16, xclbin: final.xclbin}", "0x1502", False),
        ("{rows: 16, xclbin: npu1/strix.xclbin}", "0x1502", False),
    ],
)
def test_an_xclbin_for_another_generation_is_refused(tmp_path: Path, family: str, pci_id: str, wrong: bool) -> None:
    device(tmp_path, pci_id)
    for where in ("0", '"0000:c5:00.1"'):
        text = f"device: {where}\n" + GOOD.replace("{rows: 16, xclbin: final.xclbin}", family)
        plan, _ = load_plan(write(tmp_path, text))
        found = verify.problems_of_generation(plan, tmp_path)
        assert bool(found) == wrong
        if found:
            assert "is made for npu1 and the device is npu4" in found[0][1]
    assert verify.problems_of_generation(plan, tmp_path / "none") == []


def test_kernels_and_argument_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "fakes" / "fake_pyxrt"))
    import pyxrt

    plan, _ = load_plan(write(tmp_path, GOOD))
    xclbin = tmp_path / "final.xclbin"

    def problems(kernels: dict[str, int]) -> list[str]:
        xclbin.write_bytes(pyxrt.FAKE_MAGIC + json.dumps({"uuid": "u", "kernels": kernels}).encode())
        return [text for _, text in verify.problems_of_kernels(plan, tmp_path, pyxrt)]

    assert problems({"MLIR_AIE": 6}) == []
    assert problems({"MLIR_AIE_x": 8}) == []
    assert "final.xclbin has no kernel 'MLIR_AIE'; it has vadd" in problems({"vadd": 6})[0]
    assert "takes 5 arguments, and launch gemm would set 6" in problems({"MLIR_AIE": 5})[0]
    xclbin.write_text("junk of some length")
    assert "Invalid xclbin" in verify.problems_of_kernels(plan, tmp_path, pyxrt)[0][1]
    del sys.modules["pyxrt"]


def test_the_schema_is_that_of_the_plan() -> None:
    schema = Plan.model_json_schema()
    assert {"families", "launches", "head", "check", "noop", "wait"} <= set(schema["properties"])


def test_number_formats() -> None:
    x = np.array([[0.0, 1.0, -1.0, 100.0, 0.015625]], np.float32)
    assert to_int8(x).tolist() == [[0, 32, -32, 127, 0]]
    exact = np.array([[1.0, -2.5, 0.00390625]], np.float32)
    assert from_bf16(to_bf16(exact)).tolist() == exact.tolist()
    halfway = np.array([[1.00390625]], np.float32)  # between 1.0 and 1.0078125: ties go to even
    assert from_bf16(to_bf16(halfway)).tolist() == [[1.0]]
    weights = np.array([[1, 2], [3, 4]], np.int8).tobytes()
    assert gemm_int8(np.array([[1, 1]], np.int8), weights, 2).tolist() == [[4, 6]]
    halves = to_bf16(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    assert gemm_bf16(to_bf16(np.ones((1, 2), np.float32)), halves.tobytes(), 2).tolist() == [[4.0, 6.0]]


def test_instruction_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0000000a\nffffffff\n")
    assert read_instructions(tmp_path / "a.txt") == b"\x0a\0\0\0\xff\xff\xff\xff"
    (tmp_path / "a.bin").write_bytes(b"1234")
    assert read_instructions(tmp_path / "a.bin") == b"1234"
