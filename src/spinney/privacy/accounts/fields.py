"""The fields of an entry, each read as what it has to be.

Whoever writes an entry checks what people gave more closely (`clean_text`); a reader takes what a database would keep,
so that nothing that is on record by the rules of a server can lock others out.

Costs are exact. What a release counts as in the sum of its population is its exact cost where the denominator of that
divides GRAIN, and otherwise the next multiple of 1/GRAIN above it: so no charge, whatever its denominator, makes the
sum of all charges longer than GRAIN, and no sum is below what was spent. Decimals of up to 40 places, thirds, sevenths
and the like are kept as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.errors import BudgetError, ParameterError
from spinney.privacy import guard
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_fraction
from spinney.shown import brief

LONGEST_NAME = 200
LONGEST_TEXT = 2_000
LONGEST_EVENTS = 1_000_000
MOST_ENTRIES = 1_000_000
GRAIN = 2**64 * 10**40 * math.lcm(*range(1, 31))
_KEY = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Charged:
    """What a charge is for, in the few values that rules look at."""

    population: str
    unit: Unit
    epsilon: Fraction
    delta: Fraction
    table: str | None = None
    schema: str | None = None
    purpose: str | None = None


def counted(cost: Fraction) -> Fraction:
    """What a cost counts as in the sum of its population: itself, or the next multiple of 1/GRAIN above it."""
    return cost if GRAIN % cost.denominator == 0 else Fraction(math.ceil(cost * GRAIN), GRAIN)


class Fields:
    """The fields of an entry, each read as what it has to be; a ParameterError names one that is not."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def is_missing(self, name: str) -> bool:
        """Whether a field is not there, or null."""
        return self._fields.get(name) is None

    def _text(self, name: str, longest: int) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise ParameterError(f"{name}={brief(value)} is not a text of 1 to {longest:,} characters")
        return value

    def name(self, name: str) -> str:
        return self._text(name, LONGEST_NAME)

    def optional_name(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.name(name)

    def text(self, name: str) -> str:
        return self._text(name, LONGEST_TEXT)

    def long_text(self, name: str) -> str:
        return self._text(name, LONGEST_EVENTS)

    def flag(self, name: str) -> bool:
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise ParameterError(f"{name}={brief(value)} is not true or false")
        return value

    def whole(self, name: str) -> int:
        return int(guard.whole(1, MOST_ENTRIES)(self._fields.get(name), name))

    def _matching(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ParameterError(f"{name}={brief(value)} is not one in hexadecimal digits")
        return value

    def key(self, name: str) -> str:
        return self._matching(name, _KEY)

    def optional_key(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.key(name)

    def digest(self, name: str) -> str:
        return self._matching(name, _DIGEST)

    def optional_digest(self, name: str) -> str | None:
        return None if self.is_missing(name) else self.digest(name)

    def unit(self) -> Unit:
        return Unit.parse(self._fields.get("unit"))

    def limits(self) -> tuple[Fraction | None, Fraction | None]:
        """Limits of epsilon and of delta: both, or neither."""
        if self.is_missing("epsilon") and self.is_missing("delta"):
            return None, None
        return parse_epsilon(self._exact("epsilon"), "limit"), parse_delta(self._exact("delta"))

    def epsilon(self) -> Fraction:
        epsilon: Fraction = guard.spent_epsilon(self._exact("epsilon"), "epsilon")
        return epsilon

    def delta(self) -> Fraction:
        delta: Fraction = guard.fraction(self._exact("delta"), "delta")
        if not 0 <= delta < 1:
            raise ParameterError(f"delta={brief(delta)} is not from 0 to below 1")
        return delta

    def _exact(self, name: str) -> Fraction:
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise ParameterError(f"{name}={brief(value)} is not the text of an exact number")
        return parse_fraction(value, name)

    def charged(self) -> Charged:
        """What the rules need to know of a charge; what it lists is read by those who show it or verify it."""
        self.long_text("events")
        purpose = None if self.is_missing("purpose") else self.text("purpose")
        epsilon, delta = self._exact("epsilon"), self._exact("delta")
        if epsilon <= 0 or delta < 0:
            raise BudgetError("a charge costs something, and what was spent cannot be earned back")
        return Charged(
            self.name("population"),
            self.unit(),
            epsilon,
            delta,
            self.optional_name("table"),
            self.optional_digest("schema"),
            purpose,
        )


def clean_text(value: Any, name: str, longest: int = LONGEST_TEXT) -> str:
    """A text that every database takes: some characters, not too many, none of them zero or half a character."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ParameterError(f"{name}={brief(value)} is not a text of 1 to {longest:,} characters")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(f"{name} holds a character that no database keeps")
    return value
