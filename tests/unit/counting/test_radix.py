"""Ordering, counting, sums over blocks and sums of bits, each against a plain twin."""

from __future__ import annotations

import numpy as np
import pytest

import spinney as sp
from spinney.counting import sorting
from spinney.counting.counts import CellCounts
from spinney.counting.sorting import count_runs, counts_type, first_above, merge_counted
from spinney.grid.codes import add_axis, count_bits, expand_axis, expansions, spread_tables
from spinney.grid.lattice import Axis, Lattice, tree_lattice
from support.cell_counts import as_rows, sort_codes

N_MANY = 600_000  # more than a part that is scattered at once
KINDS = ["scattered", "all alike", "few values", "one dense corner", "one bit apart", "sorted", "reversed"]


def made(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2**64, N_MANY, dtype=np.uint64)
    match kind:
        case "scattered":
            return codes
        case "all alike":
            return np.full(N_MANY, 7 << 40, dtype=np.uint64)
        case "few values":
            return codes[rng.integers(0, 5, N_MANY)]
        case "one dense corner":  # deep splits: the first 40 bits say nothing
            return codes >> np.uint64(40)
        case "one bit apart":
            return codes & np.uint64(1)
        case _:
            return np.sort(codes)[:: 1 if kind == "sorted" else -1].copy()


@pytest.mark.parametrize("kind", KINDS)
def test_many_codes_are_sorted_and_counted(kind: str) -> None:
    """Whatever the codes look like, they come out in order, and none is lost."""
    codes = made(kind)
    distinct, n_times = np.unique(codes, return_counts=True)
    ordered = sort_codes(codes[:, None])
    assert np.array_equal(ordered[:, 0], np.sort(codes))
    found, counts = count_runs(ordered)
    assert np.array_equal(found[:, 0], distinct)
    assert np.array_equal(counts, n_times)
    assert counts.dtype == np.int32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("largest", "many"), [(1 << 20, 1 << 24), (1 << 20, 0), (1 << 14, 1 << 24), (1 << 14, 0)])
