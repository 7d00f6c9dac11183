"""A prior: public rows used where they are nearer to the table than counts are. SENSITIVE up to the choices.

The prior is a public table, or rows drawn from an earlier release. Single columns ask for nothing private:
their noisy counts say how far the prior is off. Pairs that were not counted are decided by one private choice
each.

    prior columns    columns on their own: counts drawn towards the prior, long leaves cut as it suggests
    prior tables     tables of pairs, as measurements whose noise is the prior's own error
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.counting.joint import Clique
from spinney.counting.states import GAP_STEPS, StateTables, true_distances
from spinney.errors import SpinneyError, raise_alone
from spinney.forest.cliques import Possible, outer, with_margins
from spinney.forest.columns import SPIKE_STANDS_OUT, NoisyColumn, part_spikes
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import is_far_out
from spinney.graph.estimate import Measurement
from spinney.graph.junction import TreewidthBudget
from spinney.graph.model import GraphModel
from spinney.grid.lattice import Axis
from spinney.grid.ruler import Ruler
from spinney.tree.release.geometry import extent

# -------------------------------------------------------------------------------------------------------- prior columns
# Columns by themselves, with a prior: how far a public table is off is told by the noisy counts that were released.
#
# With y the noisy count of a leaf, s the standard deviation of its noise and m what the prior expects there,
#
#     y - m  has the variance  s^2 + c m + w^2 (m + m0)^2,    c = 1 + total / rows of the prior,
#
# where c m is what two samples of one law differ by and w says by how much the prior's law is another one. The
# likelihood of all leaves gives w, so each column says for itself how much its prior is worth (empirical Bayes).
# Nothing private is asked for. Where the prior has the law of a column, or tells more of it than the counts do,
# counts are drawn towards it, by no more than two standard deviations of their noise, and long leaves are cut as it
# suggests: piles of rows at single values first, then along the ruler. Far out, counts are drawn towards it all the
# way unless they stand out of their noise: rows of noise there would change what the column is like. Other columns
# stay as they are.
#
# Of leaves that single precision does not tell apart, the one in which most rows were counted has the prior's rows:
# of two tables, one may be stored in it.


Floats = NDArray[np.float64]

# What w may be: from the same law to one that tells nothing.
_RATIOS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
# m0, as a part of what a leaf holds on average: a leaf that the prior leaves empty may still hold rows.
_FLOOR = 0.3
# Small w are likelier beforehand, by 1 / (1 + w / this): few noisy counts hardly tell w.
_LIKELY = 0.01
_FARTHEST = 2.0
# A prior has the law of a column if w is no larger, whatever noise the counts have.
_SAME_LAW = 0.2
# A prior tells more than the counts where no more than this part of a difference to it is believed.
_MOST_MOVED = 0.5
# Far out, a count that differs from the prior's by fewer standard deviations is taken for noise.
_STANDS_OUT_FAR_OUT = 4.0
# Turns of adding up to the total.
_TURNS = 5
# Leaves are cut while the prior has this part of its rows in them, into so many at the most.
_FEWEST_PART = 1 / 400
_FEWEST_ROWS = 25
# They are cut, too, while what is not known of where their rows lie is this part of the variance.
_LONG = 0.02
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
    whole, column = column, _with_new_piles(column, prior_counts, total / n_prior)
    expected = _expected(column, prior_counts, n_prior, ruler) * (total / n_prior)
    noisy, noise_std = column.noisy_counts.astype(np.float64), column.noise_std
    found = trust(noisy, noise_std, expected, 1 + total / n_prior)
    variances = found.variances(expected)
    moved = variances / (variances + noise_std**2)
    if found.ratio > _SAME_LAW and np.average(moved, weights=expected + 1e-9) > _MOST_MOVED:
        return whole
    counts, deviations = _drawn(column, expected, variances)
    counts = _adding_up(counts, deviations**2, total)
    first, stop, leaf = column.first, column.stop, np.arange(len(column.first))
    if ruler is not None:
        first, stop, leaf = _cut_further(column, prior_counts, n_prior, ruler)
    inside = _rows_of_leaves(prior_counts, first, n_prior)
    held = np.bincount(leaf, weights=inside, minlength=len(counts))
    even = (stop - first) / np.bincount(leaf, weights=stop - first, minlength=len(counts))[leaf]
    share = np.where(held[leaf] > 0, inside / np.maximum(held[leaf], 1.0), even)
    typical = float(np.sqrt(np.mean((deviations[leaf] * share) ** 2)))
    noisy_counts = np.rint(counts[leaf] * share).astype(np.int64)
    return replace(column, first=first, stop=stop, noisy_counts=noisy_counts, noise_std=typical, is_told=True)


def _with_new_piles(column: NoisyColumn, prior_counts: CellCounts, scale: float) -> NoisyColumn:
    """The column with those piles as leaves that the prior does not have; its own are cut out as it has them.

    How many rows a pile holds is known from its leaf and the prior, and less well from its own count.
    """
    if column.spikes is None or column.noisy_spikes is None:
        return column
    expected = scale * (prior_counts.rows_below(column.spikes[1]) - prior_counts.rows_below(column.spikes[0]))
    is_new = column.noisy_spikes - expected > SPIKE_STANDS_OUT * column.spike_std
    return part_spikes(replace(column, noisy_spikes=np.where(is_new, column.noisy_spikes, 0)))


def _expected(column: NoisyColumn, counts: CellCounts, n_prior: int, ruler: Ruler | None) -> Floats:
    """How many of the prior's rows belong to each leaf.

    Of leaves that begin inside one pile in single precision, the one with most rows has those of the pile.
    """
    rows, first = _rows_of_leaves(counts, column.first, n_prior), column.first
    if ruler is None or not ruler.is_single:
        return rows
    ends = ruler.pile_stops(first, np.full_like(first, column.axis.last + 1))
    begin = 0
    while begin < len(first):
        stop = begin + 1
        while stop < len(first) and not column.is_null[stop] and first[stop] < ends[begin]:
            stop += 1
        if stop - begin > 1:
            at = np.array([ends[begin], column.stop[stop - 1]])
            beyond = float(np.diff(counts.rows_below(at))[0]) if at[1] > at[0] else 0.0
            piled = rows[begin:stop].sum() - beyond
            rows[begin:stop] = 0.0
            rows[stop - 1] = beyond
            rows[begin + int(np.argmax(column.noisy_counts[begin:stop]))] += piled
        begin = stop
    return rows


def _drawn(column: NoisyColumn, expected: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Counts drawn towards the prior's, and their standard deviations.

    Far out they are the prior's own, but for those that stand out.
    """
    noisy, noise_std = column.noisy_counts.astype(np.float64), column.noise_std
    moved, reach = variances / (variances + noise_std**2), _FARTHEST * noise_std
    counts = np.clip(expected + moved * (noisy - expected), noisy - reach, noisy + reach)
    deviations = noise_std * np.sqrt(moved)
    known = np.where(column.is_null, 0.0, expected)
    if not column.is_ordered or not known.any():
        return counts, deviations
    low, length = extent(column.axis, column.first, np.maximum(column.stop, column.first))
    far_out = is_far_out(low, length, known, column.noise_std) & ~column.is_null
    is_noise = np.abs(noisy - expected) < _STANDS_OUT_FAR_OUT * noise_std
    is_told = far_out & is_noise
    return np.where(is_told, expected, counts), np.where(is_told, np.sqrt(expected), deviations)


