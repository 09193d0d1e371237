"""A target that a plan cannot say: two launches on the NPU with attention on the host between them.

npuprof run --target attention_target:make --rows 2,8,16
"""

import time
from pathlib import Path

import numpy as np
import pyxrt

from npuprof.model.passes import Terms
from npuprof.model.record import TargetInfo
from npuprof.targets.base import Timing
from npuprof.targets.xrt.parts import Npu, Waiter, make_launch, read_instructions

ROWS, WIDTH = 16, 256


class Attention:
    def __init__(self) -> None:
        self.npu = Npu(pyxrt, 0)
        self.waiter = Waiter(pyxrt)
        kernel = self.npu.kernel(Path("final.xclbin"), "MLIR_AIE")
        stream = read_instructions(Path("insts.bin"))
        insts = self.npu.buffer(kernel, 1, len(stream), instructions=True)
        insts.fill(stream)
        weights = self.npu.buffer(kernel, 4, WIDTH * WIDTH)
        weights.fill(np.ones(WIDTH * WIDTH, np.int8))
        self.x = self.npu.buffer(kernel, 3, ROWS * WIDTH)
        self.y = self.npu.buffer(kernel, 5, ROWS * WIDTH * 4)
        self.launch = make_launch(kernel, "qkv", insts, len(stream), [self.x, weights, self.y])
        self.rows = 1

    def describe(self) -> TargetInfo:
        name = f"{self.npu.info('name')} ({self.npu.info('bdf')})"
        on_npu = Path(f"/sys/bus/pci/devices/{self.npu.info('bdf')}/driver").resolve().name == "amdxdna"
        return TargetInfo(kind="own", device=name, backend="pyxrt", simulated=not on_npu, on_npu=on_npu)

    def prepare(self, rows: int, start: int) -> None:
        self.rows = rows

    def run_pass(self) -> Timing:
        now, wait_ns, failed = time.monotonic_ns, 0, None
        begin = now()
        for _ in range(2):
            self.x.to_device()
            self.launch.start()
            t = now()
            state = self.waiter.wait(self.launch.run)
            wait_ns += now() - t
            if state != self.waiter.states.completed:
                failed = f"launch {self.launch.name}: {self.waiter.states.failed.get(state, state)}"
                break
            self.y.from_device()
            scores = self.y.view.view(np.int32).reshape(ROWS, WIDTH)[: self.rows].astype(np.float32)
            mixed = np.tanh(scores @ scores.T) @ scores  # stands where attention would be
            self.x.view.view(np.int8).reshape(ROWS, WIDTH)[: self.rows] = np.clip(mixed, -127, 127)
        return Timing(begin, now(), Terms(device_wait_ms=wait_ns / 1e6), launches=2, void_reason=failed)

    run_step = run_pass

    def close(self) -> None:
        pass


def make() -> Attention:
    return Attention()
