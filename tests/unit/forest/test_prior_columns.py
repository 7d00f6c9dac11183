"""Columns by themselves, with a prior: tails, piles, and floats of single precision."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.forest.columns import leaf_weights
from spinney.forest.prior import with_prior
from spinney.grid.axes import column_axis
from spinney.tables.open import open_source
from spinney.tree.release.geometry import extent
from support.small_forests import noisy_column

N = 8_000
RATES = [-3.4, -2.9, -1.8, -1.1, -0.1, 1.1, 1.4]
SCHEMA = sp.Schema({"rate": sp.Real(-10, 10), "price": sp.Real(50, 150), "paid": sp.Integer(0, 10_000_000)})


def economy(seed: int) -> pl.DataFrame:
    """Two columns of a few values that many rows share, and amounts of which all but a few are small."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(RATES), N, p=[0.03, 0.04, 0.22, 0.02, 0.1, 0.19, 0.4])
    return pl.DataFrame(
        {
            "rate": np.array(RATES)[kind],
            "price": np.array([92.201, 92.893, 93.075, 93.2, 93.444, 93.994, 94.465])[kind],
            "paid": np.minimum(rng.lognormal(8, 1.5, N), 1_600_000).astype(int),
        }
    )


PRIVATE, PUBLIC = economy(1), economy(2)


def drawn(prior, epsilon: str, seed: int) -> pl.DataFrame:
    model = sp.ForestSynthesizer(epsilon, "1e-6", prior=prior)
    return model.fit(PRIVATE, SCHEMA, entropy=sp.UnsafeSeededEntropy(seed)).sample(N, seed=seed)


@pytest.mark.parametrize("epsilon", ["0.05", "0.2", "1"])
def test_piles_that_a_prior_has_are_kept_whatever_the_noise(epsilon):
    """Nearly all rows lie at the exact values of both tables, and nothing lies far from all rows."""
    for seed in range(4):
        rows = drawn(PUBLIC, epsilon, seed)
        for name in ("rate", "price"):
            assert rows[name].is_in(PRIVATE[name].unique().implode()).mean() > 0.97, (name, seed)
            assert 0.7 < rows[name].std() / PRIVATE[name].std() < 1.4
        assert 0.5 < rows["paid"].std() / PRIVATE["paid"].std() < 1.7
        assert rows["paid"].max() < 1.5 * max(PRIVATE["paid"].max(), PUBLIC["paid"].max())


def test_a_prior_of_single_precision_is_as_good_as_one_of_double():
    """The same rows as float32 give the same piles: no value is missed by the last bits of a float."""
    single = PUBLIC.with_columns(pl.col("rate", "price").cast(pl.Float32))
    for seed in range(2):
        rows = drawn(single, "0.3", seed)
        assert rows["rate"].is_in(RATES).mean() > 0.97
        assert rows["price"].is_in(PRIVATE["price"].unique().implode()).mean() > 0.97


@pytest.mark.parametrize(("deviations", "is_kept"), [(3, False), (6, True)])
def test_rows_far_out_that_a_prior_does_not_have_need_to_stand_out(deviations, is_kept):
    """Three standard deviations of noise far from all rows are none; six are rows that the prior lacks."""
    column, noise_std = sp.Integer(0, 9_999), 30.0
    cells = column_axis("v", column)
    public = open_source(pl.DataFrame({"v": np.arange(2_000) % 1_000}), sp.Schema({"v": column}))
    counts = next(iter(public.count_columns([cells.lattice])))
    noisy = noisy_column(column, [2_000, *[0] * 8, int(deviations * noise_std)], noise_std=noise_std)
    made = with_prior(noisy, counts, 2_000, 2_000.0, cells.ruler)
    assert made.is_told
    low, length = extent(made.axis, made.first, made.stop)
    far = leaf_weights(made, low, length, 2_000.0)[made.first >= noisy.first[-1]].sum()
    assert far > 60 if is_kept else far == 0
