"""CSV by the schema: block after block, each column as the type that the schema states, so that "007" stays text.

One reader for the library and the command. Lines are checked and counted before they are parsed (csv_lines), each block
is parsed by itself, by the thread that goes on to count it, and what cannot be read is told by line, column and kind of
spelling. Messages of the CSV reader below quote the data: they never become part of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from spinney.columns import Column
from spinney.columns.physical import Physical
from spinney.counting.cells import missing
from spinney.errors import InputError, raise_alone
from spinney.schema.table import Schema
from spinney.tables.batches import Batch
from spinney.tables.csv.format import CSV, PLAIN
from spinney.tables.csv.header import check_header, read_names
from spinney.tables.csv.lines import NOT_UTF8, Block, LineNumbers, csv_blocks
from spinney.tables.frames import Table, open_table


def csv_types(names: Sequence[str], schema: Schema) -> pa.Schema:
    """What the columns will be once they are read: the schema's types, and text for what the schema does not name."""
    return pa.schema([(name, _last_type(schema[name]) if name in schema else pa.string()) for name in names])


def csv_batches(
    data: Any, names: Sequence[str], schema: Schema, csv: CSV, *, where: str = "", block_bytes: int | None = None
) -> Iterator[Batch]:
    """The schema's columns of a CSV whose columns are `names`, to be parsed by the threads that ask."""

    def read(block: Block) -> Table:
        try:
            table = _parsed(block, names, list(schema), schema, csv)
        except InputError as err:
            raise_alone(InputError(f"{where}{err}"))
        return CSVTable(table, schema, block.line_numbers(), csv, where)

    for block in csv_blocks(data, csv, len(names), block_bytes=block_bytes):
        yield Batch(block.n_rows, partial(read, block))


def count_csv(data: Any, names: Sequence[str], csv: CSV, *, block_bytes: int | None = None) -> int:
    """How many rows a CSV has; of its values nothing is made."""
    return sum(block.n_rows for block in csv_blocks(data, csv, len(names), block_bytes=block_bytes))


def read_csv(data: Any, schema: Schema, csv: CSV = PLAIN, *, block_bytes: int | None = None) -> pa.Table:
    """All columns of a CSV at once, those too that the schema does not name."""
    names = read_names(data, csv)
    check_header(names, schema)
    blocks = csv_blocks(data, csv, len(names), block_bytes=block_bytes)
    parts = [_parsed(block, names, names, schema, csv) for block in blocks]
    return pa.concat_tables(parts) if parts else csv_types(names, schema).empty_table()


class CSVTable(Table):
    """A block of rows that were parsed. Values that do not fit the schema are told by the line they stand on."""

    def __init__(self, table: pa.Table, schema: Schema, lines: LineNumbers, csv: CSV, where: str = "") -> None:
        opened = open_table(table, schema)
        super().__init__(opened.kind, opened.n_rows, schema, opened._column)
        self._table, self._lines, self._csv, self._where = table, lines, csv, where

    def with_schema(self, schema: Schema) -> CSVTable:
        return CSVTable(self._table.select(list(schema)), schema, self._lines, self._csv, self._where)

    def unplaced(self) -> Table:
        return Table(self.kind, self.n_rows, self.schema, self._column)

    def physical(self, name: str) -> Physical:
        physical = super().physical(name)
        is_missing = ~np.isfinite(physical.values) if physical.is_null is None else physical.is_null
        if not self.schema[name].nullable and is_missing.any():
            raise missing(name, self._place(name, int(is_missing.argmax())))
        return physical

    def stored(self, name: str) -> Physical:
        try:
            return super().stored(name)
        except InputError:
            raise_alone(self._misfit(name))

    def _misfit(self, name: str) -> InputError:
        """The first value of a column that the schema does not have."""
        column = self.schema[name]
        alone = Schema({name: column})
        part = self._table.select([name])

        def fits(start: int, stop: int) -> bool:
            try:
                open_table(part.slice(start, stop - start), alone).stored(name)
            except InputError:
                return False
            return True

        row = _first_misfit(self.n_rows, fits)
        why = column.cause(str(part[name][row].as_py()), self._csv.spelling_of(name))
        return InputError(f"{self._place(name, row)}: the value does not fit the schema: {why}")

    def _place(self, name: str, row: int) -> str:
        return f"{self._where}line {self._lines.of(row)}, column {name!r}"


