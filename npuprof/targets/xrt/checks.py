"""Correct before timed: a launch's output against a golden file or against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuprof.targets.base import ParityOutcome
from npuprof.targets.xrt.layout import Step
from npuprof.targets.xrt.numbers import POISON, from_bf16, gemm_bf16, gemm_int8
from npuprof.targets.xrt.parts import Waiter
from npuprof.targets.xrt.plan import Check

_DTYPES: dict[str, Any] = {"int32": np.int32, "float32": np.float32, "bf16": np.uint16}


def check_launch(
    check: Check, step: Step, rows: int, source: NDArray[np.float32], waiter: Waiter, folder: Path
) -> ParityOutcome:
    """Runs the launch once on a poisoned output. `source` (rows, K) is what a pass would send."""
    if (
        step.packed is None
        or step.send is None
        or step.quantise is None
        or step.produced is None
        or step.receive is None
    ):
        return ParityOutcome(False, 0, f"launch {check.launch} has no input or no output to check")
    if check.kind == "golden":
        assert check.input is not None
        sent = np.frombuffer((folder / check.input).read_bytes(), step.packed.dtype)
        if sent.size != step.packed.size:
            return ParityOutcome(
                False, 0, f"{check.input} has {sent.nbytes} bytes, the launch takes {step.packed.nbytes}"
            )
        step.packed[:] = sent.reshape(step.packed.shape)
    else:
        step.packed[:] = 0
        step.packed[:rows] = step.quantise(source)
    step.send()
    output = step.prebuilt.output
    assert output is not None
    step.produced[:] = POISON
    output.to_device()
    step.start()
    state = waiter.wait(step.run)
    if state != waiter.states.completed:
        name = waiter.states.failed.get(state, str(state))
        return ParityOutcome(False, 0, f"launch {check.launch} ended in ERT_CMD_STATE_{name}")
    step.receive()
    got = step.produced if check.kind == "golden" else step.produced[:rows]
    if (got == POISON).all():
        return ParityOutcome(False, 0, f"launch {check.launch} completed and left its output untouched")
    return _compare(check, step, rows, got, folder)


def _compare(check: Check, step: Step, rows: int, got: NDArray[np.uint8], folder: Path) -> ParityOutcome:
    have = np.ascontiguousarray(got).view(_DTYPES[check.out])
    columns = have.shape[1]
    if check.kind == "golden":
        assert check.golden is not None
        raw = (folder / check.golden).read_bytes()
        if len(raw) != got.nbytes:
            return ParityOutcome(False, 0, f"{check.golden} has {len(raw)} bytes, the launch gives {got.nbytes}")
        want: NDArray[Any] = np.frombuffer(raw, have.dtype).reshape(have.shape)
        want = from_bf16(want) if check.out == "bf16" else want
    else:
        assert step.packed is not None
        word = 2 if check.kind == "bf16_gemm" else 1
        if len(step.weights) != step.packed.shape[1] * columns * word:
            shape = f"{step.packed.shape[1]} x {columns}"
            return ParityOutcome(
                False, 0, f"launch {check.launch}: {len(step.weights)} bytes of weights are no {shape} matrix"
            )
        gemm = gemm_bf16 if check.kind == "bf16_gemm" else gemm_int8
        want = gemm(step.packed[:rows], step.weights, columns)
    values = from_bf16(have) if check.out == "bf16" else have
    return _outcome(check, np.asarray(values, np.float64), np.asarray(want, np.float64))


def _outcome(check: Check, have: NDArray[np.float64], want: NDArray[np.float64]) -> ParityOutcome:
    """`tolerance` is relative to the largest value wanted; 0 means bit for bit."""
    off = np.abs(have - want)
    allowed = check.tolerance * float(np.abs(want).max(initial=0.0))
    # A NaN is never within anything.
    wrong = ~(off <= allowed)
    if not wrong.any():
        return ParityOutcome(True)
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    text = (
        f"launch {check.launch}: row {row}, column {column} is {have[row, column]:g} and must be {want[row, column]:g} "
        f"({int(wrong.sum())} of {wrong.size} values differ by more than {allowed:g})"
    )
    return ParityOutcome(False, 0, text)
