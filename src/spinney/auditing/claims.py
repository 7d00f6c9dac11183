"""Claims: what a mechanism was charged for, and what a test of two error rates says against it.

A claim is compared in its own currency. Pure charges and those with a delta are compared by epsilon; parts of a
composed charge have no epsilon of their own, so they are compared by mu, as is the whole: the trade-off function of the
charged parts says how well any test can do, and mu is that of two normal laws which the same test tells apart as well.

Every claim also says what a game could have shown against it, with the coins that were played (`Finding`): a bound that
does not exceed its claim means nothing where no outcome of the game could have made it exceed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.bounds import (
    chance_below,
    chance_to_reach,
    epsilon_of_event,
    epsilon_of_guesses,
    fewest_hits,
    mu_of_guesses,
    mu_of_rates,
    mu_of_share,
    normal,
    quantile,
)
from spinney.privacy.budget import Unit
from spinney.privacy.composition import Part, composed_deltas

Floats = NDArray[np.float64]
# Epsilons between which the trade-off function of a composed charge is taken as a polygon.
_N_EPSILONS = 3000
# The probability with which a leak that is called caught exceeds its claim. A game that is won is played again, and has
# to be won twice.
POWER = 0.95
_POWER_OF_ONE = math.sqrt(POWER)
# A game tells something if it would have caught a leak of so many times its claim.
TELLING = 4.0
# A rule and its thresholds are chosen on few coins, and seldom the best: half of the guesses are taken to be in vain.
_IN_VAIN = 2
_MOST_COINS = 2**40


@dataclass(frozen=True, slots=True)
class Tally:
    """How coins fell and what was guessed: (right, wrong) among those that fell on 1 and on 0."""

    n_ones: int
    n_zeros: int
    ones_guessed_one: int
    zeros_guessed_one: int
    ones_guessed_zero: int
    zeros_guessed_zero: int

    @property
    def n_coins(self) -> int:
        """How many coins could be guessed."""
        return self.n_ones + self.n_zeros


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, its lower bound, and what the game could have shown against it, all in the same currency.

    Attributes:
        currency: "epsilon" or "mu".
        claim: what was charged.
        bound: what the guesses prove.
        ceiling: what they would have proved had all coins been guessed right, as without any noise.
        could_miss: the smallest leak that would have exceeded the claim with a probability of 95 %, if every guess
            that was made sees all of it. A smaller one could have gone unseen, and so could a leak elsewhere.
    """

    currency: str
    claim: float
    bound: float
    ceiling: float = 0.0
    could_miss: float = field(default=math.inf)

    @property
    def exceeds(self) -> bool:
        """Whether the bound is above the claim: the mechanism does not keep its promise."""
        return self.bound > self.claim * (1 + 1e-9)

    @property
    def could_exceed(self) -> bool:
        """Whether the bound of a mechanism without any noise would have been above the claim."""
        return self.ceiling > self.claim * (1 + 1e-9)

    @property
    def tells(self) -> bool:
        """Whether something follows from the game: it is won, or would have been won against a few times the claim."""
        return self.exceeds or self.could_miss <= TELLING * self.claim


@dataclass(frozen=True, slots=True)
class PureClaim:
    """Epsilon, whatever the outcome."""

    epsilon: float

    def judged(self, tally: Tally, error: float) -> Finding:
        n_right = tally.ones_guessed_one + tally.zeros_guessed_zero
        n_wrong = tally.zeros_guessed_one + tally.ones_guessed_zero
        n = n_right + n_wrong
        bound, ceiling = epsilon_of_guesses(n_right, n, error), epsilon_of_guesses(tally.n_coins, tally.n_coins, error)
        return Finding("epsilon", self.epsilon, bound, ceiling, self.missed_by(n, error))

    def missed_by(self, n_guesses: int, error: float) -> float:
        """The epsilon of guesses that exceed the claim with the stated power, if there are so many of them."""
        chance = _chance_that_exceeds(1 / (1 + math.exp(-self.epsilon)), n_guesses, error)
        return math.inf if chance is None else math.log(chance / (1 - chance))


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
        n_hits, n, n_others, n_other = used
        bound = epsilon_of_event(n_hits, n, n_others, n_other, delta=self.delta, error=error)
        ceiling = epsilon_of_event(n, n, 0, n_other, delta=self.delta, error=error)
        seldom = chance_below(n_others, n_other, error / 2)
        wanted = math.exp(min(self.epsilon, 700.0)) * seldom + self.delta
        chance = _chance_that_exceeds(wanted, n, error / 2)
        could_miss = math.inf if chance is None else math.log((chance - self.delta) / _rate(n_others, n_other))
        return Finding("epsilon", self.epsilon, bound, ceiling, could_miss)

    def missed_by(self, n_guesses: int, error: float) -> float:
        """Of a claim with a delta, what events are worth is not known before they are seen."""
        return 0.0 if n_guesses and error else math.inf


