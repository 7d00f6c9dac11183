"""Leaves for tests of moments: trees listed one by one, true steps without noise, releases made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.forest.release.model import ForestRelease
from spinney.grid.codes import interleave
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.privacy.budget import Unit
from spinney.release.card import Card
from spinney.tree import moments
from spinney.tree.bins import NoisyBins, NoisyMoments
from spinney.tree.plan import SplitPlan, privtree_plan
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.moments import MomentsRelease
from support.slow_trees import Cells, Node, is_possible_node, pack, unpack

Q = moments.QUANTUM


def moments_plan(depths: tuple[int, int], *, unit: Unit = Unit.REPLACE_ONE, decisions: str = "1") -> SplitPlan:
    """A plan that spends 1 on leaves and `decisions` on what to split."""
    plan = privtree_plan(
        unit=unit,
        fixed_depth=depths[0],
        max_depth=depths[1],
        decision_epsilon=Fraction(decisions if depths[1] > depths[0] else 0),
        count_epsilon=Fraction(1),
        cutoff=0,
        threshold=1,
    )
    return replace(plan, has_moments=True)


def counts_of_rows(rows: Sequence[Cells], lattice: Lattice) -> CellCounts:
    cells = np.array(rows, dtype=np.int64).reshape(len(rows), lattice.n_axes)
    return CellCounts.from_codes(lattice, interleave(cells, lattice))


def all_trees(lattice: Lattice, depth: int, node: Node = (0, 0)) -> Iterator[list[Node]]:
    """Every tree of at most this depth, as the list of its leaves in the order of codes."""
    if not is_possible_node(node, lattice):
        yield []
        return
    yield [node]
    if node[0] < depth:
        rights = list(all_trees(lattice, depth, (node[0] + 1, 2 * node[1] + 1)))
        for left in all_trees(lattice, depth, (node[0] + 1, 2 * node[1])):
            for right in rights:
                yield left + right


def steps_on(tree: Sequence[Node], rows: Sequence[Cells], lattice: Lattice) -> NDArray[np.int64]:
    """True steps of the leaves of a given tree, by the mechanism's own functions."""
    counts = counts_of_rows(rows, lattice)
    codes = [unpack(words, lattice.depth) for words in counts.true_codes.tolist()]
    ranges = []
    for depth, prefix in tree:
        inside = [i for i, code in enumerate(codes) if code >> (lattice.depth - depth) == prefix]
        before = sum(code >> (lattice.depth - depth) < prefix for code in codes)
        ranges.append((before, before + len(inside)))
    start, stop = np.array(ranges, dtype=np.int64).reshape(-1, 2).T.copy()
    packed = np.array([pack(prefix, depth, lattice) for depth, prefix in tree], dtype=np.uint64)
    depths = np.array([depth for depth, _ in tree], dtype=np.int64)
    leaves = moments.Leaves(packed.reshape(-1, lattice.n_words), depths, start, stop)
    return moments._true_steps(counts, leaves, *moments.leaf_cells(leaves.codes, depths, lattice))


def nodes_of(released: NoisyMoments) -> list[Node]:
    """The released leaves as (depth, prefix)."""
    return [
        (int(depth), unpack(words, int(depth)) if depth else 0)
        for words, depth in zip(released.codes.tolist(), released.depths, strict=True)
    ]


class _Silence:
    """Stands in for sup-norm noise: zeros."""

    def __init__(self, _: Fraction, n_axes: int) -> None:
        self._n_axes = n_axes

    def draw(self, n: int, _: Any) -> NDArray[np.int64]:
        return np.zeros((n, self._n_axes), dtype=np.int64)


@contextmanager
def without_leaf_noise() -> Iterator[None]:
    """Leaves show their true steps; decisions keep their noise."""
    with mock.patch.object(moments, "sup_norm_noise", _Silence):
        yield


def moments_by_hand(
    schema: sp.Schema, leaves: Mapping[str, Sequence[float]], *, rate: Fraction = Fraction(10**6), axes: str = "boxes"
) -> NoisyMoments:
    """Leaves by prefix, such as "01", each with its count and sums of offsets; hardly any noise unless a rate is given.

    The rate is that of a whole row, not of a step.
    """
    lattice = tree_lattice(schema, axes=axes)
    nodes = [(len(prefix), int("0" + prefix, 2)) for prefix in leaves]
    codes = np.array([pack(number, depth, lattice) for depth, number in nodes], dtype=np.uint64)
    depths = np.array([depth for depth, _ in nodes], dtype=np.int64)
    steps = np.rint(Q * np.array(list(leaves.values()), dtype=np.float64)).astype(np.int64)
    order = np.lexsort(codes.reshape(-1, lattice.n_words).T[::-1])
    return NoisyMoments(
        lattice, codes.reshape(-1, lattice.n_words)[order], depths[order], steps[order], Q, Fraction(rate) / Q
    )


def release_by_hand(
    schema: sp.Schema, leaves: Mapping[str, Sequence[float]], *, n_rows: int | None = 100, frame: str = "numpy"
) -> MomentsRelease:
    """A release of such leaves, with the card of a plan that goes down to the cells and has their noise."""
    unit = Unit.ADD_REMOVE if n_rows is None else Unit.REPLACE_ONE
    rate = Fraction(10**5)
    made = moments_by_hand(schema, leaves, rate=rate)
    plan = replace(plan_by_hand(made.lattice.depth, unit, rate * unit.factor), has_moments=True)
    return MomentsRelease(made, card_by_hand(schema, plan, {"leaves": len(made)}, n_rows=n_rows, frame=frame))


@cache
def plan_by_hand(depth: int, unit: Unit = Unit.REPLACE_ONE, count_epsilon: Fraction = Fraction(1)) -> SplitPlan:
    """A plan of trees of any depth that spends this on counts, and 1 on decisions if there are any."""
    return privtree_plan(
        unit=unit,
        fixed_depth=0,
        max_depth=depth,
        decision_epsilon=Fraction(1 if depth else 0),
        count_epsilon=count_epsilon,
        cutoff=0,
        threshold=1,
    )


def card_by_hand(
    schema: sp.Schema, plan: SplitPlan, released: Mapping[str, int], *, n_rows: int | None, frame: str
) -> Card:
    """The card of a release that this plan could have made."""
    return Card(
        "0", "by hand", {}, plan.unit.value, plan.charges(), schema, plan.to_dict(), n_rows, dict(released), frame
    )


def noisy_part(release: sp.Release) -> NoisyBins | NoisyMoments:
    """What a tree or a grid released: bins or moments."""
    assert isinstance(release, (BinnedRelease, MomentsRelease))
    return release.bins if isinstance(release, BinnedRelease) else release.moments


def noisy_numbers(release: sp.Release) -> NDArray[Any]:
    """Its numbers with noise on them: counts, or counts and sums, a row for each bin or leaf; a forest's weights."""
    if isinstance(release, ForestRelease):
        return np.concatenate([column.weights for column in release.columns.values()])[:, None]
    part = noisy_part(release)
    return part.noisy_counts[:, None] if isinstance(part, NoisyBins) else part.noisy_steps


def prefixes(depth: int) -> list[str]:
    """All nodes of one depth."""
    return [f"{number:0{depth}b}" if depth else "" for number in range(2**depth)]


def sup_norms(vectors: NDArray[Any]) -> NDArray[Any]:
    return np.abs(vectors).max(axis=-1)


def total_change(one: Iterable[Any], other: Iterable[Any]) -> int:
    """How far the steps of all leaves move together: the sum over leaves of the sup norm."""
    return int(sup_norms(np.asarray(one) - np.asarray(other)).sum())
