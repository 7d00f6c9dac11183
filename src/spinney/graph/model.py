"""A joint distribution of many columns: a junction tree with a table of log-potentials per clique. PUBLIC.

p(x) = exp(sum of potentials at x) / Z

passing    calibration: two sweeps of compiled loops over all cells in one vector
model      marginals within and across cliques, conditions by weights of states
draw       rows, column by column from the roots outwards, shared out systematically
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.graph.junction import Clique, JunctionTree

# -------------------------------------------------------------------------------------------------------------- passing
# Message passing on a junction tree: all cliques in one vector, two sweeps of compiled loops.
#
# With log-potentials t(c) of cliques, the model is p(x) = exp(sum of t(c)(x)) / Z. Towards the roots, each clique
# turns into its law given its separator, and what it summed to goes to the parent (`_collect`):
#
#     m(s) = log sum of exp(t(c) + messages of children) over cells that agree with s,    p(c | s) = exp(... - m(s))
#
# Back from the roots, p(c) = p(c | s) p(s), p(s) being a sum of the parent's law (`_distribute`). Messages stay on
# the log scale, so nothing underflows; a potential of minus infinity is a cell where no row can be.


Floats = NDArray[np.float64]
Places = NDArray[np.int32]


class FlatTree(NamedTuple):
    """Where the cells of cliques and separators lie in one vector each. A root has a separator of one cell."""

    parents: NDArray[np.int64]  # (n_cliques,)
    cells: NDArray[np.int64]  # (n_cliques + 1,): the cells of clique c are cells[c]..cells[c+1]
    separator_cells: NDArray[np.int64]  # (n_cliques + 1,)
    own: Places  # (n_cells,): every cell's place in the separator of its clique
    above: Places  # for one clique after the other, the place there of each of the parent's cells
    above_cells: NDArray[np.int64]  # (n_cliques + 1,)

    def parts(self, vector: NDArray[Any], tree: JunctionTree) -> tuple[NDArray[Any], ...]:
        """A vector of all cells as one table per clique."""
        return tuple(
            vector[first:last].reshape(tree.shape(clique))
            for first, last, clique in zip(self.cells, self.cells[1:], tree.cliques, strict=False)
        )


@lru_cache(maxsize=8)
def flatten(tree: JunctionTree) -> FlatTree:
    """The tree as index vectors."""
    n_cells = [math.prod(tree.shape(clique)) for clique in tree.cliques]
    n_separator_cells = [math.prod(tree.shape(separator)) for separator in tree.separators]
    own, above = [], []
    for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        own.append(places(tree.sizes, clique, separator))
        if parent >= 0:
            above.append(places(tree.sizes, tree.cliques[parent], separator))
    n_above = [n_cells[parent] if parent >= 0 else 0 for parent in tree.parents]
    return FlatTree(
        np.array(tree.parents, dtype=np.int64),
        _starts(n_cells),
        _starts(n_separator_cells),
        np.concatenate(own),
        np.concatenate([np.empty(0, dtype=np.int32), *above]),
        _starts(n_above),
    )


def places(sizes: Sequence[int], clique: Sequence[int], columns: Sequence[int]) -> Places:
    """For every cell of a clique's table its place in the table of some of its columns, both in C order."""
    shape = tuple(sizes[column] for column in clique)
    index = np.zeros(shape, dtype=np.int32)
    stride = 1
    for column in reversed(columns):
        axis = clique.index(column)
        steps = np.arange(sizes[column], dtype=np.int32) * np.int32(stride)
        index += steps.reshape((-1,) + (1,) * (len(clique) - 1 - axis))
        stride *= sizes[column]
    return index.ravel()


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Laws of all cliques, alone and given their separators, and log Z (minus infinity where no cell is possible)."""

    beliefs: Floats  # (n_cells,)
    conditionals: Floats  # (n_cells,)
    separators: Floats  # (n_separator_cells,)
    log_partition: float


def calibrate(flat: FlatTree, potentials: Floats) -> Calibrated:
    """Laws of all cliques under the potentials (n_cells,)."""
    conditionals = potentials.copy()
    log_partition = _collect(conditionals, flat)
    beliefs, separators = np.empty_like(potentials), np.zeros(flat.separator_cells[-1])
    _distribute(conditionals, beliefs, separators, flat)
    return Calibrated(beliefs, conditionals, separators, log_partition)


@compiled
def _collect(work: Floats, flat: FlatTree) -> float:
    """Potentials become conditionals in place; returns log Z."""
    parents, cells, separator_cells, log_partition = flat.parents, flat.cells, flat.separator_cells, 0.0
    largest = np.empty(separator_cells[-1])
    summed = np.empty(separator_cells[-1])
    for clique in range(len(parents) - 1, -1, -1):
        first, last, offset = cells[clique], cells[clique + 1], separator_cells[clique]
        n_separator = separator_cells[clique + 1] - offset
        top, total = largest[offset : offset + n_separator], summed[offset : offset + n_separator]
        top[:] = -np.inf
        total[:] = 0.0
        part, place = work[first:last], flat.own[first:last]
        for cell in range(last - first):
            top[place[cell]] = max(top[place[cell]], part[cell])
        for cell in range(last - first):
            # An impossible cell has no share, even where its whole separator state is impossible.
            part[cell] = np.exp(part[cell] - top[place[cell]]) if part[cell] > -np.inf else 0.0
            total[place[cell]] += part[cell]
        for state in range(n_separator):
            if total[state] > 0:
                top[state] += np.log(total[state])
                total[state] = 1 / total[state]
        for cell in range(last - first):
            part[cell] *= total[place[cell]]
        parent = parents[clique]
        if parent < 0:
            log_partition += top[0]
        else:
            upper = work[cells[parent] : cells[parent + 1]]
            to = flat.above[flat.above_cells[clique] : flat.above_cells[clique + 1]]
            for cell in range(len(upper)):
                upper[cell] += top[to[cell]]
    return log_partition


@compiled
def _distribute(conditionals: Floats, beliefs: Floats, separators: Floats, flat: FlatTree) -> None:
    parents, cells, separator_cells = flat.parents, flat.cells, flat.separator_cells
    for clique in range(len(parents)):
        first, last, offset = cells[clique], cells[clique + 1], separator_cells[clique]
        shared, place = separators[offset : separator_cells[clique + 1]], flat.own[first:last]
        parent = parents[clique]
        if parent < 0:
            shared[0] = 1.0
        else:
            upper = beliefs[cells[parent] : cells[parent + 1]]
            to = flat.above[flat.above_cells[clique] : flat.above_cells[clique + 1]]
            for cell in range(len(upper)):
                shared[to[cell]] += upper[cell]
        belief, conditional = beliefs[first:last], conditionals[first:last]
        for cell in range(last - first):
            belief[cell] = conditional[cell] * shared[place[cell]]


# ---------------------------------------------------------------------------------------------------------------- model
# Marginals of any columns.
#
# Distributions of columns that share a clique are sums of its calibrated table. Distributions across cliques
# are exact too: a clique's distribution given its separator, summed over all columns that are neither asked for
# nor shared with the parent, is a message to the parent; where the paths of all columns asked for meet,
# messages and distribution are multiplied and summed. Messages that many questions share are computed once.


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


# ----------------------------------------------------------------------------------------------------------------- draw
# Rows from a model: states of all columns, from the roots of its tree outwards.
#
# Each column is drawn given the columns of its clique that came before. Rows that agree on those share out the
# column's states *systematically*: row k of n takes the state at (k + u) / n of the conditional law, u uniform. So
# every state gets its expected number of rows to within one, where independent draws would add noise of the size of
# its square root. Which row is row k is decided anew for every column by a random order, so rows are paired with
# nothing else in mind.


States = NDArray[np.int32]


# So many numbers in [0, 1), from which systematic draws start.
Offsets = Callable[[int], Floats]


def draw_states(model: GraphModel, n_rows: int, rng: np.random.Generator, offsets: Offsets | None = None) -> States:
    """States of `n_rows` rows under the model, one line per column (n_columns, n_rows).

    Args:
        model: the law of the rows.
        n_rows: how many rows.
        rng: draws them.
        offsets: gives u for each group of rows that agree, by default random numbers.
    """
    offsets = offsets or rng.random
    if n_rows < 0:
        raise ParameterError(f"n_rows={n_rows} must not be negative")
    tree = model.tree
    states = np.zeros((tree.n_columns, n_rows), dtype=np.int32)
    if n_rows == 0:
        return states
    for clique, separator, belief in zip(tree.cliques, tree.separators, model.beliefs, strict=True):
        drawn = [*separator]
        for column in clique:
            if column in separator:
                continue
            # Axes of columns that are still to come are summed; those drawn so far come first.
            kept = [*drawn, column]
            axes = [clique.index(other) for other in kept]
            coming = tuple(axis for axis in range(len(clique)) if axis not in axes)
            table = belief.transpose(*axes, *coming).reshape(*tree.shape(kept), -1).sum(axis=-1)
            parents = np.zeros(n_rows, dtype=np.int32)
            for other in drawn:
                parents = parents * np.int32(tree.sizes[other]) + states[other]
            table = table.reshape(-1, tree.sizes[column])
            order = rng.permutation(n_rows)
            _share_out(table, parents, order, offsets(len(table)), states[column])
            drawn.append(column)
    return states


@compiled
def _share_out(
    table: Floats,  # (n_parent_states, n_states), proportional to the law of both
    parents: States,  # (n_rows,)
    order: NDArray[np.int64],  # (n_rows,)
    offsets: Floats,  # (n_parent_states,), in [0, 1)
    states: States,  # (n_rows,), written
) -> None:
    n_parents, n_states = table.shape
    steps, last = np.zeros(n_parents), np.zeros(n_parents, dtype=np.int32)
    for parent in parents:
        steps[parent] += 1
    for parent in range(n_parents):
        total = 0.0
        for state in range(n_states):
            total += table[parent, state]
            if table[parent, state] > 0:
                last[parent] = state
        if steps[parent] > 0:
            steps[parent] = total / steps[parent]  # of probability per row
    current = np.zeros(n_parents, dtype=np.int32)
    reached, position = table[:, 0].copy(), offsets * steps
    for row in order:
        parent = parents[row]
        state = current[parent]
        while position[parent] >= reached[parent] and state < last[parent]:
            state += 1
            reached[parent] += table[parent, state]
        current[parent] = state
        states[row] = state
        position[parent] += steps[parent]
