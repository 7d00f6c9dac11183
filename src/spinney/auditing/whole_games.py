"""Whole fits: tables go in through the front door, and what is looked at is the release that comes out.

One fit a coin. White box, the noisy numbers that the release holds; black box, rows that are drawn from it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from spinney.auditing.claims import Claim, PureClaim, curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.columns import Category, Identifier, Real
from spinney.forest.release.measured import MeasuredTable
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.privacy.budget import Unit
from spinney.privacy.composition import Part
from spinney.privacy.ledger import ComposedRelease, Ledger
from spinney.release.model import Release
from spinney.schema.table import Schema
from spinney.schema.zorder import deinterleave
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

# Rows and persons that are drawn: so many that the noise of the release is larger than that of drawing.
_N_SAMPLED = 50_000
_N_PERSONS = 2_000


class FitGame(Game):
    """A fit of one of two tables. The first fit, whose release is thrown away, tells what was charged."""

    def __init__(self, unit: Unit, *, black_box: bool) -> None:
        self.unit, self._black_box = unit, black_box
        self.title = f"{self.what}, {'rows drawn from it' if black_box else 'noisy numbers'}"
        fitted = self._fit(False)
        self.claim = _claim_of(fitted.ledger_)
        self.weight = 2.0

    what: str

    @property
    def batch(self) -> int:
        return 8

    def play(self, coins: Coins) -> Seen:
        found = [self._look(self._fit(bool(coin)).release_) for coin in coins]
        if self._black_box:
            return Seen(np.stack([outcome for outcome, _ in found]))
        return Seen(np.stack([outcome for outcome, _ in found]), np.array([ratio for _, ratio in found]))

    @abstractmethod
    def _fit(self, coin: bool) -> Any:
        """A model fitted to one of the two tables."""

    @abstractmethod
    def _look(self, release: Any) -> tuple[Floats, float]:
        """What is seen, and a statistic that grows with the likelihood of the second table."""


def _claim_of(ledger: Ledger) -> Claim:
    """Of one composed charge its curve, otherwise the sum of epsilons."""
    charges = [event for event in ledger.events if hasattr(event, "epsilon")]
    if len(charges) == 1 and isinstance(charges[0], ComposedRelease):
        return curve_of(charges[0].parts, ledger.unit)
    assert not ledger.spent_delta
    return PureClaim(float(ledger.spent))


class ForestFitGame(FitGame):
    """A forest of a few columns of two values each: a row in which all have the second, or the first, or none."""

    family = "whole forest"
    path = "ForestSynthesizer.fit"

    def __init__(
        self, unit: Unit, epsilon: Any, delta: Any, *, n_columns: int = 2, n_rows: int = 200, black_box: bool = False
    ) -> None:
        names = [f"c{number}" for number in range(n_columns)]
        self._schema = Schema({name: Category(("a", "b")) for name in names})
        rng = np.random.default_rng(7)
        self._base = {name: rng.choice(["a", "b"], n_rows).tolist() for name in names}
        self._epsilon, self._delta, self._n_rows = epsilon, delta, n_rows
        self.what = f"{n_columns} columns, epsilon {epsilon}"
        self._unit_text = unit.value
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> ForestSynthesizer:
        import pyarrow as pa

        with_row = coin or self._unit_text == Unit.REPLACE_ONE.value
        value = ["b" if coin else "a"] if with_row else []
        table = pa.table({name: [*values, *value] for name, values in self._base.items()})
        assumed = None if self._unit_text == Unit.REPLACE_ONE.value else self._n_rows
        synthesizer = ForestSynthesizer(self._epsilon, self._delta, unit=self._unit_text, assumed_rows=assumed)
        return synthesizer.fit(table, self._schema, ledger=False)

    def _look(self, release: ForestRelease) -> tuple[Floats, float]:
        if self._black_box:
            return _shares(release.sample(_N_SAMPLED, frame="pyarrow")), 0.0
        measured = release.measured
        assert measured is not None
        states = [column.states for column in release.columns.values()]
        ratio, seen = 0.0, []
        for column in measured.columns:
            assert column is not None
            seen += column.noisy.tolist()
            ratio += self._moved(column.noisy[[0, 1]]) / float(column.noise.scale)
        for table in measured.tables:
            first, last = _corners(table, [int(states[number].max()) + 1 for number in table.columns])
            ratio += self._moved(np.array([first, last])) / float(table.noise.scale)
        return np.array([ratio, *seen], dtype=np.float64), ratio

    def _moved(self, counts: Any) -> float:
        """How much the second of two counts speaks for the second table, and the first against it."""
        return float(counts[1] - (counts[0] if self.unit.n_is_public else 0))


def _corners(table: MeasuredTable, sizes: Sequence[int]) -> tuple[int, int]:
    """The counts of the boxes in which all columns have their first state, and their last."""
    if table.labels is None:
        return int(table.noisy[0]), int(table.noisy[-1])
    labels = table.labels.reshape(sizes)
    return int(table.noisy[labels.flat[0]]), int(table.noisy[labels.flat[-1]])


def _shares(rows: Any) -> Floats:
    """How often each column, and each two of them, have their second value in drawn rows."""
    import pyarrow.compute as pc

    is_second = np.column_stack([np.asarray(pc.equal(column.cast("string"), "b")) for column in rows.columns])
    n = is_second.shape[1]
    pairs = [(is_second[:, i] & is_second[:, j]).mean() for i in range(n) for j in range(i, n)]
    return np.array(pairs)


class TreeFitGame(FitGame):
    """A tree over one column of stated bounds: a row far from the others, or among them."""

    family = "whole tree"
    path = "KDTreeSynthesizer.fit"

    def __init__(self, unit: Unit, epsilon: Any, *, moments: bool = True, black_box: bool = False) -> None:
        self._schema = Schema({"x": Real(-100, 100)})
        self._epsilon, self._moments, self._unit_text = epsilon, moments, unit.value
        self._rows = np.linspace(-5, 5, 60)
        self.what = f"{'leaf means' if moments else 'bins'}, epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> KDTreeSynthesizer:
        is_public = self._unit_text == Unit.REPLACE_ONE.value
        end = [40.0] if coin else ([0.0] if is_public else [])
        table = np.append(self._rows, end)[:, None]
        synthesizer = KDTreeSynthesizer(
            self._epsilon, moments=self._moments, unit=self._unit_text, assumed_rows=None if is_public else 60
        )
        return synthesizer.fit(table, self._schema, ledger=False)

    def _look(self, release: Release) -> tuple[Floats, float]:
        if self._black_box:
            values = np.asarray(release.sample(_N_SAMPLED, frame="numpy"), dtype=np.float64)[:, 0]
            far, near = (values > 12).mean(), (np.abs(values) < 6).mean()
            return np.array([far, near, values.min(), values.max()]), 0.0
        if isinstance(release, BinnedRelease):
            lattice, codes, depths, noisy = (
                release.bins.lattice,
                release.bins.codes,
                release.bins.depths,
                release.bins.noisy_counts.astype(np.float64),
            )
        else:
            assert isinstance(release, MomentsRelease)
            found = release.moments
            lattice, codes, depths, noisy = (
                found.lattice,
                found.codes,
                found.depths,
                found.noisy_steps[:, 0] / found.quantum,
            )
        axis = lattice.axes[0]
        first, size = deinterleave(codes, depths, lattice)
        cell = axis.scale * (40.0 - axis.origin)
        over = (first[:, 0] <= cell) & (cell < first[:, 0] + size[:, 0])
        far = float(noisy[over].sum())
        seen = [far, float(depths[over].sum()), float(axis.low), float(axis.high), float(noisy.sum() - far)]
        return np.array(seen), far


class PeopleFitGame(FitGame):
    """Persons with two rows each: one of them has rows of the second kind, or of the first."""

    family = "whole persons"
    path = "LinkedSynthesizer.fit"

    def __init__(self, unit: Unit, epsilon: Any, delta: Any, *, n_persons: int = 30, black_box: bool = False) -> None:
        columns = {"id": Identifier(), "kind": Category(("a", "b"))}
        self._schema = Schema(columns, person="id", most_rows=4)
        self._epsilon, self._delta, self._n_persons = epsilon, delta, n_persons
        self._unit_text = unit.of_rows.value
        self.what = f"epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)
        self.weight = 6.0

    @property
    def batch(self) -> int:
        return 4

    def _fit(self, coin: bool) -> LinkedSynthesizer:
        import pyarrow as pa

        n, is_public = self._n_persons, self._unit_text == Unit.REPLACE_ONE.value
        persons = [number for number in range(n) for _ in range(2)]
        kinds = ["a", "b"] * n
        if coin or is_public:
            persons += [n, n]
            kinds += ["b", "b"] if coin else ["a", "a"]
        synthesizer = LinkedSynthesizer(
            self._epsilon, self._delta, unit=self._unit_text, assumed_persons=None if is_public else n
        )
        return synthesizer.fit(pa.table({"id": persons, "kind": kinds}), self._schema, ledger=False)

    def _look(self, release: PeopleRelease) -> tuple[Floats, float]:
        if self._black_box:
            import pyarrow.compute as pc

            rows = release.sample(persons=_N_PERSONS, frame="pyarrow")
            kinds = np.asarray(pc.equal(rows.column("kind").cast("string"), "b"))
            return np.array([kinds.mean(), len(kinds)]), 0.0
        weights = _row_weights(release)
        return weights, float(weights[1] - weights[0])


def _row_weights(release: PeopleRelease) -> Floats:
    """Of the released column of rows, the weight of each kind; and of persons all that was counted."""
    (rows,) = release.rows
    weights = np.asarray(rows.columns["kind"].weights, dtype=np.float64)
    measured = release.persons.measured
    counted = [] if measured is None else [one.noisy for one in measured.columns if one is not None]
    return np.concatenate([weights, *counted]).astype(np.float64)


def parts_of(ledger: Ledger) -> list[Part]:
    """The parts of all composed charges of an account."""
    return [part for event in ledger.events if isinstance(event, ComposedRelease) for part in event.parts]
