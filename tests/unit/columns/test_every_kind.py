"""Every kind of column is stated and read: registered, written as plain data, and read from whatever holds its values.

The examples are in `support.column_examples`; cells, bounds, conditions and pictures in `test_every_kind_drawn.py`.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import COLUMN_TYPES, KINDS, Bounded, Column, Listed
from spinney.columns.base import PLAIN
from spinney.columns.reading import convert_objects, group_of
from spinney.errors import InputError, SchemaError
from spinney.schema.template import schema_template
from spinney.tables.csv_reader import read_csv
from spinney.tables.frames import fits, misfit, open_table
from support.column_examples import EXAMPLES, arrow_of, check_physical, every_column, every_kind, every_read_column
from support.in_one_test import in_one_test

QUESTIONS = sorted(Column.__abstractmethods__)


# ------------------------------------------------------------------------------------------------------- registry


def test_examples_of_all_kinds():
    """Every kind in the registry has examples here, and is at the public door by its own name."""
    assert set(EXAMPLES) == set(KINDS)
    assert list(COLUMN_TYPES.values()) == list(KINDS)
    for kind in KINDS:
        assert getattr(sp, kind.__name__) is kind
        assert all(type(example.column) is kind for example in EXAMPLES[kind])


def test_there_are_questions():
    """The questions that have no common answer are abstract; there are many."""
    assert len(QUESTIONS) > 15
    assert {"_read", "_expression", "_from_strings", "_to_arrow", "_template", "_whole_range"} <= set(QUESTIONS)


@in_one_test("kind", KINDS)
def test_what_users_meet_is_small(kind):
    """A column shows what is stated and what follows for a reader; how it is read, counted and written is internal."""
    assert len([name for name in dir(kind) if not name.startswith("_")]) <= 20


@in_one_test("question", QUESTIONS)
def test_a_forgotten_answer_is_noticed(question):
    """A kind that lacks one answer cannot be made; with it, it can."""
    answers = {name: lambda *_: None for name in QUESTIONS if name != question}
    forgetful = type("Forgetful", (Column,), answers)
    with pytest.raises(TypeError, match=question):
        forgetful()
    complete = type("Complete", (Column,), answers | {question: lambda *_: None})
    assert complete().nullable is False


@every_kind
def test_every_kind_says_what_it_is(kind):
    """Class-wide answers are there and make sense."""
    assert not inspect.isabstract(kind)
    assert COLUMN_TYPES[kind.type_name] is kind
    assert kind._axis_kind in ("real", "integer", "category")
    assert kind._spark_cast
    assert kind.__doc__
    if issubclass(kind, Bounded):
        smallest, largest = kind._rungs
        assert smallest < largest
        assert kind._compared_as
        assert kind._reach
    else:
        assert kind._compared_as is None


def test_no_two_kinds_claim_a_type():
    """What a type of a table can only mean is said by one kind."""
    claims = [group for kind in KINDS for group in kind._describes]
    assert len(claims) == len(set(claims))


def test_importing_kinds_is_light():
    """Stating columns loads none of the libraries that reading needs."""
    code = (
        "import sys, json, spinney.columns\n"
        "print(json.dumps([n for n in ('numpy', 'pyarrow', 'narwhals', 'pandas', 'numba') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


# -------------------------------------------------------------------------------------------------------- stating


@every_column
def test_plain_data_and_back(example):
    """A column survives TOML, and its repr is the call that makes it."""
    schema = sp.Schema({"x": example.column})
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    assert eval(repr(example.column), vars(sp) | {kind.__name__: kind for kind in KINDS}) == example.column


def types_of(column: Column) -> list[pa.DataType]:
    """The Arrow type of the column, alone and in a dictionary where a template may meet it."""
    return [column._arrow_type, pa.dictionary(pa.int32(), column._arrow_type)]


@every_kind
def test_templates_of_its_own_type(kind):
    """A template for the type that values have says the kind, and is valid once bounds are paid for or listed."""
    told = set()
    for example in EXAMPLES[kind]:
        if not example.column.is_read:
            assert kind._template(pa.int64(), lambda *blanks: blanks) is None
            continue
        for arrow_type in types_of(example.column):
            text = schema_template(pa.schema([("x", arrow_type)]), private_bounds=True)
            text = text.replace('# values = ["", ""]', 'values = ["", "a"]')
            told.add(sp.Schema.from_toml(text)["x"].type_name)
            blank = schema_template(pa.schema([("x", arrow_type)]))
            assert "[columns.x]" in blank
    if kind is sp.Category:  # numbers may be codes, which the template of integers says
        assert told == {"category", "integer"}
    else:
        assert told == ({kind.type_name} if kind.is_read else set())


def test_templates_of_other_types():
    """A type that no kind has lists all kinds."""
    text = schema_template(pa.schema([("x", pa.duration("s"))]))
    assert all(name in text for name in COLUMN_TYPES)


# -------------------------------------------------------------------------------------------------------- reading


@every_read_column
def test_objects(example):
    """Python objects, and other objects that mean the same, become the physical numbers; what is none is refused."""
    column = replace(example.column, nullable=True)
    array = convert_objects([*example.values, None, float("nan")], column)
    assert array.type == column._arrow_type
    check_physical(column._read(array), example.physical, n_nulls=2)
    for other in example.others:
        check_physical(column._read(convert_objects([other], column)), example.physical[:1])
    for wrong in example.wrong:
        if not isinstance(wrong, str):
            with pytest.raises(InputError):
                column._read(convert_objects([wrong], column))


@every_read_column
def test_strings(example):
    """Strings become the same numbers; spellings of "missing" are null; what cannot be read is refused."""
    column = replace(example.column, nullable=True)
    spelt = [*example.texts, "NA", None]
    check_physical(column._read(column._from_strings(pa.array(spelt, pa.string()))), example.physical, n_nulls=2)
    assert column._from_strings(pa.array([], pa.string())).type == column._arrow_type
    assert column._from_strings(pa.chunked_array([pa.array(example.texts)])).type == column._arrow_type
    for wrong in example.wrong:
        if isinstance(wrong, str):
            with pytest.raises((InputError, pa.ArrowInvalid)):
                column._read(column._from_strings(pa.array([wrong])))
            cause = column._cause(wrong, PLAIN)
            assert len(cause) > 10
            assert wrong not in cause.split()
    assert "write" in column._spelling_remedy


@every_read_column
def test_csv(example, tmp_path):
    """A CSV file gives the same numbers."""
    schema = sp.Schema({"x": example.column, "row": sp.Integer(0, 9)})
    path = tmp_path / "table.csv"
    path.write_text("x,row\n" + "".join(f'"{text}",{row}\n' for row, text in enumerate(example.texts)))
    table = open_table(read_csv(str(path), schema), schema)
    check_physical(table.physical("x"), example.physical)
    for wrong in example.wrong:
        if isinstance(wrong, str):
            path.write_text(f'x,row\n"{wrong}",1\n')
            with pytest.raises(InputError, match="line 2, column 'x'"):
                sp.KDTreeSynthesizer("1").fit(sp.CSV(path), schema)


@every_read_column
@in_one_test("library", ["pandas", "pandas objects", "polars", "pyarrow", "strings"])
def test_frames(example, library):
    """Every library's table gives the same numbers, with nulls among them."""
    column = replace(example.column, nullable=True)
    table = pa.table({"x": arrow_of(example, [*example.values, None])})
    frame: Any = table
    if library == "pandas":
        frame = table.to_pandas()
    elif library == "pandas objects":
        frame = pd.DataFrame({"x": pd.Series([*example.values, None], dtype=object)})
    elif library == "polars":
        frame = pl.from_arrow(table)
    elif library == "strings":
        frame = pl.DataFrame({"x": [*example.texts, None]})
    opened = open_table(frame, sp.Schema({"x": column}))
    check_physical(opened.physical("x"), example.physical, n_nulls=1)


