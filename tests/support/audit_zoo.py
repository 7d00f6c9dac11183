"""Which game of the audit catches which sabotaged mechanism, and which sabotage no game can see, and why.

Games are those of `spinney_audit`, some with numbers of their own; sabotage is that of the other zoos. A game is
made outside of the sabotage and played inside, unless it reads its claim off an account.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.counting.states import WeightedRows
from spinney.errors import BudgetError
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import GaussianTables, GaussianVector, TreeShapes, WeightedTables
from spinney.synthesizers import forest as forest_door
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tables.open import open_source
from spinney.tree import bought as figures
from spinney.tree import bought as row_count
from spinney.tree import kdtree, moments
from spinney.tree.bins import decay_for, worst_path_loss
from spinney_audit.forest_games import (
    ChoiceGame,
    CliqueGame,
    ColumnGame,
    FiguresGame,
    ProductsGame,
    RowCountGame,
    StructureGame,
    TableGame,
    VectorGame,
)
from spinney_audit.game import Coins, Game, PureClaim, Seen, opened, plan_of
from spinney_audit.tree_games import (
    CellGame,
    EmptyCellGame,
    EmptyTreeGame,
    MixedMomentsGame,
    MomentsGame,
    empty_means_game,
    paper_game,
    privtree_game,
)
from spinney_audit.whole_games import AlikenessGame, ForestFitGame, TreeFitGame, WeightedGame
from support import sabotaged_forests, sabotaged_moments, sabotaged_products, sabotaged_spikes, sabotaged_sums
from support import sabotaged_trees as trees

REPLACE, ADD = Unit.REPLACE_ONE, Unit.ADD_REMOVE
ONE = Fraction(1)
Context = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Caught:
    """A sabotage, and the game that is to see it."""

    game: Callable[[], Game]
    sabotage: Context
    is_made_inside: bool = False  # where the claim is read off an account that the sabotage keeps


Entry = Caught | str  # or why no game can see it

ORDER = "what is released is the same: only the order of charge and look is wrong"
WIDER = "it adds noise where nobody can be: useless bins, and no more is told of anybody"
LESS = "rows that are counted nowhere move the table by less than was paid for; the sums are wrong, nobody is told of"
STEPS = (
    "games hand tables of counts to the noise, and none counts the steps of a column, which have the noise of any "
    "table; that rows are in one class, and tables are charged, is checked over all neighbours"
)


def table(stage: Any, mu: str, unit: Unit) -> GaussianTables:
    return GaussianTables(unit.factor / Fraction(mu) ** 2, 1, note="audit", stage=stage)


def vector(mean_squared: str, stage: Any = "products") -> GaussianVector:
    return GaussianVector(Fraction(mean_squared), note="audit", stage=stage)


def column(one_way: str, spikes: str) -> Callable[[], Game]:
    return lambda: ColumnGame([table("one-way", one_way, REPLACE), table("spikes", spikes, REPLACE)], REPLACE)


# ------------------------------------------------------------------------------------------------- games of the zoo


class DeeperTreeGame(Game):
    """Asks for a tree of more levels than were paid for, and takes what it gets: nothing, from sound mechanisms."""

    family, path, title = "column trees", "forest.prepaid: PrepaidMechanisms.ranges", "deeper than was paid for"

    def __init__(self) -> None:
        rate = Fraction(1)
        self.unit = ADD
        self.claim = PureClaim(float(worst_path_loss(rate, decay_for(rate), 1, ADD)))
        from dataclasses import replace

        self._plan = replace(plan_of([], ADD), noise={"trees": TreeShapes(rate, decay_for(rate), 1, 1, "trees")})
        self._column = column_axis("v", sp.Integer(0, 255))

    def play(self, coins: Coins) -> Seen:
        return Seen(np.array([self._once(int(coin)) for coin in coins], dtype=np.float64)[:, None])

    def _once(self, coin: int) -> int:
        counts = CellCounts(self._column.lattice, np.zeros((1, 1), dtype=np.uint64), np.array([52 + coin]))
        try:
            found = opened(self._plan).ranges(counts, self._column.ruler, cutoff=50)
        except BudgetError:
            return -1
        return int(found.stop[0])


class ClassesGame(Game):
    """The sizes of a target's classes, as a fit reads them, against what its account was charged."""

    family, path, title = "tables", "synthesizers.forest: release_classes", "sizes of classes, as charged"

    def __init__(self) -> None:
        import pyarrow as pa

        self.unit = REPLACE
        schema = sp.Schema({"y": sp.Boolean()})
        self._lattice = column_axis("y", sp.Boolean()).lattice
        self._tables = [
            open_source(pa.table({"y": [True] * 20 + [False] * 20 + [end]}), schema, engine=None)
            for end in (False, True)
        ]
        self.books = Ledger(unit=REPLACE)
        self._once(0)
        self.claim = PureClaim(float(self.books.spent))

    def play(self, coins: Coins) -> Seen:
        seen = np.stack([self._once(int(coin)) for coin in coins]).astype(np.float64)
        return Seen(seen, seen[:, -1] - seen[:, 0])

    def _once(self, coin: int) -> Any:
        from spinney.privacy.entropy import SystemEntropy

        self.books = Ledger(unit=REPLACE)
        return forest_door.release_classes(
            self._tables[coin], self._lattice, epsilon=Fraction(4), ledger=self.books, entropy=SystemEntropy()
        ).noisy_counts


