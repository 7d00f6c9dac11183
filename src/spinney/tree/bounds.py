"""Private bounds: a noisy estimate of the powers of two between which the values lie, charged to the ledger.

The ladder of magnitudes (both signs, zero between) is fixed and public, so counting values per rung and
releasing the counts as a grid is Algorithm 1 once more, and its proof is the grid's. The bounds are the ends of
the outermost rungs whose noisy counts pass a threshold that no empty rung passes except with the stated chance:
post-processing.
"""

from __future__ import annotations

import math
from fractions import Fraction

from spinney.columns import Bounded
from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.schema.lattice import Axis, Lattice, ladder_axis
from spinney.schema.zorder import deinterleave
from spinney.tree.grid import release_grid

# Chance that any empty rung of one ladder passes: the price of a bound that is too generous, not of privacy.
_FALSE_ALARM = 1e-3


def ladder_lattice(name: str, column: Bounded) -> Lattice:
    """The one-column lattice on which bounds are counted."""
    smallest, largest = column.rungs
    return Lattice((ladder_axis(name, nullable=column.nullable, smallest=smallest, largest=largest),))


def widest_bounds(column: Bounded) -> tuple[object, object]:
    """The most generous bounds that a ladder can give. They are public: a plan is tried on them before paying."""
    axis = ladder_lattice("", column).axes[0]
    return _logical_bounds(column, axis, axis.first, axis.last)


def ladder_threshold(lattice: Lattice, epsilon: Fraction, unit: Unit) -> int:
    """The smallest t with (number of rungs) * P(noise >= t) at most the false-alarm chance."""
    rate = float(epsilon / unit.factor)
    return max(1, math.ceil(math.log(lattice.axes[0].n_possible / _FALSE_ALARM) / rate))


def release_bounds(
    counts: CellCounts, column: Bounded, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> tuple[object, object]:
    """Logical bounds (low, high) of one column, from rung counts. Charges `epsilon` first."""
    lattice = counts.lattice
    axis = lattice.axes[0]
    threshold = ladder_threshold(lattice, epsilon, ledger.unit)
    bins = release_grid(
        counts, epsilon=epsilon, threshold=threshold, ledger=ledger, entropy=entropy, bounds_of=axis.name
    )
    first, _ = deinterleave(bins.codes, bins.depths, lattice)
    rungs = [int(cell) for cell in first[:, 0] if axis.first <= cell <= axis.last]
    if not rungs:
        raise BudgetError(
            f"column {axis.name!r}: no magnitude stood out from the noise, so no private bounds were found "
            f"(epsilon={epsilon} is spent); state the bounds, or raise bounds_share"
        )
    return _logical_bounds(column, axis, min(rungs), max(rungs))


def _logical_bounds(column: Bounded, axis: Axis, lowest: int, highest: int) -> tuple[object, object]:
    """The outer edges of two rungs in the column's own terms; the outermost rungs end at twice their magnitude."""
    low = axis.edges[lowest - 1] if lowest > 0 else 2 * axis.edges[0]
    high = axis.edges[highest] if highest < len(axis.edges) else 2 * axis.edges[-1]
    return column.from_rungs(low, high)
