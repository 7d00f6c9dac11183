"""`sp.CSV` and its options: how a CSV is written is stated, checked when it is stated, and never guessed from rows."""

from __future__ import annotations

import contextlib
import encodings.aliases
import pickle
import random
import shlex
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.columns.base import Spelling
from spinney.errors import InputError, ParameterError
from spinney.tables.csv_reader import guess_types, read_csv
from support.command_line import spinney
from support.in_one_test import in_one_test

GERMAN = (
    "name;größe;alter;geboren;gesehen\n"
    "SECRET;1,75;31;01.02.1990;01.02.2020 10:30\n"
    '"Bob; Jr";"1,8";42,0;31.12.1991;31.12.2021 23:59\n'
    "Zoë;;7;1.3.2001;1.3.2022 00:00\n"
)
COLUMNS = {
    "name": sp.Identifier(),
    "größe": sp.Real(0, 3, nullable=True),
    "alter": sp.Integer(0, 120),
    "geboren": sp.Date("1900-01-01", "2030-01-01"),
    "gesehen": sp.Datetime("1900-01-01", "2030-01-01"),
}
FORMATS = {"geboren": "%d.%m.%Y", "gesehen": "%d.%m.%Y %H:%M"}


@in_one_test(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "not one ASCII character"),
        ({"delimiter": ""}, "not one ASCII character"),
        ({"delimiter": "§"}, "not one ASCII character"),
        ({"delimiter": None}, "not one ASCII character"),
        ({"delimiter": '"'}, "cannot separate fields"),
        ({"delimiter": "\n"}, "cannot separate fields"),
        ({"delimiter": "5"}, "cannot separate fields"),
        ({"decimal": ";"}, "neither '.' nor ','"),
        ({"decimal": ","}, "delimiter and decimal are both ','"),
        ({"delimiter": "."}, "delimiter and decimal are both '.'"),
        ({"encoding": "latin-one"}, "not an encoding that Python knows"),
        ({"encoding": 1252}, "not an encoding that Python knows"),
        ({"encoding": "a\0b"}, "not an encoding that Python knows"),
        ({"encoding": "base64"}, "cannot be read line by line"),
        ({"encoding": "utf-7"}, "cannot be read line by line"),
        ({"encoding": "iso2022_jp"}, "cannot be read line by line"),
        ({"encoding": "unicode_escape"}, "cannot be read line by line"),
        ({"date_format": "DD/MM/YYYY"}, "does not describe whole dates"),
        ({"date_format": "%d/%m"}, "does not describe whole dates"),
        ({"date_format": "%m/%Y"}, "does not describe whole dates"),
        ({"date_format": "%d/%m/%Y %Q"}, "does not describe whole dates"),
        ({"date_format": 5}, "is not a format"),
        ({"date_format": {"d": "%H:%M"}}, "does not describe whole dates"),
        ({"header": "no"}, "neither True nor False"),
        ({"header": False}, "needs the names"),
        ({"names": "a,b"}, "not a list of strings"),
        ({"names": [1, 2]}, "not a list of strings"),
        ({"names": []}, "empty name"),
        ({"names": ["a", " "]}, "empty name"),
        ({"names": ["a", "a"]}, "same name twice"),
    ],
)
def test_wrong_options_are_refused_when_they_are_stated(options, message):
    with pytest.raises(ParameterError, match=f"^CSV: .*{message}"):
        sp.CSV("people.csv", **options)


def test_a_path_is_needed():
    with pytest.raises(ParameterError, match="CSV: path is a list"):
        sp.CSV(["a.csv"])


def test_a_csv_is_a_small_value():
    """Frozen, comparable, picklable, and shown as it was written."""
    csv = sp.CSV(Path("a.csv"), delimiter=";", names=["a", "b"], date_format={"a": "%d/%m/%Y"})
    assert pickle.loads(pickle.dumps(csv)) == csv
    assert csv != sp.CSV(Path("a.csv"))
    assert repr(sp.CSV("a.csv", delimiter="\t", names=["a"])) == "CSV(path='a.csv', delimiter='\\t', names=('a',))"
    with pytest.raises(AttributeError):
        csv.delimiter = ","


