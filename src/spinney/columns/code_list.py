"""Public lists of codes in files: one value a line, or the first column of a CSV below its header.

A codebook is published once and used by many schemas. The list is read when the schema is, and from then on the column
holds the values themselves, so that no release depends on a file. Faults are told by file and line.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spinney.errors import SchemaError, raise_alone
from spinney.shown import brief

LARGEST_FILE = 2**25
MOST_VALUES = 1_000_000
_MOST_DIGITS = 19  # of whole numbers up to 2^61


def read_code_list(path: Any, *, is_whole: bool) -> tuple[str, ...] | tuple[int, ...]:
    """The values in a file, as strings or as whole numbers; a SchemaError names the file and the line."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise SchemaError(f"Category: values_from={brief(path)} is not the path of a file")
    name = repr(os.fsdecode(path))
    lines: dict[Any, int] = {}
    for number, text in _entries(name, _text_of(Path(os.fsdecode(path)), name)):
        value = _whole(text, name, number) if is_whole else text
        if value in lines:
            raise SchemaError(f"line {number} of {name} repeats the value of line {lines[value]}; list each once")
        if len(lines) == MOST_VALUES:
            raise SchemaError(f"{name} lists more than {MOST_VALUES:,} values, which is too many for a category")
        lines[value] = number
    if not lines:
        raise SchemaError(f"{name} lists no values; write one a line")
    return tuple(lines)


def _text_of(path: Path, name: str) -> str:
    """The whole file, if it is a text file of a sane size. What is no plain file might never end, and is not opened."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
        content = _beginning(path) if is_file else b""
    except (OSError, ValueError) as err:
        why = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
        raise_alone(SchemaError(f"cannot read the values in {name}: {why}"))
    if not is_file:
        raise SchemaError(f"{name} is not a file, so values cannot be read from it")
    if len(content) > LARGEST_FILE:
        raise SchemaError(f"{name} is larger than {LARGEST_FILE >> 20} MiB, which is too large for a list of values")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        raise_alone(SchemaError(f"line {line} of {name} is not UTF-8 text; save the list as UTF-8"))
    if "\0" in text:
        raise SchemaError(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} of {name} holds a NUL: it is no text")
    return text


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST_FILE + 1)


def _entries(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and values; empty lines at the end of the file are none."""
    found = _first_fields(name, text) if name.strip("'\"").lower().endswith(".csv") else _lines(text)
    for number, value in found:
        if not value:
            raise SchemaError(f"line {number} of {name} is empty; remove it, or fill it in")
        if value != value.strip():
            raise SchemaError(f"line {number} of {name} begins or ends with a space; remove it")
        yield number, value


def _lines(text: str) -> Iterator[tuple[int, str]]:
    lines = text.rstrip().replace("\r\n", "\n").split("\n")
    return enumerate(lines if text.strip() else [], start=1)


def _first_fields(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The first fields of the rows below the header, with the lines on which rows end."""
    reader = csv.reader(io.StringIO(text.rstrip(), newline=""))
    try:
        next(reader, None)
        for row in reader:
            yield reader.line_num, row[0] if row else ""
    except csv.Error as err:
        raise_alone(SchemaError(f"line {reader.line_num} of {name} cannot be read as CSV: {err}"))


def _whole(text: str, name: str, number: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise SchemaError(
            f"line {number} of {name} is not a whole number, and the values are numbers because `other` is one; write "
            "`other` as a string for a list of strings"
        )
    return int(text)
