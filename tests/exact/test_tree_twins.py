"""Without noise the mechanisms are plain algorithms, and agree with the recursions that the paper prints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.counting.counts import CellCounts
from spinney.grid.codes import interleave
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree import kdtree
from spinney.tree.kdtree import release_grid, release_tree
from spinney.tree.plan import SplitPlan
from support.cell_counts import as_rows
from support.slow_trees import enumerated_grid, recursive_binning, split_rule, unpack
from support.strategies import MODEST, any_lattices, small_lattices, tables

# Noise of rate 1000 is zero except with chance e^-1000: a release at this epsilon is one without noise.
LOUD = Fraction(2000)


def counted(rows, lattice, form=CellCounts.from_codes) -> CellCounts:
    cells = np.array(rows, dtype=np.int64).reshape(len(rows), lattice.n_axes)
    return form(lattice, interleave(cells, lattice))


@st.composite
def plans(draw: st.DrawFn, lattice):
    """Any split plan on a lattice, calibrated or not: without noise only its rule matters."""
    max_depth = draw(st.integers(0, min(lattice.depth, 80)))
    fixed_depth = draw(st.integers(0, min(max_depth, 9)))
    return SplitPlan(
        rule=draw(st.sampled_from(["paper", "privtree"])),
        unit=Unit.REPLACE_ONE,
        fixed_depth=fixed_depth,
        max_depth=max_depth,
        count_epsilon=LOUD,
        threshold=draw(st.integers(1, 3)),
        decision_epsilon=LOUD,
        decision_rate=LOUD / 2,
        cutoff=draw(st.integers(0, 4)),
        decay=draw(st.integers(1, 2)),
    )


def named(codes, depths) -> list[tuple[int, int]]:
    return [(depth, unpack(words, depth)) for words, depth in zip(codes.tolist(), depths.tolist(), strict=True)]


@MODEST
@given(tables(any_lattices()), st.data())
def test_growth_is_recursive_binning(drawn, data) -> None:
    """Leaves, their counts and the roots of empty space are those of Algorithm 3 on points in boxes."""
    lattice, rows = drawn
    plan = data.draw(plans(lattice))
    form = data.draw(st.sampled_from([CellCounts.from_codes, as_rows]))
    growth = _grow_without_noise(counted(rows, lattice, form), plan)
    twin = recursive_binning(rows, lattice, split_rule(plan), plan.max_depth)

    leaves = named(np.concatenate(growth.leaf_codes), np.concatenate(growth.leaf_depths))
    counts = np.concatenate(growth.leaf_counts).tolist()
    assert len(leaves) == len(set(leaves))
    assert dict(zip(leaves, counts, strict=True)) == twin.leaves
    roots = [node for depth, codes in growth.empty_roots.items() for node in named(codes, np.full(len(codes), depth))]
    assert len(roots) == len(set(roots))
    assert set(roots) == twin.empty_roots


def _grow_without_noise(counts: CellCounts, plan: SplitPlan):
    original = kdtree.add_noise
    kdtree.add_noise = lambda true_counts, rate, entropy: true_counts
    try:
        return kdtree._grow(counts, plan, UnsafeSeededEntropy(0))
    finally:
        kdtree.add_noise = original


@MODEST
@given(tables(any_lattices()), st.data())
def test_release_at_a_huge_epsilon_is_the_recursion(drawn, data) -> None:
    """The whole release, empty space included, gives the leaves that reach the threshold, in depth-first order."""
    lattice, rows = drawn
    plan = data.draw(plans(lattice))
    bins = release_tree(counted(rows, lattice), plan=plan, ledger=Ledger(), entropy=UnsafeSeededEntropy(0))
    found = dict(zip(named(bins.codes, bins.depths), bins.noisy_counts.tolist(), strict=True))

    leaves = recursive_binning(rows, lattice, split_rule(plan), plan.max_depth).leaves
    # Scores of empty nodes are at most the cutoff, so without noise none splits, and none is released.
    assert found == {node: count for node, count in leaves.items() if count >= plan.threshold}
    places = [prefix << (lattice.depth - depth) for depth, prefix in found]
    assert places == sorted(places)


@MODEST
@given(tables(small_lattices(most_depth=7)), st.integers(1, 3))
def test_grid_at_a_huge_epsilon_is_the_enumerated_grid(drawn, threshold: int) -> None:
    """Going through all cells and counting the rows in each finds the bins that the grid releases."""
    lattice, rows = drawn
    bins = release_grid(
        counted(rows, lattice), epsilon=LOUD, threshold=threshold, ledger=Ledger(), entropy=UnsafeSeededEntropy(0)
    )
    found = dict(zip(named(bins.codes, bins.depths), bins.noisy_counts.tolist(), strict=True))
    assert found == enumerated_grid(rows, lattice, threshold)
