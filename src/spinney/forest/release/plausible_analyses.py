"""Sums of named regressions that no table has, and weights that do not follow from released columns.

A sum over n rows of products of two slots is at most n times both weights, sums of squares and of values are not below
nothing, the values of a column add up to the constant, and the first two moments of a number lie where the counts of
its leaves let them: all of it but for noise of a known law. Weights are chosen from what was released before
(`regressor_weights`), so that they can be chosen again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.formula import parse_formulas
from spinney.forest.release.plausible import MOST_DEVIATIONS, slack_of_total
from spinney.forest.release.regressor_weights import Floats, balanced, cost_of, spreads_of
from spinney.forest.release.regressors import Block, Regressor
from spinney.privacy.parts import GaussianVector
from spinney.release.contradictions import check

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# Gaussian noise beyond so many standard deviations is drawn once in 10^32 times.
_DEVIATIONS = 12.0
# By how much the weights of a file may be worse than those found here: another machine rounds otherwise, and of two
# that are equally good it may take the other.
_COST_SLACK = 1e-6


def check_analyses_sums(release: ForestRelease) -> None:
    """Every sum is one that some table has, but for noise."""
    analyses = release.analyses
    assert analyses is not None
    noise = math.sqrt(analyses.variance)
    n_most = release.noisy_total + slack_of_total(release)
    for block, sums in zip(analyses.blocks, analyses.sums, strict=True):
        moments = _moments(block, sums.astype(np.float64), release.card.n_rows)
        _check_range(block, moments, n_most, noise)
        _check_values(block, moments, noise)
        for start, column in zip(block.starts, block.columns, strict=True):
            if column.is_number and not any(other.axis.nullable for other in block.columns):
                _check_number(release, column, moments[[0, start], start], block.constant, noise)


def check_analyses_weights(release: ForestRelease) -> list[str]:
    """Weights are those that a fit chooses for the columns in the file."""
    analyses, card = release.analyses, release.card
    if analyses is None:
        return []
    charged = [part for event in card.events for part in getattr(event, "parts", ())]
    vector = next(part for part in charged if isinstance(part, GaussianVector) and part.stage == "analyses")
    total = float(release.noisy_total) if release.measured is None else release.measured.total
    precision = max(total, 1.0) * math.sqrt(vector.mean_squared)
    formulas = parse_formulas(card.parameters.get("analyses"), card.schema)
    for block in analyses.blocks:
        spreads = spreads_of(block, release.columns)
        wanted = balanced(block, formulas, spreads, precision=precision)
        costs = [cost_of(one, formulas, spreads, precision=precision) for one in (block, wanted)]
        is_same = block.units == wanted.units or abs(costs[0] - costs[1]) <= _COST_SLACK
        check(is_same, "the weights of the sums of analyses are not those that the columns in the file give")
    return ["the weights of the sums of analyses were chosen again from the columns in the file, and are the same"]


def _moments(block: Block, sums: Floats, n_public: int | None) -> Floats:
    """The sums by slots (n_slots, n_slots), those of two values of one column as they have to be: none."""
    moments = np.zeros((block.n_slots, block.n_slots))
    if not block.counts_rows:
        moments[0, 0] = float(n_public or 0) * float(block.constant) ** 2
    for entry, value in zip(block.entries, sums, strict=True):
        moments[entry.first, entry.second] = moments[entry.second, entry.first] = value
    return moments


def _check_range(block: Block, moments: Floats, n_most: float, noise: float) -> None:
    weights = block.weights.astype(np.float64)
    most = n_most * np.outer(weights, weights) + _DEVIATIONS * noise
    is_value = np.array([owner < 0 or not block.columns[owner].is_number for owner in block.owner])
    is_positive = np.eye(len(weights), dtype=np.bool_) | np.outer(is_value, is_value)
    check(bool((np.abs(moments) <= most).all()), "a sum of analyses is larger than the number of rows and noise allow")
    is_fine = bool((moments[is_positive] >= -_DEVIATIONS * noise).all())
    check(is_fine, "a sum of analyses is negative that is of squares or of values, by more than noise allows")


def _check_values(block: Block, moments: Floats, noise: float) -> None:
    """Of every row that counts a category has one value: its sums add up to what the constant has."""
    for start, column in zip(block.starts, block.columns, strict=True):
        if column.is_number:
            continue
        here, part = slice(start, start + column.n_slots), column.weight / block.constant
        off = np.abs(moments[here].sum(axis=0) - part * moments[0])
        off[here] = 0.0  # of the column with itself nothing was summed
        most = _DEVIATIONS * noise * math.sqrt(column.n_slots + part**2)
        # Sums are rounded to 53 bits here, each.
        is_fine = off <= most + 1e-12 * np.abs(moments[here]).sum(axis=0)
        check(bool(is_fine.all()), f"the sums of analyses of the values of {column.name!r} do not add up")


def _check_number(release: ForestRelease, column: Regressor, sums: Floats, constant: int, noise: float) -> None:
    """Sum and sum of squares of a number, in units of its weight, lie where the counts of its leaves let them."""
    measured, names = release.measured, release.variables
    counted = None if measured is None or column.name not in names else measured.columns[names.index(column.name)]
    if counted is None or counted.kind not in ("real", "integer") or column.name not in release.columns:
        return
    model, (offset, reach) = release.columns[column.name], column.line
    is_whole = counted.kind == "integer"
    low = model.low + (float(column.axis.low) if is_whole else 0.0)
    cell = 1 / (column.n_cells - 1)  # values count as the middle of their cell, half a cell away at most
    first = np.clip((low - offset) / reach - cell, -1, 1)
    last = np.clip((low + model.length - is_whole - offset) / reach + cell, -1, 1)
    starts = np.flatnonzero(np.diff(counted.leaf, prepend=-1))
    first, last = np.minimum.reduceat(first, starts), np.maximum.reduceat(last, starts)
    squares = np.square([first, last])
    least = np.where((first <= 0) & (last >= 0), 0.0, squares.min(axis=0))
    for low_end, high_end, found, unit in (
        (first, last, sums[0], constant * column.weight),
        (least, squares.max(axis=0), sums[1], column.weight**2),
    ):
        middle, half = (low_end + high_end) / 2, (high_end - low_end) / 2
        # Counts are true ones plus noise, so that both sums over leaves have Gaussian noise, or one with such tails.
        spread = counted.noise.std * (np.linalg.norm(middle) + np.linalg.norm(half))
        most = max(float(counted.noisy @ half), 0.0) + MOST_DEVIATIONS * spread + _DEVIATIONS * noise / unit
        is_near = abs(found / unit - float(counted.noisy @ middle)) <= most * (1 + 1e-9)
        check(is_near, f"the sums of analyses of {column.name!r} are not of a column with the counts in the file")
