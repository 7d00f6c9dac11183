"""Text for messages: what a terminal can show safely, and what a misspelt name was probably meant to be.

    display        values and names from files and arguments, printable, short and on one line
    pages          texts cut to a width, wrapped, and in columns
    suggestions    "did you mean ...?" for public names of columns, options and categories
    sensitive      bases of objects that hold private rows or counts: they show their class alone

A message never shows a value as it is: escape sequences could rewrite the screen, and a private table may have
been passed for any argument (`as_given`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from textwrap import wrap
from typing import Any, NoReturn

# -------------------------------------------------------------------------------------------------------------- display
# Text that came out of a file or an argument, made fit to be shown on a terminal.
#
# Names, notes and categories may hold anything: escape sequences that rewrite the screen, marks that turn the
# direction of reading, line breaks that forge a line of a card. What is not printable is shown as an escape, as
# `repr` shows it.


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
    """A value of a file or a schema for an error message: printable, of one line and not long, whatever it is.

    Of a table, a column of one, or what holds some, only the type is told: a private one may have been given.
    """
    if holds_rows(value):
        return f"<a {type(value).__name__}>"
    numbers = (value.numerator, value.denominator) if isinstance(value, (int, Fraction)) else ()
    if any(abs(number).bit_length() > _MOST_BITS for number in numbers):
        return f"<a number of {max(abs(number).bit_length() for number in numbers)} bits>"
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except Exception:
        text = f"<a {type(value).__name__}>"
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def holds_rows(value: Any) -> bool:
    """Whether a value is a table, a column or an array, or a list, tuple or mapping of some."""
    if isinstance(value, type) or is_typed(value):
        return False
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(map(holds_rows, parts)) or any(
        hasattr(value, name) for name in ("__array__", "__dataframe__", "__arrow_c_stream__", "to_arrow")
    )


# ---------------------------------------------------------------------------------------------------------------- pages
# Lines of a page that a terminal shows.


WIDTH = 100  # characters of a line


def cut(text: str, longest: int) -> str:
    """The text, or its beginning and an ellipsis where it is longer."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """The text in lines of a page that begin with `first`, all but the first of them with `rest` where it is given."""
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest)


def more(n: int, indent: str = "    ") -> list[str]:
    """How many entries a page leaves out, as its last line; no line where it has them all."""
    return [f"{indent}and {n:,} more"] if n > 0 else []


def many(number: int, what: str) -> str:
    """A number of things: "1 row", "2,000 rows", "3 leaves"."""
    plural = {"leaf": "leaves"}.get(what, f"{what}s")
    return f"{number:,} {what if number == 1 else plural}"


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), gap: str = "  ") -> list[str]:
    """Rows of texts as lines with columns of equal width, those in `right` to the right; all of it printable."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        gap.join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in shown
    ]


# ---------------------------------------------------------------------------------------------------------- suggestions
# Did you mean ...? What a misspelt name was probably meant to be.
#
# Names of columns, options and categories are public, so that a message may quote them.


# Beyond so many, known names are cut short in a message.
_MOST_LISTED = 12
_LEAST_ALIKE = 0.7


def closest(wrong: object, known: Iterable[object]) -> str | None:
    """The known string that is spelt most like a wrong one, capitals, spaces and hyphens aside; None if none is."""
    if not isinstance(wrong, str):
        return None
    plain = {_plain(name): name for name in known if isinstance(name, str)}
    found = get_close_matches(_plain(wrong), plain, n=1, cutoff=_LEAST_ALIKE)
    return plain[found[0]] if found else None


def did_you_mean(wrong: object, known: Iterable[object]) -> str:
    """The end of a message: "; did you mean 'income'?", or nothing where no known name is close."""
    found = closest(wrong, known)
    return "" if found is None else f"; did you mean {found!r}?"


def listed(names: Iterable[object]) -> str:
    """Names in quotes, with an "and" before the last; the rest of a long list is counted."""
    quoted = [repr(name) for name in names]
    if len(quoted) > _MOST_LISTED:
        quoted = [*quoted[: _MOST_LISTED - 1], f"{len(quoted) - _MOST_LISTED + 1} more"]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def did_you_mean_column(name: object, known: Iterable[str]) -> str:
    """The same for columns that are called by their table, "customers.age": the table may have been left out."""
    columns = list(known)
    whole = [column for column in columns if isinstance(name, str) and column.partition(".")[2] == name]
    return f"; did you mean {whole[0]!r}?" if whole else did_you_mean(name, columns)


# ------------------------------------------------------------------------------------------------------------ sensitive
# Bases of objects that hold private rows or counts: they show their class alone.


class Sensitive:
    """What holds private rows, values or counts: none of it is shown where an object is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sensitive)"


class NeverPickled(Sensitive):
    """What is not written to a file or sent to another process either."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is sensitive, holds private rows or counts, and is never pickled")
