"""CSV by the schema: lines, names, values and guessed types. SENSITIVE, so no message quotes a field.

    lines            one line is one row, or the file is refused; text as UTF-8, marks, faults
    header           names of columns, from the first line or as stated
    reader           block after block, each column as the type that the schema states
    guessed types    types of columns where there is no schema yet

One reader serves the library and the command. Every line is looked at before anything is made of it, so no row
can change how another one is split or read.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from spinney.columns import Column, Date, Datetime
from spinney.columns.base import Spelling, option
from spinney.columns.reading import MISSING, Physical
from spinney.compiled import compiled
from spinney.counting.counts import missing
from spinney.errors import InputError, ParameterError, raise_alone
from spinney.schema.schema import Schema
from spinney.tables.csv import CSV, PLAIN, QUOTE, has_time
from spinney.tables.frames import Table, open_table
from spinney.tables.source import Batch
from spinney.text import Sensitive

# ---------------------------------------------------------------------------------------------------------------- lines
# The lines of a CSV, in blocks: one line is one row, or the file is refused.
#
# A reader that lets a quoted value run over line ends lets one row swallow the rows after it, and the counts of all
# of them change with one person's data. So every line is looked at before anything is made of it: a quote that is
# open at the end of its line, a line end inside a value and a wrong number of fields are refused, with the number of
# the line. What passes is split into fields in one way only, whichever lines stand around it.
#
# Text comes as UTF-8: other encodings are transcoded as they are read. At most a few blocks are held.


# Bytes of text that are parsed at a time, unless told; no single line may be longer.
BLOCK_BYTES = 1 << 23
# Bytes that are read for the header.
_FIRST = 1 << 16

NOT_UTF8 = f"is not UTF-8; save the table as UTF-8, or state its encoding: {option('encoding', 'latin-1')}, cp1252, ..."
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = {
    b"\x1f\x8b": "is compressed by gzip; name the file .csv.gz, or unpack it first (zcat)",
    b"PK\x03\x04": "is a zip archive or an Excel workbook, not text; save the table as CSV",
}


@dataclass(frozen=True, slots=True, repr=False)
class Block(Sensitive):
    """Some whole lines of a CSV that hold one row each, blank lines aside."""

    text: bytes
    first_line: int
    n_rows: int
    n_blank: int

    def line_numbers(self) -> LineNumbers:
        return LineNumbers(self.first_line, self._row_lines() if self.n_blank else None)

    def rows(self, start: int, stop: int) -> bytes:
        """The text of rows start..stop, the last one not included."""
        ends = self._line_ends()
        lines = self._row_lines() if self.n_blank else np.arange(self.n_rows)
        first, last = int(lines[start]), int(lines[stop - 1])
        return self.text[(int(ends[first - 1]) + 1 if first else 0) : int(ends[last]) + 1]

    def _line_ends(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n"))

    def _row_lines(self) -> NDArray[np.int64]:
        """The lines that are rows, counted from 0."""
        ends = self._line_ends()
        starts = np.concatenate([[0], ends[:-1] + 1])
        first = np.frombuffer(self.text, dtype=np.uint8)[starts]
        is_blank = (ends == starts) | ((ends == starts + 1) & (first == ord("\r")))
        return np.flatnonzero(~is_blank)


@dataclass(frozen=True, slots=True)
class LineNumbers:
    """Which line of the file each row of a block stands on."""

    first: int
    places: NDArray[np.int64] | None = None

    def of(self, row: int) -> int:
        return self.first + (row if self.places is None else int(self.places[row]))


def first_line(data: Any, csv: CSV) -> tuple[bytes, int]:
    """The first line that is not blank, without its end, and how many fields it has."""
    n_lines = 0
    for text in _texts(data, csv, _FIRST, longest=BLOCK_BYTES):
        for line in text.split(b"\n")[:-1]:
            n_lines += 1
            if line.rstrip(b"\r"):
                return line.rstrip(b"\r"), _checked(line + b"\n", csv, 0, n_lines).n_fields
    raise InputError("the table is empty; a CSV needs a header row and rows below it")


def check_utf8(text: bytes, line: int) -> None:
    """Raise if some lines, of which the first has the number `line`, are no UTF-8."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as err:
        bad = line + text.count(b"\n", 0, err.start)
        raise_alone(InputError(f"line {bad} of the CSV {NOT_UTF8}"))


