"""The graphical model that fits noisy tables: the loss, its minimisation and the start. PUBLIC.

The loss is the sum of (answer - noisy)^2 / (2 noise_std^2). It is reached by proximal steps in the dual, each
solved by a quasi-Newton method. Negative noisy numbers are used as they are; iterative proportional fitting
would have to project them away first.

    newton          L-BFGS with a scale of its own for each number
    targets         the measurements in one vector, laid over the cells of the model's cliques
    column order    columns renumbered by size, so that loops run along long lines
    estimate        the proximal steps, the first model and structural zeros
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.junction import Clique, JunctionTree
from spinney.graph.lines import Folds, LineTree, fold, unfold
from spinney.graph.model import GraphModel, Places, flatten
from spinney.progress import progress

# --------------------------------------------------------------------------------------------------------------- newton
# Steps to the bottom of a smooth convex function of many numbers: L-BFGS with a scale of its own for each number.
#
# A step multiplies the gradient by an estimate of the inverse curvature, learnt from how the gradient changed over
# the last few steps (Liu and Nocedal 1989) on top of a diagonal that the caller knows. It is shortened until the
# value falls.
#
# Sums over vectors are compiled loops: those of numpy may wake threads, which costs more than the sum where others
# work.


Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats], tuple[float, Floats]]  # of a point and its image: value and gradient

_REMEMBERED = 10
_MOST_CUTS = 25
# A step must bring at least this part of what the slope promises.
_ENOUGH = 1e-4


class Curvature:
    """What is known of the inverse curvature: a diagonal, and the last steps with the gradient's changes over them."""

    def __init__(self, scale: Floats) -> None:
        self.scale = scale
        self.n_learnt = 0
        self._steps = np.empty((_REMEMBERED, len(scale)))
        self._changes = np.empty((_REMEMBERED, len(scale)))
        self._products = np.empty(_REMEMBERED)  # step · change

    def direction(self, gradient: Floats) -> Floats:
        """Minus the inverse curvature times the gradient."""
        return _direction(gradient, self.scale, self._steps, self._changes, self._products, self.n_learnt)

    def learn(self, step: Floats, change: Floats) -> None:
        """Remember a step, unless rounding spoilt it: the function is convex, so gradients change along the step."""
        product = dot(step, change)
        if product > 1e-10 * math.sqrt(dot(step, step) * dot(change, change)):
            place = self.n_learnt % _REMEMBERED
            self._steps[place], self._changes[place], self._products[place] = step, change, product
            self.n_learnt += 1

    def forget(self) -> None:
        self.n_learnt = 0


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Where a function was looked at, and what it is there."""

    at: Floats
    value: float
    gradient: Floats
    image: Floats  # of the point, under a map that the function begins with


def descend(
    function: Function,
    start: Point,
    curvature: Curvature,
    n_steps: int,
    *,
    image: Callable[[Floats], Floats] | None = None,
    farthest: float = math.inf,
) -> Point:
    """A point reached in at most `n_steps` steps, each to a lower value.

    Fewer steps where no lower value can be found. The function begins with a map by which an image moves along
    `image(direction)` as a point does along a direction; none where it is the point itself. No step moves an image by
    more than `farthest` anywhere.
    """
    at, value, gradient, at_image = start.at, start.value, start.gradient, start.image
    for _ in range(n_steps):
        direction = curvature.direction(gradient)
        slope = dot(gradient, direction)
        if not slope < 0:
            curvature.forget()
            direction = curvature.direction(gradient)
            slope = dot(gradient, direction)
        way = direction if image is None else image(direction)
        length = 1 / max(1.0, _largest(way) / farthest)
        for _ in range(_MOST_CUTS):
            new = _ahead(at, direction, length)
            new_image = new if image is None else _ahead(at_image, way, length)
            new_value, new_gradient = function(new, new_image)
            if new_value <= value + _ENOUGH * length * slope:
                break
            excess = new_value - value - slope * length
            best = -slope * length / (2 * excess) if math.isfinite(excess) and excess > 0 else 0.1  # of a parabola
            length *= min(max(best, 0.1), 0.5)
        else:
            break
        curvature.learn(new - at, new_gradient - gradient)
        at, value, gradient, at_image = new, new_value, new_gradient, new_image
    return Point(at, value, gradient, at_image)


@compiled_loosely
def dot(a: Floats, b: Floats) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def _ahead(at: Floats, direction: Floats, length: float) -> Floats:
    """The point so far along a direction; minus infinity stays where it is."""
    found = np.empty_like(at)
    for i in range(len(at)):
        found[i] = at[i] + length * direction[i]
    return found


@compiled_loosely
def _largest(way: Floats) -> float:
    """The largest of all absolute values."""
    largest = 0.0
    for i in range(len(way)):
        largest = max(largest, abs(way[i]))
    return largest


@compiled_loosely
def _direction(
    gradient: Floats, scale: Floats, steps: Floats, changes: Floats, products: Floats, n_learnt: int
) -> Floats:
    """The two-loop recursion: steps are taken out of the gradient from the latest back, and put in again on the way."""
    n_remembered = min(n_learnt, len(steps))
    rest, shares = -gradient, np.empty(len(steps))
    for age in range(1, n_remembered + 1):
        place = (n_learnt - age) % len(steps)
        share = dot(steps[place], rest) / products[place]
        shares[place] = share
        change = changes[place]
        for i in range(len(rest)):
            rest[i] -= share * change[i]
    factor = 1.0
    if n_remembered:
        place = (n_learnt - 1) % len(steps)
        change, scaled = changes[place], 0.0
        for i in range(len(rest)):
            scaled += change[i] * change[i] * scale[i]
        factor = products[place] / scaled
    for i in range(len(rest)):
        rest[i] *= factor * scale[i]
    for age in range(n_remembered, 0, -1):
        place = (n_learnt - age) % len(steps)
        step = steps[place]
        share = shares[place] - dot(changes[place], rest) / products[place]
        for i in range(len(rest)):
            rest[i] += share * step[i]
    return rest


# -------------------------------------------------------------------------------------------------------------- targets
# Measurements of a model: noisy tables laid over the cells of its cliques.
#
# Every measurement is answered by one clique that holds its columns. There, cells fold onto a table of these columns,
# and each of its cells adds to one of the noisy numbers, so all answers are one compiled sum (`answers`), and what is
# wanted of an answer comes back to its cells the same way (`spread`). The loss is the sum of (answer - noisy)^2 / (2
# noise_std^2).


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy sums over a table of some columns: of every cell, or of cells with the same label."""

    columns: tuple[int, ...]  # ascending
    noisy: Floats  # (n_labels,); without labels one per cell, in C order
    noise_std: float | Floats  # of the noise: one for all, or (n_labels,)
    labels: NDArray[np.int32] | None = None  # of the table's shape: the noisy number each cell adds to

    def labels_of_cells(self, sizes: Sequence[int]) -> Places:
        """The label of every cell, in C order; raises where the parts do not fit each other."""
        if list(self.columns) != sorted(set(self.columns)) or not all(0 <= c < len(sizes) for c in self.columns):
            raise ParameterError(f"columns={self.columns} must be different ones of 0..{len(sizes) - 1}, ascending")
        shape = tuple(sizes[column] for column in self.columns)
        where = f"of the measurement of columns {self.columns}"
        return checked_labels(self.noisy, self.noise_std, self.labels, shape, where).ravel()


