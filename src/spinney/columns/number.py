"""What reals and whole numbers share: steps that they come in, the magnitudes of their bounds, the causes of faults."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.spelling import Spelling, option
from spinney.columns.stepped import LARGEST_STEP, Stepped
from spinney.errors import ParameterError, SchemaError
from spinney.shown import brief

if TYPE_CHECKING:
    from spinney.columns.dtypes import Group

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
class Number(Stepped):
    """A bounded number, of which `multiple_of` may say that it comes in steps counted from 0: cents, quarters, fifties.

    Decimals mean what they say: 0.1 is a tenth, not the nearest float, so 0.3 is its third multiple.
    """

    compared_as: ClassVar[str | None] = "numbers"
    spans_decades: ClassVar[bool] = True
    largest: ClassVar[Any]  # no bound is beyond this, or below its negative

    def parse_step(self, value: Any) -> Any:
        kind, step = type(self).__name__, self.parse(value, "multiple_of")
        if step <= 0 or (isinstance(step, int) and step > LARGEST_STEP):
            reach = f"in 1..2^{LARGEST_STEP.bit_length() - 1}" if isinstance(step, int) else "above 0"
            raise SchemaError(f"{kind}: multiple_of={brief(value)} is not {reach}")
        return step

    @property
    def span(self) -> tuple[Any, Any]:
        return -self.largest, self.largest

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
