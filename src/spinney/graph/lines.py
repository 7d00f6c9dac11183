"""Lines: distributions of cliques and sums of them for fits, in runs of neighbouring cells. PUBLIC.

A fit asks for the distributions of a model a thousand times. `model.calibrate` looks up the place in a
separator for every cell. Here the cells of a clique are taken in *lines*, runs along its last columns that are
all in the separator, or all not. A line lies side by side in the separator too, or falls onto one cell of it,
so one lookup serves a line, and many cells are worked on at a time. Lines are long where the last columns of
cliques have the most states (`estimate.Turned`).

Sums may differ from those of `model.calibrate` in their last digits, and those are the ones that released
models use.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, compiled_loosely
from spinney.graph.junction import Clique, JunctionTree
from spinney.graph.model import Places, flatten, places

Floats = NDArray[np.float64]
_Numbers = NDArray[np.int64]

# Stands for the potential of a cell where no row can be, which loops that take sums in any order could not add: sums of
# several are as low, and far from what any other can be. All that can be added up lies above the second.
_NEVER = -1e30
_LOWEST = -1e300
# What exp(x) is below this is nothing.
_NOTHING = -708.0
# Cells whose exponentials are taken at a time.
_CHUNK = 1 << 9
# Added to a number, and taken off again, this rounds it to a whole one, which is then found in its last bits.
_ROUNDING = 1.5 * 2.0**52
_LOG2_E = 1 / math.log(2)
# The logarithm of 2 in two parts, the first with few enough digits for exact products.
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
# 1 / n!, up to the last one that matters.
_T3, _T4, _T5, _T6, _T7, _T8, _T9, _T10, _T11, _T12 = (1 / math.factorial(power) for power in range(3, 13))


class Folds(NamedTuple):
    """How the cells of tables fall onto those of some of their columns, for one pair of tables after the other."""

    n_run: _Numbers  # (n_folds,): cells of a line
    is_kept: NDArray[np.bool_]  # (n_folds,): whether they stay apart
    starts: _Numbers  # (n_folds + 1,), in `onto`
    onto: Places  # for every line the first cell that it falls onto

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[tuple[Clique, Clique]]) -> Folds:
        """Those of cliques, each with some of its columns."""
        n_run, is_kept = [], []
        onto = [np.empty(0, dtype=np.int32)]
        for clique, columns in tables:
            kept = bool(clique) and clique[-1] in columns
            n_cells = 1
            for column in reversed(clique):
                if (column in columns) != kept:
                    break
                n_cells *= sizes[column]
            n_run.append(n_cells)
            is_kept.append(kept)
            onto.append(places(sizes, clique, columns)[::n_cells])
        starts = np.cumsum([len(part) for part in onto])
        return cls(np.array(n_run, dtype=np.int64), np.array(is_kept, dtype=np.bool_), starts, np.concatenate(onto))


class LineTree(NamedTuple):
    """Where the cells of cliques and separators lie in one vector each, and how they fall onto each other."""

    parents: _Numbers  # (n_cliques,)
    cells: _Numbers  # (n_cliques + 1,)
    separator_cells: _Numbers  # (n_cliques + 1,)
    own: Folds  # of every clique onto its separator
    above: Folds  # of its parent, where it has one

    @classmethod
    def of(cls, tree: JunctionTree) -> LineTree:
        """The lines of a tree."""
        flat = flatten(tree)
        separators = list(zip(tree.cliques, tree.separators, strict=True))
        upper = [(tree.cliques[max(parent, 0)], own) for parent, own in zip(tree.parents, tree.separators, strict=True)]
        own, above = Folds.of(tree.sizes, separators), Folds.of(tree.sizes, upper)
        return cls(flat.parents, flat.cells, flat.separator_cells, own, above)

    def laws(self, potentials: Floats) -> tuple[Floats, float]:
        """Laws of all cliques under the potentials (n_cells,), and log Z, minus infinity where no row can be."""
        work = np.maximum(potentials, _NEVER)
        log_partition = _laws(work, self)
        return work, log_partition if log_partition > _NEVER / 2 else -np.inf


# ------------------------------------------------------------------------------------------------------- compiled loops


@compiled_loosely
def _laws(work: Floats, lines: LineTree) -> float:
    """Potentials become laws in place; returns log Z. Towards the roots and back, as in `passing`."""
    parents, cells, separator_cells, own, above = lines
    log_partition = 0.0
    messages, shares = np.empty(separator_cells[-1]), np.empty(separator_cells[-1])
    scratch = np.empty(_CHUNK)
    for clique in range(len(parents) - 1, -1, -1):
        part = work[cells[clique] : cells[clique + 1]]
        top = messages[separator_cells[clique] : separator_cells[clique + 1]]
        total = shares[separator_cells[clique] : separator_cells[clique + 1]]
        top[:] = _LOWEST
        _fold_tops(part, top, own, clique)
        for state in range(top.size):
            top[state] = -top[state]
        unfold(top, part, own, clique)
        _exponentials(part, scratch)
        total[:] = 0.0
        fold(part, total, own, clique)
        for state in range(top.size):
            top[state] = np.log(total[state]) - top[state]
            total[state] = 1 / total[state]
        parent = parents[clique]
        if parent < 0:
            log_partition += top[0]
        else:
            unfold(top, work[cells[parent] : cells[parent + 1]], above, clique)
    for clique in range(len(parents)):
        part = work[cells[clique] : cells[clique + 1]]
        shared = messages[separator_cells[clique] : separator_cells[clique + 1]]
        share = shares[separator_cells[clique] : separator_cells[clique + 1]]
        parent = parents[clique]
        if parent >= 0:
            shared[:] = 0.0
            fold(work[cells[parent] : cells[parent + 1]], shared, above, clique)
            for state in range(share.size):
                share[state] *= shared[state]
        _scale(share, part, own, clique)
    return log_partition


@compiled_loosely
def _lines(folds: Folds, place: int) -> tuple[Places, int, bool]:
    """One pair of tables: what its lines fall onto, how long they are, and whether their cells stay apart."""
    return folds.onto[folds.starts[place] : folds.starts[place + 1]], folds.n_run[place], folds.is_kept[place]


@compiled_loosely
def fold(part: Floats, out: Floats, folds: Folds, place: int) -> None:
    """Add cells to those that they fall onto."""
    onto, n_run, is_kept = _lines(folds, place)
    for line in range(len(onto)):
        here = part[line * n_run : (line + 1) * n_run]
        if is_kept:
            there = out[onto[line] : onto[line] + n_run]
            for k in range(n_run):
                there[k] += here[k]
        else:
            total = 0.0
            for k in range(n_run):
                total += here[k]
            out[onto[line]] += total


@compiled_loosely
def _fold_tops(part: Floats, out: Floats, folds: Folds, place: int) -> None:
    """Raise cells to the largest of those that fall onto them."""
    onto, n_run, is_kept = _lines(folds, place)
    for line in range(len(onto)):
        here = part[line * n_run : (line + 1) * n_run]
        if is_kept:
            there = out[onto[line] : onto[line] + n_run]
            for k in range(n_run):
                there[k] = max(there[k], here[k])
        else:
            top = out[onto[line]]
            for k in range(n_run):
                top = max(top, here[k])
            out[onto[line]] = top


@compiled_loosely
def unfold(values: Floats, part: Floats, folds: Folds, place: int) -> None:
    """Add to cells the values that they fall onto."""
    onto, n_run, is_kept = _lines(folds, place)
    for line in range(len(onto)):
        here = part[line * n_run : (line + 1) * n_run]
        if is_kept:
            there = values[onto[line] : onto[line] + n_run]
            for k in range(n_run):
                here[k] += there[k]
        else:
            value = values[onto[line]]
            for k in range(n_run):
                here[k] += value


@compiled_loosely
def _scale(values: Floats, part: Floats, folds: Folds, place: int) -> None:
    """Multiply cells by the values that they fall onto."""
    onto, n_run, is_kept = _lines(folds, place)
    for line in range(len(onto)):
        here = part[line * n_run : (line + 1) * n_run]
        if is_kept:
            there = values[onto[line] : onto[line] + n_run]
            for k in range(n_run):
                here[k] *= there[k]
        else:
            value = values[onto[line]]
            for k in range(n_run):
                here[k] *= value


@compiled
def _exponentials(part: Floats, scratch: Floats) -> None:
    """exp(x) of numbers that are not positive, in place: 2^n exp(r), |r| at most log(2) / 2, by Taylor's series.

    Not in whatever order is fastest: rounding by a large number is meant.
    """
    bits = scratch.view(np.int64)
    for start in range(0, part.size, _CHUNK):
        here = part[start : start + _CHUNK]
        for k in range(here.size):
            x = max(here[k], _NOTHING)
            shifted = x * _LOG2_E + _ROUNDING
            whole = shifted - _ROUNDING
            r = x - whole * _LN2_HIGH - whole * _LN2_LOW
            series = _T12 * r + _T11
            series = (series * r + _T10) * r + _T9
            series = (series * r + _T8) * r + _T7
            series = (series * r + _T6) * r + _T5
            series = (series * r + _T4) * r + _T3
            series = ((series * r + 0.5) * r + 1.0) * r + 1.0
            scratch[k] = shifted
            here[k] = series if here[k] > _NOTHING else 0.0
        for k in range(here.size):
            bits[k] = (bits[k] + 1023) << 52
        for k in range(here.size):
            here[k] *= scratch[k]
