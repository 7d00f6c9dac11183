"""How a CSV is written: its delimiter, decimal mark, encoding, date format and header.

Nothing of this is guessed from the rows. The holder states it once, for the whole file, so that the spelling of one row
never decides how another is read. The one thing that is recognised is a byte order mark before the header.
"""

from __future__ import annotations

import codecs
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spinney.columns.base import Spelling
from spinney.errors import ParameterError
from spinney.text import Sensitive

QUOTE = '"'
# Encodings in which bytes of one row can change what those of the next one mean, and codecs that encode no text.
_STATEFUL = ("utf-7", "hz", "iso2022", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs")
_SAMPLE = datetime(2023, 3, 31, 13, 45, 56, tzinfo=UTC)
_YEARS = ("%Y", "%y", "%G", "%D", "%c", "%x", "%F")
_TIMES = ("%H", "%I", "%M", "%S", "%f", "%c", "%X", "%T", "%R", "%r")


@dataclass(frozen=True, slots=True)
class CSV:
    """A CSV file, a folder or a pattern of them, and how it is written. It can be passed wherever a path can.

    Args:
        path: a file, a folder or a pattern, as for `fit`.
        delimiter: the character between fields.
        decimal: the decimal mark of numbers, "." or ",".
        encoding: a name that Python knows, such as "latin-1". By default the text is UTF-8, or UTF-16 or UTF-32 where
            the header begins with their byte order mark.
        date_format: how dates and times are written, in the notation of `datetime.strptime`: one format for all such
            columns, or a format for each column by name. By default they are ISO 8601, such as 2024-01-31.
        header: whether the first line holds the names of the columns. Without a header, `names` is needed.
        names: the names of the columns, in place of those in the header.

    >>> CSV("people.csv", delimiter=";", decimal=",")
    CSV(path='people.csv', delimiter=';', decimal=',')
    """

    path: str | os.PathLike[str]
    delimiter: str = field(default=",", kw_only=True)
    decimal: str = field(default=".", kw_only=True)
    encoding: str | None = field(default=None, kw_only=True)
    date_format: str | Mapping[str, str] | None = field(default=None, kw_only=True)
    header: bool = field(default=True, kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise ParameterError(f"CSV: path is a {type(self.path).__name__}, not a path such as 'people.csv'")
        _check_marks(self.delimiter, self.decimal)
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if isinstance(self.date_format, Mapping):
            object.__setattr__(self, "date_format", dict(self.date_format))
        for date_format in self._date_formats():
            _check_date_format(date_format)
        if not isinstance(self.header, bool):
            raise ParameterError(f"CSV: header={self.header!r} is neither True nor False")
        if self.names is not None:
            object.__setattr__(self, "names", _checked_names(self.names))
        elif not self.header:
            raise ParameterError(
                "CSV: header=False (--no-header) needs the names of all columns: names=['age', ...] (--names age,...)"
            )

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, described in self.__dataclass_fields__.items()
            if name != "path" and getattr(self, name) != described.default
        ]
        return f"CSV({', '.join([f'path={self.path!r}', *changed])})"

    def date_format_of(self, name: str) -> str | None:
        """The format of one column of dates or times; None is ISO 8601.

        Args:
            name: the name of the column.
        """
        return self.date_format.get(name) if isinstance(self.date_format, Mapping) else self.date_format

    def spelling_of(self, name: str) -> Spelling:
        """How the values of one column are spelt.

        Args:
            name: the name of the column.
        """
        return Spelling(self.decimal, self.delimiter, self.date_format_of(name))

    def _date_formats(self) -> list[Any]:
        if self.date_format is None:
            return []
        return list(self.date_format.values()) if isinstance(self.date_format, Mapping) else [self.date_format]


@dataclass(frozen=True, slots=True, repr=False)
class PipedCSV(Sensitive):
    """A CSV that came through a pipe: all of its bytes, since they can be read from there once only."""

    data: Any
    csv: CSV


def has_time(date_format: str) -> bool:
    """Whether a format says more than a day."""
    return any(directive in date_format for directive in _TIMES)


def _check_marks(delimiter: Any, decimal: Any) -> None:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii():
        raise ParameterError(f"CSV: delimiter={delimiter!r} is not one ASCII character such as ';' or a tab")
    if delimiter == QUOTE or delimiter.isalnum() or delimiter in "\r\n\0":
        raise ParameterError(
            f"CSV: delimiter={delimiter!r} cannot separate fields, nor can any quote, line end, letter or digit"
        )
    if decimal not in (".", ","):
        raise ParameterError(f"CSV: decimal={decimal!r} is neither '.' nor ','")
    if delimiter == decimal:
        raise ParameterError(
            f"CSV: delimiter and decimal are both {decimal!r}; state the delimiter that the file has, such as ';'"
        )


def _check_encoding(encoding: Any) -> None:
    try:
        found = codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise ParameterError(
            f"CSV: encoding={encoding!r} is not an encoding that Python knows, such as 'latin-1', 'cp1252' or 'utf-16'"
        ) from None
    name = found.name.replace("_", "-")
    if not getattr(found, "_is_text_encoding", True) or name.startswith(_STATEFUL):
        raise ParameterError(
            f"CSV: encoding={encoding!r} cannot be read line by line; save the table as UTF-8 and leave encoding out"
        )


def _check_date_format(date_format: Any) -> None:
    advice = "state day, month and year as in '%d/%m/%Y' or '%d.%m.%Y %H:%M'"
    if not isinstance(date_format, str):
        raise ParameterError(f"CSV: date_format={date_format!r} is not a format; {advice}")
    known = any(year in date_format for year in _YEARS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = datetime.strptime(_SAMPLE.strftime(date_format), date_format) if known else None
    except (ValueError, TypeError):
        found = None
    if found is None or found.date() != _SAMPLE.date():
        raise ParameterError(f"CSV: date_format={date_format!r} does not describe whole dates; {advice}")


def _checked_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterError("CSV: names is not a list of strings such as ['age', 'town']")
    if not names or not all(name.strip() for name in names):
        raise ParameterError("CSV: names holds an empty name; name every column of the file")
    if len(set(names)) != len(names):
        raise ParameterError("CSV: names has the same name twice; give each column its own")
    return tuple(names)


# A header row, commas, decimal points, UTF-8, ISO dates.
PLAIN = CSV("")
