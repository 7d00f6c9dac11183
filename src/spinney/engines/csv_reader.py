"""CSV by the schema: block after block, each column as the type that the schema states, so that "007" stays text.

One reader for the library and the command. Messages of the CSV reader below quote the data: they are replaced by ones
that name the column, and are kept out of the chain of causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from spinney.engines.texts import parse_texts, spelt_type
from spinney.errors import InputError
from spinney.schema.columns import Boolean, Column, Identifier, Real
from spinney.schema.table import Schema

# Bytes of text that are parsed at a time; no single row may be longer.
_BLOCK = 1 << 23


def read_header(data: Any) -> list[str]:
    """The names in the first row. `data` is a path, or a buffer of what came through a pipe."""
    try:
        with pacsv.open_csv(_input(data), read_options=_reading(), parse_options=_parsing()) as reader:
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


def check_header(names: Sequence[str], schema: Schema) -> None:
    """Raise if a first row looks like values. The names are not quoted: without a header they are somebody's."""
    if not set(names) & set(schema):
        raise InputError(
            "the first row of the CSV names none of the schema's columns; it needs a header row, separated by commas"
        )


def csv_types(names: Sequence[str], schema: Schema) -> pa.Schema:
    """What the columns will be once they are read: the schema's types, and text for what the schema does not name."""
    return pa.schema([(name, _last_type(schema[name]) if name in schema else pa.string()) for name in names])


def csv_batches(data: Any, names: Sequence[str], wanted: Sequence[str], schema: Schema) -> Iterator[pa.Table]:
    """Some columns of a CSV whose header is `names`, block after block, each value read by itself."""
    types = {name: _first_type(schema[name]) if name in schema else pa.string() for name in wanted}
    with _complaints(names, schema), _open(data, types) as reader:
        for batch in reader:
            yield _typed(pa.Table.from_batches([batch]), types, schema)


def read_csv(data: Any, schema: Schema) -> pa.Table:
    """All columns of a CSV at once, those too that the schema does not name."""
    names = read_header(data)
    check_header(names, schema)
    batches = list(csv_batches(data, names, names, schema))
    return pa.concat_tables(batches) if batches else csv_types(names, schema).empty_table()


def count_csv(data: Any, names: Sequence[str]) -> int:
    """How many rows a CSV has; of its values nothing is made."""
    with _complaints(names, {}), _open(data, {names[0]: pa.binary()}) as reader:
        return sum(batch.num_rows for batch in reader)


def guess_types(data: Any) -> pa.Schema:
    """Types told from all values of a CSV, where there is no schema yet."""
    try:
        return _guess(data).schema
    except pa.ArrowInvalid as err:
        raise _told(err) from None  # the cause quotes values of the table


# ---------------------------------------------------------------------------------------------------- reading


def _input(data: Any) -> Any:
    return pa.BufferReader(data) if isinstance(data, pa.Buffer) else data


def _reading() -> pacsv.ReadOptions:
    return pacsv.ReadOptions(block_size=_BLOCK)


def _parsing() -> pacsv.ParseOptions:
    return pacsv.ParseOptions(newlines_in_values=True)


def _guess(data: Any) -> pa.Table:
    return pacsv.read_csv(
        _input(data), read_options=_reading(), parse_options=_parsing(), convert_options=_converting()
    )


def _converting(**options: Any) -> pacsv.ConvertOptions:
    # Text is never null here: which spellings mean "missing" depends on the column's list of values.
    return pacsv.ConvertOptions(strings_can_be_null=False, **options)


def _open(data: Any, types: dict[str, pa.DataType]) -> Any:
    return pacsv.open_csv(
        _input(data),
        read_options=_reading(),
        parse_options=_parsing(),
        convert_options=_converting(column_types=types, include_columns=list(types)),
    )


def _typed(table: pa.Table, types: dict[str, pa.DataType], schema: Schema) -> pa.Table:
    """Texts parsed where the schema says that they are something else."""
    for index, (name, first) in enumerate(types.items()):
        if name in schema and pa.types.is_string(first) and not isinstance(schema[name], Identifier):
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


def _last_type(column: Column) -> pa.DataType:
    first = _first_type(column)
    return first if isinstance(column, Identifier) or not pa.types.is_string(first) else spelt_type(column)


# --------------------------------------------------------------------------------------------------- complaints


@contextmanager
def _complaints(names: Sequence[str], schema: Mapping[str, Column]) -> Iterator[None]:
    """Errors of the reader as ours, with the column's name where one is to blame."""
    try:
        yield
    except pa.ArrowInvalid as err:
        found = re.match(r"In CSV column #(\d+):", str(err))
        # The cause quotes values of the table.
        if found and int(found[1]) < len(names):
            raise _unreadable(names[int(found[1])], schema) from None
        raise _told(err) from None


def _unreadable(name: str, schema: Mapping[str, Column]) -> InputError:
    kind = schema[name].type_name if name in schema else "text"
    return InputError(f"column {name!r}: some value cannot be read as {kind}; clean the column or change its type")


def _told(err: pa.ArrowInvalid) -> InputError:
    """The reader's complaint without the data that it quotes."""
    text = str(err)
    if "Empty CSV" in text:
        return InputError("the table is empty; a CSV needs a header row and rows below it")
    if "Expected" in text and "columns" in text:
        return InputError("the CSV has a row with more or fewer fields than its header; repair or quote that row")
    return InputError("the file cannot be read as CSV; it needs a header row and fields separated by commas")
