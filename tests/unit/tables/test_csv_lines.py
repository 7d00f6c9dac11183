"""Lines of a CSV: one is one row, or the file is refused by the number of the line, whatever column it is in."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import InputError, ParameterError
from spinney.tables import csv_reader as csv_lines
from spinney.tables.csv import CSV, PLAIN
from spinney.tables.csv_reader import count_csv, csv_blocks, guess_types, read_csv, read_names
from support.command_line import SCHEMA, spinney
from support.in_one_test import in_one_test

# A slow twin of the scan: what a field may be. A quote opens a field or stands inside a plain one.
FIELD = r'(?:"(?:[^"\r\n\0]|"")*"|(?![ \t]*")[^,\r\n\0]*)'
LINE = re.compile(rf"{FIELD}(?:,{FIELD})*\r?")
TEXTS = sp.Schema({"a": sp.Identifier(), "b": sp.Identifier()})

FAULTS = {
    '1,"open\n2,b\n3,"\n': "opens a quote that it does not close",
    '1,"a\nb"\n': "opens a quote that it does not close",
    '"1\n",b\n': "opens a quote that it does not close",
    '1,"a""\n': "opens a quote that it does not close",
    '1,"a"b\n': "text after a closing quote",
    '1,"a" \n': "text after a closing quote",
    '1,"a\\"b"\n': "text after a closing quote",
    '1, "a"\n': "quote after spaces",
    '1,\t"a"\n': "quote after spaces",
    "1,a\rb\n": "carriage return",
    "1,a\r": "carriage return",
    '1,"a\rb"\n': "carriage return",
    "1,a\r\r\n": "carriage return",
    "1,\0a\n": "NUL byte",
    "1\n": "has 1 field, and the header has 2",
    "1,2,3\n": "has 3 fields, and the header has 2",
    " \n": "has 1 field, and the header has 2",
}


def buffer(text: str | bytes) -> pa.Buffer:
    return pa.py_buffer(text.encode() if isinstance(text, str) else text)


@in_one_test("n_before", [0, 3, 5000])
@in_one_test("lines", FAULTS)
@in_one_test("end", ["\n", "\r\n"])
def test_a_bad_line_is_refused_by_its_number(n_before, lines, end):
    """By everything that reads lines: rows, their number, their types. Blank lines count, blocks do not matter."""
    good = f"1,x{end}{end}" * n_before
    data = buffer(f"{end}a,b{end}{good}{lines}1,x{end}")
    message = f"^line {3 + 2 * n_before} of the CSV .*{FAULTS[lines]}"
    for read in (
        lambda: read_csv(data, TEXTS, block_bytes=1 << 10),
        lambda: count_csv(data, ["a", "b"], PLAIN, block_bytes=1 << 10),
        lambda: guess_types(data, block_bytes=1 << 10),
    ):
        with pytest.raises(InputError, match=message) as caught:
            read()
        assert caught.value.__context__ is None


@in_one_test("lines", [lines for lines in FAULTS if "header has" not in FAULTS[lines]])
def test_a_bad_header_is_refused_too(lines):
    with pytest.raises(InputError, match=f"line 1 of the CSV .*{FAULTS[lines]}"):
        read_names(buffer(lines + "1,2\n"), PLAIN)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(line=st.text(st.sampled_from('",a 5\\\r\t\0é'), max_size=12).filter(lambda line: line.strip("\r")))
def test_the_scan_agrees_with_a_grammar_and_with_python(line):
    """A line passes if and only if the grammar has it, and then its fields are those of Python's own reader."""
    fields = next(csv.reader([line.removesuffix("\r")])) if LINE.fullmatch(line) else None
    n_fields = len(fields) if fields is not None else line.count(",") + 1
    wide = CSV("", names=[f"c{index}" for index in range(n_fields)], header=False)
    data = buffer(line + "\n")
    if fields is None:
        with pytest.raises(InputError):
            list(csv_blocks(data, wide, n_fields))
        return
    (block,) = csv_blocks(data, wide, n_fields)
    assert block.n_rows == 1
    read = read_csv(data, sp.Schema({name: sp.Identifier() for name in wide.names or ()}), wide)
    assert [value.decode() for value in read.to_pylist()[0].values()] == fields


