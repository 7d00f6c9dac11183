"""Shapes of PrivTrees over a single column and over a place. SENSITIVE but for the shape.

Decisions are those of `kdtree`, with the same noise and the same decay, on hierarchies that are public; the
proof is the same (kdtree.proof.md, rulers and places). Only the shape is released here; counts of the leaves
are made and paid for elsewhere (`forest/columns`).

    regions of a place      boxes of two or three columns, halved
    ranges along a ruler    ranges of one column, cut at round places
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.grid.axes import PlaceAxis
from spinney.grid.codes import Codes, Indices
from spinney.grid.raster import Flags
from spinney.grid.ruler import Cells, Ruler
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import add_noise
from spinney.progress import progress
from spinney.text import Sensitive
from spinney.tree.plan import SplitPlan

# --------------------------------------------------------------------------------------------------- regions of a place
# PrivTree over a place: boxes of two or three columns, halved where there are rows.
#
# A node is a prefix of a cell code. Decisions are those of `kdtree`, with the same noise, on a public hierarchy:
# whether a column is null is split off without a decision, the first few levels are too, a node with one possible
# half is that half, and neither single cells nor parts that the border of a shape passes through are halved
# (kdtree.proof.md, places). The shape of the tree is all that is released of it.


@dataclass(frozen=True, slots=True, repr=False)
class Regions(Sensitive):
    """Leaves in the order of their codes, which are public, with true numbers of rows, which are not."""

    codes: Codes
    depths: Indices
    true_counts: Indices


@dataclass(slots=True, repr=False)
class _Nodes(Sensitive):
    """Nodes of one depth: codes, rows as ranges of positions, and how many decisions lie above them. SENSITIVE."""

    codes: Codes
    start: Indices
    stop: Indices
    levels: Indices

    def __getitem__(self, chosen: Indices) -> _Nodes:
        return _Nodes(self.codes[chosen], self.start[chosen], self.stop[chosen], self.levels[chosen])


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


# ------------------------------------------------------------------------------------------------- ranges along a ruler
# PrivTree along a ruler: one column's ranges of cells, cut at round places where there are rows.
#
# A node is a range of cells of the ruler's hierarchy, which is public: decisions are those of `kdtree`, with
# the same noise and the same decay, and the proof is the same (kdtree.proof.md, rulers).
#
# A tree stops early where rows are few, and a value that stands for something else, such as 98 for "not known",
# would lie unseen in a range of twenty. So, on request, the cells of the ruler's sentinels are ranges of their own.


@dataclass(frozen=True, slots=True, repr=False)
class Ranges(Sensitive):
    """Ranges of cells in ascending order, which are public, with true numbers of rows, which are not.

    A spike is a few cells in which rows may pile up: at the beginning of every range, and the last cell of the axis
    where it is in no other. They lie in ranges of their own, so a row is in one of them at most.
    """

    first: Cells
    stop: Cells
    true_counts: Cells
    spikes: Cells  # (2, n): where they begin and end; those of ranges in order, then the last cell
    true_spikes: Cells


def grow_ranges(
    counts: ColumnCounts,
    ruler: Ruler,
    plan: SplitPlan,
    entropy: Entropy,
    *,
    roots: Cells | None = None,
    has_sentinels: bool = False,
) -> Ranges:
    """Cut from the whole axis down; null, where the axis has it, is a range of one cell at the end.

    `roots` are the first cells of ranges that are apart from the beginning, from cell 0 on. `has_sentinels` asks for
    the cells of sentinels as ranges of their own.
    """
    axis = counts.lattice.axes[0]
    firsts = np.zeros(1, dtype=np.int64) if roots is None else roots
    edges = np.stack([firsts, np.append(firsts[1:], ruler.n_cells)])  # where ranges begin and end [ruler 0]
    below = counts.rows_below(edges.ravel()).reshape(edges.shape)  # how many rows lie before that. SENSITIVE
    made = []
    for depth in progress(range(plan.max_depth + 1), "planting the tree", unit="level"):
        splits = edges[1] - edges[0] > 1 if depth < plan.max_depth else np.zeros(edges.shape[1], dtype=np.bool_)
        scores = plan.score((below[1] - below[0])[splits], depth)  # [ruler 1]
        splits[splits] = add_noise(scores, plan.decision_rate, entropy) > plan.cutoff  # [ruler 2]
        made.append(np.concatenate([edges, below])[:, ~splits])
        edges, below = edges[:, splits], below[:, splits]
        if not edges.size:
            break
        cut = ruler.cuts(edges[0], edges[1])
        edges, below = _halves_of_ranges(edges, cut), _halves_of_ranges(below, counts.rows_below(cut))
    leaves = np.concatenate(made, axis=1)
    first, stop, before_first, before_stop = leaves[:, np.argsort(leaves[0])]  # the order of making must not show
    if has_sentinels:
        first, stop = _with_cells_apart(first, stop, ruler.sentinels)  # [ruler 3]
        before_first, before_stop = counts.rows_below(np.stack([first, stop]).ravel()).reshape(2, -1)
    true_counts = before_stop - before_first
    pile_stop = ruler.pile_stops(first, stop)
    end = stop[-1:] if pile_stop[-1] < stop[-1] else stop[:0]
    if axis.nullable:
        first, stop = np.append(first, axis.null_cell), np.append(stop, axis.null_cell + 1)
        true_counts = np.append(true_counts, counts.true_total() - counts.rows_below(first[-1:]))
        pile_stop = np.append(pile_stop, axis.null_cell + 1)
    spikes = np.stack([np.append(first, end - 1), np.append(pile_stop, end)])
    begins, ends = counts.rows_below(spikes.ravel()).reshape(spikes.shape)
    return Ranges(first, stop, true_counts, spikes, ends - begins)


def _with_cells_apart(first: Cells, stop: Cells, cells: Cells) -> tuple[Cells, Cells]:
    """The ranges, cut so that some cells are ranges of their own."""
    begins = np.unique(np.concatenate([first, cells, cells + 1]))
    begins = begins[begins < stop[-1]]
    return begins, np.append(begins[1:], stop[-1])


def _halves_of_ranges(ends: Cells, middle: Cells) -> Cells:
    """From the ends of ranges, in two rows, to those of both halves."""
    return np.concatenate([np.stack([ends[0], middle]), np.stack([middle, ends[1]])], axis=1)
