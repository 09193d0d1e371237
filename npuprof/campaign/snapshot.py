"""The evidence before and after: every collector asked once."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.base import Collector
from npuprof.model.record import Reading


def take(collectors: Sequence[Collector]) -> dict[str, Reading]:
    """One reading a collector, by its name."""
    return {c.name: c.read() for c in collectors}