def charged_tree() -> Game:
    """A whole tree, against what its account was charged."""
    game = privtree_game(ADD, ONE, counts=ONE)
    game.play(np.zeros(game.batch, dtype=np.bool_))
    game.claim = PureClaim(float(game.books.spent))
    return game


# ------------------------------------------------------------------------------------------------- sabotage of its own


def release_by(mechanism: Any) -> Context:
    return lambda: mock.patch.object(kdtree, "release_tree", mechanism)


def moments_by(mechanism: Any) -> Context:
    return lambda: mock.patch.object(moments, "release_moments", mechanism)


def half_noise_on_rows() -> AbstractContextManager[Any]:
    sound = row_count.release_rows

    def weaker(true_rows: int, *, epsilon: Fraction, **rest: Any) -> Any:
        return sound(true_rows, epsilon=2 * epsilon, **rest)

    return mock.patch.object(row_count, "release_rows", weaker)


def rows_never_below_the_truth() -> AbstractContextManager[Any]:
    sound = row_count.release_rows

    def positive(true_rows: int, **rest: Any) -> Any:
        while True:
            found = sound(true_rows, **rest)
            if found.noisy >= true_rows:
                return found

    return mock.patch.object(row_count, "release_rows", positive)


def box_from_the_rows() -> AbstractContextManager[Any]:
    """The paper's lines 3-6: the box that the points fill, passed off as public."""
    fit = KDTreeSynthesizer.fit

    def peeking(self: Any, rows: Any, schema: Any, **rest: Any) -> Any:
        return fit(self, rows, sp.Schema({"x": sp.Real(float(rows.min()), float(rows.max()))}), **rest)

    return mock.patch.object(KDTreeSynthesizer, "fit", peeking)


def half_noise_on_figures() -> AbstractContextManager[Any]:
    sound = figures.sup_norm_noise
    return mock.patch.object(figures, "sup_norm_noise", lambda rate, n: sound(2 * rate, n))


def rows_of_persons_unweighted() -> AbstractContextManager[Any]:
    """Every row counts as a whole person, however many rows the person has."""
    made = WeightedRows.__init__

    def whole(self: WeightedRows, starts: Any, units: int) -> None:
        made(self, starts, units)
        self.true_units = np.full(len(self.true_units), units)

    return mock.patch.object(WeightedRows, "__init__", whole)


def half_noise_of_persons() -> AbstractContextManager[Any]:
    sound = WeightedTables.scale
    return mock.patch.object(WeightedTables, "scale", lambda self, unit: sound(self, unit) / 4)


def alikeness_of_one_column() -> AbstractContextManager[Any]:
    """The noise that one column would need, whatever the number of columns."""
    from spinney.people import columns as alike

    sound = alike.sensitivity_squared
    return mock.patch.object(alike, "sensitivity_squared", lambda n_columns, unit: sound(1, unit))


@contextmanager
def without_tilt(sabotage: Context) -> Any:
    """Sums as they are released, without a model fitted to them, which would take most of the time."""
    from spinney.graph.tilt import Tilt

    def no_tilt(_: Any, evidence: Any, **__: Any) -> Tilt:
        return Tilt(evidence.groups, tuple(np.zeros(len(group)) for group in evidence.groups), (), (), 0.0)

    with ExitStack() as stack:
        stack.enter_context(mock.patch("spinney.forest.release.fit.fit_tilt", no_tilt))
        stack.enter_context(sabotage())
        yield


def product_entry(name: str, make: Callable[[], Game]) -> Caught:
    return Caught(make, lambda: without_tilt(sabotaged_products.PRODUCT_CAGES[name][1]))


def _forest(name: str) -> Context:
    return sabotaged_forests.CAGES[name][1]


def _tree(name: str) -> Any:
    return trees.CAGES[name][1]


def _moments(name: str) -> Any:
    return sabotaged_moments.CAGES[name][1]


