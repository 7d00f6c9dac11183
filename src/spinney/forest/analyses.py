"""Analyses named before the fit: the sums that their regressions follow from, measured as one noisy vector.

Every row counts in sums of products of two columns (`release.regressors`), whole numbers all of them, read from the
table by the cuts that every engine knows. All sums together are one vector with one part of the account
(`prepaid.noisy_sums`, analyses.proof.md). Where the noise of the vector goes is decided by the columns that were
released before (`release.regressor_weights`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import Cut, StateRows
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.analyses import ReleasedAnalyses
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.formula import Formula
from spinney.forest.release.regressor_weights import balanced, spreads_of
from spinney.forest.release.regressors import Block, Regressor
from spinney.tables.source import Source

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
