"""Preconditions of theorems: numbers in range, named by argument, with the remedy.

Theory works in floats. It shapes bins and thresholds and never enters a budget, so nothing here needs to be exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, SupportsFloat

from spinney.errors import ParameterError

Noise = Literal["discrete", "laplace"]
Number = float | Fraction


def finite(value: Any, name: str) -> float:
    """Any finite number."""
    if isinstance(value, bool) or not isinstance(value, (Real, SupportsFloat)) or not math.isfinite(float(value)):
        raise ParameterError(f"{name}={value!r} is not a finite number")
    return float(value)


def positive(value: Any, name: str) -> float:
    """A number above 0."""
    if (number := finite(value, name)) <= 0:
        raise ParameterError(f"{name}={value!r} is not positive; give a number above 0")
    return number


def not_negative(value: Any, name: str) -> float:
    """A number, 0 or above."""
    if (number := finite(value, name)) < 0:
        raise ParameterError(f"{name}={value!r} is negative; give 0 or more")
    return number


def chance(value: Any, name: str) -> float:
    """A probability strictly between 0 and 1."""
    number = finite(value, name)
    if not 0 < number < 1:
        raise ParameterError(f"{name}={value!r} is not strictly between 0 and 1; it is the chance that the bound fails")
    return number


def whole(value: Any, name: str, *, at_least: int) -> int:
    """A whole number, not below `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ParameterError(f"{name}={value!r} is not a whole number of {at_least} or more")
    return int(value)


def noise_rate(epsilon: Any, factor: Any) -> float:
    """Rate of the noise, epsilon / factor: the scale is 1/rate. The factor is 2 for replace-one, 1 for add-remove."""
    if factor not in (1, 2):
        raise ParameterError(f"factor={factor!r} is not 2 (replace-one, the paper's) or 1 (add-remove)")
    return positive(epsilon, "epsilon") / int(factor)


def noise_law(noise: Any) -> Noise:
    """Which law of noise a statement is about."""
    if noise not in ("discrete", "laplace"):
        raise ParameterError(f"noise={noise!r} is not 'discrete' (what Spinney draws) or 'laplace' (the paper's)")
    law: Noise = noise
    return law