def checked_labels(
    noisy: Floats, noise_std: float | Floats, labels: Places | None, shape: tuple[int, ...], where: str
) -> Places:
    """The noisy number that each cell of a table of this shape adds to; raises where parts do not fit each other."""
    if np.ndim(noisy) != 1 or not np.isfinite(noisy).all():
        raise ParameterError(f"noisy {where} must be one line of finite numbers")
    n_labels, deviation = len(noisy), np.asarray(noise_std, dtype=np.float64)
    if deviation.shape not in {(), (n_labels,)} or not (np.isfinite(deviation).all() and (deviation > 0).all()):
        raise ParameterError(f"noise_std {where} must be one positive number, or one for each of {n_labels}")
    if labels is None:
        if n_labels != math.prod(shape):
            raise ParameterError(f"noisy {where} has {n_labels} numbers for {math.prod(shape)} cells")
        return np.arange(n_labels, dtype=np.int32).reshape(shape)
    found = np.asarray(labels)
    if found.shape != shape or found.min() < 0 or found.max() >= n_labels:
        raise ParameterError(f"labels {where} must be of shape {shape} and below {n_labels}, the number of sums")
    return found.astype(np.int32)


class Labels(NamedTuple):
    """Which cells of a model's cliques add up to which of the noisy numbers."""

    cells: NDArray[np.int64]  # (n_cliques + 1,): where the cells of a clique lie
    homes: NDArray[np.int64]  # (n_measurements,): the clique that answers
    folds: Folds  # of each home onto the table that was measured
    labels: Places  # for one measurement after the other, the label of each cell of its table
    starts: NDArray[np.int64]  # (n_measurements + 1,)


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """All measurements in one vector each: what was measured, how well, and which cells it adds up."""

    lines: LineTree
    total: float
    noisy: Floats  # (n_labels,), those of one measurement after the other
    weights: Floats  # (n_labels,): 1 / noise_std^2
    starts: NDArray[np.int64]  # (n_measurements + 1,), in the vectors of labels
    labels: Labels

    @classmethod
    def of(cls, tree: JunctionTree, measurements: Iterable[Measurement], total: float) -> Targets:
        """The measurements laid over the tree's cells; every one must lie within a clique."""
        noisy: list[Floats] = []
        weights: list[Floats] = []
        homes: list[int] = []
        folded: list[tuple[Clique, Clique]] = []
        labels: list[Places] = []
        n_labels = 0
        for measurement in measurements:
            labels.append(measurement.labels_of_cells(tree.sizes) + np.int32(n_labels))
            home = tree.home(measurement.columns)
            if home is None:
                raise ParameterError(f"columns={measurement.columns} of a measurement lie in no clique of the tree")
            noisy.append(np.asarray(measurement.noisy, dtype=np.float64))
            weights.append(np.broadcast_to(1 / np.square(measurement.noise_std, dtype=np.float64), len(noisy[-1])))
            homes.append(home)
            folded.append((tree.cliques[home], measurement.columns))
            n_labels += len(noisy[-1])
        lines = LineTree.of(tree)
        return cls(
            lines,
            total,
            np.concatenate([np.empty(0), *noisy]),
            np.concatenate([np.empty(0), *weights]),
            np.cumsum([0, *map(len, noisy)]),
            Labels(
                lines.cells,
                np.array(homes, dtype=np.int64),
                Folds.of(tree.sizes, folded),
                np.concatenate([np.empty(0, dtype=np.int32), *labels]),
                np.cumsum([0, *map(len, labels)]),
            ),
        )

    def answers(self, beliefs: Floats) -> Floats:
        """The model's own numbers, as rows out of the total (n_labels,)."""
        sums = np.zeros(len(self.noisy))
        _add_up(beliefs, sums, self.labels)
        sums *= self.total
        return sums

    def spread(self, values: Floats) -> Floats:
        """For every cell the sum of the values of its labels (n_cells,)."""
        out = np.zeros(self.lines.cells[-1])
        _spread(values, out, self.labels)
        return out

    def with_total(self) -> Floats:
        """The noisy numbers, each measurement's moved to add up to the total, by least squares.

        Answers always do, so the loss of any model changes by the same; but fitting need not find that out.
        """
        excess = np.add.reduceat(self.noisy, self.starts[:-1]) - self.total
        variance = 1 / self.weights
        share = excess / np.add.reduceat(variance, self.starts[:-1])
        return self.noisy - variance * np.repeat(share, np.diff(self.starts))

    def loss(self, potentials: Floats) -> float:
        """Sum of (answer - noisy)^2 / (2 noise_std^2) of the model with these potentials (n_cells,)."""
        return self.misfit(self.answers(self.lines.laws(potentials)[0]))

    def misfit(self, answers: Floats) -> float:
        """The loss of a model with these answers (n_labels,)."""
        return float(np.sum(self.weights * (answers - self.noisy) ** 2)) / 2


