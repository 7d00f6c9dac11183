"""Estimates of several draws become one with an interval, by the rule of combine.proof.md."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.ranks import t_quantile
from support.in_one_test import in_one_test

# Of numbers alone nothing is known of the release, so that intervals are forced.
combine = partial(sp.combine, force=True)
ESTIMATES = [4.1, 4.4, 3.9, 4.2, 4.4, 4.0]


@in_one_test("freedom", [0.7, 1, 4, 4.5, 19, 333.3, 5e4, 1e7])
@in_one_test("level", [0.1, 0.5, 0.95, 0.9999])
def test_quantiles_of_t_are_those_of_a_library(freedom, level):
    """Ours needs no library, and gives the same numbers to five digits."""
    assert t_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=2e-5)


def test_the_interval_of_the_table_is_students():
    """q̄ ± t_{M-1} sqrt((1 + 1/M) b), computed by hand."""
    found = combine(ESTIMATES)
    half = stats.t.ppf(0.975, 5) * np.sqrt((1 + 1 / 6) * np.var(ESTIMATES, ddof=1))
    assert found.estimate == pytest.approx(np.mean(ESTIMATES))
    assert (found.low, found.high) == pytest.approx((np.mean(ESTIMATES) - half, np.mean(ESTIMATES) + half))
    assert (found.of, found.statement, found.n_draws) == ("table", "not supported", 6)


def test_the_interval_of_the_population_adds_sampling_at_the_size_of_the_table():
    """Of draws ten times as large as the table, variances count ten times; the law has more freedom."""
    found = combine(ESTIMATES, [0.01] * 6, of="population", n_rows=1_000, n_drawn=10_000)
    between = (1 + 1 / 6) * np.var(ESTIMATES, ddof=1)
    total = between + 0.1
    half = stats.t.ppf(0.975, 5 * (total / between) ** 2) * np.sqrt(total)
    assert found.high - found.estimate == pytest.approx(half, rel=1e-5)
    assert found.std_error == pytest.approx(np.sqrt(total))


def test_the_rules_cover_as_they_say():
    """Over noise, redrawn noise and sampling both intervals hold 95 % of the time; without a source they do not."""
    rng, n_trials, n_draws = np.random.default_rng(7), 1_000, 20
    sampling, noise = 0.7, 1.0
    held = {"table": 0, "population": 0, "no noise": 0, "no sampling": 0}
    for _ in range(n_trials):
        table = rng.normal(0, sampling)  # what the analysis of the private table gives; the population's is 0
        released = table + rng.normal(0, noise)
        draws = released + rng.normal(0, noise, n_draws)
        variances = np.full(n_draws, sampling**2 / 4)  # of draws of four times as many rows
        of_table = combine(draws)
        whole = combine(draws, variances, of="population", n_rows=100, n_drawn=400)
        held["table"] += of_table.low <= table <= of_table.high
        held["population"] += whole.low <= 0 <= whole.high
        held["no sampling"] += of_table.low <= 0 <= of_table.high
        held["no noise"] += abs(draws.mean() - table) <= 1.96 * np.sqrt(variances[0] + draws.var() / n_draws)
    shares = {name: count / n_trials for name, count in held.items()}
    assert shares["table"] == pytest.approx(0.95, abs=0.025)
    assert shares["population"] == pytest.approx(0.95, abs=0.025)
    assert shares["no sampling"] < 0.92
    assert shares["no noise"] < 0.7


def test_vectors_and_mappings_come_back_as_they_went_in():
    """A vector of coefficients gives vectors, a mapping gives mappings, whatever order a draw lists its names in."""
    rows = np.random.default_rng(1).normal(size=(8, 2))
    vector = combine(rows)
    mapping = combine([{"a": a, "b": b} if k % 2 else {"b": b, "a": a} for k, (a, b) in enumerate(rows)])
    assert isinstance(vector.low, np.ndarray)
    assert vector.low.shape == (2,)
    assert mapping.low == pytest.approx({"a": vector.low[0], "b": vector.low[1]})
    assert mapping.names == ("b", "a")


def test_frames_come_back_as_they_went_in():
    """pandas in, a series out; polars in, a frame of one row out; a list of series is a frame."""
    rows = np.random.default_rng(2).normal(size=(8, 2))
    plain = combine(rows)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    in_pandas, in_polars = combine(frame), combine(pl.DataFrame(rows, schema=["a", "b"]))
    assert isinstance(in_pandas.high, pd.Series)
    assert list(in_pandas.high.index) == ["a", "b"]
    assert in_pandas.high.to_numpy() == pytest.approx(plain.high)
    assert isinstance(in_polars.high, pl.DataFrame)
    assert in_polars.high.rows()[0] == pytest.approx(tuple(plain.high))
    series = combine([line for _, line in frame.iterrows()])
    assert series.low["a"] == pytest.approx(plain.low[0])
    assert combine(frame["a"]).low == pytest.approx(plain.low[0])
    assert combine(pl.Series(rows[:, 0])).low == pytest.approx(plain.low[0])


def test_variances_are_matched_by_name():
    """Variances of a mapping go to the estimates of the same name."""
    estimates = [{"a": x, "b": 10 * x} for x in ESTIMATES]
    variances = [{"b": 4.0, "a": 1.0}] * 6
    found = combine(estimates, variances, of="population")
    alone = combine([10 * x for x in ESTIMATES], [4.0] * 6, of="population")
    assert found.low["b"] == pytest.approx(alone.low)


def test_the_logit_scale_stays_between_0_and_1():
    """An AUC near 1 has an interval below 1."""
    found = combine([0.97, 0.99, 0.995, 0.98, 0.999], scale="logit")
    assert 0.5 < found.low < found.estimate < found.high < 1
    assert combine([0.97, 0.99, 0.995, 0.98, 0.999]).high > 1


def test_a_result_can_be_printed_and_put_in_a_frame():
    """One line a coefficient, and the statement below; a frame of each kind."""
    found = combine([{"age": x, "sex": 2 * x} for x in ESTIMATES])
    assert str(found).splitlines()[0].startswith("age  4.16667   ")
    assert "not supported" in str(found)
    assert list(found.to_frame("polars")["name"]) == ["age", "sex"]
    assert found.to_frame("pandas").loc[1, "estimate"] == pytest.approx(2 * np.mean(ESTIMATES))
    assert found.to_dict()["names"] == ["age", "sex"]


def test_numbers_alone_have_no_intervals_unless_these_are_forced():
    """Nobody knows whether the columns were counted together: an estimate, and what to give to find out."""
    found = sp.combine([{"age": x, "sex": 2 * x} for x in ESTIMATES])
    assert (found.statement, found.has_interval) == ("not supported", False)
    assert found.low is found.high is found.std_error is None
    assert found.estimate["sex"] == pytest.approx(2 * np.mean(ESTIMATES))
    assert str(found).splitlines()[0] == "age  4.16667"
    assert "give release= and columns=" in str(found)
    assert found.to_dict()["low"] == [None, None]
    assert found.to_frame("polars")["high"].null_count() == 2
    assert np.isnan(found.to_frame("numpy")[:, 1:]).all()
    assert combine(ESTIMATES).why.startswith("forced: ")


@in_one_test(
    ("estimates", "options", "says"),
    [
        (ESTIMATES[:4], {}, "needs 5 at least"),
        ([], {}, "empty"),
        ([1.0, 2.0, float("nan"), 1.0, 1.0], {}, "draw 3 has a number that is missing"),
        ([1.0, 2.0, "x", 1.0, 1.0], {}, "draw 3 has is not a number"),
        ([{"a": 1.0}] * 4 + [{"b": 1.0}], {}, "draw 5 does not have the names"),
        ([[1.0, 2.0]] * 4 + [[1.0]], {}, "draw 5 does not have as many"),
        ({"a": 1.0}, {}, "one entry for each draw"),
        (3.0, {}, "one entry for each draw"),
        (ESTIMATES, {"level": 95}, "level=95"),
        (ESTIMATES, {"of": "sample"}, "of='sample'"),
        (ESTIMATES, {"of": "population"}, "needs variances"),
        (ESTIMATES, {"variances": [1.0] * 5, "of": "population"}, "5 draws"),
        (ESTIMATES, {"variances": [1.0] * 5 + [-1.0]}, "draw 6 has a negative"),
        (ESTIMATES, {"variances": [1.0] * 6, "of": "population", "n_drawn": 10}, "without n_rows"),
        (ESTIMATES, {"variances": [1.0] * 6, "of": "population", "n_rows": 0}, "n_rows=0"),
        (ESTIMATES, {"scale": "log"}, "scale='log'"),
        (ESTIMATES, {"scale": "logit"}, "between 0 and 1"),
        (ESTIMATES, {"columns": ["age"]}, "release"),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates, options, says):
    """The error names the argument and the draw."""
    with pytest.raises(ParameterError, match=says):
        sp.combine(estimates, **options)
