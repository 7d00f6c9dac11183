"""Rows from a tilted model: drawn from the tree, taken by weight, and exchanged until they add up. PUBLIC.

More rows are drawn than are wanted, and weighted by the tilt. Where the tree's own single columns and counted
pairs are to hold, a few turns of proportional fitting see to it. Then rows are taken systematically by weight,
and *exchanged*: a row that was taken gives way to another one drawn by weight if single columns and pairs come
nearer to what all weighted rows say. So the rows that are left have little sampling noise in any pair, and each
is one that the tree has drawn: what it excludes stays excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.model import GraphModel, States, draw_states
from spinney.graph.tilt import MOST_WEIGHT, Floats, Pair, Tilt
from spinney.progress import progress

# Columns, and for each of their cells the logarithm of a factor; a single column is a pair with itself.
Factors = Sequence[tuple[Pair, Floats]]

# So many rows are drawn for each that is wanted, and no fewer than this, of which a part would say little.
_DRAWN_PER_ROW = 4
_LEAST_DRAWN = 20_000
# Rows that are made at a time: what is drawn for them has to fit into memory.
_AT_A_TIME = 250_000
# Turns of fitting weights to what the model says of pairs and columns, and last ones of columns alone.
_FITTING_TURNS = 5
_LAST_TURNS = 3
# Rows that factors for draws under conditions are fitted by.
_N_FITTED = 200_000
_LARGEST_FACTOR = 5.0
_ANY_FACTOR = 1e12
# Exchanges are tried for as many rows as there are, again and again, until fewer than this share of them help.
_MOST_TURNS = 25
_WORTH_TRYING = 0.01
# How much a squared gap in a pair counts beside one in a single column.
_PAIR_WEIGHT = 0.3
_EXACT_WEIGHT = 1e4
# Of more pairs than this, exchanges look at those alone that are to be as the model has them.
_MOST_EXCHANGED = 1_500


def draw_tilted(
    model: GraphModel,
    tilt: Tilt,
    n_rows: int,
    rng: np.random.Generator,
    *,
    columns: Sequence[int] = (),
    pairs: Sequence[Pair] = (),
) -> States:
    """States of `n_rows` rows under the tilted model, one line per column (n_columns, n_rows).

    Args:
        model: the law that is tilted.
        tilt: the factors.
        n_rows: how many rows.
        rng: draws them.
        columns: single columns that are to be as the model has them.
        pairs: pairs of columns that are to be as the model has them.
    """
    laws = _laws(model, columns, pairs)

    def draw(size: int) -> States:
        drawn, weights = _weighted(model, tilt, laws, max(_DRAWN_PER_ROW * size, _LEAST_DRAWN), rng)
        return _taken(drawn, weights, tilt, pairs, size, rng)

    return _in_parts(draw, n_rows, model)


def weighted_states(
    model: GraphModel,
    tilt: Tilt,
    n_drawn: int,
    rng: np.random.Generator,
    *,
    columns: Sequence[int] = (),
    pairs: Sequence[Pair] = (),
) -> tuple[States, Floats]:
    """Rows of the model (n_columns, n_drawn) and weights that add up to 1, with which they are rows of the tilted one.

    Args:
        model: the law that is tilted.
        tilt: the factors.
        n_drawn: how many rows.
        rng: draws them.
        columns: single columns that are to be as the model has them.
        pairs: pairs of columns that are to be as the model has them.
    """
    return _weighted(model, tilt, _laws(model, columns, pairs), n_drawn, rng)


def _weighted(
    model: GraphModel, tilt: Tilt, laws: Sequence[tuple[Pair, Floats]], n_drawn: int, rng: np.random.Generator
) -> tuple[States, Floats]:
    drawn = draw_states(model, n_drawn, rng)
    weights = tilt.weights(drawn)
    _fit_laws(weights, drawn, laws)
    return drawn, _with_exact_columns(weights, drawn, laws)


def draw_tilted_given(
    model: GraphModel,
    tilt: Tilt,
    factors: Factors,
    n_rows: int,
    rng: np.random.Generator,
    *,
    columns: Sequence[int] = (),
) -> States:
    """The same under conditions, of which the tilt knows nothing.

    Args:
        model: the law that is tilted, under the conditions.
        tilt: the factors.
        factors: what makes weighted rows of the model without conditions what they are to be (`fitted_factors`).
        n_rows: how many rows.
        rng: draws them.
        columns: single columns whose shares were asked for: they are as the model has them, to the row where it can be.
    """
    laws = _laws(model, columns, ())

    def draw(size: int) -> States:
        drawn = draw_states(model, max(_DRAWN_PER_ROW * size, _LEAST_DRAWN), rng)
        log_weights = tilt.log_weights(drawn)
        for pair, table in factors:
            log_weights += table.ravel()[_codes(drawn, pair, table)]
        weights = np.exp(log_weights - log_weights.max())
        weights = _with_exact_columns(weights, drawn, laws)
        return _taken(drawn, weights, tilt, (), size, rng, exactly=columns)

    return _in_parts(draw, n_rows, model)


def fitted_factors(
    model: GraphModel, tilt: Tilt, rng: np.random.Generator, *, columns: Sequence[int], pairs: Sequence[Pair]
) -> Factors:
    """Log-factors of columns and pairs with which weighted rows have them as the model does, nearly."""
    laws = _laws(model, columns, pairs)
    drawn = draw_states(model, _N_FITTED, rng)
    return _fit_laws(tilt.weights(drawn), drawn, laws)


def _laws(model: GraphModel, columns: Sequence[int], pairs: Sequence[Pair]) -> list[tuple[Pair, Floats]]:
    """What the model says of pairs, and of single columns as pairs with themselves."""
    found: list[tuple[Pair, Floats]] = [(pair, model.marginal(pair)) for pair in pairs]
    return [*found, *(((column, column), model.marginal((column,))) for column in columns)]


def _in_parts(draw: Callable[[int], States], n_rows: int, model: GraphModel) -> States:
    """Rows that are drawn part by part."""
    if n_rows < 0:
        raise ParameterError(f"n_rows={n_rows} must not be negative")
    n_parts = -(-n_rows // _AT_A_TIME)
    cuts = [n_rows * part // max(n_parts, 1) for part in range(n_parts + 1)]
    sizes = [stop - start for start, stop in pairwise(cuts)]
    parts = [draw(size) for size in progress(sizes, "drawing rows", unit="part")]
    return np.concatenate([np.zeros((model.tree.n_columns, 0), dtype=np.int32), *parts], axis=1)


def _taken(
    drawn: States,
    weights: Floats,
    tilt: Tilt,
    pairs: Sequence[Pair],
    n_rows: int,
    rng: np.random.Generator,
    *,
    exactly: Sequence[int] = (),
) -> States:
    """So many of the weighted rows."""
    taken = _systematic(weights, n_rows, rng)
    _exchange_rows(taken, drawn, weights, tilt, pairs, rng, exactly=exactly)
    rng.shuffle(taken)  # a row that was taken more than once would lie beside itself
    return np.ascontiguousarray(drawn[:, taken])


def _fit_laws(weights: Floats, drawn: States, laws: Sequence[tuple[Pair, Floats]]) -> Factors:
    """Fit weights, in place, until columns and pairs are as the laws say, nearly; the logarithms of all factors."""
    factors = [(pair, np.zeros(law.shape)) for pair, law in laws]
    for _ in range(_FITTING_TURNS if laws else 0):
        for place, (pair, law) in enumerate(laws):
            found = _fit(weights, _codes(drawn, pair, law), law.ravel(), _LARGEST_FACTOR)
            factors[place][1][...] += np.log(found).reshape(law.shape)
    return factors


def _with_exact_columns(weights: Floats, drawn: States, laws: Sequence[tuple[Pair, Floats]]) -> Floats:
    """Weights that are capped, add up to 1, and have single columns as the laws say."""
    weights = np.minimum(weights, MOST_WEIGHT * weights.sum() / weights.size)
    for _ in range(_LAST_TURNS):
        for (i, j), law in laws:
            if i == j:
                _fit(weights, drawn[i], law, _ANY_FACTOR)
    return np.asarray(weights / weights.sum())


def _codes(drawn: States, pair: Pair, law: Floats) -> NDArray[np.int32]:
    """The cell of every row in a law of one or two columns."""
    i, j = pair
    return np.asarray(drawn[i] if i == j else drawn[i] * np.int32(law.shape[1]) + drawn[j])


@compiled_loosely
def _fit(weights: Floats, codes: NDArray[np.int32], law: Floats, most: float) -> Floats:
    """Make the rows of each cell weigh what a law says, by factors of 1 / most to most, which are returned."""
    held = np.zeros(law.size)
    for row in range(weights.size):
        held[codes[row]] += weights[row]
    for cell in range(law.size):
        factor = law[cell] / held[cell] if held[cell] > 0 else 1.0
        held[cell] = min(max(factor, 1 / most), most)
    for row in range(weights.size):
        weights[row] *= held[codes[row]]
    return held


def _systematic(weights: Floats, n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which rows are taken, each within one of its expected number of times."""
    reached = np.cumsum(weights)
    at = (np.arange(n_rows) + rng.random()) * (reached[-1] / max(n_rows, 1))
    return np.asarray(np.minimum(np.searchsorted(reached, at, side="right"), weights.size - 1))