@in_one_test("block", [64, 1 << 23])
@in_one_test("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-be", "utf-32"])
def test_a_german_table_is_read_as_it_is_written(tmp_path: Path, encoding, block):
    """Semicolons, decimal commas, days first, any encoding: the values are those of the plain table."""
    (tmp_path / "t.csv").write_bytes(GERMAN.encode(encoding))
    csv = sp.CSV(tmp_path / "t.csv", delimiter=";", decimal=",", encoding=encoding, date_format=FORMATS)
    table = read_csv(str(tmp_path / "t.csv"), sp.Schema(COLUMNS), csv, block_bytes=block)
    assert table["größe"].to_pylist() == [1.75, 1.8, None]
    assert table["alter"].to_pylist() == [31, 42, 7]
    assert table["geboren"].to_pylist() == [date(1990, 2, 1), date(1991, 12, 31), date(2001, 3, 1)]
    assert table["gesehen"].to_pylist() == [
        datetime(2020, 2, 1, 10, 30),
        datetime(2021, 12, 31, 23, 59),
        datetime(2022, 3, 1),
    ]
    assert sp.ForestSynthesizer(1).fit(csv, sp.Schema(COLUMNS)).card_.n_rows == 3


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(encoding):
    data = pa.py_buffer("größe,b\n1,2\n".encode(encoding))
    assert guess_types(data).names == ["größe", "b"]
    with pytest.raises(InputError, match=r"begins with the byte order mark of UTF.*leave the encoding out"):
        guess_types(data, sp.CSV("", encoding="latin-1"))


def test_without_a_header_no_row_says_the_encoding():
    """The first row would decide how all the others are read, so the encoding has to be stated."""
    data = pa.py_buffer("1,2\n".encode("utf-16"))
    with pytest.raises(InputError, match="no header and begins like UTF-16; state its encoding: --encoding utf-16"):
        guess_types(data, sp.CSV("", header=False, names=["a", "b"]))
    assert guess_types(data, sp.CSV("", header=False, names=["a", "b"], encoding="utf-16")).names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,größe\n1,2\n".encode("latin-1"), {}, "line 1 of the CSV is not UTF-8; .*--encoding latin-1"),
        ("x,c\n1,2\n\n3,Zoë\n".encode("latin-1"), {}, "line 4 of the CSV is not UTF-8; .*--encoding latin-1"),
        ("x,c\n1,2\n".encode("utf-16-le"), {}, "line 1 of the CSV holds a NUL byte.*--encoding utf-16-le"),
        ("x,c\n1,2\n\n3,Zoë\n".encode("latin-1"), {"encoding": "utf-8"}, "line 4 of the CSV is not UTF-8"),
        ("x,c\n1,2\n\n3,\x81\n".encode("latin-1"), {"encoding": "cp1252"}, "line 4 .*contradict encoding='cp1252'"),
        (
            "x,c\n1,2\n3,4".encode("utf-16")[:-1],
            {},
            "line 3 .* contradict its byte order mark",
        ),
    ],
)
def test_wrong_encodings_are_told_by_line(text, options, message):
    with pytest.raises(InputError, match=message) as caught:
        guess_types(pa.py_buffer(text), sp.CSV("", **options))
    assert caught.value.__context__ is None


def test_wrong_bytes_are_told_by_column_where_the_schema_reads_it(tmp_path: Path):
    """In an identifier, which nobody reads, they do no harm."""
    (tmp_path / "t.csv").write_bytes("c,d\nAnn,x\nZoë,x\n".encode("latin-1"))
    path = tmp_path / "t.csv"
    with pytest.raises(InputError, match=r"line 3, column 'c': the value is not UTF-8.*--encoding latin-1"):
        sp.ForestSynthesizer(1).fit(path, sp.Schema({"c": sp.Category(["Ann", "Zoë"]), "d": sp.Category(["x"])}))
    schema = sp.Schema({"c": sp.Identifier(), "d": sp.Category(["x", "y"])})
    assert sp.ForestSynthesizer(1).fit(path, schema).card_.n_rows == 2
    schema = sp.Schema({"c": sp.Category(["Ann", "Zoë"]), "d": sp.Category(["x", "y"])})
    assert sp.ForestSynthesizer(1).fit(sp.CSV(path, encoding="latin-1"), schema).card_.n_rows == 2