def csv_blocks(data: Any, csv: CSV, n_fields: int, *, block_bytes: int | None = None) -> Iterator[Block]:
    """All lines below the header, checked: each has `n_fields` fields, and no field holds a line end."""
    block_bytes = block_bytes or BLOCK_BYTES
    n_lines = 0
    is_body = not csv.header
    for text in _texts(data, csv, block_bytes, longest=block_bytes):
        start = 0
        while not is_body and start < len(text):
            end = text.index(b"\n", start)
            is_body = text[start:end] not in (b"", b"\r")
            n_lines, start = n_lines + 1, end + 1
        if start == len(text):
            continue
        body = text[start:] if start else text
        found = _checked(body, csv, n_fields, n_lines + 1)
        if found.n_rows:
            yield Block(body, n_lines + 1, found.n_rows, found.n_lines - found.n_rows)
        n_lines += found.n_lines


# ----------------------------------------------------------------------------------------------------------------- text


def _texts(data: Any, csv: CSV, size: int, *, longest: int) -> Iterator[bytes]:
    """The file as UTF-8, in pieces that end with a line end. `data` is a path, or a buffer of what came by a pipe."""
    rest = b""
    n_lines = 0
    with _opened(data) as stream:
        head = stream.read(size)
        decode = _decoder(head, csv)
        raw = head
        while True:
            try:
                text = rest + decode(raw, not raw)
            except UnicodeDecodeError as err:
                raise_alone(_undecodable(err, csv, n_lines + 1))
            cut = text.rfind(b"\n") + 1
            if not raw and cut < len(text):
                text, cut = text + b"\n", len(text) + 1
            if text.find(b"\n") > longest:
                raise InputError(_too_long(n_lines + 1, text, longest))
            if cut:
                n_lines += text.count(b"\n", 0, cut)
                yield text[:cut]
            rest = text[cut:]
            if len(rest) > longest:
                raise InputError(_too_long(n_lines + 1, rest, longest))
            if not raw:
                return
            raw = stream.read(size)


def _opened(data: Any) -> Any:
    if isinstance(data, pa.Buffer):
        return pa.BufferReader(data)
    path = str(data)
    return pa.input_stream(path, compression="gzip" if path.lower().endswith(".gz") else None)


def _decoder(head: bytes, csv: CSV) -> Any:
    """A function of bytes, and whether they are the last, that gives UTF-8 without a byte order mark."""
    for beginning, what in _NO_TEXT.items():
        if head.startswith(beginning):
            raise InputError(f"the table {what}")
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    stated = None if csv.encoding is None else codecs.lookup(csv.encoding).name.removesuffix("-sig")
    if stated is not None and marked is not None and not stated.startswith(marked):
        raise InputError(
            f"the CSV begins with the byte order mark of {marked.upper()}, and encoding={csv.encoding!r} was stated; "
            "leave the encoding out"
        )
    if stated is None and not csv.header and marked not in (None, "utf-8"):
        # Without a header the file begins with a row, and no row may decide how the others are read.
        raise InputError(
            f"the CSV has no header and begins like {marked.upper()}; state its encoding: {option('encoding', marked)}"
        )
    encoding = stated or marked or "utf-8"
    if encoding == "utf-8":
        # Validated where text is made of it: bytes that are no text may stand in columns that nobody reads.
        return _without_mark(lambda raw, _: raw)
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    return _without_mark(lambda raw, final: decoder.decode(raw, final).encode("utf-8"))


def _without_mark(decode: Any) -> Any:
    is_first = True

    def decoded(raw: bytes, final: bool) -> bytes:
        nonlocal is_first
        text: bytes = decode(raw, final)
        if is_first and text:
            is_first = False
            return text.removeprefix(codecs.BOM_UTF8)
        return text

    return decoded


def _undecodable(err: UnicodeDecodeError, csv: CSV, line: int) -> InputError:
    try:
        before = err.object[: err.start].decode(err.encoding)
    except UnicodeDecodeError:
        before = ""
    stated = f"encoding={csv.encoding!r}" if csv.encoding else "its byte order mark"
    return InputError(
        f"line {line + before.count(chr(10))} of the CSV holds bytes that contradict {stated}; "
        "state the encoding that the file has, or save it as UTF-8"
    )


