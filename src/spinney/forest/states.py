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
from spinney.forest.release.leaf_weights import number_weights, possible_weights
from spinney.forest.spikes import part_spikes
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import Axis, needs_tree
from spinney.schema.parting import Parting
from spinney.tree.release.reconstruct import project_to_total

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
    column, weights = spread_codes(column, total) if column.levels is not None else (part_spikes(column), None)
    low, length = leaf_places(column.axis, column.first, column.stop, parting=parting, cells=cells)
    weights = leaf_weights(column, low, length, total) if weights is None else weights
    if parting is not None:
        weights = possible_weights(weights, possible_leaves(column.axis, column.first, parting), length)
    marked = np.zeros(len(weights), dtype=np.int64) if parting is None else parting.labels_of(column.first)
    if is_stated and not needs_tree(column.axis):
        states = np.arange(len(weights))
    elif column.levels is not None:
        states = pool_siblings(column, weights, most_states)
    elif column.is_ordered:
        states = _group_neighbours(weights, column.is_null, marked, most_states, few_values=not needs_tree(column.axis))
    else:
        states = _pool_rare(column, marked, most_states)
    model = ColumnModel(low, length, column.is_null, weights, states.astype(np.int32), int(states.max()) + 1)
    return model, Cut(column.axis, column.first, states)


def possible_leaves(axis: Axis, first: NDArray[np.int64], parting: Parting) -> NDArray[np.bool_]:
    """The leaves, by their first cells, in which rules leave some rows."""
    labels = np.where(np.equal(first, axis.null_cell), parting.n_labels, parting.labels_of(first))
    return np.asarray(parting.possible[labels])


def leaf_weights(column: NoisyColumn, low: Floats, length: Floats, total: float) -> Floats:
    """Weights that are not negative and add up to the total, of leaves that lie there."""
    noisy = column.noisy_counts.astype(np.float64)
    if column.noise_std == 0:  # shares that are known, not counts
        return np.asarray(total * noisy / noisy.sum())
    if column.is_told and column.is_ordered and (noisy > 0).any():  # where a prior leaves nothing, nothing is added
        weights = np.zeros_like(noisy)
        weights[noisy > 0] = project_to_total(noisy[noisy > 0], total)
        return weights
    if not column.is_ordered or column.is_told:
        return project_to_total(noisy, total)
    is_whole = column.axis.kind == "integer"
    return number_weights(noisy, column.noise_std, low, length, column.is_null, total, is_whole=is_whole)


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