def known_encodings() -> list[str]:
    """All encodings that Python has and `sp.CSV` takes, those aside that a byte order mark begins."""
    known = []
    for name in sorted(set(encodings.aliases.aliases.values()) - {"utf_16", "utf_32"}):
        with contextlib.suppress(ParameterError):
            known.append(sp.CSV("", encoding=name).encoding)
    return known


def test_no_line_changes_how_the_next_is_decoded():
    """Whatever bytes a line has: in every encoding that is taken, lines decode together as they decode alone."""
    draw, special = random.Random(0), [b"~", b"{", b"}", b"\x1b", b"$", b"B", b"(", b"\x0e", b"\x0f"]
    n_compared = 0
    for encoding in known_encodings():
        end = "\n".encode(encoding)
        for _ in range(100):
            lines = [
                b"".join(draw.choice([*special, draw.randbytes(1)]) for _ in range(len(end) * draw.randrange(4))) + end
                for _ in range(3)
            ]
            try:
                alone = [line.decode(encoding) for line in lines]
            except UnicodeDecodeError:
                continue
            assert b"".join(lines).decode(encoding) == "".join(alone), encoding
            n_compared += 1
    assert n_compared > 1000


def test_a_format_for_no_column_is_a_slip():
    with pytest.raises(ParameterError, match="date_format names 'bron', which is not a column of the table"):
        guess_types(pa.py_buffer(b"born\n01/02/2003\n"), sp.CSV("", date_format={"bron": "%d/%m/%Y"}))


DATES = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
NUMERIC = ["%d/%m/%Y", "%m-%d-%Y", "%d.%m.%Y %H:%M", "%Y%m%d", "%d/%m/%y", "%Y/%m/%d %H:%M:%S"]
WRITTEN = [*NUMERIC, "%d %B %Y", "%I:%M %p, %d %b %Y"]


@pytest.mark.parametrize("date_format", WRITTEN)
@settings(max_examples=30, derandomize=True, deadline=None)
@given(moments=st.lists(DATES, min_size=1, max_size=8), junk=st.sampled_from(["", "x", "1/2/2003", "31/02/2020", " "]))
def test_dates_are_read_as_python_reads_them(date_format, moments, junk):
    """The fast way and the slow way are one: each text by itself, matched from end to end."""
    texts = [moment.strftime(date_format) for moment in moments]
    wanted = [datetime.strptime(text, date_format) for text in texts]
    whole = sp.Datetime("1900-01-01", "2199-01-01", nullable=True)
    assert whole._from_strings(pa.array(texts), Spelling(date_format=date_format)).to_pylist() == wanted
    days = sp.Date("1900-01-01", "2199-01-01", nullable=True)
    read = days._from_strings(pa.array(texts), Spelling(date_format=date_format))
    assert read.to_pylist() == [day.date() for day in wanted]
    for text in (f"{texts[0]} {junk}x", f"{junk}x{texts[0]}", texts[0] + "0" * 9):
        with pytest.raises((InputError, pa.ArrowInvalid)):
            whole._from_strings(pa.array([*texts, text]), Spelling(date_format=date_format))


def test_impossible_days_are_refused_in_a_format():
    for text in ("31/02/2020", "29/02/2021", "00/01/2020", "01/13/2020", "1/13/2020"):
        with pytest.raises((InputError, pa.ArrowInvalid)):
            sp.Date("1900-01-01", "2100-01-01")._from_strings(pa.array([text]), Spelling(date_format="%d/%m/%Y"))


def test_offsets_in_a_format(tmp_path: Path):
    """%z reads zones; a column without a zone refuses them."""
    aware, local = (sp.Datetime("1900-01-01", "2100-01-01", timezone=zone) for zone in ("UTC", None))
    texts, written = pa.array(["31/01/2020 10:00 +0200"]), "%d/%m/%Y %H:%M %z"
    read = aware._from_strings(texts, Spelling(date_format=written))
    assert read.to_pylist() == [datetime(2020, 1, 31, 8, tzinfo=UTC)]
    with pytest.raises(InputError):
        local._from_strings(texts, Spelling(date_format=written))


