"""The page that compares two tables: means and spreads beside distances by rank."""

from __future__ import annotations

import numpy as np
import pandas as pd

import spinney as sp
from spinney import metrics


def test_means_and_spreads_see_how_far_wrong_rows_lie():
    """One row in a thousand at ten thousand is nothing to KS, and a multiple of the standard deviation."""
    rng = np.random.default_rng(4)
    real = pd.DataFrame({"x": rng.gamma(2, 1, 5000), "c": "a"})
    wrong = real.copy()
    wrong.loc[:4, "x"] = 10_000.0
    found = metrics.compare(real, wrong, {"x": sp.Real(0, 1e5), "c": sp.Category(["a"])}, ways=1).columns
    assert found["x"].ks < 0.002
    assert found["x"].mean_off > 5
    assert found["x"].spread > 100
    assert found["c"].mean_off is None
    same = metrics.compare(real, real, {"x": sp.Real(0, 1e5), "c": sp.Category(["a"])}, ways=1).columns["x"]
    assert (same.mean_off, same.spread) == (0, 1)


def test_the_page_says_what_its_figures_of_moments_are():
    """In one line, where a column has them."""
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]})
    schema = sp.Schema({"x": sp.Real(0, 9), "c": sp.Category(["a", "b"])})
    assert "mean off by: synthetic less real, in real standard deviations" in str(metrics.compare(rows, rows, schema))
    assert "mean off by:" not in str(metrics.compare(rows[["c"]], rows[["c"]], sp.Schema({"c": schema["c"]})))
