"""The numbers of events and parts, checked where these come to be.

An event is believed by every sum that it enters, so nothing that is no budget may become one: a NaN that switches a
limit off, a negative epsilon that earns budget back, a float, a number of a million digits. Whether an event was made
by a mechanism or read from a file, it is made by its constructor, and its constructor asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import LARGEST_BITS, LARGEST_EPSILON
from spinney.shown import brief

Check = Callable[[Any, str], Any]

# No tree is deeper (`schema.lattice.MAX_DEPTH`), and no cutoff or decay larger (`partition.plan.LARGEST_SETTING`).
LARGEST_LEVELS = 4096
LARGEST_DECAY = 2**60
LARGEST_COUNT = 2**40
_LONGEST_NOTE = 2**16
_FEW_WORDS = 8


def check_fields(thing: Any, checks: Mapping[str, Check]) -> None:
    """Put every field of a frozen dataclass through the check of its name; whole numbers become fractions."""
    for field in fields(thing):
        object.__setattr__(thing, field.name, checks[field.name](getattr(thing, field.name), field.name))


def fraction(value: Any, name: str) -> Fraction:
    """An exact number of sane size: a Fraction or an int, and nothing that would have to be rounded or guessed."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise ParameterError(f"{name}={brief(value)} is not an exact number; give a Fraction, such as Fraction('0.1')")
    if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise ParameterError(f"{name}={brief(value)} has too many digits; round it to a few")
    return Fraction(value)


def positive(value: Any, name: str) -> Fraction:
    """An exact number above 0."""
    number = fraction(value, name)
    if number <= 0:
        raise ParameterError(f"{name}={brief(number)} is not positive")
    return number


def spent_epsilon(value: Any, name: str) -> Fraction:
    """The epsilon of a charge: above 0, and no more than a release may cost."""
    epsilon = fraction(value, name)
    if epsilon < 0:
        raise BudgetError(f"{name}={brief(epsilon)} is negative; what was spent cannot be earned back")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ParameterError(f"{name}={brief(epsilon)} is not above 0 and at most 2^20; a charge costs something")
    return epsilon


def spent_delta(value: Any, name: str) -> Fraction:
    """The delta of a charge: 0 or more, below 1."""
    delta = fraction(value, name)
    if delta < 0:
        raise BudgetError(f"{name}={brief(delta)} is negative; what was spent cannot be earned back")
    if delta >= 1:
        raise ParameterError(f"{name}={brief(delta)} is 1 or more, which guarantees nothing")
    return delta


def whole(least: int, most: int) -> Check:
    """A check for whole numbers in least..most; a boolean is none."""

    def check(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ParameterError(f"{name}={brief(value)} is not a whole number in {least}..{most}")
        return value

    return check


def text(value: Any, name: str) -> str:
    """A note or a name: a string, and no book."""
    if not isinstance(value, str) or len(value) > _LONGEST_NOTE:
        raise ParameterError(f"{name}={brief(value)} is not a string of at most {_LONGEST_NOTE} characters")
    return value


def optional(check: Check) -> Check:
    """The same check, passed by None too: a field that claims nothing."""

    def check_if_claimed(value: Any, name: str) -> Any:
        return None if value is None else check(value, name)

    return check_if_claimed


def check_stage(thing: Any) -> None:
    """The stage of an event or of a part is one that its kind can have, or None."""
    if thing.stage is not None and thing.stage not in thing.stages:
        known = " or ".join(map(repr, thing.stages))
        raise ParameterError(f"stage={brief(thing.stage)} is not one of {type(thing).__name__}, which has {known}")


def one_of(*known: str) -> Check:
    """A check for one of a few words."""

    def check(value: Any, name: str) -> str:
        if value not in known:
            names = " or ".join(map(repr, known)) if len(known) < _FEW_WORDS else f"one of {', '.join(known)}"
            raise ParameterError(f"{name}={brief(value)} is not {names}")
        return str(value)

    return check
