"""Columns of persons' rows: leaves, weighted counts, alikeness, hidden levels. SENSITIVE up to the noise.

Rows of one person are weighted so that a person adds `UNITS` at most to each table (`privacy/mechanisms`), and
numbers are in these units. All noise comes from the prepaid plan. Proof: people.proof.md, trees and tables,
alikeness, derived columns.

    alikeness            how much two rows of one person have in common, column by column
    derived from rows    numbers of rows, first values and differences, from a person's own rows
    columns              trees on one random row a person, and weighted counts of their leaves
    levels               hidden levels: what a person's rows have in common, drawn for each person
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Bounded, Real, whole_range
from spinney.columns.reading import Physical
from spinney.compiled import compiled
from spinney.counting.counts import CellCounts
from spinney.counting.states import Cut, WeightedRows
from spinney.forest.columns import NoisyColumn, all_leaves, noisy_cells, noisy_ranges
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.axes import ColumnAxis, Parting
from spinney.grid.lattice import Axis
from spinney.people.release.rows import count_name, first_name, learnt_schema, relative_columns
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import UNITS
from spinney.schema.linked import RowsShape
from spinney.tables.engines.memory import MemorySource, open_memory
from spinney.tables.persons import GatheredRows
from spinney.text import Sensitive

# ------------------------------------------------------------------------------------------------------------ alikeness
# Alikeness: how much two rows of one person have in common, column by column. SENSITIVE up to the noise.
#
# Of every person with two rows and more, two random ones are compared: numbers by the product of their places in the
# released law of the column, from -1 to 1; categories by whether they agree. The sums over persons, and how many
# persons there are, are one vector with noise (people.proof.md, alikeness). What comes of it is a correlation within
# persons for each column.


Floats = NDArray[np.float64]

# A correlation above this is taken for it: levels would decide nearly everything.
_MOST = 0.97
# A sum over fewer persons than so many standard deviations of their noisy number says nothing.
_STANDS_OUT = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLaw:
    """The released law of a column's states, in order where they have one."""

    shares: Floats  # (n_states,), adding up to 1
    is_ordered: bool

    def places(self) -> Floats:
        """The middle of every state in the distribution function, from 0 to 1."""
        return np.asarray(np.cumsum(self.shares) - self.shares / 2)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compared(Sensitive):
    """The states of two rows of some persons, in all columns (n_columns, n_persons). SENSITIVE."""

    first: NDArray[Any]
    second: NDArray[Any]


def two_rows(states: NDArray[Any], starts: NDArray[np.int64], rng: np.random.Generator) -> Compared:
    """Two random rows of every person that has two or more."""
    n_rows = np.diff(starts)
    has_two = n_rows > 1
    m, begin = n_rows[has_two], starts[:-1][has_two]
    first = np.minimum((rng.random(len(m)) * m).astype(np.int64), m - 1)
    second = (first + 1 + np.minimum((rng.random(len(m)) * (m - 1)).astype(np.int64), m - 2)) % m
    return Compared(states[:, begin + first], states[:, begin + second])


def sensitivity_squared(n_columns: int, unit: Unit) -> int:
    """How far one person moves all sums together, in squared units: numbers lie between -1 and 1, counts are 1."""
    return UNITS**2 * (n_columns + 1 if unit.factor == 1 else 4 * n_columns + 1)


def true_alikeness(compared: Compared, laws: Sequence[ColumnLaw]) -> NDArray[np.int64]:
    """The sums of all columns, and how many persons there are, in units. SENSITIVE."""
    sums = []
    for law, first, second in zip(laws, compared.first, compared.second, strict=True):
        if law.is_ordered:
            centred = 2 * law.places() - 1
            scaled = np.nan_to_num(np.clip(np.multiply.outer(centred, centred), -1, 1))
            products = np.rint(UNITS * scaled).astype(np.int64)
        else:
            products = UNITS * np.eye(len(law.shares), dtype=np.int64)
        sums.append(products[first, second].sum(dtype=np.int64))
    return np.array([*sums, UNITS * compared.first.shape[1]], dtype=np.int64)


def release_alikeness(
    compared: Sequence[Compared], laws: Sequence[Sequence[ColumnLaw]], prepaid: PrepaidMechanisms
) -> list[Floats]:
    """For each table of rows the correlation within persons of every column, from 0 to nearly 1."""
    unit = prepaid.plan.unit
    vector = np.concatenate([true_alikeness(some, of_table) for some, of_table in zip(compared, laws, strict=True)])
    sensitivity = sum(sensitivity_squared(len(of_table), unit) for of_table in laws)
    noisy = prepaid.noisy_sums(vector, sensitivity, "alikeness") / UNITS
    noise_std = float(prepaid.plan.vectors["alikeness"].variance(sensitivity)) ** 0.5 / UNITS
    found, at = [], 0
    for of_table in laws:
        sums, n_persons = noisy[at : at + len(of_table)], noisy[at + len(of_table)]
        at += len(of_table) + 1
        if n_persons < _STANDS_OUT * noise_std:
            found.append(np.zeros(len(of_table)))
            continue
        found.append(np.array([_correlation(law, s / n_persons) for law, s in zip(of_table, sums, strict=True)]))
    return found