def _adding_up(counts: Floats, variances: Floats, total: float) -> Floats:
    """Counts that are not negative and add up to the total: what is amiss goes where they are least certain.

    Evenly shared out it would take away what the prior knows of the tails, leaf by leaf.
    """
    counts = np.maximum(counts, 0.0)
    for _ in range(_TURNS):
        open_ = np.where(counts > 0, variances, 0.0)
        counts = np.maximum(counts + (total - counts.sum()) * open_ / max(float(open_.sum()), 1e-300), 0.0)
    return counts


def _is_long(axis: Axis, first: NDArray[np.int64], stop: NDArray[np.int64], rows: Floats) -> NDArray[np.bool_]:
    """Which leaves have rows, and are so long that where these lie tells much of the variance of the column."""
    if not rows.any():
        return np.zeros(len(rows), dtype=np.bool_)
    low, length = extent(axis, first, np.maximum(stop, first))
    middle = low + length / 2
    inside = rows * length**2 / 12
    variance = rows * (middle - np.average(middle, weights=rows)) ** 2 + inside
    return np.asarray(inside > _LONG * variance.sum())


def _rows_of_leaves(counts: CellCounts, first: NDArray[np.int64], n_rows: int) -> Floats:
    """How many rows of a public table lie in each of the leaves that cover an axis."""
    return np.diff(np.append(counts.rows_below(first), n_rows)).astype(np.float64)


