"""Boxes against a Gaussian: closed forms meet numerical integration, and the best boxes are best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from spinney_paper import theory

CASES = [(0, 1.5, 1.0), (1, 0.7, 0.5), (3, 0.4, 2.0), (5, 0.27, 1.0)]


def lopsided(n_side: int) -> np.ndarray:
    """Weights without symmetry, one of them 0."""
    weights = np.arange(1.0, 2 * n_side + 2)
    weights[-1] = 0 if n_side else 1
    return weights / weights.sum()


def boxes(weights: np.ndarray, c: float) -> list[tuple[float, float, float]]:
    """(weight, from, to) of every box."""
    n_side = len(weights) // 2
    return [(w, (2 * i - 1) * c, (2 * i + 1) * c) for w, i in zip(weights, range(-n_side, n_side + 1), strict=True)]


@pytest.mark.parametrize(("n_side", "c", "bandwidth"), CASES)
def test_kl_is_the_integral(n_side, c, bandwidth):
    """KL(boxes ‖ N) by integration. The printed sign makes it negative, the printed density does not add up to 1."""
    weights = lopsided(n_side)
    total = 0.0
    for w, low, high in boxes(weights, c):
        if w:
            q = w / (2 * c)
            total += integrate.quad(lambda x, q=q: q * (math.log(q) - stats.norm.logpdf(x)), low, high)[0]
    assert theory.boxes_kl(weights, half_width=c) == pytest.approx(total, rel=1e-10)
    assert total > 0 > -total
    assert sum(w * (high - low) for w, low, high in boxes(weights, c)) != pytest.approx(1)


@pytest.mark.parametrize(("n_side", "c", "bandwidth"), CASES)
def test_mmd_is_the_integral(n_side, c, bandwidth):
    """MMD² = ∫∫ k (p - q)(p - q), integrated box by box for boxes and term by term for centres."""
    weights = lopsided(n_side)

    def kernel(x, y):
        return math.exp(-((x - y) ** 2) / (2 * bandwidth**2))

    def gauss(x):
        return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

    def smoothed(y):
        return integrate.quad(lambda x: gauss(x) * kernel(x, y), -12, 12, points=[y])[0]

    own = integrate.quad(lambda y: gauss(y) * smoothed(y), -10, 10)[0]
    found = boxes(weights, c)
    cross = sum(w * integrate.quad(smoothed, low, high)[0] / (2 * c) for w, low, high in found if w)
    among = 0.0
    for v, low, high in found:
        for w, *other in found:
            if v and w:
                among += v * w * integrate.dblquad(kernel, *other, low, high)[0] / (4 * c**2)
    assert theory.boxes_mmd(weights, half_width=c, bandwidth=bandwidth) ** 2 == pytest.approx(
        own - 2 * cross + among, abs=1e-8
    )

    centres = [(low + high) / 2 for _, low, high in found]
    cross = sum(w * smoothed(y) for w, y in zip(weights, centres, strict=True))
    among = sum(
        v * w * kernel(x, y)
        for v, x in zip(weights, centres, strict=True)
        for w, y in zip(weights, centres, strict=True)
    )
    assert theory.centres_mmd(weights, half_width=c, bandwidth=bandwidth) ** 2 == pytest.approx(
        own - 2 * cross + among, abs=1e-8
    )


@pytest.mark.parametrize(("n_side", "c"), [(1, 0.7), (5, 0.27), (5, 1.0)])
def test_best_weights_are_best(n_side, c):
    """Whatever way weights are moved, the divergence grows."""
    rng = np.random.default_rng(0)
    weights = theory.best_box_weights(c, n_side=n_side)
    best = theory.boxes_kl(weights, half_width=c)
    assert weights.sum() == pytest.approx(1)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            moved = weights * np.exp(size * rng.normal(size=len(weights)))
            assert theory.boxes_kl(moved / moved.sum(), half_width=c) > best


def best_kl(c: float, n_side: int) -> float:
    return theory.boxes_kl(theory.best_box_weights(c, n_side=n_side), half_width=c)


@pytest.mark.parametrize("n_side", [0, 1, 2, 5, 20, 100])
def test_the_best_width_is_best(n_side):
    """No width on a fine grid does better, near or far, and the boxes have variance 1."""
    c = theory.best_box_half_width(n_side)
    best = best_kl(c, n_side)
    grid = np.geomspace(1e-3, 10, 3000)
    assert best <= min(best_kl(x, n_side) for x in grid)
    assert best_kl(c * 1.01, n_side) > best < best_kl(c / 1.01, n_side)
    weights = theory.best_box_weights(c, n_side=n_side)
    variance = sum(w * (high**3 - low**3) / (6 * c) for w, low, high in boxes(weights, c))
    assert variance == pytest.approx(1)


def test_more_boxes_come_nearer():
    """Divergence and both distances fall as boxes are added at the best width."""
    for measure in (theory.boxes_kl, theory.boxes_mmd, theory.centres_mmd):
        values = []
        for n_side in (0, 1, 2, 5, 10, 50):
            c = theory.best_box_half_width(n_side)
            values.append(measure(theory.best_box_weights(c, n_side=n_side), half_width=c))
        assert values == sorted(values, reverse=True)