def _correlation(law: ColumnLaw, mean: float) -> float:
    """The correlation that a mean product, or a share of persons whose rows agree, stands for."""
    if law.is_ordered:
        variance = float(law.shares @ (2 * law.places() - 1) ** 2)
        return float(np.clip(mean / max(variance, 1e-9), 0.0, _MOST))
    by_chance = float((law.shares**2).sum())
    return float(np.clip((mean - by_chance) / max(1 - by_chance, 1e-9), 0.0, _MOST))


# ---------------------------------------------------------------------------------------------------- derived from rows
# What a person's rows give beside their own values: how many there are, first values, differences. SENSITIVE.
#
# Everything here is a function of one person's rows (`relative_columns` in `release/rows` says of which columns
# there are differences).


Starts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldRows(Sensitive):
    """The kept rows of one table as they are learnt, in the order of persons. SENSITIVE."""

    source: MemorySource
    starts: Starts
    one: MemorySource  # one random row of every person that has any

    @property
    def n_rows(self) -> NDArray[np.int64]:
        """How many rows every person has."""
        return np.diff(self.starts)


def held_rows(gathered: GatheredRows, rows: RowsShape) -> tuple[HeldRows, dict[str, Any]]:
    """The rows as they are learnt, and the columns of persons that `made_columns` names, as Arrow arrays."""
    table, starts = gathered.table, gathered.starts
    n_rows = np.diff(starts)
    made: dict[str, Any] = {count_name(rows.name): pa.array(n_rows)}
    has_rows = n_rows > 0
    first = starts[:-1][has_rows]
    as_stated = open_memory(table, rows.modelled)
    for name in relative_columns(rows):
        column = rows.modelled[name]
        assert isinstance(column, Bounded)
        at_first = pa.array(starts[:-1], mask=~has_rows)  # whoever has no rows has no first value
        made[first_name(rows.name, name)] = table[name].combine_chunks().take(at_first)
        values = _within(as_stated.table.physical(name).values, column)
        if name == rows.order and rows.steps:
            differences = np.diff(values, prepend=values[:1])
        else:
            differences = values - np.repeat(values[first], n_rows[has_rows])
        is_first = np.zeros(len(values), dtype=np.bool_)
        is_first[first] = True
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(differences, mask=is_first))
    schema = learnt_schema(rows)._modelled
    every, one = open_memory(table, schema), open_memory(table.take(pa.array(gathered.one)), schema)
    return HeldRows(every, starts, one), made


def _within(values: NDArray[Any], column: Bounded) -> NDArray[Any]:
    """Values as they are counted: those outside of the bounds at the nearer one."""
    if isinstance(column, Real):
        return np.asarray(np.clip(values, float(column.low), float(column.high)))
    low, high = whole_range(column)
    return np.asarray(np.clip(values, low, high))


# -------------------------------------------------------------------------------------------------------------- columns
# Columns of rows: trees grown on one random row a person, and weighted counts of their leaves. SENSITIVE.
#
# A tree needs a table in which a person is one row, and a random one of theirs serves; only the tree's shape is
# released of it. Counts of leaves are of all rows, weighted. Numbers are in units, `UNITS` a person. Proof:
# people.proof.md, trees and tables.


Cells = NDArray[np.int64]


def release_row_columns(
    held: HeldRows,
    weighted: WeightedRows,
    axes: Sequence[ColumnAxis],
    partings: Mapping[int, Parting],
    prepaid: PrepaidMechanisms,
) -> list[NoisyColumn]:
    """All columns of one table of rows: leaves, and noisy units in them."""
    counted = held.one.count_columns([axis.lattice for axis in axes])
    return [
        _release_column(
            counts, held.source.table.physical(axis.axis.name), weighted, axis, partings.get(place), prepaid
        )
        for place, (axis, counts) in enumerate(zip(axes, counted, strict=True))
    ]


def _release_column(
    one_row: CellCounts,
    values: Physical,
    weighted: WeightedRows,
    column: ColumnAxis,
    parting: Parting | None,
    prepaid: PrepaidMechanisms,
) -> NoisyColumn:
    axis, noise = column.axis, prepaid.plan.noise_law("row one-way")
    noisy = partial(prepaid.noisy_units, stage="row one-way")
    if column.ruler is None:
        true_units = weighted.true_pieces(values, _pieces(axis, all_leaves(axis)[0]))
        return noisy_cells(axis, true_units, noisy, noise, column.levels)
    cutoff = math.ceil(prepaid.plan.noise_std("row one-way"))
    roots = None if parting is None else parting.first
    ranges = prepaid.ranges(one_row, column.ruler, cutoff=cutoff, roots=roots, stage="row trees")
    true_units = weighted.true_pieces(values, _pieces(axis, ranges.first))
    true_spikes = weighted.true_pieces(values, _spike_pieces(axis, ranges.spikes))[: ranges.spikes.shape[1]]
    spikes = partial(prepaid.noisy_units, stage="row spikes"), prepaid.plan.noise_law("row spikes")
    return noisy_ranges(axis, ranges, (true_units, true_spikes), ((noisy, noise), spikes))


