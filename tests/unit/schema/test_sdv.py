"""SDV's metadata as a schema and back: types are taken over, bounds and categories are stated, nothing is learnt."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import SchemaError

HOTEL = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest_email",
    "alternate_keys": ["booking"],
    "columns": {
        "guest_email": {"sdtype": "email", "pii": True},
        "booking": {"sdtype": "id", "regex_format": "BID-[0-9]{4}"},
        "has_rewards": {"sdtype": "boolean"},
        "room_type": {"sdtype": "categorical"},
        "grade": {"sdtype": "categorical", "order": ["low", "middle", "high"]},
        "nights": {"sdtype": "numerical", "computer_representation": "Int16"},
        "fee": {"sdtype": "numerical", "computer_representation": "Float"},
        "checkin": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "paid_at": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
    },
    "column_relationships": [],
}
STATED = {
    "bounds": {
        "nights": (1, 60),
        "fee": (0, 5000),
        "checkin": ("2020-01-01", "2026-12-31"),
        "paid_at": ("2020-01-01", "2026-12-31T23:59:59"),
    },
    "values": {"room_type": ["BASIC", "DELUXE", "SUITE"]},
}
EXPECTED = sp.Schema(
    {
        "guest_email": sp.Identifier(prefix="email-"),
        "booking": sp.Identifier(prefix="BID-", digits=4),
        "has_rewards": sp.Boolean(),
        "room_type": sp.Category(["BASIC", "DELUXE", "SUITE"]),
        "grade": sp.Category(["low", "middle", "high"]),
        "nights": sp.Integer(1, 60),
        "fee": sp.Real(0, 5000),
        "checkin": sp.Date("2020-01-01", "2026-12-31"),
        "paid_at": sp.Datetime("2020-01-01", "2026-12-31T23:59:59"),
    }
)


def one(entry, **stated):
    """The column that one entry becomes."""
    return sp.Schema.from_sdv({"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": {"x": entry}}, **stated)["x"]


class OfSdv:
    """Stands for SDV's own object."""

    def to_dict(self):
        return HOTEL


def test_metadata_become_a_schema(tmp_path: Path):
    """A dictionary, a file, SDV's object, and the newer forms with one table by name all say the same."""
    table = {key: value for key, value in HOTEL.items() if key != "METADATA_SPEC_VERSION"}
    newer = {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": table}, "relationships": []}
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps(newer))
    older = newer | {"METADATA_SPEC_VERSION": "MULTI_TABLE_V1"}
    for metadata in (HOTEL, newer, older, path, str(path), OfSdv()):
        assert sp.Schema.from_sdv(metadata, **STATED) == EXPECTED
    assert sp.Schema.from_sdv(newer, table="guests", **STATED) == EXPECTED


def test_all_that_is_missing_is_told_at_once():
    """One error names every column that needs a statement, with what to type."""
    columns = HOTEL["columns"] | {"what": {"sdtype": "unknown", "pii": True}, "city": {"sdtype": "city", "pii": False}}
    with pytest.raises(SchemaError) as caught:
        sp.Schema.from_sdv(HOTEL | {"columns": columns})
    assert str(caught.value) == (
        "SDV's metadata does not say bounds and categories, and Spinney does not learn them from the data; state what "
        "is publicly known: bounds={'nights': (low, high), 'fee': (low, high), 'checkin': (low, high), "
        "'paid_at': (low, high)}, values={'room_type': [...], 'city': [...]}, columns={'what': sp....}; "
        "private_bounds=True estimates bounds privately instead (column 'what' is unknown; say what it is, or "
        "sp.Identifier() to make it afresh)"
    )


def test_bounds_may_be_left_to_epsilon():
    """`private_bounds=True` asks for no bounds; stated ones stay."""
    bounds = {"nights": (1, 60)}
    schema = sp.Schema.from_sdv(HOTEL, bounds=bounds, values=STATED["values"], private_bounds=True)
    assert schema._columns_awaiting_bounds("private") == ["fee", "checkin", "paid_at"]
    assert schema["nights"] == sp.Integer(1, 60)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0, 9), sp.Integer(0, 9)), ((0.0, 9), sp.Real(0, 9)), ((0, 9.5), sp.Real(0, 9.5))],
)
def test_bounds_tell_whole_numbers_where_the_metadata_do_not(bounds, expected):
    """Most metadata say "numerical" and no more; without bounds nobody can tell, so it is asked for."""
    assert one({"sdtype": "numerical"}, bounds={"x": bounds}) == expected
    with pytest.raises(
        SchemaError, match=r"columns={'x': .*column 'x' may hold whole numbers or others; say sp.Integer"
    ):
        one({"sdtype": "numerical"}, private_bounds=True)


