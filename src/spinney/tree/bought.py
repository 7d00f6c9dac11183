"""Numbers that are bought beside a tree: bounds, sums, row counts, utility. SENSITIVE up to the noise.

Every part charges the ledger first and then counts; each is a mechanism of its own with a proof beside it.

    private bounds      private bounds of a column, from noisy counts of powers of two       grid.proof.md
    bought answers      one bought answer: a count, a proportion or a mean                   direct.proof.md
    bought row count    the number of rows where the unit of privacy makes it private        row_count.proof.md
    utility figures     distances of a release from the table                                utility.proof.md
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded
from spinney.counting.counts import CellCounts
from spinney.errors import BudgetError, ParameterError
from spinney.grid.codes import deinterleave
from spinney.grid.lattice import Axis, Lattice, ladder_axis
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy, UnsafeSeededEntropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge, DiscreteLaplaceCounts, LeafMoments
from spinney.privacy.noise.discrete import SMALLEST_RATE, add_noise, within_range
from spinney.privacy.noise.supnorm import sup_norm_noise
from spinney.release.card import RowCount
from spinney.release.utility import figure_reach
from spinney.tree.kdtree import release_grid

# ------------------------------------------------------------------------------------------------------- private bounds
# Private bounds: a noisy estimate of the powers of two between which the values lie, charged to the ledger.
#
# The ladder of magnitudes (both signs, zero between) is fixed and public, so counting values per rung and releasing
# the counts as a grid is Algorithm 1 once more, and its proof is the grid's. The bounds are the ends of the outermost
# rungs whose noisy counts pass a threshold that no empty rung passes except with the stated chance: post-processing.


# Chance that any empty rung of one ladder passes: the price of a bound that is too generous, not of privacy.
_FALSE_ALARM = 1e-3


def ladder_lattice(name: str, column: Bounded) -> Lattice:
    """The one-column lattice on which bounds are counted."""
    smallest, largest = column._rungs
    return Lattice((ladder_axis(name, nullable=column.nullable, smallest=smallest, largest=largest),))


def widest_bounds(column: Bounded) -> tuple[object, object]:
    """The most generous bounds that a ladder can give. They are public: a plan is tried on them before paying."""
    axis = ladder_lattice("", column).axes[0]
    return _logical_bounds(column, axis, axis.first, axis.last)


def ladder_threshold(lattice: Lattice, epsilon: Fraction, unit: Unit) -> int:
    """The smallest t with (number of rungs) * P(noise >= t) at most the false-alarm chance."""
    rate = float(epsilon / unit.factor)
    return max(1, math.ceil(math.log(lattice.axes[0].n_possible / _FALSE_ALARM) / rate))


def release_bounds(
    counts: CellCounts, column: Bounded, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> tuple[object, object]:
    """Logical bounds (low, high) of one column, from rung counts. Charges `epsilon` first."""
    lattice = counts.lattice
    axis = lattice.axes[0]
    threshold = ladder_threshold(lattice, epsilon, ledger.unit)
    bins = release_grid(
        counts, epsilon=epsilon, threshold=threshold, ledger=ledger, entropy=entropy, bounds_of=axis.name
    )
    first, _ = deinterleave(bins.codes, bins.depths, lattice)
    rungs = [int(cell) for cell in first[:, 0] if axis.first <= cell <= axis.last]
    if not rungs:
        raise BudgetError(
            f"column {axis.name!r}: no magnitude stood out from the noise, so no private bounds were found "
            f"(epsilon={epsilon} is spent); state the bounds, or raise bounds_share"
        )
    return _logical_bounds(column, axis, min(rungs), max(rungs))


def _logical_bounds(column: Bounded, axis: Axis, lowest: int, highest: int) -> tuple[object, object]:
    """The outer edges of two rungs in the column's own terms; the outermost rungs end at twice their magnitude."""
    low = axis.edges[lowest - 1] if lowest > 0 else 2 * axis.edges[0]
    high = axis.edges[highest] if highest < len(axis.edges) else 2 * axis.edges[-1]
    return column._from_rungs(low, high)


