"""The lines of a CSV, in blocks: one line is one row, or the file is refused.

A reader that lets a quoted value run over line ends lets one row swallow the rows after it, and the counts of all of
them change with one person's data. So every line is looked at before anything is made of it: a quote that is open at
the end of its line, a line end inside a value and a wrong number of fields are refused, with the number of the line.
What passes is split into fields in one way only, whichever lines stand around it.

Text comes as UTF-8: other encodings are transcoded as they are read. At most a few blocks are held.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns.spelling import option
from spinney.compiled import compiled
from spinney.errors import InputError, raise_alone
from spinney.tables.csv.format import CSV, QUOTE

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


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines of a CSV that hold one row each, blank lines aside."""

    text: bytes
    first_line: int
    n_rows: int
    n_blank: int

    def __repr__(self) -> str:
        return "Block(sensitive)"

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


# ------------------------------------------------------------------------------------------------------ text


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
        return _without_mark(lambda raw, _: raw, codecs.BOM_UTF8)
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    return _without_mark(lambda raw, final: decoder.decode(raw, final).encode("utf-8"), codecs.BOM_UTF8)


def _without_mark(decode: Any, mark: bytes) -> Any:
    is_first = True

    def decoded(raw: bytes, final: bool) -> bytes:
        nonlocal is_first
        text: bytes = decode(raw, final)
        if is_first and text:
            is_first = False
            return text.removeprefix(mark)
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


# ------------------------------------------------------------------------------------------------------ lines

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