def _cut_further(
    column: NoisyColumn, counts: CellCounts, n_prior: int, ruler: Ruler
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Leaves cut while a public table has many rows in them, at piles or along the ruler, and what each was part of."""
    first, stop, leaf = column.first, column.stop, np.arange(len(column.first))
    fewest = max(_FEWEST_ROWS, n_prior * _FEWEST_PART)
    while len(first) < _MOST_LEAVES:
        ends = ruler.pile_stops(first, stop)  # a leaf no longer than a pile lies at one value
        rows = np.where(column.is_null[leaf], 0.0, _rows_of_leaves(counts, first, n_prior))
        is_cut = (stop > ends) & ((rows >= fewest) | _is_long(column.axis, first, stop, rows))
        if not is_cut.any():
            break
        begin, end, cuts = first[is_cut], stop[is_cut], ends[is_cut]
        is_piled = counts.rows_below(cuts) - counts.rows_below(begin) >= fewest
        cuts = np.where(is_piled, cuts, ruler.cuts(begin, end))
        stop = np.concatenate([stop, end])
        stop[: len(is_cut)][is_cut] = cuts
        first, leaf = np.concatenate([first, cuts]), np.concatenate([leaf, leaf[is_cut]])
        order = np.argsort(first)
        first, stop, leaf = first[order], stop[order], leaf[order]
    return first, stop, leaf


# --------------------------------------------------------------------------------------------------------- prior tables
# Tables of public rows in place of what was not counted, where a private choice says that they are nearer.
#
# The rows of a public table, or rows drawn from an earlier release, are cut into the states of this fit. Of a
# pair of columns they give a table, fitted to the shares of states that were released. Where the pair was
# counted, its noisy numbers tell how far the prior is off, and nothing private is asked for. Where it was not,
# the exponential mechanism decides whether the private table is nearer to the prior's or to what the model says
# without it: one choice for each of a number of pairs that is settled beforehand, those that depend on each
# other most by the prior alone. A table that is chosen enters the estimate as a measurement whose noise is the
# prior's own error.


# So many rows of the prior are as if they were of independent columns: no two states are impossible together.
_INDEPENDENT_ROWS = 200.0
# Turns of fitting a table to the shares of its columns.
_FITTINGS = 10
# The model's tree, with what is taken from the prior, has no more cells than this.
_MOST_CELLS = 150_000
# How far a prior is off where no table tells it.
_UNTOLD = 0.5
# A prior's table of counted columns is nearer if the gain is above so many halves of its standard deviation.
_SURE = 1.5


@contextmanager
def reading_prior() -> Iterator[None]:
    """Say of rows that cannot be read that they are the prior's, not those of the private table."""
    try:
        yield
    except SpinneyError as err:
        raise_alone(type(err)(f"prior: {err}"))


@dataclass(frozen=True, slots=True, eq=False)
class PriorRows:
    """The rows of a public table, as states of this fit's columns."""

    rows: StateTables
    shares: Sequence[Floats]  # of the states of every column, as released
    possible: Possible
    total: float

    @property
    def sampling(self) -> float:
        """What two samples of one law differ by, as a part of what is expected."""
        return 1.0 + self.total / float(self.rows.n_rows)

    def expected(self, clique: Clique) -> Floats:
        """The prior's table, with the total and the shares that were released."""
        table = self.rows.true_table(clique) + _INDEPENDENT_ROWS * outer([self.shares[c] for c in clique])
        mask = self.possible.table(clique)
        table = table if mask is None else np.where(mask, table, 0.0)
        table = with_margins(table, [self.shares[column] for column in clique], _FITTINGS)
        return np.asarray(table * (self.total / max(float(table.sum()), 1e-300)))

    def dependence(self, pair: Clique) -> float:
        """The mutual information of two columns among the prior's rows, less what chance would show."""
        joint = self.rows.true_table(pair) / self.rows.n_rows
        independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
        held = (joint.sum(axis=1) > 0).sum() - 1, (joint.sum(axis=0) > 0).sum() - 1
        return float((joint * np.log(ratio)).sum() - held[0] * held[1] / (2 * self.rows.n_rows))


def use_prior(
    rows: StateTables,
    prior: PriorRows,
    columns: Sequence[int],
    measured: Sequence[Measurement],
    required: Sequence[Clique],
    fit: Callable[[Sequence[Measurement]], GraphModel],
    prepaid: PrepaidMechanisms,
    *,
    most_cells: int = 0,
) -> list[Measurement]:
    """Tables of the prior, as measurements: of measured pairs and of others that a private choice was for.

    Args:
        rows: the states of the private rows.
        prior: those of public rows.
        columns: the columns that are measured.
        measured: what was counted.
        required: columns that rules join.
        fit: makes the model without the prior.
        prepaid: has charged for as many choices as there are.
        most_cells: how many cells the model's tree may have where what was counted needs many.
    """
    used, found, odds = _of_counted(prior, measured)
    counted = [m.columns for m in measured]
    open_pairs = _open_pairs(prior, rows.sizes, columns, [*counted, *required], prepaid.n_left("prior"), most_cells)
    if not open_pairs:
        return used
    model = fit(measured)
    without = [prior.total * table for table in model.marginals(open_pairs)]
    expected = [prior.expected(pair) for pair in open_pairs]
    true_gaps = np.stack([true_distances(rows, open_pairs, tables) for tables in (without, expected)])
    sensitivity = GAP_STEPS * prepaid.plan.unit.factor
    # The exponential mechanism weighs by exp(score epsilon / (2 sensitivity)): so much of a score are the odds.
    handicap = np.array([0, round(math.log(odds) * 2 * sensitivity / float(prepaid.plan.choices["prior"].each))])
    for pair, table, gaps in zip(open_pairs, expected, true_gaps.T, strict=True):
        if prepaid.choice(handicap - gaps, sensitivity=sensitivity, stage="prior"):
            used.append(_measurement(pair, table, found))
    return used


def _of_counted(prior: PriorRows, measured: Sequence[Measurement]) -> tuple[list[Measurement], Trust, float]:
    """The prior's tables of what was counted where they are nearer than independent columns; trust and odds of others.

    Both distances are from noisy numbers, so that their difference says which is smaller but for its noise, which has
    a standard deviation of twice that of a count times the distance between the two. The odds of others are those of
    being nearer, one table more on each side, squared: priors are mostly good as a whole, or not.
    """
    used, ratios = [], []
    for m in measured:
        if len(m.columns) < 2:
            continue
        expected = prior.expected(m.columns)
        apart = prior.total * outer([prior.shares[column] for column in m.columns])
        apart = prior.possible.shared_out(m.columns, apart)
        sums, others = _sums(m, expected), _sums(m, apart)
        noise_std = float(np.mean(m.noise_std))
        found = trust(m.noisy, noise_std, sums, prior.sampling)
        ratios.append(found.ratio)
        gain = ((m.noisy - others) ** 2).sum() - ((m.noisy - sums) ** 2).sum()
        if gain > _SURE * noise_std * math.sqrt(((sums - others) ** 2).sum()):
            used.append(_measurement(m.columns, expected, found))
    odds = ((len(used) + 1) / (len(ratios) - len(used) + 1)) ** 2
    return used, Trust(float(np.median(ratios)) if ratios else _UNTOLD, prior.sampling), odds


def _open_pairs(
    prior: PriorRows,
    sizes: Sequence[int],
    columns: Sequence[int],
    covered: Sequence[Clique],
    n_choices: int,
    most_cells: int,
) -> list[Clique]:
    """As many pairs as there are choices, the most dependent ones first, that leave the model's tree small."""
    room = TreewidthBudget(sizes, covered, max(_MOST_CELLS, most_cells))
    counted = {pair for clique in covered for pair in combinations(sorted(clique), 2)}
    pairs = [pair for pair in combinations(sorted(columns), 2) if pair not in counted]
    strengths = {pair: prior.dependence(pair) for pair in pairs}
    found: list[Clique] = []
    for pair in sorted(pairs, key=lambda pair: -strengths[pair]):
        if len(found) == n_choices or strengths[pair] <= 0:
            break
        if room.has(pair):
            room.add(pair)
            found.append(pair)
    return found


def _measurement(clique: Clique, expected: Floats, found: Trust) -> Measurement:
    """The prior's table, as uncertain as it was found to be."""
    return Measurement(clique, expected.ravel(), np.sqrt(found.variances(expected)).ravel())


def _sums(measurement: Measurement, table: Floats) -> Floats:
    """What a table holds where a measurement has one number."""
    if measurement.labels is None:
        return table.ravel()
    labels, n_sums = measurement.labels.ravel(), len(measurement.noisy)
    return np.asarray(np.bincount(labels, weights=table.ravel(), minlength=n_sums), dtype=np.float64)
