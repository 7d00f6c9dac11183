"""Intervals by ranks and by Student's law, and the matrix products that they take. PUBLIC.

Where the law of a sum of noise has a short formula, `reach` bounds it without a draw. Elsewhere copies of the
noise are ranked here. Proof: ranks.proof.md; the labels [step 1] ... are its steps.

    products of matrices    products of matrices in blocks that stay on one core
    ranks                   half-widths by the rank of the noise among its copies
    Student's t             quantiles of Student's t
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError

# ------------------------------------------------------------------------------------------------- products of matrices
# Products of matrices in blocks: small ones are computed on one core, whatever the BLAS library would do.
#
# Ranks among simulated noise take products of some million multiplications, which one core does in a millisecond. A
# BLAS library gives such a product to all cores, and where other processes use these too, waiting for the last of
# them takes ten to fifty times as long. It leaves a product to one core if that has few multiplications, so here it
# gets blocks.


Matrix = NDArray[np.floating[Any]]

# OpenBLAS starts threads beyond 2^18 multiplications; other libraries do so later.
_ALONE = 1 << 18
# From so many on several cores are worth waiting for.
_MANY = 1 << 28


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices (n, k) and (k, m): (n, m)."""
    (n, k), m = left.shape, right.shape[1]
    if n * k * m <= _ALONE or n * k * m > _MANY:
        return np.asarray(left @ right)
    side = max(8, math.isqrt(_ALONE // max(k, 1)))
    height = min(n, max(side, _ALONE // (k * min(m, side))))
    width = min(m, max(side, _ALONE // (k * height)))
    found = np.empty((n, m), dtype=np.result_type(left, right))
    for first in range(0, n, height):
        for start in range(0, m, width):
            found[first : first + height, start : start + width] = (
                left[first : first + height] @ right[:, start : start + width]
            )
    return found


# ---------------------------------------------------------------------------------------------------------------- ranks
# Intervals by ranks: how far the noise of a released number reaches, where its law has no short formula.
#
# What was released is truth + T, where T is a fixed function of noise whose law is known. Draw the noise N
# times more by the same law. A rank r among the sizes of these copies is too small for the law with a
# probability that a binomial law gives exactly; r is taken so high that this happens once in a million. So the
# half-width holds by the law of the noise, given the copies that were drawn, and a release that is asked a
# thousand times has the same promise each time. Where a sum has a short formula, `reach` needs no copies.
# Proof: ranks.proof.md; the labels [step 1] ... are its steps.


Floats = NDArray[np.floating[Any]]

# How often noise is redrawn where memory allows: ranks then lie about two hundredths above the level.
USUAL_DRAWS = 1_999
# Levels above need more draws than are worth their time.
HIGHEST_LEVEL = 0.9999
# The chance that copies make a half-width too short for the law; it is taken off what may be missed.
LUCK = 1e-6


@lru_cache(256)
def rank(n_draws: int, level: float) -> int:
    """The r of the r-th smallest among so many draws: the least with P(Binomial(n_draws, level + LUCK) >= r) <= LUCK.

    Raises:
        ParameterError: there is none, because the draws are too few.
    """
    chance = level + LUCK
    if not 0 < chance < 1 or chance**n_draws > LUCK:
        raise ParameterError(f"level={level:g} needs more than {n_draws:,} draws of the noise; ask for a lower level")
    log_odds, log_term, beyond, r = math.log((1 - chance) / chance), n_draws * math.log(chance), 0.0, n_draws + 1
    while r > 1 and beyond + math.exp(log_term) <= LUCK:
        beyond += math.exp(log_term)
        r -= 1
        log_term += math.log(r / (n_draws + 1 - r)) + log_odds  # P(r - 1) from P(r)
    return r


def least_draws(level: float) -> int:
    """The fewest draws with which a level can be reached at all; a ParameterError where that is too many."""
    if level > HIGHEST_LEVEL:
        raise ParameterError(
            f"level={level!r} is above {HIGHEST_LEVEL}, the highest for which noise is redrawn; ask for a lower level"
        )
    return math.ceil(math.log(LUCK) / math.log(level + LUCK))


def rank_half_width(simulated: Floats, level: float) -> Any:
    """How far a number with noise T lies from the truth at most, with this probability; along the first axis.

    The r-th smallest of |T_1|, ..., |T_N|, r = `rank(N, level)`. Where the law of T is symmetric each side is missed
    with probability (1 - level) / 2 at most.

    Args:
        simulated: N independent copies of T (N, ...).
        level: the probability.
    """
    sizes = np.abs(simulated)
    place = rank(len(sizes), level) - 1
    return np.partition(sizes, place, axis=0)[place]  # [steps 1, 2]


def simultaneous_half_widths(simulated: Floats, scales: Floats, level: float) -> Floats:
    """Half-widths of many numbers that all hold at once with this probability.

    The rank is that of max over numbers |T| / scale. Scales are fixed beforehand, by the law of the noise and not by
    its draws; a number with scale 0 has no noise.

    Args:
        simulated: copies of all numbers' noise, a draw a row (N, n_numbers).
        scales: the standard deviation of each (n_numbers,).
        level: the probability.
    """
    is_noisy = scales > 0
    if not is_noisy.any():
        return np.zeros_like(scales)
    largest = (np.abs(simulated[:, is_noisy]) / scales[is_noisy]).max(axis=1)  # [step 3]
    return np.asarray(scales * rank_half_width(largest, level))


def generator_of(*parts: Any) -> np.random.Generator:
    """What redraws the noise of a release: seeded by a hash of arrays and texts, so that answers repeat.

    Args:
        parts: what tells the release from others; where the proof is to hold to the letter, what is independent of the
            noise that is redrawn, such as the shape of a tree.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return np.random.default_rng(list(digest.digest()))  # [step 4]


# ---------------------------------------------------------------------------------------------------------- Student's t
# Quantiles of Student's t, without a library that is optional.
#
# P(|T| > t) with f degrees of freedom is I_x(f/2, 1/2) at x = f / (f + t^2), I the regularized incomplete beta
# function. That falls with t and is convex, so Newton's steps from the normal law's quantile, which is smaller, never
# overshoot.


# Beyond this many degrees of freedom t and the normal law give the same interval to five digits.
_MANY_DEGREES = 1e5
_MOST_TERMS = 10_000
_TINY = 1e-300
_SMALL = 1e-13
_CLOSE = 1e-9
_MOST_STEPS = 200


@lru_cache(maxsize=1024)
def t_quantile(level: float, freedom: float) -> float:
    """The t that |T| stays below with probability `level`.

    Args:
        level: between 0 and 1, such as 0.95.
        freedom: degrees of freedom, above 0 and not necessarily whole.
    """
    if freedom >= _MANY_DEGREES:
        return NormalDist().inv_cdf((1 + level) / 2)
    beyond, found = 1 - level, NormalDist().inv_cdf((1 + level) / 2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    for _ in range(_MOST_STEPS):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(found * found / freedom))
        step = (tail(found, freedom) - beyond) / (2 * density)
        found += max(step, 0.0)
        if step <= _CLOSE * found:
            break
    return found


def tail(t: float, freedom: float) -> float:
    """P(|T| > t)."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), where rest = 1 - x; by the fraction that converges faster of the two there are."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from its first term on (Lentz's method)."""
    numerator, denominator = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / _off_zero(1 + term * denominator)
            numerator = _off_zero(1 + term / numerator)
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < _SMALL:
            break
    return value


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
