"""Codes, counts and boxes agree with their slow twins, impossible cells and codes of several words included."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.counting import sorting
from spinney.counting.counts import CellCounts
from spinney.counting.sorting import count_runs, merge_counted
from spinney.grid.codes import deinterleave, interleave, possible_nodes
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tree.kdtree import prefixes
from support.cell_counts import sort_codes
from support.slow_trees import axis_order, box_of, code_of, group_and_count, is_possible_node, pack, unpack
from support.strategies import MODEST, any_lattices, nodes, small_lattices, tables, wide_lattices


def as_cells(rows, lattice) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), lattice.n_axes)


def as_codes(numbers, n_bits, lattice) -> np.ndarray:
    return np.array([pack(number, n_bits, lattice) for number in numbers], dtype=np.uint64).reshape(-1, lattice.n_words)


def as_nodes(drawn, lattice) -> tuple[np.ndarray, np.ndarray]:
    codes = np.array([pack(prefix, depth, lattice) for depth, prefix in drawn], dtype=np.uint64)
    return codes.reshape(-1, lattice.n_words), np.array([depth for depth, _ in drawn])


@MODEST
@given(any_lattices())
def test_axis_order_is_cyclic(lattice) -> None:
    """Level by level, the lattice cuts the axis that going round the axes with bits left cuts."""
    assert [step.axis for step in lattice.order] == axis_order(lattice)
    assert len(lattice.order) == lattice.depth


@MODEST
@given(tables(any_lattices()))
def test_interleave_is_bit_by_bit_interleaving(drawn) -> None:
    """Codes have the bits of the cell numbers, axis after axis, most significant first, left-aligned."""
    lattice, rows = drawn
    codes = interleave(as_cells(rows, lattice), lattice)
    expected = [pack(code_of(row, lattice), lattice.depth, lattice) for row in rows]
    assert codes.tolist() == expected


@MODEST
@given(nodes(any_lattices()))
def test_deinterleave_gives_the_box_of_a_node(drawn) -> None:
    """First cell and number of cells along each axis are those of the box that halving gives."""
    lattice, listed = drawn
    first, size = deinterleave(*as_nodes(listed, lattice), lattice)
    boxes = [box_of(node, lattice) for node in listed]
    assert first.tolist() == [[cells.start for cells in box] for box in boxes]
    assert size.tolist() == [[len(cells) for cells in box] for box in boxes]


@MODEST
@given(tables(any_lattices()))
def test_deinterleave_undoes_interleave(drawn) -> None:
    """A code of full depth is the box of its one cell."""
    lattice, rows = drawn
    cells = as_cells(rows, lattice)
    first, size = deinterleave(interleave(cells, lattice), np.full(len(rows), lattice.depth), lattice)
    assert first.tolist() == cells.tolist()
    assert (size == 1).all()


@MODEST
@given(nodes(any_lattices()))
def test_possible_nodes_hold_a_possible_cell(drawn) -> None:
    """A node is possible if and only if some value or null lies in its box on every axis."""
    lattice, listed = drawn
    expected = [is_possible_node(node, lattice) for node in listed]
    assert possible_nodes(*as_nodes(listed, lattice), lattice).tolist() == expected


@MODEST
@given(small_lattices())
def test_number_of_possible_cells_is_the_product_over_axes(lattice) -> None:
    """Going through all codes of full depth finds as many possible ones as the axes allow together."""
    everything = [(lattice.depth, code) for code in range(2**lattice.depth)]
    possible = possible_nodes(*as_nodes(everything, lattice), lattice)
    assert possible.sum() == np.prod([axis.n_possible for axis in lattice.axes])
    assert lattice.is_full == possible.all()


@MODEST
@given(tables(any_lattices(), most_rows=30), st.booleans())
def test_sorting_and_counting_is_grouping(drawn, by_radix: bool) -> None:
    """Sorted codes and run lengths are what grouping rows one by one gives, by one thread and by buckets."""
    lattice, rows = drawn
    with mock.patch.object(sorting, "_SMALL_SORT", 1 if by_radix else 4096):
        ordered = sort_codes(interleave(as_cells(rows, lattice), lattice))
    flat = [unpack(words, lattice.depth) for words in ordered.tolist()]
    assert flat == sorted(code_of(row, lattice) for row in rows)

    codes, counts = count_runs(ordered)
    found = [unpack(words, lattice.depth) for words in codes.tolist()]
    assert list(zip(found, counts.tolist(), strict=True)) == group_and_count(rows, lattice)


@pytest.mark.parametrize("n_bits", [3, 10, 11, 37, 64])
@pytest.mark.parametrize("n_codes", [5000, 70_000])
def test_radix_sort_of_many_codes(n_bits: int, n_codes: int) -> None:
    """Below the size where buckets take over and above it, codes of any width come out in order and none is lost."""
    codes = np.random.default_rng(n_bits).integers(0, 2**n_bits, size=n_codes, dtype=np.uint64, endpoint=n_bits < 64)
    codes <<= np.uint64(64 - n_bits) if n_bits < 64 else np.uint64(0)
    expected = sorted(codes.tolist())
    assert sort_codes(codes[:, None].copy())[:, 0].tolist() == expected


@MODEST
@given(tables(any_lattices()), st.data())
def test_merging_counts_is_counting_both(drawn, data) -> None:
    """Two counted lists merge into the counts of both together, in order, whichever is empty."""
    lattice, rows = drawn
    cut = data.draw(st.integers(0, len(rows)))
    halves = [
        CellCounts.from_codes(lattice, interleave(as_cells(part, lattice), lattice))
        for part in (rows[:cut], rows[cut:])
    ]
    for left, right in (halves, halves[::-1]):
        codes, counts = merge_counted(*left.distinct(), *right.distinct())
        found = [unpack(words, lattice.depth) for words in codes.tolist()]
        assert list(zip(found, counts.tolist(), strict=True)) == group_and_count(rows, lattice)


@MODEST
@given(tables(wide_lattices()), st.data())
def test_prefixes_keep_the_leading_bits(drawn, data) -> None:
    """The node of depth k that holds a code is its first k bits, across word boundaries too."""
    lattice, rows = drawn
    depth = data.draw(st.one_of(st.integers(0, lattice.depth), st.sampled_from([63, 64, 65])))
    numbers = [code_of(row, lattice) for row in rows]
    codes = as_codes(numbers, lattice.depth, lattice)
    expected = [pack(number >> (lattice.depth - depth), depth, lattice) for number in numbers]
    assert prefixes(codes, np.arange(len(rows)), depth).tolist() == expected


@MODEST
@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 1), st.sampled_from([7, 8, 9])), min_size=1, max_size=30))
def test_engine_counts_what_a_loop_counts(rows) -> None:
    """The in-memory engine gives the group-by count of a table, out-of-bounds values moved to the edge."""
    schema = sp.Schema({"i": sp.Integer(0, 6), "b": sp.Boolean(), "c": sp.Category([9, 8, 7])})
    lattice = tree_lattice(schema)
    counted = count_cells(open_table(np.array(rows), schema), lattice)
    cells = Counter((min(max(i, 0), 6), b, 9 - c) for i, b, c in rows)
    codes, n_rows = counted.distinct()
    found = [unpack(words, lattice.depth) for words in codes.tolist()]
    assert dict(zip(found, n_rows.tolist(), strict=True)) == {
        code_of(cell, lattice): count for cell, count in cells.items()
    }
