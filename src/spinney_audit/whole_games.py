"""Whole fits: tables go in through the front door, and what is seen is the release that comes out.

One fit a coin, and the claim is what the fit was charged. White box, the noisy numbers that the release holds;
black box, rows that are drawn from it. The first part plays two mechanisms of models of persons by themselves.

    people games    tables of rows and alikeness: a person comes, goes or is another
    whole games     `FitGame`, which all share, and fits of trees and grids
    whole forests   a row that moves every table of a forest at once
    whole persons   a person who moves nearly everything that is counted
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Category, Identifier, Real
from spinney.counting.states import WeightedRows
from spinney.forest.release.measured import MeasuredTable
from spinney.forest.release.model import ForestRelease
from spinney.grid.codes import deinterleave
from spinney.people import columns
from spinney.people.release.model import PeopleRelease
from spinney.people.release.rows import MeasuredRows, row_evidence
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import UNITS, ComposedRelease, GaussianTables, GaussianVector, WeightedTables
from spinney.release.release import Release
from spinney.schema.schema import Schema
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.partition import GridSynthesizer, PaperTreeSynthesizer, PartitionSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.moments import MomentsRelease
from spinney_audit.game import Claim, Coins, CurveClaim, Floats, Game, PureClaim, Seen, curve_of, opened, plan_of

# --------------------------------------------------------------------------------------------------------- people games
# Games on persons with many rows: one person comes, goes or is another, with all their rows.


_N_OTHERS = 5


class WeightedGame(Game):
    """A person with several rows, all in one cell of a table of rows, or nobody; under replace-one, in another cell.

    One table takes many coins, each with a person and two cells of its own; or one coin each.
    """

    family = "persons' tables"
    path = "counting.states and forest.prepaid: PrepaidMechanisms.noisy_units"

    def __init__(self, part: WeightedTables, unit: Unit, *, n_rows: int = 3, packed: bool = True) -> None:
        assert part.stage is not None
        one = replace(part, times=1)
        self.unit, self.claim, self._stage = unit, curve_of([one], unit), part.stage
        self._plan, self._n_rows, self.is_packed = plan_of([one], unit), n_rows, packed
        self.title = f"{part.stage}, a person with {n_rows} rows" + ("" if packed else ", a call a coin")

    @property
    def batch(self) -> int:
        return 4096 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        parts = [coins] if self.is_packed else np.split(coins, len(coins))
        seen = np.concatenate([self._once(part) for part in parts])
        return Seen(seen, seen[:, 1] - (seen[:, 0] if self.unit.n_is_public else 0.0))

    def _once(self, coins: Coins) -> Floats:
        """The noisy units of two cells for each coin, in persons."""
        is_there = np.ones(len(coins), dtype=np.bool_) if self.unit.n_is_public else coins
        numbers = np.append(np.ones(_N_OTHERS, dtype=np.int64), np.full(int(is_there.sum()), self._n_rows))
        places = (2 * np.arange(len(coins)) + coins)[is_there]
        cells = np.append(np.zeros(_N_OTHERS, dtype=np.int64), np.repeat(places, self._n_rows))
        weighted = WeightedRows(np.append(0, np.cumsum(numbers)), UNITS)
        true_units = weighted.true_table([cells], [2 * len(coins)])
        noisy = opened(self._plan).noisy_units(true_units, self._stage)
        return np.asarray(noisy.reshape(-1, 2) / UNITS)


class AlikenessGame(Game):
    """A person whose two rows agree in every column as much as can be, or nobody; under replace-one, as little.

    Packed, the sums of the two tables are made once, and one vector takes the noise of many coins; otherwise sums are
    made and get their noise coin by coin.
    """

    family = "alikeness"
    path = "people.columns: two_rows, true_alikeness, and PrepaidMechanisms.noisy_sums"

    def __init__(self, part: GaussianVector, unit: Unit, *, n_columns: int = 3, packed: bool = False) -> None:
        assert part.stage is not None
        self.unit, self.claim, self._stage = unit, curve_of([part], unit), part.stage
        self._plan, self._n_columns, self.is_packed = plan_of([part], unit), n_columns, packed
        self.title = f"{n_columns} columns" + ("" if packed else ", a call a coin")
        # Nearly all of a column's law at its two ends, so that a product of places is nearly 1 or -1.
        self._laws = [columns.ColumnLaw(np.array([1e-6, 1 - 2e-6, 1e-6]), is_ordered=True)] * n_columns
        self._sensitivity = columns.sensitivity_squared(n_columns, unit)

    @property
    def batch(self) -> int:
        return 8192 if self.is_packed else 256

    def play(self, coins: Coins) -> Seen:
        if self.is_packed:
            sums = np.stack([self._sums(coin) for coin in (False, True)])
            seen = self._noisy(sums[coins.astype(np.int64)].ravel()).reshape(len(coins), -1)
        else:
            seen = np.stack([self._noisy(self._sums(bool(coin))) for coin in coins])
        return Seen(seen, seen[:, :-1].sum(axis=1) + (0.0 if self.unit.n_is_public else seen[:, -1]))

    def _sums(self, coin: bool) -> NDArray[np.int64]:
        """What is summed over the persons of one of the two tables."""
        rows = [(1, 1)]  # of somebody in the middle
        if coin:
            rows.append((2, 2))
        elif self.unit.n_is_public:
            rows.append((0, 2))
        states = np.tile(np.array(rows).ravel(), (self._n_columns, 1))
        starts = np.arange(0, 2 * len(rows) + 1, 2)
        # Which two of two rows is no secret, so the coins of persons are as good as any here.
        compared = columns.two_rows(states, starts, np.random.default_rng())
        return columns.true_alikeness(compared, self._laws)

    def _noisy(self, true_sums: NDArray[np.int64]) -> Floats:
        return opened(self._plan).noisy_sums(true_sums, self._sensitivity, self._stage) / UNITS


# ---------------------------------------------------------------------------------------------------------- whole games
# What all games of whole fits share, and the game of trees and grids.


# Rows that are drawn: so many that the noise of the release is larger than that of drawing.
N_SAMPLED = 50_000
_FAR = 40.0
_BINS = 8  # of each axis of a grid


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


class TreeFitGame(FitGame):
    """A tree or a grid of stated bounds: a row far above the others, or none; under replace-one, far below.

    Bins have the lowest threshold, so that nothing that is counted stays hidden.
    """

    family = "whole tree"

    def __init__(
        self,
        unit: Unit,
        epsilon: Any,
        *,
        kind: str = "tree",
        moments: bool = True,
        threshold: int | None = None,
        n_columns: int = 1,
        black_box: bool = False,
    ) -> None:
        self._names = [f"x{place}" for place in range(n_columns)]
        self._schema = Schema({name: Real(-100, 100) for name in self._names})
        self._unit_text, self._rows = unit.value, np.linspace(-5, 5, 60)
        common: dict[str, Any] = {"unit": self._unit_text, "assumed_rows": None if unit.n_is_public else 60}
        self._make: Callable[[], PartitionSynthesizer]
        if kind == "grid":
            self._make = lambda: GridSynthesizer(epsilon, bins=_BINS, threshold=threshold, **common)
        elif kind == "paper":
            self._make = lambda: PaperTreeSynthesizer(epsilon, t=threshold, **common)
        else:
            self._make = lambda: KDTreeSynthesizer(epsilon, moments=moments, threshold=threshold, **common)
        self.path = f"{type(self._make()).__name__}.fit"
        what = {"grid": f"{_BINS} bins an axis", "paper": "the paper's tree"}.get(
            kind, "leaf means" if moments else "bins"
        )
        columns = f"{n_columns} columns, " if n_columns > 1 else ""
        self.what = f"{columns}{what}, epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> PartitionSynthesizer:
        is_public = self._unit_text == Unit.REPLACE_ONE.value
        end = [_FAR] if coin else ([-_FAR] if is_public else [])
        table = np.repeat(np.append(self._rows, end)[:, None], len(self._names), axis=1)
        return self._make().fit(table, self._schema, ledger=False)

    def _look(self, release: Release) -> tuple[Floats, float]:
        if self._black_box:
            values = np.asarray(release.sample(N_SAMPLED, frame="numpy"), dtype=np.float64)[:, 0]
            above, below = (values > 12).mean(), (values < -12).mean()
            return np.array([above, below, values.min(), values.max()]), float(above - self._less(below))
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
        ends = []
        for end in (_FAR, -_FAR):
            cells = np.array([each.scale * (end - each.origin) for each in lattice.axes])
            over = ((first <= cells) & (cells < first + size)).all(axis=1)
            ends += [float(noisy[over].sum()), float(depths[over].sum())]
        # Laplace noise says one of two things of a count that is 0 or 1: which of the two it is nearer to.
        above, below = np.clip([ends[0], ends[2]], 0, 1)
        seen = [*ends, float(axis.low), float(axis.high), float(noisy.sum())]
        return np.array(seen), float(above - self._less(below))

    def _less(self, below: float) -> float:
        """What speaks for the first of the two tables, where that has a row of its own."""
        return below if self.unit.n_is_public else 0.0


# -------------------------------------------------------------------------------------------------------- whole forests
# Whole forests: a row that moves every table of a fit at once, and the sum of what all of them say.
#
# Noise is Gaussian, so the log-likelihood ratio is the sum, over all counts that the row moves, of count / variance.
# No choice differs between the neighbours: two columns have one pair, which is counted whatever it holds. The claim
# is of all parts together, so what no neighbour can use stays between it and the best bound: the share of the choice.
#
# Rows that are drawn say the same. The fitted table is where the weighted squares of the noisy tables' residuals are
# least, and what it leaves of them tells nothing of the row; so the same sum is taken over counts of the fitted
# table, which are the shares of drawn rows times the number of rows that the release draws by itself.


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


# -------------------------------------------------------------------------------------------------------- whole persons
# Whole models of persons: a person who moves nearly everything that is counted, and the sum of what all of it says.
#
# The person has a single row, which lies in one cell of every table, so that its whole weight is there. Under
# replace-one the other person has two rows of the other kind, so that the number of rows differs too. Two things stay
# unused: tables that were paid for and not needed, since rows of one column have fewer tables than the plan allows
# for, and alikeness, in which a person of a single row is not counted.


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