@pytest.mark.parametrize("size", [20, 33, 64, 1 << 23])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_and_line_ends_change_nothing(size, end):
    """Blocks end anywhere, quotes and two-byte letters included, and the last line need not end."""
    rows = [(f"{row}", f"é,{row}" if row % 3 else "") for row in range(50)]
    text = end.join(["a,b", *(f'{a},"{b}"' if b else f"{a},{end}" for a, b in rows)])
    for data in (text, text + end, "\ufeff" + text):
        table = read_csv(buffer(data), TEXTS, block_bytes=size)
        assert [(a.decode(), b.decode()) for a, b in zip(*table.to_pydict().values(), strict=True)] == rows
        assert count_csv(buffer(data), ["a", "b"], PLAIN, block_bytes=size) == 50


def test_an_endless_line_is_refused():
    """Nothing is held but a block, whatever the file is."""
    for text, message in (
        ("a,b\n1,2\n" + "x" * 9999, "line 3 .* longer than"),
        ("a,b\r1,2\r" * 9999, "line 1 .*return"),
    ):
        with pytest.raises(InputError, match=message):
            read_csv(buffer(text), TEXTS, block_bytes=1 << 12)


def test_lines_that_arrow_would_read_otherwise_are_noticed(monkeypatch):
    """The number of rows is compared with the number of lines, should the reader below ever change its mind."""
    monkeypatch.setattr(csv_lines, "_scan", lambda text, *_: (0, 2, 2, 2))
    with pytest.raises(InputError, match="not read as one row each"):
        read_csv(buffer('a,b\n1,"x\n2,y"\n'), TEXTS)


def test_what_is_no_text_is_told(tmp_path: Path):
    for head, message in ((gzip.compress(b"a,b\n1,2\n"), "compressed by gzip"), (b"PK\x03\x04rest", "Excel workbook")):
        with pytest.raises(InputError, match=message):
            read_names(buffer(head), PLAIN)


def test_the_whole_command_refuses_an_open_quote(tmp_path: Path):
    """In an identifier, in a column that the schema lacks, in files and pipes: exit status 1, nothing written."""
    schema = tmp_path / "schema.toml"
    schema.write_text('[columns.name]\ntype = "identifier"\n' + SCHEMA)
    rows = [f"p{row},0.5,30,red" for row in range(500)]
    rows[4] = '"p4,0.5,30,red'
    rows[499] = 'p499",0.5,30,red'
    text = "\n".join(["name,x,age,colour", *rows]) + "\n"
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    out = tmp_path / "r.spinney"
    for table, stdin in ((tmp_path / "t.csv", None), (tmp_path / "t.csv.gz", None), ("-", text)):
        for call in (["fit", table, "--schema", schema, "--epsilon", "1", "--out", out], ["schema", table]):
            run = spinney(*call, stdin=stdin)
            assert run.status == 1
            assert "line 6 of the CSV opens a quote" in run.err
    assert not out.exists()


def test_the_ledger_is_not_charged_for_a_bad_line(tmp_path: Path):
    (tmp_path / "t.csv").write_text("x\n" + "0.5\n" * 2000 + '"0.5\n')
    ledger = sp.Ledger(limit=5)
    with pytest.raises(InputError, match=r"t\.csv': line 2002 of the CSV opens a quote"):
        sp.KDTreeSynthesizer(1).fit(str(tmp_path / "t.csv"), sp.Schema({"x": sp.Real(0, 1)}), ledger=ledger)
    assert ledger.spent == 0


def test_other_readers_do_not_read_csv(tmp_path: Path):
    """Engines that would parse text their own way are refused, so that the contract has one reader to hold for."""
    (tmp_path / "t.csv").write_text("x\n0.5\n")
    for engine in ("polars", "duckdb", "spark"):
        for frame in (tmp_path / "t.csv", sp.CSV(tmp_path / "t.csv")):
            with pytest.raises(ParameterError, match=r"reads Parquet only|does not work with a CSV"):
                sp.KDTreeSynthesizer(1).fit(frame, sp.Schema({"x": sp.Real(0, 1)}), engine=engine)


def test_a_sensitive_block_shows_nothing():
    (block,) = csv_blocks(buffer("a,b\nSECRET,2\n"), PLAIN, 2)
    assert "SECRET" not in repr(block)
    assert io.BytesIO(block.text).read() == b"SECRET,2\n"
