"""Axes with pieces: which columns have them, where they are cut, and what their cells are."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.counts import AxisCells
from spinney.grid.axes import joint_lattice
from spinney.grid.codes import bit_worths, deinterleave, interleave, possible_nodes
from spinney.grid.lattice import Axis, Lattice, tree_lattice
from spinney.grid.pieces import behind_points, in_points, piece_table, place_table, to_places
from spinney.tables.frames import open_table

AMOUNT = sp.Real(0, 1e6)
BALANCE = sp.Integer(-1000, 10**7, nullable=True)
MOMENT = sp.Datetime("1900-01-01T00:00:00", "2099-12-31T23:59:59")


def axis_of(column: sp.Column, n_columns: int = 1) -> Axis:
    others = {f"other{i}": sp.Real(0, 1) for i in range(n_columns - 1)}
    return joint_lattice(sp.Schema({"v": column, **others})).axes[0]


def cells_of(column: sp.Column, values: pa.Array) -> np.ndarray:
    opened = open_table(pa.table({"v": values}), sp.Schema({"v": column}))
    cells = np.empty(len(values), dtype=np.int64)
    assert AxisCells(opened.physical("v"), axis_of(column)).fill(0, len(values), cells) == 0
    return cells


@pytest.mark.parametrize(
    "column",
    [AMOUNT, BALANCE, MOMENT, sp.Date("1900-01-01", "2099-12-31"), sp.Real(-2, 100), sp.Real(0, 5, multiple_of=0.01)],
)
def test_what_spans_decades_or_centuries_has_pieces(column) -> None:
    """Amounts, whole numbers, numbers in steps, dates and datetimes."""
    assert axis_of(column).pieces is not None


@pytest.mark.parametrize(
    "column",
    [
        sp.Real(0, 1),
        sp.Real(-700, 900),
        sp.Real(-74.3, -73.7),
        sp.Real(-180, 180),
        sp.Real(0, 1e6, bits=20),
        sp.Integer(0, 255),
        sp.Integer(1900, 2100, bits=6),
        sp.Integer(10_000, 20_000),
        sp.Time(),
        sp.Category(["a", "b"]),
    ],
)
def test_measurements_and_stated_bits_have_even_cells(column) -> None:
    """What looks like a score or a coordinate, and what the schema gives bits, has the axis that it always had."""
    schema = sp.Schema({"v": column})
    assert joint_lattice(schema) == tree_lattice(schema)


@pytest.mark.parametrize("column", [AMOUNT, BALANCE, MOMENT])
@pytest.mark.parametrize("n_columns", [1, 8])
def test_pieces_are_nodes_of_the_tree_and_make_up_the_axis(column, n_columns) -> None:
    """Every piece is a power of two of cells at a multiple of its length, and none is without fine cells."""
    pieces = axis_of(column, n_columns).pieces
    table = piece_table(pieces)
    assert (table.widths > 0).all()
    assert table.widths.sum() == pieces.n_fine
    assert table.lengths.sum() == pieces.n_cells
    assert (table.slots % table.lengths == 0).all()
    assert (table.lengths & (table.lengths - 1) == 0).all()


def test_numbers_are_cut_at_round_ones() -> None:
    """A bound of a million leaves room for the decades below: all of 0.1, 1, ... 100,000 are points of their own."""
    pieces = axis_of(AMOUNT).pieces
    points = {Fraction(point - pieces.zero) * pieces.unit for point in pieces.points if point >= 0}
    assert {0, Fraction(1, 10), 1, 10, 100, 1000, 10_000, 50_000, 100_000, 500_000} <= points


def test_calendars_are_cut_at_the_beginnings_of_years_and_quarters() -> None:
    """Two hundred years have 128 pieces, none with a point."""
    axis = axis_of(MOMENT)
    pieces = axis.pieces
    days = [datetime(1970, 1, 1) + timedelta(microseconds=int(axis.low) + s * axis.step) for s in pieces.starts]
    assert len(days) == 128
    assert {(day.month, day.day, day.hour) for day in days} <= {(month, 1, 0) for month in (1, 4, 7, 10)}
    assert set(pieces.points) == {-1}


def test_zero_lies_high_up_in_the_hierarchy() -> None:
    """Exact zeros are a node of a few bits, whatever the bounds and however many columns there are."""
    for column in (AMOUNT, BALANCE, sp.Integer(0, 10**9)):
        for n_columns in (1, 8):
            pieces = axis_of(column, n_columns).pieces
            table = piece_table(pieces)
            (zero,) = np.flatnonzero(table.points == pieces.zero)
            assert pieces.n_cells / table.lengths[zero] <= 2**7


def test_cells_follow_the_order_of_values() -> None:
    """Cells never fall as values rise, and a round number and the floats beside it share the cell of its point."""
    values = np.sort(np.random.default_rng(0).pareto(0.3, 5000).clip(0, 1e6))
    cells = cells_of(AMOUNT, pa.array(values))
    assert (np.diff(cells) >= 0).all()
    near = [np.float32(0.3).item(), 0.3, np.nextafter(0.3, 1)]
    assert len(set(cells_of(AMOUNT, pa.array([*near])).tolist())) == 1
    assert cells_of(AMOUNT, pa.array([0.31]))[0] > cells_of(AMOUNT, pa.array([0.3]))[0]


def test_nulls_and_values_outside_have_their_cells() -> None:
    """Null is the cell of the top bit; what lies outside is moved to the bounds."""
    axis = axis_of(BALANCE)
    cells = cells_of(BALANCE, pa.array([None, -(10**9), -1000, 10**9, 10**7], pa.int64()))
    assert cells[0] == axis.null_cell
    assert cells[1] == cells[2] == 0
    assert cells[3] == cells[4] <= axis.last


def test_behind_a_point_no_row_can_be() -> None:
    """Rows of a point lie in the first of its cells, so nodes behind it are impossible, and no leaf of it is cut on."""
    lattice = joint_lattice(sp.Schema({"v": AMOUNT}))
    pieces = lattice.axes[0].pieces
    table = piece_table(pieces)
    point = int(np.flatnonzero(table.is_point)[3])
    slot, length = int(table.slots[point]), int(table.lengths[point])
    depth = lattice.depth - (length.bit_length() - 1) + 1
    codes = interleave(np.array([[slot], [slot + length // 2]]), lattice)
    assert possible_nodes(codes, np.array([depth, depth]), lattice).tolist() == [True, False]
    start, stop = np.array([slot, slot + length // 2]), np.array([slot + length // 2, slot + length])
    assert in_points(pieces, start, stop).all()
    assert behind_points(pieces, start, stop).tolist() == [False, True]
    assert lattice.axes[0].n_possible == pieces.n_possible < 1 << lattice.depth


def test_places_of_cells_are_sums_over_their_bits() -> None:
    """What moments add up bit by bit is the place of the cell's own node, of points and of all else."""
    lattice = Lattice((axis_of(BALANCE),))
    axis = lattice.axes[0]
    table = piece_table(axis.pieces)
    cells = np.concatenate([table.slots, (table.slots + table.lengths - 1)[~table.is_point]])
    codes = interleave(cells[:, None], lattice)
    bits = (codes[:, :1] >> (63 - np.arange(lattice.depth)).astype(np.uint64)).astype(np.int64) & 1
    first, size = deinterleave(codes, np.full(len(codes), lattice.depth), lattice)
    places, _ = to_places(axis.pieces, first[:, 0], size[:, 0])
    np.testing.assert_array_equal(bits @ bit_worths(lattice), places)


def test_points_take_up_no_place() -> None:
    """In places the pieces behind points fill their nodes."""
    pieces = axis_of(AMOUNT).pieces
    table = place_table(pieces)
    assert table.lengths.sum() == pieces.n_cells
    assert (table.lengths >= pieces.piece_length).all()
    assert len(table.slots) < len(pieces.slots)


def test_the_first_bits_of_a_calendar_lead() -> None:
    """Null and the first two bits of a date come before the first round; all bits come once, in order."""
    lattice = joint_lattice(sp.Schema({"v": AMOUNT, "day": sp.Date("1900-01-01", "2099-12-31", nullable=True)}))
    assert [tuple(step) for step in lattice.order[:6]] == [(1, 0), (1, 1), (1, 2), (0, 0), (1, 3), (0, 1)]
    for index, axis in enumerate(lattice.axes):
        assert [step.bit for step in lattice.order if step.axis == index] == list(range(axis.bits))
