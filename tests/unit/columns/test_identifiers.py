"""Identifiers: never read whatever they hold, made afresh, and refused where nobody makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.cli.tables import read_table
from spinney.errors import ParameterError, SchemaError
from spinney.grid.lattice import grid_lattice, tree_lattice
from spinney.release.card import FRAME_KINDS
from spinney.release.frames import positions_of, to_frame
from spinney.tables.engines.memory import check_values
from spinney.tables.frames import open_table
from spinney_paper.baselines import BalogAlgorithm1

SCHEMA = sp.Schema({"id": sp.Identifier(), "x": sp.Real(0, 1)})


class Unreadable:
    """A value that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"an identifier was read: {name}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nullable": True}, "nullable=True has no meaning"),
        ({"bits": 3}, "bits=3 has no meaning"),
        ({"prefix": 5}, "prefix=5 is not a string"),
        ({"prefix": "C", "digits": 0}, r"digits=0 is not a whole number in 1..18"),
        ({"prefix": "C", "digits": "6"}, "digits='6'"),
        ({"prefix": "C", "digits": True}, "digits=True"),
        ({"digits": 8}, "digits=8 is the width of strings; give a prefix"),
    ],
)
def test_options_that_make_no_sense(options, message):
    """An identifier is there in every row and has no resolution; its texts have a prefix and a width."""
    with pytest.raises(SchemaError, match=f"Identifier: {message}"):
        sp.Identifier(**options)


def test_identifiers_survive_toml_and_show():
    """Both forms are written with what differs from the defaults, and read back."""
    schema = sp.Schema({"a": sp.Identifier(), "b": sp.Identifier(prefix="C-"), "c": sp.Identifier(prefix="", digits=3)})
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert schema.to_dict()["columns"]["a"] == {"type": "identifier"}
    assert schema.to_dict()["columns"]["b"] == {"type": "identifier", "prefix": "C-"}
    assert [repr(column) for column in schema.values()] == [
        "Identifier()",
        "Identifier(prefix='C-')",
        "Identifier(prefix='', digits=3)",
    ]
    assert schema._identifiers == ["a", "b", "c"]
    assert sp.Schema({"x": sp.Real(0, 1)})._identifiers == []


# ------------------------------------------------------------------------------------------------------ frames in

TABLES = {
    "numbers": pa.table({"id": [3, 4], "x": [0.1, 0.2]}),
    "texts": pl.DataFrame({"id": ["a@b", None], "x": [0.1, 0.2]}),
    "lists": pa.table({"id": [[1], [2, 3]], "x": [0.1, 0.2]}),
    "bytes": pl.DataFrame({"id": [b"1", b"2"], "x": [0.1, 0.2]}),
    "categories": pd.DataFrame({"id": pd.Categorical(["a", "b"]), "x": [0.1, 0.2]}),
    "objects": pd.DataFrame({"id": [object(), 5], "x": [0.1, 0.2]}),
    "array": np.array([[np.nan, 0.1], [7, 0.2]]),
}


@pytest.mark.parametrize("frame", TABLES.values(), ids=TABLES)
def test_any_type_is_accepted(frame):
    """Whatever is in the column, the table opens, and the other columns can be read."""
    table = open_table(frame, SCHEMA)
    check_values(table)
    assert table.n_rows == 2
    assert table.physical("x").values.tolist() == [0.1, 0.2]


def test_reading_one_is_an_error():
    """Whoever asks for the values is told that nobody gets them."""
    with pytest.raises(SchemaError, match="column 'id' is of type identifier, whose values are never read"):
        open_table(TABLES["numbers"], SCHEMA).physical("id")


def test_values_are_not_touched():
    """Objects that refuse to be looked at do no harm."""
    values = np.empty(2, dtype=object)
    values[0], values[1] = Unreadable(), Unreadable()
    frame = pd.DataFrame({"id": pd.Series(values, dtype=object), "x": [0.1, 0.2]})
    table = open_table(frame, SCHEMA)
    check_values(table)
    with pytest.raises(SchemaError):
        table.physical("id")


def test_the_column_must_be_there():
    """An identifier in the schema is a column of the table like any other."""
    with pytest.raises(SchemaError, match="column 'id' is in the schema but not in the table"):
        open_table(pa.table({"x": [0.1]}), SCHEMA)
    with pytest.raises(SchemaError, match="leave the prefix out"):
        open_table(np.zeros((2, 2)), sp.Schema({"id": sp.Identifier(prefix="C"), "x": sp.Real(0, 1)}))


