"""From noisy leaves to a few states for each column. Sees released numbers only.

Small counts are taken for noise and the rest is fitted to the total. Then leaves are grouped: neighbouring leaves of a
number into groups of even weight, half of it by rows and half by leaves, so that tails keep states of their own; rare
categories into one, or, where codes have a hierarchy, with their siblings. Null is always a state of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import Cut
from spinney.forest.codes import pool_siblings, spread_codes
from spinney.forest.columns import NoisyColumn
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.even_leaves import leaf_places
from spinney.forest.spikes import part_spikes
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import needs_tree
from spinney.schema.parting import Parting
from spinney.tree.release.geometry import extent
from spinney.tree.release.reconstruct import project_to_total

# A number's leaf below this many standard deviations of its noise is treated as empty: wide empty tails would collect
# rows.
_EMPTY_BELOW = 1.0
# Far out, where as many rows as one standard deviation of the noise would raise the variance of the column by this
# part, a leaf has to stand out more: a few rows that are not there would change what the column is like.
_FAR_OUT = 0.3
# The variance is that of leaves above so many standard deviations, and far out no leaf below that is believed: the
# larger one of these numbers with which such leaves hold most of the rows. Of a few hundred leaves of noise one or two
# are above the smaller, and where the larger will do they need not be.
_SURE_ABOVE = (4.0, 2.5)
_MOST_ROWS = 0.5
_EMPTY_BELOW_FAR_OUT = 3.5

# A category below this many standard deviations shares a state with the other rare ones.
_RARE_BELOW = 3.0


def column_model(
    column: NoisyColumn,
    *,
    total: float,
    most_states: int,
    parting: Parting | None = None,
    cells: ColumnAxis | None = None,
    is_stated: bool = False,
) -> tuple[ColumnModel, Cut]:
    """A column as a model over states knows it, and how to find the state of a row.

    Args:
        column: leaves and noisy counts.
        total: the number of rows, or a noisy one.
        most_states: about how many states to make; null, and values kept apart, may add to it.
        parting: labels leaves that may not share a state with others, because a rule tells them apart.
        cells: the column's cells, of which piles have a few to themselves and lie at their round value.
        is_stated: whether every value is to be told from the others, where the column has no tree.
    """
    if column.levels is not None:
        column, weights = spread_codes(column, total)
    else:
        column = part_spikes(column)
        weights = leaf_weights(column, total)
    if parting is not None:
        weights = _without_impossible(weights, column, parting)
    marked = np.zeros(len(weights), dtype=np.int64) if parting is None else parting.labels_of(column.first)
    if is_stated and not needs_tree(column.axis):
        states = np.arange(len(weights))
    elif column.levels is not None:
        states = pool_siblings(column, weights, most_states)
    elif column.is_ordered:
        states = _group_neighbours(weights, column.is_null, marked, most_states, few_values=not needs_tree(column.axis))
    else:
        states = _pool_rare(column, marked, most_states)
    low, length = leaf_places(column.axis, column.first, column.stop, parting=parting, cells=cells)
    model = ColumnModel(low, length, column.is_null, weights, states.astype(np.int32), int(states.max()) + 1)
    return model, Cut(column.axis, column.first, states)


def _without_impossible(weights: Floats, column: NoisyColumn, parting: Parting) -> Floats:
    """Nothing where rules leave no row, whatever was counted there; the rest weighs as much as all did."""
    labels = np.where(column.is_null, parting.n_labels, parting.labels_of(column.first))
    left = np.where(parting.possible[labels], weights, 0.0)
    if left.sum() == 0:
        left = parting.possible[labels] * np.maximum(column.stop - column.first, 1).astype(np.float64)
    return np.asarray(left * (weights.sum() / left.sum()))


def leaf_weights(column: NoisyColumn, total: float) -> Floats:
    """Weights that are not negative and add up to the total; even over the column where no count stands out."""
    noisy = column.noisy_counts.astype(np.float64)
    if column.noise_std == 0:  # shares that are known, not counts
        return np.asarray(total * noisy / noisy.sum())
    if column.is_ordered and len(noisy) > 1 and not column.is_told:
        noisy = np.where(noisy < _least_believed(column), 0.0, noisy)
        is_kept = noisy > 0
        if not is_kept.any():
            reach = (column.stop - column.first).astype(np.float64)
            return np.asarray(total * reach / reach.sum())
        weights = np.zeros_like(noisy)
        weights[is_kept] = project_to_total(noisy[is_kept], total)
        return weights
    return project_to_total(noisy, total)


def _least_believed(column: NoisyColumn) -> Floats:
    """For each leaf of a number, the noisy count below which it is treated as empty."""
    low, length = extent(column.axis, column.first, np.maximum(column.stop, column.first))
    middle = low + length / 2
    counts = np.where(column.is_null, 0.0, column.noisy_counts)
    for above in _SURE_ABOVE:
        sure = np.where(counts < above * column.noise_std, 0.0, counts)
        if sure.sum() >= _MOST_ROWS * counts.sum():
            break
    n_sure = float(sure.sum())
    if not n_sure:
        return np.full(len(middle), _EMPTY_BELOW * column.noise_std)
    spread = (middle - np.average(middle, weights=sure)) ** 2 + length**2 / 12  # of rows in a leaf about the mean
    variance = np.average(spread, weights=sure)
    is_far_out = ~column.is_null & (column.noise_std * spread > _FAR_OUT * n_sure * variance)
    return np.where(is_far_out, max(above, _EMPTY_BELOW_FAR_OUT), _EMPTY_BELOW) * column.noise_std


def _group_neighbours(
    weights: Floats, is_null: NDArray[np.bool_], marked: NDArray[np.int64], most_states: int, *, few_values: bool
) -> NDArray[np.int64]:
    """Contiguous groups of even weight 0.5 p + 0.5 [p > 0] / #{p > 0}; empty leaves go with a neighbour.

    Of few values, the empty ones behind the last stay a group, so that they can be asked for.
    """
    is_held = (weights > 0) & ~is_null
    n_held = max(1, int(is_held.sum()))
    p = np.where(is_null, 0, weights)
    even = 0.5 * p / max(float(p.sum()), 1e-300) + 0.5 * is_held / n_held
    if n_held <= most_states:
        even = is_held / n_held
    middle = np.cumsum(even) - even / 2
    n_groups = min(most_states, n_held)
    group = np.minimum((middle * n_groups).astype(np.int64), (most_states if few_values else n_groups) - 1)
    return _numbered(np.stack([is_null, marked, group], axis=1))


def _pool_rare(column: NoisyColumn, marked: NDArray[np.int64], most_states: int) -> NDArray[np.int64]:
    """Categories that stand out have states of their own, `most_states` at the most; the rest share one."""
    n_leaves = len(column.first)
    is_null = column.is_null
    if n_leaves - int(is_null.sum()) <= 2:
        return np.arange(n_leaves)
    rank = np.empty(n_leaves, dtype=np.int64)
    rank[np.argsort(-column.noisy_counts, kind="stable")] = np.arange(n_leaves)
    is_kept = (column.noisy_counts >= _RARE_BELOW * column.noise_std) & (rank < most_states)
    own = np.where(is_kept | is_null, 1 + np.arange(n_leaves), n_leaves + 1)
    return _numbered(np.stack([is_null, marked, own], axis=1))


def _numbered(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equal rows of keys get equal numbers 0, 1, ..., in the order in which they first appear."""
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.reshape(-1)]
