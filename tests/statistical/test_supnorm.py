"""Sup-norm draws follow their law at the claimed rate and at no other: the norm, one coordinate, signs, places."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise import supnorm
from spinney.privacy.noise.discrete import DiscreteLaplace
from spinney.privacy.noise.supnorm import SupNormNoise
from support.goodness_of_fit import ACCEPT, REJECT, p_value, p_value_of_noise

# From noise that is mostly zero to noise of more than 40 bits.
SCALES = ["1/5", "1/2", "1", "30", "2000", str(2**40)]
CASES = [*product(SCALES, [1, 2, 5, 20]), ("1/10", 5), ("1/10", 20)]
N_ROWS = 100_000
N_CELLS = 40


def draws_of(scale: str, n_axes: int, seed: int, n: int = N_ROWS) -> NDArray[np.int64]:
    return SupNormNoise(1 / Fraction(scale), n_axes).draw(n, UnsafeSeededEntropy(seed))


def tails(scale: float, k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(norm >= m) and P(|coordinate| >= m) for m = 0, 1, ..., summed from the law."""
    m = np.arange(int((k + 60) * scale) + 60)
    cube = np.exp(k * np.log(2 * m + 1) - m / scale - k * np.log(2 * k * scale + 1) + k)
    reach = cube / cube.sum()  # P(R = m)
    per_number = np.cumsum((reach / (2 * m + 1))[::-1])[::-1]  # P(coordinate = m)
    coordinate = np.where(m == 0, per_number, 2 * per_number)
    shell = cube - np.exp(-1 / scale) * np.concatenate([[0.0], cube[:-1]])  # a^m times (2m+1)^k - (2m-1)^k
    return tuple(np.cumsum((mass / mass.sum())[::-1])[::-1] for mass in (shell, coordinate))


def p_value_of_tail(seen: NDArray[np.int64], scale: float, k: int, *, of_norm: bool) -> float:
    """p-value of norms (or sizes of a coordinate) in cells of similar chance; gamma laws where the scale is huge."""
    if scale < 1e4:
        tail = tails(scale, k)[0 if of_norm else 1]
        edges = np.unique(np.searchsorted(-tail, -(1 - np.arange(1, N_CELLS) / N_CELLS)))
        edges = edges[(edges > 0) & (edges < len(tail))]
        edges = np.unique(np.concatenate([edges, [1, 2, 3]]))
        above = tail[edges]
    else:
        x = np.linspace(0.02, 2.5, N_CELLS) * k if of_norm else np.linspace(0.02, 1.5, N_CELLS) * (k + 1)
        edges = np.round(x * scale).astype(np.int64)
        size_above = special.gammaincc(k + 1, x) - x / k * special.gammaincc(k, x)
        above = special.gammaincc(k, x) if of_norm else size_above
    chances = -np.diff(np.concatenate([[1.0], above, [0.0]]))
    counts = np.bincount(np.searchsorted(edges, seen, side="right"), minlength=len(edges) + 1)
    return p_value(dict(enumerate(counts.tolist())), dict(enumerate(chances.tolist())))


@pytest.mark.parametrize(("scale", "n_axes"), CASES)
def test_noise_has_the_claimed_scale_and_no_other(scale: str, n_axes: int) -> None:
    """Norms and single coordinates fit at the claimed scale and are rejected at 0.7x and 1.3x."""
    drawn, claimed = draws_of(scale, n_axes, seed=1), float(Fraction(scale))
    for sizes, of_norm in ((np.abs(drawn).max(axis=1), True), (np.abs(drawn[:, -1]), False)):
        assert p_value_of_tail(sizes, claimed, n_axes, of_norm=of_norm) > ACCEPT
        assert p_value_of_tail(sizes, 0.7 * claimed, n_axes, of_norm=of_norm) < REJECT
        assert p_value_of_tail(sizes, 1.3 * claimed, n_axes, of_norm=of_norm) < REJECT


@pytest.mark.parametrize("scale", ["1/2", "30"])
def test_independent_noise_on_each_axis_is_another_law(scale: str) -> None:
    """Discrete Laplace noise of the same rate, coordinate by coordinate, is told apart; for one axis it is the same."""
    rate = 1 / Fraction(scale)
    each = DiscreteLaplace(rate).draw(2 * N_ROWS, UnsafeSeededEntropy(2)).reshape(-1, 2)
    assert p_value_of_tail(np.abs(each).max(axis=1), float(Fraction(scale)), 2, of_norm=True) < REJECT
    assert p_value_of_noise(draws_of(scale, 1, seed=2)[:, 0], float(Fraction(scale))) > ACCEPT


