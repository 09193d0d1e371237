"""One stated figure against what the others make of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any, Literal

from npuprof.economics.estimate import Estimate

Status = Literal["ok", "within_rounding", "differs", "underivable"]

RATIO_HALF_UNIT = 0.0005
"""Ratios are printed to 3 decimals with trailing zeros dropped."""
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Figure:
    """`derived` is a number, the two ends that a figure must lie between, or None; `sources` are what it came from."""

    name: str
    where: str
    stated: float | str | None
    derived: float | tuple[float, float] | str | None
    status: Status
    sources: tuple[str, ...]
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        derived = list(self.derived) if isinstance(self.derived, tuple) else self.derived
        return {
            "name": self.name,
            "where": self.where,
            "stated": self.stated,
            "derived": derived,
            "status": self.status,
            "from": list(self.sources),
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Printed:
    """A number with the digits that stand for it."""

    text: str
    half_unit: float

    @classmethod
    def ms(cls, text: str) -> Printed:
        """Known to half a unit of its last digit."""
        _, _, decimals = text.partition(".")
        return cls(text, 0.5 * 10.0 ** -len(decimals))

    @classmethod
    def ratio(cls, text: str) -> Printed:
        _, _, decimals = text.partition(".")
        return cls(text, min(RATIO_HALF_UNIT, 0.5 * 10.0 ** -len(decimals)) if len(decimals) > 3 else RATIO_HALF_UNIT)

    @classmethod
    def count(cls, text: str) -> Printed:
        return cls(text, 0.0)

    @property
    def value(self) -> float:
        return float(self.text)

    @property
    def estimate(self) -> Estimate:
        return Estimate.around(self.value, self.half_unit)


def compared(name: str, where: str, stated: Printed, derived: Estimate, sources: tuple[str, ...]) -> Figure:
    """ok: the derived figure rounds to the printed one. within_rounding: the digits that it comes from leave room for it."""
    value, half = stated.value, stated.half_unit
    if abs(derived.value - value) <= half + _TOLERANCE * max(1.0, abs(value)):
        return Figure(name, where, value, derived.value, "ok", sources)
    reach = _TOLERANCE * max(1.0, abs(value))
    if derived.low - reach <= value + half and value - half <= derived.high + reach:
        return Figure(name, where, value, derived.value, "within_rounding", sources)
    return Figure(name, where, value, derived.value, "differs", sources, _off(stated, derived.value))


def _off(stated: Printed, derived: float) -> str:
    """By how much, and in which digits."""
    decimals = len(stated.text.partition(".")[2]) if stated.half_unit < RATIO_HALF_UNIT or "." in stated.text else 0
    if stated.half_unit == RATIO_HALF_UNIT:
        decimals = 3
    here, there = f"{stated.value:.{decimals}f}", f"{derived:.{decimals}f}"
    by = f"{stated.value - derived:+.{max(decimals, 3)}f}"
    if len(here) != len(there):
        return f"off by {by}"
    places = [
        str(i) for i, (a, b) in enumerate(zip(here.replace(".", ""), there.replace(".", ""), strict=True), 1) if a != b
    ]
    return f"off by {by}: {here} stated, {there} derived, digit {' and '.join(places)}" if places else f"off by {by}"


def between(
    name: str, where: str, stated: Printed, low: Printed | None, high: Printed | None, sources: tuple[str, ...]
) -> Figure:
    """Does the figure lie between two others? None: no end on that side."""
    value = stated.value
    a = -float("inf") if low is None else low.value
    b = float("inf") if high is None else high.value
    ends = (a if isfinite(a) else value, b if isfinite(b) else value)
    if a <= value <= b:
        return Figure(name, where, value, ends, "ok", sources)
    slack = stated.half_unit + max(0.0 if e is None else e.half_unit for e in (low, high))
    status: Status = "within_rounding" if a - slack <= value <= b + slack else "differs"
    detail = "" if status != "differs" else f"{value:g} lies outside [{ends[0]:g}, {ends[1]:g}]"
    return Figure(name, where, value, ends, status, sources, detail)


def exactly(name: str, where: str, stated: float | None, derived: float | None, sources: tuple[str, ...]) -> Figure:
    """A figure that is saved in full: it must be the derived one, to the last bits."""
    same = stated == derived or (
        stated is not None and derived is not None and isclose(stated, derived, rel_tol=1e-9, abs_tol=1e-9)
    )
    detail = "" if same else f"{stated} stated, {derived} derived"
    if not same and stated is not None and derived is not None:
        detail = f"off by {stated - derived:+.9g}: {stated:.9g} stated, {derived:.9g} derived"
    return Figure(name, where, stated, derived, "ok" if same else "differs", sources, detail)


def missing(name: str, where: str, stated: Printed, what: str) -> Figure:
    """Nothing in the text says what this one comes from."""
    return Figure(name, where, stated.value, None, "underivable", (), f"there is no {what}")
