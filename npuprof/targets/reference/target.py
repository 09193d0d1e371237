"""The reference transformer as a target."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from npuprof.lines import format_line
from npuprof.model.record import Family, TargetInfo
from npuprof.targets.base import ParityOutcome, Timing
from npuprof.targets.parity import check_parity
from npuprof.targets.reference.device import FAMILIES
from npuprof.targets.reference.model import LAYER_LAUNCHES, Transformer, fixed_prompt, greedy
from npuprof.targets.reference.timing import terms_of
from npuprof.targets.reference.weights import FFN, HIDDEN, LAYERS, MAX_CONTEXT, VOCABULARY

DEVICE = "reference transformer on the CPU, not an NPU"


class ReferenceTarget:
    """Steps and verify passes of the reference transformer from a fixed prompt, each ending with greedy tokens."""

    def __init__(self) -> None:
        # One BLAS thread: the "device" is one worker, and a second one would compete with the host's own work.
        threadpool_limits(limits=1, user_api="blas")
        self._model = Transformer()
        self._prompt = fixed_prompt(MAX_CONTEXT)
        self._rows: list[int] = []
        self._start = 0

    def describe(self) -> TargetInfo:
        blas = next((lib for lib in threadpool_info() if lib["user_api"] == "blas"), None)
        library = (
            f"{blas['internal_api']} {blas['version']} ({blas.get('architecture', 'unknown')}), {blas['num_threads']} thread"
            if blas
            else "BLAS unknown"
        )
        return TargetInfo(
            kind="reference",
            device=DEVICE,
            backend=f"numpy {np.__version__}, {library}, {platform.machine()}",
            simulated=True,
            families=[Family(rows=f, kernel=f"int8 GEMM padded to {f} rows") for f in FAMILIES],
            waiting="blocking, one worker thread",
            model=f"{LAYERS} layers, hidden {HIDDEN}, feed-forward {FFN}, vocabulary {VOCABULARY}, pseudo-random weights",
        )

    def prepare(self, rows: int, start: int) -> None:
        self._model.rewind(start, self._prompt)
        self._rows = self._prompt[start : start + rows]
        self._start = start

    def run_step(self) -> Timing:
        return self._run()

    def run_pass(self) -> Timing:
        return self._run()

    def _run(self) -> Timing:
        rows = len(self._rows)
        begin = time.monotonic_ns()
        self._model.forward(self._rows).argmax(axis=1)
        end = time.monotonic_ns()
        terms, head_device = terms_of(self._model.clocked, end)
        wall = (end - begin) / 1e6
        return Timing(
            at_ns=begin,
            end_ns=end,
            terms=terms,
            head_device_ms=head_device,
            launches=LAYER_LAUNCHES,
            kind="verify",
            head_rows=rows,
            line=format_line(rows, self._start, wall, terms, head_device, LAYER_LAUNCHES),
        )

    def check_parity(self, rows: int, start: int) -> ParityOutcome:
        return check_parity(_Greedy(self._model, self._prompt), rows, start)

    def close(self) -> None:
        self._model.close()


class _Greedy:
    """The transformer in the words of `GreedyModel`."""

    def __init__(self, model: Transformer, prompt: Sequence[int]) -> None:
        self._model = model
        self._prompt = prompt

    def reset(self, start: int) -> int:
        self._model.rewind(start, self._prompt)
        return self._prompt[start]

    def step(self, token: int) -> tuple[int, float]:
        tokens, margins = greedy(self._model.forward([token]))
        self._model.commit(1)
        return tokens[0], margins[0]

    def verify(self, tokens: Sequence[int]) -> tuple[list[int], list[float]]:
        return greedy(self._model.forward(tokens))

    def commit(self, accepted: int) -> None:
        self._model.commit(accepted)

    def state(self) -> bytes:
        return self._model.digest()
