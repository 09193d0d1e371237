"""The reference transformer's host work: norms, rotary positions, attention, activation.

Every sum is over whole numbers or exact in any order, and everything else is element by element, so that a row comes
out bit for bit the same alone and in a batch. Softmax therefore works on whole numbers, with exp from a table.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from npuprof.targets.reference.device import F32, FAMILIES, I8
from npuprof.targets.reference.weights import FFN, GRID, HEAD_DIM, HEADS, HIDDEN, LAYERS, MAX_CONTEXT

_CACHE_SCALE = np.float32(32)
_PEAK = 63
_BUCKET = 64
_REAL_PER_BUCKET = _BUCKET / (float(_CACHE_SCALE) ** 2 * sqrt(HEAD_DIM))
_AHEAD = np.triu(np.ones((FAMILIES[-1], FAMILIES[-1]), np.bool_), 1)
_EXP = np.rint(_PEAK * np.exp(-_REAL_PER_BUCKET * np.arange(512))).astype(np.float32)


def quantise(x: F32) -> tuple[I8, F32]:
    """Rows to int8 with one scale a row: x is about q x scale. Shapes (M, K), (M, 1)."""
    peak = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.float32(1e-6))
    q = np.rint(x * (np.float32(127) / peak)).astype(np.int8)
    return q, peak / np.float32(127)


def rms_norm(x: F32) -> F32:
    """x over its root mean square, a row at a time; exact because x lies on the grid."""
    wide = x.astype(np.float64)
    mean = np.einsum("ij,ij->i", wide, wide) / HIDDEN
    normed: F32 = (wide / np.sqrt(mean + 1e-6)[:, None]).astype(np.float32)
    return normed


def add_residual(x: F32, update: F32) -> F32:
    """x + update, back on the grid."""
    on_grid: F32 = np.rint((x + update) * GRID) / GRID
    return on_grid


def gated(gate_up: F32) -> F32:
    """ReLU(gate) x up: (M, 2 FFN) to (M, FFN)."""
    return np.maximum(gate_up[:, :FFN], 0) * gate_up[:, FFN:]


def _rotary_tables() -> tuple[F32, F32]:
    rates = 10_000.0 ** (-np.arange(HEAD_DIM // 2) / (HEAD_DIM // 2))
    angles = np.arange(MAX_CONTEXT)[:, None] * rates
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Attention:
    """Causal self-attention over an int8 key-value cache whose tail can be rolled back by moving a length."""

    def __init__(self) -> None:
        self.keys = np.zeros((LAYERS, HEADS, HEAD_DIM, MAX_CONTEXT), np.float32)
        self.values = np.zeros((LAYERS, HEADS, MAX_CONTEXT, HEAD_DIM), np.float32)
        self._cos, self._sin = _rotary_tables()

    def attend(self, layer: int, qkv: F32, start: int) -> F32:
        """Writes the rows' keys and values at `start` and attends: (M, 3 HIDDEN) to (M, HIDDEN)."""
        m = qkv.shape[0]
        end = start + m
        q, k, v = qkv.reshape(m, 3, HEADS, HEAD_DIM).transpose(1, 2, 0, 3)
        cos, sin = self._cos[start:end], self._sin[start:end]
        self.keys[layer, :, :, start:end] = _whole(_rotate(k, cos, sin)).transpose(0, 2, 1)
        self.values[layer, :, start:end] = _whole(v)
        scores = np.matmul(_whole(_rotate(q, cos, sin)), self.keys[layer, :, :, :end])
        # Only the rows of this very pass can lie ahead of a row; what is committed is visible to all of them.
        ahead = _AHEAD[:m, :m]
        np.copyto(scores[:, :, start:], -np.inf, where=ahead)
        below = scores.max(axis=2, keepdims=True) - scores
        weights = _EXP[np.minimum(below / _BUCKET, 511).astype(np.intp)]
        np.copyto(weights[:, :, start:], 0, where=ahead)
        mixed = np.matmul(weights, self.values[layer, :, :end])
        mixed /= weights.sum(axis=2, keepdims=True) * _CACHE_SCALE
        return np.ascontiguousarray(mixed.transpose(1, 0, 2)).reshape(m, HIDDEN)


def _rotate(x: NDArray[np.float32], cos: F32, sin: F32) -> F32:
    half = HEAD_DIM // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), axis=-1)


def _whole(x: NDArray[np.float32]) -> F32:
    whole: F32 = np.clip(np.rint(x * _CACHE_SCALE), -127, 127)
    return whole
