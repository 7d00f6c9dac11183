"""`multiple_of`: numbers in steps, stated with care, rounded cleanly, in cells that rounding does not leave."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import exact
from spinney.columns.reading import nearest_multiples, numbers_rounding_to
from spinney.errors import SchemaError
from spinney.grid.lattice import grid_lattice, tree_lattice
from spinney.release.card import FRAME_KINDS
from spinney.release.frames import positions_of, to_frame
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tree.release.geometry import extent
from spinney_paper.baselines import BalogAlgorithm1
from support.in_one_test import in_one_test
from support.strategies import MODEST


@in_one_test("kind", [sp.Real, sp.Integer])
@in_one_test("step", [0, -5, math.inf, math.nan, "five", True, [5]])
def test_steps_that_are_none(kind, step):
    """A step is a positive, finite number."""
    with pytest.raises(SchemaError, match=f"{kind.__name__}: multiple_of="):
        kind(0, 100, multiple_of=step)


def test_steps_of_whole_numbers_are_whole():
    """An Integer has whole steps of a size that can be counted; a Real may have any."""
    with pytest.raises(SchemaError, match=r"Integer: multiple_of=0.5 is not a whole number"):
        sp.Integer(0, 100, multiple_of=0.5)
    with pytest.raises(SchemaError, match=r"multiple_of=.* is not in 1..2\^53"):
        sp.Integer(0, 100, multiple_of=2**53 + 1)
    assert sp.Integer(0, 100, multiple_of=np.int8(5)).multiple_of == 5
    assert type(sp.Integer(0, 100, multiple_of=5.0).multiple_of) is int
    assert sp.Real(0, 100, multiple_of=5).multiple_of == 5.0


@pytest.mark.parametrize("column", [(sp.Integer, 51, 99, 50), (sp.Real, 0.01, 0.24, 0.25), (sp.Integer, -49, -1, 50)])
def test_some_multiple_lies_in_the_bounds(column):
    """Bounds without a multiple between them leave no value, which is an error that names both."""
    kind, low, high, step = column
    with pytest.raises(SchemaError, match=f"no multiple of multiple_of={step} lies between low={low} and high={high}"):
        kind(low, high, multiple_of=step)


def test_decimals_mean_what_they_say():
    """0.3 is the third multiple of 0.1, though no float is a tenth."""
    assert sp.Real(0, 0.3, multiple_of=0.1)._multiples == (0.0, 0.3)
    assert sp.Real(0.3, 0.4, multiple_of=0.3)._multiples == (0.3, 0.3)
    assert sp.Real(-1, 0.7, multiple_of=0.25)._multiples == (-1.0, 0.5)
    assert sp.Integer(-120, 49, multiple_of=50)._multiples == (-100, 0)


@pytest.mark.parametrize("kind", [sp.Real, sp.Integer])
def test_found_bounds_hold_a_multiple(kind):
    """Bounds that fall between two multiples are widened to both; others stay as they were found."""
    awaiting = kind(bounds="private", multiple_of=50)
    assert awaiting._with_bounds(-100, 120) == kind(-100, 120, multiple_of=50)
    assert awaiting._with_bounds(16, 31) == kind(0, 50, multiple_of=50)
    assert awaiting._with_bounds(-31, -16) == kind(-50, 0, multiple_of=50)


def test_found_bounds_at_the_end_of_all_numbers():
    """Widening stops where numbers do."""
    top = sp.Integer(bounds="from-data-not-private", multiple_of=2**53 - 1)._with_bounds(2**61 - 1, 2**61)
    assert top.low <= top._multiples[0] <= top._multiples[1] <= top.high == 2**61
    largest = sys.float_info.max
    huge = sp.Real(bounds="from-data-not-private", multiple_of=0.7 * largest)._with_bounds(0.8 * largest, 0.9 * largest)
    assert huge.high == largest


def test_steps_survive_toml_and_show():
    """`multiple_of` is written, read back, shown and compared."""
    schema = sp.Schema({"a": sp.Integer(0, 100, multiple_of=5), "b": sp.Real(bounds="private", multiple_of=0.01)})
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert repr(schema["a"]) == "Integer(low=0, high=100, multiple_of=5)"
    assert schema["a"] != sp.Integer(0, 100)
    assert "multiple_of" not in sp.Integer(0, 100).to_dict()


# -------------------------------------------------------------------------------------------------- rounding


@pytest.mark.parametrize(
    ("step", "digits"), [(0.01, 2), (0.1, 1), (0.05, 2), (0.25, 2), (1e-6, 6), (2.5, 1), (1e-10, 10)]
)
def test_decimals_come_out_as_written(step, digits):
    """Whatever is drawn, the value is the float that its shortest decimal means."""
    column = sp.Real(-1000, 1000, multiple_of=step)
    drawn = np.random.default_rng(3).uniform(-1100, 1100, 2000)
    rounded = nearest_multiples(drawn, column)
    assert rounded.tolist() == [round(value, digits) for value in rounded.tolist()]
    assert np.abs(rounded - np.clip(drawn, -1000, 1000)).max() <= step / 2 * (1 + 1e-6)
    assert not np.signbit(rounded[rounded == 0]).any()


numbers = st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-3 or x == 0)


def spanning(kind, low, length, step):
    """A column of this length and step."""
    return kind(low, low + length, multiple_of=step)


in_reals = st.builds(spanning, st.just(sp.Real), numbers, st.floats(10, 1e4), st.floats(1e-3, 9))
in_wholes = st.builds(spanning, st.just(sp.Integer), st.integers(-500, 500), st.integers(60, 999), st.integers(1, 60))


@MODEST
@given(in_reals | in_wholes, st.lists(st.floats(-2e6, 2e6), min_size=1, max_size=20))
def test_the_nearest_multiple_inside_the_bounds(column, drawn):
    """Every value is a multiple inside the bounds, none is nearer, and rounding again changes nothing."""
    whole = isinstance(column, sp.Integer)
    values = np.array(np.rint(drawn), dtype=np.int64) if whole else np.array(drawn)
    rounded = nearest_multiples(values, column)
    assert (nearest_multiples(rounded, column) == rounded).all()
    step, first, last = exact(column.multiple_of), *(exact(end) for end in column._multiples)
    for value, result in zip(values.tolist(), rounded.tolist(), strict=True):
        assert column.low <= result <= column.high
        nearest = min(max(round(exact(value) / step) * step, first), last)
        tie = abs(abs(exact(value) - nearest) - step / 2) < Fraction(1, 10**6)
        assert math.isclose(result, float(nearest), rel_tol=1e-12, abs_tol=1e-9) or tie


def test_steps_finer_than_floats():
    """Steps that floats cannot count leave values as they are, inside the bounds, without a warning."""
    column = sp.Real(1e300, 2e300, multiple_of=5e-324)
    drawn = np.array([0.0, 1.5e300, 3e300])
    assert nearest_multiples(drawn, column).tolist() == [1e300, 1.5e300, 2e300]


def test_nulls_stay_null_in_every_kind_of_frame():
    """NaN is null in a column of steps too, and all kinds of frames agree."""
    schema = sp.Schema(
        {"r": sp.Real(0, 1, multiple_of=0.1, nullable=True), "i": sp.Integer(0, 9, multiple_of=3, nullable=True)}
    )
    values = np.array([[np.nan, 0.29, 7.0], [4.6, np.nan, -2.0]])
    expected = {"r": [None, 0.3, 1.0], "i": [6, None, 0]}
    for kind in FRAME_KINDS:
        frame = to_frame(positions_of(values, schema), schema, kind)
        for index, name in enumerate(schema):
            column = frame[:, index] if kind == "numpy" else frame[name]
            assert [None if pd.isna(value) else value for value in pa.array(column, from_pandas=True).to_pylist()] == (
                expected[name]
            )


# ------------------------------------------------------------------------------------------------------- cells

COLUMNS = [
    sp.Integer(0, 1000, multiple_of=50),
    sp.Integer(-7, 40, multiple_of=3, nullable=True),
    sp.Integer(3, 100, multiple_of=7),
    sp.Integer(0, 10**9, multiple_of=8, bits=5),
    sp.Real(0, 100, multiple_of=0.25),
    sp.Real(-1.01, 0.99, multiple_of=0.1, nullable=True),
    sp.Real(0.5, 20, multiple_of=3),
    sp.Real(0, 1, multiple_of=1 / 3),
    sp.Real(-5, 5, multiple_of=0.01, bits=4),
]


@in_one_test("make", [tree_lattice, lambda schema: grid_lattice(schema, bins=6)], ids=["tree", "grid"])
@in_one_test("column", COLUMNS, ids=repr)
def test_what_is_drawn_in_a_cell_rounds_inside_it(column, make):
    """A multiple is counted in a cell, and whatever is drawn in that cell rounds to multiples of the same cell."""
    schema = sp.Schema({"v": column})
    axis = make(schema).axes[0]

    def cells(values):
        found = []
        for value in values:
            counts = count_cells(open_table(pa.table({"v": [value]}), schema), make(schema))
            found.append(int(counts.true_codes[0, 0]) >> (64 - axis.bits))
        return found

    first = np.arange(axis.first, axis.last + 1)[:40]
    low, length = extent(axis, first, first + 1)
    for share in (0.001, 0.4, 0.999):
        drawn = to_frame((low + share * length)[None], schema, "pyarrow")["v"].to_pylist()
        assert cells(drawn) == first.tolist()


@pytest.mark.parametrize("column", [sp.Integer(0, 1000, multiple_of=50), sp.Real(0, 5, multiple_of=0.25)], ids=repr)
def test_columns_of_few_multiples_have_a_cell_for_each(column):
    """Twenty-one multiples are twenty-one possible cells, however wide the bounds."""
    assert tree_lattice(sp.Schema({"v": column})).axes[0].n_possible == 21


MODELS = {
    "moments": sp.KDTreeSynthesizer("1"),
    "tree": sp.KDTreeSynthesizer("1", moments=False),
    "paper": sp.PaperTreeSynthesizer("50"),
    "cube": sp.PaperTreeSynthesizer("50", axes="cube"),
    "grid": sp.GridSynthesizer("1", bins=7),
    "rival": BalogAlgorithm1("1", delta="1e-6", n_points=50),
    "forest": sp.ForestSynthesizer("1"),
    "forest, target": sp.ForestSynthesizer("1", target="a"),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_synthesizer_gives_multiples(name):
    """Rows and weighted points of every kind of release are multiples inside the bounds."""
    schema = sp.Schema({"a": sp.Real(0.1, 10, multiple_of=0.25), "b": sp.Real(-3, 3, multiple_of=0.3)})
    table = np.random.default_rng(0).uniform([0, -3], [10, 3], size=(400, 2))
    model = MODELS[name].fit(table, schema, entropy=sp.UnsafeSeededEntropy(1))
    points = [] if isinstance(model, sp.ForestSynthesizer) else [model.weighted_points()[0]]
    for rows in (model.sample(300, seed=1), *points):
        assert len(rows)
        for values, column in zip(rows.T, schema.values(), strict=True):
            assert (nearest_multiples(values, column) == values).all()
            assert values.min() >= column._multiples[0]
            assert values.max() <= column._multiples[1]


@pytest.mark.parametrize("source", ["private", "from-data-not-private"])
def test_found_bounds_work_with_steps(source):
    """Bounds that are paid for, or read off the data, go with steps of any width."""
    for step in (0.5, 1000):
        schema = sp.Schema({"a": sp.Real(bounds=source, multiple_of=step)})
        table = np.random.default_rng(0).uniform(3, 90, size=(2000, 1))
        for model in (sp.KDTreeSynthesizer("5"), sp.ForestSynthesizer("5")):
            model.fit(table, schema, entropy=sp.UnsafeSeededEntropy(1))
            rows = model.sample(50, seed=1)[:, 0]
            assert (rows % step == 0).all()
            assert model.schema_["a"].multiple_of == step


@MODEST
@given(in_reals | in_wholes, st.integers(-900, 900), st.integers(0, 300))
def test_numbers_that_round_into_a_range(column, low, length):
    """The ends round into the range, what is just beyond does not, and a range without multiples has no numbers."""
    high = low + length
    least, most = numbers_rounding_to(low, high, column)
    step = exact(column.multiple_of)
    if not any(low <= k * step <= high for k in (-(-low // step), high // step)):
        assert least > most
        return
    beyond = 1 if isinstance(column, sp.Integer) else column.multiple_of * 1e-6
    wide = type(column)(-2000, 2000, multiple_of=column.multiple_of)
    inner, outer = np.array([least + beyond, most - beyond]), np.array([least - beyond, most + beyond])
    if isinstance(column, sp.Integer):
        inner = np.array([least, most])
    for value in nearest_multiples(inner, wide):
        assert low - 1e-9 <= value <= high + 1e-9
    below, above = nearest_multiples(outer, wide)
    assert below < low
    assert above > high
