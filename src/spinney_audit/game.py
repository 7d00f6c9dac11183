"""A game: many coins, each deciding which of two neighbouring tables a mechanism gets, and what it proves.

Mechanisms draw from the operating system, as they do for a release, and so do the coins. What a game sees of an
output (`Seen`) is what a release would hold. `play` may put many coins into one call of a mechanism where the
claim is pure, since the bound then holds however the coins depend on each other (Steinke, Nasr, Jagielski
2023).

    bounds          lower bounds of epsilon and of mu from lucky guesses
    power           how many guesses a bound needs, and how likely they are
    claims          pure epsilon, (epsilon, delta), a trade-off function, each judged in its own currency
    statistics      learned from coins whose fall is known
    prepaid plans   plans and made-up rows that games on parts share
    rules           from a statistic to a guess, chosen on coins that are not counted afterwards
    game            `Game`, `Verdict`, `run` and `judge`
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import StateRows
from spinney.forest.plan import ForestPlan, nothing, plan_of_parts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.machine import load_optional
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_deltas
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Part

# --------------------------------------------------------------------------------------------------------------- bounds
# What a number of lucky guesses proves: lower bounds of epsilon and of mu that hold with a stated confidence.
#
# A coin decides which of two neighbouring tables a mechanism gets, and whoever sees the output guesses the coin.
#
#     pure epsilon      Of r guesses, however many coins one output holds and however they hang together, the number of
#                       right ones is no larger, by law, than binomial(r, e^epsilon / (1 + e^epsilon)) (Steinke, Nasr,
#                       Jagielski 2023). So ln(p / (1-p)) bounds epsilon from below, p the Clopper-Pearson bound of the
#                       share of right guesses. To guess nothing of some coins is allowed.
#     (epsilon, delta)  P(A) <= e^epsilon Q(A) + delta for an event A, so epsilon >= ln((p - delta) / q), with p below
#                       P(A) and q above Q(A), half the error probability for each. Coins must be independent.
#     a curve           An event of chance at most a under Q that fails under P with chance at most b contradicts a
#                       trade-off function f with f(a) > b. In Gaussian terms: mu >= z(1-a) - z(b), to be compared with
#                       z(1-a) - z(f(a)). Or every coin is guessed: a share of right guesses above (1 + d) / 2, d the
#                       total variation distance that f allows, contradicts f as well, and takes one bound of all coins
#                       instead of two of half of them; mu is then 2 z(share). Coins must be independent.
#
# The same bounds tell what a game could have shown. So many right guesses as exceed a claim (`fewest_hits`) come with
# a stated probability only where a guess is right with some chance (`chance_to_reach`): a leak that is smaller than
# what this chance amounts to could have gone unseen.


_NORMAL = NormalDist()
# Quantiles of chances nearer to 0 or 1 than this are those of this chance.
_NEAREST = 1e-15


def _special() -> Any:
    return load_optional("scipy.special", "an audit")


def chance_above(n_hits: int, n: int, error: float) -> float:
    """The Clopper-Pearson lower bound of a chance: it is larger than the truth with probability `error` at most."""
    if n_hits <= 0 or n <= 0:
        return 0.0
    return float(_special().betaincinv(n_hits, n - n_hits + 1, error))


def chance_below(n_hits: int, n: int, error: float) -> float:
    """The Clopper-Pearson upper bound of a chance."""
    return 1.0 - chance_above(n - n_hits, n, error)


def epsilon_of_guesses(n_right: int, n_guesses: int, error: float) -> float:
    """The lower bound of a pure epsilon that so many right guesses prove."""
    chance = chance_above(n_right, n_guesses, error)
    return max(0.0, math.log(chance / (1 - chance))) if 0 < chance < 1 else 0.0


def epsilon_of_event(n_hits: int, n: int, n_other_hits: int, n_other: int, *, delta: float, error: float) -> float:
    """The lower bound of epsilon at a delta from how often an event occurs with one table and with the other."""
    often = chance_above(n_hits, n, error / 2) - delta
    seldom = chance_below(n_other_hits, n_other, error / 2)
    return max(0.0, math.log(often / seldom)) if often > 0 else 0.0


def quantile(chance: float) -> float:
    """The number below which a standard normal one lies with this chance."""
    return _NORMAL.inv_cdf(min(max(chance, _NEAREST), 1 - _NEAREST))


def normal(z: float) -> float:
    """The chance that a standard normal number lies below this."""
    return _NORMAL.cdf(z)


def mu_of_guesses(n_right: int, n_coins: int, error: float) -> float:
    """The lower bound of mu that so many right guesses prove, of fair and independent coins, all of them guessed."""
    return mu_of_share(chance_above(n_right, n_coins, error))


def mu_of_share(share: float) -> float:
    """The mu of two normal laws between which whoever guesses best is right this often."""
    return max(0.0, 2 * quantile(share))


def mu_of_rates(false_alarms: float, misses: float) -> float:
    """The mu of two normal laws that a test of these two error rates tells apart."""
    return max(0.0, quantile(1 - false_alarms) - quantile(misses))


# ---------------------------------------------------------------------------------------------------------------- power
# How many right guesses exceed a claim, and the chance of a hit with which that many come.


def fewest_hits(chance: float, n: int, error: float) -> int | None:
    """The fewest of n guesses that prove a chance above this one; None where even n of n do not."""
    if n <= 0 or chance_above(n, n, error) <= chance:
        return None
    low, high = 0, n  # what `low` proves is not enough, what `high` proves is
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance_above(middle, n, error) <= chance else (low, middle)
    return high


def chance_to_reach(n_hits: int, n: int, power: float) -> float:
    """The chance of a hit with which n tries have so many hits, or more, with this probability."""
    return float(_special().betaincinv(n_hits, n - n_hits + 1, power))


# --------------------------------------------------------------------------------------------------------------- claims
# Claims: what a mechanism was charged for, and what a test of two error rates says against it.
#
# A claim is compared in its own currency. Pure charges and those with a delta are compared by epsilon; parts of a
# composed charge have no epsilon of their own, so they are compared by mu, as is the whole: the trade-off function of
# the charged parts says how well any test can do, and mu is that of two normal laws which the same test tells apart
# as well.
#
# Every claim also says what a game could have shown against it, with the coins that were played (`Finding`): a bound
# that does not exceed its claim means nothing where no outcome of the game could have made it exceed.


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


# ----------------------------------------------------------------------------------------------------------- statistics
# Statistics that are learned from coins whose fall is known, for laws that nobody wrote down, and for broken ones.
#
# linear       the direction in which the means of the two tables lie apart, against the noise that they share
#              (Fisher's discriminant): best for Gaussian noise, and blind to none that is missing or drawn twice
# frequencies  how often each outcome was seen with either table: finds outcomes that one of them cannot have


Coins = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]

# Columns whose outcomes are told apart, and into how many kinds each at most.
_FEW_COLUMNS = 4
_FEW_VALUES = 24
_LARGEST_VALUE = 1e15


def learned_statistics(seen: Floats, coins: Coins) -> Iterator[Statistic]:
    """Statistics of outcomes (n, d), learned from some of them."""
    yield linear(seen, coins)
    yield frequencies(seen, coins)


def linear(seen: Floats, coins: Coins) -> Statistic:
    """The outcome along the direction that tells the two means apart best."""
    seen = _tame(seen)
    if coins.all() or not coins.any():
        return lambda outcomes: np.zeros(len(outcomes))
    one, other = seen[coins].mean(axis=0), seen[~coins].mean(axis=0)
    centred = np.where(coins[:, None], seen - one, seen - other)
    scale = np.sqrt((centred**2).mean(axis=0))
    # A column that never varies with either table tells everything if the two differ, and nothing if not.
    scale = np.where(scale > 0, scale, 1e-6 * np.maximum(np.abs(one - other), 1e-300))
    centred /= scale
    spread = centred.T @ centred / len(centred)
    spread += 1e-7 * np.eye(len(spread))
    weights = np.linalg.solve(spread, (one - other) / scale) / scale
    return lambda outcomes: np.asarray((_tame(outcomes) - other) @ weights)


def frequencies(seen: Floats, coins: Coins) -> Statistic:
    """The logarithm of how much more often an outcome was seen with a 1 than with a 0."""
    if not len(seen):
        return lambda outcomes: np.zeros(len(outcomes))
    edges = [_edges(column) for column in _tame(seen[:, :_FEW_COLUMNS]).T]
    keys = _keys(seen, edges)
    kinds, places = np.unique(keys, return_inverse=True)
    ones = np.bincount(places[coins], minlength=len(kinds))
    zeros = np.bincount(places[~coins], minlength=len(kinds))
    # One outcome each is taken as seen before: an outcome that was seen once says little.
    weights = np.log((ones + 1.0) / (zeros + 1.0)) * (1 + 1e-3 * np.log1p(ones + zeros))

    def statistic(outcomes: Floats) -> Floats:
        found = _keys(outcomes, edges)
        at = np.minimum(np.searchsorted(kinds, found), len(kinds) - 1)
        return np.asarray(np.where(kinds[at] == found, weights[at], 0.0))

    return statistic


def _tame(outcomes: Floats) -> Floats:
    return np.clip(np.nan_to_num(np.asarray(outcomes, dtype=np.float64)), -_LARGEST_VALUE, _LARGEST_VALUE)


def _edges(column: Floats) -> Floats:
    """Between which ends the kinds of outcomes in a column lie."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= 1:
        return values[:0]
    if len(values) > _FEW_VALUES:
        # Values that many have are kinds of their own; the others are cut at quantiles.
        common = values[np.argsort(-counts, kind="stable")[: _FEW_VALUES // 2]]
        values = np.unique(np.concatenate([common, np.quantile(column, np.linspace(0.02, 0.98, _FEW_VALUES // 2))]))
    return np.asarray((values[1:] + values[:-1]) / 2)


def _keys(outcomes: Floats, edges: list[Floats]) -> NDArray[np.int64]:
    keys = np.zeros(len(outcomes), dtype=np.int64)
    for column, ends in zip(_tame(outcomes[:, :_FEW_COLUMNS]).T, edges, strict=True):
        keys = keys * (len(ends) + 1) + np.searchsorted(ends, column, side="right")
    return keys


# -------------------------------------------------------------------------------------------------------- prepaid plans
# What games on a forest's parts share: plans of single parts, their mechanisms, and tables of made-up rows.
#
# Whatever a forest draws comes from `PrepaidMechanisms`, so that is what its games call, with plans of the parts that
# they are about. Such a plan charges nothing: the account of an audit is nobody's.


def opened(plan: ForestPlan, times: int | None = None) -> PrepaidMechanisms:
    """The mechanisms of a plan, on an account of their own; each of its stages as often as `times` says."""
    prepaid = PrepaidMechanisms(plan, Ledger(unit=plan.unit), SystemEntropy())
    if times is not None:
        prepaid._left = {stage: left if stage in plan.vectors else times for stage, left in prepaid._left.items()}
    return prepaid


def plan_of(parts: Sequence[Part], unit: Unit) -> ForestPlan:
    """A plan of these parts and nothing else. It charges nothing: the account of an audit is nobody's."""
    if not parts:
        return nothing(Fraction(1), Fraction(1, 2), unit)
    plan = plan_of_parts(parts, epsilon=Fraction(1), delta=Fraction(1, 2), unit=unit, note="audit")
    return replace(plan, charges=())


def rows_of(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> StateRows:
    """Rows of states, as engines hold them."""
    return StateRows(np.array(rows, dtype=np.uint8).reshape(len(rows), len(sizes)).T.copy(), tuple(sizes))


# ---------------------------------------------------------------------------------------------------------------- rules
# Rules: from what was seen to a guess, chosen on coins that are not counted afterwards.
#
# A first part of the coins of a game serves to learn statistics (above), a second to choose one of them and its
# thresholds, and the rest, seven tenths, to be guessed. A statistic grows with the chance that the coin fell on
# 1. A rule guesses 1 from a threshold on and 0 up to another, and nothing between them. Where the claim has a
# delta one threshold is used; where it is a curve too, and either only 1 is guessed, for two rates of errors,
# or all coins are, for one share of right guesses.


_N_THRESHOLDS = 80
# By how many standard deviations what choosing coins show is doubted.
_DOUBT = 2.5
_NONE = np.inf


@dataclass(frozen=True, slots=True)
class Rule:
    """Guess 1 where the statistic is `upper` or more, 0 where it is `lower` or less."""

    upper: float
    lower: float
    promise: float  # the bound that the choosing coins lead one to expect

    def tally(self, statistic: Floats, coins: Coins) -> Tally:
        """Guesses of these coins, counted."""
        ones, zeros = statistic >= self.upper, statistic <= self.lower
        return Tally(
            n_ones=int(coins.sum()),
            n_zeros=int((~coins).sum()),
            ones_guessed_one=int((ones & coins).sum()),
            zeros_guessed_one=int((ones & ~coins).sum()),
            ones_guessed_zero=int((zeros & coins).sum()),
            zeros_guessed_zero=int((zeros & ~coins).sum()),
        )

    @property
    def direction(self) -> str:
        """Which of the two tables is told from the other where something is guessed."""
        sides = [name for name, end in (("with", self.upper), ("without", -self.lower)) if np.isfinite(end)]
        return " and ".join(sides) or "none"


def best_rule(statistic: Floats, coins: Coins, claim: Claim, *, n_left: int, error: float) -> Rule:
    """The rule that promises the largest bound when it guesses `n_left` more coins."""
    thresholds = _thresholds(statistic)
    more = n_left / max(len(coins), 1)
    above = statistic[None, :] >= thresholds[:, None]
    ones, zeros = (above & coins).sum(axis=1), (above & ~coins).sum(axis=1)
    n_ones, n_zeros = int(coins.sum()), int((~coins).sum())
    if isinstance(claim, CurveClaim):
        return _of_a_curve(thresholds, ones, zeros, n_ones, n_zeros, more, error)
    if isinstance(claim, DeltaClaim):
        return _of_an_event(thresholds, ones, zeros, n_ones, n_zeros, more, error, claim.delta)
    return _of_guesses(thresholds, ones, zeros, n_ones, n_zeros, more, error)


def _thresholds(statistic: Floats) -> Floats:
    """Where to cut: at all values where they are few, else at quantiles, more of them at the ends."""
    values = np.unique(statistic)
    if len(values) <= _N_THRESHOLDS:
        return values
    shares = 1 / (1 + np.exp(-np.linspace(-7, 7, _N_THRESHOLDS)))
    return np.unique(np.quantile(statistic, shares))


def _of_guesses(
    thresholds: Floats,
    ones: NDArray[np.int64],
    zeros: NDArray[np.int64],
    n_ones: int,
    n_zeros: int,
    more: float,
    error: float,
) -> Rule:
    """One threshold for each side, or none."""
    right_above, wrong_above = np.append(ones, 0), np.append(zeros, 0)
    # To guess 0 below a threshold is to guess it of all that is not above; the last entry is to guess it of none.
    right_below, wrong_below = np.append(n_zeros - zeros, 0), np.append(n_ones - ones, 0)
    right = (right_above[:, None] + right_below[None, :]).astype(np.float64)
    wrong = (wrong_above[:, None] + wrong_below[None, :]).astype(np.float64)
    places = np.arange(len(thresholds) + 1)
    is_apart = (places[None, :] <= places[:, None]) | (places[None, :] == len(thresholds))
    promises = np.where(is_apart, _promised(right, right + wrong, more, error), -np.inf)
    best_above, best_below = np.unravel_index(int(np.argmax(promises)), promises.shape)
    ends = np.append(thresholds, _NONE)
    lower = -_NONE if best_below == len(thresholds) else np.nextafter(ends[best_below], -_NONE)
    return Rule(float(ends[best_above]), float(lower), float(promises.max()))


def _promised(right: Floats, total: Floats, more: float, error: float) -> Floats:
    """ln(p / (1-p)) of a lower bound p of the share of right guesses."""
    low = _foreseen(right, total, more, -quantile(1 - error))
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(total > 0, np.log(low / (1 - low)), -np.inf))


def _foreseen(hits: NDArray[Any], n: NDArray[Any], more: float, z: float) -> Floats:
    """A bound of a chance that `more` times as many coins will lead to, if the chance is less kind than it looked.

    Without that doubt the best of many rules would be the one that was luckiest with few guesses.
    """
    doubted = _wilson(np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64), math.copysign(_DOUBT, z))
    later = np.maximum(np.asarray(n, dtype=np.float64) * more, 1e-9)
    return _wilson(doubted * later, later, z)


def _wilson(hits: Floats, n: Floats, z: float) -> Floats:
    """Wilson's bound of a chance: the upper of a positive z, the lower of a negative one."""
    n = np.maximum(n, 1e-9)
    share = np.clip(hits / n, 0, 1)
    spread = np.sqrt(np.maximum(share * (1 - share) / n + z * z / (4 * n * n), 0))
    return np.clip((share + z * z / (2 * n) + z * spread) / (1 + z * z / n), 1e-12, 1 - 1e-12)


def _of_a_curve(
    thresholds: Floats,
    ones: NDArray[np.int64],
    zeros: NDArray[np.int64],
    n_ones: int,
    n_zeros: int,
    more: float,
    error: float,
) -> Rule:
    """Two rates of errors, or one share of right guesses of all coins: whichever promises more."""
    z = quantile(1 - error / 2)
    alarms = _foreseen(zeros, np.full(len(zeros), n_zeros), more, z)
    misses = _foreseen(n_ones - ones, np.full(len(ones), n_ones), more, z)
    promises = np.array([quantile(1 - a) - quantile(b) for a, b in zip(alarms, misses, strict=True)])
    best = int(np.argmax(promises))
    right = ones + n_zeros - zeros
    shares = _foreseen(right, np.full(len(right), n_ones + n_zeros), more, -quantile(1 - error))
    surest = int(np.argmax(shares))
    if 2 * quantile(shares[surest]) > promises[best]:
        end = thresholds[surest]
        return Rule(float(end), float(np.nextafter(end, -_NONE)), 2 * quantile(shares[surest]))
    return Rule(float(thresholds[best]), -_NONE, float(promises[best]))


def _of_an_event(
    thresholds: Floats,
    ones: NDArray[np.int64],
    zeros: NDArray[np.int64],
    n_ones: int,
    n_zeros: int,
    more: float,
    error: float,
    delta: float,
) -> Rule:
    z = quantile(1 - error / 2)

    def promised(hits: NDArray[np.int64], n: int, others: NDArray[np.int64], n_others: int) -> Floats:
        often = _foreseen(hits, np.full(len(hits), n), more, -z) - delta
        seldom = _foreseen(others, np.full(len(others), n_others), more, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(often > 0, np.log(often / seldom), -np.inf))

    above = promised(ones, n_ones, zeros, n_zeros)
    below = promised(n_zeros - zeros, n_zeros, n_ones - ones, n_ones)
    if above.max() >= below.max():
        return Rule(float(thresholds[int(np.argmax(above))]), -_NONE, float(above.max()))
    return Rule(_NONE, float(np.nextafter(thresholds[int(np.argmax(below))], -_NONE)), float(below.max()))


# ----------------------------------------------------------------------------------------------------------------- game
# A game: one mechanism and one pair of neighbours, played for a stated time, then judged on coins that chose
# nothing.


# Of all coins: to learn statistics, and to choose among them and their thresholds. The rest are guessed.
_LEARNED = 0.15
_CHOSEN = 0.15
# Coins of the rounds by which a game is timed.
_FIRST = 4
# A game has at least so many, however long they take.
_FEWEST = 24
# Whoever makes more coins than this holds more in memory than a bound gains by it.
MOST_COINS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Outcomes of coins: what was released of each, and the log-likelihood ratio where the plan tells the law."""

    outcomes: Floats  # (n, d)
    likelihood: Floats | None = None  # (n,)


class Game(ABC):
    """One mechanism, one pair of neighbours. Everything in it is made up or public.

    Attributes:
        family: what kind of mechanism it is, as `--family` names it.
        title: the neighbours, in a few words.
        path: which code is called for every coin: a mechanism, or a whole fit.
        unit: what neighbours differ in.
        claim: what the mechanism was charged for.
    """

    family: str
    path: str
    title: str
    unit: Unit
    claim: Claim
    weight: float = 1.0  # how much time it gets beside others

    @abstractmethod
    def play(self, coins: Coins) -> Seen:
        """Run the mechanism on one table where a coin is 0, and on its neighbour where it is 1."""

    is_packed: bool = False  # whether one call of a mechanism takes a whole batch of coins

    @property
    def batch(self) -> int:
        """How many coins one call of `play` should get."""
        return 256

    @property
    def name(self) -> str:
        return f"{self.family}: {self.title}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a game came to."""

    family: str
    title: str
    path: str
    unit: str
    finding: Finding
    n_coins: int
    tally: Tally
    direction: str
    seconds: float
    seconds_to_tell: float  # how long it would have to be played at least, to tell anything
    processor_seconds: float  # fewer than those on the clock where other work runs on the machine


def toss(n: int) -> Coins:
    """Fair coins, from the operating system."""
    words = SystemEntropy().words(-(-n // 32))
    return np.unpackbits(words.view(np.uint8))[:n].astype(np.bool_)


def run(
    game: Game, *, seconds: float, error: float, most_coins: int = MOST_COINS, most_seconds: float | None = None
) -> Verdict:
    """Play for about so long, and bound the claim from below, wrongly with probability `error` at most.

    A first short round, of which nothing is counted, has everything compiled and tells how long a coin takes. How many
    coins there are depends on the clock and on nothing that was seen.

    With `most_seconds`, a game that could tell nothing in its time is played until it can, if so many are enough. If
    they are not, it ends with the fewest coins: they may show that there is no noise, and others need the time more.
    """
    worked = time.process_time()
    n_first = min(game.batch, most_coins) if game.is_packed else min(game.batch, _FIRST)
    game.play(toss(n_first))
    begun = before = time.perf_counter()
    first = toss(n_first)
    parts: list[tuple[Coins, Seen]] = [(first, game.play(first))]
    for_one = (time.perf_counter() - before) / len(first)
    n_coins = len(first)
    n_needed = coins_to_tell(game.claim, error) / (1 - _LEARNED - _CHOSEN)
    if most_seconds is not None and seconds < n_needed * for_one:
        is_enough = n_needed * for_one <= most_seconds
        seconds = most_seconds
        most_coins = min(most_coins, math.ceil(n_needed) if is_enough else max(n_first, _FEWEST))
    while n_coins < most_coins:
        left = seconds - (time.perf_counter() - begun)
        if left < n_first * for_one and n_coins >= _FEWEST:
            break
        n_more = min(game.batch, most_coins - n_coins)
        if not game.is_packed:
            n_more = min(n_more, max(int(left / for_one), _FIRST))
        before = time.perf_counter()
        coins = toss(n_more)
        parts.append((coins, game.play(coins)))
        n_coins += n_more
        for_one = (time.perf_counter() - before) / n_more
    coins = np.concatenate([part for part, _ in parts])
    outcomes = np.concatenate([seen.outcomes for _, seen in parts])
    likelihoods = [seen.likelihood for _, seen in parts]
    known = None if likelihoods[0] is None else np.concatenate([part for part in likelihoods if part is not None])
    finding, tally, rule = judge(coins, Seen(outcomes, known), game.claim, error=error)
    return Verdict(
        family=game.family,
        title=game.title,
        path=game.path,
        unit=game.unit.value,
        finding=finding,
        n_coins=n_coins,
        tally=tally,
        direction=rule.direction,
        seconds=time.perf_counter() - begun,
        seconds_to_tell=n_needed * (time.perf_counter() - begun) / n_coins,
        processor_seconds=time.process_time() - worked,
    )


def judge(coins: Coins, seen: Seen, claim: Claim, *, error: float) -> tuple[Finding, Tally, Rule]:
    """Choose a statistic and a rule on some coins, and count the guesses of the others."""
    n = len(coins)
    first, second = int(n * _LEARNED), int(n * (_LEARNED + _CHOSEN))
    best: tuple[Rule, Floats] | None = None
    for statistic in _statistics(seen, coins, first):
        rule = best_rule(statistic[first:second], coins[first:second], claim, n_left=n - second, error=error)
        if best is None or rule.promise > best[0].promise:
            best = rule, statistic
    assert best is not None
    rule, statistic = best
    tally = rule.tally(statistic[second:], coins[second:])
    return claim.judged(tally, error), tally, rule


def _statistics(seen: Seen, coins: Coins, n_known: int) -> Iterator[Floats]:
    if seen.likelihood is not None:
        yield seen.likelihood
    if seen.outcomes.shape[1]:
        for statistic in learned_statistics(seen.outcomes[:n_known], coins[:n_known]):
            yield statistic(seen.outcomes)
