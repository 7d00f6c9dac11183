"""Sums with discrete Gaussian noise for an (epsilon, delta) of their own, as the rival systems release them.

A variance is refused that is too small for the claim, by the conversion from rho-zCDP, which is certified
(`spinney.privacy.noise.gaussian`). Spinney's own releases pay for such vectors in a composed charge. Proof:
vector.proof.md; the labels [step 1] ... are its steps.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import DiscreteGaussianVector
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.gaussian import (
    LARGEST_NOISE,
    PRECISION,
    SMALLEST_DELTA,
    delta_from_rho,
    discrete_gaussian,
    rounded_up,
    short,
)

Integers = NDArray[np.int64]


def release_vector(
    true_sums: Integers,
    *,
    sensitivity_squared: Fraction,
    variance: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    ledger: Ledger,
    entropy: Entropy,
    what: str,
) -> Integers:
    """The sums with independent discrete Gaussian noise. Charges (epsilon, delta) first.

    `sensitivity_squared` bounds the squared Euclidean distance between the sums of neighbouring tables, in the
    ledger's unit. A variance too small for the claim is refused before anything is charged.
    """
    if true_sums.dtype != np.int64:
        raise ParameterError(f"true_sums of type {true_sums.dtype} cannot take exact noise; round them to int64 first")
    _check_claim(epsilon, delta, sensitivity_squared)
    noise = discrete_gaussian(variance)
    if delta_from_rho(sensitivity_squared / (2 * variance), epsilon) > delta:
        # A billionth more, so that the number still suffices after rounding for the message.
        remedy = least_variance(epsilon, delta, sensitivity_squared) * (1 + Fraction(1, 10**9))
        raise BudgetError(
            f"variance={short(variance)} is too small for epsilon={short(epsilon)}, delta={short(delta)}; "
            f"take at least {short(remedy)}"
        )
    ledger.charge(  # [step 1] charge before noise
        DiscreteGaussianVector(epsilon, delta, sensitivity_squared, variance, note=what)
    )
    brand_unless_system(ledger, entropy, what)

    within = true_sums.clip(-LARGEST_NOISE, LARGEST_NOISE)  # [step 2] brings no two tables further apart
    noisy_sums: Integers = within + noise.draw(within.size, entropy).reshape(within.shape)
    return noisy_sums


def rho_from_delta(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, for which rho-zCDP implies (epsilon, delta)-DP by `delta_from_rho`."""
    _check_claim(epsilon, delta)
    low = Fraction(1)
    while delta_from_rho(low, epsilon) > delta:
        low /= 2
    high = 2 * low
    while delta_from_rho(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(40):  # certified at every step: `low` always passes
        middle = (low + high) / 2
        low, high = (middle, high) if delta_from_rho(middle, epsilon) <= delta else (low, middle)
    return low


def least_variance(epsilon: Fraction, delta: Fraction, sensitivity_squared: Fraction) -> Fraction:
    """The least variance that `release_vector` accepts for (epsilon, delta), to about twelve digits, rounded up."""
    _check_claim(epsilon, delta, sensitivity_squared)
    return sensitivity_squared / (2 * rho_from_delta(epsilon, delta))


def classical_variance(epsilon: Fraction, delta: Fraction, sensitivity_squared: Fraction) -> Fraction:
    """The textbook's 2 ln(1.25/delta) sensitivity^2 / epsilon^2, rounded up. Its theorem holds for epsilon <= 1."""
    _check_claim(epsilon, delta, sensitivity_squared)
    with flint.ctx.workprec(PRECISION):
        factor = rounded_up(2 * arb_fraction(Fraction(5, 4) / delta).log())
    return factor * sensitivity_squared / epsilon**2


def _check_claim(epsilon: Fraction, delta: Fraction, sensitivity_squared: Fraction = Fraction(1)) -> None:
    if epsilon <= 0:
        raise ParameterError(f"epsilon={epsilon} is not positive; a release needs some budget")
    if not SMALLEST_DELTA <= delta < 1:
        raise ParameterError(f"delta={short(delta)} is not between 2^-1024 and 1; Gaussian noise needs one, say 1e-6")
    if sensitivity_squared <= 0:
        raise ParameterError(f"sensitivity_squared={sensitivity_squared} is not positive; give the bound that holds")