@pytest.mark.parametrize("held", ["Int8", "Int64", "UInt16"])
def test_representations(held):
    """SDV's integers are whole numbers."""
    assert one({"sdtype": "numerical", "computer_representation": held}, bounds={"x": (0, 9)}) == sp.Integer(0, 9)


@pytest.mark.parametrize(
    ("written", "bounds", "expected"),
    [
        ("%m/%d/%y", ("2020-01-01", "2021-01-01"), sp.Date("2020-01-01", "2021-01-01")),
        ("%Y-%m-%dT%H:%M:%S.%f", ("2020-01-01", "2021-01-01"), sp.Datetime("2020-01-01", "2021-01-01")),
        ("%Y-%m-%d %H:%M:%S%z", ("2020-01-01", "2021-01-01"), sp.Datetime("2020-01-01", "2021-01-01", timezone="UTC")),
        (None, ("2020-01-01", "2021-01-01"), sp.Date("2020-01-01", "2021-01-01")),
        (None, (date(2020, 1, 1), date(2021, 1, 1)), sp.Date("2020-01-01", "2021-01-01")),
        (None, (datetime(2020, 1, 1), datetime(2021, 1, 1)), sp.Datetime("2020-01-01", "2021-01-01")),
    ],
)
def test_dates_and_datetimes(written, bounds, expected):
    """The format tells days from moments; without one the bounds do."""
    entry = {"sdtype": "datetime"} | ({} if written is None else {"datetime_format": written})
    assert one(entry, bounds={"x": bounds}) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, sp.Identifier()),
        ("HID_[0-9]{3}", sp.Identifier(prefix="HID_", digits=3)),
        (r"\d{8}", sp.Identifier(prefix="", digits=8)),
        (r"A\.B\+[0-9]{2}", sp.Identifier(prefix="A.B+", digits=2)),
        ("[A-Z]{3}[0-9]{3}", sp.Identifier()),
        ("X[0-9]{99}", sp.Identifier()),
    ],
)
def test_identifiers(pattern, expected):
    """Patterns of a prefix and digits are kept; others become numbers."""
    assert one({"sdtype": "id"} | ({} if pattern is None else {"regex_format": pattern})) == expected


def test_types_by_meaning():
    """What SDV knows by its meaning is an identifier, unless values or bounds say that it is more."""
    assert one({"sdtype": "phone_number", "pii": True}) == sp.Identifier(prefix="phone_number-")
    assert one({"sdtype": "city", "pii": False}, values={"x": ["Bonn", "Kiel"]}) == sp.Category(["Bonn", "Kiel"])
    assert one({"sdtype": "latitude", "pii": True}, bounds={"x": (-90.0, 90.0)}) == sp.Real(-90, 90)
    assert one({"sdtype": "unknown"}, columns={"x": sp.Real(0, 1)}) == sp.Real(0, 1)


def test_categories_are_put_in_order():
    """`order_by` sorts the values that were stated; `order` is the list itself, unless another is stated."""
    stated = {"values": {"x": ["b", "a"]}}
    assert one({"sdtype": "categorical", "order_by": "alphabetical"}, **stated).values == ("a", "b")
    numbers = {"values": {"x": [10, 9, 1]}}
    assert one({"sdtype": "categorical", "order_by": "numerical_value"}, **numbers).values == (1, 9, 10)
    assert one({"sdtype": "categorical", "order": ["c"]}, **stated).values == ("b", "a")
    with pytest.raises(SchemaError, match="column 'x': its values cannot be put in the order 'numerical_value'"):
        one({"sdtype": "categorical", "order_by": "numerical_value"}, **stated)


def test_nulls_are_stated():
    """SDV's metadata does not say where values may be missing."""
    assert one({"sdtype": "boolean"}, nullable=["x"]) == sp.Boolean(nullable=True)
    assert one({"sdtype": "numerical"}, bounds={"x": (0, 1)}, nullable={"x"}).nullable
    with pytest.raises(SchemaError, match="nullable names column 'x', which is an id in the metadata"):
        one({"sdtype": "id"}, nullable=["x"])
    with pytest.raises(SchemaError, match="nullable='x' is not a list of column names"):
        one({"sdtype": "boolean"}, nullable="x")


