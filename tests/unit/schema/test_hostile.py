"""Schema files that nobody should write: a SchemaError that says what and where, soon, and never a raw error."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import SchemaError, SpinneyError
from spinney.schema import plain
from spinney.schema.plain import LARGEST_FILE
from support.command_line import SCHEMA, people, spinney
from support.in_one_test import in_one_test

X = '[columns.x]\ntype = "real"\nlow = 0\nhigh = 1\n'
WHOLE = '[columns.x]\ntype = "integer"\nlow = 0\n'

TEXTS = {
    "4,000 digits": (WHOLE + "high = " + "9" * 4000, r"columns\.x\.high holds <a number of \d+ bits>"),
    "5,000 digits": (WHOLE + "high = " + "9" * 5000, "the number in line 4 of the schema has thousands of digits"),
    "digits with underscores": (WHOLE + "high = " + "1_" * 50_000 + "1", "line 4"),
    "hexadecimal digits": (WHOLE + "high = 0x" + "f" * 9000, r"columns\.x\.high holds <a number"),
    "bits without end": (X + "bits = 0x" + "f" * 9000, r"columns\.x\.bits holds <a number"),
    "an integer beyond floats": ('[columns.x]\ntype = "real"\nlow = 0\nhigh = 0x' + "f" * 256, "too large"),
    "100,000 brackets": ("x = " + "[" * 100_000, "nested too deeply"),
    "100,000 closed brackets": ("x = " + "[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "100,000 tables": ("x = " + "{a = " * 100_000, "nested too deeply"),
    "nested as far as Python goes": (X + "values = " + "[" * 300 + "]" * 300, "nested too deeply"),
    "a key of many parts": ("columns" + ".a" * 100_000 + " = 1", "line 1 of the schema has a key of more than 64"),
    "a header of many parts": (X + "[columns" + ' . "a"' * 100_000 + "]", "line 5 of the schema has a key"),
    "a zero byte": (X + "\0", "line 5"),
    "a day that is none": ('[columns.x]\ntype = "date"\nlow = 0000-01-01\nhigh = 2020-01-01', "line 3"),
    "a time of day": ('[columns.x]\ntype = "real"\nlow = 07:00:00\nhigh = 1', "low="),
    "a float without end": ('[columns.x]\ntype = "real"\nlow = 0\nhigh = 1e999', "not finite"),
    "an endless name": (f"[columns.{'a' * 10**6}]\ntype = 'real'", "is not a name of at most"),
    "an endless text": (f'[columns.x]\ntype = "identifier"\nprefix = "{"a" * (2**20 + 1)}"', "1,048,577 characters"),
    "an endless type": (f'[columns.x]\ntype = "{"a" * 10**5}"', "is not one of"),
    "a zone out of the way": (
        '[columns.x]\ntype = "datetime"\nlow = 2020-01-01\nhigh = 2020-01-02\ntimezone = "../../etc/passwd"',
        "timezone",
    ),
}


@in_one_test(("text", "message"), TEXTS.values(), ids=TEXTS)
def test_texts_that_are_no_schema(tmp_path, text, message):
    """From text, from a file, and on the command line with bounds to be read: the same error, of bearable length."""
    start = time.perf_counter()
    with pytest.raises(SchemaError, match=message) as caught:
        sp.Schema.from_toml(text)
    assert len(str(caught.value)) < 6000
    schema, table = tmp_path / "schema.toml", tmp_path / "people.csv"
    schema.write_text(text, encoding="utf-8")
    table.write_text(people(), encoding="utf-8")
    with pytest.raises(SchemaError, match=message):
        sp.Schema.from_file(schema)
    for more in ([], ["--bounds-from-data-not-private"]):
        run = spinney("fit", table, "--schema", schema, "--epsilon", 1, "--out", tmp_path / "r", *more)
        assert run.status == 2
        assert "unexpected" not in run.err
    assert time.perf_counter() - start < 5


def test_a_mark_of_byte_order_is_no_harm(tmp_path):
    """Editors put one before the text; the schema is the same."""
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xef\xbb\xbf" + X.encode())
    assert sp.Schema.from_file(path) == sp.Schema.from_toml(X) == sp.Schema.from_toml("\ufeff" + X)


def test_files_that_are_no_text(tmp_path):
    """UTF-16, bytes and files larger than any schema are named."""
    path = tmp_path / "schema.toml"
    path.write_bytes(X.encode("utf-16"))
    with pytest.raises(SchemaError, match="not a UTF-8 text file"):
        sp.Schema.from_file(path)
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE * 100)
    with pytest.raises(SchemaError, match=r"larger than 16 MiB"):
        sp.Schema.from_file(path)


@pytest.mark.parametrize("huge", [10**4000, 10**5000, -(10**5000)], ids=["4,000", "5,000", "negative"])
def test_numbers_of_thousands_of_digits_in_python(huge):
    """The constructors complain of them as of any other number; the message does not repeat the digits."""
    for make in (
        lambda: sp.Integer(0, huge) if huge > 0 else sp.Integer(huge, 0),
        lambda: sp.Real(0, huge) if huge > 0 else sp.Real(huge, 0),
        lambda: sp.Real(0, 1, bits=huge),
        lambda: sp.Integer(0, 9, multiple_of=huge),
        lambda: sp.Identifier(prefix="a", digits=huge),
        lambda: sp.Category([huge]),
        lambda: sp.Schema.from_dict({"columns": {"x": {"type": "real", "low": 0, "high": huge}}}),
    ):
        with pytest.raises(SchemaError) as caught:
            make()
        assert len(str(caught.value)) < 400


HALF = "\ud800"


@in_one_test(
    "make",
    [
        lambda: sp.Category(["a", HALF]),
        lambda: sp.Category(["a", "b"], other=HALF),
        lambda: sp.Category("private", other=HALF),
        lambda: sp.Category(["a", "b"], hierarchy={"a": HALF, "b": HALF}),
        lambda: sp.Identifier(prefix=HALF),
        lambda: sp.Schema({HALF: sp.Boolean()}),
        lambda: sp.AtMost("a", HALF),
        lambda: sp.EmptyWhen("a", "b", [HALF]),
        lambda: sp.Implies({"a": HALF}, {"b": 1}),
        lambda: sp.Implies({"a": 1}, {"b": ["x", (HALF, None)]}),
        lambda: sp.Sum("a", ["b", HALF]),
        lambda: sp.Derived("a", "b", by={"x": HALF}),
        lambda: sp.Derived("a", ["b", "c"], by={("x", HALF): "y"}),
        lambda: sp.Derived("a", "b", by={"x": "y"}, default=HALF),
        lambda: sp.Derived("a", "b", by={"x": "y"}, null=HALF),
        lambda: sp.Derived("a", "b", cuts=[1], labels=["x", HALF]),
        lambda: sp.Place("a", HALF),
    ],
)
def test_half_characters_are_refused_where_they_are_stated(make):
    """And not when a release is saved, which was paid for."""
    with pytest.raises(SchemaError, match="holds half a character"):
        make()


def test_half_characters_are_refused():
    """JSON can say half a character, which no file could be written with."""
    for described in ({"\ud800": {"type": "boolean"}}, {"x": {"type": "category", "values": ["a", "\ud800"]}}):
        with pytest.raises(SchemaError, match="half a character"):
            sp.Schema.from_dict({"columns": described})


def test_the_texts_of_a_list_are_looked_at_together(monkeypatch):
    """Not one by one, which took seconds for hundreds of thousands of categories; each of them counts all the same."""
    looked = []
    monkeypatch.setattr(plain, "check_characters", lambda texts: looked.append(len(texts)))
    values = [f"v{number}" for number in range(10_000)]
    plain.check_plain({"columns": {"c": {"type": "category", "values": values}}})
    assert len(looked) < 20
    assert sum(looked) >= 10_000
    monkeypatch.undo()
    with pytest.raises(SchemaError, match="half a character"):
        plain.check_plain({"values": [*values, "\ud800"]})
    with pytest.raises(SchemaError, match="a string of 1,048,577 characters"):
        plain.check_plain({"values": [*values, "x" * (2**20 + 1)]})


def test_long_lists_are_read():
    """A list of many categories is no attack."""
    values = ", ".join(f'"v{i}.{i}"' for i in range(50_000))
    start = time.perf_counter()
    schema = sp.Schema.from_toml(f'[columns.x]\ntype = "category"\nvalues = [{values}]')
    assert len(schema["x"].values) == 50_000
    assert time.perf_counter() - start < 5


def test_bytes_changed_at_random(tmp_path: Path):
    """Whatever is changed in a schema file, it is read, or the error is ours."""
    rng = random.Random(5)
    raw = SCHEMA.encode()
    pieces = [*b'[ ] = " { 0x nan 1e400 1979-05-27 . \0 \xff'.split(), b"9" * 50, b"\n"]
    path = tmp_path / "schema.toml"
    n_read = 0
    for _ in range(3000):
        content = bytearray(raw)
        for _ in range(rng.choice([1, 2, 4])):
            at, piece = rng.randrange(len(content)), rng.choice([*pieces, bytes([rng.randrange(256)])])
            content[at : at + rng.choice([0, 1, len(piece)])] = piece
        path.write_bytes(content)
        try:
            sp.Schema.from_file(path)
            n_read += 1
        except SpinneyError:
            continue
    assert n_read > 20
