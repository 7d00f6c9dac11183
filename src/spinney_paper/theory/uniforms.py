"""Boxes that imitate a standard Gaussian: supplement H, without noise and in one dimension.

2k+1 boxes of width 2C stand side by side around 0, the i-th on [(2i-1)C, (2i+1)C) for i = -k..k, with weights w_i that
add up to 1: the density is w_i / 2C inside box i. (The supplement prints w_i, which is no density.)

Its divergence is KL(boxes ‖ Gaussian). The other direction, which the supplement defines (with a minus sign too many),
is infinite: boxes end and a Gaussian does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.errors import ParameterError
from spinney_paper.theory.checks import Number, positive, whole

Weights = NDArray[np.float64]  # (2k+1,)


def best_box_weights(half_width: Number, *, n_side: int) -> Weights:
    """The weights with which 2k+1 boxes of width 2C are nearest to N(0, 1). Supplement H.

    w_i is proportional to exp(-2 i² C²). Of all weights these have the smallest `boxes_kl`.
    """
    c = positive(half_width, "half_width")
    weights = np.exp(-2 * (_places(n_side) * c) ** 2)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def best_box_half_width(n_side: int) -> float:
    """The half-width C at which 2k+1 boxes with their best weights are nearest to N(0, 1). Supplement H.

    There the boxes have variance 1: with best weights d KL / dC = (variance - 1) / C, and the variance is
    C²/3 + 4C² Σ w_i i². The supplement announces the width but does not give it. For k >= 1 there is a second, worse
    minimum near 1.6, where the middle box stands alone; for k = 0 it is the only one, C = √3.
    """
    if whole(n_side, "n_side", at_least=0) == 0:
        return math.sqrt(3)
    low, high = 0.0, 1.0  # variance 0 at C = 0, above 1 at C = 1
    while (middle := (low + high) / 2) not in (low, high):
        weights = best_box_weights(middle, n_side=n_side)
        variance = middle**2 * (1 / 3 + 4 * float(weights @ _places(n_side) ** 2))
        low, high = (middle, high) if variance < 1 else (low, middle)
    return middle


def boxes_kl(weights: ArrayLike, *, half_width: Number) -> float:
    """KL(boxes ‖ N(0, 1)) = Σ w_i log(w_i / 2C) + log(2π)/2 + Σ w_i C² (12 i² + 1) / 6. Supplement H."""
    w, c = _checked(weights), positive(half_width, "half_width")
    filled = w[w > 0]
    entropy = float(filled @ (np.log(filled) - math.log(2 * c)))
    return entropy + math.log(2 * math.pi) / 2 + c**2 / 6 * float(w @ (12 * _places(len(w) // 2) ** 2 + 1))


def boxes_mmd(weights: ArrayLike, *, half_width: Number, bandwidth: Number = 1.0) -> float:
    """MMD of boxes and N(0, 1) under exp(-(x-y)²/2γ²), γ the bandwidth. Supplement H, with the boxes integrated out.

    MMD² = γ/√(2+γ²) - 2 Σ w_i E k(Z, U_i) + Σ w_i w_j E k(U_i, U_j), where
    E k(Z, U_i) = γ√(π/2) [erf(b/s) - erf(a/s)] / 2C on the box [a, b), s = √(2 + 2γ²), and
    E k(U_i, U_j) = [G(D+2C) - 2G(D) + G(D-2C)] / 4C² at distance D = 2C(i-j), with
    G(z) = γ√(π/2) z erf(z/γ√2) + γ² exp(-z²/2γ²).
    """
    w, c, gamma = _checked(weights), positive(half_width, "half_width"), positive(bandwidth, "bandwidth")
    places = _places(len(w) // 2)
    edges = np.append(places - 0.5, places[-1] + 0.5) * 2 * c
    steps = np.diff(_erf(edges / math.sqrt(2 + 2 * gamma**2)))
    cross = gamma * math.sqrt(math.pi / 2) * float(w @ steps) / (2 * c)

    z = 2 * c * np.arange(-1, len(w) + 1)
    twice = gamma * math.sqrt(math.pi / 2) * z * _erf(z / (gamma * math.sqrt(2))) + gamma**2 * np.exp(
        -((z / gamma) ** 2) / 2
    )
    by_distance = np.diff(twice, 2) / (4 * c**2)  # (2k+1,): distances 0, 2C, 4C, ...
    apart = np.abs(np.subtract.outer(np.arange(len(w)), np.arange(len(w))))
    return _root(gamma / math.sqrt(2 + gamma**2) - 2 * cross + float(w @ by_distance[apart] @ w))


def centres_mmd(weights: ArrayLike, *, half_width: Number, bandwidth: Number = 1.0) -> float:
    """MMD of weighted box centres and N(0, 1) under exp(-(x-y)²/2γ²): the paper's output in place of its boxes.

    MMD² = γ/√(2+γ²) - 2γ/√(1+γ²) Σ w_i exp(-c_i²/2(1+γ²)) + Σ w_i w_j exp(-(c_i-c_j)²/2γ²), c_i = 2Ci.
    """
    w, c, gamma = _checked(weights), positive(half_width, "half_width"), positive(bandwidth, "bandwidth")
    centres = 2 * c * _places(len(w) // 2)
    cross = gamma / math.sqrt(1 + gamma**2) * float(w @ np.exp(-(centres**2) / (2 + 2 * gamma**2)))
    kernel = np.exp(-(np.subtract.outer(centres, centres) ** 2) / (2 * gamma**2))
    return _root(gamma / math.sqrt(2 + gamma**2) - 2 * cross + float(w @ kernel @ w))


def _places(n_side: int) -> Weights:
    """-k, ..., k."""
    n_side = whole(n_side, "n_side", at_least=0)
    return np.arange(-n_side, n_side + 1, dtype=np.float64)


def _checked(weights: ArrayLike) -> Weights:
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or len(w) % 2 == 0:
        raise ParameterError("weights are not an odd number of numbers in a row; give one per box, -k to k")
    if not (np.isfinite(w).all() and (w >= 0).all() and math.isclose(w.sum(), 1, rel_tol=1e-9)):
        raise ParameterError("weights are negative somewhere or do not add up to 1; divide them by their sum")
    return w


def _erf(x: NDArray[np.floating[Any]]) -> Weights:
    return np.array([math.erf(value) for value in x])


def _root(squared: float) -> float:
    return math.sqrt(max(squared, 0.0))  # rounding can take a distance of nothing below 0
