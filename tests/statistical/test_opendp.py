"""Our noise and OpenDP's discrete Laplace noise are samples of one law.

OpenDP draws from the operating system and cannot be seeded, so acceptance here has to be generous: a p-value
above 1e-6 misses once in a million runs. A wrong scale is still rejected beyond doubt.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.discrete import DiscreteLaplace
from support.goodness_of_fit import REJECT, p_value_of_two

GENEROUS = 1e-6
N_DRAWS = 50_000


@pytest.fixture(scope="module", autouse=True)
def _contributed() -> None:
    dp.enable_features("contrib")


def opendp_draws(scale: float) -> NDArray[np.int64]:
    """Noise that OpenDP adds to a vector of zeros."""
    domain = dp.vector_domain(dp.atom_domain(T=int))
    measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    return np.array(measure([0] * N_DRAWS))


def our_draws(scale: Fraction) -> NDArray[np.int64]:
    return DiscreteLaplace(1 / scale).draw(N_DRAWS, UnsafeSeededEntropy(7))


def in_cells(draws: NDArray[np.int64], scale: float) -> Counter[int]:
    """Draws counted in cells of a fifth of the scale."""
    return Counter((draws // max(1, round(scale / 5))).tolist())


@pytest.mark.parametrize("scale", ["0.3", "2", "37", "2000", "1000000"])
def test_same_law_as_opendp_at_the_same_scale_only(scale: str) -> None:
    """Two samples at one scale agree; ours at 0.7x and 1.3x do not agree with OpenDP's."""
    claimed = float(scale)
    theirs = in_cells(opendp_draws(claimed), claimed)
    assert p_value_of_two(in_cells(our_draws(Fraction(scale)), claimed), theirs) > GENEROUS
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        assert p_value_of_two(in_cells(our_draws(Fraction(scale) * factor), claimed), theirs) < REJECT
