"""Leaf moments: true steps meet their twin, leaves tile the lattice, one row moves them by no more than is paid for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.grid.codes import byte_tables, interleave
from spinney.grid.lattice import tree_lattice
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree import moments
from spinney.tree.bins import leaf_cells
from spinney.tree.moments import release_moments
from support.goodness_of_fit import ACCEPT, REJECT
from support.handmade_leaves import (
    Q,
    all_trees,
    counts_of_rows,
    moments_plan,
    nodes_of,
    steps_on,
    total_change,
    without_leaf_noise,
)
from support.sabotaged_moments import (
    CAGES,
    Check,
    Mechanism,
    decision_law,
    offsets_in_plain_python,
    within_the_cube,
    worst_change,
)
from support.slow_trees import box_of, is_possible_cell, is_possible_node, leaf_steps, measured_cells, pack
from support.strategies import MODEST, any_lattices, nodes, small_lattices, tables

FEW = settings(MODEST, max_examples=25)


def grown_at_random(rows, lattice, seed: int, chances: tuple[float, float] = (0.9, 0.4)):
    """A release without leaf noise whose nodes split by a coin: one for nodes with rows, one for those without."""
    rng = np.random.default_rng(seed)
    counts = counts_of_rows(rows, lattice)
    plan = moments_plan((0, lattice.depth)) if lattice.depth else moments_plan((0, 0))
    occupied = [np.array([bool(rows)])]
    children = moments._children

    def watch(*arguments):
        made = children(*arguments)
        occupied[0] = made[2] > made[1]
        return made

    def toss(scores, rate, entropy):
        splits = rng.random(len(scores)) < np.where(occupied[0], *chances)
        return np.where(splits, plan.cutoff + 1, plan.cutoff)

    with (
        without_leaf_noise(),
        mock.patch.object(moments, "_children", watch),
        mock.patch.object(moments, "add_noise", toss),
    ):
        return release_moments(counts, plan=plan, ledger=Ledger(), entropy=UnsafeSeededEntropy(0))


# ------------------------------------------------------------------------------------------------ true steps


@FEW
@given(tables(any_lattices()), st.integers(0, 2**32))
def test_true_steps_are_what_a_loop_over_rows_gives(drawn, seed: int) -> None:
    """Count and offset sums of every leaf, categories, nulls, cubes and codes of several words included."""
    lattice, rows = drawn
    released = grown_at_random(rows, lattice, seed)
    for node, steps in zip(nodes_of(released), released.noisy_steps.tolist(), strict=True):
        assert steps == leaf_steps(rows, node, lattice, Q), node
    assert released.noisy_steps[:, 0].sum() == Q * len(rows)


def test_true_steps_of_long_axes() -> None:
    """On axes of many cells, not a power of two among them, offsets are rounded to the nearest step."""
    schema = sp.Schema(
        {"x": sp.Real(0, 1, bits=20), "n": sp.Integer(0, 99_999), "d": sp.Date("2000-01-01", "2000-12-30")}
    )
    lattice = tree_lattice(schema)
    rng = np.random.default_rng(3)
    rows = [tuple(int(rng.integers(axis.first, axis.last + 1)) for axis in lattice.axes) for _ in range(60)]
    for tree in ([(0, 0)], [(3, i) for i in range(8)]):
        assert steps_on(tree, rows, lattice).tolist() == [_sums(rows, node, lattice) for node in tree]


def _sums(rows, node, lattice) -> list[int]:
    """Like the twin, for ordered axes without nulls, without listing their cells."""
    box = box_of(node, lattice)
    steps = [0] * (1 + lattice.n_axes)
    for row in rows:
        if all(cell in cells for cell, cells in zip(row, box, strict=True)):
            steps[0] += Q
            for index, (cells, axis) in enumerate(zip(box, lattice.axes, strict=True)):
                stop = min(cells.stop, axis.last + 1)
                steps[1 + index] += round(Q * (2 * (row[index] - cells.start) + 1) / (stop - cells.start)) - Q
    return steps


@FEW
@given(tables(any_lattices()))
def test_bytes_of_a_code_add_up_to_its_cells(drawn) -> None:
    """Byte tables undo interleaving, one look-up a byte."""
    lattice, rows = drawn
    tables_, cells = byte_tables(lattice), np.array(rows, dtype=np.int64).reshape(len(rows), lattice.n_axes)
    for code, row in zip(interleave(cells, lattice), cells.tolist(), strict=True):
        data = code.astype(">u8").tobytes()[: len(tables_)]
        assert sum(tables_[i, byte] for i, byte in enumerate(data)).tolist() == row


@FEW
@given(nodes(any_lattices()))
def test_leaf_cells_are_the_possible_ones(drawn) -> None:
    """First cell, number of cells and whether there is an offset, as listing the cells tells."""
    lattice, listed = drawn
    listed = [node for node in listed if is_possible_node(node, lattice)]
    codes = np.array([pack(prefix, depth, lattice) for depth, prefix in listed], dtype=np.uint64)
    depths = np.array([depth for depth, _ in listed], dtype=np.int64)
    first, size, is_measured = leaf_cells(codes.reshape(-1, lattice.n_words), depths, lattice)
    for i, node in enumerate(listed):
        for index, cells in enumerate(measured_cells(node, lattice)):
            assert is_measured[i, index] == (cells is not None)
            if cells is not None:
                assert (first[i, index], size[i, index]) == (cells[0], len(cells))


# ------------------------------------------------------------------------------------------------ leaves


@FEW
@given(tables(small_lattices()), st.integers(0, 2**32))
def test_leaves_tile_what_is_possible(drawn, seed: int) -> None:
    """Every possible cell lies in exactly one leaf, and every leaf holds a possible cell; codes are in order."""
    lattice, rows = drawn
    released = grown_at_random(rows, lattice, seed)
    found: Counter[tuple[int, ...]] = Counter()
    for node in nodes_of(released):
        cells = [
            [cell for cell in cells if is_possible_cell(cell, axis)]
            for cells, axis in zip(box_of(node, lattice), lattice.axes, strict=True)
        ]
        assert all(cells)
        found.update(product(*cells))
    assert set(found.values()) == {1}
    assert len(found) == np.prod([axis.n_possible for axis in lattice.axes])
    assert released.codes.tolist() == sorted(released.codes.tolist())


def test_leaves_follow_the_law_of_their_decisions() -> None:
    """Node by node through empty space: sets of leaves have their exact chances, and not those of another cutoff."""
    assert decision_law(release_moments) > ACCEPT
    assert decision_law(release_moments, replace(moments_plan((1, 3)), cutoff=1)) < REJECT


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
def test_a_table_without_rows_has_leaves_too(unit: Unit) -> None:
    """With no row at all the walk still ends in leaves, all of them with noise."""
    lattice = tree_lattice(sp.Schema({"x": sp.Real(0, 1), "c": sp.Category(["a", "b", "c"])}))
    counts = counts_of_rows([], lattice)
    plan, ledger = moments_plan((4, lattice.depth), unit=unit), Ledger(unit=unit)
    released = release_moments(counts, plan=plan, ledger=ledger, entropy=UnsafeSeededEntropy(1))
    assert len(released) >= 12
    assert (released.noisy_steps[:, 0] != 0).all()
    assert ledger.spent == plan.epsilon


# ------------------------------------------------------------------------------------------------ sensitivity

TINY = {
    "integers": {"i": sp.Integer(0, 4)},
    "reals": {"x": sp.Real(0, 1, bits=2), "y": sp.Real(0, 1, bits=1)},
    "nulls": {"i": sp.Integer(0, 2, nullable=True), "c": sp.Boolean()},
    "categories": {"c": sp.Category(["a", "b", "c"]), "x": sp.Real(0, 1, bits=2)},
}


@pytest.mark.parametrize("columns", TINY.values(), ids=TINY)
def test_one_row_moves_all_leaves_together_by_one_vector(columns) -> None:
    """For every tree and all neighbours the sum of sup norms is at most Q (one row more) or 2 Q (another row).

    Both bounds are reached, so none of nine tenths would do.
    """
    lattice = tree_lattice(sp.Schema(columns))
    base = [tuple(axis.last for axis in lattice.axes), tuple(axis.first for axis in lattice.axes)]
    cells = list(product(*([c for c in range(2**axis.bits) if is_possible_cell(c, axis)] for axis in lattice.axes)))
    most = {"added": 0, "replaced": 0, "inside": 0}
    for tree in all_trees(lattice, min(lattice.depth, 3)):
        without, *withs = (steps_on(tree, table, lattice) for table in [base, *([*base, cell] for cell in cells)])
        most["added"] = max(most["added"], *(total_change(without, other) for other in withs))
        for one, other in combinations(withs, 2):
            change = total_change(one, other)
            kind = "inside" if (one[:, 0] == other[:, 0]).all() else "replaced"
            most[kind] = max(most[kind], change)
    assert most["added"] == Q
    assert most["replaced"] == 2 * Q
    assert 0 < most["inside"] < 2 * Q
    assert not most["replaced"] <= 0.9 * 2 * Q


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
def test_the_rate_pays_for_the_worst_neighbour(unit: Unit) -> None:
    """Rate per step times the largest change over all neighbours is the leaves' epsilon, reached but not passed."""
    plan = moments_plan((1, 1), unit=unit)
    lattice = tree_lattice(sp.Schema({"x": sp.Real(0, 1, bits=3)}))
    entropy = UnsafeSeededEntropy(0)
    released = release_moments(counts_of_rows([(1,)], lattice), plan=plan, ledger=Ledger(unit=unit), entropy=entropy)
    assert released.rate * worst_change(release_moments, unit) == plan.count_epsilon


# ------------------------------------------------------------------------------------------------ zoo


@cache
def _of_the_real_one(check: Check) -> float:
    return check(release_moments)


@pytest.mark.parametrize(("check", "sabotaged"), CAGES.values(), ids=CAGES)
def test_sabotage_is_caught(check: Check, sabotaged: Mechanism) -> None:
    """The check accepts `release_moments` and rejects the same mechanism with one mistake in it."""
    assert _of_the_real_one(check) > ACCEPT
    assert check(sabotaged) < REJECT


def test_plain_python_offsets_are_sound() -> None:
    """The stand-in that offsets are sabotaged with passes where its formula is the right one."""
    assert within_the_cube(offsets_in_plain_python) > ACCEPT
