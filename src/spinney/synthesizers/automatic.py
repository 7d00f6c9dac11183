"""Automatic values: functions of public quantities only, each with the result or the trial that it rests on."""

from __future__ import annotations

import math
from fractions import Fraction

from spinney.privacy.budget import Unit
from spinney.schema.lattice import Lattice

# The lemma's delta: chance that any empty bin of the paper's tree is split.
_LEMMA_DELTA = 0.01


def paper_cutoff(n_rows: int, fixed_depth: int, max_depth: int, epsilon: Fraction, unit: Unit) -> int:
    """tau of the paper's lemma: factor (H - h) / epsilon' * log((2^h + n (H - h)) / delta).

    Under replace-one the factor is the paper's 2. Above tau no empty bin splits, with probability 1 - delta.
    """
    levels = max_depth - fixed_depth
    if levels == 0:
        return 0
    n_empty = 2.0**fixed_depth + n_rows * levels
    return math.ceil(unit.factor * levels / float(epsilon) * math.log(n_empty / _LEMMA_DELTA))


def filtering_threshold(depth: int, epsilon: Fraction) -> int:
    """t of the paper's second theorem: 8 / epsilon * log(1/delta) with delta = 1 / number of bins."""
    return max(1, math.ceil(8 / float(epsilon) * depth * math.log(2)))


def quiet_threshold(depth: int, epsilon: Fraction, unit: Unit) -> int:
    """The smallest t at which 2^depth empty bins are expected to release at most one: P(noise >= t) <= 2^-depth."""
    rate = float(epsilon / unit.factor)
    return max(1, math.ceil((depth * math.log(2) - math.log1p(math.exp(-rate))) / rate))


def paper_depths(lattice: Lattice, n_rows: int, epsilon: Fraction) -> tuple[int, int]:
    """h and H."""
    h = min(lattice.depth, max(0, round(math.log2(max(1.0, n_rows * float(epsilon) / 100)))))
    return h, min(lattice.depth, h + 2 * lattice.n_axes)


def privtree_depths(lattice: Lattice) -> tuple[int, int]:
    """No fixed levels, and down to single cells: PrivTree needs neither."""
    return 0, lattice.depth


def grid_bins(n_columns: int, n_rows: int, epsilon: Fraction) -> int:
    """Bins per column: (n epsilon / 10)^(1/2) in two dimensions (Qardaji et al. 2013), fewer per column in more."""
    return max(1, round(max(1.0, n_rows * float(epsilon) / 10) ** (1 / max(2, n_columns))))


def grid_threshold(lattice: Lattice, n_rows: int, epsilon: Fraction, unit: Unit) -> int:
    """1 (keep every positive count) where bins hold enough rows for the first theorem, else quiet empty bins."""
    n_bins = math.prod(axis.n_possible for axis in lattice.axes)
    if n_bins < n_rows * float(epsilon) / 4:
        return 1
    return quiet_threshold(math.ceil(math.log2(n_bins)), epsilon, unit)
