"""A plan made whole on a device: buffers, runs and arguments, each made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuprof.targets.xrt.numbers import pseudo_weights, to_bf16, to_int8
from npuprof.targets.xrt.parts import Buffer, Kernel, LaunchRun, Npu, make_launch, read_instructions
from npuprof.targets.xrt.plan import Family, Launch, Plan


@dataclass
class Step:
    """One launch of a pass, ready to go: what the timed loop touches, looked up beforehand.

    `packed` and `produced` are the device's buffers seen as rows; `result` is where the output is read to.
    """

    launch: Launch
    prebuilt: LaunchRun
    start: Callable[[], None]
    run: Any
    quantise: Callable[[Any], NDArray[Any]] | None
    packed: NDArray[Any] | None
    send: Callable[[], None] | None
    receive: Callable[[], None] | None
    produced: NDArray[Any] | None
    result: NDArray[Any] | None
    weights: bytes


class Layout:
    """The steps of a pass for each family, `layers` and `head` apart; `noop` if the plan has one."""

    def __init__(self, npu: Npu, plan: Plan, folder: Path) -> None:
        self._npu = npu
        self._plan = plan
        self._folder = folder
        self._instructions: dict[Path, tuple[Buffer, int]] = {}
        self.layers = {f.rows: self._steps(f, plan.launches, plan.layers) for f in plan.families}
        self.head = {
            f.rows: self._steps(f, self._for(f, plan.head), 1) for f in plan.families if self._for(f, plan.head)
        }
        self.noop = self._noop()

    def _for(self, family: Family, launches: list[Launch]) -> list[Launch]:
        return [x for x in launches if family.elf is not None or family.rows in x.insts]

    def _steps(self, family: Family, launches: list[Launch], layers: int) -> list[Step]:
        shared = {x.name: self._io(family, x) for x in launches}
        return [self._step(family, x, layer, *shared[x.name]) for layer in range(layers) for x in launches]

    def _kernel(self, family: Family, name: str | None) -> Kernel:
        wanted = name or family.kernel
        if family.elf is not None:
            return self._npu.elf_kernel(self._folder / family.elf, wanted)
        assert family.xclbin is not None
        return self._npu.kernel(self._folder / family.xclbin, wanted)

    def _io(self, family: Family, launch: Launch) -> tuple[Kernel, Buffer | None, Buffer | None]:
        kernel = self._kernel(family, launch.kernel)
        first = 0 if family.elf is not None else 3
        weights = bool(launch.weights or launch.weights_bytes)
        inputs = outputs = None
        if launch.in_bytes_per_row:
            inputs = self._npu.buffer(kernel, first, family.rows * launch.in_bytes_per_row)
        if launch.out_bytes_per_row:
            at = first + (inputs is not None) + weights
            outputs = self._npu.buffer(kernel, at, family.rows * launch.out_bytes_per_row)
        return kernel, inputs, outputs

    def _step(
        self, family: Family, launch: Launch, layer: int, kernel: Kernel, inputs: Buffer | None, output: Buffer | None
    ) -> Step:
        elf = family.elf is not None
        data = self._weights(launch, layer)
        weights = None
        if data:
            weights = self._npu.buffer(kernel, (0 if elf else 3) + (inputs is not None), len(data))
            weights.fill(data)
        instructions, words = (None, 0) if elf else self._stream(kernel, launch.insts[family.rows])
        prebuilt = make_launch(kernel, launch.name, instructions, words, [inputs, weights, output], elf=elf)
        word = np.uint16 if launch.dtype == "bf16" else np.int8
        rows = family.rows
        produced = output.view.reshape(rows, launch.out_bytes_per_row) if output else None
        return Step(
            launch=launch,
            prebuilt=prebuilt,
            start=prebuilt.run.start,
            run=prebuilt.run,
            quantise=None if inputs is None else to_bf16 if launch.dtype == "bf16" else to_int8,
            packed=inputs.view.view(word).reshape(rows, -1) if inputs else None,
            send=inputs.to_device if inputs else None,
            receive=output.from_device if output else None,
            produced=produced,
            result=np.empty_like(produced) if produced is not None else None,
            weights=data,
        )

    def _weights(self, launch: Launch, layer: int) -> bytes:
        if launch.weights is not None:
            return (self._folder / launch.weights).read_bytes()
        return pseudo_weights(launch.weights_bytes, layer) if launch.weights_bytes else b""

    def _stream(self, kernel: Kernel, file: Path) -> tuple[Buffer, int]:
        if file not in self._instructions:
            data = read_instructions(self._folder / file)
            buffer = self._npu.buffer(kernel, 1, len(data), instructions=True)
            buffer.fill(data)
            self._instructions[file] = (buffer, len(data))
        return self._instructions[file]

    def _noop(self) -> LaunchRun | None:
        noop = self._plan.noop
        if noop is None:
            return None
        family = next(f for f in self._plan.families if f.rows == noop.rows)
        kernel = self._kernel(family, None)
        instructions, words = self._stream(kernel, noop.insts)
        return make_launch(kernel, "noop", instructions, words, [None, None, None])
