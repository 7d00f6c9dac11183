"""Reduced sets: few weighted points whose random features add up to a given vector. Sees released numbers only.

Balog et al.'s Algorithm 2 finds points one by one. Each climbs from a public starting point, by Adam's steps, toward
the largest squared product of its features with what is still unexplained; its share is then taken out. At the end all
weights are fitted together by a lasso. Features are cos and sin of the same frequencies: every point has norm 1.

    phi(z) = sqrt(1/F) (cos <w_1, z>, ..., cos <w_F, z>, sin <w_1, z>, ..., sin <w_F, z>)
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled, compiled_loosely
from spinney.progress import progress
from spinney_paper.baselines.training import load

Floats = NDArray[np.float64]

# Adam's usual constants.
_KEEP_MEAN, _KEEP_SQUARE, _TINY = 0.9, 0.999, 1e-8
_BLOCK = 50


def features(points: Floats, frequencies: Floats) -> Floats:
    """Phi of every point: (n_points, 2 F)."""
    phases = points @ frequencies.T
    return np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(len(frequencies))


def find_points(
    target: Floats, frequencies: Floats, starts: Floats, *, low: Floats, high: Floats, n_steps: int, step: float
) -> Floats:
    """One point for every start, in order, each kept inside [low, high]."""
    n_frequencies = len(frequencies)
    scale = 1 / math.sqrt(n_frequencies)
    rest_cos, rest_sin = target[:n_frequencies] * scale, target[n_frequencies:] * scale
    by_axis = np.ascontiguousarray(frequencies.T)
    points = np.empty_like(starts)
    for first in progress(range(0, len(starts), _BLOCK), "reduced set", unit="points"):
        part = slice(first, min(first + _BLOCK, len(starts)))
        _descend(rest_cos, rest_sin, by_axis, starts[part], points[part], low, high, n_steps, step)
    return points


def fit_weights(points: Floats, frequencies: Floats, target: Floats, *, penalty: float) -> Floats:
    """Weights w that minimise ||target - sum_m w_m phi(z_m)||^2 + penalty sum_m |w_m|."""
    design = np.asfortranarray(features(points, frequencies).T)  # (2 F, n_points)
    lasso, warning = load("sklearn.linear_model").Lasso, load("sklearn.exceptions").ConvergenceWarning
    # With few points, products of all pairs first are the shorter way to the same weights.
    is_few = 2 * len(points) <= len(target)
    model = lasso(alpha=penalty / (2 * len(target)), fit_intercept=False, precompute=is_few)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", warning)  # as published: a thousand rounds and no more
        model.fit(design, target)
    weights: Floats = np.reshape(model.coef_, len(points)).astype(np.float64)
    return weights


@compiled_loosely
def _descend(
    rest_cos: Floats,
    rest_sin: Floats,
    frequencies: Floats,
    starts: Floats,
    points: Floats,
    low: Floats,
    high: Floats,
    n_steps: int,
    step: float,
) -> None:
    """Find points one after the other; `rest_cos` and `rest_sin` lose what each explains."""
    n_axes, n_frequencies = frequencies.shape
    cos, sin = np.empty(n_frequencies), np.empty(n_frequencies)
    slope, mean, square = np.empty(n_axes), np.empty(n_axes), np.empty(n_axes)
    for m in range(starts.shape[0]):
        z = starts[m].copy()
        mean[:] = 0.0
        square[:] = 0.0
        for k in range(1, n_steps + 1):
            _fill(z, frequencies, cos, sin)
            product = 0.0
            for j in range(n_frequencies):
                product += rest_cos[j] * cos[j] + rest_sin[j] * sin[j]
            for axis in range(n_axes):
                total = 0.0
                for j in range(n_frequencies):
                    total += frequencies[axis, j] * (rest_sin[j] * cos[j] - rest_cos[j] * sin[j])
                slope[axis] = -2.0 * product * total
            for axis in range(n_axes):
                mean[axis] = _KEEP_MEAN * mean[axis] + (1 - _KEEP_MEAN) * slope[axis]
                square[axis] = _KEEP_SQUARE * square[axis] + (1 - _KEEP_SQUARE) * slope[axis] ** 2
                ahead = mean[axis] / (1 - _KEEP_MEAN**k)
                size = math.sqrt(square[axis] / (1 - _KEEP_SQUARE**k)) + _TINY
                z[axis] = min(max(z[axis] - step * ahead / size, low[axis]), high[axis])
        _fill(z, frequencies, cos, sin)
        product = 0.0
        for j in range(n_frequencies):
            product += rest_cos[j] * cos[j] + rest_sin[j] * sin[j]
        for j in range(n_frequencies):
            rest_cos[j] -= product * cos[j] / n_frequencies
            rest_sin[j] -= product * sin[j] / n_frequencies
        points[m] = z


@compiled
def _fill(z: Floats, frequencies: Floats, cos: Floats, sin: Floats) -> None:
    """Cos and sin of all phases, by half angles and Taylor sums to about eight digits: a loop that becomes vectors."""
    n_axes, n_frequencies = frequencies.shape
    for j in range(n_frequencies):
        turns = 0.0
        for axis in range(n_axes):
            turns += z[axis] * frequencies[axis, j]
        turns *= 0.15915494309189535
        half = math.pi * (turns - np.rint(turns))
        h = half * half
        s = half * (
            1 + h * (-1 / 6 + h * (1 / 120 + h * (-1 / 5040 + h * (1 / 362880 + h * (-1 / 39916800 + h / 6227020800)))))
        )
        c = 1 + h * (-1 / 2 + h * (1 / 24 + h * (-1 / 720 + h * (1 / 40320 + h * (-1 / 3628800 + h / 479001600)))))
        sin[j] = 2 * s * c
        cos[j] = 1 - 2 * s * s