@compiled_loosely
def _add_up(beliefs: Floats, sums: Floats, targets: Labels) -> None:
    cells, homes, folds, labels, label_starts = targets
    spare = np.empty((label_starts[1:] - label_starts[:-1]).max() if len(homes) else 0)
    for measurement in range(len(homes)):
        belief = beliefs[cells[homes[measurement]] : cells[homes[measurement] + 1]]
        label = labels[label_starts[measurement] : label_starts[measurement + 1]]
        table = belief
        if len(label) < len(belief):
            table = spare[: len(label)]
            table[:] = 0.0
            fold(belief, table, folds, measurement)
        for cell in range(len(label)):
            sums[label[cell]] += table[cell]


@compiled_loosely
def _spread(values: Floats, out: Floats, targets: Labels) -> None:
    cells, homes, folds, labels, label_starts = targets
    spare = np.empty((label_starts[1:] - label_starts[:-1]).max() if len(homes) else 0)
    for measurement in range(len(homes)):
        part = out[cells[homes[measurement]] : cells[homes[measurement] + 1]]
        label = labels[label_starts[measurement] : label_starts[measurement + 1]]
        if len(label) == len(part):
            for cell in range(len(part)):
                part[cell] += values[label[cell]]
            continue
        table = spare[: len(label)]
        for cell in range(len(label)):
            table[cell] = values[label[cell]]
        unfold(table, part, folds, measurement)