# ------------------------------------------------------------------------------------------------------------ exchanges


def _exchange_rows(
    taken: NDArray[np.int64],
    drawn: States,
    weights: Floats,
    tilt: Tilt,
    pairs: Sequence[Pair],
    rng: np.random.Generator,
    *,
    exactly: Sequence[int],
) -> None:
    """Exchange taken rows for others until pairs add up: `pairs` state by state, those of the tilt by groups.

    Columns of which shares were asked for come before everything else.
    """
    lines, tables, n_cells = _tables(drawn, tilt, pairs)
    n_rows = len(taken)
    wanted = np.zeros(n_cells)
    _count_cells(lines, tables, np.arange(len(lines)), weights * n_rows, wanted)
    gaps = np.zeros(n_cells)
    _count_cells(lines, tables, taken, np.ones(n_rows), gaps)
    gaps -= wanted
    worth = 1 / (wanted + 1)
    worth[tables[drawn.shape[0], 2] if len(tables) > drawn.shape[0] else n_cells :] *= _PAIR_WEIGHT
    for column in exactly:
        start = tables[column, 2]
        worth[start : start + len(tilt.groups[column])] *= _EXACT_WEIGHT
    for _ in range(_MOST_TURNS):
        offered = _systematic(weights, n_rows, rng)
        rng.shuffle(offered)
        if _exchange(taken, offered, lines, tables, gaps, worth) < _WORTH_TRYING * n_rows:
            break


