"""One request at a time on the reference transformer, with a prefix cache; a `[bs]` line for every pass and step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npuprof.lines import format_line
from npuprof.targets.reference.device import FAMILIES
from npuprof.targets.reference.model import LAYER_LAUNCHES, Transformer
from npuprof.targets.reference.timing import terms_of
from npuprof.targets.reference.weights import MAX_CONTEXT, VOCABULARY, Weights, make_weights

Logits = NDArray[np.float32]


class Refused(ValueError):
    """A request that this server cannot serve: its text is the answer's."""


@dataclass(frozen=True)
class Choice:
    """One token with its log probability and the best alternatives, (id, log probability) each."""

    token: int
    logprob: float
    top: list[tuple[int, float]]


class Engine:
    """Owns the transformer. `say` gets every line that a server of this kind logs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        begin = time.monotonic()
        weights = make_weights()
        self._model = Transformer(weights)
        say(_import_line(weights, time.monotonic() - begin))
        self._fed: list[int] = []

    def check(self, prompt: Sequence[int], max_tokens: int) -> None:
        """Refused if the prompt is empty, has ids out of range, or does not fit the context."""
        if not prompt:
            raise Refused("the prompt is empty")
        if any(not 0 <= t < VOCABULARY for t in prompt):
            raise Refused(f"the prompt has token ids outside 0..{VOCABULARY - 1}")
        if len(prompt) + max_tokens > MAX_CONTEXT:
            raise Refused(f"{len(prompt)} prompt tokens and {max_tokens} more exceed the context of {MAX_CONTEXT}")

    def begin(self, prompt: Sequence[int], every: bool) -> tuple[int, Logits]:
        """Evaluates what of the prompt is not cached, in passes of up to 128 rows; at least its last token.

        Returns how many tokens were cached, and the logits after the rows of the last pass; `every`: after all rows
        evaluated.
        """
        cached = self._common(prompt)
        self._model.rewind(cached, self._fed)
        self._fed = list(prompt[:cached])
        found: list[Logits] = []
        at = cached
        while at < len(prompt):
            rows = list(prompt[at : at + FAMILIES[-1]])
            found.append(self._forward(rows))
            at += len(rows)
        return cached, np.concatenate(found) if every else found[-1]

    def step(self, token: int) -> Logits:
        """One decode step: the logits after `token`."""
        return self._forward([token])

    def _common(self, prompt: Sequence[int]) -> int:
        limit = min(len(self._fed), len(prompt) - 1)
        return next((i for i in range(limit) if self._fed[i] != prompt[i]), limit)

    def _forward(self, rows: list[int]) -> Logits:
        start = self._model.length
        begin = time.monotonic_ns()
        logits = self._model.forward(rows)
        logits.argmax(axis=1)
        end = time.monotonic_ns()
        self._model.commit(len(rows))
        self._fed += rows
        terms, head_device = terms_of(self._model.clocked, end)
        self._say(format_line(len(rows), start, (end - begin) / 1e6, terms, head_device, LAYER_LAUNCHES))
        return logits

    def close(self) -> None:
        self._model.close()


def choose(row: Logits, top: int) -> Choice:
    """The greedy token of one row of logits, with `top` best log probabilities."""
    wide = row.astype(np.float64)
    logs = wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())
    best = np.argsort(-logs, kind="stable")[: max(top, 1)]
    return Choice(int(best[0]), float(logs[best[0]]), [(int(i), float(logs[i])) for i in best[:top]])


def logprob_of(row: Logits, token: int) -> float:
    """The log probability of `token` after that row."""
    wide = row.astype(np.float64)
    return float(wide[token] - wide.max() - np.log(np.exp(wide - wide.max()).sum()))


def _import_line(weights: Weights, seconds: float) -> str:
    """The weights held against a second generation of them, kernel by kernel, as packs are against their source."""
    again = make_weights()
    pairs = list(zip(weights.layers, again.layers, strict=True))
    attention = [np.array_equal(getattr(a, k).weights, getattr(b, k).weights) for a, b in pairs for k in ("qkv", "out")]
    mlp = [np.array_equal(getattr(a, k).weights, getattr(b, k).weights) for a, b in pairs for k in ("gate_up", "down")]
    incomplete = attention.count(False) + mlp.count(False)
    return (
        f"import: incomplete {incomplete} | attention {sum(attention)}/{len(attention)} tiles byte for byte | "
        f"MLP {sum(mlp)}/{len(mlp)} groups byte for byte | {seconds:.0f} s"
    )
