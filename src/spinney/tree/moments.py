"""Leaf moments: every leaf of the tree releases how many rows it holds and where in the leaf they lie on average.

A row of a leaf adds 1 to its count and its offset u from the leaf's centre to its sums, in half-edges, so u lies in
[-1, 1] along every axis: the vector (1, u) lies in a cube, and noise that is even over cubes (`privacy.supnorm`)
hides it at the price of the count alone. A leaf's box is public once the tree is, so the axes along which it is one
cell wide, or has no order, are left out and need no noise.

All leaves are released, empty ones too, since counts are later fitted to a known total: a threshold would bias them.
So empty space is walked through, node by node; `check_leaves` refuses a plan under which that would take too long.
Cells are finer than leaves, so engines go on counting cells and nothing else. Proof: moments.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.counts import CellCounts
from spinney.counting.sorting import Counts
from spinney.errors import BudgetError, ParameterError
from spinney.grid.codes import Codes, Indices, bit_worths, byte_tables, count_bits, possible_nodes, split_axes
from spinney.grid.lattice import Lattice
from spinney.machine import each, n_threads, threads
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.noise.discrete import SMALLEST_RATE, add_noise, within_range
from spinney.privacy.noise.supnorm import MOST_AXES, sup_norm_noise
from spinney.progress import progress
from spinney.text import Sensitive
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.kdtree import pay
from spinney.tree.plan import SplitPlan

# Expected leaves of a table without rows above which a release is refused.
MAX_LEAVES = 2.0**22
# Offsets are counted in 1024ths of a half-edge: rounding moves a mean by less than a two-thousandth of it.
QUANTUM = 1024


@dataclass(frozen=True, slots=True, repr=False)
class Leaves(Sensitive):
    """Leaves of the tree in the order of making. `start` and `stop` are sensitive."""

    codes: Codes
    depths: Indices
    start: Indices
    stop: Indices


def check_leaves(plan: SplitPlan, lattice: Lattice) -> None:
    """Refuse, before anything is charged, a plan whose leaves could not all be released."""
    if lattice.n_axes >= MOST_AXES:
        raise ParameterError(
            f"moments=True takes up to {MOST_AXES - 1} columns, and there are {lattice.n_axes}; use moments=False"
        )
    if plan.count_rate / QUANTUM < SMALLEST_RATE:
        raise ParameterError(
            f"epsilon={plan.count_epsilon} for leaf counts and means asks for noise of a scale above 2^40; "
            "give a larger epsilon or a smaller tree_share"
        )
    expected = plan.expected_empty_leaves()
    if expected > MAX_LEAVES:
        raise BudgetError(
            f"this plan would make about {expected:.2g} leaves of empty space (limit {MAX_LEAVES:.2g}), and leaf "
            "moments release them all; use a smaller max_depth, or moments=False"
        )


def leaf_noise_std(plan: SplitPlan, lattice: Lattice) -> float:
    """Standard deviation of the noise on the count of a leaf that has several cells along every ordered axis."""
    n_measured = sum(axis.kind != "category" for axis in lattice.axes)
    return math.sqrt(sup_norm_noise(plan.count_rate / QUANTUM, n_measured + 1).variance()) / QUANTUM


def release_moments(counts: CellCounts, *, plan: SplitPlan, ledger: Ledger, entropy: Entropy) -> NoisyMoments:
    """Noisy counts and offset sums of all leaves of one tree. Charges `plan.epsilon` first."""
    lattice = counts.lattice
    if not plan.has_moments:
        raise ParameterError("the plan is of leaf counts alone; a plan with has_moments=True is charged as what it is")
    check_leaves(plan, lattice)
    pay(plan, lattice, ledger, entropy)  # [step 1] charge before noise

    leaves = grow_leaves(counts, plan, entropy)
    order = np.lexsort(leaves.codes.T[::-1])  # the order of making must not show
    leaves = Leaves(leaves.codes[order], leaves.depths[order], leaves.start[order], leaves.stop[order])
    first, size, is_measured = leaf_cells(leaves.codes, leaves.depths, lattice)
    rate = plan.count_rate / QUANTUM
    with threads(1) as pool:  # noise needs nothing but the leaves
        noise = pool.submit(_noise, is_measured, rate, entropy)
        steps = _true_steps(counts, leaves, first, size, is_measured)  # [step 4]
        noisy_steps = within_range(steps + noise.result())  # [step 5]
    return NoisyMoments(lattice, leaves.codes, leaves.depths, noisy_steps, QUANTUM, rate)


def grow_leaves(counts: CellCounts, plan: SplitPlan, entropy: Entropy) -> Leaves:
    """Split from the root down, empty nodes like all others; every node that may split draws its own noise."""
    lattice = counts.lattice
    codes = np.zeros((1, lattice.n_words), dtype=np.uint64)
    start, stop = np.array([0]), np.array([len(counts)])
    made: list[Leaves] = []
    for depth in progress(range(plan.max_depth + 1), "planting the tree", unit="level"):
        if depth < plan.fixed_depth:  # [step 2]
            splits = np.ones(len(codes), dtype=np.bool_)
        elif depth < plan.max_depth:  # [step 3]
            true_counts = counts.rows_between(start, stop)
            splits = add_noise(plan.score(true_counts, depth), plan.decision_rate, entropy) > plan.cutoff
        else:
            splits = np.zeros(len(codes), dtype=np.bool_)
        is_leaf = ~splits
        depths = np.full(int(is_leaf.sum()), depth, dtype=np.int64)
        made.append(Leaves(codes[is_leaf], depths, start[is_leaf], stop[is_leaf]))
        codes, start, stop = _children(counts, codes[splits], start[splits], stop[splits], depth)
        if not len(codes):
            break
    return Leaves(*(np.concatenate([getattr(part, name) for part in made]) for name in Leaves.__slots__))


def _children(
    counts: CellCounts, codes: Codes, start: Indices, stop: Indices, depth: int
) -> tuple[Codes, Indices, Indices]:
    """Both halves of every node, those left out that no row can reach: that much is public."""
    if not len(codes):
        return codes, start, stop
    middle = counts.halves(start, stop, depth)
    word, offset = divmod(depth, 64)
    upper = codes.copy()
    upper[:, word] |= np.uint64(1 << (63 - offset))
    both = np.concatenate([codes, upper])
    starts, stops = np.concatenate([start, middle]), np.concatenate([middle, stop])
    is_possible = possible_nodes(both, np.full(len(both), depth + 1, dtype=np.int64), counts.lattice)
    return both[is_possible], starts[is_possible], stops[is_possible]


def _true_steps(
    counts: CellCounts, leaves: Leaves, first: Indices, size: Indices, is_measured: NDArray[np.bool_]
) -> Indices:
    """Count and offset sums of every leaf in steps of 1 / QUANTUM: (n_leaves, 1 + n_axes). SENSITIVE."""
    lattice = counts.lattice
    steps = np.zeros((len(leaves.depths), 1 + lattice.n_axes), dtype=np.int64)
    tables = byte_tables(lattice)
    bit_axes = split_axes(lattice)
    bit_cells = bit_worths(lattice)
    # Without counts, every code is a row.
    true_counts = np.empty(0, dtype=np.int32) if counts.true_counts is None else counts.true_counts

    def add_up(part: slice) -> None:
        _sum_offsets(
            counts.true_codes,
            true_counts,
            leaves.start[part],
            leaves.stop[part],
            first[part],
            size[part],
            is_measured[part],
            tables,
            bit_axes,
            bit_cells,
            steps[part],
        )

    # Parts of about as many codes each, more than threads: some threads have other things to do.
    bounds = np.searchsorted(leaves.stop, np.linspace(0, len(counts), 8 * n_threads() + 1)[1:-1])
    each(add_up, [slice(low, high) for low, high in pairwise([0, *bounds.tolist(), len(leaves.stop)])])
    return steps


@compiled
def _sum_offsets(
    codes: Codes,
    counts: Counts,
    start: Indices,
    stop: Indices,
    first: Indices,
    size: Indices,
    is_measured: NDArray[np.bool_],
    tables: NDArray[np.int64],
    bit_axes: Indices,
    bit_cells: Indices,
    steps: Indices,
) -> None:
    n_axes = first.shape[1]
    cells = np.empty(n_axes, dtype=np.int64)
    scale = np.empty(n_axes)
    for leaf in range(start.size):
        low, high = start[leaf], stop[leaf]
        here = counts[low:high] if counts.size else counts
        if codes.shape[1] == 1 and _is_even(first[leaf], size[leaf], is_measured[leaf]):
            _sum_by_bits(
                codes[low:high, 0], here, size[leaf], is_measured[leaf], tables, bit_axes, bit_cells, steps[leaf]
            )
            continue
        for axis in range(n_axes):
            scale[axis] = QUANTUM / size[leaf, axis]
        for i in range(high - low):
            n_rows = np.int64(here[i]) if here.size else np.int64(1)
            _find_cells(codes[low + i], tables, cells)
            steps[leaf, 0] += QUANTUM * n_rows
            for axis in range(n_axes):
                if is_measured[leaf, axis]:
                    # The centre of the cell. Cut, so that even an engine that miscounts cells cannot cost privacy.
                    offset = np.rint(scale[axis] * (2 * (cells[axis] - first[leaf, axis]) + 1)) - QUANTUM
                    steps[leaf, 1 + axis] += n_rows * np.int64(min(max(offset, -QUANTUM), QUANTUM))


@compiled
def _find_cells(code: NDArray[np.uint64], tables: NDArray[np.int64], cells: Indices) -> None:
    cells[:] = 0
    for byte in range(tables.shape[0]):
        value = np.int64(code[byte >> 3] >> np.uint64(56 - 8 * (byte & 7)) & np.uint64(255))
        for axis in range(cells.size):
            cells[axis] += tables[byte, value, axis]


@compiled
def _is_even(first: Indices, size: Indices, is_measured: NDArray[np.bool_]) -> bool:
    """Whether a leaf has 2, 4, ... QUANTUM cells along every measured axis, and begins at a multiple of that."""
    for axis in range(first.size):
        if is_measured[axis]:
            n_cells = size[axis]
            if n_cells > QUANTUM or n_cells & (n_cells - 1) or first[axis] & (n_cells - 1):
                return False
    return True


@compiled
def _sum_by_bits(
    codes: NDArray[np.uint64],
    counts: Counts,
    size: Indices,
    is_measured: NDArray[np.bool_],
    tables: NDArray[np.int64],
    bit_axes: Indices,
    bit_cells: Indices,
    steps: Indices,
) -> None:
    """The same sums where no offset is rounded: a place j of s cells has the offset (2j+1)·QUANTUM/s - QUANTUM.

    So all that is needed are the sums of j, and these follow from how often each bit of a code is set, which takes
    a few operations a word. Cells of several rows are added once there, and again for the rest of their rows.
    """
    n_axes = size.size
    sums = np.zeros(n_axes, dtype=np.int64)
    n_rows = np.int64(codes.size)
    if counts.size:
        cells = np.empty(n_axes, dtype=np.int64)
        for i in range(counts.size):
            if counts[i] > 1:
                n_rows += counts[i] - 1
                _find_cells(codes[i : i + 1], tables, cells)
                for axis in range(n_axes):
                    sums[axis] += (counts[i] - 1) * (cells[axis] & (size[axis] - 1))
    n_set = count_bits(codes)
    for bit in range(bit_axes.size):
        axis = bit_axes[bit]
        if bit_cells[bit] < size[axis]:
            sums[axis] += bit_cells[bit] * n_set[63 - bit]
    steps[0] += QUANTUM * n_rows
    for axis in range(n_axes):
        if is_measured[axis]:
            steps[1 + axis] += (2 * sums[axis] + n_rows) * (QUANTUM // size[axis]) - QUANTUM * n_rows


def _noise(is_measured: NDArray[np.bool_], rate: Fraction, entropy: Entropy) -> Indices:
    """One vector of noise for every leaf, as long as the leaf has measured axes, and one more for its count."""
    noise = np.zeros((len(is_measured), 1 + is_measured.shape[1]), dtype=np.int64)
    n_measured = is_measured.sum(axis=1)
    for n in np.unique(n_measured):
        chosen = np.flatnonzero(n_measured == n)
        drawn = sup_norm_noise(rate, int(n) + 1).draw(len(chosen), entropy)
        if n == is_measured.shape[1]:
            noise[chosen] = drawn
            continue
        noise[chosen, 0] = drawn[:, 0]
        rows, axes = np.nonzero(is_measured[chosen])
        noise[chosen[rows], axes + 1] = drawn[:, 1:].reshape(-1)
    return noise
