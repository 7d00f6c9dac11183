"""Text that came out of a file or an argument, made fit to be shown on a terminal.

Names, notes and categories may hold anything: escape sequences that rewrite the screen, marks that turn the direction
of reading, line breaks that forge a line of a card. What is not printable is shown as an escape, as `repr` shows it.
"""

from __future__ import annotations

import json
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

_LONGEST = 80
_MOST_SHOWN = 4_000
_MOST_BITS = 256
_TYPED = (bool, int, float, complex, str, bytes, Fraction, Decimal, date, time, timedelta, type(None))


def printable(text: str, *, keep: str = "") -> str:
    """The text with every character that is not printable written as an escape; those in `keep` stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def clipped(text: str) -> str:
    """The text, or its beginning and its end where it is longer than anybody reads."""
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN // 2]} … {text[-_MOST_SHOWN // 4 :]}"


def json_text(data: Any) -> str:
    """JSON to be read by people and programs: control characters and marks of direction are escaped in it."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def as_given(value: Any) -> str:
    """An argument for an error message: a number, a name or a date in short, anything else by its type alone.

    A private table, or a part of it, may have been given by mistake for any argument, and nothing of it is told.
    """
    return brief(value) if is_typed(value) else f"<a {type(value).__name__}>"


def is_typed(value: Any) -> bool:
    """Whether a value is a number, a name, a date or nothing: what somebody types as an argument."""
    is_numpy_scalar = hasattr(value, "item") and getattr(value, "shape", None) == ()
    return isinstance(value, _TYPED) or is_numpy_scalar


def brief(value: Any) -> str:
    """A value of a file or a schema for an error message: printable, of one line and not long, whatever it is."""
    numbers = (value.numerator, value.denominator) if isinstance(value, (int, Fraction)) else ()
    if any(abs(number).bit_length() > _MOST_BITS for number in numbers):
        return f"<a number of {max(abs(number).bit_length() for number in numbers)} bits>"
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except Exception:
        text = f"<a {type(value).__name__}>"
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
