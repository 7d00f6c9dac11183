"""Algorithm 1: every cell of a fixed grid gets discrete Laplace noise, and cells below the threshold go.

A grid is the tree that splits everywhere and decides nothing, so the release is the tree's; only the plan
differs. Cells without rows are never enumerated, however many there are. Proof: grid.proof.md.
"""

from __future__ import annotations

from fractions import Fraction

from spinney.counting.counts import CellCounts
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.tree.bins import NoisyBins
from spinney.tree.kdtree import release_tree
from spinney.tree.plan import grid_plan


def release_grid(
    counts: CellCounts,
    *,
    epsilon: Fraction,
    threshold: int,
    ledger: Ledger,
    entropy: Entropy,
    bounds_of: str | None = None,
) -> NoisyBins:
    """Noisy counts of the lattice's cells, where at least `threshold`. Charges `epsilon` before noise meets a count."""
    # [step 1]
    plan = grid_plan(unit=ledger.unit, depth=counts.lattice.depth, epsilon=epsilon, threshold=threshold)
    # [step 2]
    return release_tree(counts, plan=plan, ledger=ledger, entropy=entropy, bounds_of=bounds_of)
