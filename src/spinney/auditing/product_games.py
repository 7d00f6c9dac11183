"""Games on the all-pairs vector, from rows to noisy sums: a row whose products differ as much as can be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from spinney.auditing.claims import curve_of
from spinney.auditing.forest_games import opened, plan_of, rows_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.forest import products
from spinney.forest.design import EFFORTS
from spinney.forest.release.column_model import ColumnModel
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.privacy.budget import Unit
from spinney.privacy.parts import GaussianTables, GaussianVector

# Columns of so many states; the first two are counted together, so the others' pairs are summed.
_SIZES = (2, 2, 2, 2)
_COUNTED = [(0, 1)]


class ProductsGame(Game):
    """Four columns of two values: a row at the ends of all, or none; under replace-one, a row that turns most products.

    One call of `release_products` a coin. The sums and the groups that they are of are seen, and the law is learned.
    """

    family = "vectors"
    path = "forest.products: release_products"

    def __init__(self, part: GaussianVector, unit: Unit, *, sizes: tuple[int, ...] = _SIZES) -> None:
        self.unit, self.claim, self._sizes = unit, curve_of([part], unit), sizes
        # The counted tables have a part of their own, of which nothing is drawn here.
        tables = GaussianTables(Fraction(1), 1, note="audit", stage="cliques")
        self._plan = plan_of([part, tables], unit)
        self.title = f"products of {len(sizes)} columns"
        tree = JunctionTree.covering(list(sizes), _COUNTED)
        potentials = tuple(np.zeros([sizes[column] for column in clique]) for clique in tree.cliques)
        self._model = GraphModel(tree, potentials)
        self._columns = [
            ColumnModel(
                np.arange(float(size)),
                np.ones(size),
                np.zeros(size, dtype=np.bool_),
                np.ones(size),
                np.arange(size, dtype=np.int32),
                size,
            )
            for size in sizes
        ]
        self._effort = replace(EFFORTS["fast"], most_sums=10_000, n_drawn=20, steps=1)
        self._rng = np.random.default_rng(0)  # draws rows from a public model
        others = [tuple(0 for _ in sizes), tuple(size - 1 for size in sizes)]
        # The products of columns 0 and 1 are not summed; turning those two turns all other pairs with one of them.
        first = tuple(0 for _ in sizes)
        second = tuple(size - 1 if column < 2 else 0 for column, size in enumerate(sizes))
        rows = [[*others, first], [*others, second]] if unit.n_is_public else [others, [*others, first]]
        self._tables = [rows_of(some, sizes) for some in rows]

    @property
    def batch(self) -> int:
        return 32

    def play(self, coins: Coins) -> Seen:
        return Seen(np.stack([self._once(int(coin)) for coin in coins]))

    def _once(self, coin: int) -> Floats:
        released = products.release_products(
            self._tables[coin],
            self._columns,
            [True] * len(self._sizes),
            self._model,
            _COUNTED,
            opened(self._plan),
            total=1e9,
            effort=self._effort,
            rng=self._rng,
        )
        assert released is not None
        sums = np.concatenate([table.ravel() for table in released.sums]).astype(np.float64)
        groups = float(hash(tuple(group.tobytes() for group in released.tilt.groups)) % 2**20)
        return np.array([groups, *sums])
