"""Quantiles of Student's t, without a library that is optional.

P(|T| > t) with f degrees of freedom is I_x(f/2, 1/2) at x = f / (f + t^2), I the regularized incomplete beta function.
That falls with t and is convex, so Newton's steps from the normal law's quantile, which is smaller, never overshoot.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

# Beyond this many degrees of freedom t and the normal law give the same interval to five digits.
_MANY = 1e5
_MOST_TERMS = 10_000
_TINY = 1e-300
_SMALL = 1e-13
_CLOSE = 1e-9
_MOST_STEPS = 200


@lru_cache(maxsize=1024)
def t_quantile(level: float, freedom: float) -> float:
    """The t that |T| stays below with probability `level`.

    Args:
        level: between 0 and 1, such as 0.95.
        freedom: degrees of freedom, above 0 and not necessarily whole.
    """
    if freedom >= _MANY:
        return NormalDist().inv_cdf((1 + level) / 2)
    beyond, found = 1 - level, NormalDist().inv_cdf((1 + level) / 2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    for _ in range(_MOST_STEPS):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(found * found / freedom))
        step = (tail(found, freedom) - beyond) / (2 * density)
        found += max(step, 0.0)
        if step <= _CLOSE * found:
            break
    return found


def tail(t: float, freedom: float) -> float:
    """P(|T| > t)."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), where rest = 1 - x; by the fraction that converges faster of the two there are."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from its first term on (Lentz's method)."""
    numerator, denominator = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / _off_zero(1 + term * denominator)
            numerator = _off_zero(1 + term / numerator)
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < _SMALL:
            break
    return value


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