@pytest.mark.parametrize(("scale", "n_axes"), [("1/2", 2), ("1", 2), ("1", 3)])
def test_every_point_has_its_chance(scale: str, n_axes: int) -> None:
    """Near the origin, point by point: those of one norm are equally likely, and a step of it costs exp(-rate)."""
    reach, k = 2, n_axes
    drawn = draws_of(scale, k, seed=3)

    def p(claimed: float) -> float:
        tail = tails(claimed, k)[0]
        points = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * k), axis=-1).reshape(-1, k)
        n_points = {m: (2 * m + 1) ** k - max(2 * m - 1, 0) ** k for m in range(reach + 1)}
        chances = {
            tuple(z): float(tail[m] - tail[m + 1]) / n_points[m]
            for z, m in zip(points.tolist(), np.abs(points).max(axis=1).tolist(), strict=True)
        }
        seen = Counter(tuple(z) if max(map(abs, z)) <= reach else "far" for z in drawn.tolist())
        return p_value(seen, {**chances, "far": float(tail[reach + 1])})

    claimed = float(Fraction(scale))
    assert p(claimed) > ACCEPT
    assert p(0.7 * claimed) < REJECT
    assert p(1.3 * claimed) < REJECT


@pytest.mark.parametrize("scale", ["1", "30", str(2**40)])
def test_signs_are_independent(scale: str) -> None:
    """All eight sign patterns of three non-zero coordinates are equally common; a pattern that is shared is noticed."""
    drawn = draws_of(scale, 3, seed=4)
    drawn = drawn[(drawn != 0).all(axis=1)]

    def p(vectors: NDArray[np.int64]) -> float:
        seen = Counter(((vectors > 0) @ np.array([1, 2, 4])).tolist())
        return p_value(seen, dict.fromkeys(range(8), 1 / 8))

    assert p(drawn) > ACCEPT
    assert p(np.abs(drawn) * np.where(drawn[:, :1] + drawn[:, 1:2] > 0, 1, -1)) < REJECT


@pytest.mark.parametrize("scale", ["1", "30", str(2**40)])
def test_rows_are_independent(scale: str) -> None:
    """Neither neighbouring rows nor two calls are related. Words used twice would be noticed; a shared reach is."""
    law, entropy = SupNormNoise(1 / Fraction(scale), 3), UnsafeSeededEntropy(5)
    first, second = law.draw(N_ROWS, entropy), law.draw(N_ROWS, entropy)

    def p(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
        cuts = np.array([-1, 1, 3]) * float(Fraction(scale)) + 0.5
        table = np.zeros((4, 4))
        np.add.at(table, (np.searchsorted(cuts, one), np.searchsorted(cuts, other)), 1)
        return float(stats.chi2_contingency(table).pvalue)

    assert p(first[:, 0], second[:, 0]) > ACCEPT
    assert p(first[:-1, 2], first[1:, 0]) > ACCEPT
    assert p(first[:, 0], law.draw(N_ROWS, UnsafeSeededEntropy(5))[:, 0]) < REJECT
    assert p(first[:, 0], first[:, 1]) < REJECT  # coordinates of one vector share its reach


@pytest.mark.parametrize(("scale", "n_axes"), [("1/2", 3), ("1", 1), ("30", 2), ("2000", 8), (str(2**40), 5)])
def test_draws_have_the_stated_variance(scale: str, n_axes: int) -> None:
    """The mean square of a coordinate lies within four standard errors, and beyond twenty at 1.3 times the rate."""
    squares = draws_of(scale, n_axes, seed=6)[:, 0].astype(float) ** 2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - SupNormNoise(1 / Fraction(scale), n_axes).variance()) < 4 * error
    slower = SupNormNoise(Fraction(13, 10) / Fraction(scale), n_axes).variance()
    assert abs(squares.mean() - slower) > 20 * error


@pytest.mark.parametrize("scale", ["1", "30", str(2**40)])
def test_the_slow_path_draws_the_same_law(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every row sent through whole numbers of any size, norms and coordinates still fit, and reject 1.3x."""
    monkeypatch.setattr(supnorm, "_WIDE", 0)
    drawn, claimed = draws_of(scale, 2, seed=7, n=20_000), float(Fraction(scale))
    for sizes, of_norm in ((np.abs(drawn).max(axis=1), True), (np.abs(drawn[:, 0]), False)):
        assert p_value_of_tail(sizes, claimed, 2, of_norm=of_norm) > ACCEPT
        assert p_value_of_tail(sizes, 1.3 * claimed, 2, of_norm=of_norm) < REJECT
