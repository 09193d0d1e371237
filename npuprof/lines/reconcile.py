"""Do the numbers of one pass line add up, within the half-units of their printed digits?"""

from __future__ import annotations

from collections.abc import Iterable

# One float operation more than the digits explain: 0.1 + 0.2 is not 0.3.
_FLOAT_SLACK = 1e-9

HALF_UNITS = tuple(0.5 * 10.0**-d for d in range(16))
"""Half a unit of the last digit, by the number of decimals printed."""

Printed = tuple[float, float]
"""A printed number: its value and the half-unit of its last digit, both ms."""


def half_unit(digits: str) -> float:
    """Half a unit of the last printed digit: 0.05 for "878.0", 0.5 for "878"."""
    return HALF_UNITS[len(digits.partition(".")[2])]


def adds_up(total: Printed, parts: Iterable[Printed], *, exhaustive: bool = True) -> bool:
    """Is `total` the sum of `parts`, or, where the parts are not all there is, at least their sum?"""
    gap, slack = total[0], total[1] + _FLOAT_SLACK
    for value, half in parts:
        gap -= value
        slack += half
    return -slack <= gap <= slack if exhaustive else gap >= -slack
