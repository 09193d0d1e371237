"""Histograms of wall times, one a condition, in characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from npuprof.render.text import ms

_BINS = 12


def histogram(values: Sequence[float], width: int) -> list[str]:
    """Up to 12 equal bins from min to max, one line a bin: its range in ms, a bar, its count."""
    low, high = min(values), max(values)
    bins = _BINS if high > low else 1
    counts = [0] * bins
    for v in values:
        counts[min(bins - 1, int((v - low) / (high - low) * bins)) if high > low else 0] += 1
    edges = [low + (high - low) * i / bins for i in range(bins + 1)]
    labels = [f"{ms(a)} – {ms(b)}" for a, b in pairwise(edges)]
    pad = max(map(len, labels))
    room = max(1, width - pad - 8)
    scale = min(1.0, room / max(counts))
    return [
        f"{label:>{pad}} {'#' * round(n * scale) or ('.' if n else '')} {n}"
        for label, n in zip(labels, counts, strict=True)
    ]
