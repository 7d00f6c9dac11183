"""Noise of Balog et al.'s algorithms: the published scale on every number, and no other, whatever the rows are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import spinney as sp
from spinney_paper.baselines import BalogAlgorithm1, BalogAlgorithm2, balog
from support.goodness_of_fit import ACCEPT, REJECT

SQUARE = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
MODELS = {
    "algorithm 1": (BalogAlgorithm1("0.5", delta="1e-5", n_points=120, bandwidth="0.05"), 1.0, 40),
    "algorithm 2": (BalogAlgorithm2("0.5", delta="1e-5", n_features=4000, n_points=1, n_steps=1), math.sqrt(2000), 1),
}


@pytest.mark.parametrize(("model", "reach", "n_fits"), MODELS.values(), ids=MODELS)
def test_noise_has_the_published_scale_and_no_other(model, reach, n_fits, seeded, monkeypatch):
    """What is divided by the rows is off by normal errors of 2 reach sqrt(2 ln(1.25/delta)) / epsilon rows."""
    table = np.random.default_rng(1).random((500, 2))
    noise = []
    release_vector = balog.release_vector

    def spy(true_sums, **options):
        noisy_sums = release_vector(true_sums, **options)
        noise.append((noisy_sums - true_sums) / 2.0**20)
        return noisy_sums

    monkeypatch.setattr(balog, "release_vector", spy)
    for seed in range(n_fits):
        model.fit(table, SQUARE, entropy=seeded(seed))
    errors = np.concatenate(noise)
    assert len(errors) >= 3000
    claimed = 2 * reach * math.sqrt(2 * math.log(1.25e5)) / 0.5
    assert stats.kstest(errors, stats.norm(scale=claimed).cdf).pvalue > ACCEPT
    for factor in (0.7, 1.3):
        assert stats.kstest(errors, stats.norm(scale=factor * claimed).cdf).pvalue < REJECT
    others = (errors[1:] > 0) == (errors[:-1] > 0)  # signs of neighbours are unrelated
    assert stats.binomtest(int(others.sum()), len(others)).pvalue > ACCEPT
