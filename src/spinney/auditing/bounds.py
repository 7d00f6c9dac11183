"""What a number of lucky guesses proves: lower bounds of epsilon and of mu that hold with a stated confidence.

A coin decides which of two neighbouring tables a mechanism gets, and whoever sees the output guesses the coin.

    pure epsilon      Of r guesses, however many coins one output holds and however they hang together, the number of
                      right ones is no larger, by law, than binomial(r, e^epsilon / (1 + e^epsilon)) (Steinke, Nasr and
                      Jagielski 2023). So ln(p / (1-p)) bounds epsilon from below, p the Clopper-Pearson bound of the
                      share of right guesses. To guess nothing of some coins is allowed.
    (epsilon, delta)  P(A) <= e^epsilon Q(A) + delta for an event A, so epsilon >= ln((p - delta) / q), with p below
                      P(A) and q above Q(A), half the error probability for each. Coins must be independent.
    a curve           An event of chance at most a under Q that fails under P with chance at most b contradicts a
                      trade-off function f with f(a) > b. In Gaussian terms: mu >= z(1-a) - z(b), to be compared with
                      z(1-a) - z(f(a)). Or every coin is guessed: a share of right guesses above (1 + d) / 2, d the
                      total variation distance that f allows, contradicts f as well, and takes one bound of all coins
                      instead of two of half of them; mu is then 2 z(share). Coins must be independent.

The same bounds tell what a game could have shown. So many right guesses as exceed a claim (`fewest_hits`) come with a
stated probability only where a guess is right with some chance (`chance_to_reach`): a leak that is smaller than what
this chance amounts to could have gone unseen.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from spinney.extras import load_optional

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


# ------------------------------------------------------------------------------------------------------------- power


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
