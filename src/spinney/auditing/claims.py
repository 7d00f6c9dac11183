"""Claims: what a mechanism was charged for, and what a test of two error rates says against it.

A claim is compared in its own currency. Pure charges and those with a delta are compared by epsilon; parts of a
composed charge have no epsilon of their own, so they are compared by mu, as is the whole: the trade-off function of the
charged parts says how well any test can do, and mu is that of two normal laws which the same test tells apart as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.bounds import (
    chance_below,
    epsilon_of_event,
    epsilon_of_guesses,
    mu_of_guesses,
    mu_of_rates,
    mu_of_share,
    quantile,
)
from spinney.privacy.budget import Unit
from spinney.privacy.composition import Part, composed_deltas

Floats = NDArray[np.float64]
# Epsilons between which the trade-off function of a composed charge is taken as a polygon.
_N_EPSILONS = 3000


@dataclass(frozen=True, slots=True)
class Tally:
    """How coins fell and what was guessed: (right, wrong) among those that fell on 1 and on 0."""

    n_ones: int
    n_zeros: int
    ones_guessed_one: int
    zeros_guessed_one: int
    ones_guessed_zero: int
    zeros_guessed_zero: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim and its lower bound, in the same currency."""

    currency: str  # "epsilon" or "mu"
    claim: float
    bound: float

    @property
    def exceeds(self) -> bool:
        """Whether the bound is above the claim: the mechanism does not keep its promise."""
        return self.bound > self.claim * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class PureClaim:
    """Epsilon, whatever the outcome."""

    epsilon: float

    def judged(self, tally: Tally, error: float) -> Finding:
        n_right = tally.ones_guessed_one + tally.zeros_guessed_zero
        n_wrong = tally.zeros_guessed_one + tally.ones_guessed_zero
        return Finding("epsilon", self.epsilon, epsilon_of_guesses(n_right, n_right + n_wrong, error))


@dataclass(frozen=True, slots=True)
class DeltaClaim:
    """(epsilon, delta)."""

    epsilon: float
    delta: float

    def judged(self, tally: Tally, error: float) -> Finding:
        ones = tally.ones_guessed_one, tally.n_ones, tally.zeros_guessed_one, tally.n_zeros
        zeros = tally.zeros_guessed_zero, tally.n_zeros, tally.ones_guessed_zero, tally.n_ones
        # One direction is guessed at a time (`rules`); the other has no guesses and bounds nothing.
        used = ones if tally.ones_guessed_one + tally.zeros_guessed_one else zeros
        return Finding("epsilon", self.epsilon, epsilon_of_event(*used, delta=self.delta, error=error))


@dataclass(frozen=True, slots=True)
class CurveClaim:
    """The trade-off function of the parts of a composed charge."""

    parts: tuple[Part, ...]
    unit: Unit

    def judged(self, tally: Tally, error: float) -> Finding:
        if tally.ones_guessed_zero + tally.zeros_guessed_zero:  # every coin was guessed (`rules`)
            n_right = tally.ones_guessed_one + tally.zeros_guessed_zero
            return Finding("mu", self.mu_of_best_guess, mu_of_guesses(n_right, tally.n_ones + tally.n_zeros, error))
        false_alarms = chance_below(tally.zeros_guessed_one, tally.n_zeros, error / 2)
        misses = chance_below(tally.n_ones - tally.ones_guessed_one, tally.n_ones, error / 2)
        return Finding("mu", self.mu_at(false_alarms), mu_of_rates(false_alarms, misses))

    @property
    def mu_of_best_guess(self) -> float:
        """The claim where all coins are guessed: delta at an epsilon of 0 is the total variation distance."""
        return mu_of_share((1 + float(_deltas(self.parts, self.unit)[1][0])) / 2)

    def mu_at(self, false_alarms: float) -> float:
        """The claim at one point of the curve, as the mu of two normal laws."""
        return quantile(1 - false_alarms) - quantile(_fewest_misses(self.parts, self.unit, false_alarms))


Claim = PureClaim | DeltaClaim | CurveClaim


def curve_of(parts: Sequence[Part], unit: Unit) -> CurveClaim:
    """The claim of some parts of a composed charge together."""
    return CurveClaim(tuple(parts), unit)


@lru_cache(maxsize=32)
def _deltas(parts: tuple[Part, ...], unit: Unit) -> tuple[Floats, Floats]:
    """Epsilons up to where delta is next to nothing, and the deltas of the parts at them."""
    largest = 1.0
    while float(composed_deltas(parts, np.array([largest]), unit)[0]) > 1e-9 and largest < 2**14:
        largest *= 2
    epsilons = np.linspace(0, largest, _N_EPSILONS)
    return epsilons, composed_deltas(parts, epsilons, unit)


def _fewest_misses(parts: tuple[Part, ...], unit: Unit, false_alarms: float) -> float:
    """f(a): the largest, over epsilon, of 1 - delta - e^epsilon a and of e^-epsilon (1 - delta - a), at least 0."""
    epsilons, deltas = _deltas(parts, unit)
    capped = np.minimum(epsilons, 700.0)
    steep = 1 - deltas - np.exp(capped) * false_alarms
    flat = np.exp(-epsilons) * (1 - deltas - false_alarms)
    return float(max(0.0, steep.max(), flat.max()))
