"""Shapes and fixed pseudo-random weights of the reference transformer."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from npuprof.targets.reference.device import Kernel

LAYERS = 28
HIDDEN = 256
HEADS = 8
HEAD_DIM = HIDDEN // HEADS
FFN = 768
VOCABULARY = 4096
HEAD_LAUNCHES = 4
MAX_CONTEXT = 2080
"""63 x 127 x 2080 < 2^24: attention's integer sums stay exact in float32 up to this context."""

_SEED = 20_261_110
_UNIFORM_STD = 73.3  # of whole numbers -127..127
GRID = np.float32(1024)
"""The residual stream lives on multiples of 1 / 1024, so that sums of its squares are exact in any order."""


@dataclass(frozen=True)
class Layer:
    qkv: Kernel
    out: Kernel
    gate_up: Kernel
    down: Kernel


@dataclass(frozen=True)
class Weights:
    embedding: NDArray[np.float32]
    layers: list[Layer]
    head: list[Kernel]


def make_weights() -> Weights:
    """The same weights on every machine: numpy's legacy generator is frozen by its compatibility policy."""
    random = np.random.RandomState(_SEED)

    def kernel(k: int, n: int) -> Kernel:
        values = random.randint(-127, 128, size=(k, n), dtype=np.int8)
        return Kernel(values.astype(np.float32), np.float32(1 / (_UNIFORM_STD * sqrt(k))))

    embedding = random.randint(-2048, 2049, size=(VOCABULARY, HIDDEN)).astype(np.float32) / GRID
    layers = [
        Layer(kernel(HIDDEN, 3 * HIDDEN), kernel(HIDDEN, HIDDEN), kernel(HIDDEN, 2 * FFN), kernel(FFN, HIDDEN))
        for _ in range(LAYERS)
    ]
    return Weights(embedding, layers, [kernel(HIDDEN, VOCABULARY // HEAD_LAUNCHES) for _ in range(HEAD_LAUNCHES)])
