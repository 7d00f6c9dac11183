"""Whole forests: a row that moves every table of a fit at once, and the sum of what all of them say.

Noise is Gaussian, so the log-likelihood ratio is the sum, over all counts that the row moves, of count / variance. No
choice differs between the neighbours: two columns have one pair, which is counted whatever it holds. The claim is of
all parts together, so what no neighbour can use stays between it and the best bound: the share of the choice.

Rows that are drawn say the same. The fitted table is where the weighted squares of the noisy tables' residuals are
least, and what it leaves of them tells nothing of the row; so the same sum is taken over counts of the fitted table,
which are the shares of drawn rows times the number of rows that the release draws by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spinney.auditing.claims import CurveClaim
from spinney.auditing.game import Floats
from spinney.auditing.whole_games import N_SAMPLED, FitGame
from spinney.columns import Category
from spinney.forest.release.measured import MeasuredTable
from spinney.forest.release.model import ForestRelease
from spinney.privacy.budget import Unit
from spinney.privacy.parts import GaussianTables
from spinney.schema.table import Schema
from spinney.synthesizers.forest import ForestSynthesizer

_ROUNDS = (["a", "a", "b", "b"], ["a", "b", "a", "b"])  # the values of four rows, by column


class ForestFitGame(FitGame):
    """A forest of columns of two values: a row in which all have the second, or the first, or none."""

    family = "whole forest"
    path = "ForestSynthesizer.fit"

    def __init__(
        self,
        unit: Unit,
        epsilon: Any,
        delta: Any,
        *,
        n_columns: int = 2,
        n_rows: int = 200,
        black_box: bool = False,
    ) -> None:
        # Every column has as many rows of either value for each value of the one before.
        n_each, self._n_rows = n_rows // 4, 4 * (n_rows // 4)
        values = {f"column {place}": _ROUNDS[place % len(_ROUNDS)] * n_each for place in range(n_columns)}
        self._schema, self._base = Schema({name: Category(("a", "b")) for name in values}), values
        self._epsilon, self._delta = epsilon, delta
        self.what = f"{n_columns} columns, epsilon {epsilon}"
        self._unit_text = unit.value
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> ForestSynthesizer:
        import pyarrow as pa

        is_public = self._unit_text == Unit.REPLACE_ONE.value
        value = ["b" if coin else "a"] if coin or is_public else []
        table = pa.table({name: [*values, *value] for name, values in self._base.items()})
        assumed = None if is_public else self._n_rows
        synthesizer = ForestSynthesizer(self._epsilon, self._delta, unit=self._unit_text, assumed_rows=assumed)
        return synthesizer.fit(table, self._schema, ledger=False)

    def _look(self, release: ForestRelease) -> tuple[Floats, float]:
        if self._black_box:
            return self._drawn(release)
        measured = release.measured
        assert measured is not None
        states = [column.states for column in release.columns.values()]
        ratio, seen = 0.0, []
        for column in measured.columns:
            if column is None:  # too few rows for this epsilon and delta: the release has nothing of it
                continue
            seen += column.noisy.tolist()
            ratio += self._moved(column.noisy[[0, 1]]) / float(column.noise.scale)
        for table in measured.tables:
            first, last = _corners(table, [int(states[number].max()) + 1 for number in table.columns])
            ratio += self._moved(np.array([first, last])) / float(table.noise.scale)
        return np.array([ratio, *seen], dtype=np.float64), ratio

    def _drawn(self, release: ForestRelease) -> tuple[Floats, float]:
        """Counts of drawn rows, as many as the release draws by itself, and the same sum over them."""
        counts = len(release.sample(frame="pyarrow")) * _shares(release.sample(N_SAMPLED, frame="pyarrow"))
        variance = _variances(self.claim)
        ratio = self._moved(counts.diagonal()) / variance["cliques"]
        ratio += sum(self._moved(counts.sum(axis=axis)) for axis in (0, 1)) / variance["one-way"]
        return np.array([ratio, *counts.ravel()]), ratio

    def _moved(self, counts: Any) -> float:
        """How much the second of two counts speaks for the second table, and the first against it."""
        return float(counts[1] - (counts[0] if self.unit.n_is_public else 0))


def _variances(claim: Any) -> Mapping[str, float]:
    """The variance of the noise in each stage of tables, which is public."""
    parts = claim.parts if isinstance(claim, CurveClaim) else ()
    return {str(part.stage): float(part.variance) for part in parts if isinstance(part, GaussianTables)}


def _corners(table: MeasuredTable, sizes: Sequence[int]) -> tuple[int, int]:
    """The counts of the boxes in which all columns have their first state, and their last."""
    if table.labels is None:
        return int(table.noisy[0]), int(table.noisy[-1])
    labels = table.labels.reshape(sizes)
    return int(table.noisy[labels.flat[0]]), int(table.noisy[labels.flat[-1]])


def _shares(rows: Any) -> Floats:
    """The shares of the four kinds of rows (2, 2) among drawn rows."""
    import pyarrow.compute as pc

    places = [np.asarray(pc.equal(column.cast("string"), "b")).astype(np.int64) for column in rows.columns]
    found = np.bincount(2 * places[0] + places[1], minlength=4)
    return np.asarray(found.reshape(2, 2) / max(found.sum(), 1))
