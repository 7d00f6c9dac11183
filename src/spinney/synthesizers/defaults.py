"""Automatic values: functions of public quantities only.

Cutoff and threshold of the paper's rule are the paper's own. The others were chosen once on Balog et al.'s mixtures in
2 and 5 dimensions (100,000 rows, epsilon 0.01 to 10) and are kept simple; none of them looks at the table.
`python -m benchmarks utility` shows what they are worth there.
"""

from __future__ import annotations

import math
from fractions import Fraction

from spinney.privacy.budget import Unit
from spinney.schema.lattice import Lattice

# The lemma's delta: chance that any empty bin of the paper's tree is split.
_LEMMA_DELTA = 0.01


def grid_bins(n_columns: int, n_rows: int, epsilon: Fraction) -> int:
    """Bins per column: 3.6 (n epsilon)^(1/2d), capped so that there are at most (n epsilon)^1.5 bins in all."""
    return max(2, round(2 ** (_grid_bits(n_columns, n_rows, epsilon) / n_columns)))


def _grid_bits(n_columns: int, n_rows: int, epsilon: Fraction) -> float:
    """Base-2 logarithm of the number of bins that a table of this size and budget can fill."""
    log_size = math.log2(max(2.0, n_rows * float(epsilon)))
    return min(n_columns * math.log2(3.6) + log_size / 2, 1.5 * log_size)


def grid_threshold(lattice: Lattice, epsilon: Fraction, unit: Unit) -> int:
    """Quiet empty bins: of all bins, were they all empty, one is expected to be released."""
    return quiet_threshold(math.log2(math.prod(axis.n_possible for axis in lattice.axes)), epsilon, unit)


def quiet_threshold(log_bins: float, epsilon: Fraction, unit: Unit) -> int:
    """The smallest t with P(noise >= t) <= 2^-log_bins, from P(noise >= t) = a^t / (1 + a)."""
    rate = float(epsilon / unit.factor)
    return max(1, math.ceil((log_bins * math.log(2) - math.log1p(math.exp(-rate))) / rate))


def paper_depths(lattice: Lattice, n_rows: int, epsilon: Fraction) -> tuple[int, int]:
    """The paper's h and h': a quarter as many fixed bins as the grid would have, then two more cuts of every axis."""
    fixed = max(0, round(_grid_bits(lattice.n_axes, n_rows, epsilon)) - 2)
    return min(fixed, lattice.depth), min(fixed + 2 * lattice.n_axes, lattice.depth)


def paper_cutoff(n_rows: int, fixed_depth: int, max_depth: int, epsilon: Fraction, unit: Unit) -> int:
    """The lemma's tau, rounded up. Without noisy levels there is nothing to decide, and no epsilon for it."""
    if max_depth == fixed_depth:
        return 0
    levels = max_depth - fixed_depth
    return math.ceil(lemma_cutoff(n_rows, fixed_depth, levels, float(epsilon), _LEMMA_DELTA, unit.factor))


def lemma_cutoff(n_rows: int, fixed_depth: int, levels: int, epsilon: float, delta: float, factor: int) -> float:
    """The cutoff tau above which, with probability 1 - delta, no empty node of the paper's tree splits. Lemma 10.

    tau = factor (h' - h) / epsilon' · log((2^h + n (h' - h)) / delta).
    """
    log_n_empty = math.log(2**fixed_depth + n_rows * levels)
    return factor * levels / epsilon * (log_n_empty - math.log(delta))


def paper_threshold(fixed_depth: int, epsilon: Fraction) -> int:
    """The paper's t, 8 / epsilon'' * log(1/delta) with delta = 2^-h, in both units as printed for replace-one."""
    return max(1, math.ceil(theorem_threshold(fixed_depth, float(epsilon), Unit.REPLACE_ONE.factor)))


def theorem_threshold(fixed_depth: int, epsilon: float, factor: int) -> float:
    """Theorem 5's threshold for the 2^h bins of the fixed levels, J = 1/delta = 2^h: 4 factor/epsilon'' · h log 2."""
    return 4 * factor / epsilon * fixed_depth * math.log(2)


def privtree_depths(lattice: Lattice) -> tuple[int, int]:
    """No fixed levels, and down to single cells: PrivTree needs neither."""
    return 0, lattice.depth


def moments_depths(lattice: Lattice, n_rows: int, epsilon: Fraction) -> tuple[int, int]:
    """Fixed levels that halve every axis alike, four or more in all, fewer where there is less to tell; none below."""
    n_axes = lattice.n_axes
    log_size = math.log2(max(1.0, n_rows * float(epsilon)))
    fixed = max(0, min(n_axes * math.ceil(4 / n_axes), round(log_size / 2)))
    return min(fixed, lattice.depth), lattice.depth


def moments_share(n_rows: int, epsilon: Fraction) -> Fraction:
    """The part of epsilon for the shape of the tree: a tenth, or a fifth where there is little to tell at all."""
    return Fraction(1, 5) if n_rows * epsilon < 4000 else Fraction(1, 10)


def moments_decay(n_columns: int) -> Fraction:
    """How much stronger than PrivTree's the bias against splitting is: 4 / d, at least 1.

    A leaf with a mean says more than a leaf without, so leaves may be larger; the more so the fewer its neighbours.
    """
    return max(Fraction(1), Fraction(4, n_columns))


def privtree_threshold(fixed_depth: int, epsilon: Fraction, unit: Unit) -> int:
    """Twice the scale of the leaf noise, or more where fixed levels make many empty bins."""
    return max(math.ceil(2 * unit.factor / epsilon), quiet_threshold(fixed_depth, epsilon, unit))
