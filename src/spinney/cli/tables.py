"""Tables in files: CSV and Parquet, with `-` for CSV on standard input or output.

With a schema at hand a CSV column is read as the type that the schema states, so that the text "007" stays text.
Messages of the CSV reader quote the data: they are replaced by ones that name the column, and are kept out of the
chain of causes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from spinney.cli.texts import parse_texts
from spinney.errors import InputError, ParameterError
from spinney.files import write_whole
from spinney.schema.columns import Boolean, Column, Identifier, Real
from spinney.schema.table import Schema

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz")


def check_table_name(path: str, argument: str, *, endings: tuple[str, ...] = (".csv", *_PARQUET)) -> None:
    """Raise unless the ending of a file name says which kind of table it is."""
    if not path.lower().endswith(endings):
        raise ParameterError(f"{argument} {path!r} does not end in {' or '.join(endings)}, so its format is not known")


def read_table(source: str, schema: Schema) -> pa.Table:
    """The table in a file, or on standard input for `-`. Raises InputErrors that name columns, never values."""
    if _is_parquet(source):
        with _damage_told(source):
            return pq.ParquetFile(source).read()
    data = _csv_data(source)
    with _damage_told(source):
        names = _header(data)
    if not set(names) & set(schema):
        # The names are not quoted: without a header they are somebody's values.
        raise InputError(
            "the first row of the CSV names none of the schema's columns; it needs a header row, separated by commas"
        )
    with _damage_told(source):
        return _read_typed(data, names, schema)


def read_types(source: str) -> pa.Schema:
    """Names and types of the columns in a file. CSV says no types, so they are told from the values."""
    if _is_parquet(source):
        with _damage_told(source):
            return pq.ParquetFile(source).schema_arrow
    data = _csv_data(source)
    with _damage_told(source):
        names = _header(data)
    if all(_is_number(name) for name in names):
        raise InputError("the first row of the CSV holds numbers, not names; it needs a header row")
    with _damage_told(source):
        try:
            return _read_csv(data, {}).schema
        except pa.ArrowInvalid as err:
            raise _told(err) from None  # the cause quotes values of the table


def write_table(table: pa.Table, target: str, *, overwrite: bool) -> None:
    """Write a table as its ending says, whole or not at all; `-` is CSV on standard output."""
    if target == "-":
        pacsv.write_csv(table, sys.stdout.buffer)
        sys.stdout.flush()
        return

    def write(file: IO[bytes]) -> None:
        if target.lower().endswith(_PARQUET):
            pq.write_table(table, file)
        else:
            pacsv.write_csv(table, file)

    write_whole(target, write, overwrite=overwrite)


def _is_parquet(source: str) -> bool:
    if source == "-" or not Path(source).is_file():  # a pipe such as <(zcat table.csv.gz) has no ending
        return False
    check_table_name(source, "TABLE", endings=(*_CSV, *_PARQUET))
    return source.lower().endswith(_PARQUET)


@contextmanager
def _damage_told(source: str) -> Iterator[None]:
    """Errors of the file readers as ours; those of the operating system pass."""
    try:
        yield
    except (pa.ArrowException, OSError) as err:
        if isinstance(err, OSError) and err.strerror:
            raise
        raise InputError(f"{source!r} is damaged, or not in the format that its ending says") from None


# ------------------------------------------------------------------------------------------------------ CSV


def _csv_data(source: str) -> Any:
    """Something that can be read more than once: a path, or all of a pipe in memory."""
    if source == "-":
        return pa.py_buffer(sys.stdin.buffer.read())
    return source if Path(source).is_file() else pa.py_buffer(Path(source).read_bytes())


def _read_csv(data: Any, types: dict[str, pa.DataType]) -> pa.Table:
    return pacsv.read_csv(
        pa.BufferReader(data) if isinstance(data, pa.Buffer) else data,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        # Text is never null here: which spellings mean "missing" depends on the column's list of values.
        convert_options=pacsv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )


def _header(data: Any) -> list[str]:
    try:
        with pacsv.open_csv(pa.BufferReader(data) if isinstance(data, pa.Buffer) else data) as reader:
            names = [str(name) for name in reader.schema.names]
    except pa.ArrowInvalid as err:
        raise _told(err) from None  # the cause quotes values of the table
    except UnicodeDecodeError:
        raise InputError("the CSV is not UTF-8 text; save it as UTF-8") from None
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise InputError("the header of the CSV is not separated by commas; save the table with commas")
    if len(set(names)) != len(names):
        raise InputError("the table has two columns of the same name; rename one")
    return names


def _read_typed(data: Any, names: list[str], schema: Schema) -> pa.Table:
    """The CSV with every column as its schema says, each value read by itself."""
    types = {name: _first_type(schema[name]) if name in schema else pa.string() for name in names}
    try:
        table = _read_csv(data, types)
    except pa.ArrowInvalid as err:
        name = _failing_column(err, names)
        # The cause quotes values of the table.
        raise (_told(err) if name is None else _unreadable(name, schema)) from None
    for index, name in enumerate(names):
        if name in schema and pa.types.is_string(types[name]) and not isinstance(schema[name], Identifier):
            try:
                values = parse_texts(table[name], schema[name])
            except (pa.ArrowInvalid, InputError):
                raise _unreadable(name, schema) from None
            table = table.set_column(index, name, values)
    return table


def _first_type(column: Column) -> pa.DataType:
    """What the reader makes of a column: numbers and truth values have one spelling each, the rest is parsed later."""
    if isinstance(column, Identifier):
        return pa.binary()  # nothing is made of it, so nothing can be wrong with it
    if isinstance(column, Real):
        return pa.float64()
    return pa.bool_() if isinstance(column, Boolean) else pa.string()


def _unreadable(name: str, schema: Schema) -> InputError:
    kind = schema[name].type_name if name in schema else "text"
    return InputError(f"column {name!r}: some value cannot be read as {kind}; clean the column or change its type")


def _failing_column(err: pa.ArrowInvalid, names: list[str]) -> str | None:
    found = re.match(r"In CSV column #(\d+):", str(err))
    return names[int(found[1])] if found and int(found[1]) < len(names) else None


def _told(err: pa.ArrowInvalid) -> InputError:
    """The reader's complaint without the data that it quotes."""
    text = str(err)
    if "Empty CSV" in text:
        return InputError("the table is empty; a CSV needs a header row and rows below it")
    if "Expected" in text and "columns" in text:
        return InputError("the CSV has a row with more or fewer fields than its header; repair or quote that row")
    return InputError("the file cannot be read as CSV; it needs a header row and fields separated by commas")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return not name.strip()
    return True