@pytest.mark.parametrize(
    ("entry", "stated", "message"),
    [
        ({"sdtype": "datetime", "datetime_format": "%H:%M"}, {}, "column 'x': its datetime_format holds no date"),
        ({"sdtype": "numerical"}, {"bounds": {"x": (9, 0)}}, "column 'x': Integer: low=9 is not below high=0"),
        ({"sdtype": "numerical"}, {"bounds": {"x": 9}}, r"column 'x': its bounds are not a pair \(low, high\)"),
        ({"sdtype": "numerical"}, {"bounds": {"y": (0, 9)}}, "bounds names column 'y', which is not in the metadata"),
        ({"sdtype": "numerical"}, {"values": {"x": [1]}}, "values names column 'x', which is numerical"),
        ({"sdtype": "boolean"}, {"bounds": {"x": (0, 1)}}, "bounds names column 'x', which is boolean"),
        ({"sdtype": "categorical"}, {"bounds": {"x": (0, 1)}}, "bounds names column 'x', which is categorical"),
        ({"sdtype": "categorical"}, {"values": {"x": "abc"}}, "column 'x': Category: values must be a list"),
        ({"sdtype": "boolean"}, {"columns": {"x": sp.Boolean()}, "nullable": ["x"]}, "in columns and in nullable"),
        ({"type": "boolean"}, {}, "column 'x': the metadata gives it no sdtype"),
        ("boolean", {}, "column 'x': the metadata gives it no sdtype"),
    ],
)
def test_statements_that_do_not_fit(entry, stated, message):
    """The column and the argument are named."""
    with pytest.raises(SchemaError, match=message):
        one(entry, **stated)


@pytest.mark.parametrize(
    ("metadata", "options", "message"),
    [
        (7, {}, "metadata is a int, not SDV's metadata"),
        ({}, {}, "the metadata has no columns"),
        ({"columns": {}}, {}, "the metadata has no columns"),
        ({"tables": {"a": {}, "b": {}}}, {}, "describes 2 tables, 'a' and 'b'; say which: table=..."),
        ({"tables": {"guests": {}}}, {"table": "guest"}, "table='guest' is not in the metadata; did you mean 'guests'"),
        ({"tables": {}}, {}, "describes 0 tables"),
        (HOTEL, {"table": "guests"}, "one table without a name; leave table out"),
        (HOTEL | {"sequence_key": "booking"}, {}, "has a sequence_key: several rows belong to one entity"),
        ({"columns": {7: {"sdtype": "boolean"}}}, {}, "7 is not a name"),
    ],
    ids=str,
)
def test_metadata_that_cannot_be_read(metadata, options, message):
    """Other things than metadata of one table; sequences, whose rows belong together, would be protected too little."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema.from_sdv(metadata, **options)


@pytest.mark.parametrize(("text", "message"), [("{", "line 1 is not JSON"), ("[]", "metadata is a list")])
def test_files_that_are_no_metadata(tmp_path: Path, text, message):
    """A file is read with care, and a missing one is named."""
    path = tmp_path / "metadata.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        sp.Schema.from_sdv(path)
    with pytest.raises(SchemaError, match=r"cannot read .*none\.json"):
        sp.Schema.from_sdv(tmp_path / "none.json")


def test_a_schema_becomes_metadata():
    """Types, formats, patterns and lists are written as SDV's newest form has them."""
    assert EXPECTED.to_sdv("guests") == {
        "METADATA_SPEC_VERSION": "V1",
        "tables": {
            "guests": {
                "columns": {
                    "guest_email": {"sdtype": "id", "regex_format": r"email\-[0-9]{6}"},
                    "booking": {"sdtype": "id", "regex_format": r"BID\-[0-9]{4}"},
                    "has_rewards": {"sdtype": "boolean"},
                    "room_type": {"sdtype": "categorical", "order": ["BASIC", "DELUXE", "SUITE"]},
                    "grade": {"sdtype": "categorical", "order": ["low", "middle", "high"]},
                    "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
                    "fee": {"sdtype": "numerical", "computer_representation": "Float"},
                    "checkin": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
                    "paid_at": {"sdtype": "datetime", "datetime_format": "%Y-%m-%dT%H:%M:%S.%f"},
                }
            }
        },
        "relationships": [],
    }
    json.dumps(EXPECTED.to_sdv())
    with pytest.raises(SchemaError, match="table='' is not the name of a table"):
        EXPECTED.to_sdv("")