@every_read_column
def test_types_that_fit(example):
    """The column's own type fits; of all other types, those that do not fit are refused with something to do."""
    column = example.column
    own = nw.from_native(pa.table({"x": arrow_of(example, example.values)}), eager_only=True)["x"].dtype
    assert fits(own, column)
    moment = nw.Datetime("us")
    dtypes = [
        nw.Float32(),
        nw.Int8(),
        nw.UInt64(),
        nw.Boolean(),
        nw.Date(),
        moment,
        nw.Datetime("us", "UTC"),
        nw.Time(),
    ]
    refused = [dtype for dtype in dtypes if not fits(dtype, column)]
    assert refused
    for dtype in refused:
        assert group_of(dtype) not in column._accepts
        message = str(misfit("x", dtype, column))
        assert message.startswith("column 'x' has type ")
        assert any(word in message for word in ("describe it as", "convert", "name the zone", "leave timezone out"))


@every_read_column
@in_one_test("library", ["polars", "pandas"])
def test_expressions(example, library):
    """An engine's expressions give the same numbers as Arrow, mark what is missing, and what is wrong."""
    column = replace(example.column, nullable=True)
    held = example.values if isinstance(column, Listed) else example.physical
    frame: Any = pl.DataFrame({"x": [*held, None]})
    if library == "pandas":
        frame = frame.to_pandas(use_pyarrow_extension_array=True)
    wrapped = nw.from_native(frame, eager_only=True)
    reading = column._expression(nw.col("x"), wrapped["x"].dtype)
    found = wrapped.select(n=reading.number, m=reading.is_missing, w=reading.is_wrong)
    assert found["n"].to_list()[:-1] == example.physical
    assert found["m"].to_list() == [False] * len(held) + [True]
    assert not any(found["w"].to_list())
    assert column._complaint.startswith("some value ")


# ----------------------------------------------------------------------------------------------------- identifiers


def test_identifiers_are_asked_nothing():
    """What is never read refuses every question about values, in words."""
    for name in QUESTIONS:
        if name in ("_template", "_fits_array", "_to_positions", "_to_arrow"):
            continue
        for column in (sp.Identifier(), sp.Ignore()):
            with pytest.raises(SchemaError, match=f"a column of type {column.type_name} is never read"):
                getattr(column, name)()
    for name in ("_to_positions", "_to_arrow"):
        with pytest.raises(SchemaError, match="a column of type ignore is never read"):
            getattr(sp.Ignore(), name)(np.zeros(2))
    assert sp.Identifier(prefix="C-")._to_arrow(np.zeros(2)).to_pylist() == ["C-000001", "C-000002"]