# ------------------------------------------------------------------------------------------------------- bought answers
# A bought answer: one or two sums over the rows of a table, with exact noise, charged to the ledger.
#
#     count           how many rows meet conditions                         one number; a row changes it by 1
#     proportion      rows that meet them, and rows among which             two numbers; a row changes each by 1 at most
#     mean            how many rows, and the sum of a column on a public    two numbers, in steps that a row changes
#                     grid of whole steps                                   by the same at most
#
# One number takes discrete Laplace noise, two take sup-norm noise, which costs what the larger of them alone would.
# Intervals follow from the noise law and nothing else, so they hold whatever the rows are. The table is counted after
# the charge. Proof: direct.proof.md; the labels [step 1] ... are its steps.


# Simulated noises behind an interval of a ratio, at least; more where the level asks for them.
_FEWEST_NOISES = 1_999
_MOST_NOISES = 1_000_000
_HALVINGS = 80


@dataclass(frozen=True, slots=True)
class Direct:
    """What is going to be bought, all of it public.

    Args:
        n_sums: 1 or 2.
        reach: by how much one row changes any of the sums at most, in their whole steps.
        unit_steps: the steps that are one row of the first sum; what an event states its sensitivity in.
        note: what the ledger says of it.
    """

    n_sums: int
    reach: int
    unit_steps: int
    note: str

    def rate(self, epsilon: Fraction) -> Fraction:
        return epsilon / self.reach

    def charge(self, epsilon: Fraction) -> Charge:
        if self.n_sums == 1:
            return DiscreteLaplaceCounts(epsilon, self.reach, self.note, stage="answer", times=1)
        return LeafMoments(epsilon, self.reach // self.unit_steps, self.note, stage="answer")


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Sums with noise, in steps, and the rate of the noise per step. RELEASED."""

    noisy: tuple[int, ...]
    rate: Fraction

    def half_width(self, level: float) -> int:
        """The least t with P(|noise| > t) at most 1 - level, of a single sum: 2 a^(t+1) / (1 + a), a = exp(-rate)."""
        rate = float(self.rate)
        miss = math.log((1 - level) * (1 + math.exp(-rate)) / 2) * (1 + 1e-12)  # rounded towards a wider interval
        return max(0, math.ceil(-miss / rate) - 1)

    def ratio(self, level: float, *, low: float, high: float) -> tuple[float, float, float]:
        """The second sum over the first, and an interval that holds with probability `level` where it is in low..high.

        All ratios r for which |second - r first| is no larger than most of its noise can be [step 4]; the whole range
        where the first sum does not stand out from its noise.
        """
        first, second = self.noisy
        noises = self._simulated(level)
        rank = math.ceil(level * (len(noises) + 1)) - 1

        def excess(ratio: float) -> float:
            reach = np.partition(np.abs(noises[:, 1] - ratio * noises[:, 0]), rank)[rank]
            return abs(second - ratio * first) - float(reach)

        steepest = float(np.abs(noises[:, 0]).max())
        middle = min(max(second / first, low), high) if first > 0 else (low + high) / 2
        if first <= steepest:
            return middle, low, high
        ends = []
        for way in (-1.0, 1.0):
            near = second / first
            # |second - r first| outgrows the largest noise there, by more than rounding.
            far = near + way * (2 * (1 + abs(near)) * float(np.abs(noises).max()) + 1) / (first - steepest)
            for _ in range(_HALVINGS):
                half = (near + far) / 2
                near, far = (half, far) if excess(half) <= 0 else (near, half)
            ends.append(min(max(far, low), high))
        return middle, ends[0], ends[1]

    def _simulated(self, level: float) -> NDArray[np.float64]:
        """Fresh noises of the same law, repeatable from the released numbers: (n, 2)."""
        text = repr((self.noisy, self.rate)).encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        drawn = sup_norm_noise(self.rate, 2).draw(_n_noises(level), UnsafeSeededEntropy(seed))
        return drawn.astype(np.float64)


def _n_noises(level: float) -> int:
    return max(_FEWEST_NOISES, math.ceil(20 / (1 - level)))


def check_direct(direct: Direct, epsilon: Fraction, level: float) -> None:
    """Refuse, before anything is charged, noise that does not fit into whole numbers, and a level that is too high."""
    if direct.n_sums > 1 and _n_noises(level) > _MOST_NOISES:
        raise ParameterError(f"level={level} is too near 1 for a bought ratio; ask for at most 0.9999")
    if direct.rate(epsilon) < SMALLEST_RATE:
        raise ParameterError(f"epsilon={epsilon} asks for noise of a scale above 2^40; pay more for the answer")


def release_sums(
    count: Callable[[], Sequence[int]], *, direct: Direct, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> NoisySums:
    """Sums of a table with noise. Charges `epsilon` first, then has them counted."""
    ledger.charge(direct.charge(epsilon))  # [step 1] charge before counting
    brand_unless_system(ledger, entropy, "answer")
    true_sums = np.array(count(), dtype=np.int64)  # [step 2]
    assert true_sums.shape == (direct.n_sums,)
    rate = direct.rate(epsilon)
    noise = sup_norm_noise(rate, direct.n_sums).draw(1, entropy)[0]
    noisy = within_range(true_sums + noise)  # [step 3]
    return NoisySums(tuple(int(number) for number in noisy), rate)


# ----------------------------------------------------------------------------------------------------- bought row count
# A bought row count: how many rows a table has, with noise, charged to the ledger.
#
# Under add-remove the number of rows is private, and nearly every automatic value follows from it. So a small part of
# epsilon buys a noisy count before a plan is made, and the plan may depend on it: the count is one number that a row
# changes by one. Proof: row_count.proof.md; the labels [step 1] ... are its steps.


def release_rows(true_rows: int, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> RowCount:
    """The number of rows with discrete Laplace noise. Charges `epsilon` first, and needs a unit that adds or removes.

    A row in place of another leaves the number as it is, so under replace-one there is nothing to buy.
    """
    assert not ledger.unit.n_is_public
    sensitivity = ledger.unit.factor
    who = "persons" if ledger.unit.is_person else "rows"
    charge = DiscreteLaplaceCounts(epsilon, sensitivity, f"{who}: how many there are", stage="rows", times=1)
    ledger.charge(charge)  # [step 1] charge before noise
    brand_unless_system(ledger, entropy, "rows")
    rate = epsilon / sensitivity
    noisy = add_noise(np.array([true_rows], dtype=np.int64), rate, entropy)  # [step 2]
    return RowCount(int(noisy[0]), rate)


# ------------------------------------------------------------------------------------------------------ utility figures
# Figures of utility with noise: how far a release is from the table, as whole numbers that a row moves by few
# steps.
#
#     [step 1]  charge, first of all
#     [step 2]  the release is made, and rows are drawn from it with a public seed: from here on it is fixed
#     [step 3]  distances of its tables from the table's are counted: of each set the mean and the largest
#     [step 4]  noise
#
# A pure release pays with a charge of its own, for sup-norm noise, which costs what one of the figures alone
# would. One with a delta pays with a vector of its composed charge, whose Gaussian noise is several times as
# narrow. Proof: utility.proof.md, whose steps these are; steps 2 and 3 are in `synthesizers/utility.py` and
# `counting/states.py`.


Figures = NDArray[np.int64]

NOTE = "utility: distances of the release from the table"


def figures_charge(epsilon: Fraction, unit: Unit) -> LeafMoments:
    """What figures that are paid for by themselves are charged as."""
    return LeafMoments(epsilon, unit.factor, NOTE, stage="utility")


class PaidFigures:
    """Noise for one vector of figures, charged when this object is made."""

    def __init__(self, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> None:
        unit = ledger.unit
        ledger.charge(figures_charge(epsilon, unit))  # [step 1]
        brand_unless_system(ledger, entropy, "utility")
        self.unit, self._entropy = unit, entropy
        self._rate = epsilon / figure_reach(unit)
        self._is_left = True

    def noisy_figures(self, true_figures: Figures) -> Figures:
        """The figures with noise, once. A unit of privacy moves each of them by `figure_reach` at most."""
        if not self._is_left:
            raise BudgetError("the figures of utility were paid for once")
        self._is_left = False
        noise = sup_norm_noise(self._rate, len(true_figures)).draw(1, self._entropy)[0]
        return within_range(true_figures + noise)  # [step 4]

    def __repr__(self) -> str:
        return f"PaidFigures({'1 left' if self._is_left else 'used'})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("figures are paid for where they are used")