def _too_long(line: int, text: bytes, longest: int) -> str:
    if b"\r" in text:
        return f"line {line} of the CSV {_FAULTS[_RETURN]}"
    return f"line {line} of the CSV is longer than {longest >> 20} MiB; is the file text with one row a line?"


# ---------------------------------------------------------------------------------------------------------------- lines

# Bytes whose marks are gathered at a time: their places stay in cache.
_STRETCH = 1 << 12
_ORDINARY, _DELIMITER, _QUOTE, _FEED, _CARRIAGE, _NUL = range(6)
_FINE, _UNCLOSED, _AFTER_QUOTE, _LATE_QUOTE, _RETURN, _ZERO, _FIELDS = range(7)
_FAULTS = {
    _UNCLOSED: "opens a quote that it does not close. A value may not hold a line end, because a row must be one line: "
    "close the quote, take the line ends out of values, or save the table as Parquet",
    _AFTER_QUOTE: 'has text after a closing quote. A quote inside a quoted value is written twice: "5"" pipe"',
    _LATE_QUOTE: "has a quote after spaces, which readers understand differently; remove the spaces before it",
    _RETURN: "has a carriage return without a line feed; save the table with the line ends of Unix or Windows, and "
    "without line ends inside values",
    _ZERO: f"holds a NUL byte, so it is not UTF-8 text. If the file is UTF-16, say {option('encoding', 'utf-16-le')}",
}


@dataclass(frozen=True, slots=True)
class _Found:
    n_lines: int
    n_rows: int
    n_fields: int


def _checked(text: bytes, csv: CSV, n_fields: int, line: int) -> _Found:
    """What some whole lines hold, of which the first has the number `line`; with `n_fields` of 0, any number fits."""
    kinds = np.zeros(256, dtype=np.uint8)
    for mark, kind in (("\n", _FEED), ("\r", _CARRIAGE), ("\0", _NUL)):
        kinds[ord(mark)] = kind
    kinds[ord(QUOTE)], kinds[ord(csv.delimiter)] = _QUOTE, _DELIMITER
    fault, n_lines, n_rows, n_here = _scan(np.frombuffer(text, dtype=np.uint8), kinds, n_fields)
    if fault == _FIELDS:
        expected = f"names lists {n_fields}" if csv.names is not None else f"the header has {n_fields}"
        found = "1 field" if n_here == 1 else f"{n_here} fields"
        other = option("delimiter", ";" if csv.delimiter == "," else ",")
        raise InputError(
            f"line {line + n_lines} of the CSV has {found}, and {expected}; repair the line, put values that hold "
            f"{csv.delimiter!r} in double quotes, or state another delimiter: {other}"
        )
    if fault != _FINE:
        raise InputError(f"line {line + n_lines} of the CSV {_FAULTS[int(fault)]}")
    return _Found(int(n_lines), int(n_rows), int(n_here))


@compiled
def _is_space(text: NDArray[np.uint8]) -> bool:
    for byte in text:  # noqa: SIM110  # compiled
        if byte not in (32, 9):
            return False
    return True


