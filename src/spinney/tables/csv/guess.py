"""Types of a CSV's columns where there is no schema yet, told from all of its values.

A guess for a person to check. It is made block by block, so that a file of any size can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from spinney.columns import Column, Date, Datetime
from spinney.columns.spelling import Spelling
from spinney.errors import InputError
from spinney.tables.csv.format import CSV, PLAIN, has_time
from spinney.tables.csv.header import read_names
from spinney.tables.csv.lines import check_utf8, csv_blocks
from spinney.tables.csv.reader import read_text


def guess_types(
    data: Any, csv: CSV = PLAIN, *, block_bytes: int | None = None, most_blocks: int | None = None
) -> pa.Schema:
    """Names and types of the columns. `data` is a path, or a buffer of what came through a pipe.

    With `most_blocks`, no more than the first blocks of a large file are looked at.
    """
    names = read_names(data, csv)
    kinds = [pa.null()] * len(names)
    for block in islice(csv_blocks(data, csv, len(names), block_bytes=block_bytes), most_blocks):
        check_utf8(block.text, block.first_line)
        found = _block_kinds(block.text, names, csv)
        kinds = [_joined(kind, other) for kind, other in zip(kinds, found, strict=True)]
    return pa.schema(list(zip(names, kinds, strict=True)))


def _block_kinds(text: bytes, names: list[str], csv: CSV) -> Iterator[pa.DataType]:
    fields = read_text(text, names, csv).schema
    dated = [
        field.name
        for field in fields
        if csv.date_format_of(field.name) is not None
        and (pa.types.is_string(field.type) or _is_day_or_moment(field.type))
    ]
    texts = (
        read_text(text, names, csv, column_types=dict.fromkeys(dated, pa.string()), include_columns=dated)
        if dated
        else {}
    )
    for field in fields:
        date_format = csv.date_format_of(field.name)
        if date_format is None or field.name not in dated:
            yield field.type
        else:
            yield _dated_kind(texts[field.name], date_format)


def _dated_kind(texts: Any, date_format: str) -> pa.DataType:
    """A date or a timestamp if all strings have the format, and a string otherwise."""
    zone = "UTC" if "%z" in date_format else None
    is_moment = has_time(date_format) or zone is not None
    column: Column = Datetime(bounds="private", timezone=zone) if is_moment else Date(bounds="private")
    try:
        column.from_strings(texts, Spelling(date_format=date_format))
    except (InputError, pa.ArrowInvalid):
        return pa.string()
    return pa.timestamp("us", zone) if is_moment else pa.date32()


def _joined(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of a column that has one type in one block and another in the next."""
    if kind == other or pa.types.is_null(other):
        return kind
    if pa.types.is_null(kind):
        return other
    numbers = (pa.types.is_integer, pa.types.is_floating)
    if all(any(is_number(one) for is_number in numbers) for one in (kind, other)):
        return pa.float64()
    if _is_day_or_moment(kind) and _is_day_or_moment(other):
        zones = [getattr(one, "tz", None) for one in (kind, other)]
        if zones[0] == zones[1]:
            return pa.timestamp("us", zones[0])
    return pa.string()


def _is_day_or_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
