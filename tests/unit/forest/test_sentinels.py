"""Numbers that say "not known", such as 98: seen where they are few, and drawn together where they come together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.forest.columns import beyond_gaps
from spinney.forest.release.fit import believed_boxes
from spinney.forest.release.leaf_weights import number_weights
from spinney.forest.release.verify import check_measured, check_model
from spinney.grid.ruler import number_ruler

N, N_CODED = 30_000, 200
COUNTS = ("first", "second", "third")


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 100, [95, 96, 97, 98, 99]),
        (0, 60, []),
        (0, 1000, [995, 996, 997, 998, 999]),
        (-9, 40, [-9, -8, -7, -6, -5, -4, -3, -2, -1]),
        (0, 99_999, [99_999]),
        (0, 100_000, []),
        (0, 9_999_999, []),
    ],
)
def test_sentinels_follow_from_the_bounds(low, high, wanted):
    """They are the same whatever rows a table has."""
    ruler = number_ruler(high - low + 1, -low)
    assert (ruler.sentinels - ruler.zero).tolist() == wanted


def table(n_coded: int = N_CODED) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    level = rng.normal(size=N)
    is_coded = np.arange(N) < n_coded
    counts = {name: np.where(is_coded, 98, rng.poisson(np.exp(level - 1.5)).clip(0, 12)) for name in COUNTS}
    score = np.round(50 + 10 * level + rng.normal(0, 5, N)).clip(0, 90).astype(int)
    return pl.DataFrame({**counts, "score": score, "bad": rng.random(N) < np.where(is_coded, 0.5, 0.1)})


SCHEMA = sp.Schema({**{name: sp.Integer(0, 100) for name in COUNTS}, "score": sp.Integer(0, 90), "bad": sp.Boolean()})


@pytest.mark.parametrize("target", [None, "bad"])
@pytest.mark.parametrize("quality", ["fast", "high"])
def test_a_code_of_several_columns_comes_together(target, quality, tmp_path):
    """Nearly all rows that have it have it in all columns, no column has far more, and the file bears it out."""
    model = sp.ForestSynthesizer("4", "1e-6", target=target, quality=quality)
    release = model.fit(table(), SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_
    assert release.measured is not None
    together = [one for one in release.measured.tables if one.doubtful]
    assert [len(one.columns) for one in together] == [len(COUNTS) + (target is not None)]
    rows = release.sample(N, seed=1, frame="polars").select(COUNTS).to_numpy()
    assert (rows == 98).all(axis=1).sum() >= 0.6 * N_CODED
    assert (rows == 98).sum(axis=0).max() <= 1.3 * N_CODED
    release.save(tmp_path / "one.spinney")
    loaded = sp.load(tmp_path / "one.spinney")
    assert [one.doubtful for one in loaded.measured.tables] == [one.doubtful for one in release.measured.tables]
    check_measured(loaded)
    check_model(loaded)


def test_what_is_paid_does_not_follow_from_codes():
    """A plan is made before rows are read, and a table of sentinels takes the place of a choice."""
    paid, counted = [], []
    for n_coded in (0, N_CODED):
        model = sp.ForestSynthesizer("4", "1e-6", quality="fast")
        release = model.fit(table(n_coded), SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_
        paid.append(release.card.stages)
        counted.append(len(release.looked_at))
    assert paid[0] == paid[1]
    assert counted[0] == counted[1] == paid[0]["cliques"].times


def test_sentinels_need_a_gap_and_to_stand_out():
    """A number that is likely to be one is none where the rows of the column reach up to it, or where it is noise."""
    low, length = np.arange(100.0), np.ones(100)
    likely = low == 98
    weights = np.where(low < 10, 1000.0, 0.0)
    assert not beyond_gaps(low, length, weights, 40.0, likely).any()
    assert not beyond_gaps(low, length, weights + 60.0 * likely, 40.0, likely).any()
    assert not beyond_gaps(low, length, np.full(100, 500.0), 40.0, likely).any()
    found = beyond_gaps(low, length, weights + 200.0 * likely, 40.0, likely)
    assert set(found[likely]) == {2}
    assert not found[:98].any()
    mirrored = beyond_gaps(-low[::-1] - 1, length, (weights + 200.0 * likely)[::-1], 40.0, likely[::-1])
    assert set(mirrored[likely[::-1]]) == {1}


def test_a_sentinel_that_stands_alone_has_a_limit_of_its_own():
    """Two deviations are noise although it is near, 3.3 are believed; files from before know one limit for all."""
    low = np.array([*range(20), 20, 50, 98, 99], dtype=float)
    length = np.array([*[1] * 20, 30, 48, 1, 1], dtype=float)
    likely, is_null = low == 98, np.zeros(len(low), dtype=np.bool_)
    for deviations, is_believed in ((2.0, False), (3.3, True)):
        counts = np.where(low < 20, 3000.0, 0.0) + 40.0 * deviations * likely
        weights = number_weights(counts, 40.0, low, length, is_null, counts.sum(), is_whole=True, likely=likely)
        assert (weights[likely][0] > 100) == is_believed
        old = number_weights(
            counts, 40.0, low, length, is_null, counts.sum(), is_whole=True, rule="ranges", likely=likely
        )
        assert old[likely][0] > 70


def test_doubtful_boxes_are_empty_unless_they_stand_out():
    """Others are as they were counted."""
    noisy = np.array([500.0, 60.0, 60.0, 200.0])
    counts, std = believed_boxes(noisy, 40.0, (1, 3))
    assert counts.tolist() == [500, 0, 60, 200]
    assert np.asarray(std).tolist() == [40, 10, 40, 40]
    assert believed_boxes(noisy, 40.0, ()) == (pytest.approx(noisy), 40.0)


def test_doubtful_boxes_of_a_file_are_boxes(tmp_path):
    """A file that names a box that no table has is refused."""
    model = sp.ForestSynthesizer("4", "1e-6", quality="fast")
    release = model.fit(table(), SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_
    tables = [replace(one, doubtful=(len(one.noisy),)) for one in release.measured.tables]
    release.measured = replace(release.measured, tables=tuple(tables))
    release.save(tmp_path / "forged.spinney")
    with pytest.raises(sp.SpinneyError):
        sp.load(tmp_path / "forged.spinney")
