"""A zoo of sabotaged leaf moments, and the checks that must catch them, in the manner of `zoo`.

A check takes a mechanism with the signature of `release_moments` and gives a p-value (1 or 0 where no chance is
involved): above ACCEPT for a sound mechanism, below REJECT for a sabotaged one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from itertools import combinations, product
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import spinney as sp
from spinney.grid.lattice import tree_lattice
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.tree import moments
from spinney.tree.bins import NoisyMoments
from spinney.tree.moments import release_moments
from spinney.tree.plan import SplitPlan
from support.goodness_of_fit import p_value
from support.handmade_leaves import (
    Q,
    counts_of_rows,
    moments_plan,
    nodes_of,
    sup_norms,
    total_change,
    without_leaf_noise,
)
from support.output_laws import Mask, ReleaseLaw
from support.repeated_releases import counts_of, lattice_of
from support.sabotaged_trees import charge_before_touch
from support.slow_trees import Node, measured_cells, possible_mask

Mechanism = Callable[..., NoisyMoments]
Check = Callable[[Mechanism], float]


# ------------------------------------------------------------------------------------------------ checks


def tree_law(law: ReleaseLaw, table: tuple[int, ...], possible: Mask, node: Node = (0, 0)) -> dict[Any, float]:
    """Chance of every set of leaves below a node, by dynamic programming over the two halves."""
    if not any(possible):
        return {frozenset(): 1.0}
    depth, prefix = node
    split, stay = law.splits(sum(table), depth)
    chances: dict[Any, float] = {frozenset([node]): stay} if stay else {}
    if split:
        half = len(table) // 2
        left = tree_law(law, table[:half], possible[:half], (depth + 1, 2 * prefix))
        right = tree_law(law, table[half:], possible[half:], (depth + 1, 2 * prefix + 1))
        for (a, p), (b, q) in product(left.items(), right.items()):
            chances[a | b] = chances.get(a | b, 0.0) + split * p * q
    return chances


def decision_law(release: Mechanism, law_plan: SplitPlan | None = None) -> float:
    """The leaves of many small trees, one of them without rows, follow the law of their decisions."""
    plan, columns, n_bits = moments_plan((1, 3)), {"x": sp.Integer(0, 4, bits=3)}, 13
    patterns = [(0, 0, 0, 0, 0, 0, 0, 0), (4, 0, 0, 0, 1, 0, 0, 0)]
    laid = [patterns[i % 2] for i in range(2**n_bits)]
    deeper = replace(plan, fixed_depth=plan.fixed_depth + n_bits, max_depth=plan.max_depth + n_bits)
    counts = counts_of(lattice_of(columns, n_bits), laid, deeper.max_depth)
    released = release(counts, plan=deeper, ledger=Ledger(), entropy=UnsafeSeededEntropy(41))
    trees: list[set[Node]] = [set() for _ in laid]
    for depth, prefix in nodes_of(released):
        below = depth - n_bits
        trees[prefix >> below].add((below, prefix & (2**below - 1)))
    possible = possible_mask(lattice_of(columns), 3)
    law = ReleaseLaw(law_plan or plan, possible)
    found = [Counter(frozenset(tree) for tree in trees[i::2]) for i in range(2)]
    return min(p_value(found[i], tree_law(law, patterns[i], possible)) for i in range(2))


def norm_p_value(vectors: NDArray[Any], scale: float) -> float:
    """p-value of sup norms against a gamma law of as many parts as axes; whole steps are too fine to matter."""
    return float(stats.kstest(sup_norms(vectors), stats.gamma(vectors.shape[1], scale=scale).cdf).pvalue)


def noise_law(release: Mechanism) -> float:
    """Leaves with and without rows have noise of the stated size, over cubes."""
    lattice = tree_lattice(sp.Schema({"x": sp.Real(0, 1, bits=7), "y": sp.Real(0, 1, bits=7)}))
    rows = [(x, y) for x in range(64) for y in range(128)] * 2
    released = release(
        counts_of_rows(rows, lattice), plan=moments_plan((12, 12)), ledger=Ledger(), entropy=UnsafeSeededEntropy(42)
    )
    # Four cells a leaf, two rows in each: offsets of opposite signs cancel.
    is_occupied = np.arange(len(released)) < 2048
    noise = released.noisy_steps - np.where(is_occupied[:, None], [8 * Q, 0, 0], 0)
    return min(norm_p_value(noise[part], 2.0 * Q) for part in (is_occupied, ~is_occupied))


def unmeasured_axes_show_nothing(release: Mechanism) -> float:
    """Sums along axes without an offset are 0, whatever the rows."""
    columns = {"c": sp.Category(["a", "b", "c"]), "i": sp.Integer(0, 2, nullable=True), "x": sp.Real(0, 1, bits=1)}
    lattice = tree_lattice(sp.Schema(columns))
    rows = [(2, 2, 1), (2, 0, 1), (1, 4, 0)] * 5
    for depth in range(lattice.depth + 1):
        plan, entropy = moments_plan((depth, depth)), UnsafeSeededEntropy(43)
        released = release(counts_of_rows(rows, lattice), plan=plan, ledger=Ledger(), entropy=entropy)
        for node, steps in zip(nodes_of(released), released.noisy_steps.tolist(), strict=True):
            cells = measured_cells(node, lattice)
            if any(sum_ and axis is None for sum_, axis in zip(steps[1:], cells, strict=True)):
                return 0.0
    return 1.0


def worst_change(release: Mechanism, unit: Unit) -> int:
    """The largest change of true steps over neighbours, in every grid of a lattice, impossible cells among the rows."""
    lattice = tree_lattice(sp.Schema({"i": sp.Integer(0, 4), "x": sp.Real(0, 1, bits=2)}))
    base = [(1, 1), (4, 3)]
    cells = list(product(range(8), range(4)))  # 5, 6 and 7 only if an engine is wrong
    worst = 0
    for depth in range(lattice.depth + 1):
        tables = [[*base, cell] for cell in cells]
        with without_leaf_noise():
            steps = [
                release(
                    counts_of_rows(table, lattice),
                    plan=moments_plan((depth, depth), unit=unit),
                    ledger=Ledger(unit=unit),
                    entropy=UnsafeSeededEntropy(44),
                ).noisy_steps
                for table in [base, *tables]
            ]
        pairs = combinations(steps[1:], 2) if unit is Unit.REPLACE_ONE else ((steps[0], other) for other in steps[1:])
        worst = max(worst, *(total_change(one, other) for one, other in pairs))
    return worst


def within_the_cube(release: Mechanism) -> float:
    """No neighbour moves the steps by more than the unit's factor times one row."""
    return float(all(worst_change(release, unit) <= unit.factor * Q for unit in (Unit.REPLACE_ONE, Unit.ADD_REMOVE)))


