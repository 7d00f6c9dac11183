"""Intervals by ranks: how far the noise of a released number reaches, where its law has no short formula.

What was released is truth + T, where T is a fixed function of noise whose law is known. Draw the noise N times more by
the same law. A rank r among the sizes of these copies is too small for the law with a probability that a binomial law
tells exactly; r is taken so high that this happens once in a million. So the half-width holds by the law of the noise,
given the copies that were drawn, and a release that is asked a thousand times has the same promise each time.
Where a sum has a short formula, `reach` needs no copies. Proof: ranks.proof.md; the labels [step 1] ... are its steps.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError

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
