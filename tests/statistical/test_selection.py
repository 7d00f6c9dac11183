"""Choices follow the exponential mechanism at the claimed rate, and would be caught at 0.7 and 1.3 times that rate."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.choices import choose
from support.goodness_of_fit import ACCEPT, REJECT, p_value

N_DRAWS = 30_000


def chances(scores: np.ndarray, rate: float) -> dict[int, float]:
    weights = np.exp(rate * (scores - scores.max()))
    return dict(enumerate((weights / weights.sum()).tolist()))


@pytest.mark.parametrize(
    ("scores", "rate"),
    [([0, 3, 1, 2, 2, 5], "1/2"), (list(range(0, 4000, 100)), "1/900"), ([-10, 10], "1/25")],
)
def test_choices_have_the_claimed_rate_and_no_other(scores, rate):
    """Places fit the law of the rate and are rejected at 0.7x and 1.3x, and where the order of the scores is lost."""
    scores = np.array(scores)
    entropy = UnsafeSeededEntropy(3)
    seen = Counter(choose(scores, Fraction(rate), entropy) for _ in range(N_DRAWS))
    claimed = float(Fraction(rate))
    assert p_value(seen, chances(scores, claimed)) > ACCEPT
    assert p_value(seen, chances(scores, 0.7 * claimed)) < REJECT
    assert p_value(seen, chances(scores, 1.3 * claimed)) < REJECT
    assert p_value(seen, chances(scores[::-1], claimed)) < REJECT
