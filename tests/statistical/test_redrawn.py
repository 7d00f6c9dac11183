"""Intervals by redrawn models of a forest cover the table where its structure is right, and by half the noise do not.

The rows follow a chain of columns, which a tree of pairs holds. What is asked for are the shares of all cells of all
columns and of all pairs that were counted together, in the table itself. Twenty redrawn models give standard errors:
around the model as the root of mean squared distances from it, around the numbers as the deviation of draws about their
mean.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spinney as sp
from spinney.forest.release.measured import NoiseLaw

N_ROWS, N_DRAWS = 4000, 20
SCHEMA = sp.Schema({"a": sp.Category([*"pqr"]), "b": sp.Category([*"uvwx"]), "c": sp.Integer(0, 9), "d": sp.Boolean()})
GIVEN_A = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.4, 0.4, 0.1], [0.2, 0.2, 0.2, 0.4]])


def codes() -> np.ndarray:
    """The rows as places in the lists of values (n_rows, 4)."""
    rng = np.random.default_rng(1)
    a = rng.choice(3, N_ROWS, p=[0.5, 0.3, 0.2])
    b = (rng.random(N_ROWS)[:, None] > np.cumsum(GIVEN_A[a], axis=1)).sum(axis=1)
    c = np.clip(rng.poisson(2 + b), 0, 9)
    d = rng.random(N_ROWS) < 0.2 + 0.06 * c
    return np.stack([a, b, c, d.astype(int)], axis=1)


def frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": np.array([*"pqr"])[rows[:, 0]],
            "b": np.array([*"uvwx"])[rows[:, 1]],
            "c": rows[:, 2],
            "d": rows[:, 3] > 0,
        }
    )


@pytest.fixture(scope="module")
def releases():
    table = frame(codes())
    return [
        sp.ForestSynthesizer("1").fit(table, SCHEMA, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for seed in range(16)
    ]


def distances(release, around: str, *, alone: bool = False) -> np.ndarray:
    """For every cell asked for, how many standard errors the truth is away."""
    rows = codes()
    states = [release.columns[name].states[rows[:, place]] for place, name in enumerate(release.variables)]
    asked = [(column,) for column in range(4)] + ([] if alone else list(release.counted_pairs))
    redrawn = release.redrawn(N_DRAWS, seed=1, around=around)
    found = []
    for columns in asked:
        law = release.model.marginal(columns)
        truth = np.zeros(law.shape)
        np.add.at(truth, tuple(states[column] for column in columns), 1 / N_ROWS)
        draws = np.stack([one.model.marginal(columns) for one in redrawn])
        if around == "model":
            centre, error = law, np.sqrt(((draws - law) ** 2).mean(axis=0))
        else:
            centre, error = draws.mean(axis=0), draws.std(axis=0, ddof=1) * np.sqrt(1 + 1 / N_DRAWS)
        found.append(((truth - centre) / error).ravel())
    return np.concatenate(found)


def coverage(releases, around: str, *, alone: bool = False) -> tuple[float, float]:
    """Of nominal 95 %, and the mean distance; of single columns alone, or of pairs too."""
    every = np.concatenate([distances(release, around, alone=alone) for release in releases])
    reach = stats.t.ppf(0.975, N_DRAWS if around == "model" else N_DRAWS - 1)
    return float((np.abs(every) <= reach).mean()), float(every.mean())


@pytest.mark.parametrize("around", ["model", "numbers"])
def test_redrawn_models_cover_what_was_measured(releases, around):
    """By nominal 95 % intervals, in 92 to 97 % of cells; they are not off to one side."""
    for release in releases:
        release._redrawn.clear()
    covered, mean = coverage(releases, around)
    assert 0.92 <= covered <= 0.97
    assert abs(mean) < 0.15


@pytest.mark.parametrize("around", ["model", "numbers"])
@pytest.mark.parametrize("forgotten", ["half of all", "that of columns", "that of tables"])
def test_less_noise_than_there_was_is_noticed(releases, around, forgotten, monkeypatch):
    """Half the noise, or none on columns or on tables, covers far less: the test above has power."""
    honest = NoiseLaw.draw
    columns = {column.noise for release in releases for column in release.measured.columns}
    tables = {table.noise for release in releases for table in release.measured.tables}
    assert not columns & tables

    def less(law, rng, size):
        part = {"half of all": 0.5, "that of columns": law not in columns, "that of tables": law not in tables}
        return np.rint(honest(law, rng, size) * float(part[forgotten])).astype(np.int64)

    monkeypatch.setattr(NoiseLaw, "draw", less)
    for release in releases:
        release._redrawn.clear()
    covered, _ = coverage(releases, around, alone=forgotten == "that of columns")
    for release in releases:
        release._redrawn.clear()
    assert covered < 0.88