def test_a_csv_with_identifiers(tmp_path: Path):
    """Spellings of all kinds, bytes that are no text included, are passed over."""
    path = tmp_path / "t.csv"
    path.write_bytes(b'id,x\n007,0.1\n,0.2\n"a,b",0.3\n\xff\xfe,0.4\n1e999,0.5\n')
    for column in (sp.Identifier(), sp.Identifier(prefix="C")):
        schema = sp.Schema({"id": column, "x": sp.Real(0, 1)})
        table = open_table(read_table(str(path), schema), schema)
        assert table.physical("x").values.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]


# ----------------------------------------------------------------------------------------------------- frames out


@pytest.mark.parametrize("kind", FRAME_KINDS)
def test_rows_are_numbered(kind):
    """Numbers from 1 in any kind of frame, whatever the positions say, in the place of the column."""
    schema = sp.Schema({"x": sp.Real(0, 1), "id": sp.Identifier()})
    positions = positions_of(np.array([[0.5, 0.25, 0.75], [np.nan, 9.0, -1.0]]), schema)
    frame = to_frame(positions, schema, kind)
    if kind == "numpy":
        assert frame.tolist() == [[0.5, 1], [0.25, 2], [0.75, 3]]
    else:
        assert list(frame.column_names if kind == "pyarrow" else frame.columns) == ["x", "id"]
        values = frame["id"].to_pylist() if kind == "pyarrow" else frame["id"].to_list()
        assert values == [1, 2, 3]
        assert all(type(value) is int for value in values)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_prefixes_and_padding(kind):
    """Texts of one width: the stated one, or that of the largest number where it needs more."""
    schema = sp.Schema({"a": sp.Identifier(prefix="C-"), "b": sp.Identifier(prefix="", digits=1)})
    frame = to_frame(np.zeros((2, 12)), schema, kind)
    values = [frame[name].to_pylist() if kind == "pyarrow" else frame[name].to_list() for name in schema]
    assert values[0][:2] == ["C-000001", "C-000002"]
    assert (values[1][0], values[1][11]) == ("01", "12")
    assert len(set(values[0])) == 12


def test_no_rows_and_no_texts_in_arrays():
    """An empty sample has an empty column of the right type; an array holds no texts."""
    schema = sp.Schema({"a": sp.Identifier(prefix="C-")})
    assert to_frame(np.empty((1, 0)), schema, "pyarrow").schema.field("a").type == pa.string()
    assert to_frame(np.empty((1, 0)), sp.Schema({"a": sp.Identifier()}), "pyarrow").schema.field("a").type == pa.int64()
    with pytest.raises(ParameterError, match="cannot hold a column of type identifier"):
        to_frame(np.zeros((1, 2)), schema, "numpy")


# --------------------------------------------------------------------------------------------------------- refusal

OTHERS = [sp.KDTreeSynthesizer("1"), sp.GridSynthesizer("1"), BalogAlgorithm1("1", delta="1e-6", n_points=5)]


@pytest.mark.parametrize("model", OTHERS, ids=lambda model: type(model).__name__)
def test_only_the_forest_takes_identifiers_and_rules(model):
    """The other systems refuse before anything is charged, and say what to do."""
    ledger = sp.Ledger(limit=5, delta="1e-5")
    frame, name = pa.table({"id": [0.5, 0.25], "x": [0.5, 0.25]}), type(model).__name__
    with pytest.raises(SchemaError, match=f"column 'id' is an identifier, and {name} .*drop the column or use Forest"):
        model.fit(frame, SCHEMA, ledger=ledger)
    ruled = sp.Schema({"id": sp.Real(0, 1), "x": sp.Real(0, 1)}, rules=[sp.AtMost("id", "x")])
    with pytest.raises(SchemaError, match=rf"{name} cannot enforce AtMost\(.*drop the rules or use ForestSynthesizer"):
        model.fit(frame, ruled, ledger=ledger)
    assert not ledger.events


def test_lattices_have_no_place_for_identifiers():
    """Asking for the cells of an identifier is an error, not an empty axis."""
    for make in (tree_lattice, lambda schema: grid_lattice(schema, bins=3)):
        with pytest.raises(SchemaError, match="column 'id' is of type identifier, which has no cells"):
            make(SCHEMA)
