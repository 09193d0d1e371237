"""Student's t for whole degrees of freedom."""

from __future__ import annotations

from math import atan, cos, pi, sin, sqrt


def t_cdf(t: float, df: int) -> float:
    """P(T <= t). Abramowitz & Stegun 26.7.3 and 26.7.4: a finite series for whole df."""
    theta = atan(t / sqrt(df))
    c, s = cos(theta), sin(theta)
    if df == 1:
        return 0.5 + theta / pi
    term = c if df % 2 else 1.0
    total = term
    for j in range(3 if df % 2 else 2, df - 1, 2):
        term *= c * c * (j - 1) / j
        total += term
    area = 2 / pi * (theta + s * total) if df % 2 else s * total
    return 0.5 + area / 2


def t_quantile(p: float, df: int) -> float:
    """t with P(T <= t) = p, for 0.5 <= p < 1, by bisection to 1e-12."""
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        high *= 2
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2