# ------------------------------------------------------------------------------------------------ sabotage


def _sabotage(*patches: Callable[[], AbstractContextManager[Any]]) -> Mechanism:
    def release(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyMoments:
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch())
            return release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)

    return release


def _noise_by(change: Callable[..., Any]) -> Mechanism:
    """Another noise in the place of the sound one, which `change` is handed."""
    sound = moments.sup_norm_noise
    return _sabotage(lambda: mock.patch.object(moments, "sup_norm_noise", lambda rate, k: change(sound, rate, k)))


class _EachByItself:
    """Noise of the same rate on every coordinate by itself."""

    def __init__(self, law: Any, n_axes: int) -> None:
        self._law, self._n_axes = law, n_axes

    def draw(self, n: int, entropy: Any) -> NDArray[np.int64]:
        return np.hstack([self._law.draw(n, entropy) for _ in range(self._n_axes)])


half_noise = _noise_by(lambda sound, rate, k: sound(2 * rate, k))
noise_on_each_coordinate = _noise_by(lambda sound, rate, k: _EachByItself(sound(rate, 1), k))


def noise_only_on_rows(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyMoments:
    """Leaves without rows get none."""
    true_steps = moments._true_steps
    found: list[Any] = []

    def add_up(*arguments: Any) -> Any:
        found.append(true_steps(*arguments))
        return found[-1]

    def spare(noisy_steps: Any) -> Any:
        return np.where(found[-1][:, :1] > 0, noisy_steps, found[-1])

    with mock.patch.object(moments, "_true_steps", add_up), mock.patch.object(moments, "within_range", spare):
        return release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)