def _tables(drawn: States, tilt: Tilt, pairs: Sequence[Pair]) -> tuple[NDArray[np.uint16], NDArray[np.int64], int]:
    """Rows as lines of states, groups and a zero; tables as two places of a line, their first cell and their width."""
    n_columns, n_drawn = drawn.shape
    lines = np.zeros((n_drawn, 2 * n_columns + 1), dtype=np.uint16)
    lines[:, :n_columns] = drawn.T
    lines[:, n_columns : 2 * n_columns] = tilt.grouped(drawn).T
    n_states, n_groups = [len(group) for group in tilt.groups], tilt.n_groups
    places = [(column, 2 * n_columns, n_states[column], 1) for column in range(n_columns)]
    places += [(i, j, n_states[i], n_states[j]) for i, j in pairs]
    if len(tilt.pairs) <= _MOST_EXCHANGED:
        places += [(n_columns + i, n_columns + j, n_groups[i], n_groups[j]) for i, j in tilt.pairs]
    cells = np.cumsum([0, *(height * width for _, _, height, width in places)])
    tables = [(i, j, cell, width) for (i, j, _, width), cell in zip(places, cells[:-1], strict=True)]
    return lines, np.array(tables, dtype=np.int64).reshape(-1, 4), int(cells[-1])


@compiled
def _count_cells(
    lines: NDArray[np.uint16], tables: NDArray[np.int64], rows: NDArray[np.int64], weights: Floats, counts: Floats
) -> None:
    for place in range(len(rows)):
        line = lines[rows[place]]
        for table in range(len(tables)):
            i, j, start, width = tables[table]
            counts[start + line[i] * width + line[j]] += weights[place]


@compiled
def _exchange(
    taken: NDArray[np.int64],
    offered: NDArray[np.int64],
    lines: NDArray[np.uint16],
    tables: NDArray[np.int64],
    gaps: Floats,
    worth: Floats,
) -> int:
    """Offer each taken row another in its place; the number of those that were exchanged."""
    n_exchanged = 0
    n_tables = len(tables)
    old_cells, new_cells = np.empty(n_tables, dtype=np.int64), np.empty(n_tables, dtype=np.int64)
    for place in range(len(taken)):
        old, new = lines[taken[place]], lines[offered[place]]
        gain = 0.0
        for table in range(n_tables):
            i, j, start, width = tables[table]
            leaves, comes = start + old[i] * width + old[j], start + new[i] * width + new[j]
            old_cells[table], new_cells[table] = leaves, comes
            if leaves != comes:
                gain += worth[leaves] * (2 * gaps[leaves] - 1) - worth[comes] * (2 * gaps[comes] + 1)
        if gain > 0:
            n_exchanged += 1
            taken[place] = offered[place]
            for table in range(n_tables):
                gaps[old_cells[table]] -= 1
                gaps[new_cells[table]] += 1
    return n_exchanged
