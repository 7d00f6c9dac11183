"""Budgets as exact fractions, and the unit of privacy that they are counted in.

`epsilon="0.1"` means one tenth, not the nearest binary float. Floats are read by their shortest decimal form,
which is what the person typed.
"""

from __future__ import annotations

import math
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from spinney.errors import ParameterError
from spinney.text import as_given

# Below this a release is noise alone and tables of laws grow without bound; above it nothing is protected.
SMALLEST_EPSILON = Fraction(1, 2**30)
LARGEST_EPSILON = Fraction(2**20)

# Numbers of more than 300 digits are slips of the pen, and expanding them exactly takes forever. A fraction of our own
# may have somewhat more: a product of two such numbers.
_LARGEST_EXPONENT = 300
_LONGEST_TEXT = 2_000
LARGEST_BITS = 2_600


class Unit(StrEnum):
    """Which tables count as neighbours: they differ in one row, or in one person with all their rows."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    REPLACE_PERSON = "replace-one-person"
    ADD_REMOVE_PERSON = "add-remove-person"

    @property
    def factor(self) -> int:
        """How many cells a row, or a person, leaves or joins: the L1 sensitivity of all cell counts.

        Of a person who counts as one in all cells together, in shares or in whole.
        """
        return 2 if self.n_is_public else 1

    @property
    def n_is_public(self) -> bool:
        """Replacing a row keeps the number of rows, and replacing a person that of persons, so neighbours agree."""
        return self.of_rows is Unit.REPLACE_ONE

    @property
    def is_person(self) -> bool:
        """Whether neighbours differ in a person with all their rows, rather than in one row."""
        return self in (Unit.REPLACE_PERSON, Unit.ADD_REMOVE_PERSON)

    @property
    def of_rows(self) -> Unit:
        """The same for one row: replaced, or added or removed."""
        return {Unit.REPLACE_PERSON: Unit.REPLACE_ONE, Unit.ADD_REMOVE_PERSON: Unit.ADD_REMOVE}.get(self, self)

    @property
    def of_persons(self) -> Unit:
        """The same for one person with all their rows."""
        return {Unit.REPLACE_ONE: Unit.REPLACE_PERSON, Unit.ADD_REMOVE: Unit.ADD_REMOVE_PERSON}.get(self, self)

    @classmethod
    def parse(cls, value: Any) -> Unit:
        return cls._among(value, list(cls))

    @classmethod
    def parse_rows(cls, value: Any) -> Unit:
        """The unit of what protects single rows."""
        if isinstance(value, str) and value in list(cls) and cls(value).is_person:
            raise ParameterError(
                f"unit={as_given(value)} protects persons with all their rows, and this model protects single rows; "
                f"fit sp.LinkedSynthesizer(unit={cls(value).of_rows.value!r}) to a schema that states the person, or "
                f"give unit={cls(value).of_rows.value!r} for single rows"
            )
        return cls._among(value, [unit for unit in cls if not unit.is_person])

    @classmethod
    def _among(cls, value: Any, units: list[Unit]) -> Unit:
        if isinstance(value, str) and value in units:
            return cls(value)
        names = " or ".join(repr(unit.value) for unit in units)
        raise ParameterError(f"unit={as_given(value)} is not {names}")


def parse_fraction(value: Any, name: str) -> Fraction:
    """An exact number from an int, a float, a Fraction, a Decimal or text such as "0.1" or "1/3"."""
    is_numpy_scalar = hasattr(value, "item") and getattr(value, "shape", None) == ()
    if isinstance(value, bool) or not (isinstance(value, (int, float, Fraction, Decimal, str)) or is_numpy_scalar):
        raise ParameterError(f"{name}={as_given(value)} is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"{name}={value!r} is not a finite number")
    if isinstance(value, (int, Fraction)):
        return _of_sane_size(Fraction(value), name)
    text = str(value).strip()  # the shortest decimal form, of numpy's scalars too
    exponent = text.lower().partition("e")[2]
    try:
        is_absurd = len(text) > _LONGEST_TEXT or abs(int(exponent or 0)) > _LARGEST_EXPONENT
        number = Fraction(0) if is_absurd else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"{name}={as_given(value)} is not a number such as 1 or '0.1'") from None
    if is_absurd:
        raise ParameterError(f"{name}={as_given(value)} is too large, too small or too long for a number")
    return _of_sane_size(number, name)


def _of_sane_size(number: Fraction, name: str) -> Fraction:
    if max(abs(number.numerator).bit_length(), number.denominator.bit_length()) > LARGEST_BITS:
        raise ParameterError(f"{name} has too many digits; round it to a few")
    return number


def _given(value: Any) -> str:
    """A number as it was given, for a message: text without quotes."""
    return as_given(value).strip("'") if isinstance(value, str) else as_given(value)


def parse_length(value: Any, name: str) -> float:
    """A positive length in units of a column, as a float: it shapes bins and never enters a budget."""
    length = parse_fraction(value, name)
    if not 0 < length <= Fraction(10) ** _LARGEST_EXPONENT:
        raise ParameterError(f"{name}={_given(value)} is not a positive number")
    return max(float(length), 10.0**-_LARGEST_EXPONENT)


def parse_epsilon(value: Any, name: str = "epsilon") -> Fraction:
    """A positive privacy budget, exactly."""
    epsilon = parse_fraction(value, name)
    if epsilon <= 0:
        raise ParameterError(f"{name}={_given(value)} is not positive; a release needs a budget above 0")
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            f"{name}={_given(value)} is outside 2^-30..2^20; useful budgets lie between about 0.01 and 10"
        )
    return epsilon


def parse_delta(value: Any, name: str = "delta") -> Fraction:
    """Delta, the failure probability of (epsilon, delta)-differential privacy, exactly: 0 (pure) or more, below 1."""
    delta = parse_fraction(value, name)
    if delta < 0:
        raise ParameterError(f"{name}={_given(value)} is negative; 0 means pure epsilon")
    if delta >= 1:
        raise ParameterError(
            f"{name}={_given(value)} is 1 or more, which guarantees nothing; useful values are 1e-6 or smaller"
        )
    return delta


def parse_share(value: Any, name: str) -> Fraction:
    """A share of a budget, strictly between 0 and 1."""
    share = parse_fraction(value, name)
    if not 0 < share < 1:
        raise ParameterError(f"{name}={_given(value)} is not strictly between 0 and 1")
    return share
