"""Products: every pair of columns at once, coarsely, as one noisy vector.

The tables that a forest counts hold few of all pairs. Of every other pair a few sums are released: the states of each
column fall into groups of about equal weight, functions of the groups take the values -1 and 1 (`release.signs`), and
for every two functions of two columns their product is summed over all rows. The sums are whole numbers, one vector
with one part of the account (`prepaid.noisy_sums`, products.proof.md). How many groups there are follows from released
and public numbers: as many as leave the error of a mean product small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, repeat

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.state_tables import StateTables
from spinney.forest.coarse import even_groups
from spinney.forest.design import Effort
from spinney.forest.plan import VectorNoise
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.products import ReleasedProducts
from spinney.forest.release.signs import n_sums, sensitivity_squared, signs
from spinney.graph.model import GraphModel
from spinney.graph.tilt import Groups, Pair
from spinney.graph.tilting import Evidence, Products, fit_tilt
from spinney.privacy.budget import Unit

# Columns have as many groups as leave this much error to a mean product, which is between -1 and 1.
_MOST_ERROR = 0.02
_NUMBERS_OF_GROUPS = (16, 8, 4, 2)


def release_products(
    rows: StateTables,
    columns: Sequence[ColumnModel | PlaceModel],
    is_ordered: Sequence[bool],
    model: GraphModel,
    counted: Sequence[Clique],
    prepaid: PrepaidMechanisms,
    *,
    total: float,
    effort: Effort,
    rng: np.random.Generator,
) -> ReleasedProducts | None:
    """The noisy sums of all pairs that no counted table holds, and the model's tilt by them; None without such pairs.

    Args:
        rows: the states of all rows.
        columns: the released columns and places.
        is_ordered: for each whether its leaves are in an order, as those of numbers are.
        model: the model of the counted tables.
        counted: the columns of these tables.
        prepaid: has charged for the vector.
        total: the number of rows, or a noisy one.
        effort: how much work the tilt is worth.
        rng: draws rows from the model, which is no noise.
    """
    held = counted_pairs(counted)
    several = [number for number, column in enumerate(columns) if column.n_states > 1]
    pairs = tuple(pair for pair in combinations(several, 2) if pair not in held)
    noise, unit = prepaid.plan.products, prepaid.plan.unit
    assert noise is not None
    if not pairs:  # all that there are were counted
        prepaid.noisy_sums(np.zeros(0, dtype=np.int64), 0)
        return None
    groups = _groups(columns, is_ordered, model, held, pairs, noise, unit, total=total, most_sums=effort.most_sums)
    n_groups = [int(group.max()) + 1 for group in groups]
    sensitivity = sensitivity_squared(n_groups, pairs, unit)
    true_sums = _true_sums(rows, groups, pairs)
    noisy = prepaid.noisy_sums(np.concatenate([table.ravel() for table in true_sums]), sensitivity)
    ends = np.cumsum([table.size for table in true_sums])[:-1]
    sums = tuple(part.reshape(table.shape) for part, table in zip(np.split(noisy, ends), true_sums, strict=True))
    variance = noise.variance(sensitivity)
    evidence = Evidence(
        groups=groups,
        functions=tuple(signs(number).astype(np.float64) for number in n_groups),
        products=Products(pairs, tuple(table.astype(np.float64) for table in sums), math.sqrt(variance)),
        held=tuple(sorted(held)),
        held_std=prepaid.plan.noise_std("cliques"),
        total=total,
    )
    n_drawn = effort.n_drawn_for(len(pairs) + len(held))
    tilt = fit_tilt(model, evidence, n_drawn=n_drawn, steps=effort.steps, rng=rng)
    return ReleasedProducts(pairs, sums, variance, tilt)


def _true_sums(rows: StateTables, groups: Sequence[Groups], pairs: Sequence[Pair]) -> list[NDArray[np.int64]]:
    """For every pair the exact sums of products of its functions. SENSITIVE."""
    n_groups = [int(group.max()) + 1 for group in groups]
    return [
        signs(n_groups[i]) @ true_table @ signs(n_groups[j]).T
        for (i, j), true_table in zip(pairs, rows.true_group_tables(groups, pairs), strict=True)
    ]


def _groups(
    columns: Sequence[ColumnModel | PlaceModel],
    is_ordered: Sequence[bool],
    model: GraphModel,
    held: set[Pair],
    pairs: Sequence[Pair],
    noise: VectorNoise,
    unit: Unit,
    *,
    total: float,
    most_sums: int,
) -> tuple[Groups, ...]:
    """The groups of all columns' states: the most that leave little error to a mean product."""
    orders = _orders(columns, is_ordered, model, held)
    weights = [column.state_weights() for column in columns]
    for most_groups in _NUMBERS_OF_GROUPS:
        groups = tuple(map(even_groups, orders, weights, repeat(most_groups)))
        n_groups = [int(group.max()) + 1 for group in groups]
        error = math.sqrt(noise.variance(sensitivity_squared(n_groups, pairs, unit))) / total
        if n_sums(n_groups, pairs) <= most_sums and error <= _MOST_ERROR:
            break
    return groups


def counted_pairs(cliques: Sequence[Clique]) -> set[Pair]:
    """The pairs of columns that share a counted table."""
    return {(min(pair), max(pair)) for clique in cliques for pair in combinations(clique, 2)}


def _orders(
    columns: Sequence[ColumnModel | PlaceModel], is_ordered: Sequence[bool], model: GraphModel, held: set[Pair]
) -> list[NDArray[np.int64]]:
    """The states of each column in an order in which neighbours are alike.

    Numbers have one. Categories are put in the order of the counted column that depends on them most, by its mean
    place, or by weight where none was counted.
    """
    pairs = sorted(held)
    tables = dict(zip(pairs, model.marginals(pairs), strict=True))
    orders = []
    for column, (leaves, ordered) in enumerate(zip(columns, is_ordered, strict=True)):
        if ordered and isinstance(leaves, ColumnModel):
            first = np.full(leaves.n_states, len(leaves.states))
            np.minimum.at(first, leaves.states, np.arange(len(leaves.states)))
            orders.append(np.argsort(first, kind="stable"))
            continue
        others = [tables[pair] if pair[0] == column else tables[pair].T for pair in pairs if column in pair]
        key = -leaves.state_weights()
        if others:
            key = _mean_places(max(others, key=_dependence))
        orders.append(np.argsort(key, kind="stable"))
    return orders


def _dependence(table: Floats) -> float:
    """How far a table is from independence."""
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum())


def _mean_places(table: Floats) -> Floats:
    """For each row of a law, the mean of where it lies along the columns, by rank."""
    law = table.sum(axis=0)
    rows = table.sum(axis=1)
    middle = np.cumsum(law) - law / 2
    return np.asarray(np.divide(table @ middle, rows, out=np.full(len(rows), 0.5), where=rows > 0))
