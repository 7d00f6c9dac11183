"""Schema: an ordered mapping, and the same thing as a TOML file."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import SchemaError
from support.in_one_test import in_one_test

ALL_TYPES = sp.Schema(
    {
        "real": sp.Real(-1.5, 2, bits=9),
        "real, private": sp.Real(bounds="private"),
        "real from data": sp.Real(bounds="from-data-not-private"),
        "integer": sp.Integer(-(2**61), 2**61),
        "integer.dotted": sp.Integer(0, 5, nullable=True),
        "date": sp.Date("0001-01-01", "9999-12-31"),
        "moment": sp.Datetime("2020-01-01T00:00:00.000001", "2021-01-01"),
        "zoned": sp.Datetime("2020-07-01", "2021-01-01", timezone="America/New_York", nullable=True),
        "zoned, private": sp.Datetime(bounds="private", timezone="UTC"),
        "truth": sp.Boolean(nullable=True),
        'text "quoted"\n': sp.Category(["ä", "b\\c", 'd"e', ""], nullable=True),
        "numbers": sp.Category([3, 1, 2]),
        "fifties": sp.Integer(-100, 1000, multiple_of=50),
        "cents": sp.Real(bounds="private", multiple_of=0.01, nullable=True),
        "customer": sp.Identifier(),
        "order": sp.Identifier(prefix="C-", digits=9),
    }
)


def test_toml_round_trip_of_every_type():
    """Every type, option and awkward name survives being written and read."""
    assert sp.Schema.from_toml(ALL_TYPES.to_toml()) == ALL_TYPES


def test_toml_is_plain():
    """The file says what a person would write: dates as dates, defaults left out."""
    described = tomllib.loads(sp.Schema({"born": sp.Date("2020-01-01", "2020-12-31"), "ok": sp.Boolean()}).to_toml())
    assert described["columns"]["born"].keys() == {"type", "low", "high"}
    assert described["columns"]["born"]["low"].isoformat() == "2020-01-01"
    assert described["columns"]["ok"] == {"type": "boolean"}


def test_zoned_bounds_are_the_same_moments_after_a_round_trip():
    """A bound in local summer time keeps its moment, not only its digits."""
    zoned = sp.Schema.from_toml(ALL_TYPES.to_toml())["zoned"]
    assert zoned.low.utcoffset() == ALL_TYPES["zoned"].low.utcoffset()
    assert zoned.physical(zoned.low) == ALL_TYPES["zoned"].physical(ALL_TYPES["zoned"].low)


def test_dict_round_trip_through_json():
    """Dates may be text: the schema inside a card is JSON."""
    described = json.loads(json.dumps(ALL_TYPES.to_dict(), default=lambda value: value.isoformat()))
    assert sp.Schema.from_dict(described) == ALL_TYPES


def test_file_round_trip(tmp_path):
    """A schema file is UTF-8 text that reads back."""
    path = tmp_path / "schema.toml"
    ALL_TYPES.to_file(path)
    assert sp.Schema.from_file(path) == ALL_TYPES


@given(st.text(min_size=1).filter(lambda name: name.isprintable()))
def test_any_printable_name_survives(name):
    """Column names come from other people's tables; TOML must not choke on them."""
    schema = sp.Schema({name: sp.Boolean()})
    assert sp.Schema.from_toml(schema.to_toml()) == schema


