"""Whole models of persons: a person who moves nearly everything that is counted, and the sum of what all of it says.

The person has a single row, which lies in one cell of every table, so that its whole weight is there. Under replace-one
the other person has two rows of the other kind, so that the number of rows differs too. Two things stay unused: tables
that were paid for and not needed, since rows of one column have fewer tables than the plan allows for, and alikeness,
in which a person of a single row is not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.auditing.claims import CurveClaim
from spinney.auditing.game import Floats
from spinney.auditing.whole_games import FitGame
from spinney.columns import Category, Identifier
from spinney.people.release.evidence import row_evidence
from spinney.people.release.model import PeopleRelease
from spinney.people.release.rows import MeasuredRows
from spinney.privacy.budget import Unit
from spinney.privacy.parts import UNITS, GaussianTables, WeightedTables
from spinney.schema.table import Schema
from spinney.synthesizers.linked import LinkedSynthesizer

# Persons that are drawn: so many that the noise of the release is larger than that of drawing.
_N_SAMPLED = 10_000
_KINDS = ("a", "b")

Rows = tuple[int, ...]  # of one person: the kind of each


class PeopleFitGame(FitGame):
    """Persons with two rows of one kind each, and one more with a row of the second; or nobody, or two of the first.

    Rows without an order are put in one by chance. Two rows of one kind are the same in any, so nothing else varies.
    """

    family = "whole persons"
    path = "LinkedSynthesizer.fit"

    def __init__(self, unit: Unit, epsilon: Any, delta: Any, *, n_persons: int = 30, black_box: bool = False) -> None:
        columns = {"id": Identifier(), "kind": Category(_KINDS)}
        self._schema = Schema(columns, person="id", most_rows=4)
        self._epsilon, self._delta, self._n_persons = epsilon, delta, n_persons
        self._unit_text = unit.of_rows.value
        self._persons: tuple[Rows, Rows] = ((0, 0) if unit.n_is_public else (), (1,))
        self._others: tuple[Rows, Rows] = ((0, 0), (1, 1))  # of each as many persons
        self.what = f"epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)

    @property
    def batch(self) -> int:
        return 4

    def _fit(self, coin: bool) -> LinkedSynthesizer:
        import pyarrow as pa

        n, kinds = self._n_persons, self._persons[coin]
        every = [*[self._others[number % 2] for number in range(n)], kinds]
        persons = [number for number, rows in enumerate(every) for _ in rows]
        table = pa.table({"id": persons, "kind": [_KINDS[kind] for rows in every for kind in rows]})
        synthesizer = LinkedSynthesizer(
            self._epsilon, self._delta, unit=self._unit_text, assumed_persons=None if self.unit.n_is_public else n
        )
        return synthesizer.fit(table, self._schema, ledger=False)

    def _look(self, release: PeopleRelease) -> tuple[Floats, float]:
        if self._black_box:
            return self._drawn(release)
        (rows,) = release.rows
        measured = release.persons.measured
        assert measured is not None
        (numbers,) = measured.columns
        assert numbers is not None
        weights = np.asarray(rows.columns["kind"].weights, dtype=np.float64) / UNITS
        ratio = self._moved_numbers(numbers.noisy) + self._moved_kinds(weights)
        for table in rows.tables:
            without, with_person = (self._added(release, table, person) for person in self._persons)
            known = without + self._n_persons / 2 * sum(self._added(release, table, person) for person in self._others)
            ratio += float((with_person - without) @ (table.noisy / UNITS - known)) * self._rate("row tables")
        return np.array([ratio, *numbers.noisy, *weights], dtype=np.float64), ratio

    def _drawn(self, release: PeopleRelease) -> tuple[Floats, float]:
        """What drawn persons have, scaled to as many as the release draws by itself."""
        import pyarrow.compute as pc

        def numbered(table: Any) -> tuple[Any, Any]:
            return np.unique(np.asarray(table.column("id").cast("string")), return_inverse=True)

        n_persons = len(numbered(release.sample(frame="pyarrow"))[0])
        drawn = release.sample(persons=_N_SAMPLED, frame="pyarrow")
        names, person = numbered(drawn)
        n_rows = np.bincount(person)
        kinds = np.asarray(pc.equal(drawn.column("kind").cast("string"), "b")).astype(np.int64)
        numbers = n_persons * np.bincount(n_rows, minlength=5)[1:] / len(names)
        weights = n_persons * np.bincount(kinds, weights=1 / n_rows[person], minlength=2) / len(names)
        alone = n_rows[person] == 1
        alone_too = n_persons * np.bincount(kinds[alone], minlength=2) / len(names)
        ratio = self._moved_numbers(numbers) + self._moved_kinds(weights)
        return np.array([ratio, *numbers, *weights, *alone_too], dtype=np.float64), ratio

    # ------------------------------------------------------------------------------------------- what a person moves

    def _moved_numbers(self, noisy: Any) -> float:
        """What the counts of persons by their number of rows say."""
        variance = next(float(part.variance) for part in self._parts if isinstance(part, GaussianTables))
        other, person = (len(rows) for rows in self._persons)
        return float(noisy[person - 1] - (noisy[other - 1] if other else 0)) / variance

    def _moved_kinds(self, weights: Floats) -> float:
        """What the weights of the two kinds of rows say."""
        return float(weights[1] - (weights[0] if self._persons[0] else 0)) * self._rate("row one-way")

    def _added(self, release: PeopleRelease, table: MeasuredRows, kinds: Rows) -> Floats:
        """What a person with these rows adds to each box of a table of rows."""
        (rows,) = release.rows
        added = np.zeros(len(table.noisy))
        if not kinds:
            return added
        own = rows.columns["kind"].states[list(kinds)][None, :]
        (numbers,) = release.persons.columns.values()
        persons = np.array([[numbers.states[len(kinds) - 1]]])
        evidence, starts = rows.layout.every[table.clique.evidence[0]], np.array([0, len(kinds)])
        lines = row_evidence(evidence, persons, own, np.zeros(len(kinds), dtype=np.int64), starts)
        labels = np.arange(len(added)).reshape(evidence.size, -1) if table.labels is None else table.labels
        np.add.at(added, labels[lines, own[0]], 1 / len(kinds))
        return added

    def _rate(self, stage: str) -> float:
        """The squared mean of a table over what a unit changes: what a whole person more says, for each person."""
        means = [part.mean_squared for part in self._parts if isinstance(part, WeightedTables) and part.stage == stage]
        return float(means[0]) / self.unit.factor

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.claim.parts if isinstance(self.claim, CurveClaim) else ()
