"""Conditions on rows: values that users ask for, as numbers, and as messages show them."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Rational
from typing import Any

from spinney.suggest import did_you_mean

_MOST_SHOWN = 80  # characters of what was asked for, in a message


def shown(value: Any) -> str:
    """A value for a message, shortened where it is long."""
    try:
        text = repr(value)
    except ValueError:  # which is what Python says of writing them out
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def meant(value: Any, known: tuple[Any, ...]) -> str:
    """The end of a message: a value of the list that is spelt alike, also where the one is a number, the other not."""
    spelt = value if isinstance(value, str) else shown(value)
    same = [other for other in known if str(other) == spelt.strip()]
    return f"; did you mean {same[0]!r}?" if same else did_you_mean(spelt, known)


def if_whole(value: Any) -> int | None:
    """An exact number that is whole, as that; None of floats, which say by themselves what they are."""
    if isinstance(value, Rational):
        return int(value.numerator) if value.denominator == 1 else None
    is_small = isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**63
    return int(value) if is_small and value == int(value) else None


def as_float(value: Any) -> float:
    """A number as a float, of whatever size."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def number_of_text(text: str) -> int | float | None:
    """A finite number, an exact integer where it is written as one; None if the string is not a number."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
