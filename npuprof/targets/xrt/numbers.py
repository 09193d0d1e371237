"""Activations to the device's number formats, and what a GEMM of them must give: numpy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
_SCALE = np.float32(32)
POISON = 0xA5


def activations(rows: int, width: int) -> F32:
    """The same pseudo-random rows on every machine, about normal."""
    random = np.random.RandomState(width)
    return random.standard_normal((rows, width)).astype(np.float32)


def to_int8(x: F32) -> NDArray[np.int8]:
    """Rounded to 1/32, clipped to -127..127."""
    q: NDArray[np.int8] = np.clip(np.rint(x * _SCALE), -127, 127).astype(np.int8)
    return q


def to_bf16(x: F32) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest, ties to even; as raw 16-bit words."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(words: NDArray[np.uint16]) -> F32:
    return (words.astype(np.uint32) << 16).view(np.float32)


def pseudo_weights(size: int, seed: int) -> bytes:
    """So many pseudo-random bytes, for weights that a plan gives by size."""
    return np.random.RandomState(seed).bytes(size)


def gemm_int8(x: NDArray[np.int8], weights: bytes, columns: int) -> NDArray[np.int64]:
    """x (M, K) times weights (K, N) of int8, in whole numbers."""
    w = np.frombuffer(weights, np.int8).reshape(x.shape[1], columns)
    return x.astype(np.int64) @ w.astype(np.int64)


def gemm_bf16(x: NDArray[np.uint16], weights: bytes, columns: int) -> NDArray[np.float64]:
    """x (M, K) times weights (K, N) of bf16, in double precision."""
    w = np.frombuffer(weights, np.uint16).reshape(x.shape[1], columns)
    return from_bf16(x).astype(np.float64) @ from_bf16(w).astype(np.float64)
