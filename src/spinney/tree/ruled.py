"""PrivTree along a ruler: one column's ranges of cells, cut at round places where there are rows.

A node is a range of cells of the ruler's hierarchy, which is public: decisions are those of `kdtree`, with the same
noise and the same decay, and the proof is the same (kdtree.proof.md, rulers). The shape is all that is released of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.counting.counts import ColumnCounts
from spinney.privacy.entropy import Entropy
from spinney.privacy.noise.discrete import add_noise
from spinney.progress import progress
from spinney.schema.ruler import Cells, Ruler
from spinney.tree.plan import SplitPlan


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of cells in ascending order, which are public, with true numbers of rows, which are not.

    A spike is a few cells in which rows may pile up: at the beginning of every range, and the last cell of the axis
    where it is in no other. They lie in ranges of their own, so a row is in one of them at most.
    """

    first: Cells
    stop: Cells
    true_counts: Cells
    spikes: Cells  # (2, n): where they begin and end; those of ranges in order, then the last cell
    true_spikes: Cells

    def __repr__(self) -> str:
        return "Ranges(sensitive)"


def grow_ranges(
    counts: ColumnCounts, ruler: Ruler, plan: SplitPlan, entropy: Entropy, *, roots: Cells | None = None
) -> Ranges:
    """Cut from the whole axis down; null, where the axis has it, is a range of one cell at the end.

    `roots` are the first cells of ranges that are apart from the beginning, from cell 0 on.
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
        edges, below = _halves(edges, cut), _halves(below, counts.rows_below(cut))
    leaves = np.concatenate(made, axis=1)
    first, stop, before_first, before_stop = leaves[:, np.argsort(leaves[0])]  # the order of making must not show
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


def _halves(ends: Cells, middle: Cells) -> Cells:
    """From the ends of ranges, in two rows, to those of both halves."""
    return np.concatenate([np.stack([ends[0], middle]), np.stack([middle, ends[1]])], axis=1)
