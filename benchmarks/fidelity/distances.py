"""Kernel distances of releases on Balog et al.'s mixtures, each measured by 100,000 rows of the release.

In two dimensions the distance is `kernels.rkhs_distance`. In five, 10^10 pairs for every release would take the better
part of an hour, so the distance is read off the spectrum of the kernel: for w ~ N(0, 2 gamma I)

    ||f_P - f_Q||² = E |phi_P(w) - phi_Q(w)|²,     phi_P(w) = mean over rows p of exp(i w·p)

with the mean over 8,192 quasi-random w, the same for all releases. It misses the sum over pairs by less than two in a
hundred, which full runs assert where both are computed: on samples of 10,000 rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import KDTreeSynthesizer
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney_paper.experiments import mixtures
from spinney_paper.kernels import kernel_metric, rkhs_distance

Points = NDArray[np.float64]  # (n, d)

N_ROWS = 100_000  # of the sample that stands for a release
FEW_ROWS = 10_000
EPSILONS = {5: ("0.01", "0.1", "1", "10"), 2: ("0.01", "0.1", "1")}
_BLOCK = 2048


class Spectrum:
    """Distances from fixed rows by sampled frequencies."""

    def __init__(self, rows: Points, *, gamma: float, n_frequencies: int) -> None:
        from scipy.special import ndtri
        from scipy.stats import qmc

        uniforms = qmc.Sobol(rows.shape[1], seed=0).random(n_frequencies)
        self._centre = rows.mean(axis=0)
        self._frequencies = (ndtri(uniforms) * math.sqrt(2 * gamma)).T.astype(np.float32)  # (d, n_frequencies)
        self._waves = self._means(rows)

    def distance(self, rows: Points) -> float:
        """The distance of these rows from the fixed ones."""
        return math.sqrt(float((np.abs(self._means(rows) - self._waves) ** 2).mean()))

    def _means(self, rows: Points) -> NDArray[np.complex128]:
        """phi at every frequency. Single precision for each wave, double for the sums over blocks."""
        total = np.zeros(self._frequencies.shape[1], dtype=np.complex128)
        for start in range(0, len(rows), _BLOCK):
            phases = (rows[start : start + _BLOCK] - self._centre).astype(np.float32) @ self._frequencies
            total += np.cos(phases).sum(axis=0) + 1j * np.sin(phases).sum(axis=0)
        return total / len(rows)


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances over runs, by (dimensions, epsilon), and those of small samples."""

    releases: dict[tuple[int, str], list[float]]
    few_rows: list[float]  # five dimensions, epsilon 1


def measure(*, n_runs: int, n_frequencies: int, is_checked: bool = True) -> Distances:
    """Fit, sample, measure; every mean is printed with its range. Unchecked, nothing of five columns goes by pairs."""
    releases: dict[tuple[int, str], list[float]] = {}
    few_rows: list[float] = []
    for n_axes, epsilons in EPSILONS.items():
        rows, gamma = mixtures.balog(n_axes), mixtures.balog_gamma(n_axes)
        meter = _Meter(rows, gamma, n_frequencies)
        few_distance = meter.checked_distance if is_checked else meter.distance
        for epsilon in epsilons:
            found = releases[n_axes, epsilon] = []
            for run in range(n_runs):
                model = KDTreeSynthesizer(epsilon)
                model.fit(rows, mixtures.box_schema(n_axes), entropy=UnsafeSeededEntropy(run))
                if model.card_.is_empty:
                    found.append(math.sqrt(meter.kappa))  # nothing released: the distance to the empty set
                    continue
                found.append(meter.distance(model.sample(N_ROWS, seed=run)))
                if (n_axes, epsilon) == (5, "1"):
                    few_rows.append(few_distance(model.sample(FEW_ROWS, seed=run)))
            print(
                f"  D = {n_axes}, epsilon {epsilon:<5} {np.mean(found):.5f} "
                f"({min(found):.5f} to {max(found):.5f} in {n_runs} runs)",
                flush=True,
            )
    return Distances(releases, few_rows)


class _Meter:
    """Distances from one table: by pairs up to three dimensions, by frequencies beyond."""

    def __init__(self, rows: Points, gamma: float, n_frequencies: int) -> None:
        self._rows, self._gamma = rows, gamma
        self._spectrum = None
        if rows.shape[1] > 3:
            self._spectrum = Spectrum(rows, gamma=gamma, n_frequencies=n_frequencies)

    @cached_property
    def kappa(self) -> float:
        return kernel_metric(self._rows, self._rows, gamma=self._gamma)

    def by_pairs(self, rows: Any) -> float:
        return rkhs_distance(self._rows, rows, gamma=self._gamma, kappa_real=self.kappa)

    def distance(self, rows: Any) -> float:
        return self.by_pairs(rows) if self._spectrum is None else self._spectrum.distance(rows)

    def checked_distance(self, rows: Any) -> float:
        """The distance by pairs, the other way of measuring being held against it."""
        exact, sampled = self.by_pairs(rows), self.distance(rows)
        assert abs(sampled - exact) < 0.02 * exact, f"by pairs {exact}, by frequencies {sampled}"
        return exact
