"""Noisy vectors of sums over all rows: named analyses, and products of pairs. SENSITIVE up to the noise.

Each vector is one part of the account (`PrepaidMechanisms.noisy_sums`); its sums are whole numbers, and how far
a row moves them is bounded by public numbers alone.

    analyses    sums that named regressions follow from                           analyses.proof.md
    products    every other pair of columns, coarsely, and the tilt by them       products.proof.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, repeat

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.states import Cut, StateRows, StateTables
from spinney.forest.cliques import even_groups
from spinney.forest.design import Effort
from spinney.forest.plan import ForestPlan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.analyses import ReleasedAnalyses, balanced, spreads_of
from spinney.forest.release.columns import ColumnModel, Floats
from spinney.forest.release.fit import ReleasedProducts, fitted_products, n_sums, sensitivity_squared, signs
from spinney.forest.release.formula import Block, Formula, Regressor
from spinney.forest.release.measured import TiltFit
from spinney.forest.release.places import PlaceModel
from spinney.graph.model import GraphModel
from spinney.graph.tilt import Groups, Pair
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import GaussianVector
from spinney.tables.source import Source

# ------------------------------------------------------------------------------------------------------------- analyses
# Analyses named before the fit: the sums that their regressions follow from, measured as one noisy vector.
#
# Every row counts in sums of products of two columns (`release/formula`), whole numbers all of them, read from
# the table by the cuts that every engine knows. All sums together are one vector with one part of the account
# (`noisy_sums`, analyses.proof.md). The columns that were released before decide where the noise of the vector
# goes (`release/regression`, regressor weights).


Whole = NDArray[np.int64]


def weighted_blocks(
    blocks: Sequence[Block],
    formulas: Sequence[Formula],
    columns: Mapping[str, ColumnModel],
    prepaid: PrepaidMechanisms,
    *,
    n_rows: float,
) -> tuple[Block, ...]:
    """The blocks with the weights that suit what was released of their columns, and of the number of rows."""
    precision = max(n_rows, 1.0) * math.sqrt(prepaid.plan.vectors["analyses"].mean_squared)
    return tuple(balanced(block, formulas, spreads_of(block, columns), precision=precision) for block in blocks)


def release_analyses(table: Source, blocks: Sequence[Block], prepaid: PrepaidMechanisms) -> ReleasedAnalyses:
    """The noisy sums of all blocks. `prepaid` has charged for the vector."""
    unit = prepaid.plan.unit
    true_sums = [
        table.sum_states([_cut(column) for column in block.columns], partial(true_sums_of, block=block))
        for block in blocks
    ]
    sensitivity = sum(block.sensitivity_squared(unit) for block in blocks)
    noisy = prepaid.noisy_sums(np.concatenate(true_sums), sensitivity, "analyses")
    sums = tuple(np.split(noisy, np.cumsum([len(part) for part in true_sums])[:-1]))
    return ReleasedAnalyses(tuple(blocks), sums, prepaid.plan.vectors["analyses"].variance(sensitivity))


def true_sums_of(rows: StateRows, block: Block) -> Whole:
    """The exact sums of a block over all rows that have no null in it (n_entries,). SENSITIVE."""
    is_whole = np.ones(rows.n_rows, dtype=np.bool_)
    for column, states in zip(block.columns, rows.true_states, strict=True):
        is_whole &= states < column.n_cells
    states = [line[is_whole].astype(np.int64) for line in rows.true_states]
    n_rows, moments = int(is_whole.sum()), np.zeros((block.n_slots, block.n_slots), dtype=np.int64)
    moments[0, 0] = n_rows * block.constant**2
    for place, (start, column) in enumerate(zip(block.starts, block.columns, strict=True)):
        here = slice(start, start + column.n_slots)
        moments[0, here] = block.constant * _alone(column, states[place])
        if column.is_number:
            moments[start, start] = (column.counted[states[place]] ** 2).sum()
        for other in range(place + 1, len(block.columns)):
            there = slice(block.starts[other], block.starts[other] + block.columns[other].n_slots)
            moments[here, there] = _together((column, block.columns[other]), (states[place], states[other]))
    return np.array([moments[entry.first, entry.second] for entry in block.entries], dtype=np.int64)


def _alone(column: Regressor, states: Whole) -> Whole:
    """The sum of what a column counts, for each of its slots."""
    if column.is_number:
        return np.array([column.counted[states].sum()])
    return column.unit * np.bincount(states, minlength=column.n_slots)


def _together(columns: tuple[Regressor, Regressor], states: tuple[Whole, Whole]) -> Whole:
    """The sums of products of what two columns count, for every two of their slots."""
    (first, second), (i, j) = columns, states
    if first.is_number and second.is_number:
        return np.array([[(first.counted[i] * second.counted[j]).sum()]])
    if not first.is_number and not second.is_number:
        table = np.bincount(i * second.n_slots + j, minlength=first.n_slots * second.n_slots)
        return first.unit * second.unit * table.reshape(first.n_slots, second.n_slots)
    if second.is_number:
        return _together((second, first), (j, i)).T
    sums = np.zeros(second.n_slots, dtype=np.int64)
    np.add.at(sums, j, first.counted[i])
    return second.unit * sums[None, :]


def _cut(column: Regressor) -> Cut:
    """Every cell of a column's grid by itself, and null."""
    cells = np.arange(column.n_cells, dtype=np.int64)
    first = np.append(cells, column.axis.null_cell) if column.axis.nullable else cells
    return Cut(column.axis, first, np.arange(len(first), dtype=np.int64))


# ------------------------------------------------------------------------------------------------------------- products
# Products: every pair of columns at once, coarsely, as one noisy vector.
#
# The tables that a forest counts hold few of all pairs. Of every other pair a few sums are released: the states
# of each column fall into groups of about equal weight, functions of the groups take the values -1 and 1
# (`release/fit`, signs), and for every two functions of two columns their product is summed over all rows. The
# sums are whole numbers, one vector with one part of the account (`noisy_sums`, products.proof.md). The number
# of groups follows from released and public numbers: as many as leave the error of a mean product small.


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
    noise, unit = prepaid.plan.vectors["products"], prepaid.plan.unit
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
    sums = [part.reshape(table.shape) for part, table in zip(np.split(noisy, ends), true_sums, strict=True)]
    fit = tilt_fit(effort, len(pairs) + len(held), prepaid.plan)
    return fitted_products(
        model, groups, pairs, sums, noise.variance(sensitivity), tuple(sorted(held)), fit, total=total, rng=rng
    )


def tilt_fit(effort: Effort, n_pairs: int, plan: ForestPlan) -> TiltFit:
    """How the tilt by products is fitted, where so many pairs were summed or counted."""
    return TiltFit(effort.n_drawn_for(n_pairs), effort.steps, plan.noise_std("cliques"))


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
    noise: GaussianVector,
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