def _spikes(name: str) -> Context:
    return sabotaged_spikes.SPIKE_CAGES[name][1]


def _sums(name: str) -> Context:
    return sabotaged_sums.SUM_CAGES[name][1]


def four_sums() -> Game:
    return VectorGame(vector("4"), REPLACE)


WIDE = (3, 4, 5)
# Rows whose own shares follow a new one: found by a search.
LOPSIDED = [*[(0, 0, 0)] * 5, *[(1, 0, 0)] * 3, *[(0, 0, 1)] * 2]

TREES: dict[str, Entry] = {
    "half noise on leaf counts": Caught(lambda: CellGame(ADD, ONE), release_by(_tree("half noise on leaf counts"))),
    "half noise on decisions, paper": Caught(
        lambda: paper_game(ADD, ONE), release_by(_tree("half noise on decisions, paper"))
    ),
    "half noise on decisions, privtree": Caught(
        lambda: privtree_game(ADD, ONE), release_by(_tree("half noise on decisions, privtree"))
    ),
    "empty nodes never split": Caught(
        lambda: EmptyTreeGame(ADD, ONE, "paper"), release_by(_tree("empty nodes never split"))
    ),
    "empty nodes never released": Caught(
        lambda: EmptyCellGame(ADD, ONE), release_by(_tree("empty nodes never released"))
    ),
    "noise on impossible cells": WIDER,
    "privtree without the clamp": Caught(
        lambda: privtree_game(ADD, Fraction(3), low=True), release_by(_tree("privtree without the clamp"))
    ),
    "privtree without depth": Caught(
        lambda: privtree_game(ADD, ONE, low=True), release_by(_tree("privtree without depth"))
    ),
    "threshold before noise": Caught(lambda: EmptyCellGame(ADD, ONE), release_by(_tree("threshold before noise"))),
    "words used twice": Caught(
        lambda: privtree_game(ADD, ONE, counts=Fraction(1, 4), few=True, levels=1),
        release_by(_tree("words used twice")),
    ),
    "same words in every release": Caught(
        lambda: CellGame(ADD, ONE, few=True), release_by(_tree("same words in every release"))
    ),
    "charge after touch": ORDER,
    "charge after release": ORDER,
    "charge for counts only": Caught(charged_tree, release_by(_tree("charge for counts only")), is_made_inside=True),
}

MOMENTS: dict[str, Entry] = {
    "half noise": Caught(lambda: MomentsGame(ADD, ONE), moments_by(_moments("half noise"))),
    "noise on each coordinate by itself": Caught(
        lambda: MomentsGame(ADD, ONE), moments_by(_moments("noise on each coordinate by itself"))
    ),
    "noise only on leaves with rows": Caught(
        lambda: MomentsGame(ADD, ONE), moments_by(_moments("noise only on leaves with rows"))
    ),
    "offsets not clipped": Caught(
        lambda: MixedMomentsGame(ADD, ONE, is_possible=False), moments_by(_moments("offsets not clipped"))
    ),
    "offsets from the low end": Caught(
        lambda: MixedMomentsGame(ADD, ONE), moments_by(_moments("offsets from the low end"))
    ),
    "offsets in cells": Caught(lambda: MixedMomentsGame(ADD, ONE), moments_by(_moments("offsets in cells"))),
    "unmeasured axis forgotten": Caught(
        lambda: MixedMomentsGame(ADD, ONE), moments_by(_moments("unmeasured axis forgotten"))
    ),
    "empty nodes never split": Caught(
        lambda: empty_means_game(ADD, ONE), moments_by(_moments("empty nodes never split"))
    ),
    "half noise on decisions": Caught(
        lambda: privtree_game(ADD, ONE, moments_too=True), moments_by(_moments("half noise on decisions"))
    ),
    "leaves in impossible space": WIDER,
    "charge after touch": ORDER,
}

FORESTS: dict[str, Entry] = {
    "a table handed out twice": Caught(
        lambda: TableGame(table("one-way", "2", ADD), ADD, packed=False), _forest("a table handed out twice")
    ),
    "levels not counted": Caught(DeeperTreeGame, _forest("levels not counted")),
    "half the sensitivity": Caught(lambda: ChoiceGame(Fraction(2), REPLACE), _forest("half the sensitivity")),
    "half the sensitivity told": Caught(
        lambda: StructureGame(Fraction(3), REPLACE), _forest("half the sensitivity told")
    ),
    "expected from true counts": Caught(
        lambda: StructureGame(Fraction(4), ADD, rows=LOPSIDED, ends=[[], [(1, 1, 1)]]),
        _forest("expected from true counts"),
    ),
    "overlapping leaves": Caught(column("2", "0.5"), _forest("overlapping leaves")),
    "rows left out": LESS,
    "overlapping boxes": Caught(lambda: CliqueGame(table("cliques", "2", ADD), ADD), _forest("overlapping boxes")),
    "class sizes for nothing": Caught(ClassesGame, _forest("class sizes for nothing"), is_made_inside=True),
    "class sizes paid afterwards": ORDER,
    "prepaid mechanisms opened on credit": Caught(
        lambda: ForestFitGame(REPLACE, "10", "1e-6"),
        _forest("prepaid mechanisms opened on credit"),
        is_made_inside=True,
    ),
}