# --------------------------------------------------------------------------------------------------------- column order
# The columns of a tree renumbered by their sizes, so that the last column of every clique has the most states.
#
# A column's number means nothing to a model, but loops over its cells are fastest along long lines (`lines`).


@dataclass(frozen=True, slots=True)
class Turned:
    """A tree, and the same with its columns in the order of their sizes."""

    tree: JunctionTree
    turned: JunctionTree = field(init=False)
    _ranks: tuple[int, ...] = field(init=False, repr=False)  # the new number of each column

    def __post_init__(self) -> None:
        order = sorted(range(self.tree.n_columns), key=lambda column: (self.tree.sizes[column], column))
        ranks = [0] * len(order)
        for rank, column in enumerate(order):
            ranks[column] = rank
        object.__setattr__(self, "_ranks", tuple(ranks))
        sizes = tuple(self.tree.sizes[column] for column in order)
        cliques = tuple(self._columns(clique) for clique in self.tree.cliques)
        object.__setattr__(self, "turned", JunctionTree(sizes, cliques))

    def measurement(self, measurement: Measurement) -> Measurement:
        """The same measurement by new numbers."""
        labels = measurement.labels_of_cells(self.tree.sizes)
        columns, axes = measurement.columns, self._axes(measurement.columns)
        if measurement.labels is None and list(axes) == sorted(axes):
            return Measurement(self._columns(columns), measurement.noisy, measurement.noise_std)
        table = np.ascontiguousarray(labels.reshape(self.tree.shape(columns)).transpose(axes))
        return Measurement(self._columns(columns), measurement.noisy, measurement.noise_std, table)

    def vector(self, potentials: Floats) -> Floats:
        """Potentials of the tree's cells as those of the turned one's (n_cells,)."""
        tables = zip(self.tree.cliques, flatten(self.tree).parts(potentials, self.tree), strict=True)
        return np.concatenate([table.transpose(self._axes(clique)).ravel() for clique, table in tables])

    def tables(self, potentials: Floats) -> list[Floats]:
        """Potentials of the turned tree's cells as tables of the tree's cliques."""
        tables = zip(self.tree.cliques, flatten(self.turned).parts(potentials, self.turned), strict=True)
        return [np.ascontiguousarray(table.transpose(np.argsort(self._axes(clique)))) for clique, table in tables]

    def _columns(self, columns: Sequence[int]) -> Clique:
        return tuple(sorted(self._ranks[column] for column in columns))

    def _axes(self, columns: Sequence[int]) -> list[int]:
        """The axes of a table of ascending columns in their new order."""
        return sorted(range(len(columns)), key=lambda axis: self._ranks[columns[axis]])


# ------------------------------------------------------------------------------------------------------------- estimate
# Proximal steps. One step from a model p0, of weight tau, is the p with the least
#
#     loss(p) + tau total KL(p || p0).
#
# Its dual is smooth, convex and unconstrained. With one multiplier m per noisy number, p = p0 exp(sum of m) / Z
# and
#
#     value       total log Z - sum of m noisy + tau/2 sum of (noise_std m)^2
#     gradient    answers - noisy + tau noise_std^2 m
#     curvature   nearly answers + tau noise_std^2 along each m.
#
# Scaled by that, rare cells move as fast as common ones; one step size for all, as in mirror descent, leaves
# them behind. The first p0 has independent columns, each with its one-way table.


Zeros = tuple[tuple[int, ...], NDArray[np.bool_]]


# Proximal steps. Many heavy ones stop short of the noise in rare cells: on simulated tables they came nearer to the
# truth than one light step, and than the least loss itself.
_ROUNDS = 20
# The most that a step may move a potential: many tables that share a column would all correct it at once, and too far.
_FARTHEST = 3.0


