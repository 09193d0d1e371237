"""The protocol of a collector."""

from __future__ import annotations

from typing import Protocol

from npuprof.model.record import Reading


class Collector(Protocol):
    """One source. `read` may wake the device only if it is called before, after or between rounds, never in a pass."""

    name: str

    def read(self) -> Reading:
        """The source's state now. Never raises: what cannot be read is a status with its reason."""
        ...
