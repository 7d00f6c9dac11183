"""Rules: from what was seen to a guess, chosen on coins that are not counted afterwards.

Of all coins of a game some serve to learn statistics (`learned`), as many to choose one of them and its thresholds, and
the rest, seven tenths, to be guessed. A statistic grows with the chance that the coin fell on 1. A rule guesses 1 from
a threshold on and 0 up to another, and nothing between them. Where the claim has a delta one threshold is used; where
it is a curve too, and either only 1 is guessed, for two rates of errors, or all coins are, for one share of right
guesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.bounds import quantile
from spinney.auditing.claims import Claim, CurveClaim, DeltaClaim, Tally

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]

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
