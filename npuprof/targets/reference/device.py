"""The reference target's "device": a worker thread that multiplies int8 rows by resident weights.

It stands where the NPU stands: rows are quantised for it, packed into its buffers, submitted, waited for and read back.
Integers of int8 range in float32 stay exact while K x 127 x 127 < 2^24, so a row's result does not depend on the batch.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I8 = NDArray[np.int8]

FAMILIES = (16, 128)
"""Rows for which the kernels are compiled: a pass is padded to the smallest family that holds it."""


def family_of(rows: int) -> int:
    """The padded rows of a pass. ValueError above the largest family."""
    for family in FAMILIES:
        if rows <= family:
            return family
    raise ValueError(f"the reference target has kernels for up to {FAMILIES[-1]} rows, not {rows}")


@dataclass(frozen=True)
class Kernel:
    """Resident weights (K x N int8 values, held as float32) and their scale: real weight = value x scale."""

    weights: F32
    scale: np.float32


class Device:
    """Executes launches in the order submitted, one at a time. Buffers are made once per width and family."""

    def __init__(self) -> None:
        self._submitted: SimpleQueue[tuple[Kernel, int] | None] = SimpleQueue()
        self._done: SimpleQueue[F32 | BaseException] = SimpleQueue()
        self._inputs: dict[tuple[int, int], I8] = {}
        self._outputs: dict[tuple[int, int], F32] = {}
        self._scratch: dict[tuple[int, int], F32] = {}
        self._thread = threading.Thread(target=self._work, name="reference-device", daemon=True)
        self._thread.start()

    def make_buffers(self, kernel: Kernel, family: int) -> None:
        """Allocates what launches of this shape need, so that no pass has to."""
        k, n = kernel.weights.shape
        self._inputs.setdefault((family, k), np.zeros((family, k), np.int8))
        self._scratch.setdefault((family, k), np.zeros((family, k), np.float32))
        self._outputs.setdefault((family, n), np.zeros((family, n), np.float32))

    def pack(self, rows: I8, family: int) -> None:
        """Writes the rows into the input buffer; the padding below them is zeroed."""
        m, k = rows.shape
        buffer = self._inputs[family, k]
        buffer[:m] = rows
        buffer[m:] = 0

    def submit(self, kernel: Kernel, family: int) -> None:
        self._submitted.put((kernel, family))

    def wait(self) -> F32:
        """The oldest submitted launch's output, family x N, valid until the next launch of that width."""
        out = self._done.get()
        if isinstance(out, BaseException):
            raise RuntimeError("the reference device failed") from out
        return out

    def close(self) -> None:
        self._submitted.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._submitted.get()) is not None:
            try:
                self._done.put(self._execute(*job))
            except BaseException as e:  # noqa: BLE001 - handed to the host thread, which raises it
                self._done.put(e)

    def _execute(self, kernel: Kernel, family: int) -> F32:
        k, n = kernel.weights.shape
        scratch, out = self._scratch[family, k], self._outputs[family, n]
        np.copyto(scratch, self._inputs[family, k])
        np.matmul(scratch, kernel.weights, out=out)
        return out
