"""The reference transformer: a forward of M rows, with a stamp at every border between terms."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from npuprof.targets.reference.device import F32, FAMILIES, Device, Kernel, family_of
from npuprof.targets.reference.host import Attention, add_residual, gated, quantise, rms_norm
from npuprof.targets.reference.weights import HIDDEN, LAYERS, MAX_CONTEXT, VOCABULARY, Weights, make_weights

LAYER_LAUNCHES = 4 * LAYERS


class Clocked:
    """Nanoseconds of one forward by where they went, and the instant at which its head began; filled in place."""

    __slots__ = ("embed", "head_begin", "head_device", "layers", "pack", "quantise_launch", "readback", "wait")

    def clear(self) -> None:
        self.embed = self.pack = self.quantise_launch = self.wait = self.readback = 0
        self.layers = self.head_begin = self.head_device = 0


class Transformer:
    """28 layers of 4 launches, attention and norms on the host, an LM head of 4 launches; greedy.

    `length` tokens are committed; a forward writes its rows behind them and commits nothing by itself.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights if weights is not None else make_weights()
        self.device = Device()
        self.attention = Attention()
        self.length = 0
        self.clocked = Clocked()
        self._history: list[int] = []
        self._pending: list[int] = []
        for family in FAMILIES:
            first = self.weights.layers[0]
            for kernel in (first.qkv, first.out, first.gate_up, first.down, self.weights.head[0]):
                self.device.make_buffers(kernel, family)

    def forward(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Logits (M, VOCABULARY) of M rows behind the committed ones; `clocked` then holds where the time went.

        ValueError if the rows do not fit the context or the largest kernel family.
        """
        m, start = len(tokens), self.length
        family = family_of(m)
        if start + m > MAX_CONTEXT:
            raise ValueError(f"position {start + m} is beyond the reference target's context of {MAX_CONTEXT}")
        t = self.clocked
        t.clear()
        now = time.monotonic_ns
        began = now()
        x = self.weights.embedding[list(tokens)]
        embedded = now()
        t.embed = embedded - began
        for i, layer in enumerate(self.weights.layers):
            qkv = self._launch(layer.qkv, rms_norm(x), family)
            x = add_residual(x, self._launch(layer.out, self.attention.attend(i, qkv, start), family))
            gate_up = self._launch(layer.gate_up, rms_norm(x), family)
            x = add_residual(x, self._launch(layer.down, gated(gate_up), family))
        t.head_begin = now()
        t.layers = t.head_begin - embedded
        before = (t.pack, t.quantise_launch, t.wait, t.readback)
        normed = rms_norm(x)
        logits = np.concatenate([self._launch(kernel, normed, family) for kernel in self.weights.head], axis=1)
        # The head's own launches ran on the same device: taken out of the layers' terms and kept as head_device.
        t.head_device = t.pack + t.quantise_launch + t.wait + t.readback - sum(before)
        t.pack, t.quantise_launch, t.wait, t.readback = before
        self._pending = list(tokens)
        return logits

    def _launch(self, kernel: Kernel, x: F32, family: int) -> F32:
        t, device, now = self.clocked, self.device, time.monotonic_ns
        t0 = now()
        q, scale = quantise(x)
        t1 = now()
        device.pack(q, family)
        t2 = now()
        device.submit(kernel, family)
        t3 = now()
        out = device.wait()
        t4 = now()
        back = out[: x.shape[0]] * (scale * kernel.scale)
        t5 = now()
        t.quantise_launch += t1 - t0 + t3 - t2
        t.pack += t2 - t1
        t.wait += t4 - t3
        t.readback += t5 - t4
        return back

    def commit(self, accepted: int) -> None:
        """Keeps the first `accepted` rows of the last forward and rolls the rest back."""
        self._history = self._history[: self.length] + self._pending[:accepted]
        self.length += accepted

    def rewind(self, start: int, prompt: Sequence[int]) -> None:
        """The state with the first `start` tokens of `prompt` committed, reusing what the cache already holds."""
        keep = 0
        while keep < min(self.length, start) and self._history[keep] == prompt[keep]:
            keep += 1
        self.length, self._history = keep, self._history[:keep]
        while self.length < start:
            chunk = prompt[self.length : min(start, self.length + FAMILIES[-1])]
            self.forward(chunk)
            self.commit(len(chunk))

    def digest(self) -> bytes:
        """Of everything that the next forward depends on: the committed length and the cache up to it."""
        h = hashlib.blake2b(self.length.to_bytes(4, "little"), digest_size=16)
        h.update(self.attention.keys[:, :, :, : self.length].tobytes())
        h.update(self.attention.values[:, :, : self.length].tobytes())
        return h.digest()

    def close(self) -> None:
        self.device.close()


def greedy(logits: NDArray[np.float32]) -> tuple[list[int], list[float]]:
    """Per row, the best token and its margin over the second."""
    best = logits.argmax(axis=1)
    two = np.partition(logits, -2, axis=1)[:, -2:]
    return [int(b) for b in best], [float(m) for m in two[:, 1] - two[:, 0]]


def fixed_prompt(length: int) -> list[int]:
    """The same pseudo-random tokens on every machine."""
    random = np.random.RandomState(HIDDEN)
    return [int(t) for t in random.randint(0, VOCABULARY, size=length)]
