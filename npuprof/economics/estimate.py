"""A figure with its interval, and what arithmetic makes of both."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite


@dataclass(frozen=True)
class Estimate:
    """A figure that is not negative, with low <= value <= high. An unknown interval reaches from 0 to infinity."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high or not isfinite(self.value):
            raise ValueError(f"not an estimate: {self.low} <= {self.value} <= {self.high}")

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        return cls(value, value, value)

    @classmethod
    def unknown(cls, value: float) -> Estimate:
        """Only the point is known."""
        return cls(value, 0.0, inf)

    @classmethod
    def around(cls, value: float, half_unit: float) -> Estimate:
        """A printed figure: known to half a unit of its last digit."""
        return cls(value, max(0.0, value - half_unit), value + half_unit)

    @property
    def known(self) -> bool:
        return isfinite(self.high)

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)

    def __truediv__(self, other: Estimate) -> Estimate:
        """ZeroDivisionError if the other's value is 0."""
        return Estimate(
            self.value / other.value,
            0.0 if not other.known else self.low / other.high,
            inf if other.low == 0 else self.high / other.low,
        )

    def times(self, n: float) -> Estimate:
        return Estimate(self.value * n, self.low * n, self.high * n if n else 0.0)

    def reaching(self, low: float, high: float) -> Estimate:
        """The same value with this interval, widened where the value lies outside it."""
        return Estimate(self.value, min(self.value, low), max(self.value, high))

    def as_dict(self) -> dict[str, float | None]:
        """low and high are null where the interval is not known."""
        return {
            "value": self.value,
            "low": self.low if self.known else None,
            "high": self.high if self.known else None,
        }