@dataclass(frozen=True, slots=True)
class CurveClaim:
    """The trade-off function of the parts of a composed charge."""

    parts: tuple[Part, ...]
    unit: Unit

    def judged(self, tally: Tally, error: float) -> Finding:
        ceiling = mu_of_guesses(tally.n_coins, tally.n_coins, error)
        if tally.ones_guessed_zero + tally.zeros_guessed_zero:  # every coin was guessed (`rules`)
            n_right = tally.ones_guessed_one + tally.zeros_guessed_zero
            bound, could_miss = mu_of_guesses(n_right, tally.n_coins, error), self.missed_by(tally.n_coins, error)
            return Finding("mu", self.mu_of_best_guess, bound, ceiling, could_miss)
        false_alarms = chance_below(tally.zeros_guessed_one, tally.n_zeros, error / 2)
        misses = chance_below(tally.n_ones - tally.ones_guessed_one, tally.n_ones, error / 2)
        claim = self.mu_at(false_alarms)
        # A share of hits above this one exceeds the claim.
        chance = _chance_that_exceeds(1 - normal(quantile(1 - false_alarms) - claim), tally.n_ones, error / 2)
        rate = _rate(tally.zeros_guessed_one, tally.n_zeros)
        could_miss = math.inf if chance is None else mu_of_rates(rate, 1 - chance)
        return Finding("mu", claim, mu_of_rates(false_alarms, misses), ceiling, could_miss)

    def missed_by(self, n_guesses: int, error: float) -> float:
        """The mu of guesses of all coins that exceed the claim with the stated power, if there are so many of them."""
        chance = _chance_that_exceeds(normal(self.mu_of_best_guess / 2), n_guesses, error)
        return math.inf if chance is None else mu_of_share(chance)

    @property
    def mu_of_best_guess(self) -> float:
        """The claim where all coins are guessed: delta at an epsilon of 0 is the total variation distance."""
        return mu_of_share((1 + float(_deltas(self.parts, self.unit)[1][0])) / 2)

    def mu_at(self, false_alarms: float) -> float:
        """The claim at one point of the curve, as the mu of two normal laws."""
        return quantile(1 - false_alarms) - quantile(_fewest_misses(self.parts, self.unit, false_alarms))


Claim = PureClaim | DeltaClaim | CurveClaim


def coins_to_tell(claim: Claim, error: float) -> int:
    """How many coins have to be guessed before a game tells anything, if it sees all that leaks: no fewer will do."""
    size = claim.mu_of_best_guess if isinstance(claim, CurveClaim) else claim.epsilon
    n = 8
    while n < _MOST_COINS and size > 0 and claim.missed_by(n, error) > TELLING * size:
        n = n + max(n // 8, 1)
    return n


def _chance_that_exceeds(chance: float, n: int, error: float) -> float | None:
    """The chance of a hit with which n of them prove one above `chance`, with the stated power; None for no chance."""
    n //= _IN_VAIN
    n_hits = fewest_hits(chance, n, error)
    found = 1.0 if n_hits is None else chance_to_reach(n_hits, n, _POWER_OF_ONE)
    return found if found < 1 else None


def _rate(n_hits: int, n: int) -> float:
    """A share that is not 0: half a hit is added."""
    return (n_hits + 0.5) / (n + 1)


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
