"""The theory room: its names, its preconditions, and its suggestions."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney_paper import theory

NAN, INF = float("nan"), float("inf")

GRID = {"epsilon": 1, "delta": 0.05, "bin_width": 0.1, "edge": 10, "n_columns": 1, "bandwidth": 1}
FULL = {**{name: value for name, value in GRID.items() if name != "edge"}, "n_heavy_bins": 3, "n_light_rows": 10}
WIDTH = {name: value for name, value in GRID.items() if name != "bin_width"}
TREE = {"fixed_depth": 2, "max_depth": 6, "epsilon": 1, "delta": 0.01}
BEYOND = [0, -1, NAN, INF, "one", None, True]


def test_names():
    """Every name resolves, has a docstring, and is in the table of homes; misspelt ones are AttributeErrors."""
    assert theory.__all__ == sorted(theory._HOME) == dir(theory)
    for name in theory.__all__:
        assert getattr(theory, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'worst_bound'"):
        _ = theory.worst_bound


def test_the_room_is_light():
    """Importing the room loads no numpy: the front doors use its formulas."""
    code = "import sys, spinney_paper.theory, spinney_paper.theory.trees; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("name", ["epsilon", "bin_width", "edge", "bandwidth"])
@pytest.mark.parametrize("value", BEYOND)
def test_positive_numbers_are_asked_for(name, value):
    """Lengths and budgets are positive finite numbers; the message names the argument."""
    with pytest.raises(ParameterError, match=f"{name}="):
        theory.worst_case_bound(100_000, **{**GRID, name: value})


@pytest.mark.parametrize(
    ("function", "arguments", "bad", "words"),
    [
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"delta": 1}, "strictly between 0 and 1"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"delta": 0}, "strictly between 0 and 1"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"n_rows": 0}, "n_rows=0"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"n_rows": 10}, "raise bin_width or epsilon"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"n_columns": 1.5}, "n_columns=1.5"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"n_columns": 10**5}, "give a larger bin_width"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"factor": 3}, "factor=3"),
        (theory.worst_case_bound, {**GRID, "n_rows": 100_000}, {"noise": "gauss"}, "noise='gauss'"),
        (theory.threshold_bound, {**FULL, "n_rows": 1000, "n_bins": 9}, {"n_light_rows": 1001}, "above n_rows"),
        (theory.threshold_bound, {**FULL, "n_rows": 1000, "n_bins": 9}, {"n_heavy_bins": 10}, "above n_bins"),
        (theory.threshold_bound, {**FULL, "n_rows": 1000, "n_bins": 9}, {"n_light_rows": 999}, "raise bin_width"),
        (theory.gaussian_bound, {**GRID, "n_rows": 10**6, "data_sd": 1}, {"data_sd": 0}, "data_sd=0"),
        (theory.gaussian_bound, {**GRID, "n_rows": 10**6, "data_sd": 1}, {"n_rows": 100}, "raise n_rows"),
        (theory.gaussian_bound, {**GRID, "n_rows": 10**6, "data_sd": 1}, {"delta": 2}, "delta=2"),
        (theory.perturbation_bound, {"distance": 1}, {"distance": -1}, "distance=-1"),
        (theory.chernoff_tail, {"mean": 1, "deviation": 1}, {"deviation": 0}, "deviation=0"),
        (theory.norm_radius, {"tail": 0.1, "n_columns": 1}, {"tail": 1}, "tail=1"),
        (theory.laplace_tail, {"size": 1, "epsilon": 1}, {"size": -1}, "size=-1"),
        (theory.discrete_laplace_tail, {"size": 1, "epsilon": 1}, {"size": 0}, "size=0"),
        (
            theory.most_empty_bins,
            {"n_rows": 1, "fixed_depth": 2, "max_depth": 3},
            {"max_depth": 1},
            "below fixed_depth",
        ),
        (theory.cutoff_sparing_empty_bins, {**TREE, "n_rows": 1}, {"epsilon": 0}, "epsilon=0"),
        (theory.cutoff_sparing_empty_bins, {**TREE, "n_rows": 1}, {"n_rows": 0}, "n_rows=0"),
        (theory.tree_threshold, {"fixed_depth": 1, "epsilon": 1}, {"fixed_depth": -1}, "fixed_depth=-1"),
        (
            theory.data_dependent_levels,
            {"largest_edge": 4, "smallest_edge": 1, "n_columns": 2},
            {"largest_edge": 3},
            "edges are halved",
        ),
        (
            theory.data_dependent_levels,
            {"largest_edge": 4, "smallest_edge": 1, "n_columns": 2},
            {"smallest_edge": 8},
            "edges are halved",
        ),
        (theory.best_box_weights, {"half_width": 1, "n_side": 1}, {"n_side": -1}, "n_side=-1"),
        (theory.boxes_kl, {"weights": [1], "half_width": 1}, {"weights": [0.5, 0.5]}, "odd number"),
        (theory.boxes_kl, {"weights": [1], "half_width": 1}, {"weights": [0.5, 0.1, 0.1]}, "add up to 1"),
        (theory.boxes_mmd, {"weights": [1], "half_width": 1}, {"weights": [1, -1, 1]}, "negative"),
        (theory.centres_mmd, {"weights": [1], "half_width": 1}, {"bandwidth": 0}, "bandwidth=0"),
        (theory.suggest_width, {**WIDTH, "n_rows": 10}, {"edge": 0}, "edge=0"),
        (theory.suggest_threshold, {"n_bins": 4, "epsilon": 1, "delta": 0.1}, {"n_bins": 0}, "n_bins=0"),
    ],
)
def test_preconditions(function, arguments, bad, words):
    """The arguments are fine until one of them is not, and then the message says which and what to do."""
    assert np.all(np.isfinite(function(**arguments)))
    with pytest.raises(ParameterError, match=words):
        function(**{**arguments, **bad})


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_suggested_width_is_best(n_columns, epsilon):
    """No other whole number of bins has a smaller worst-case bound."""
    public = {"epsilon": epsilon, "delta": 0.05, "edge": 8, "n_columns": n_columns, "bandwidth": 1}
    width = theory.suggest_width(200_000, **public)
    bounds = {}
    for n_bins in range(1, 2000):
        try:
            bounds[n_bins] = theory.worst_case_bound(200_000, **public, bin_width=8 / n_bins, noise="laplace")
        except ParameterError:
            break
    best = min(bounds.values())
    if best < 1:  # above, rounding is cut off at 1 and says nothing
        assert bounds[round(8 / width)] == pytest.approx(best)
    else:
        assert width >= 8 / len(bounds)


def test_how_the_bandwidth_enters_the_width():
    """Only ratios of lengths count; at a fixed edge the width follows about the (d+1)-th root of the bandwidth."""
    public = {"epsilon": 1, "delta": 0.05, "n_columns": 1}
    width = theory.suggest_width(10**7, edge=10, bandwidth=1, **public)
    assert theory.suggest_width(10**7, edge=30, bandwidth=3, **public) == pytest.approx(3 * width)
    assert theory.suggest_width(10**7, edge=10, bandwidth=4, **public) / width == pytest.approx(2, rel=0.05)
    log_odds = math.log(10 / width / 0.05)
    assert width == pytest.approx(math.sqrt(8 * math.sqrt(math.e) * log_odds * 10 / 10**7), rel=0.1)


def test_suggestions_where_nothing_can_be_done():
    """With hardly any rows one bin is all that is left, in any number of columns."""
    for n_columns in (1, 5, 1000):
        public = {"epsilon": 0.01, "delta": 0.05, "n_columns": n_columns}
        assert theory.suggest_width(10, edge=7, bandwidth=1, **public) == 7
