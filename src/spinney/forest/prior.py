"""A prior: tables of public rows in place of what was not counted, where a private choice says that they are nearer.

The rows of a public table, or rows drawn from an earlier release, are cut into the states of this fit. Of a pair of
columns they give a table, fitted to the shares of states that were released. Where the pair was counted, its noisy
numbers tell how far the prior is off, and nothing private is asked for. Where it was not, the exponential mechanism
decides whether the private table is nearer to the prior's or to what the model says without it: one choice for each of
a number of pairs that is settled beforehand, those that depend on each other most by the prior alone. What was decided
for enters the estimate as a measurement whose noise is the prior's own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.state_tables import GAP_STEPS, StateTables, true_distances
from spinney.errors import SpinneyError, raise_alone
from spinney.forest.cliques import outer
from spinney.forest.possible import Possible
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.prior_columns import Trust, trust
from spinney.graph.elimination import TreewidthBudget
from spinney.graph.estimate import Measurement
from spinney.graph.model import GraphModel

Floats = NDArray[np.float64]

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
        for _ in range(_FITTINGS):
            for axis, column in enumerate(clique):
                others = tuple(other for other in range(table.ndim) if other != axis)
                held = table.sum(axis=others, keepdims=True)
                wanted = self.shares[column].reshape(held.shape)
                table = table * np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
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
    assert prepaid.plan.prior is not None
    # The exponential mechanism weighs by exp(score epsilon / (2 sensitivity)): so much of a score are the odds.
    handicap = np.array([0, round(math.log(odds) * 2 * sensitivity / float(prepaid.plan.prior.epsilon))])
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