PRODUCTS: dict[str, Entry] = {
    "unclipped functions": product_entry("unclipped functions", lambda: ProductsGame(vector("4"), REPLACE, sizes=WIDE)),
    "a pair twice": product_entry("a pair twice", lambda: ProductsGame(vector("4"), ADD)),
    "groups from private counts": product_entry(
        "groups from private counts",
        lambda: ProductsGame(vector("1"), REPLACE, sizes=(3, 4, 2, 5), total=3.0, other=(2, 3, 0, 0)),
    ),
    "one pair not accounted for": product_entry("one pair not accounted for", lambda: ProductsGame(vector("4"), ADD)),
    "the sensitivity of the other unit": product_entry(
        "the sensitivity of the other unit", lambda: ProductsGame(vector("4"), REPLACE)
    ),
    "all groups are taken to change": product_entry(
        "all groups are taken to change", lambda: ProductsGame(vector("1"), REPLACE, sizes=(2, 2, 2))
    ),
}

SPIKES: dict[str, Entry] = {
    "overlapping spikes": Caught(column("0.5", "2"), _spikes("overlapping spikes")),
    "spikes at both ends": Caught(column("0.5", "2"), _spikes("spikes at both ends")),
    # They get the noise of one-way tables, which shows where that is the smaller.
    "spikes for nothing": Caught(column("2", "0.5"), _spikes("spikes for nothing")),
    "spikes counted twice": Caught(column("0.5", "2"), _spikes("spikes counted twice")),
    "steps that overlap": STEPS,
    "steps for nothing": STEPS,
}

SUMS: dict[str, Entry] = {
    **{name: Caught(four_sums, _sums(name)) for name in sabotaged_sums.SUM_CAGES},
    "no variance for rounding": Caught(
        lambda: VectorGame(vector("4"), ADD, n_sums=1, step=1), _sums("no variance for rounding")
    ),
}

OTHERS: dict[str, Entry] = {
    "half noise on the number of rows": Caught(lambda: RowCountGame(ONE), half_noise_on_rows),
    "a number of rows never below the truth": Caught(lambda: RowCountGame(ONE), rows_never_below_the_truth),
    "half noise on figures of utility": Caught(lambda: FiguresGame(ADD, ONE), half_noise_on_figures),
    "a box read off the rows": Caught(lambda: TreeFitGame(REPLACE, 1), box_from_the_rows),
    "rows of persons that are not weighted": Caught(
        lambda: WeightedGame(WeightedTables(ONE, 1, note="audit", stage="row tables"), Unit.ADD_REMOVE_PERSON),
        rows_of_persons_unweighted,
    ),
    "half the noise of persons' tables": Caught(
        lambda: WeightedGame(WeightedTables(ONE, 1, note="audit", stage="row tables"), Unit.REPLACE_PERSON),
        half_noise_of_persons,
    ),
    "alikeness with the noise of one column": Caught(
        lambda: AlikenessGame(vector("4", "alikeness"), Unit.ADD_REMOVE_PERSON, n_columns=6),
        alikeness_of_one_column,
        is_made_inside=True,
    ),
}

ZOO: dict[str, dict[str, Entry]] = {
    "trees": TREES,
    "leaf moments": MOMENTS,
    "forests": FORESTS,
    "products": PRODUCTS,
    "spikes": SPIKES,
    "vectors": SUMS,
    "others": OTHERS,
}

# All that the other zoos hold, by which tests see that none was forgotten.
CAGED = {
    "trees": trees.CAGES,
    "leaf moments": sabotaged_moments.CAGES,
    "forests": sabotaged_forests.CAGES,
    "products": sabotaged_products.PRODUCT_CAGES,
    "spikes": sabotaged_spikes.SPIKE_CAGES,
    "vectors": sabotaged_sums.SUM_CAGES,
}


def made(entry: Caught) -> tuple[Game, AbstractContextManager[Any]]:
    """The game, and the sabotage to play it in."""
    if not entry.is_made_inside:
        return entry.game(), entry.sabotage()
    with entry.sabotage():
        game = entry.game()
    return game, entry.sabotage()
