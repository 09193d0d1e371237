"""Is a pass's wall time accounted for?"""

from __future__ import annotations

NEGATIVE_REST_MS = -0.001
_REST_SHARE = 0.02
_REST_FLOOR_MS = 0.5


def rest_is_large(wall_ms: float, rest_ms: float) -> bool:
    """More than 2 % of the wall and more than half a millisecond belong to no term."""
    return rest_ms > max(_REST_SHARE * wall_ms, _REST_FLOOR_MS)


def rest_is_negative(rest_ms: float, tolerance_ms: float = -NEGATIVE_REST_MS) -> bool:
    """The terms claim more than the wall: beyond 1 us for measured stamps, or the half-units of printed digits."""
    return rest_ms < -tolerance_ms