def test_types_are_guessed_under_the_options():
    csv = sp.CSV("", delimiter=";", decimal=",", date_format=FORMATS)
    kinds = guess_types(pa.py_buffer(GERMAN.encode()), csv)
    assert [str(kind) for kind in kinds.types] == ["string", "double", "double", "date32[day]", "timestamp[us]"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5"], "double"),
        (["2.5", ""], "double"),
        (["1", "x"], "string"),
        (["2020-01-01", "2020-01-01 10:00:00"], "timestamp[us]"),
        (["true", "5"], "string"),
        (["", "7"], "int64"),
        (["2020-01-01T10:00:00Z", "2020-01-01"], "string"),
    ],
)
def test_types_are_guessed_from_all_blocks(values, kind):
    """A column has the type that fits what it is in every block."""
    for first, second in (values, values[::-1]):
        text = "a,b\n" + f"{first},1\n" * 200 + f"{second},1\n" * 200
        assert str(guess_types(pa.py_buffer(text.encode()), block_bytes=1 << 8).field("a").type) == kind


def test_the_command_takes_the_options(tmp_path: Path):
    """The template's last line says them again, and following it works; so do pipes."""
    (tmp_path / "t.csv").write_bytes(GERMAN.encode("latin-1"))
    said = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1"]
    said += [word for name, written in FORMATS.items() for word in ("--date-format", f"{name}={written}")]
    out, schema = tmp_path / "r.spinney", tmp_path / "s.toml"
    run = spinney("schema", tmp_path / "t.csv", *said, "--out", schema)
    assert run.status == 0, run.err
    again = shlex.split(run.out.split("then run: ")[1])[1:-1]
    sp.Schema(COLUMNS).to_file(schema, overwrite=True)
    assert spinney(*again, "--epsilon", "1", "--out", out, "--json").json["n_rows"] == 3
    common = ["--schema", schema, "--epsilon", "1", "--out", out, "--force", "--json", *said]
    assert spinney("fit", "-", *common, stdin=GERMAN.encode("latin-1")).json["n_rows"] == 3
    assert 'type = "date"' in spinney("schema", "-", *said, stdin=GERMAN.encode("latin-1")).out
    run = spinney("fit", "-", *common, "--delimiter", "|", stdin=GERMAN.encode("latin-1"))
    assert "state the delimiter: --delimiter ';'" in run.err


def test_a_tab_can_be_said(tmp_path: Path):
    (tmp_path / "t.csv").write_text("x\ty\n1\t2\n")
    assert "--delimiter tab" in spinney("schema", tmp_path / "t.csv").err
    for tab in ("tab", "\\t", "\t"):
        assert "[columns.y]" in spinney("schema", tmp_path / "t.csv", "--delimiter", tab).out


OPTIONS = [("--delimiter", ";"), ("--no-header", "--names", "a"), ("--date-format", "%d.%m.%Y")]
WRONG = [("--delimiter", ";;"), ("--encoding", "x"), ("--date-format", "="), ("--decimal", ",")]


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_csv_are_for_csv(tmp_path: Path, option):
    pa.parquet.write_table(pa.table({"x": [1.0]}), tmp_path / "t.parquet")
    run = spinney("schema", tmp_path / "t.parquet", *option)
    assert run.status == 2
    assert f"{option[0]}" in run.err
    assert "only CSV files take this" in run.err
    with pytest.raises(ParameterError, match="matches Parquet files; pass the path itself"):
        sp.KDTreeSynthesizer(1).fit(sp.CSV(tmp_path / "t.parquet"), sp.Schema({"x": sp.Real(0, 1)}))


@pytest.mark.parametrize("option", WRONG)
def test_wrong_options_are_wrong_calls(tmp_path: Path, option):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    assert spinney("schema", tmp_path / "t.csv", *option).status == 2


def test_folders_and_patterns_share_the_options(tmp_path: Path):
    for part in range(3):
        (tmp_path / f"{part}.csv").write_text("x;y\n0,5;1\n0,25;2\n")
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Integer(0, 9)})
    for path in (tmp_path, str(tmp_path / "*.csv"), str(tmp_path / "[01].csv")):
        for engine in (None, "memory"):
            model = sp.KDTreeSynthesizer(1).fit(sp.CSV(path, delimiter=";", decimal=","), schema, engine=engine)
            assert model.card_.n_rows == (4 if "[01]" in str(path) else 6)
