"""Slow twins: every fast path once more, in the plainest way there is.

Codes are Python integers, boxes are lists of ranges, tables are lists of cell tuples, and every node of a tree
draws its own noise, empty or not. Nothing here is shared with the source but the public description of the
lattice and the plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from spinney.grid.lattice import Axis, Lattice
from spinney.tree.plan import SplitPlan

Cells = tuple[int, ...]
Node = tuple[int, int]  # depth, prefix as a number
Box = list[range]


# ---------------------------------------------------------------------------------------------- codes and boxes


def axis_order(lattice: Lattice) -> list[int]:
    """Which axis every level splits: round after round, axes without bits left sitting out."""
    left = [axis.bits for axis in lattice.axes]
    order = []
    while any(left):
        for index in range(len(left)):
            if left[index]:
                order.append(index)
                left[index] -= 1
    return order


def code_of(cells: Cells, lattice: Lattice) -> int:
    """The code of a row as one number of `lattice.depth` bits."""
    digits = [
        list(f"{cell:0{axis.bits}b}") if axis.bits else [] for cell, axis in zip(cells, lattice.axes, strict=True)
    ]
    return int("0" + "".join(digits[axis].pop(0) for axis in axis_order(lattice)), 2)


def box_of(node: Node, lattice: Lattice) -> Box:
    """The cells of a node along every axis, by halving."""
    depth, prefix = node
    box = [range(2**axis.bits) for axis in lattice.axes]
    for level, axis in enumerate(axis_order(lattice)[:depth]):
        half = len(box[axis]) // 2
        box[axis] = box[axis][half:] if prefix >> (depth - 1 - level) & 1 else box[axis][:half]
    return box


def pack(code: int, n_bits: int, lattice: Lattice) -> list[int]:
    """A prefix of `n_bits` as left-aligned 64-bit words."""
    whole = code << (64 * lattice.n_words - n_bits)
    return [whole >> 64 * (lattice.n_words - 1 - word) & (2**64 - 1) for word in range(lattice.n_words)]


def unpack(words: Iterable[int], n_bits: int) -> int:
    """The prefix of `n_bits` in left-aligned words."""
    whole, n_words = 0, 0
    for word in words:
        whole, n_words = whole << 64 | int(word), n_words + 1
    return whole >> (64 * n_words - n_bits)


def is_possible_cell(cell: int, axis: Axis) -> bool:
    """Whether some row can have this cell on this axis: a value, or null where there are nulls."""
    return axis.first <= cell <= axis.last or (axis.nullable and cell == 2 ** (axis.bits - 1))


def is_possible_node(node: Node, lattice: Lattice) -> bool:
    """Whether the box of a node holds a possible cell on every axis."""
    box = box_of(node, lattice)
    return all(
        any(is_possible_cell(cell, axis) for cell in cells) for cells, axis in zip(box, lattice.axes, strict=True)
    )


def possible_mask(lattice: Lattice, depth: int) -> tuple[bool, ...]:
    """Which nodes of one depth are possible, in code order."""
    return tuple(is_possible_node((depth, prefix), lattice) for prefix in range(2**depth))


# ---------------------------------------------------------------------------------------------- tables without noise


def group_and_count(rows: Iterable[Cells], lattice: Lattice) -> list[tuple[int, int]]:
    """Sorted codes with counts."""
    return sorted(Counter(code_of(row, lattice) for row in rows).items())


def enumerated_grid(rows: list[Cells], lattice: Lattice, threshold: int) -> dict[Node, int]:
    """Every cell of the lattice, one by one, where the count reaches the threshold."""
    found = {}
    for code in range(2**lattice.depth):
        box = box_of((lattice.depth, code), lattice)
        count = sum(all(cell in cells for cell, cells in zip(row, box, strict=True)) for row in rows)
        if count >= threshold:
            found[lattice.depth, code] = count
    return found


@dataclass
class Grown:
    """Leaves with their counts, and the empty nodes at which a subtree without rows begins."""

    leaves: dict[Node, int]
    empty_roots: set[Node]


def recursive_binning(rows: list[Cells], lattice: Lattice, splits: Callable[[int, int], bool], max_depth: int) -> Grown:
    """Algorithm 3 as printed: look at the points in the box, decide, halve the box on the current axis, recurse.

    `splits(count, depth)` decides. Boxes without points are handed back unopened.
    """
    order = axis_order(lattice)
    grown = Grown({}, set())

    def recurse(node: Node, box: Box, points: list[Cells]) -> None:
        depth, prefix = node
        if not points:
            grown.empty_roots.add(node)
            return
        if depth == max_depth or not splits(len(points), depth):
            grown.leaves[node] = len(points)
            return
        axis = order[depth]
        middle = box[axis].start + len(box[axis]) // 2
        low, high = [*box], [*box]
        low[axis], high[axis] = range(box[axis].start, middle), range(middle, box[axis].stop)
        recurse((depth + 1, 2 * prefix), low, [point for point in points if point[axis] < middle])
        recurse((depth + 1, 2 * prefix + 1), high, [point for point in points if point[axis] >= middle])

    recurse((0, 0), [range(2**axis.bits) for axis in lattice.axes], rows)
    return grown


def score_of(count: int, depth: int, plan: SplitPlan) -> int:
    """What a node brings to its decision: its count, or under PrivTree the count less its depth's decay, clamped."""
    if plan.rule == "paper":
        return count
    return max(count - (depth - plan.fixed_depth) * plan.decay, plan.cutoff - plan.decay)


