"""The names of a CSV's columns: from its first line, or as the holder states them.

A CSV without a header has a person where names should be, and names are published. So a first line of which any field
reads as a value is refused, and no field of it is quoted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from spinney.columns.spelling import option
from spinney.columns.texts import MISSING
from spinney.errors import InputError, ParameterError
from spinney.schema.table import Schema
from spinney.tables.csv.format import CSV
from spinney.tables.csv.lines import check_utf8, first_line

_REMEDY = (
    "If the file has no header, say --no-header --names age,town,... (in Python: sp.CSV(path, header=False, "
    "names=[...])). If this is its header, give the columns other names: --names age,town,... (in Python: "
    "sp.CSV(path, names=[...]))"
)
_MONTH = (
    "(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|"
    "dec(ember)?)(?![a-z])"
)
_WRITTEN_DAY = re.compile(rf"\d{{1,2}}[ ./-]*{_MONTH}|{_MONTH}[ ./-]*\d{{1,2}}[ ,./-]+\d", re.IGNORECASE)
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_TRUTH = ("true", "false")


def read_names(data: Any, csv: CSV) -> list[str]:
    """The names of the columns. `data` is a path, or a buffer of what came through a pipe."""
    line, n_fields = first_line(data, csv)
    if csv.names is None:
        check_utf8(line, 1)
        names = _fields(line, n_fields, csv)
        _check_delimiter(names, csv)
        _check_names(names)
    elif len(csv.names) != n_fields:
        raise InputError(
            f"names lists {len(csv.names)} columns, and the first line of the CSV has {n_fields} fields; "
            "name every column of the file, in its order"
        )
    else:
        names = list(csv.names)
    for name in csv.date_format if isinstance(csv.date_format, Mapping) else ():
        if name not in names:
            raise ParameterError(f"CSV: date_format names {name!r}, which is not a column of the table")
    return names


def check_header(names: Sequence[str], schema: Schema) -> None:
    """Raise if a first line looks like values. The names are not quoted: without a header they are somebody's."""
    if not {name.strip().casefold() for name in names} & {name.strip().casefold() for name in schema}:
        raise InputError(
            "the first row of the CSV names none of the schema's columns; it needs a header row with the names that "
            f"the schema has. {_REMEDY}"
        )


def reads_as_value(cell: str) -> str | None:
    """What a field reads as, where it is more likely somebody's value than the name of a column."""
    text = cell.strip()
    if not text:
        return "is empty"
    if text in MISSING:
        return "reads as a missing value"
    if text.lower() in _TRUTH:
        return "reads as a boolean"
    if _is_number(text):
        return "reads as a number"
    if _is_moment(text) or _WRITTEN_DAY.match(text) or _CLOCK.match(text):
        return "reads as a date or time"
    if _ADDRESS.fullmatch(text):
        return "reads as an e-mail address"
    # Phone numbers, amounts with signs of currency, dates in any order: whatever is made of digits and marks.
    if any(mark.isdigit() for mark in text) and not any(mark.isalpha() for mark in text):
        return "reads as a number"
    return None


def _fields(line: bytes, n_fields: int, csv: CSV) -> list[str]:
    """The fields of one line, by the reader that will read the others."""
    table = pacsv.read_csv(
        pa.BufferReader(line + b"\n"),
        read_options=pacsv.ReadOptions(autogenerate_column_names=True, use_threads=False, block_size=len(line) + 2),
        parse_options=pacsv.ParseOptions(delimiter=csv.delimiter),
        convert_options=pacsv.ConvertOptions(
            strings_can_be_null=False, column_types={f"f{index}": pa.string() for index in range(n_fields)}
        ),
    )
    return [str(column[0]) for column in table.columns]


def _check_delimiter(names: Sequence[str], csv: CSV) -> None:
    """Raise if the first line is one field that another delimiter would take apart."""
    others = [mark for mark in ";\t|," if mark != csv.delimiter and mark in names[0]]
    if len(names) == 1 and others:
        kind = "commas" if csv.delimiter == "," else f"{csv.delimiter!r}"
        raise InputError(
            f"the header, the first line of the CSV, is not separated by {kind}; state the delimiter: "
            f"{option('delimiter', others[0])}, and with decimal commas {option('decimal', ',')} too"
        )


def _check_names(names: Sequence[str]) -> None:
    for position, name in enumerate(names, start=1):
        what = reads_as_value(name)
        if what is not None:
            index = " Where pandas wrote the row numbers, write the table with index=False." if not name.strip() else ""
            raise InputError(
                f"the first line of the CSV must name the columns, and field {position} {what}.{index} {_REMEDY}"
            )
    name, n_times = Counter(names).most_common(1)[0]
    if n_times > 1:
        first = names.index(name)
        second = names.index(name, first + 1)
        raise InputError(
            f"the table has two columns of the same name, or no header: fields {first + 1} and {second + 1} of the "
            f"first line of the CSV are equal. {_REMEDY}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