# ---------------------------------------------------------------------------------------------------- reading


def read_text(text: bytes, names: Sequence[str], csv: CSV, **converting: Any) -> pa.Table:
    """Lines that were checked, as a table."""
    return pacsv.read_csv(
        pa.BufferReader(text),
        read_options=pacsv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(text) + 1),
        parse_options=pacsv.ParseOptions(delimiter=csv.delimiter),
        # Text is never null here: which spellings mean "missing" depends on the column's list of values.
        convert_options=pacsv.ConvertOptions(strings_can_be_null=False, decimal_point=csv.decimal, **converting),
    )


def _parsed(block: Block, names: Sequence[str], wanted: Sequence[str], schema: Schema, csv: CSV) -> pa.Table:
    """Some columns of a block, each value read by itself."""
    try:
        table = _read(block.text, names, wanted, schema, csv)
    except (pa.ArrowInvalid, InputError):
        raise_alone(_unreadable(block, names, wanted, schema, csv))
    if table.num_rows != block.n_rows:
        raise InputError(
            f"the CSV has lines from line {block.first_line} on that were not read as one row each; save it as Parquet"
        )
    return table


def _read(text: bytes, names: Sequence[str], wanted: Sequence[str], schema: Schema, csv: CSV) -> pa.Table:
    types = {name: schema[name].csv_type if name in schema else pa.string() for name in wanted}
    table = read_text(text, names, csv, column_types=types, include_columns=list(types))
    for index, (name, first) in enumerate(types.items()):
        if name in schema and pa.types.is_string(first):
            table = table.set_column(index, name, schema[name].from_strings(table[name], csv.spelling_of(name)))
    return table


def _last_type(column: Column) -> pa.DataType:
    first = column.csv_type
    return column.arrow_type if pa.types.is_string(first) else first


# --------------------------------------------------------------------------------------------------- complaints


def _unreadable(block: Block, names: Sequence[str], wanted: Sequence[str], schema: Schema, csv: CSV) -> InputError:
    """The first value of a block that cannot be read."""

    def is_readable(columns: Sequence[str], start: int, stop: int) -> bool:
        try:
            _read(block.rows(start, stop), names, columns, schema, csv)
        except (pa.ArrowInvalid, InputError):
            return False
        return True

    row = _first_misfit(block.n_rows, partial(is_readable, wanted))
    line = block.line_numbers().of(row)
    name = next((name for name in wanted if not is_readable([name], row, row + 1)), None)
    if name is None:
        return InputError(f"line {line} of the CSV cannot be read; save the table anew")
    field = read_text(block.rows(row, row + 1), names, csv, column_types={name: pa.binary()}, include_columns=[name])
    text = _decoded(field[name][0].as_py())
    if text is None or name not in schema:
        return InputError(f"line {line}, column {name!r}: the value {NOT_UTF8}")
    kind = schema[name].type_name
    why = schema[name].cause(text, csv.spelling_of(name))
    return InputError(f"line {line}, column {name!r}: the value cannot be read as {kind}: {why}")


def _decoded(field: bytes) -> str | None:
    try:
        return field.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _first_misfit(n_rows: int, fits: Callable[[int, int], bool]) -> int:
    """The first row that does not fit, by halves: rows are read one by one, so that a part fits if all its rows do."""
    low, high = 0, n_rows
    while high - low > 1:
        middle = (low + high) // 2
        if fits(low, middle):
            low = middle
        else:
            high = middle
    return low
