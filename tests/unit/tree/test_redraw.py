"""Leaf moments with fresh noise: its law, and tables drawn from them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from golden import make
from spinney.release.card import RowCount
from spinney.tree.release import moments as redraw
from spinney.tree.release.moments import leaf_noise, redrawn_count, redrawn_moments


@pytest.fixture(scope="module")
def release():
    points, schema = make.reals(2)
    model = sp.KDTreeSynthesizer("1").fit(points, schema, entropy=sp.UnsafeSeededEntropy(1))
    return model.release_


def test_the_noise_of_a_leaf_has_its_law(release):
    """Cell by cell of a cube, at a rate at which few steps occur; a rate of a tenth more or less is told apart."""
    moments = replace(release.moments, rate=Fraction(9, 10))
    rng = np.random.default_rng(0)
    noise = np.concatenate([leaf_noise(moments, rng) for _ in range(40_000 // len(moments) + 1)])
    values = np.arange(-3, 4)
    found = dict.fromkeys(product(values, repeat=3), 0)
    for line in noise.tolist():
        if tuple(line) in found:
            found[tuple(line)] += 1

    def misfit(rate: float) -> float:
        reach = np.arange(0, 200)
        inner = np.maximum(2 * reach - 1, 0)
        total = ((2.0 * reach + 1) ** 3 - inner**3 * (reach > 0)) @ np.exp(-rate * reach)
        gaps = []
        for cell, count in found.items():
            expected = len(noise) * np.exp(-rate * max(map(abs, cell))) / total
            if expected >= 5:
                gaps.append((count - expected) ** 2 / expected)
        assert len(gaps) > 20
        return float(np.mean(gaps))

    assert misfit(0.9) < 1.5
    assert min(misfit(0.8), misfit(1.0)) > 2


def test_what_is_not_measured_gets_no_noise():
    """Sums along categories and in leaves of one cell stay 0."""
    table, schema = make.mixed_table()
    model = sp.KDTreeSynthesizer("5", moments=True, max_depth=24).fit(table, schema, entropy=sp.UnsafeSeededEntropy(1))
    moments = model.release_.moments
    again = redrawn_moments(moments, np.random.default_rng(0))
    was_nothing = moments.noisy_steps == 0
    assert was_nothing.any()
    assert (again.noisy_steps[:, 0] != moments.noisy_steps[:, 0]).mean() > 0.9
    for axis, kind in enumerate(moments.lattice.axes):
        if kind.kind == "category":
            assert (again.noisy_steps[:, 1 + axis] == 0).all()


def test_a_bought_number_of_rows_is_redrawn():
    """With the noise that it has."""
    count = RowCount(1000, Fraction(1, 20))
    rng = np.random.default_rng(0)
    drawn = np.array([redrawn_count(count, rng).noisy for _ in range(4000)])
    assert drawn.mean() == pytest.approx(1000, abs=2)
    assert drawn.std() == pytest.approx(count.noise_std, rel=0.1)
    assert redrawn_count(None, rng) is None


def test_trees_draw_several_tables(release):
    """A list of tables that repeat by seed, whose first do not depend on their number, with a placement."""
    few = release.sample(60, draws=2, seed=3, frame="pandas")
    many = release.sample(60, draws=4, seed=3, frame="pandas")
    pd.testing.assert_frame_equal(few[1], many[1])
    assert not many[2].equals(many[3])
    assert [len(table) for table in release.sample(draws=2)] == [1000] * 2
    assert len(release.sample(10, draws=2, placement="centre")) == 2


@pytest.mark.parametrize(("part", "is_honest"), [(1.0, True), (0.5, False)])
def test_the_spread_of_draws_covers_the_truth(part, is_honest, monkeypatch):
    """Shares of quarters of the square: nominal 95 % intervals by twenty draws hold, and by half the noise they do not.

    The rows are even over the square, so that leaves are what rows follow.
    """
    if not is_honest:
        honest = redraw.leaf_noise
        monkeypatch.setattr(redraw, "leaf_noise", lambda *given: np.rint(part * honest(*given)).astype(np.int64))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    points = np.random.default_rng(5).random((3000, 2))
    corners = [(x, y) for x in (0, 0.5) for y in (0, 0.5)]

    def shares(rows: np.ndarray) -> np.ndarray:
        return np.array([((rows >= low) & (rows < np.add(low, 0.5))).all(axis=1).mean() for low in corners])

    truth, hits = shares(points), []
    for seed in range(25):
        model = sp.KDTreeSynthesizer("0.2").fit(points, schema, entropy=sp.UnsafeSeededEntropy(seed))
        drawn = np.stack([shares(rows) for rows in model.release_.sample(3000, draws=20, seed=1, frame="numpy")])
        half = 2.09 * np.sqrt(1 + 1 / 20) * drawn.std(axis=0, ddof=1)
        hits += (np.abs(drawn.mean(axis=0) - truth) <= half).tolist()
    assert np.mean(hits) > 0.86 if is_honest else np.mean(hits) < 0.78
