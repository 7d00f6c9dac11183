"""Measurements of a model: noisy tables laid over the cells of its cliques.

Every measurement is answered by one clique that holds its columns. There, cells fold onto a table of these columns, and
each of its cells adds to one of the noisy numbers, so all answers are one compiled sum (`answers`), and what is wanted
of an answer comes back to its cells the same way (`spread`). The loss is the sum of
(answer - noisy)^2 / (2 noise_std^2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.junction import Clique, JunctionTree
from spinney.graph.lines import Folds, LineTree, fold, unfold
from spinney.graph.passing import Places

Floats = NDArray[np.float64]


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
        if np.ndim(self.noisy) != 1 or not np.isfinite(self.noisy).all():
            raise ParameterError(f"noisy {where} must be one line of finite numbers")
        n_labels = len(self.noisy)
        if np.shape(self.noise_std) not in {(), (n_labels,)} or not _is_positive(self.noise_std):
            raise ParameterError(f"noise_std {where} must be one positive number, or one for each of {n_labels}")
        if self.labels is None:
            if n_labels != math.prod(shape):
                raise ParameterError(f"noisy {where} has {n_labels} numbers for {math.prod(shape)} cells")
            return np.arange(n_labels, dtype=np.int32)
        labels = np.asarray(self.labels)
        if labels.shape != shape or labels.min() < 0 or labels.max() >= n_labels:
            raise ParameterError(f"labels {where} must be of shape {shape} and below {n_labels}, the number of sums")
        return labels.astype(np.int32).ravel()


def _is_positive(noise_std: float | Floats) -> bool:
    return bool(np.all(np.isfinite(noise_std)) and np.all(np.asarray(noise_std) > 0))


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """All measurements in one vector each: what was measured, how well, and which cells it adds up."""

    tree: JunctionTree
    lines: LineTree
    total: float
    noisy: Floats  # (n_labels,), those of one measurement after the other
    weights: Floats  # (n_labels,): 1 / noise_std^2
    starts: NDArray[np.int64]  # (n_measurements + 1,), in the vectors of labels
    homes: NDArray[np.int64]  # (n_measurements,): the clique that answers
    folds: Folds  # of each home onto the table that was measured
    labels: Places  # for one measurement after the other, the label of each cell of its table
    label_starts: NDArray[np.int64]  # (n_measurements + 1,)

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
        return cls(
            tree,
            LineTree.of(tree),
            total,
            np.concatenate([np.empty(0), *noisy]),
            np.concatenate([np.empty(0), *weights]),
            np.cumsum([0, *map(len, noisy)]),
            np.array(homes, dtype=np.int64),
            Folds.of(tree.sizes, folded),
            np.concatenate([np.empty(0, dtype=np.int32), *labels]),
            np.cumsum([0, *map(len, labels)]),
        )

    def answers(self, beliefs: Floats) -> Floats:
        """The model's own numbers, as rows out of the total (n_labels,)."""
        sums = np.zeros(len(self.noisy))
        folds = self.folds
        cells, folded = self.lines.cells, (folds.n_run, folds.is_kept, folds.starts, folds.onto)
        _add_up(beliefs, sums, self.homes, cells, *folded, self.labels, self.label_starts)
        sums *= self.total
        return sums

    def spread(self, values: Floats) -> Floats:
        """For every cell the sum of the values of its labels (n_cells,)."""
        out = np.zeros(self.lines.cells[-1])
        folds = self.folds
        cells, folded = self.lines.cells, (folds.n_run, folds.is_kept, folds.starts, folds.onto)
        _spread(values, out, self.homes, cells, *folded, self.labels, self.label_starts)
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
def _add_up(
    beliefs: Floats,
    sums: Floats,
    homes: NDArray[np.int64],
    cells: NDArray[np.int64],
    n_run: NDArray[np.int64],
    is_kept: NDArray[np.bool_],
    fold_starts: NDArray[np.int64],
    onto: Places,
    labels: Places,
    label_starts: NDArray[np.int64],
) -> None:
    spare = np.empty((label_starts[1:] - label_starts[:-1]).max() if len(homes) else 0)
    for measurement in range(len(homes)):
        belief = beliefs[cells[homes[measurement]] : cells[homes[measurement] + 1]]
        label = labels[label_starts[measurement] : label_starts[measurement + 1]]
        table = belief
        if len(label) < len(belief):
            table = spare[: len(label)]
            table[:] = 0.0
            there = onto[fold_starts[measurement] : fold_starts[measurement + 1]]
            fold(belief, table, there, n_run[measurement], is_kept[measurement])
        for cell in range(len(label)):
            sums[label[cell]] += table[cell]


@compiled_loosely
def _spread(
    values: Floats,
    out: Floats,
    homes: NDArray[np.int64],
    cells: NDArray[np.int64],
    n_run: NDArray[np.int64],
    is_kept: NDArray[np.bool_],
    fold_starts: NDArray[np.int64],
    onto: Places,
    labels: Places,
    label_starts: NDArray[np.int64],
) -> None:
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
        there = onto[fold_starts[measurement] : fold_starts[measurement + 1]]
        unfold(table, part, there, n_run[measurement], is_kept[measurement])
