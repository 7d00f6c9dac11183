"""A row's cell depends on that row alone: whatever the other rows are and however they are spelt.

Sensitivity rests on this. A reader that chooses one type for a whole column breaks it: one row would move everybody.
So does one that lets a quoted value run over the end of its line: one row would swallow the rows after it.
"""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.cli.tables import given_table, read_table
from spinney.columns import Column
from spinney.errors import InputError
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tables.open import open_source

LARGE = 2**60 - 1

TEXTS: dict[str, tuple[Column, list[str]]] = {
    "large integers": (
        sp.Integer(0, LARGE, bits=32),
        [str(2**59 - 1), str(2**59), "5", "5.0", " 7", "+9", "1e3", "99999999999999999999", "-3", str(LARGE)],
    ),
    "integers with nulls": (sp.Integer(0, LARGE, bits=32, nullable=True), [str(2**59 - 1), "", "NA", "5.0", "nan"]),
    "numbered categories": (sp.Category([2**53, 2**53 + 1, 7]), [str(2**53), str(2**53 + 1), "7", "7.0"]),
    "text categories": (sp.Category(["7", "7.0", "NA", ""], nullable=True), ["7", "7.0", "NA", "", "NULL"]),
    "reals": (
        sp.Real(0, 1, bits=20, nullable=True),
        ["0.1", "1e-1", ".1", "1", "0.10000000000000001", "", "inf"],
    ),
    "truth values": (sp.Boolean(nullable=True), ["true", "false", "1", "0", "True", ""]),
    "days": (
        sp.Date("1500-01-01", "2500-01-01", nullable=True),
        ["1500-06-01", "2020-02-29", "2020-02-29 23:59:59", "2020-02-29T00:00", "", "2499-12-31"],
    ),
    "moments": (
        sp.Datetime("1500-01-01", "2500-01-01", bits=32),
        [
            "1500-06-01T00:00:00",
            "2020-01-01T10:00:00.123456789",
            "2020-01-01 10:00:00",
            "2020-01-01",
            "2020-01-01T10:00",
        ],
    ),
    "moments in a zone": (
        sp.Datetime("1500-01-01", "2500-01-01", bits=32, timezone="Europe/London"),
        ["1500-06-01T00:00:00Z", "2020-07-01T10:00:00+02:00", "2020-07-01T08:00:00.000000001Z"],
    ),
}

OBJECTS: dict[str, tuple[Column, list]] = {
    "decimals": (sp.Real(0, 1, bits=20), [Decimal("0.1"), Decimal("0.9"), Decimal("0.900000"), 0.1, 1, Fraction(1, 3)]),
    "half precision": (sp.Real(0, 1, bits=20), [np.float16(0.4), 1, 0.4, np.float32(0.4), True]),
    "integers": (
        sp.Integer(0, LARGE, bits=32, nullable=True),
        [2**59 - 1, 2**80, 5.0, Decimal(5), float("nan"), pd.NA],
    ),
    "truth values": (sp.Boolean(nullable=True), [True, 0, 1.0, np.False_, None]),
    "days": (
        sp.Date("1500-01-01", "2500-01-01", nullable=True),
        [
            date(1500, 1, 2),
            datetime(2020, 1, 1, 23),
            pd.Timestamp("2020-01-01 23:00"),
            np.datetime64("2020-01-01"),
            pd.NaT,
        ],
    ),
    "moments": (
        sp.Datetime("1500-01-01", "2500-01-01", bits=32, nullable=True),
        [datetime(1500, 1, 2), pd.Timestamp("2020-01-01 10:00:00.123456789"), np.datetime64("2020-01-01T10:00"), None],
    ),
    "moments in a zone": (
        sp.Datetime("1500-01-01", "2500-01-01", bits=32, timezone="UTC"),
        [datetime(2020, 1, 1, tzinfo=UTC), datetime(1600, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))],
    ),
    "texts": (sp.Category(["a", "b"], nullable=True), ["a", "b", None, np.str_("a")]),
}


def cells(frame, column: Column) -> list[tuple[int, int]]:
    """Codes and true counts of a table of one column."""
    schema = sp.Schema({"v": column})
    counts = count_cells(open_table(frame, schema), tree_lattice(schema))
    codes, n_rows = counts.distinct()
    return sorted(zip(codes[:, 0].tolist(), n_rows.tolist(), strict=True))


def csv_cells(folder: Path, texts: list[str], column: Column) -> list[tuple[int, int]]:
    path = folder / "t.csv"
    path.write_text("v\n" + "".join(f'"{text}"\n' for text in texts))
    return cells(read_table(str(path), sp.Schema({"v": column})), column)


def object_cells(values: list, column: Column) -> list[tuple[int, int]]:
    return cells(pd.DataFrame({"v": pd.Series(values, dtype=object)}), column)


