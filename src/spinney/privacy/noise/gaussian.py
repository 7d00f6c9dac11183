"""Exact discrete Gaussian noise for whole numbers, and what it costs in (epsilon, delta).

    P(X = k) proportional to exp(-k^2 / (2 variance)),     variance a Fraction

Draws come by rejection (Canonne, Kamath, Steinke 2020): propose y from discrete Laplace noise of scale t =
floor(sigma) + 1, accept with probability exp(-(|y| - variance/t)^2 / (2 variance)). Floats compute that
probability within a proved margin, which settles all but one proposal in four billion; the rest read more bits
and refine an interval (`discrete.scaled_bounds`), so no rounding ever enters a decision.

Noise of one variance on a vector of L2 sensitivity D is rho-zCDP, rho = D^2 / (2 variance), and rho-zCDP is
(epsilon, delta)-DP for every epsilon, with the delta of `delta_from_rho`. Everything is rounded toward more
noise or a larger delta. Proof: gaussian.proof.md; the labels [step 1] ... are its steps.

    noise         draws
    accounting    the delta of a rho, certified
    filter        acceptance by floats within a proved margin
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.privacy.entropy import Entropy, Words
from spinney.privacy.noise.discrete import ExactLaw, arb_fraction, discrete_laplace

Integers = NDArray[np.int64]

# Beyond these, noise is none or no longer fits into 64 bits beside what it is added to.
SMALLEST_VARIANCE = Fraction(1, 2**20)
LARGEST_VARIANCE = Fraction(2**98)
# No delta below this is claimed: it is far above what the cut at ±2^61 could cost, and far below any of use.
SMALLEST_DELTA = Fraction(1, 2**1024)

LARGEST_NOISE = 2**61
_TINY = Fraction(1, 10**100)
PRECISION = 256
_KEPT_BITS = 64
# In units of 2^-32: the filter's chances are off by less than 2^-16 of them (gaussian.proof.md, filter).
_MARGIN = 2.0**-8
_REJECTED, _ACCEPTED, _UNDECIDED = 0, 1, 2
_N_PARTS = 64
# About 0.76 of all proposals are accepted where sigma is large, and at least 0.44 at any variance.
_PROPOSALS_PER_DRAW = 1.36
_BLOCK = 1 << 18


class DiscreteGaussian:
    """Discrete Gaussian noise of a variance parameter, which its true variance never exceeds."""

    def __init__(self, variance: Fraction) -> None:
        if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
            raise ParameterError(f"variance={short(variance)} is outside 2^-20..2^98; rescale what it is added to")
        self.variance = variance
        self._scale = math.isqrt(int(variance)) + 1  # t
        self._proposals = discrete_laplace(Fraction(1, self._scale))
        self._wholes, self._parts = exponentials()

    def draw(self, n: int, entropy: Entropy) -> Integers:
        """`n` independent draws."""
        drawn = np.empty(n, dtype=np.int64)
        n_drawn = 0
        while n_drawn < n:
            n_proposed = min(int((n - n_drawn) * _PROPOSALS_PER_DRAW) + 16, _BLOCK)
            accepted = self._accepted(n_proposed, entropy)[: n - n_drawn]
            drawn[n_drawn : n_drawn + len(accepted)] = accepted
            n_drawn += len(accepted)
        return drawn

    def _accepted(self, n: int, entropy: Entropy) -> Integers:
        """Those of `n` proposals that are accepted, in order."""
        proposed = self._proposals.draw(n, entropy)  # [step 1]
        words = entropy.words(n)
        verdicts = np.empty(n, dtype=np.uint8)
        centre, inverse = float(self.variance / self._scale), float(1 / (2 * self.variance))
        if _judge(proposed, words, centre, inverse, self._wholes, self._parts, verdicts):  # [step 2]
            for i in np.flatnonzero(verdicts == _UNDECIDED):
                verdicts[i] = self._settle(int(proposed[i]), int(words[i]), entropy)  # [step 3]
        accepted: Integers = proposed[verdicts == _ACCEPTED]
        return accepted

    def exponent(self, proposed: int) -> Fraction:
        """(|y| - variance/t)^2 / (2 variance): a proposal y is accepted with probability exp of minus this."""
        return (abs(proposed) - self.variance / self._scale) ** 2 / (2 * self.variance)

    def _settle(self, proposed: int, word: int, entropy: Entropy) -> int:
        exponent = self.exponent(proposed)
        law = ExactLaw(lambda: [(-arb_fraction(exponent)).exp()])
        return _ACCEPTED if law.refine(word, entropy) == 0 else _REJECTED


@lru_cache(maxsize=64)
def discrete_gaussian(variance: Fraction) -> DiscreteGaussian:
    """The noise of a variance; its tables are made once."""
    return DiscreteGaussian(variance)


# ----------------------------------------------------------------------------------------------------------- accounting


def delta_from_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta, rounded up, for which rho-zCDP implies (epsilon, delta)-DP.

    delta = exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a at nearly the best order a > 1; every order gives a
    valid delta, so floats may choose it.
    """
    if rho < 0 or epsilon < 0:
        raise ParameterError(f"rho={rho} and epsilon={epsilon} must not be negative")
    if rho == 0:
        return Fraction(0)
    above_one = Fraction(_best_order(rho, epsilon))  # a - 1
    order = 1 + above_one
    with flint.ctx.workprec(PRECISION):
        loss = arb_fraction(above_one * (order * rho - epsilon))
        log_delta = loss - arb_fraction(above_one).log() + arb_fraction(order) * arb_fraction(-1 / order).log1p()
        if not log_delta < 0:
            return Fraction(1)
        if log_delta < arb_fraction(SMALLEST_DELTA / 2).log():
            return SMALLEST_DELTA
        return max(SMALLEST_DELTA, min(Fraction(1), rounded_up(log_delta.exp())))