def test_rows_are_ordered_as_far_as_a_walk_goes(
    kind: str, largest: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down a path of nodes, halves begin where those of sorted codes do; a second walk elsewhere finds its own."""
    monkeypatch.setattr(sorting, "_LARGEST_RANGE", largest)
    monkeypatch.setattr(sorting, "_MANY", many)
    lattice = tree_lattice(sp.Schema({f"x{i}": sp.Real(0, 1, bits=16) for i in range(4)}))
    codes = made(kind)
    rows, ordered = as_rows(lattice, codes[:, None]), np.sort(codes)
    for is_left in (True, False):
        start, stop = np.array([0]), np.array([len(codes)])
        for depth in range(lattice.depth):
            middle = rows.halves(start, stop, depth)
            bits = ordered[start[0] : stop[0]] >> np.uint64(63 - depth) & np.uint64(1)
            assert middle[0] - start[0] == np.count_nonzero(bits == 0)
            if stop[0] - middle[0] > 0 and (middle[0] == start[0] or not is_left):
                start = middle
            else:
                stop = middle
    assert np.array_equal(np.sort(rows.true_codes[:, 0]), ordered), "no row is lost"


def test_few_cells_do_not_hold_the_memory_of_many_rows() -> None:
    """Where rows repeat their cells, what is kept is as small as the cells."""
    found, counts = count_runs(sort_codes(made("few values")[:, None]))
    assert found.base is None or found.base.nbytes < 1000
    assert counts.base is None or counts.base.nbytes < 1000


def test_counts_widen_only_where_they_must() -> None:
    """Tables of 2^31 rows need wide counts; merging narrow with wide gives wide ones."""
    assert counts_type(2**31 - 1) == np.int32
    assert counts_type(2**31) == np.int64
    codes = np.arange(3, dtype=np.uint64)[:, None]
    wide = np.full(3, 2**31, dtype=np.int64)
    merged, counts = merge_counted(codes, np.ones(3, np.int32), codes, wide)
    assert np.array_equal(merged, codes)
    assert counts.tolist() == [2**31 + 1] * 3


@pytest.mark.parametrize("n_cells", [0, 1, 63, 64, 65, 1000])
def test_rows_between_positions(n_cells: int) -> None:
    """Sums over any range of cells are differences of prefix sums."""
    rng = np.random.default_rng(n_cells)
    lattice = tree_lattice(sp.Schema({"a": sp.Real(0, 1)}))
    true_counts = rng.integers(1, 9, n_cells).astype(np.int32)
    counts = CellCounts(lattice, np.arange(n_cells, dtype=np.uint64)[:, None], true_counts)
    before = np.concatenate([[0], np.cumsum(true_counts)])
    start = rng.integers(0, n_cells + 1, 200)
    stop = np.minimum(start + rng.integers(0, 200, 200), n_cells)
    assert np.array_equal(counts.rows_between(start, stop), before[stop] - before[start])


def test_first_code_above_a_bound() -> None:
    """Bisection over codes of several words, first word first."""
    codes = np.array([[0, 5], [1, 2], [1, 9], [4, 0]], dtype=np.uint64)
    for bound in ([0, 4], [0, 5], [1, 2], [1, 3], [4, 0], [5, 0]):
        expected = sum(code <= bound for code in codes.tolist())
        assert first_above(codes, np.array(bound, dtype=np.uint64)) == expected


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 31, 32, 250])
def test_bits_are_counted(n: int) -> None:
    """How many words have each bit, by adding up sixteen at a time."""
    words = np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)
    assert count_bits(words).tolist() == [sum(word >> bit & 1 for word in words.tolist()) for bit in range(64)]


@pytest.mark.parametrize(
    "schema",
    [
        sp.Schema({"a": sp.Real(0, 1)}),
        sp.Schema({f"x{i}": sp.Real(0, 1) for i in range(5)}),
        sp.Schema({"a": sp.Real(0, 1, nullable=True), "b": sp.Integer(0, 10), "c": sp.Boolean()}),
    ],
)
def test_expanding_bits_is_looking_them_up(schema: sp.Schema) -> None:
    """Moving bits by masks puts them where the tables say."""
    lattice = tree_lattice(schema)
    rng = np.random.default_rng(0)
    by_masks, by_tables = np.zeros(1000, np.uint64), np.zeros((1000, 1), np.uint64)
    for axis, masks, table in zip(lattice.axes, expansions(lattice), spread_tables(lattice), strict=True):
        cells = rng.integers(0, 1 << axis.bits, 1000)
        expand_axis(cells, masks, by_masks)
        add_axis(cells, table, by_tables)
    assert np.array_equal(by_masks, by_tables[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_before_cells_are_counted(kind: str) -> None:
    """Of rows in some order and of counted cells alike, at occupied cells, beside them and beyond the end."""
    bits = 40
    cells = (made(kind) >> np.uint64(64 - bits)).astype(np.int64)
    lattice = Lattice((Axis("v", "integer", bits, 0, 2**bits - 1, high=2**bits - 1),))
    codes = cells.astype(np.uint64)[:, None] << np.uint64(64 - bits)
    in_order = np.sort(cells)
    some = in_order[:: N_MANY // 50]
    probes = np.concatenate([some, some + 1, np.maximum(some - 1, 0), [0, 2**bits]])
    expected = np.searchsorted(in_order, probes)
    for n_rows in (N_MANY, 1000):
        few = codes[:n_rows]
        if n_rows < N_MANY:
            expected = np.searchsorted(np.sort(cells[:n_rows]), probes)
        rows = CellCounts.of_rows(lattice, sorting.RadixBuckets.of(few.copy()))
        assert np.array_equal(rows.rows_below(probes), expected)
        assert np.array_equal(rows.rows_below(probes), expected)
        assert np.array_equal(CellCounts.from_codes(lattice, few.copy()).rows_below(probes), expected)
        again, n_times = rows.distinct()
        assert (n_times.sum(), len(again)) == (n_rows, len(np.unique(cells[:n_rows])))
