"""Many independent copies of a small release out of one call of the real mechanism.

Put n Boolean columns before the columns of a small table and split on them without asking (they are fixed
levels). Each of the 2^n subtrees below is then a copy of the small tree with noise of its own, and one release
gives 2^n samples of its law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.grid.lattice import Lattice, tree_lattice
from spinney.privacy.entropy import UnsafeSeededEntropy, Words
from spinney.privacy.ledger import Ledger
from spinney.tree.bins import NoisyBins
from spinney.tree.kdtree import release_tree
from spinney.tree.plan import SplitPlan
from support.goodness_of_fit import p_value
from support.output_laws import ReleaseLaw, as_bins
from support.slow_trees import Bins, possible_mask

Release = Callable[..., NoisyBins]


class ScriptedEntropy:
    """Words from a list, in order; asking for more than there are is an error."""

    is_unsafe = True

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def words(self, n: int) -> Words:
        if n > len(self.left):
            raise AssertionError(f"the script ends: {n} words wanted, {len(self.left)} left")
        given, self.left = self.left[:n], self.left[n:]
        return np.array(given, dtype=np.uint32)


def line_of(depth: int) -> dict[str, sp.Integer]:
    """Columns of a one-dimensional small table whose cells are all possible."""
    return {"x": sp.Integer(0, 2**depth - 1, bits=depth)}


def lattice_of(columns: Mapping[str, Any], n_bits: int = 0) -> Lattice:
    """The lattice of a small table below `n_bits` Boolean columns."""
    return tree_lattice(sp.Schema({f"copy{i}": sp.Boolean() for i in range(n_bits)} | dict(columns)))


def counts_of(lattice: Lattice, tables: Sequence[Sequence[int]], depth: int) -> CellCounts:
    """True counts on a lattice of one word: the tables laid end to end, each given by its nodes at `depth`."""
    flat = np.concatenate([np.asarray(table, dtype=np.int64) for table in tables])
    occupied = np.flatnonzero(flat)
    codes = occupied.astype(np.uint64)[:, None] << np.uint64(64 - depth)
    return CellCounts(lattice, codes, flat[occupied])


def release_copies(
    tables: Sequence[Sequence[int]],
    plan: SplitPlan,
    columns: Mapping[str, Any],
    *,
    seed: int,
    release: Release = release_tree,
) -> Bins:
    """Table i is released as copy i; there must be 2^n of them, each over the nodes at the plan's max_depth."""
    n_bits = len(tables).bit_length() - 1
    lattice = lattice_of(columns, n_bits)
    deeper = replace(plan, fixed_depth=plan.fixed_depth + n_bits, max_depth=plan.max_depth + n_bits)
    counts = counts_of(lattice, tables, deeper.max_depth)
    bins = release(counts, plan=deeper, ledger=Ledger(unit=plan.unit), entropy=UnsafeSeededEntropy(seed))
    return split_copies(bins, n_bits)


def law_p_value(
    plan: SplitPlan,
    columns: Mapping[str, Any],
    patterns: Sequence[tuple[int, ...]],
    *,
    seed: int,
    cap: int = 3,
    n_bits: int = 14,
    release: Release = release_tree,
    law_plan: SplitPlan | None = None,
) -> float:
    """The least p-value, over small tables, of the mechanism's outputs against the exact law.

    The first quarter of the copies is left without rows, so that empty space also begins high above the copies;
    the patterns take turns in the rest. `law_plan` compares with the law of another plan, which ought to be
    rejected.
    """
    n_copies = 2**n_bits
    empty = (0,) * 2**plan.max_depth
    turns = [(i % len(patterns)) for i in range(n_copies)]
    laid = [empty if i < n_copies // 4 else patterns[turn] for i, turn in enumerate(turns)]
    bins = release_copies(laid, plan, columns, seed=seed, release=release)
    law = ReleaseLaw(law_plan or plan, possible_mask(lattice_of(columns), plan.max_depth))
    largest = plan.threshold + cap - 1
    least = 1.0
    for pattern in {*patterns, empty}:
        own = np.array([i for i, table in enumerate(laid) if table == pattern])
        position = np.full(n_copies, -1)
        position[own] = np.arange(len(own))
        kept = position[bins.copy] >= 0
        part = Bins(position[bins.copy[kept]], bins.depth[kept], bins.prefix[kept], bins.noisy_count[kept])
        shown = law.plan.threshold + cap - 1
        chances = {as_bins(output): chance for output, chance in law.distribution(pattern, cap=cap).items()}
        least = min(least, p_value(part.outcomes(len(own), largest=max(largest, shown)), chances))
    return least


def split_copies(bins: NoisyBins, n_bits: int) -> Bins:
    """Which copy each bin belongs to, and where in it."""
    codes = bins.codes[:, 0]
    copy = (codes >> np.uint64(64 - n_bits)).astype(np.int64) if n_bits else np.zeros(len(codes), dtype=np.int64)
    below = codes << np.uint64(n_bits)
    depth = bins.depths - n_bits
    # A shift by 64 is undefined for words, so the prefix of a root is set apart.
    shift = np.where(depth > 0, 64 - depth, 63).astype(np.uint64)
    prefix: NDArray[np.int64] = np.where(depth > 0, below >> shift, 0).astype(np.int64)
    return Bins(copy, depth, prefix, bins.noisy_counts)