def _best_order(rho: Fraction, epsilon: Fraction) -> float:
    """About the best a - 1: the zero of the slope (2a - 1) rho - epsilon + ln(1 - 1/a), by bisection on its log."""
    r, e = (float(min(max(value, _TINY), 1 / _TINY)) for value in (rho, epsilon))
    low, high = -40.0, math.log(max(1.0, (e + 1) / (2 * r)))
    for _ in range(60):
        middle = (low + high) / 2
        x = math.exp(middle)
        slope = (2 * x + 1) * r - e + middle - math.log1p(x)
        low, high = (middle, high) if slope < 0 else (low, middle)
    return math.exp(high)


def rounded_up(ball: flint.arb) -> Fraction:
    """A fraction of 64 bits that is larger than any number in a positive ball."""
    mantissa, exponent = (int(part) for part in ball.upper().man_exp())
    excess = max(0, mantissa.bit_length() - _KEPT_BITS)
    return ((mantissa >> excess) + 1) * Fraction(2) ** (exponent + excess)


def short(value: Fraction) -> str:
    """A number for a message: fractions of many digits help nobody."""
    return f"{(Decimal(value.numerator) / value.denominator):.12g}"


# --------------------------------------------------------------------------------------------------------------- filter


@lru_cache(maxsize=1)
def exponentials() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """exp(-i) and exp(-i/64) for i < 64, correctly rounded but for a last-place doubt."""
    with flint.ctx.workprec(PRECISION):
        wholes = [float((-flint.arb(i)).exp()) for i in range(_N_PARTS)]
        parts = [float((-flint.arb(i) / _N_PARTS).exp()) for i in range(_N_PARTS)]
    return np.array(wholes), np.array(parts)


@compiled
def exp_of_minus(exponent: float, wholes: NDArray[np.float64], parts: NDArray[np.float64]) -> float:
    """exp(-exponent) within 12 roundings, with +, -, *, / and the tables of `exponentials` alone; 0 from 64 on."""
    if exponent >= _N_PARTS:
        return 0.0
    whole = int(exponent)
    rest = exponent - whole
    part = int(rest * _N_PARTS)
    r = rest - part / _N_PARTS
    # exp(-r) by its series: r < 1/64, so what is left out is below 2^-54.
    series = 1 - r * (1 - r / 2 * (1 - r / 3 * (1 - r / 4 * (1 - r / 5 * (1 - r / 6)))))
    return float(wholes[whole] * parts[part] * series)


@compiled
def _judge(
    proposed: Integers,
    words: Words,
    centre: float,
    inverse: float,
    wholes: NDArray[np.float64],
    parts: NDArray[np.float64],
    verdicts: NDArray[np.uint8],
) -> bool:
    """Accept or reject each proposal by its word where floats can tell for certain; True if some are left undecided."""
    any_undecided = False
    for i in range(proposed.size):
        distance = abs(np.float64(proposed[i])) - centre
        exponent = distance * distance * inverse
        chance = exp_of_minus(exponent, wholes, parts)
        scaled = chance * 4294967296.0
        word = np.float64(words[i])
        if word + 1 <= scaled - _MARGIN:
            verdicts[i] = _ACCEPTED
        elif word >= scaled + _MARGIN:
            verdicts[i] = _REJECTED
        else:
            verdicts[i] = _UNDECIDED
            any_undecided = True
        if abs(proposed[i]) >= LARGEST_NOISE:
            verdicts[i] = _REJECTED
    return any_undecided