def test_a_schema_comes_back_once_its_bounds_are_stated():
    """What SDV's metadata has no place for is stated anew; everything else survives."""
    again = sp.Schema.from_sdv(json.loads(json.dumps(EXPECTED.to_sdv())), bounds=STATED["bounds"])
    assert again == EXPECTED
    zoned = sp.Schema({"t": sp.Datetime("2020-01-01", "2021-01-01", timezone="UTC"), "i": sp.Identifier()})
    assert sp.Schema.from_sdv(zoned.to_sdv(), bounds={"t": ("2020-01-01", "2021-01-01")}) == zoned


def test_a_misspelt_sdtype_is_refused() -> None:
    """A column of numbers is not taken for names because of a typing error."""
    with pytest.raises(SchemaError, match="did you mean 'numerical'"):
        sp.Schema.from_sdv({"columns": {"t": {"sdtype": "numeric"}}})


FAMILY = {
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "people": {"columns": {"id": {"sdtype": "id"}, "member": {"sdtype": "boolean"}}, "primary_key": "id"},
        "visits": {"columns": {"person": {"sdtype": "id"}, "paid": {"sdtype": "boolean"}}},
    },
    "relationships": [{"parent_table_name": "people", "child_table_name": "visits", "child_foreign_key": "person"}],
}


def test_a_child_of_another_table_is_refused():
    """One person has many visits, so a guarantee for one of them would be too little; parents are read."""
    with pytest.raises(SchemaError, match=r"'visits' is a child: several rows belong to one entity, and Spinney"):
        sp.Schema.from_sdv(FAMILY, table="visits")
    assert list(sp.Schema.from_sdv(FAMILY, table="people")) == ["id", "member"]
    assert list(sp.Schema.from_sdv(FAMILY | {"relationships": []}, table="visits")) == ["person", "paid"]
    with pytest.raises(SchemaError, match="relationships are not a list of dictionaries"):
        sp.Schema.from_sdv(FAMILY | {"relationships": ["visits"]}, table="visits")


@pytest.mark.parametrize("version", ["V2", "", 1, ["V1"]], ids=str)
def test_other_versions_are_refused(version):
    """What a later version may mean by the same words is not guessed."""
    with pytest.raises(SchemaError, match=r"METADATA_SPEC_VERSION .* and 'SINGLE_TABLE_V1', 'MULTI_TABLE_V1' and 'V1'"):
        sp.Schema.from_sdv(HOTEL | {"METADATA_SPEC_VERSION": version}, **STATED)


def test_whole_numbers_of_numpy_are_whole_numbers():
    """Bounds that were computed mean the same as those that were typed."""
    metadata = {"columns": {"n": {"sdtype": "numerical"}}}
    assert sp.Schema.from_sdv(metadata, bounds={"n": (np.int64(0), np.int64(5))}) == sp.Schema({"n": sp.Integer(0, 5)})


@pytest.mark.parametrize("sdtype", ["x" * 51, "\x1b[31m", "a\nb"], ids=["long", "escape", "line break"])
def test_an_sdtype_that_is_no_name_is_refused(sdtype):
    """It would become the prefix of every identifier."""
    with pytest.raises(SchemaError, match="column 'a': its sdtype is not a name of up to 50 printable characters"):
        sp.Schema.from_sdv({"columns": {"a": {"sdtype": sdtype}}})


class Unwritten:
    """Metadata that cannot be written."""

    def to_dict(self):
        """As SDV's Metadata."""
        raise RuntimeError("something of theirs")


@pytest.mark.parametrize(
    ("metadata", "stated", "message"),
    [
        (FAMILY, {"bounds": 5}, "bounds is a int, not a dictionary"),
        (FAMILY, {"bounds": "a"}, "bounds is a str, not a dictionary"),
        (FAMILY, {"columns": ["a"]}, "columns is a list, not a dictionary"),
        (FAMILY, {"values": ["a"]}, "values is a list, not a dictionary"),
        (FAMILY, {"nullable": [["a"]]}, "is not a list of column names"),
        (FAMILY, {"table": [1]}, "is not the name of a table"),
        (Unwritten(), {}, "the metadata cannot be read: its to_dict raised RuntimeError$"),
        (Unwritten, {}, "the metadata cannot be read: its to_dict raised TypeError$"),
    ],
)
def test_arguments_of_another_kind_are_refused(metadata, stated, message):
    """By name, with an error of Spinney's that stands alone."""
    with pytest.raises(SchemaError, match=message) as caught:
        sp.Schema.from_sdv(metadata, **({"table": "people"} | stated))
    assert caught.value.__context__ is None