@in_one_test(
    ("entry", "message"),
    [
        ('type = "number"', "column 'age': type 'number' is not one of boolean, category"),
        ("type = ['real']", "column 'age': type"),
        ('type = "real"\nlow = 0\nhigh = 1\nmax = 3', "column 'age': 'max' is not an option"),
        ('type = "boolean"\ntype_name = "x"', "column 'age': 'type_name' is not an option"),
        ('type = "boolean"\nlow = 0', "column 'age': 'low' is not an option of type 'boolean'"),
        ("low = 0", "column 'age': the entry needs a type"),
        ('type = "real"\nlow = 0', "column 'age': Real: high is missing"),
        ('type = "real"\nlow = 0\nhigh = inf', "column 'age': Real: high=inf is not finite"),
        ('type = "integer"\nlow = 9\nhigh = 1', "column 'age': Integer: low=9 is not below"),
        ('type = "integer"\nlow = 1\nhigh = 9\nmultiple_of = 50', "column 'age': Integer: no multiple of"),
        ('type = "boolean"\nmultiple_of = 2', "column 'age': 'multiple_of' is not an option of type 'boolean'"),
        ('type = "identifier"\nnullable = true', "column 'age': Identifier: nullable=True has no meaning"),
        ('type = "identifier"\nlow = 0', "column 'age': 'low' is not an option of type 'identifier'"),
        ('type = "category"\nvalues = 3', "column 'age': Category: values must be a list"),
        ('type = "date"\nlow = 2020-01-01T00:00:00\nhigh = 2021-01-01', "column 'age': Date: low="),
    ],
)
def test_mistakes_name_the_column(entry, message):
    """Whatever is wrong in a file is reported with the column that it is wrong in."""
    with pytest.raises(SchemaError) as caught:
        sp.Schema.from_toml(f"[columns.age]\n{entry}\n")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns = 3", "table named columns"),
        ("", "table named columns"),
        ("[columns]", "no columns"),
        ("[columns]\nage = 3", "column 'age': the entry needs a type"),
        ('[column.age]\ntype = "real"', "table named columns"),
        ('[columns.a]\ntype = "boolean"\n[other]', "no entry 'other'"),
        ("[columns.a", "not valid TOML"),
    ],
)
def test_files_that_are_no_schema(text, message):
    """A file of another shape says what is expected."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema.from_toml(text)


def test_unreadable_files(tmp_path):
    """A missing, binary or folder path is named."""
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent.toml", tmp_path / "binary.toml", tmp_path):
        with pytest.raises(SchemaError) as caught:
            sp.Schema.from_file(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "no columns"),
        ([("a", sp.Boolean())], "mapping"),
        ({"": sp.Boolean()}, "non-empty"),
        ({1: sp.Boolean()}, "column name 1"),
        ({"a": "real"}, "column 'a'"),
        ({"a": sp.Boolean}, "column 'a'"),
    ],
)
def test_mappings_that_are_no_schema(columns, message):
    """A schema maps non-empty names to column types."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema(columns)


def test_schema_is_a_mapping_in_order():
    """Names come out in the order in which they were put in; order is part of equality."""
    schema = sp.Schema({"b": sp.Boolean(), "a": sp.Real(0, 1)})
    assert list(schema) == ["b", "a"]
    assert len(schema) == 2
    assert schema["a"] == sp.Real(0, 1)
    assert schema == sp.Schema({"b": sp.Boolean(), "a": sp.Real(0, 1)})
    assert schema != sp.Schema({"a": sp.Real(0, 1), "b": sp.Boolean()})
    assert schema != {"b": sp.Boolean(), "a": sp.Real(0, 1)}
    assert repr(schema) == "Schema({'b': Boolean(), 'a': Real(low=0.0, high=1.0)})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(schema)


def test_later_changes_of_the_mapping_do_not_reach_the_schema():
    """A schema is a copy of what it was made from."""
    columns = {"a": sp.Boolean()}
    schema = sp.Schema(columns)
    columns["b"] = sp.Boolean()
    assert list(schema) == ["a"]


def test_columns_awaiting_bounds():
    """The schema knows whose bounds are to come from where, and when the data will show."""
    assert ALL_TYPES._columns_awaiting_bounds("private") == ["real, private", "zoned, private", "cents"]
    assert ALL_TYPES._columns_awaiting_bounds("from-data-not-private") == ["real from data"]
    assert ALL_TYPES._has_data_derived_bounds
    filled = ALL_TYPES._with_bounds({"real from data": (0, 1)})
    assert filled._columns_awaiting_bounds("from-data-not-private") == []
    assert filled._has_data_derived_bounds
    assert not sp.Schema({"a": sp.Real(bounds="private")})._has_data_derived_bounds


def test_views_of_a_schema_are_made_once():
    """What follows from a schema is made on first use; one without rules, places and identifiers is its own view."""
    ruled = sp.Schema({"a": sp.Integer(0, 9), "b": sp.Integer(0, 9)}, rules=[sp.AtMost("a", "b")])
    assert ruled._modelled is ruled._modelled
    assert ruled._derivations is ruled._derivations
    plain = sp.Schema({"a": sp.Integer(0, 9)})
    assert plain._modelled is plain
    assert plain._as_read is plain