def _offsets_by(offset_of: Callable[[int, int], int]) -> Callable[[], AbstractContextManager[Any]]:
    """Offsets by another formula, from the place of a cell and the number of cells, in plain Python."""

    def sums(
        codes: Any,
        counts: Any,
        start: Any,
        stop: Any,
        first: Any,
        size: Any,
        is_measured: Any,
        tables: Any,
        _axes: Any,
        _cells: Any,
        steps: Any,
    ) -> None:
        for leaf in range(len(start)):
            for i in range(start[leaf], stop[leaf]):
                data = codes[i].astype(">u8").tobytes()[: len(tables)]
                cells = sum(tables[byte, value] for byte, value in enumerate(data))
                steps[leaf, 0] += Q * counts[i]
                for axis in np.flatnonzero(is_measured[leaf]):
                    place, n_cells = int(cells[axis] - first[leaf, axis]), int(size[leaf, axis])
                    steps[leaf, 1 + axis] += counts[i] * offset_of(place, n_cells)

    return lambda: mock.patch.object(moments, "_sum_offsets", sums)


def _cut(offset: int) -> int:
    return min(max(offset, -Q), Q)


offsets_in_plain_python = _sabotage(_offsets_by(lambda place, n: _cut(round(Q * (2 * place + 1) / n) - Q)))
offsets_not_clipped = _sabotage(_offsets_by(lambda place, n: round(Q * (2 * place + 1) / n) - Q))
offsets_from_the_low_end = _sabotage(_offsets_by(lambda place, n: round(Q * (2 * place + 1) / n)))
offsets_in_cells = _sabotage(_offsets_by(lambda place, n: Q * (place - n // 2)))


def unmeasured_axis_forgotten(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyMoments:
    """Offsets are added up along all axes and get noise along those that are measured."""
    true_steps = moments._true_steps

    def add_up(counts: Any, leaves: Any, first: Any, size: Any, is_measured: Any) -> Any:
        return true_steps(counts, leaves, first, size, np.ones_like(is_measured))

    with mock.patch.object(moments, "_true_steps", add_up):
        return release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)


def empty_nodes_never_split(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyMoments:
    """Below the fixed levels a node without rows is a leaf at once."""
    children = moments._children
    add_noise = moments.add_noise
    occupied: list[Any] = [np.array([True])]

    def watch(*arguments: Any) -> Any:
        made = children(*arguments)
        occupied[0] = made[2] > made[1]
        return made

    def add(scores: Any, rate: Any, source: Any) -> Any:
        return np.where(occupied[0], add_noise(scores, rate, source), plan.cutoff)

    with mock.patch.object(moments, "_children", watch), mock.patch.object(moments, "add_noise", add):
        return release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)


half_noise_on_decisions = _sabotage(
    lambda: mock.patch.object(moments, "add_noise", lambda c, rate, e, add=moments.add_noise: add(c, 2 * rate, e))
)
noise_on_impossible_cells = _sabotage(
    lambda: mock.patch.object(
        moments, "possible_nodes", lambda codes, depths, lattice: np.ones(len(codes), dtype=np.bool_)
    )
)


def paid_before_touch(mechanism: Mechanism) -> float:
    """The check of the tree, with a plan of leaf moments."""
    return charge_before_touch(
        lambda counts, *, plan, **others: mechanism(counts, plan=replace(plan, has_moments=True), **others)
    )


def charge_after_touch(counts: Any, *, plan: SplitPlan, ledger: Ledger, entropy: Any) -> NoisyMoments:
    """A look at the counts, and then the charge."""
    if counts.true_total() < 0:
        raise ValueError
    return release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)


CAGES: dict[str, tuple[Check, Mechanism]] = {
    "half noise": (noise_law, half_noise),
    "noise on each coordinate by itself": (noise_law, noise_on_each_coordinate),
    "noise only on leaves with rows": (noise_law, noise_only_on_rows),
    "offsets not clipped": (within_the_cube, offsets_not_clipped),
    "offsets from the low end": (within_the_cube, offsets_from_the_low_end),
    "offsets in cells": (within_the_cube, offsets_in_cells),
    "unmeasured axis forgotten": (unmeasured_axes_show_nothing, unmeasured_axis_forgotten),
    "empty nodes never split": (decision_law, empty_nodes_never_split),
    "half noise on decisions": (decision_law, half_noise_on_decisions),
    "leaves in impossible space": (decision_law, noise_on_impossible_cells),
    "charge after touch": (paid_before_touch, charge_after_touch),
}
