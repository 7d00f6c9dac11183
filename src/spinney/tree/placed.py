"""PrivTree over a place: boxes of two or three columns, halved where there are rows.

A node is a prefix of a cell code. Decisions are those of `kdtree`, with the same noise, on a public hierarchy: whether
a column is null is split off without a decision, the first few levels are too, a node with one possible half is that
half, and neither single cells nor parts that the border of a shape passes through are halved (kdtree.proof.md, places).
The shape of the tree is all that is released of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.counting.counts import CellCounts
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import add_noise
from spinney.progress import progress
from spinney.schema.place_axis import PlaceAxis
from spinney.schema.raster import Flags
from spinney.schema.zorder import Codes, Indices
from spinney.tree.plan import SplitPlan


@dataclass(frozen=True, slots=True)
class Regions:
    """Leaves in the order of their codes, which are public, with true numbers of rows, which are not."""

    codes: Codes
    depths: Indices
    true_counts: Indices

    def __repr__(self) -> str:
        return "Regions(sensitive)"


@dataclass(slots=True)
class _Nodes:
    """Nodes of one depth: codes, rows as ranges of positions, and how many decisions lie above them. SENSITIVE."""

    codes: Codes
    start: Indices
    stop: Indices
    levels: Indices

    def __getitem__(self, chosen: Indices) -> _Nodes:
        return _Nodes(self.codes[chosen], self.start[chosen], self.stop[chosen], self.levels[chosen])

    def __repr__(self) -> str:
        return "_Nodes(sensitive)"


def grow_regions(counts: CellCounts, axis: PlaceAxis, plan: SplitPlan, entropy: Entropy) -> Regions:
    """Halve from the whole place down. Rows outside the shape are in no region, or in one that reaches beyond it."""
    nodes = _Nodes(np.zeros((1, 1), dtype=np.uint64), np.array([0]), np.array([len(counts)]), np.array([0]))
    made: list[tuple[Codes, Indices, Indices]] = []
    n_fixed = plan.fixed_depth + axis.n_nullable
    for depth in progress(range(axis.lattice.depth + 1), "planting the tree", unit="level"):
        depths = np.full(len(nodes.codes), depth, dtype=np.int64)
        is_leaf = axis.is_cut_short(nodes.codes, depths)
        is_leaf |= depth == axis.lattice.depth
        lower, upper = _halves(nodes.codes, depth)
        has_lower, has_upper = (_is_possible(axis, half, depths + 1) for half in (lower, upper))  # [place 1]
        is_open = has_lower & has_upper & ~is_leaf
        is_open &= ~_is_given(axis, nodes.codes, depth, n_fixed)  # [place 2]
        true_counts = counts.rows_between(nodes.start, nodes.stop)
        scores = plan.score_at(true_counts[is_open], nodes.levels[is_open])
        is_leaf[is_open] = add_noise(scores, plan.decision_rate, entropy) <= plan.cutoff  # [place 3]
        made.append((nodes.codes[is_leaf], depths[is_leaf], true_counts[is_leaf]))
        nodes.levels[is_open] += 1
        goes_on = np.flatnonzero(~is_leaf)
        if not len(goes_on):
            break
        here = nodes[goes_on]
        middle = counts.halves(here.start, here.stop, depth)
        below, above = np.flatnonzero(has_lower[goes_on]), np.flatnonzero(has_upper[goes_on])
        nodes = _Nodes(
            np.concatenate([lower[goes_on][below], upper[goes_on][above]]),
            np.concatenate([here.start[below], middle[above]]),
            np.concatenate([middle[below], here.stop[above]]),
            np.concatenate([here.levels[below], here.levels[above]]),
        )
    codes, depths, true_counts = (np.concatenate(part) for part in zip(*made, strict=True))
    order = np.argsort(codes[:, 0])  # the order of making must not show
    return Regions(codes[order], depths[order], true_counts[order])


def _halves(codes: Codes, depth: int) -> tuple[Codes, Codes]:
    upper = codes.copy()
    upper[:, 0] |= np.uint64(1 << (63 - depth))
    return codes, upper


def _is_possible(axis: PlaceAxis, codes: Codes, depths: Indices) -> Flags:
    if len(depths) and depths[0] > axis.lattice.depth:
        return np.zeros(len(codes), dtype=np.bool_)
    return axis.is_possible(codes, depths)


def _is_given(axis: PlaceAxis, codes: Codes, depth: int, n_fixed: int) -> Flags:
    """Which nodes are halved whatever they hold: at a bit that says null, and on the first levels of the rest."""
    step = axis.lattice.order[min(depth, axis.lattice.depth - 1)]
    if axis.lattice.axes[step.axis].nullable and step.bit == 0:
        return np.ones(len(codes), dtype=np.bool_)
    return np.asarray(~axis.has_null(codes) & (depth < n_fixed))