@compiled
def _scan(text: NDArray[np.uint8], kinds: NDArray[np.uint8], n_fields: int) -> tuple[int, int, int, int]:
    """(fault, lines before it, rows, fields of the last line) of lines that end in a line feed.

    A field is at its start (0), plain (1), inside quotes (2) or behind a closing quote (3). Most bytes are ordinary:
    the places of the others are gathered without a branch, a stretch of text at a time, and looked at one by one.
    """
    places = np.empty(_STRETCH, dtype=np.int64)
    state, n_lines, n_rows, n_here = 0, 0, 0, 1
    line_start = field_start = passed = 0
    for first in range(0, text.size, _STRETCH):
        n_places = 0
        for i in range(first, min(first + _STRETCH, text.size)):
            places[n_places] = i
            n_places += kinds[text[i]] != 0
        for i in places[:n_places]:
            if i > passed:  # ordinary bytes since the last mark
                if state == 0:
                    state = 1
                elif state == 3:
                    return 2, n_lines, n_rows, n_here
            passed = i + 1
            kind = kinds[text[i]]
            if kind == 1:
                if state != 2:
                    state = 0
                    n_here += 1
                    field_start = i + 1
            elif kind == 3:
                if state == 2:
                    return 1, n_lines, n_rows, n_here
                if i > line_start + 1 or (i > line_start and text[line_start] != 13):  # not blank
                    if n_fields > 0 and n_here != n_fields:
                        return 6, n_lines, n_rows, n_here
                    n_rows += 1
                n_lines += 1
                line_start = field_start = i + 1
                state = 0
                if i + 1 < text.size:
                    n_here = 1
            elif kind == 2:
                if state in (0, 3):  # opened, or doubled
                    state = 2
                elif state == 2:
                    state = 3
                elif _is_space(text[field_start:i]):
                    return 3, n_lines, n_rows, n_here
            elif kind == 4:
                if state == 2 or i + 1 == text.size or text[i + 1] != 10:
                    return 4, n_lines, n_rows, n_here
            else:
                return 5, n_lines, n_rows, n_here
    return 0, n_lines, n_rows, n_here


# --------------------------------------------------------------------------------------------------------------- header
# The names of a CSV's columns: from its first line, or as the data owner states them.
#
# A CSV without a header has a person where names should be, and names are published. So a first line of which
# any field reads as a value is refused, and no field of it is quoted.


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
    if _can(float, text.replace(",", ".")):
        return "reads as a number"
    if _can(datetime.fromisoformat, text) or _WRITTEN_DAY.match(text) or _CLOCK.match(text):
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


def _can(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------------------------------------------- reader
# CSV by the schema: block after block, each column as the type that the schema states, so that "007" stays
# text.
#
# Lines are checked and counted before they are parsed (`csv_blocks`). Each block is parsed by itself, by the
# thread that goes on to count it, and an error names line, column and kind of spelling. Messages of the CSV
# reader below quote the data: they never become part of ours.


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
        if not self.schema[name].nullable and physical.is_missing.any():
            raise missing(name, self._place(name, int(physical.is_missing.argmax())))
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
        why = column._cause(str(part[name][row].as_py()), self._csv.spelling_of(name))
        return InputError(f"{self._place(name, row)}: the value does not fit the schema: {why}")

    def _place(self, name: str, row: int) -> str:
        return f"{self._where}line {self._lines.of(row)}, column {name!r}"


# -------------------------------------------------------------------------------------------------------------- reading


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
    types = {name: schema[name]._csv_type if name in schema else pa.string() for name in wanted}
    table = read_text(text, names, csv, column_types=types, include_columns=list(types))
    for index, (name, first) in enumerate(types.items()):
        if name in schema and pa.types.is_string(first):
            table = table.set_column(index, name, schema[name]._from_strings(table[name], csv.spelling_of(name)))
    return table


def _last_type(column: Column) -> pa.DataType:
    first = column._csv_type
    return column._arrow_type if pa.types.is_string(first) else first


# ----------------------------------------------------------------------------------------------------------- complaints


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
    why = schema[name]._cause(text, csv.spelling_of(name))
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


# -------------------------------------------------------------------------------------------------------- guessed types
# Types of a CSV's columns where there is no schema yet, from all of its values.
#
# A guess for a person to check. It is made block by block, so that a file of any size can be looked at.


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
    maybe = [field.name for field in fields if pa.types.is_string(field.type) or _is_day_or_moment(field.type)]
    dated = {name: stated for name in maybe if (stated := csv.date_format_of(name)) is not None}
    texts = {}
    if dated:
        texts = read_text(text, names, csv, column_types=dict.fromkeys(dated, pa.string()), include_columns=list(dated))
    for field in fields:
        yield _dated_kind(texts[field.name], dated[field.name]) if field.name in dated else field.type


def _dated_kind(texts: Any, date_format: str) -> pa.DataType:
    """A date or a timestamp if all strings have the format, and a string otherwise."""
    zone = "UTC" if "%z" in date_format else None
    is_moment = has_time(date_format) or zone is not None
    column: Column = Datetime(bounds="private", timezone=zone) if is_moment else Date(bounds="private")
    try:
        column._from_strings(texts, Spelling(date_format=date_format))
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
