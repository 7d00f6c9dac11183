"""Rows between marks of a ruler: what a tree asks for is what the cells of all rows say."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.counter import MarkCounter, Marks, cell_counters
from spinney.counting.counts import CellCounts
from spinney.errors import InputError
from spinney.grid.axes import ColumnAxis, column_axes
from spinney.grid.ruler import RootedRuler
from spinney.tables.engines.memory import axis_columns, count_cells
from spinney.tables.engines.stream import RuledCounts
from spinney.tables.frames import Table, open_table

N = 20_000
COLUMNS = {
    "real": sp.Real(-6, 6),
    "nullable": sp.Real(0, 1e6, nullable=True),
    "whole": sp.Integer(-(10**9), 10**9, nullable=True),
    "time": sp.Datetime("1999-01-01", "2030-01-01"),
}
FEW_CELLS = {"cents": sp.Real(0, 1_000, multiple_of="0.01")}


def some_rows(name: str) -> tuple[ColumnAxis, Table]:
    rng = np.random.default_rng(1)
    holes = rng.random(N) < 0.1
    values = {
        "real": np.where(holes, 0.0, rng.normal(0, 2, N)),
        "nullable": pa.array(np.round(np.exp(rng.normal(3, 3, N)), 2), mask=holes),
        "whole": pa.array(rng.integers(-(10**9), 10**9, N) // 1000 * 1000, mask=holes),
        "cents": np.round(rng.exponential(60, N).clip(0, 1_000), 2),
        "time": np.datetime64("2001-01-01", "us") + rng.integers(0, 10**15, N).astype("timedelta64[us]"),
    }[name]
    schema = sp.Schema({name: (COLUMNS | FEW_CELLS)[name]})
    return column_axes(schema)[name], open_table(pa.table({name: values}), schema)


def ruled(
    axis: ColumnAxis, table: Table, *, most_nodes: int, roots: tuple[int, ...] = (0,)
) -> tuple[RuledCounts, CellCounts, Marks, list[int]]:
    """The column between marks and by its cells, and how many rows were read again."""
    assert axis.ruler is not None
    marks = Marks(axis.lattice, RootedRuler(axis.ruler, np.array(roots)), most_nodes=most_nodes)
    run = MarkCounter(marks, n_rows=N, n_copies=2)
    columns = axis_columns(table, axis.lattice)
    run.add(columns, 0, 7_000)
    run.add(columns, 7_000, N)
    again: list[int] = []

    def read(is_wanted, n_rows):
        again.append(n_rows)
        return CellCounts.from_codes(axis.lattice, marks.codes_inside(columns[0], N, is_wanted))

    return RuledCounts(marks, run.numbers(), read), count_cells(table, axis.lattice), marks, again


def test_ranges_that_are_cut_where_a_pile_ends_are_read_with_the_others():
    """A cut may be a mark; that of its half is none, and must not have the column read a second time."""
    axis, table = some_rows("cents")
    counts, cells, marks, again = ruled(axis, table, most_nodes=40_000)
    low, high = marks.nodes, np.append(marks.nodes[1:], axis.ruler.n_cells)
    is_long = high - low > 2
    low, high = low[is_long], high[is_long]
    cuts = axis.ruler.cuts(low, high)
    assert np.isin(cuts, marks.first).any()
    assert not np.isin(cuts, marks.first).all()
    assert np.array_equal(counts.rows_below(cuts), cells.rows_below(cuts))
    halves = axis.ruler.cuts(cuts[high - cuts > 1], high[high - cuts > 1])
    assert np.array_equal(counts.rows_below(halves), cells.rows_below(halves))
    assert len(again) == 1


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("most_nodes", [0, 100, 5_000])
def test_every_question_has_the_answer_of_the_cells(name, most_nodes):
    """At marks, between them, at the ends of the axis and beyond."""
    axis, table = some_rows(name)
    counts, cells, marks, again = ruled(axis, table, most_nodes=most_nodes, roots=(0, 12_345))
    rng, n_cells = np.random.default_rng(2), 1 << axis.axis.bits
    assert np.array_equal(counts.rows_below(marks.first), cells.rows_below(marks.first))
    assert again == []
    for _ in range(2):
        asked = np.concatenate(
            [rng.integers(0, n_cells, 300), marks.first[::7], [0, n_cells - 1, n_cells, n_cells + 5]]
        )
        assert np.array_equal(counts.rows_below(asked), cells.rows_below(asked))
    assert again
    assert counts.true_total() == cells.true_total() == N


@pytest.mark.parametrize("name", COLUMNS)
def test_a_tree_asks_for_marks_down_to_one_level(name):
    """All cuts of the hierarchy, and piles of all its ranges, but for the last level: no row is read again."""
    axis, table = some_rows(name)
    counts, cells, marks, again = ruled(axis, table, most_nodes=2_000)
    ruler = axis.ruler
    assert ruler is not None
    first, stop = np.zeros(1, dtype=np.int64), np.array([ruler.n_cells])
    while True:
        asked = np.concatenate([first, stop, ruler.pile_stops(first, stop), stop[-1:] - 1])
        assert np.array_equal(counts.rows_below(asked), cells.rows_below(asked))
        is_cut = stop - first > 1
        if len(first) + is_cut.sum() > 2_000:
            break
        cut = ruler.cuts(first[is_cut], stop[is_cut])
        first = np.sort(np.concatenate([first, cut]))
        stop = np.append(first[1:], ruler.n_cells)
    assert again == []
    assert len(first) > 1_000
    assert np.isin(first, marks.nodes).all()


def test_ranges_without_rows_are_not_read():
    """Nothing can be counted there; and rows that were read are not read again."""
    axis, table = some_rows("time")
    counts, _, marks, again = ruled(axis, table, most_nodes=64)
    last = (1 << axis.axis.bits) - 2
    assert last not in marks.first
    assert counts.rows_below(np.array([last])) == N
    assert again == []
    inside = marks.nodes[20:23] + 1_000
    counts.rows_below(inside)
    counts.rows_below(inside + 5)
    assert len(again) == 1
    assert 0 < again[0] < N / 8


def test_other_rows_on_a_second_look_are_refused():
    axis, table = some_rows("real")
    counts, _, _, _ = ruled(axis, table, most_nodes=64)
    honest = counts._read_inside
    counts._read_inside = lambda is_wanted, n_rows: honest(np.roll(is_wanted, 2), n_rows)
    with pytest.raises(InputError, match="table changed while it was read"):
        counts.rows_below(np.array([3 << (axis.axis.bits - 3) | 12_345]))


def test_a_missing_value_is_refused_by_name():
    axis, _ = some_rows("real")
    table = open_table(pa.table({"real": [0.5, None]}), sp.Schema({"real": sp.Real(-6, 6)}))
    assert axis.ruler is not None
    marks = Marks(axis.lattice, RootedRuler(axis.ruler, np.zeros(1, dtype=np.int64)), most_nodes=8)
    with pytest.raises(InputError, match="column 'real' holds a missing"):
        MarkCounter(marks, n_rows=2, n_copies=1).add(axis_columns(table, axis.lattice), 0, 2)


@pytest.mark.parametrize("limit", [1 << 20, 1 << 24, 1 << 29])
def test_marks_take_a_part_of_the_limit(limit):
    """Of a table so large that codes do not fit, of four columns; whatever the number of rows."""
    axes = [some_rows(name)[0] for name in COLUMNS]
    lattices = [axis.lattice for axis in axes]
    rulers = [RootedRuler(axis.ruler, np.zeros(1, dtype=np.int64)) for axis in axes if axis.ruler is not None]
    options = {"n_workers": 2, "memory_limit": limit, "spill_folder": None}
    counters = cell_counters(lattices, n_rows=10**9, rulers=rulers, **options)
    assert all(isinstance(counter, MarkCounter) for counter in counters)
    assert sum(len(counter.marks) * (8 + 2 * 4) for counter in counters) <= limit // 4
    assert not any(isinstance(c, MarkCounter) for c in cell_counters(lattices, n_rows=100, rulers=rulers, **options))


def test_private_counts_show_nothing():
    axis, table = some_rows("real")
    counts = ruled(axis, table, most_nodes=8)[0]
    assert repr(counts) == "RuledCounts(sensitive)"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(counts)
