"""What an (epsilon, delta) promise means for people: how small delta has to be, what is too weak to count, and what is
promised to somebody with several rows.

The unit of a promise is one row, or one person with all their rows: then read persons for rows here. Between tables
that differ in k rows lies a chain of k neighbours, and deltas at the factors gamma = e^epsilon of its links add up
(composition.proof.md, groups):

    delta_k(e1 + ... + ek)  =  delta(e1) + exp(e1) delta(e2) + ... + exp(e1 + ... + e(k-1)) delta(ek)

for any e1, ..., ek. The smallest such sum is looked for on a grid. Pure charges cost a group k times their epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.budget import Unit
from spinney.privacy.ledger import Charge, ComposedRelease, DiscreteGaussianVector, Event, PartitionSelection
from spinney.privacy.parts import Part

# No default is larger than this, however few the rows.
LARGEST_DEFAULT_DELTA = Fraction(1, 10**6)
# No default is smaller: composition claims none below.
_SMALLEST_DEFAULT_DELTA = Fraction(1, 10**10)
# Odds of e^20 are certainty for all purposes.
LARGEST_CREDIBLE_EPSILON = 20

GROUPS = (2, 5, 10)

# The grid of epsilons of a link: so many steps to the release's own epsilon, and so many in all.
_STEPS = 100
_N_GRID = 2500
_LARGEST_EXPONENT = 600.0  # of exp, in floats

Deltas = NDArray[np.float64]


def default_delta(n_rows: int) -> Fraction:
    """A tenth of one over the number of rows, rounded down to one digit, and at most 1e-6."""
    tenth = Decimal(1) / Decimal(10 * max(1, n_rows))
    digit = tenth.quantize(Decimal(1).scaleb(tenth.adjusted()), rounding=ROUND_FLOOR)
    return max(min(Fraction(digit), LARGEST_DEFAULT_DELTA), _SMALLEST_DEFAULT_DELTA)


def cautions(epsilon: Fraction, delta: Fraction, n_rows: int | None, *, who: str = "rows") -> list[str]:
    """What should be told about a promise that is weaker than it looks; `n_rows` is public, or a public guess.

    `who` is what they are: rows, or persons where these are protected with all their rows.
    """
    found = []
    if epsilon > LARGEST_CREDIBLE_EPSILON:
        found.append(
            f"epsilon={float(epsilon):g} is above {LARGEST_CREDIBLE_EPSILON}, which protects nobody in practice; "
            "useful values lie between about 0.1 and 10"
        )
    if n_rows and delta * n_rows > 1:
        found.append(
            f"delta={float(delta):g} is above one over the number of {who} (1/{n_rows:,}): publishing a few whole "
            f"{who} would satisfy such a guarantee; take delta={float(default_delta(n_rows)):g} or less"
        )
    return found


@dataclass(frozen=True, slots=True)
class GroupPromise:
    """The guarantee for a person with `n_rows` rows: (epsilon, delta), both rounded up. Delta 1 guarantees nothing."""

    n_rows: int
    epsilon: Fraction
    delta: Fraction

    def __str__(self) -> str:
        if self.delta >= 1:
            return "no guarantee"
        return f"epsilon {float(self.epsilon):g}" + (f", delta {float(self.delta):g}" if self.delta else "")


def group_promise(events: Iterable[Event], unit: Unit, n_rows: int) -> GroupPromise:
    """What all charges together promise to a person with `n_rows` rows.

    Epsilon at the delta of the release where there is one; otherwise the delta at `n_rows` times its epsilon.
    """
    epsilon, delta = Fraction(0), Fraction(0)
    for event in events:
        if isinstance(event, ComposedRelease) and event.delta:
            more = _group_of_parts(event.parts, event.epsilon, event.delta, unit, n_rows)
        elif isinstance(event, DiscreteGaussianVector) and event.delta:
            more = _group_of_vector(event, n_rows)
        elif isinstance(event, PartitionSelection):
            more = n_rows * event.epsilon, _chained_delta(event.epsilon, event.delta, n_rows)
        elif isinstance(event, Charge):
            more = n_rows * event.epsilon, Fraction(0)
        else:
            continue
        epsilon, delta = epsilon + more[0], delta + more[1]
    return GroupPromise(n_rows, _rounded_up(epsilon), min(Fraction(1), _rounded_up(delta)))


# ---------------------------------------------------------------------------------------------------- composed parts


@lru_cache(maxsize=64)
def _group_of_parts(
    parts: tuple[Part, ...], epsilon: Fraction, delta: Fraction, unit: Unit, n_rows: int
) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a group, from the losses of all parts together."""
    from spinney.privacy.composition import composed_deltas

    step = float(epsilon) / _STEPS
    n_grid = min(_N_GRID, int(_LARGEST_EXPONENT / step))
    if n_grid < 2 * _STEPS:  # an epsilon in the hundreds, which is no promise for one row either
        return n_rows * epsilon, Fraction(1)
    grid: Deltas = step * np.arange(n_grid, dtype=np.float64)
    group = chain_deltas(np.minimum(composed_deltas(parts, grid, unit), 1.0), grid, n_rows)
    within = np.flatnonzero(group <= float(delta))
    if len(within):
        return Fraction(float(grid[within[0]])), delta
    here = min(n_rows * _STEPS, n_grid - 1)
    return Fraction(float(grid[here])), Fraction(min(1.0, float(group[here])))


