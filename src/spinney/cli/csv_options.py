"""The options of `sp.CSV` (delimiter, encoding, ...) on the command line, for every verb that reads a table."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from spinney.errors import ParameterError

if TYPE_CHECKING:
    from spinney.tables.csv.format import CSV

CSV_NAMES = ("delimiter", "decimal", "encoding", "date_format", "no_header", "names")

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="CSV: the character between fields; write tab for a tab. Default: a comma.",
    ),
    click.option(
        "--decimal", metavar="MARK", help="CSV: the decimal mark of numbers, a point or a comma. Default: a point."
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="CSV: the encoding, such as latin-1, cp1252 or utf-16. Default: UTF-8, or the encoding of the byte order "
        "mark.",
    ),
    click.option(
        "--date-format",
        multiple=True,
        metavar="[NAME=]FORMAT",
        help="CSV: the format of dates and times, such as %d/%m/%Y; with NAME=, the format of one column. "
        "Default: ISO 8601, such as 2024-01-31.",
    ),
    click.option("--no-header", is_flag=True, help="CSV: the first line is a row, not a header; needs --names."),
    click.option(
        "--names",
        metavar="NAME,NAME,...",
        help="CSV: the names of all columns, in place of the header. Put a name that contains a comma in double "
        "quotes.",
    ),
)


def csv_options(command: Callable[..., None]) -> Callable[..., None]:
    """A verb with the options that say how a CSV is written."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_csv(table: str, parameters: dict[str, Any]) -> CSV | None:
    """How TABLE is written, taken out of the parameters of a verb; None where nothing was said."""
    from spinney.cli.command import files_of, is_piped
    from spinney.release.answers.options import csv_fields
    from spinney.tables.csv.format import CSV
    from spinney.tables.paths.expanding import is_parquet, is_remote

    said = {name: parameters.pop(name) for name in CSV_NAMES}
    given = {name: value for name, value in said.items() if value not in (None, (), False)}
    if not given:
        return None
    if is_remote(table) or (not is_piped(table) and is_parquet(files_of(table)[0])):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{options}: only CSV files take this, and {table!r} is not CSV; leave it out")
    if "delimiter" in given:
        given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(given["delimiter"], given["delimiter"])
    if "names" in given:
        given["names"] = [name.strip() for name in csv_fields(given["names"])]
    if "date_format" in given:
        given["date_format"] = _formats(given["date_format"])
    return CSV(table, header=not given.pop("no_header", False), **given)


def as_options(csv: CSV | None) -> str:
    """What was said about a CSV, to be said to the next verb."""
    if csv is None:
        return ""
    default = type(csv)("")
    said = {"delimiter": csv.delimiter, "decimal": csv.decimal, "encoding": csv.encoding}
    words = [
        word for name, value in said.items() if value != getattr(default, name) for word in (f"--{name}", str(value))
    ]
    formats = csv.date_format or {}
    for text in [formats] if isinstance(formats, str) else [f"{name}={value}" for name, value in formats.items()]:
        words += ["--date-format", text]
    words += [] if csv.header else ["--no-header"]
    words += [] if csv.names is None else ["--names", ",".join(map(_quoted, csv.names))]
    return shlex.join(words) + " "


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name


def _formats(values: tuple[str, ...]) -> str | dict[str, str]:
    """("%d/%m/%Y",) is one format for all columns; ("born=%d/%m/%Y",) is one for a column."""
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    pairs = [value.partition("=") for value in values]
    if not all(name and date_format for name, _, date_format in pairs):
        raise ParameterError(f"--date-format takes one format, or NAME=FORMAT for every column; got {' '.join(values)}")
    return {name: date_format for name, _, date_format in pairs}