IN_MEMORY = {
    "pandas": lambda texts: pd.DataFrame({"v": pd.Series(texts, dtype="str")}),
    "pandas objects": lambda texts: pd.DataFrame({"v": pd.Series(texts, dtype=object)}),
    "pandas categories": lambda texts: pd.DataFrame({"v": pd.Categorical(texts)}),
    "polars": lambda texts: pl.DataFrame({"v": pl.Series(texts, dtype=pl.String)}),
    "polars categories": lambda texts: pl.DataFrame({"v": pl.Series(texts, dtype=pl.Categorical)}),
    "pyarrow": lambda texts: pa.table({"v": pa.array(texts, pa.string())}),
    "pyarrow views": lambda texts: pa.table({"v": pa.array(texts, pa.string_view())}),
    "pyarrow dictionary": lambda texts: pa.table({"v": pa.array(texts, pa.large_string()).dictionary_encode()}),
}
# Strings that are themselves the values are no spelling of anything.
SPELLINGS = {name: case for name, case in TEXTS.items() if not case[0].is_text}


def added_up(parts: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    total: dict[int, int] = {}
    for code, count in (pair for part in parts for pair in part):
        total[code] = total.get(code, 0) + count
    return sorted(total.items())


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_csv_rows_are_read_one_by_one(name, data, tmp_path_factory):
    """Any rows of a CSV together have the cells that they have alone."""
    folder = tmp_path_factory.mktemp("rows")
    column, spellings = TEXTS[name]
    rows = data.draw(st.lists(st.sampled_from(spellings), min_size=1, max_size=8))
    assert csv_cells(folder, rows, column) == added_up([csv_cells(folder, [row], column) for row in rows])


@pytest.mark.parametrize("name", OBJECTS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_objects_are_read_one_by_one(name, data):
    """Any Python objects in one column have the cells that they have alone."""
    column, values = OBJECTS[name]
    rows = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=8))
    assert object_cells(rows, column) == added_up([object_cells([row], column) for row in rows])


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("hold", IN_MEMORY.values(), ids=IN_MEMORY)
@settings(max_examples=10, derandomize=True, deadline=None)
@given(data=st.data())
def test_strings_in_memory_are_read_one_by_one(name, hold, data, tmp_path_factory):
    """Any strings in a frame have the cells that they have alone, which are those of the same strings in a CSV."""
    column, spellings = SPELLINGS[name]
    rows = data.draw(st.lists(st.sampled_from(spellings), min_size=1, max_size=8))
    found = cells(hold(rows), column)
    assert found == added_up([cells(hold([row]), column) for row in rows])
    assert found == csv_cells(tmp_path_factory.mktemp("rows"), rows, column)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_strings_among_objects_are_read_one_by_one(data):
    """A column of objects may hold numbers, strings and decimals side by side; none changes how another is read."""
    column = sp.Integer(0, LARGE, bits=32, nullable=True)
    values = [2**59 - 1, str(2**59 - 1), "5.0", 5.0, Decimal("7"), "", None, "NA", np.str_("9"), "1e3"]
    rows = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=8))
    assert object_cells(rows, column) == added_up([object_cells([row], column) for row in rows])
    assert object_cells([2**59 - 1], column) == object_cells([str(2**59 - 1)], column)


def test_categories_of_objects_are_read_one_by_one():
    """A pandas category of objects has no type of its own that one of them could choose for all."""
    column = sp.Integer(0, LARGE, bits=32)
    values = pd.Series([2**59 - 1, 2**59, 5.0, Decimal(7), "9"], dtype=object)
    together = cells(pd.DataFrame({"v": pd.Categorical(values, categories=values)}), column)
    assert together == added_up([object_cells([value], column) for value in values])
    assert len(together) == 3  # two large ones and, in one cell, three small ones


def test_one_spelling_moves_nobody(tmp_path):
    """The case that a fallback of type gets wrong: a thousand large integers and one "5.0"."""
    column = sp.Integer(0, LARGE, bits=20)
    plain = csv_cells(tmp_path, [str(2**59 - 1)] * 1000 + ["5"], column)
    spelt = csv_cells(tmp_path, [str(2**59 - 1)] * 1000 + ["5.0"], column)
    assert plain == spelt
    assert {count for _, count in plain} == {1000, 1}


def test_absurd_numbers_are_clamped_at_once(tmp_path):
    """A number of a billion digits is beyond all bounds, and is never written out to find that."""
    column = sp.Integer(0, 9)
    assert csv_cells(tmp_path, ["1e999999999"], column) == csv_cells(tmp_path, ["9"], column)
    assert object_cells([Decimal("-1e999999999")], column) == object_cells([0], column)


def test_cells_that_hold_arrays_are_refused():
    """A value that is no value is an error, not a missing one; a signalling NaN is missing."""
    column = sp.Real(0, 1, nullable=True)
    with pytest.raises(sp.SpinneyError, match="column 'v'"):
        object_cells([np.array([0.5, 0.5])], column)
    assert object_cells([Decimal("sNaN")], column) == object_cells([None], column)


