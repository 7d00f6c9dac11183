"""Games on the all-pairs vector, from rows to noisy sums: a row whose products differ as much as can be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from zlib import crc32

import numpy as np

from spinney.auditing.claims import curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of, rows_of
from spinney.forest import products
from spinney.forest.design import EFFORTS
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.signs import signs
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.privacy.budget import Unit
from spinney.privacy.parts import GaussianTables, GaussianVector

# Columns of so many states; the first two are counted together, so their pairs with the third are summed.
_SIZES = (8, 8, 8)
_COUNTED = [(0, 1)]
# Sums that are looked at one by one, beside all of them along the direction in which the row moves them.
_FEW = 12


class ProductsGame(Game):
    """Three columns: a row, or none; under replace-one, a row or the one whose products differ most from its own.

    One call of `release_products` a coin. The sums and the groups that they are of are seen, and the law is learned.
    """

    family = "vectors"
    path = "forest.products: release_products"

    def __init__(
        self,
        part: GaussianVector,
        unit: Unit,
        *,
        sizes: tuple[int, ...] = _SIZES,
        total: float = 1e9,
        other: tuple[int, ...] | None = None,
    ) -> None:
        self.unit, self.claim, self._sizes, self._total = unit, curve_of([part], unit), sizes, total
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
        every = list(product(*map(range, sizes)))
        sums = np.array([self._sums_of(row) for row in every])
        far = int(((sums - sums[0]) ** 2).sum(axis=1).argmax()) if other is None else every.index(other)
        self._moved = sums[far] - sums[0] if unit.n_is_public else sums[0]
        rows = [[*others, every[0]], [*others, every[far]]] if unit.n_is_public else [others, [*others, every[0]]]
        self._tables = [rows_of(some, sizes) for some in rows]

    @property
    def batch(self) -> int:
        return 32

    def play(self, coins: Coins) -> Seen:
        seen = np.stack([self._once(int(coin)) for coin in coins])
        return Seen(seen, seen[:, 0])

    def _sums_of(self, row: tuple[int, ...]) -> Floats:
        """What a row adds to all sums, where every state is a group of its own."""
        held = products.counted_pairs(_COUNTED)
        pairs = [pair for pair in combinations(range(len(row)), 2) if pair not in held]
        functions = [signs(size)[:, state] for size, state in zip(self._sizes, row, strict=True)]
        return np.concatenate([np.outer(functions[i], functions[j]).ravel() for i, j in pairs]).astype(np.float64)

    def _once(self, coin: int) -> Floats:
        released = products.release_products(
            self._tables[coin],
            self._columns,
            [True] * len(self._sizes),
            self._model,
            _COUNTED,
            opened(self._plan),
            total=self._total,
            effort=self._effort,
            rng=self._rng,
        )
        assert released is not None
        sums = np.concatenate([table.ravel() for table in released.sums]).astype(np.float64)
        groups = float(crc32(b"".join(group.tobytes() for group in released.tilt.groups)))
        # More sums than there should be are those of the last pair once more.
        moved = np.concatenate([self._moved, self._moved[len(self._moved) - max(len(sums) - len(self._moved), 0) :]])
        along = sums @ moved if len(sums) == len(moved) else sums.sum()
        return np.array([along, groups, *sums[:_FEW]])
