"""Columns by themselves, with a prior: how far a public table is off is told by the noisy counts that were released.

With y the noisy count of a leaf, s the standard deviation of its noise and m what the prior expects there,

    y - m  has the variance  s^2 + c m + w^2 (m + m0)^2,    c = 1 + total / rows of the prior,

where c m is what two samples of one law differ by and w says by how much the prior's law is another one. The likelihood
of all leaves gives w, so each column says for itself how much its prior is worth (empirical Bayes). Nothing private is
asked for. Where the prior tells more of a column than the counts do, counts are drawn towards it, never by more than
two standard deviations of their noise, and long leaves are cut as it suggests; other columns stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.forest.columns import NoisyColumn
from spinney.forest.spikes import part_spikes
from spinney.schema.ruler import Ruler

Floats = NDArray[np.float64]

# What w may be: from the same law to one that tells nothing.
_RATIOS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
# m0, as a part of what a leaf holds on average: a leaf that the prior leaves empty may still hold rows.
_FLOOR = 0.3
# Small w are likelier beforehand, by 1 / (1 + w / this): few noisy counts hardly tell w.
_LIKELY = 0.01
_FARTHEST = 2.0
# A prior tells more than the counts where no more than this part of a difference to it is believed.
_MOST_MOVED = 0.5
# Leaves are cut while the prior has this part of its rows in them, into so many at the most.
_FEWEST_PART = 1 / 400
_FEWEST_ROWS = 25
_MOST_LEAVES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """How much a prior is worth: `ratio` is w."""

    ratio: float
    sampling: float  # c

    def variances(self, expected: Floats) -> Floats:
        """By how much counts may differ from what the prior expects."""
        floor = _FLOOR * float(expected.sum()) / max(1, expected.size)
        return np.asarray(self.sampling * np.maximum(expected, 1.0) + (self.ratio * (expected + floor)) ** 2)


def trust(noisy: Floats, noise_std: float, expected: Floats, sampling: float) -> Trust:
    """The trust that noisy counts make likeliest."""
    best, found = -np.inf, Trust(_RATIOS[-1], sampling)
    for ratio in _RATIOS:
        tried = Trust(ratio, sampling)
        variances = noise_std**2 + tried.variances(expected)
        likelihood = -0.5 * float((np.log(variances) + (noisy - expected) ** 2 / variances).sum())
        likelihood -= math.log1p(ratio / _LIKELY)
        if likelihood > best:
            best, found = likelihood, tried
    return found


def with_prior(
    column: NoisyColumn, prior_counts: CellCounts, n_prior: int, total: float, ruler: Ruler | None
) -> NoisyColumn:
    """The column with its counts drawn towards those of a public table, and cut further where that tells more."""
    if column.noise_std == 0 or column.levels is not None or n_prior == 0:
        return column
    whole, column = column, part_spikes(column)
    expected = _rows_of_leaves(prior_counts, column.first, n_prior) * (total / n_prior)
    noisy = column.noisy_counts.astype(np.float64)
    found = trust(noisy, column.noise_std, expected, 1 + total / n_prior)
    variances = found.variances(expected)
    moved = variances / (variances + column.noise_std**2)
    if np.average(moved, weights=expected + 1e-9) > _MOST_MOVED:
        return whole
    reach = _FARTHEST * column.noise_std
    counts = np.clip(expected + moved * (noisy - expected), noisy - reach, noisy + reach)
    deviations = column.noise_std * np.sqrt(moved)
    first, stop, leaf = column.first, column.stop, np.arange(len(column.first))
    if ruler is not None:
        first, stop, leaf = _cut_further(column, prior_counts, n_prior, ruler)
    inside = _rows_of_leaves(prior_counts, first, n_prior)
    held = np.bincount(leaf, weights=inside, minlength=len(counts))
    even = (stop - first) / np.bincount(leaf, weights=stop - first, minlength=len(counts))[leaf]
    share = np.where(held[leaf] > 0, inside / np.maximum(held[leaf], 1.0), even)
    noise_std = float(np.sqrt(np.mean((deviations[leaf] * share) ** 2)))
    noisy_counts = np.rint(counts[leaf] * share).astype(np.int64)
    return replace(column, first=first, stop=stop, noisy_counts=noisy_counts, noise_std=noise_std, is_told=True)


def _rows_of_leaves(counts: CellCounts, first: NDArray[np.int64], n_rows: int) -> Floats:
    """How many rows of a public table lie in each of the leaves that cover an axis."""
    return np.diff(np.append(counts.rows_below(first), n_rows)).astype(np.float64)


def _cut_further(
    column: NoisyColumn, counts: CellCounts, n_prior: int, ruler: Ruler
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Leaves cut along the ruler while a public table has many rows in them, and the leaf that each was part of."""
    first, stop, leaf = column.first, column.stop, np.arange(len(column.first))
    fewest = max(_FEWEST_ROWS, n_prior * _FEWEST_PART)
    while len(first) < _MOST_LEAVES:
        is_cut = (stop - first > 1) & (_rows_of_leaves(counts, first, n_prior) >= fewest) & ~column.is_null[leaf]
        if not is_cut.any():
            break
        cuts = ruler.cuts(first[is_cut], stop[is_cut])
        first = np.concatenate([first, cuts])
        stop = np.concatenate([np.where(is_cut, 0, stop), stop[is_cut]])
        stop[: len(is_cut)][is_cut] = cuts
        leaf = np.concatenate([leaf, leaf[is_cut]])
        order = np.argsort(first)
        first, stop, leaf = first[order], stop[order], leaf[order]
    return first, stop, leaf
