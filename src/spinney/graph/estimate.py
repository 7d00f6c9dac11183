"""The model that fits noisy tables: a small loss, the sum of (answer - noisy)^2 / (2 noise_std^2), reached from afar.

It is approached by proximal steps. One from a model p0, of weight tau, is the p with the least

    loss(p) + tau total KL(p || p0).

Its dual is smooth, convex and free of constraints. With one multiplier m per noisy number, p = p0 exp(sum of m) / Z and

    value       total log Z - sum of m noisy + tau/2 sum of (noise_std m)^2
    gradient    answers - noisy + tau noise_std^2 m
    curvature   nearly answers + tau noise_std^2 along each m.

Scaled by that, rare cells move as fast as common ones; one step size for all, as in mirror descent, leaves them behind.
Negative noisy numbers are welcome, where iterative proportional fitting has to project them away first. The first p0
has independent columns, each with its one-way table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.graph.newton import Curvature, Point, descend, dot
from spinney.graph.targets import Measurement, Targets
from spinney.graph.turned import Turned
from spinney.progress import progress

Floats = NDArray[np.float64]
Zeros = tuple[tuple[int, ...], NDArray[np.bool_]]

__all__ = ["Measurement", "estimate"]

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
    start: GraphModel | None = None,
    regularization: float = 1.5,
) -> GraphModel:
    """The model whose tables, times `total`, fit the noisy numbers; never a worse fit than the start (uniform if None).

    Without a start the first step is taken from independent columns. A start is best left out where it was fitted to
    some of the same numbers: its noise would be believed twice, and the tree must cover its cliques too.

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
    if start is not None:
        if start.tree.sizes != tuple(sizes):
            raise ParameterError("start must be a model of columns with the same sizes")
        wanted += start.tree.cliques
    tree = JunctionTree.covering(sizes, wanted)
    turned = Turned(tree)
    targets = Targets.of(turned.turned, [turned.measurement(m) for m in measurements], total)
    potentials = first = turned.vector(_first_potentials(tree, zeros, start))
    if not targets.lines.laws(first)[1] > -np.inf:
        raise ParameterError("zeros leave no possible row: together they exclude every state of some columns")
    if len(targets.noisy) and steps:
        centre = first if start is not None else first + turned.vector(_one_way_potentials(tree, measurements))
        found = _fit(targets, centre, steps, regularization)
        potentials = min(first, found, key=targets.loss)
    return GraphModel(tree, tuple(_lowered(table) for table in turned.tables(potentials)))


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


def _first_potentials(tree: JunctionTree, zeros: Sequence[Zeros], start: GraphModel | None) -> Floats:
    """The start's potentials, each in a clique of the tree that holds its columns, and minus infinity at zeros."""
    tables = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for columns, is_possible in zeros:
        shape = tree.shape(columns)
        if list(columns) != sorted(set(columns)) or np.shape(is_possible) != shape:
            raise ParameterError(f"zeros of columns {columns}, ascending, must be a table of shape {shape}")
        _add(tables, tree, columns, np.where(is_possible, 0.0, -np.inf))
    if start is not None:
        for clique, table in zip(start.tree.cliques, start.potentials, strict=True):
            _add(tables, tree, clique, table)
    return np.concatenate([table.ravel() for table in tables])


def _add(tables: list[Floats], tree: JunctionTree, columns: tuple[int, ...], table: Floats) -> None:
    """Adds a table of some columns to that of the smallest clique that holds them."""
    home = tree.home(columns)
    assert home is not None
    tables[home] += table.reshape([tree.sizes[c] if c in columns else 1 for c in tree.cliques[home]])


def _lowered(table: Floats) -> Floats:
    """The same law with its largest potential 0."""
    lowered: Floats = table - table.max()
    return lowered