def estimate(
    sizes: Sequence[int],
    measurements: Sequence[Measurement],
    total: float,
    *,
    cliques: Iterable[Sequence[int]] = (),
    zeros: Sequence[Zeros] = (),
    steps: int = 100,
    regularization: float = 1.5,
) -> GraphModel:
    """The model whose tables, times `total`, fit the noisy numbers; never a worse fit than a uniform one.

    The first step is taken from independent columns. To start from a model that was fitted to some of the same numbers
    would be to believe their noise twice.

    `cliques` are columns that shall share a clique although nothing was measured of them together; `zeros` are columns
    with a table that is False where no row can be.

    With more `regularization` the model stays nearer to its start where numbers are noisy: it moves a cell's log-
    probability by one only for a gap of about that many (median) standard deviations. On simulated tables 1 to 2 was
    best, 4 in much noise.
    """
    if not (math.isfinite(total) and total > 0):
        raise ParameterError(f"total={total} must be a positive number: of the rows that the tables add up to")
    if steps < 0:
        raise ParameterError(f"steps={steps} must not be negative")
    if not (math.isfinite(regularization) and regularization > 0):
        raise ParameterError(f"regularization={regularization} must be a positive number")
    wanted = [tuple(m.columns) for m in measurements] + [tuple(c) for c in cliques] + [tuple(c) for c, _ in zeros]
    tree = JunctionTree.covering(sizes, wanted)
    turned = Turned(tree)
    targets = Targets.of(turned.turned, [turned.measurement(m) for m in measurements], total)
    potentials = first = turned.vector(_first_potentials(tree, zeros))
    if not targets.lines.laws(first)[1] > -np.inf:
        raise ParameterError("zeros leave no possible row: together they exclude every state of some columns")
    if len(targets.noisy) and steps:
        centre = first + turned.vector(_one_way_potentials(tree, measurements))
        found = _fit(targets, centre, steps, regularization)
        potentials = min(first, found, key=targets.loss)
    # The same laws with their largest potential 0.
    return GraphModel(tree, tuple(np.asarray(table - table.max()) for table in turned.tables(potentials)))


def _fit(targets: Targets, potentials: Floats, steps: int, regularization: float) -> Floats:
    """The best of the potentials after each of some proximal steps, every one from the last one's model."""
    variance = 1 / targets.weights
    noise_std = np.sqrt(variance)
    ridge = regularization * _ROUNDS / float(np.median(noise_std)) * variance
    noisy = targets.with_total()
    # What is learnt of the curvature hardly changes from one proximal step to the next.
    curvature = Curvature(1 / (np.maximum(noisy, noise_std) + ridge))

    def dual(multipliers: Floats, potentials: Floats) -> tuple[float, Floats]:
        beliefs, log_partition = targets.lines.laws(potentials)
        pull = ridge * multipliers
        value = targets.total * log_partition + dot(multipliers, pull / 2 - noisy)
        return value, targets.answers(beliefs) - noisy + pull

    beliefs, log_partition = targets.lines.laws(potentials)
    answers = targets.answers(beliefs)
    best, least = potentials, targets.misfit(answers)
    for turn in progress(range(_ROUNDS), "fitting the model", unit="step"):
        n_steps = steps * (turn + 1) // _ROUNDS - steps * turn // _ROUNDS
        if n_steps == 0:
            continue
        # Where the last step ended is where this one begins: what the model says there is known.
        start = Point(np.zeros(len(noisy)), targets.total * log_partition, answers - noisy, potentials)
        end = descend(dual, start, curvature, n_steps, image=targets.spread, farthest=_FARTHEST)
        pull = ridge * end.at
        log_partition = (end.value - dot(end.at, pull / 2 - noisy)) / targets.total
        answers = end.gradient + noisy - pull
        potentials = end.image
        loss = targets.misfit(answers)
        if loss < least:
            best, least = potentials, loss
    return best


def _one_way_potentials(tree: JunctionTree, measurements: Iterable[Measurement]) -> Floats:
    """Log-laws of the columns that were measured alone, each by its most precise table: columns independent."""
    tables = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    alone = [m for m in measurements if len(m.columns) == 1]
    for m in {m.columns: m for m in sorted(alone, key=lambda m: -float(np.mean(m.noise_std)))}.values():
        labels = m.labels_of_cells(tree.sizes)
        weights = np.maximum(m.noisy, np.asarray(m.noise_std) / 3)  # all possible, none negative
        n_alike = np.bincount(labels, minlength=len(weights))
        _add(tables, tree, m.columns, np.log(weights[labels] / n_alike[labels]))
    return np.concatenate([table.ravel() for table in tables])


def _first_potentials(tree: JunctionTree, zeros: Sequence[Zeros]) -> Floats:
    """Minus infinity where no row can be, and 0 elsewhere."""
    tables = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for columns, is_possible in zeros:
        shape = tree.shape(columns)
        if list(columns) != sorted(set(columns)) or np.shape(is_possible) != shape:
            raise ParameterError(f"zeros of columns {columns}, ascending, must be a table of shape {shape}")
        _add(tables, tree, columns, np.where(is_possible, 0.0, -np.inf))
    return np.concatenate([table.ravel() for table in tables])


def _add(tables: list[Floats], tree: JunctionTree, columns: tuple[int, ...], table: Floats) -> None:
    """Adds a table of some columns to that of the smallest clique that holds them."""
    home = tree.home(columns)
    assert home is not None
    tables[home] += table.reshape([tree.sizes[c] if c in columns else 1 for c in tree.cliques[home]])