def test_different_values_have_different_cells(tmp_path):
    """The comparison would notice: neighbouring large integers are told apart on a fine lattice."""
    column = sp.Category([2**53, 2**53 + 1, 7])
    assert len(csv_cells(tmp_path, [str(2**53), str(2**53 + 1), "7.0"], column)) == 3
    assert len(object_cells([Decimal("0.1"), Decimal("0.900000")], sp.Real(0, 1, bits=20))) == 2


# ------------------------------------------------------------------------------------------------ whole lines

V, W = sp.Integer(0, 9, nullable=True), sp.Real(0, 9, nullable=True)
LINES_SCHEMA = sp.Schema({"id": sp.Identifier(), "v": V, "w": W})
PIECES = ['"', '""', ",", ",", '","', "5", "7", " ", "\\", '\\"', "\r", "\t", "'", "NA"]
HEADER = "id,v,w\n"
raw_lines = st.tuples(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=10).map("".join),
        st.tuples(st.sampled_from(["a", '"b"', '"c', 'd"', '"e,"', '"f""', 'g"h', ' "i"']), st.sampled_from("57")).map(
            lambda parts: f"{parts[0]},{parts[1]},{parts[1]}"
        ),
    ),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
).map("".join)


def _file(folder: Path, text: str) -> Path:
    (folder / "t.csv").write_bytes((HEADER + text).encode())
    return folder / "t.csv"


def _packed(folder: Path, text: str) -> Path:
    (folder / "t.csv.gz").write_bytes(gzip.compress((HEADER + text).encode()))
    return folder / "t.csv.gz"


def _pipe(folder: Path, text: str) -> object:
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO((HEADER + text).encode()))
    try:
        return given_table("-")
    finally:
        sys.stdin = stdin


def _wide(folder: Path, text: str) -> sp.CSV:
    (folder / "t.csv").write_bytes((HEADER + text).encode("utf-16"))
    return sp.CSV(folder / "t.csv")


def _nameless(folder: Path, text: str) -> sp.CSV:
    (folder / "t.csv").write_bytes(text.encode("latin-1"))
    return sp.CSV(folder / "t.csv", encoding="latin-1", header=False, names=["id", "v", "w"])


def _semicolons(folder: Path, text: str) -> sp.CSV:
    (folder / "t.csv").write_bytes((HEADER + text).replace(",", ";").encode())
    return sp.CSV(folder / "t.csv", delimiter=";", decimal=",")


SOURCES: dict[str, Callable[[Path, str], object]] = {
    "file": _file,
    "compressed": _packed,
    "pipe": _pipe,
    "utf-16": _wide,
    "latin-1 without a header": _nameless,
    "semicolons": _semicolons,
}


def line_cells(
    source: Callable[[Path, str], object], folder: Path, text: str, block: int | None = None
) -> list[tuple[int, int]] | None:
    """Codes and true counts of the rows of some lines of a CSV, or None where they are refused."""
    try:
        opened = open_source(source(folder, text), LINES_SCHEMA, batch_bytes=block)
        n_rows = opened.n_rows
        counts = opened.count_cells(tree_lattice(sp.Schema({"v": V, "w": W})))
    except InputError as err:
        # Without a header, a file without lines has not even names.
        return [] if "the table is empty" in str(err) else None
    codes, n_each = counts.distinct()
    assert n_rows == n_each.sum()
    return sorted(zip(map(tuple, codes.tolist()), n_each.tolist(), strict=True))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("block", [48, 1 << 23])
@settings(max_examples=40, derandomize=True, deadline=None)
@given(lines=st.lists(raw_lines, min_size=1, max_size=6))
def test_lines_are_read_one_by_one(name, block, lines, tmp_path_factory):
    """Lines of quotes, escapes, delimiters and line ends are refused, or are the rows that each of them is alone."""
    folder, source = tmp_path_factory.mktemp("lines"), SOURCES[name]
    together = line_cells(source, folder, "".join(lines), block)
    alone = [line_cells(source, folder, line, block) for line in lines]
    if any(part is None for part in alone):
        assert together is None
    else:
        assert together == added_up(alone)
        assert all(sum(count for _, count in part) <= 1 for part in alone)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("opened", ['"p5', '"p5""', '"p5 ""x"" ', '" p5\r'])
def test_an_open_quote_swallows_nobody(name, opened, tmp_path):
    """500 rows, of which one opens a quote in a column that nobody reads and another closes it: refused by line."""
    rows = [f"p{row},5,5\n" for row in range(500)]
    rows[5] = f"{opened},5,5\n"
    assert sum(count for _, count in line_cells(SOURCES[name], tmp_path, "".join(rows[:5])) or []) == 5
    for last in ('p499",5,5\n', "p499,5,5\n"):
        rows[499] = last
        source = open_source(SOURCES[name](tmp_path, "".join(rows)), LINES_SCHEMA)
        with pytest.raises(InputError, match=f"line {6 if 'without' in name else 7} of the CSV"):
            assert source.n_rows
