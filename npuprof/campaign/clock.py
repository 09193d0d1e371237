"""Time, so that tests can bring their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC: the axis of all stamps; it stands still while the machine is suspended."""
        ...

    def boottime_ns(self) -> int:
        """CLOCK_BOOTTIME: goes on through a suspend."""
        ...

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def wall_s(self) -> float:
        return time.time()