def split_rule(plan: SplitPlan) -> Callable[[int, int], bool]:
    """The plan's decisions without noise."""

    def splits(count: int, depth: int) -> bool:
        return depth < plan.fixed_depth or (depth < plan.max_depth and score_of(count, depth, plan) > plan.cutoff)

    return splits


# ---------------------------------------------------------------------------------------------- moments of leaves


def measured_cells(node: Node, lattice: Lattice) -> list[list[int] | None]:
    """Along every axis the cells that a leaf's offset is counted over; None where there is no offset."""
    measured: list[list[int] | None] = []
    for cells, axis in zip(box_of(node, lattice), lattice.axes, strict=True):
        possible = [cell for cell in cells if is_possible_cell(cell, axis)]
        holds_null = axis.nullable and 2 ** (axis.bits - 1) in cells
        measured.append(None if holds_null or len(possible) < 2 or axis.kind == "category" else possible)
    return measured


def leaf_steps(rows: Iterable[Cells], node: Node, lattice: Lattice, quantum: int) -> list[int]:
    """Count and sums of offsets of the rows in one leaf, row by row, in exact fractions rounded to whole steps."""
    steps = [0] * (1 + len(lattice.axes))
    box, measured = box_of(node, lattice), measured_cells(node, lattice)
    for row in rows:
        if all(cell in cells for cell, cells in zip(row, box, strict=True)):
            steps[0] += quantum
            for index, cells in enumerate(measured):
                if cells is not None:
                    place = Fraction(2 * cells.index(row[index]) + 1, len(cells))  # between 0 and 2: edges in halves
                    steps[1 + index] += round(quantum * place) - quantum
    return steps


# ---------------------------------------------------------------------------------------------- trees with noise


def laplace_noise(rng: np.random.Generator, rate: float, n: int) -> NDArray[np.int64]:
    """Discrete Laplace draws as differences of two geometric ones."""
    chance = -math.expm1(-rate)
    return rng.geometric(chance, n) - rng.geometric(chance, n)


@dataclass(frozen=True)
class Bins:
    """Released bins of many independent copies of one release."""

    copy: NDArray[np.int64]
    depth: NDArray[np.int64]
    prefix: NDArray[np.int64]
    noisy_count: NDArray[np.int64]

    def outcomes(self, n_copies: int, *, largest: int) -> Counter[tuple[tuple[int, int, int], ...]]:
        """How often each set of (depth, prefix, count) was released; counts above `largest` are shown as that."""
        released: list[list[tuple[int, int, int]]] = [[] for _ in range(n_copies)]
        shown = np.minimum(self.noisy_count, largest)
        for copy, *bin_ in zip(*(part.tolist() for part in (self.copy, self.depth, self.prefix, shown)), strict=True):
            released[copy].append(tuple(bin_))
        return Counter(tuple(sorted(bins)) for bins in released)


