"""What reals and whole numbers share: steps that they come in, the magnitudes of their bounds, the causes of faults."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spinney.columns.bounded import Bounded, exact
from spinney.columns.spelling import Spelling, option
from spinney.errors import ParameterError, SchemaError
from spinney.shown import brief

if TYPE_CHECKING:
    from spinney.columns.dtypes import Group

_LARGEST_STEP = 2**53
# An end this many times smaller than the other is taken for 0.
_NEAR_ZERO = 4
_CURRENCY = re.compile(
    r"^(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)\b|\b(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)$", re.IGNORECASE
)
SPACES = " \t\u00a0\u202f\u2009"
WITHOUT_SIGNS = (
    ", without thousands separators, currency or percent signs, or convert the column first "
    "(pandas: .str.replace(...), then pd.to_numeric(...))"
)


@dataclass(frozen=True, slots=True)
class Number(Bounded):
    """A bounded number, of which `multiple_of` may say that it comes in steps counted from 0: cents, quarters, fifties.

    Decimals mean what they say: 0.1 is a tenth, not the nearest float, so 0.3 is its third multiple.
    """

    compared_as: ClassVar[str | None] = "numbers"
    largest: ClassVar[Any]  # no bound is beyond this, or below its negative

    multiple_of: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.multiple_of is not None:
            kind, step = type(self).__name__, self.parse(self.multiple_of, "multiple_of")
            if step <= 0 or (isinstance(step, int) and step > _LARGEST_STEP):
                reach = f"in 1..2^{_LARGEST_STEP.bit_length() - 1}" if isinstance(step, int) else "above 0"
                raise SchemaError(f"{kind}: multiple_of={brief(self.multiple_of)} is not {reach}")
            object.__setattr__(self, "multiple_of", step)
        Bounded.__post_init__(self)
        if self.multiple_of is not None and self.has_bounds and self._steps()[0] > self._steps()[1]:
            raise SchemaError(
                f"{type(self).__name__}: no multiple of multiple_of={self.multiple_of} lies between "
                f"low={self.low} and high={self.high}; widen the bounds"
            )

    def _steps(self) -> tuple[int, int]:
        """The least and the largest k with k * multiple_of inside the bounds; the wrong way round if there is none."""
        step = exact(self.multiple_of)
        return -(-exact(self.low) // step), exact(self.high) // step

    @property
    def multiples(self) -> tuple[Any, Any]:
        """The smallest and the largest multiple of `multiple_of` inside the bounds."""
        first, last = (k * exact(self.multiple_of) for k in self._steps())
        return self.logical(first), self.logical(last)

    def first_and_last(self) -> tuple[Any, Any]:
        return (self.low, self.high) if self.multiple_of is None else self.multiples

    def with_bounds(self, low: Any, high: Any) -> Self:
        """Bounds that were found hold a multiple too: those between two multiples are widened to both."""
        if self.multiple_of is not None:
            step, ends = exact(self.multiple_of), (exact(self.parse(low, "low")), exact(self.parse(high, "high")))
            if -(-ends[0] // step) > ends[1] // step:
                low = self.logical(max(ends[0] // step * step, -self.largest))
                high = self.logical(min(-(-ends[1] // step) * step, self.largest))
        return Bounded.with_bounds(self, low, high)

    def to_dict(self) -> dict[str, Any]:
        described = Bounded.to_dict(self)
        if self.multiple_of is not None:
            described["multiple_of"] = self.multiple_of
        return described

    @property
    def accepts(self) -> frozenset[Group]:
        return frozenset({"float", "whole"})

    @property
    def fits_array(self) -> bool:
        return True

    def from_rungs(self, low: float, high: float) -> tuple[Any, Any]:
        """Few rows near 0 do not stand out from the noise: a low end that is small beside the high one is moved to 0.

        Likewise from below. That costs a small part of the range, and keeps those rows where they are.
        """
        low = 0 if 0 < _NEAR_ZERO * low <= high else low
        high = 0 if low <= _NEAR_ZERO * high < 0 else high
        return low, high

    def cause(self, text: str, spelling: Spelling) -> str:
        text = text.strip()
        if "%" in text:
            return "it has a percent sign; write the number without it"
        if any(unicodedata.category(mark) == "Sc" for mark in text) or _CURRENCY.search(text):
            return "it has a currency sign; write the number without it"
        digits = text.strip("+-" + SPACES)
        if re.fullmatch(r"\d{1,3}([\s'’_]\d{3})+([.,]\d+)?", digits):
            return "it has a thousands separator; write the number without it"
        if spelling.decimal == "," and re.fullmatch(r"[\d.]+(,\d+)?", digits):
            return (
                "it has a point, and decimal=',' was stated; remove thousands separators, or state the decimal mark "
                "that the file has"
            )
        if spelling.decimal == "." and re.fullmatch(r"\d{1,3}(,\d{3})+\.\d+|\d{1,3}(,\d{3}){2,}", digits):
            return "it has a thousands separator; write the number without it"
        if spelling.decimal == "." and re.fullmatch(r"[\d.]*,\d+([eE][+-]?\d+)?", digits):
            remedy = "write decimal points" if spelling.delimiter == "," else f"state {option('decimal', ',')}"
            return f"it has a comma; remove thousands separators, and for decimal commas {remedy}"
        if self.is_whole and is_number(digits, spelling):
            return "it is not a whole number; use Real for this column"
        return "it is not a number; clean the column or change its type"

    def wanted(self, value: Any, name: str) -> int | float:
        """A float of a real, else exact if it is whole."""
        from spinney.columns.conditions import as_float, if_whole

        if isinstance(value, (AnyReal, Decimal)) and not isinstance(value, bool):
            whole = if_whole(value) if self.is_whole else None
            return as_float(value) if whole is None else whole
        raise self.unlike(value, name, "; write numbers without quotes" if isinstance(value, str) else "")

    def from_option(self, text: str, *, name: str, option: str) -> Any:
        from spinney.columns.conditions import number_of_text

        text = text.strip()
        number = number_of_text(text)
        if number is None:
            raise ParameterError(f"{option}: column {name!r} takes numbers, and {text!r} is not a number")
        return number


def is_number(text: str, spelling: Spelling) -> bool:
    """Whether a string spells a number."""
    try:
        Decimal(text.replace(",", ".") if spelling.decimal == "," else text)
    except InvalidOperation:
        return False
    return True
