"""Cell codes: interleaving, sorting and counting against plain Python, on narrow and wide lattices."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.counting.sorting import count_runs, merge_counted
from spinney.grid.codes import deinterleave, interleave, possible_nodes
from spinney.grid.lattice import tree_lattice
from support.cell_counts import same_cells, sort_codes
from support.slow_trees import box_of, code_of, is_possible_node, pack, unpack

LATTICES = {
    "one column": tree_lattice(sp.Schema({"a": sp.Real(0, 1, bits=20)})),
    "exactly 64 bits": tree_lattice(sp.Schema({f"c{i}": sp.Real(0, 1, bits=16) for i in range(4)})),
    "three words": tree_lattice(sp.Schema({f"c{i}": sp.Real(0, 1, bits=5 + i % 3) for i in range(29)})),
    "deep columns": tree_lattice(sp.Schema({f"c{i}": sp.Real(0, 1, bits=32) for i in range(3)})),
    "gaps and nulls": tree_lattice(
        sp.Schema({"a": sp.Category(range(5)), "b": sp.Real(0, 1, bits=3, nullable=True), "c": sp.Integer(0, 9)})
    ),
    "no bits": tree_lattice(sp.Schema({"a": sp.Category(["only"])})),
}
each_lattice = pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)


def random_cells(lattice, n, seed=0):
    """Cells that rows can have, nulls included."""
    rng = np.random.default_rng(seed)
    columns = []
    for axis in lattice.axes:
        column = rng.integers(axis.first, axis.last + 1, n)
        columns.append(np.where(rng.random(n) < 0.2, axis.null_cell, column) if axis.nullable else column)
    return np.stack(columns, axis=1)


@each_lattice
def test_codes_are_interleaved_bits(lattice):
    """The table-driven code of a row is the one that taking bits in turn gives."""
    cells = random_cells(lattice, 50)
    codes = interleave(cells, lattice)
    assert codes.shape == (50, lattice.n_words)
    expected = [pack(code_of(tuple(row), lattice), lattice.depth, lattice) for row in cells.tolist()]
    assert codes.tolist() == expected


@each_lattice
def test_deinterleaving_a_full_code_gives_the_cells_back(lattice):
    """At full depth every node is one cell."""
    cells = random_cells(lattice, 50)
    first, size = deinterleave(interleave(cells, lattice), np.full(50, lattice.depth), lattice)
    assert np.array_equal(first, cells)
    assert (size == 1).all()


@each_lattice
def test_prefixes_are_boxes(lattice):
    """A prefix of any depth is the box that halving along the axes in turn gives."""
    rng = np.random.default_rng(1)
    codes = interleave(random_cells(lattice, 20), lattice)
    depths = rng.integers(0, lattice.depth + 1, 20)
    nodes = [(int(d), unpack(code.tolist(), int(d))) for code, d in zip(codes, depths, strict=True)]
    cut = np.array([pack(prefix, depth, lattice) for depth, prefix in nodes], dtype=np.uint64)
    first, size = deinterleave(cut, depths, lattice)
    for row, node in enumerate(nodes):
        box = box_of(node, lattice)
        assert first[row].tolist() == [side.start for side in box]
        assert size[row].tolist() == [len(side) for side in box]


def test_impossible_nodes_are_recognised():
    """Every node of a small lattice with gaps: possible where some row can be, by enumeration."""
    lattice = LATTICES["gaps and nulls"]
    for depth in range(lattice.depth + 1):
        codes = np.array([pack(prefix, depth, lattice) for prefix in range(2**depth)], dtype=np.uint64)
        found = possible_nodes(codes, np.full(2**depth, depth), lattice)
        assert found.tolist() == [is_possible_node((depth, prefix), lattice) for prefix in range(2**depth)]
    assert found.sum() == 5 * (8 + 1) * 10


@pytest.mark.parametrize("n", [0, 1, 10, 5000])
@pytest.mark.parametrize("n_words", [1, 2])
def test_sorting_and_counting(n, n_words):
    """Sorted runs with counts, on both sides of the switch between the two sorts."""
    rng = np.random.default_rng(n)
    codes = rng.integers(0, 2**64, (max(1, n // 3), n_words), dtype=np.uint64)[rng.integers(0, max(1, n // 3), n)]
    expected = sorted(Counter(map(tuple, codes.tolist())).items())
    distinct, counts = count_runs(sort_codes(codes.copy()))
    assert [(tuple(code), count) for code, count in zip(distinct.tolist(), counts.tolist(), strict=True)] == expected


@pytest.mark.parametrize("n_words", [1, 3])
def test_merging_counts_is_counting_together(n_words):
    """Two counted tables merged are the counts of both laid end to end."""
    lattice = LATTICES["one column"] if n_words == 1 else LATTICES["three words"]
    cells = random_cells(lattice, 300) & 3
    codes = interleave(cells, lattice)
    left, right = (CellCounts.from_codes(lattice, part.copy()) for part in (codes[:100], codes[100:]))
    whole = CellCounts.from_codes(lattice, codes.copy())
    merged = CellCounts(lattice, *merge_counted(*left.distinct(), *right.distinct()))
    assert same_cells(merged, whole)
    nothing = codes[:0], np.empty(0, dtype=np.int64)
    same_codes, same_counts = merge_counted(whole.true_codes, whole.true_counts, *nothing)
    assert np.array_equal(same_codes, whole.true_codes)
    assert np.array_equal(same_counts, whole.true_counts)


def test_counts_show_nothing_and_cannot_be_copied_out():
    """True counts have no telling repr and refuse to be pickled or copied."""
    lattice = LATTICES["one column"]
    counts = CellCounts.from_codes(lattice, interleave(random_cells(lattice, 7), lattice))
    assert repr(counts) == str(counts) == "CellCounts(sensitive)"
    for copy_out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            copy_out(counts)
    assert not hasattr(counts, "__dict__")
