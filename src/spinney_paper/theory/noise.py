"""How large noise gets: the Laplace facts of supplement A, for the paper's continuous law and for Spinney's integers.

Both laws have the scale factor/epsilon: continuous Lap(b) has density exp(-|x|/b)/2b; the discrete one has
P(X = k) = (1-a)/(1+a) a^|k| with a = exp(-1/b). The theorems use one fact only: with probability 1 - delta none of J
noises is larger than `largest_noise`.
"""

from __future__ import annotations

import math

from spinney_paper.theory.checks import Noise, Number, chance, noise_law, noise_rate, not_negative, whole


def laplace_tail(size: Number, *, epsilon: Number, factor: int = 2) -> float:
    """P(X >= size) for X ~ Lap(factor/epsilon) and size >= 0: exp(-size epsilon/factor) / 2. Remark 1."""
    return math.exp(-not_negative(size, "size") * noise_rate(epsilon, factor)) / 2


def laplace_mean_size(*, epsilon: Number, factor: int = 2) -> float:
    """E|X| for X ~ Lap(factor/epsilon): the scale, factor/epsilon.

    Remark 3 prints 1/epsilon for Lap(2/epsilon); it is 2/epsilon.
    """
    return 1 / noise_rate(epsilon, factor)


def discrete_laplace_tail(size: int, *, epsilon: Number, factor: int = 2) -> float:
    """P(X >= size) for Spinney's integer noise and a whole size >= 1: a^size / (1+a), a = exp(-epsilon/factor)."""
    rate = noise_rate(epsilon, factor)
    return math.exp(-rate * whole(size, "size", at_least=1)) / (1 + math.exp(-rate))


def discrete_laplace_mean_size(*, epsilon: Number, factor: int = 2) -> float:
    """E|X| for Spinney's integer noise: 2a / (1-a²) = 1 / sinh(epsilon/factor), below the continuous factor/epsilon."""
    a = math.exp(-noise_rate(epsilon, factor))
    return 2 * a / -math.expm1(2 * math.log(a)) if a > 0 else 0.0


def largest_noise(n_bins: int, *, epsilon: Number, delta: Number, factor: int = 2, noise: Noise = "discrete") -> float:
    """A size beta that all of `n_bins` noises stay within, |X| <= beta, with probability at least 1 - delta.

    Continuous: beta = factor/epsilon · log(J/delta), from J P(|X| > beta) = delta. Discrete: the smallest whole beta
    with J · 2 a^(beta+1) / (1+a) <= delta.

    Lemma 17 prints 4/epsilon · log(1/delta), which needs J <= 1/delta and is the same number at J = 1/delta. The
    condition is missing from theorems 3 and 6; with J in the logarithm the statements hold for every delta.
    """
    rate, n_bins = noise_rate(epsilon, factor), whole(n_bins, "n_bins", at_least=1)
    log_odds = math.log(n_bins) - math.log(chance(delta, "delta"))
    if noise_law(noise) == "laplace":
        return log_odds / rate
    log_odds += math.log(2) - math.log1p(math.exp(-rate))
    return max(0.0, math.ceil(log_odds / rate) - 1.0)