def explicit_release(
    table: tuple[int, ...],
    plan: SplitPlan,
    *,
    n_copies: int,
    rng: np.random.Generator,
    possible: tuple[bool, ...] | None = None,
    noise_factor: float = 1.0,
    splits_empty: bool = True,
) -> Bins:
    """Copies of a release in which every node, empty or not, draws its own noise.

    `table` holds the counts of the nodes at max_depth. The last two arguments make it wrong on purpose.
    """
    possible = (True,) * len(table) if possible is None else possible
    split_rate = float(plan.decision_rate) / noise_factor
    count_rate = float(plan.count_rate) / noise_factor
    found: list[tuple[NDArray[np.int64], int, int, NDArray[np.int64]]] = []

    def visit(node: Node, counts: tuple[int, ...], reachable: tuple[bool, ...], alive: NDArray[np.int64]) -> None:
        if not any(reachable) or not len(alive):
            return
        depth, prefix = node
        count = sum(counts)
        if depth < plan.fixed_depth:
            does_split = np.ones(len(alive), dtype=bool)
        elif depth == plan.max_depth or (count == 0 and not splits_empty):
            does_split = np.zeros(len(alive), dtype=bool)
        else:
            noise = laplace_noise(rng, split_rate, len(alive))
            does_split = score_of(count, depth, plan) + noise > plan.cutoff
        leaf = alive[~does_split]
        noisy = count + laplace_noise(rng, count_rate, len(leaf))
        passes = noisy >= plan.threshold
        found.append((leaf[passes], depth, prefix, noisy[passes]))
        half = len(counts) // 2
        visit((depth + 1, 2 * prefix), counts[:half], reachable[:half], alive[does_split])
        visit((depth + 1, 2 * prefix + 1), counts[half:], reachable[half:], alive[does_split])

    visit((0, 0), table, possible, np.arange(n_copies))
    return Bins(
        np.concatenate([copies for copies, *_ in found]),
        np.concatenate([np.full(len(copies), depth) for copies, depth, _, _ in found]),
        np.concatenate([np.full(len(copies), prefix) for copies, _, prefix, _ in found]),
        np.concatenate([noisy for *_, noisy in found]),
    )


# ---------------------------------------------------------------------------------------------- kernel functions


def modified_gram_schmidt(
    points: NDArray[np.float64], gamma: float, nearly_zero: float = 1e-5
) -> tuple[list[int], list[NDArray[np.float64]]]:
    """Which K(z, .) are kept, and each orthonormal function as weights of all points: one inner product at a time."""
    kernel = np.array([[math.exp(-gamma * ((z - other) ** 2).sum()) for other in points] for z in points])
    kept: list[int] = []
    functions: list[NDArray[np.float64]] = []
    for i in range(len(points)):
        rest = np.zeros(len(points))
        rest[i] = 1.0
        for function in functions:
            rest = rest - (rest @ kernel @ function) * function
        squared = float(rest @ kernel @ rest)
        if squared > nearly_zero:
            kept.append(i)
            functions.append(rest / math.sqrt(squared))
    return kept, functions


def whole_kernel_sums(
    rows: NDArray[np.float64], points: NDArray[np.float64], gamma: float, bits: int
) -> list[list[int]]:
    """For every point the terms of its sum, row by row, as Python integers."""
    return [
        [round(2**bits * math.exp(-gamma * _squared_distance(row, point))) for row in rows.tolist()]
        for point in points.tolist()
    ]


def whole_feature_sums(
    rows: NDArray[np.float64], frequencies: NDArray[np.float64], bits: int
) -> tuple[list[list[int]], list[list[int]]]:
    """For every frequency the cosines and the sines of all rows, as Python integers."""
    phases = [[_phase(frequency, row) for row in rows.tolist()] for frequency in frequencies.tolist()]
    return (
        [[round(2**bits * math.cos(phase)) for phase in line] for line in phases],
        [[round(2**bits * math.sin(phase)) for phase in line] for line in phases],
    )


def _squared_distance(first: list[float], second: list[float]) -> float:
    total = 0.0
    for a, b in zip(second, first, strict=True):
        total += (a - b) * (a - b)
    return total


def _phase(frequency: list[float], row: list[float]) -> float:
    total = 0.0
    for w, x in zip(frequency, row, strict=True):
        total += w * x
    return total
