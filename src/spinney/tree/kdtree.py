"""The tree release: the paper's Algorithms 2-3, the PrivTree rule, and the grid as the tree without decisions.

A node is a range of positions in the codes (`CellCounts`). The frontier
goes down level by level, all nodes of one depth at once, so noise is drawn in blocks. The empty child of a
split node becomes the root of an empty subtree and is settled by `empty.EmptySpace`. Proof: kdtree.proof.md;
the labels [step 1] ... are its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError, ParameterError
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.noise.discrete import add_noise
from spinney.progress import progress
from spinney.schema.lattice import Lattice
from spinney.schema.zorder import Codes, Indices
from spinney.tree.bins import NoisyBins
from spinney.tree.empty import EmptySpace
from spinney.tree.plan import SplitPlan, what_is_counted

# Expected bins out of empty space above which a release is refused: 2^25 bins are about 1 GB of work space.
MAX_EMPTY_BINS = 2.0**25


@dataclass(slots=True)
class _Growth:
    """Sensitive intermediate state: true leaves and the roots of empty subtrees."""

    leaf_codes: list[Codes] = field(default_factory=list)
    leaf_depths: list[NDArray[np.int64]] = field(default_factory=list)
    leaf_counts: list[NDArray[np.int64]] = field(default_factory=list)
    empty_roots: dict[int, Codes] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "_Growth(sensitive)"


def check_size(plan: SplitPlan) -> None:
    """Refuse, before anything is charged, a plan whose empty space alone would overflow memory."""
    expected = plan.expected_empty_bins()
    if expected > MAX_EMPTY_BINS:
        raise BudgetError(
            f"this plan would release about {expected:.2g} empty bins (limit {MAX_EMPTY_BINS:.2g}); "
            "raise the threshold or epsilon, or use fewer bins or levels"
        )


def pay(plan: SplitPlan, lattice: Lattice, ledger: Ledger, entropy: Entropy, bounds_of: str | None = None) -> None:
    """Charge all that a plan costs, and brand noise that is not private. Raises, with nothing charged, if it cannot."""
    if plan.max_depth > lattice.depth:
        raise ParameterError(f"max_depth={plan.max_depth} is beyond the lattice's depth of {lattice.depth}")
    ledger.require(plan.epsilon, unit=plan.unit)
    ledger.charge(*plan.charges(bounds_of))
    brand_unless_system(ledger, entropy, what_is_counted(bounds_of))


def release_tree(
    counts: CellCounts, *, plan: SplitPlan, ledger: Ledger, entropy: Entropy, bounds_of: str | None = None
) -> NoisyBins:
    """Noisy bins of one tree. Charges `plan.epsilon` to the ledger before noise meets a count.

    `bounds_of` names the column whose magnitudes are counted, where it is not the table's cells.
    """
    check_size(plan)
    pay(plan, counts.lattice, ledger, entropy, bounds_of)  # [step 1] charge before noise

    growth = _grow(counts, plan, entropy)
    empty_codes, empty_depths, empty_counts = EmptySpace(plan, counts.lattice).release(growth.empty_roots, entropy)

    codes = np.concatenate([*growth.leaf_codes, empty_codes])
    depths = np.concatenate([*growth.leaf_depths, empty_depths])
    noisy_leaves = add_noise(np.concatenate(growth.leaf_counts), plan.count_rate, entropy)  # [step 4]
    noisy_counts = np.concatenate([noisy_leaves, empty_counts])
    passes = noisy_counts >= plan.threshold  # [step 5]
    return NoisyBins.in_order(counts.lattice, codes[passes], depths[passes], noisy_counts[passes])


def _grow(counts: CellCounts, plan: SplitPlan, entropy: Entropy) -> _Growth:
    """Split from the root down; every node that may split draws its own noise."""
    codes = counts.true_codes
    nothing = np.zeros(0, dtype=np.int64)
    growth = _Growth(leaf_codes=[codes[:0]], leaf_depths=[nothing], leaf_counts=[nothing])
    if not len(codes):
        growth.empty_roots[0] = np.zeros((1, codes.shape[1]), dtype=np.uint64)
        return growth

    start, stop = np.array([0]), np.array([len(codes)])
    for depth in progress(range(plan.max_depth + 1), "planting the tree", unit="level"):
        true_counts = counts.rows_between(start, stop)
        if depth < plan.fixed_depth:  # [step 2] data-independent levels
            splits = np.ones(len(start), dtype=np.bool_)
        elif depth < plan.max_depth:  # [step 3] noisy decisions
            splits = add_noise(plan.score(true_counts, depth), plan.decision_rate, entropy) > plan.cutoff
        else:
            splits = np.zeros(len(start), dtype=np.bool_)
        is_leaf = ~splits
        growth.leaf_codes.append(prefixes(codes, start[is_leaf], depth))
        growth.leaf_depths.append(np.full(int(is_leaf.sum()), depth, dtype=np.int64))
        growth.leaf_counts.append(true_counts[is_leaf])
        start, stop, empty = _split(counts, start[splits], stop[splits], depth)
        if len(empty):
            growth.empty_roots[depth + 1] = empty
        if not len(start):
            break
    return growth


def prefixes(codes: Codes, positions: Indices, depth: int) -> Codes:
    """The nodes of `depth` that hold the codes at these positions."""
    masks = np.zeros(codes.shape[1], dtype=np.uint64)
    full, rest = divmod(depth, 64)
    masks[:full] = np.uint64(2**64 - 1)
    if rest:
        masks[full] = np.uint64((2**rest - 1) << (64 - rest))
    return codes[positions] & masks


def _split(counts: CellCounts, start: Indices, stop: Indices, depth: int) -> tuple[Indices, Indices, Codes]:
    """Occupied children of the given nodes as ranges, and their empty children as codes."""
    codes = counts.true_codes
    if not len(start):
        return start, stop, codes[:0]
    middle = counts.halves(start, stop, depth)
    has_left, has_right = middle > start, middle < stop
    # An empty child is the occupied child's code with the last bit turned.
    empty = prefixes(codes, start[~(has_left & has_right)], depth + 1)
    word, offset = divmod(depth, 64)
    empty[:, word] ^= np.uint64(1 << (63 - offset))
    child_start = np.stack([start, middle], axis=1)[np.stack([has_left, has_right], axis=1)]
    child_stop = np.stack([middle, stop], axis=1)[np.stack([has_left, has_right], axis=1)]
    return child_start, child_stop, empty
