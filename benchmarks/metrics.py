"""Kernel sums against scikit-learn's `rbf_kernel` in blocks, and the published kernel means of 10^10 pairs."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness import Result, best_of, seconds
from spinney_paper.experiments.mixtures import balog
from spinney_paper.kernels import kernel_metric

N_POINTS, BLOCK = 20_000, 1_000
# Dimensions, what is wanted, the published mean of the full matrix.
CASES = ((2, 10.0, 0.21215986369427045), (5, 1.5, 0.1672984963245975))


def in_blocks(first: np.ndarray, second: np.ndarray, gamma: float) -> float:
    """The mean of the kernel matrix the way one would do it with scikit-learn."""
    sums = [rbf_kernel(first[i : i + BLOCK], second, gamma=gamma).sum() for i in range(0, len(first), BLOCK)]
    return float(sum(sums)) / len(first) / len(second)


def run(*, is_quick: bool = False) -> list[Result]:
    results, n_points = [], N_POINTS // 10 if is_quick else N_POINTS
    for n_axes, wanted, published in CASES:
        points, gamma = balog(n_axes), 1e-4 / n_axes
        first, second = points[:n_points], points[n_points : 2 * n_points]
        kernel_metric(first[:2000], second, gamma=gamma)  # compile
        kernel_metric(first, first, gamma=gamma, method="direct")
        for one, two, what in ((first, second, "two sets"), (first, first, "one set")):
            assert abs(kernel_metric(one, two, gamma=gamma) - in_blocks(one, two, gamma)) < 1e-12
            theirs, ours = best_of(
                lambda one=one, two=two: in_blocks(one, two, gamma),  # noqa: B023
                lambda one=one, two=two: kernel_metric(one, two, gamma=gamma),  # noqa: B023
                rounds=3,
            )
            name = f"kernel mean of 20k x 20k, d = {n_axes}, {what}: faster than sklearn"
            print(f"  d = {n_axes}, {what}: sklearn {theirs:.3f} s, ours {ours:.4f} s")
            results.append(Result(name, theirs / ours, wanted, "x", is_floor=True))
        if is_quick:
            continue
        means: list[float] = []
        whole = seconds(lambda: means.append(kernel_metric(points, points, gamma=gamma)))  # noqa: B023
        print(f"  d = {n_axes}, 100k x 100k: {whole:.3f} s, {means[0] - published:+.1e} off the published mean")
        results.append(Result(f"published mean of 100k x 100k, d = {n_axes}", abs(means[0] - published), 1e-9, "off"))
    return results