def _pieces(axis: Axis, first: Cells) -> Cut:
    """A cut with a state for every leaf."""
    return Cut(axis, np.append(0, first[1:]), np.arange(len(first)))


def _spike_pieces(axis: Axis, spikes: Cells) -> Cut:
    """A cut with a state for every spike, and one more, the last, for all that lies between them."""
    n_spikes = spikes.shape[1]
    order = np.argsort(spikes[0])
    begin, end = spikes[0][order], spikes[1][order]
    first = np.concatenate([begin, end, [0]])
    states = np.concatenate([order, np.full(n_spikes + 1, n_spikes)])
    # Where one spike ends and the next begins, or the first begins at the first cell, the spike has the cell.
    sorted_by = np.lexsort([states == n_spikes, first])
    first, states = first[sorted_by], states[sorted_by]
    kept = np.append(True, np.diff(first) > 0)
    return Cut(axis, first[kept], states[kept])


def persons_with_rows(columns: Sequence[NoisyColumn]) -> float:
    """How many units all rows have together, by the columns' own sums, the more precise ones counting more."""
    sums = [column.noisy_sum for column in columns]
    weight = sum(1 / variance for _, variance in sums)
    return max(sum(total / variance for total, variance in sums) / weight, float(UNITS))


# --------------------------------------------------------------------------------------------------------------- levels
# Hidden levels: for each person and column, a plausible value of what the person's rows have in common. SENSITIVE.
#
# Rows of a person are alike because of something that no column tells. It is told here by a level, drawn for each
# person given their own rows: of a number, a place on a normal scale to which rows add their own chance, cut into a
# few bins; of a category, a favourite. The level of a person is a function of their rows, of coins of their own and
# of released numbers, so it is one more column of a table with one row a person (people.proof.md, derived columns). A
# level is drawn, not computed: the mean of a few rows contains the rows themselves, and rows drawn from it would be
# too much alike.


N_BINS = 8
# Places in a distribution function are kept this far from its ends.
_MARGIN = 1e-4


def draw_levels(
    states: NDArray[Any],
    starts: NDArray[np.int64],
    law: ColumnLaw,
    correlation: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The level of every person in one column: a bin, or a state of the column (n_persons,). SENSITIVE.

    Args:
        states: of all rows in this column, in the order of persons.
        starts: where every person's rows begin, and the number of all rows.
        law: the released law of the states.
        correlation: the released correlation of two rows of a person.
        rng: coins of the persons.
    """
    levels = np.empty(len(starts) - 1, dtype=np.int64)
    if law.is_ordered:
        places = np.clip(law.places(), _MARGIN, 1 - _MARGIN)
        scores = np.array([NormalDist().inv_cdf(place) for place in places])
        _draw_bins(states, starts, scores, correlation, rng.standard_normal(len(levels)), levels)
    else:
        shares = np.maximum(law.shares, 1e-12)
        likeness = math.sqrt(correlation)
        gains = np.log1p(likeness / ((1 - likeness) * shares))
        _draw_favourites(states, starts, np.log(shares), gains, rng.random(len(levels)), levels)
    return levels


@compiled
def _draw_bins(
    states: NDArray[np.uint8],
    starts: NDArray[np.int64],
    scores: Floats,
    correlation: float,
    normals: Floats,
    levels: NDArray[np.int64],
) -> None:
    """Of m rows with a mean score x, the level is normal around k x, k = m r / (1 + (m - 1) r), of variance r (1-k)."""
    for person in range(levels.size):
        m = starts[person + 1] - starts[person]
        total = 0.0
        for row in range(starts[person], starts[person + 1]):
            total += scores[states[row]]
        share = m * correlation / (1 + (m - 1) * correlation) if m > 0 else 0.0
        mean = share * total / m if m > 0 else 0.0
        level = mean + math.sqrt(correlation * (1 - share)) * normals[person]
        place = 0.5 * (1 + math.erf(level / math.sqrt(2 * correlation)))
        levels[person] = min(int(N_BINS * place), N_BINS - 1)


@compiled
def _draw_favourites(
    states: NDArray[np.uint8],
    starts: NDArray[np.int64],
    log_shares: Floats,
    gains: Floats,
    coins: Floats,
    levels: NDArray[np.int64],
) -> None:
    """A favourite has a chance proportional to its share, times 1 + l / ((1 - l) share) for each row that has it."""
    n_states = log_shares.size
    chances = np.empty(n_states)
    for person in range(levels.size):
        chances[:] = log_shares
        for row in range(starts[person], starts[person + 1]):
            chances[states[row]] += gains[states[row]]
        top = chances.max()
        total = 0.0
        for state in range(n_states):
            chances[state] = math.exp(chances[state] - top)
            total += chances[state]
        left = coins[person] * total
        level = 0
        while level < n_states - 1 and left >= chances[level]:
            left -= chances[level]
            level += 1
        levels[person] = level
