"""NoisyBins and NoisyMoments: the two things that a tree releases. PUBLIC from here on.

Bins are disjoint nodes of the tree, in depth-first order, with noisy counts that have passed the threshold.
Moments are all leaves, with noisy counts and noisy sums of offsets. Nothing else about the table is in here.

    (first)        the released numbers as frozen arrays, and the cells of their leaves
    calibration    the largest rate of decision noise that is within an epsilon, certified
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.errors import BudgetError
from spinney.grid.codes import Codes, Indices, deinterleave
from spinney.grid.lattice import Lattice
from spinney.grid.pieces import in_points, to_places
from spinney.privacy.budget import Unit
from spinney.privacy.noise.discrete import arb_fraction, as_integer


@dataclass(frozen=True, slots=True, eq=False)
class NoisyBins:
    """Released leaves: bin i is the node `codes[i]` of depth `depths[i]`."""

    lattice: Lattice
    codes: Codes  # (n_bins, n_words), sorted, bits past the depth are zero
    depths: NDArray[np.int64]  # (n_bins,)
    noisy_counts: NDArray[np.int64]  # (n_bins,), all at least the threshold

    def __len__(self) -> int:
        return len(self.depths)

    def __repr__(self) -> str:
        return f"NoisyBins({len(self)} bins on {self.lattice.n_axes} axes)"

    @property
    def noisy_total(self) -> int:
        return int(self.noisy_counts.sum())

    @classmethod
    def in_order(
        cls, lattice: Lattice, codes: Codes, depths: NDArray[np.int64], noisy_counts: NDArray[np.int64]
    ) -> NoisyBins:
        """Bins from unordered parts. The order of making must not show: it would tell empty bins from occupied ones."""
        order = np.lexsort(codes.T[::-1])
        return cls(lattice, codes[order], depths[order], noisy_counts[order])


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """All leaves of a tree with noisy counts and noisy sums of offsets, in whole steps of 1 / quantum.

    An offset is a row's distance from the centre of its leaf in half-edges. Noise of rate `rate` a step is even over
    the cube of a leaf's count and its measured axes (`leaf_cells`); sums along other axes are 0.
    """

    lattice: Lattice
    codes: Codes  # (n_leaves, n_words), sorted
    depths: NDArray[np.int64]  # (n_leaves,)
    noisy_steps: NDArray[np.int64]  # (n_leaves, 1 + n_axes): count, then sums; of any sign
    quantum: int
    rate: Fraction

    def __len__(self) -> int:
        return len(self.depths)

    def __repr__(self) -> str:
        return f"NoisyMoments({len(self)} leaves on {self.lattice.n_axes} axes)"


def leaf_cells(codes: Codes, depths: Indices, lattice: Lattice) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """First possible cell and number of possible cells of each leaf and axis, and whether its offset is measured.

    Along axes with pieces both are in places. Measured are ordered axes along which a leaf has several cells, none of
    them for null.
    """
    first, size = deinterleave(codes, depths, lattice)
    is_measured = np.ones(first.shape, dtype=np.bool_)
    for index, axis in enumerate(lattice.axes):
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        holds_null = (first[:, index] <= axis.null_cell) & (first[:, index] + size[:, index] > axis.null_cell)
        first[:, index] = np.maximum(first[:, index], axis.first)
        size[:, index] = np.maximum(stop - first[:, index], 1)
        if axis.pieces is not None:
            is_point = in_points(axis.pieces, first[:, index], stop)
            first[:, index], size[:, index] = to_places(axis.pieces, first[:, index], size[:, index])
            size[is_point, index] = 1
        is_measured[:, index] = (size[:, index] > 1) & ~holds_null & (axis.kind != "category")
    return first, size, is_measured


# ---------------------------------------------------------------------------------------------------------- calibration
# How much noise PrivTree's decisions need: the exact worst case, certified.
#
# Let r be the rate of the decision noise, a = exp(-r), D = decay, and let one row be added below a path of L noisy
# decisions. The worst outcome is that every node on the path splits, with scores at cutoff - D, cutoff, cutoff + D,
# ...; its log-ratio is
#
#     S = r + sum over i = 0..L-2 of  ln( (1 - a^(iD+1)/(1+a)) / (1 - a^(iD)/(1+a)) ),
#
# and a single "no split" gains at most r. Hence (proof: kdtree.proof.md, lemma 2)
#
#     add-remove     worst case S            about 2.61 r,  textbook 3 r
#     replace-one    worst case S + r        about 3.61 r,  textbook 6 r
#
# The second line is where most is won: the path that loses the row gains from at most one decision, not from all of
# them.


_PRECISION = 192
# Rates are searched as multiples of epsilon' / 4096; rounding down means at most 0.1 % more noise than needed.
_GRID = 4096


def decay_for(rate: Fraction, factor: Fraction = Fraction(1)) -> int:
    """ceil(factor ln 2 / rate), the bias per level: from factor 1 on, an empty node's offspring dies out."""
    with flint.ctx.workprec(_PRECISION):
        return max(1, as_integer((arb_fraction(factor) * flint.arb(2).log() / arb_fraction(rate)).ceil()))


def worst_path_loss(rate: Fraction, decay: int, levels: int, unit: Unit) -> flint.arb:
    """The largest log-ratio of all decisions together, over all neighbours and outcomes, at the current precision."""
    if levels == 0:
        return flint.arb(0)
    a = (-arb_fraction(rate)).exp()
    loss = arb_fraction(rate * min(levels, 2))  # the terms at cutoff - D and at cutoff are r each
    for i in range(1, levels - 1):
        power = (-arb_fraction(rate * (i * decay))).exp() / (1 + a)
        loss += ((1 - a * power) / (1 - power)).log()
    return loss + arb_fraction(rate) if unit.of_rows is Unit.REPLACE_ONE else loss


def is_within(rate: Fraction, decay: int, levels: int, unit: Unit, epsilon: Fraction) -> bool:
    """Whether the worst case is certainly at most epsilon."""
    with flint.ctx.workprec(_PRECISION):
        return bool(worst_path_loss(rate, decay, levels, unit) <= arb_fraction(epsilon))


def largest_privtree_rate(
    epsilon: Fraction, *, levels: int, unit: Unit, decay_factor: Fraction = Fraction(1)
) -> tuple[Fraction, int]:
    """The largest rate on the search grid, with its decay, whose worst case is certainly within epsilon."""
    low, high = _GRID // 6, _GRID  # the textbook's epsilon / 6 is always enough
    while high - low > 1:
        middle = (low + high) // 2
        rate = epsilon * middle / _GRID
        if is_within(rate, decay_for(rate, decay_factor), levels, unit, epsilon):
            low = middle
        else:
            high = middle
    rate = epsilon * low / _GRID
    decay = decay_for(rate, decay_factor)
    if not is_within(rate, decay, levels, unit, epsilon):
        raise BudgetError(f"no decision noise could be certified for {levels} levels within epsilon={epsilon}")
    return rate, decay
