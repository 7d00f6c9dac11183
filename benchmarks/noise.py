"""Exact discrete Laplace noise: draws a second on one core, and against OpenDP in the same run."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from benchmarks.harness import Result, best_of, seconds
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.noise.discrete import DiscreteLaplace

N_DRAWS = 10_000_000
N_OPENDP = 100_000


def run(*, is_quick: bool = False) -> list[Result]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    results, n_draws = [], N_DRAWS // 10 if is_quick else N_DRAWS
    for scale in (2, 2000):
        noise, entropy = DiscreteLaplace(Fraction(1, scale)), SystemEntropy()
        draws = noise.draw(n_draws, entropy)
        a = np.exp(-1 / scale)
        deviation = draws.var() / (2 * a / (1 - a) ** 2) - 1
        assert abs(deviation) < 0.01, f"variance is off by {deviation:.1%}"
        assert abs(draws.mean()) < 5 * draws.std() / np.sqrt(n_draws), "mean is not 0"

        domain = dp.vector_domain(dp.atom_domain(T="i64"))
        opendp_noise = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
        zeros = [0] * N_OPENDP
        ours, theirs = best_of(lambda: noise.draw(n_draws, entropy), lambda: opendp_noise(zeros), rounds=3)  # noqa: B023
        theirs = min(theirs, seconds(lambda: opendp_noise(zeros)))  # noqa: B023
        rate = n_draws / ours
        results += [
            Result(f"noise, scale {scale}: million draws a second", rate / 1e6, 5, "M/s", is_floor=True),
            Result(f"noise, scale {scale}: against OpenDP", rate / (N_OPENDP / theirs), 40, "x", is_floor=True),
        ]
    return results
