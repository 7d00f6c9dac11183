"""A joint law of many columns as a junction tree with a table of log-potentials per clique.

    p(x) = exp(sum of potentials at x) / Z

Laws of columns that share a clique are sums of its calibrated table. Laws across cliques are exact too: a clique's law
given its separator, summed over all columns that are neither asked for nor shared with the parent, is a message to the
parent; where the paths of all columns asked for meet, messages and law are multiplied and summed. Messages that many
questions share are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.errors import ParameterError
from spinney.graph.junction import Clique, JunctionTree
from spinney.graph.passing import Calibrated, FlatTree, calibrate, flatten

Floats = NDArray[np.float64]
Factor = tuple[Clique, Floats]  # columns, and a table with one axis for each


@dataclass(frozen=True, eq=False)
class GraphModel:
    """A law of all columns: the tree and one table of log-potentials per clique, minus infinity where no row can be."""

    tree: JunctionTree
    potentials: tuple[Floats, ...]  # one per clique, of its shape

    def __post_init__(self) -> None:
        shapes = [self.tree.shape(clique) for clique in self.tree.cliques]
        if [table.shape for table in self.potentials] != shapes:
            raise ParameterError("potentials must be one table per clique, each of the shape of its columns' states")
        if any(np.isnan(table).any() or (table == np.inf).any() for table in self.potentials):
            raise ParameterError("potentials must be numbers or minus infinity")

    @classmethod
    def from_parts(
        cls, sizes: Sequence[int], cliques: Sequence[Sequence[int]], potentials: Iterable[ArrayLike]
    ) -> GraphModel:
        """The model that these parts were taken from: cliques in the order of its tree."""
        tree = JunctionTree(tuple(int(size) for size in sizes), tuple(tuple(map(int, clique)) for clique in cliques))
        return cls(tree, tuple(np.asarray(table, dtype=np.float64) for table in potentials))

    @classmethod
    def from_vector(cls, tree: JunctionTree, vector: Floats) -> GraphModel:
        """The model with these log-potentials, one clique after the other (n_cells,)."""
        return cls(tree, flatten(tree).parts(vector, tree))

    @classmethod
    def uniform(cls, tree: JunctionTree) -> GraphModel:
        """All states alike."""
        return cls.from_vector(tree, np.zeros(tree.n_cells))

    @property
    def flat(self) -> FlatTree:
        return flatten(self.tree)

    @property
    def vector(self) -> Floats:
        """All potentials, one clique after the other (n_cells,)."""
        return np.concatenate([table.ravel() for table in self.potentials])

    @cached_property
    def calibrated(self) -> Calibrated:
        """Laws of all cliques; ParameterError where nothing is possible."""
        laws = calibrate(self.flat, self.vector)
        if not laws.log_partition > -np.inf:
            raise ParameterError("the potentials leave no possible row: every row meets a cell of minus infinity")
        return laws

    @property
    def log_partition(self) -> float:
        """Log Z."""
        return self.calibrated.log_partition

    @property
    def beliefs(self) -> tuple[Floats, ...]:
        """The law of every clique, as a table."""
        return self.flat.parts(self.calibrated.beliefs, self.tree)

    def marginal(self, columns: Sequence[int]) -> Floats:
        """The law of any columns: a table with one axis per column, in the order asked for."""
        return self.marginals([columns])[0]

    def marginals(self, cliques: Iterable[Sequence[int]]) -> list[Floats]:
        """The laws of many sets of columns."""
        questions = _Questions(self)
        return [questions.answer(tuple(columns)) for columns in cliques]

    def given(self, evidence: Mapping[int, ArrayLike]) -> GraphModel:
        """The model with every row weighted by the product of its states' weights (not negative), per column."""
        potentials = [*self.potentials]
        for column, weights in evidence.items():
            log_weights = self._log_weights(column, weights)
            home = self.tree.home([column])
            assert home is not None
            clique = self.tree.cliques[home]
            shape = [-1 if other == column else 1 for other in clique]
            potentials[home] = potentials[home] + log_weights.reshape(shape)
        model = GraphModel(self.tree, tuple(potentials))
        try:
            model.calibrated  # noqa: B018
        except ParameterError as error:
            raise ParameterError("evidence leaves no possible row: its states never occur together") from error
        return model

    def _log_weights(self, column: int, weights: ArrayLike) -> Floats:
        if not 0 <= column < self.tree.n_columns:
            raise ParameterError(f"evidence names column {column}; columns are 0..{self.tree.n_columns - 1}")
        array = np.asarray(weights, dtype=np.float64)
        if array.shape != (self.tree.sizes[column],) or not (np.isfinite(array) & (array >= 0)).all():
            raise ParameterError(
                f"evidence for column {column} must be {self.tree.sizes[column]} weights, finite and not negative"
            )
        with np.errstate(divide="ignore"):
            return np.log(array)


class _Questions:
    """Answers about one model, with the messages that they share."""

    def __init__(self, model: GraphModel) -> None:
        tree = model.tree
        self.tree = tree
        self.beliefs = model.beliefs
        self.conditionals = model.flat.parts(model.calibrated.conditionals, tree)
        self.top: dict[int, int] = {}  # column -> the first clique with it, the nearest to the root
        for index, clique in enumerate(tree.cliques):
            for column in clique:
                self.top.setdefault(column, index)
        self.messages: dict[tuple[int, frozenset[int]], Factor] = {}

    def answer(self, columns: Clique) -> Floats:
        if len(set(columns)) != len(columns) or any(column not in self.top for column in columns):
            raise ParameterError(f"columns={columns} must be different ones of 0..{self.tree.n_columns - 1}")
        home = self.tree.home(columns)
        if home is not None:
            return _multiply([(self.tree.cliques[home], self.beliefs[home])], columns)
        return self._meet(columns)

    def _meet(self, columns: Clique) -> Floats:
        waiting: dict[int, set[int]] = {}  # clique -> columns whose messages have come this far
        for column in columns:
            waiting.setdefault(self.top[column], set()).add(column)
        received: dict[int, list[Factor]] = {}
        closed: list[Factor] = []  # one law per tree of the wood
        while waiting:
            clique = max(waiting)  # nothing waits below it
            held, below = frozenset(waiting.pop(clique)), received.pop(clique, [])
            parent = self.tree.parents[clique]
            others = set().union(*waiting.values())
            if parent < 0 or others.issubset(self.tree.cliques[clique]):
                asked = tuple(sorted(held | others if parent >= 0 else held))
                factors = [(self.tree.cliques[clique], self.beliefs[clique]), *below]
                closed.append((asked, _multiply(factors, asked)))
                if parent >= 0:
                    break
            else:
                received.setdefault(parent, []).append(self._message(clique, held, below))
                waiting.setdefault(parent, set()).update(held)
        return _multiply(closed, columns)

    def _message(self, clique: int, held: frozenset[int], below: list[Factor]) -> Factor:
        key = clique, held
        if key not in self.messages:
            separator = self.tree.separators[clique]
            outward = (*separator, *sorted(held.difference(separator)))
            factors = [(self.tree.cliques[clique], self.conditionals[clique]), *below]
            self.messages[key] = outward, _multiply(factors, outward)
        return self.messages[key]


def _multiply(factors: list[Factor], columns: Clique) -> Floats:
    """The product of tables, summed over all columns but these."""
    operands: list[Any] = []
    names = {column: place for place, column in enumerate(sorted({c for over, _ in factors for c in over}))}
    for over, table in factors:
        operands += [table, [names[column] for column in over]]
    result: Floats = np.einsum(*operands, [names[column] for column in columns], optimize=len(factors) > 2)
    return result