def chain_deltas(deltas: Deltas, grid: Deltas, n_links: int) -> Deltas:
    """The deltas of a chain of links, at the same points of the grid: by squaring, as powers are taken."""
    whole, power = None, deltas
    while n_links:
        if n_links & 1:
            whole = power if whole is None else _linked(whole, power, grid)
        n_links >>= 1
        if n_links:
            power = _linked(power, power, grid)
    assert whole is not None
    return whole


def _linked(first: Deltas, second: Deltas, grid: Deltas) -> Deltas:
    """The least first(e) + exp(e) second(rest) over all e on the grid, for each e + rest on it."""
    factors = np.exp(grid)
    best = np.ones_like(first)
    for place, (delta, factor) in enumerate(zip(first, factors, strict=True)):
        np.minimum(best[place:], delta + factor * second[: len(best) - place], out=best[place:])
    return best * (1 + 1e-9)  # for the rounding of floats


def _chained_delta(epsilon: Fraction, delta: Fraction, n_rows: int) -> Fraction:
    """The delta of k equal links at k epsilon: delta (1 + e^epsilon + ... + e^((k-1) epsilon)), rounded up."""
    if n_rows * epsilon > _LARGEST_EXPONENT:
        return Fraction(1)
    factors = sum(math.exp(float(link * epsilon)) for link in range(n_rows))
    return min(Fraction(1), delta * Fraction(factors * (1 + 1e-9)))


# ------------------------------------------------------------------------------------------------- Gaussian vectors


def _group_of_vector(event: DiscreteGaussianVector, n_rows: int) -> tuple[Fraction, Fraction]:
    """Of sums that one row moves by D, k rows move them by k D at most: rho grows with k squared."""
    from spinney.privacy.noise.gaussian import delta_from_rho

    rho = n_rows**2 * event.sensitivity_squared / (2 * event.variance)
    # Where the tail of a Gaussian would have it, and on from there.
    reach = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(event.delta)))
    for epsilon in (Fraction(reach * (90 + percent) / 100) for percent in range(30)):
        if delta_from_rho(rho, epsilon) <= event.delta:
            return epsilon, event.delta
    return n_rows * event.epsilon, delta_from_rho(rho, n_rows * event.epsilon)


def _rounded_up(value: Fraction) -> Fraction:
    """The number, or the next above it of three digits where it takes more than six."""
    shown = Fraction(f"{float(value):.6g}")
    if value in (0, shown):
        return value
    rough = Decimal(float(value)) * (1 + Decimal(10) ** -12)
    return Fraction(rough.quantize(Decimal(1).scaleb(rough.adjusted() - 2), rounding=ROUND_CEILING))
