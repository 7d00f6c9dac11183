"""Columns by themselves: cells around round values, rulers that fit the kind, and where the rows of a pile lie."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.counting.counts import AxisCells
from spinney.grid.axes import ColumnAxis, column_axis
from spinney.grid.lattice import tree_lattice
from spinney.tables.frames import open_table
from support.in_one_test import in_one_test

ONE = np.ones(1, dtype=np.int64)


def cells_of(column: sp.Column, values: list) -> tuple[ColumnAxis, list[int]]:
    """The cells that values have."""
    axis = column_axis("v", column)
    table = open_table(pa.table({"v": pa.array(values)}), sp.Schema({"v": column}))
    cells = np.empty(len(values), dtype=np.int64)
    assert AxisCells(table.physical("v"), axis.axis).fill(0, len(values), cells) == 0
    return axis, cells.tolist()


def ranges_down_to(axis: ColumnAxis, cell: int) -> list[tuple[int, int]]:
    """The ranges of the hierarchy that hold a cell, from the whole axis down."""
    low, high = 0, axis.ruler.n_cells
    found = [(low, high)]
    while high - low > 1:
        cut = int(axis.ruler.cuts(low * ONE, high * ONE)[0])
        assert low < cut < high
        low, high = (low, cut) if cell < cut else (cut, high)
        found.append((low, high))
    return found


COLUMNS = [
    sp.Real(0, 1),
    sp.Real(0, 1, bits=6),
    sp.Real(-1e6, 1e6, nullable=True),
    sp.Real(0, 2**32),
    sp.Real(0.1, 0.7),
    sp.Real(1e9, 1e9 + 1),
    sp.Real(1e15, 1e15 + 1),
    sp.Real(0, 1e300),
    sp.Real(0, 1e9, multiple_of=0.01),
    sp.Real(-5, 5, multiple_of=0.3),
    sp.Integer(0, 10**7),
    sp.Integer(-(2**61), 2**61),
    sp.Integer(-(2**61), 2 - 2**61 + 60),
    sp.Integer(2**60, 2**60 + 1000, nullable=True),
    sp.Integer(3, 10**13),
    sp.Integer(0, 10**13, multiple_of=7),
    sp.Integer(0, 10**6, bits=8),
    sp.Date("0001-01-01", "9999-12-31"),
    sp.Date("2000-01-03", "2020-12-31", multiple_of=7),
    sp.Datetime("2020-01-01", "2030-01-01", nullable=True),
    sp.Datetime("2020-01-01", "2020-12-31", multiple_of=3600),
    sp.Datetime("0001-01-02", "9999-12-30", timezone="Asia/Tokyo"),
    sp.Time(),
    sp.Time(multiple_of=900),
    sp.Time("08:00:00.0005", "18:00"),
]


@in_one_test("column", COLUMNS, ids=repr)
def test_every_kind_has_a_hierarchy_of_its_cells(column: sp.Column) -> None:
    """Ranges from the whole axis down to single cells, few levels deep, of as many cells as the axis has."""
    axis = column_axis("v", column)
    assert axis.ruler.n_cells == axis.axis.last + 1
    assert axis.axis.value_bits <= 40
    rng = np.random.default_rng(0)
    for cell in [0, axis.axis.last, *rng.integers(0, axis.axis.last + 1, 20).tolist()]:
        assert len(ranges_down_to(axis, cell)) <= 1.5 * axis.max_levels + 6


@in_one_test("column", [c for c in COLUMNS if c.bits is None], ids=repr)
def test_cells_are_no_coarser_than_those_of_a_tree(column: sp.Column) -> None:
    """Than the 2^20 cells that a lattice of one column has by default."""
    coarse = tree_lattice(sp.Schema({"v": column})).axes[0]
    assert column_axis("v", column).axis.n_possible >= 0.9 * coarse.n_possible


@pytest.mark.parametrize("bits", [6, 8, 12, 20])
def test_stated_bits_are_about_kept(bits: int) -> None:
    """At most 2^bits cells, and not many fewer; and the rows of a cell are spread over it, however few cells."""
    for column in (sp.Real(0, 7, bits=bits), sp.Integer(0, 10**9, bits=bits)):
        axis = column_axis("v", column)
        assert 2**bits / 2.6 <= axis.ruler.n_cells <= 2**bits + 1
        assert axis.points(np.array([3]), np.array([4])) is None


# ------------------------------------------------------------------------------------------------- round values


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (sp.Real(0, 1e6), 0.0),
        (sp.Real(0, 1e6), 49.99),
        (sp.Real(-1000, 1000), -2.5),
        (sp.Real(0, 1), 0.3),
        (sp.Real(0, 1e6, multiple_of=0.01), 0.5),
        (sp.Integer(0, 10**7), 50_000),
        (sp.Integer(-(10**7), 10**7), -50_000),
    ],
    ids=str,
)
def test_a_round_number_is_where_ranges_begin(column: sp.Column, value: float) -> None:
    """Long before they are down to a cell, ranges around it begin at it, with a float beside it in the same cell."""
    beside = [value, np.nextafter(value, np.inf)] if isinstance(column, sp.Real) else [value]
    axis, cells = cells_of(column, beside)
    assert len(set(cells)) == 1
    ranges = ranges_down_to(axis, cells[0])
    begins = [depth for depth, (low, high) in enumerate(ranges) if low == cells[0] and high - low > 1]
    assert min(begins) < len(ranges) - 2
    is_point, places, _ = axis.points(np.array([cells[0]]), np.array([cells[0] + 1]))
    assert is_point.all()
    assert places[0] == (value if isinstance(column, sp.Real) else value - column.low)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.decimals(min_value="0.01", max_value="99.99", places=2), st.booleans())
def test_numbers_of_single_precision_are_round_too(number: object, is_negative: bool) -> None:
    """A price in a float of 32 bits is in the first cells of a range that begins at the price, and comes back as it."""
    value = -float(number) if is_negative else float(number)
    axis, (cell,) = cells_of(sp.Real(-100, 100), [float(np.float32(value))])
    held = [
        (low, high)
        for low, high in ranges_down_to(axis, cell)
        if high - low > 4000 and low <= cell < axis.ruler.pile_stops(low * ONE, high * ONE)[0]
    ]
    assert held, "the price begins no range"
    low, high = held[0]
    stop = axis.ruler.pile_stops(low * ONE, high * ONE)
    is_point, places, _ = axis.points(low * ONE, stop)
    assert is_point.all()
    assert np.float32(places[0]) == np.float32(value)
    assert places[0] == value


def test_double_precision_is_kept_where_ranges_are_short() -> None:
    """Below the slack of single precision ranges go on to be cut, at the numbers themselves, down to one cell."""
    axis, (cell,) = cells_of(sp.Real(0, 100), [99.9999999])
    *_, (low, high) = ranges_down_to(axis, cell)
    assert (low, high) == (cell, cell + 1)


MOMENTS = [
    (sp.Datetime("2020-01-01", "2030-01-01"), datetime(2024, 7, 1), 6),
    (sp.Datetime("2020-01-01", "2030-01-01"), datetime(2024, 7, 13, 9, 30), 22),
    (sp.Date("1900-01-01", "2100-01-01"), date(1970, 1, 1), 8),
    (sp.Time(), time(17, 30), 8),
]


@pytest.mark.parametrize(("column", "value", "most"), MOMENTS, ids=str)
def test_round_moments_are_where_ranges_begin(column: sp.Column, value: object, most: int) -> None:
    """First days, hours and halves of hours; rows of their cell come back at the moment itself."""
    axis, (cell,) = cells_of(column, [value])
    begins = [depth for depth, (low, high) in enumerate(ranges_down_to(axis, cell)) if low == cell and high - low > 1]
    assert min(begins) <= most
    is_point, places, length = axis.points(np.array([cell]), np.array([cell + 1]))
    assert (is_point.all(), length) == (True, 1.0)
    assert column._to_arrow(places).to_pylist() == [value]


def test_local_midnights_are_round() -> None:
    """Months of a zone begin at its own midnight, summer or winter."""
    zone = "Europe/Berlin"
    column = sp.Datetime("2021-01-01", "2022-01-01", timezone=zone)
    summer = datetime(2021, 6, 30, 22)  # UTC
    axis, (cell,) = cells_of(column, [pa.scalar(summer, pa.timestamp("us", "UTC")).as_py()])
    assert cell in axis.ruler.landmarks[-1]


def test_steps_too_many_for_cells_share_a_round_number_of_them() -> None:
    """Cents up to a thousand million: cells of fifty cents, around multiples of it."""
    axis = column_axis("v", sp.Real(0, 1e9, multiple_of=0.01))
    assert axis.unit == Fraction(1, 2)
    axis = column_axis("v", sp.Datetime("2020-01-01", "2030-01-01"))
    assert axis.unit == timedelta(milliseconds=1) / timedelta(microseconds=1)


def test_a_bound_that_is_a_power_of_two_units_away() -> None:
    """2^32 units and one more value: cells stay around multiples."""
    axis, cells = cells_of(sp.Real(0, 2**32), [0.0, 1.0, 5.0, 2.0**32])
    assert axis.unit == 1
    assert cells == [0, 1, 5, 2**32]
