"""An analysis that is run on draws of a release gives coefficients with intervals, and says what they are worth."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.answer import standing_of

SCHEMA = {
    "x": sp.Integer(0, 9),
    "y": sp.Integer(0, 9),
    "kind": sp.Category(["a", "b", "c"]),
    "side": sp.Boolean(),
    "who": sp.Identifier(),
}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 10, 3000)
    y, kind = np.clip(x + rng.integers(-2, 3, 3000), 0, 9), rng.choice(list("abc"), 3000)
    table = pd.DataFrame({"x": x, "y": y, "kind": kind, "side": rng.random(3000) < 0.5, "who": x})
    entropy = sp.UnsafeSeededEntropy(1)
    return sp.ForestSynthesizer(epsilon=2, target="y").fit(table, sp.Schema(SCHEMA), entropy=entropy)


def mean_of_x(table):
    return float(np.mean(table["x"]))


def test_a_function_is_run_on_every_draw(fitted):
    """One number a draw becomes an estimate with an interval; a seed repeats it."""
    found, again = (sp.analyse(fitted, mean_of_x, columns=["x"], draws=6, n_rows=500, seed=1) for _ in range(2))
    assert found.low < found.estimate < found.high
    assert (found.n_draws, found.low) == (6, again.low)
    assert abs(found.estimate - 4.5) < 1


def test_columns_apart_are_not_supported_and_those_of_one_table_are(fitted):
    """x and y share a table, by ranges of values; all columns do not, and have no interval unless it is forced."""
    both = sp.analyse(
        fitted, lambda table: np.corrcoef(table["x"], table["y"])[0, 1], columns=["x", "y"], draws=5, seed=1
    )
    assert both.statement == "indicative"
    assert "ranges of values" in both.why
    alone = sp.analyse(fitted, mean_of_x, columns=["x"], draws=5, seed=1)
    assert alone.statement == "calibrated"
    every = sp.analyse(fitted, mean_of_x, draws=5, seed=1)
    assert (every.statement, every.low, every.high, every.std_error) == ("not supported", None, None, None)
    assert every.estimate == alone.estimate
    assert "counted together" in every.why
    assert "analyses=" in every.why
    forced = sp.analyse(fitted, mean_of_x, draws=5, seed=1, force=True)
    assert forced.statement == "not supported"
    assert forced.why.startswith("forced: ")
    assert forced.high - forced.low == pytest.approx(1.5 * (alone.high - alone.low))


def test_an_analysis_looks_at_the_columns_of_its_conditions(fitted):
    """A share of a side where kind is "a" hangs on kind, which was not counted with it."""
    assert not fitted.release_._counts_together(["side", "kind"])

    def share_of_side(table):
        return float(np.mean(table["side"]))

    found = sp.analyse(fitted, share_of_side, columns=["side"], where={"kind": "a"}, draws=5, n_rows=50, seed=1)
    assert found.statement == "not supported"


def test_a_tree_is_no_table_of_values():
    """Leaves of a tree are boxes: what numbers do inside of them together is the model's guess."""
    rng = np.random.default_rng(1)
    x = rng.normal(5, 1, 3000).clip(0, 10)
    table = pd.DataFrame({"x": x, "y": (x + rng.normal(0, 1, 3000)).clip(0, 10)})
    schema = sp.Schema({"x": sp.Real(0, 10), "y": sp.Real(0, 10)})
    release = sp.KDTreeSynthesizer(epsilon=1).fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    assert standing_of(release, ["x", "y"]).statement == "indicative"


def test_columns_that_were_counted_value_by_value_are_calibrated():
    """Two columns of few values share a table that knows each of them."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, 4000)
    table = pd.DataFrame({"a": a, "b": (a + rng.integers(0, 2, 4000)).clip(0, 3)})
    schema = sp.Schema({name: sp.Integer(0, 3) for name in table})
    release = sp.ForestSynthesizer(epsilon=2).fit(table, schema, entropy=sp.UnsafeSeededEntropy(2)).release_
    assert standing_of(release, ["a", "b"]).statement == "calibrated"


def test_forced_intervals_of_columns_apart_are_widened_by_the_measured_misfit():
    """A release whose sums of products are six noises off its model widens by about six times 1.5, one without by 1.5.

    What the sums agree with the model on is 1.5 too: the factor is never below 1.
    """
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: rng.integers(0, 4, 4000) for name in "abcdef"})
    schema = sp.Schema({name: sp.Integer(0, 3) for name in table})
    release = sp.ForestSynthesizer(epsilon=2).fit(table, schema, entropy=sp.UnsafeSeededEntropy(2)).release_
    products = release.products
    assert products is not None
    assert 1 <= release._misfit_factor < 1.3
    assert standing_of(release, None).widening == pytest.approx(1.5 * release._misfit_factor)
    off = 6 * np.sqrt(float(products.variance))
    moved = replace(
        products, sums=tuple(sums + np.where(rng.random(sums.shape) < 0.5, off, -off) for sums in products.sums)
    )
    for given, low, high in ((moved, 1.5 * 5, 1.5 * 7.5), (None, 1.5, 1.5)):
        release.__dict__.pop("_misfit_factor", None)
        release.products = given
        standing = standing_of(release, None)
        assert low <= standing.widening <= high
        assert standing.statement == "not supported"
        found = sp.combine([1.0, 2.0, 3.0, 4.0, 5.0], release=release, force=True)
        plain = sp.combine([1.0, 2.0, 3.0, 4.0, 5.0], force=True)
        assert found.high - found.low == pytest.approx(standing.widening * (plain.high - plain.low))


def test_a_function_sees_only_the_columns_that_were_named(fitted):
    """An analysis that looks at more than it says fails, on the first draw."""
    with pytest.raises(ParameterError, match="KeyError on draw 1 of 5"):
        sp.analyse(fitted, mean_of_x, columns=["y"], draws=5, seed=1)


def test_an_error_on_one_draw_names_the_draw(fitted):
    """What the function raised is in the message, and is the cause."""
    calls = []

    def third(table):
        calls.append(table)
        if len(calls) == 3:
            raise ZeroDivisionError("no rows of that kind")
        return 1.0

    with pytest.raises(ParameterError, match="ZeroDivisionError on draw 3 of 5: 'no rows of that kind'") as caught:
        sp.analyse(fitted, third, draws=5, seed=1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_mappings_and_variances_are_understood(fitted):
    """(estimates, variances) of mappings give intervals of the population, wider than those of the table."""

    def means(table):
        size = len(table)
        return (
            {name: float(table[name].mean()) for name in ("x", "y")},
            {name: float(table[name].var()) / size for name in ("x", "y")},
        )

    options = {"columns": ["x", "y"], "draws": 5, "seed": 1}
    of_table, of_all = (sp.analyse(fitted, means, of=of, **options) for of in ("table", "population"))
    assert of_table.names == ("x", "y")
    assert of_all.std_error["x"] > of_table.std_error["x"]


def test_results_of_regressions_are_understood(fitted):
    """A result with `params` and `bse`, as statsmodels gives, and a fitted model of scikit-learn."""

    def like_statsmodels(table):
        mean = table["x"].mean()
        return SimpleNamespace(params=pd.Series({"mean": mean}), bse=pd.Series({"mean": 0.5}))

    found = sp.analyse(fitted, like_statsmodels, columns=["x"], draws=5, seed=1, of="population", n_rows=3000)
    assert found.std_error["mean"] > 0.5
    linear_model = pytest.importorskip("sklearn.linear_model")
    fits = sp.analyse(fitted, linear_model.LinearRegression(), columns=["x"], target="y", draws=5, seed=1)
    assert fits.names == ("Intercept", "x")
    assert 0.5 < fits.estimate["x"] < 1.1


@pytest.mark.parametrize(
    ("analysis", "options", "says"),
    [
        (mean_of_x, {"draws": 1}, "needs 5 at least"),
        (mean_of_x, {"draws": "many"}, "draws='many'"),
        (mean_of_x, {"columns": ["z"]}, "'z' is not a column"),
        (mean_of_x, {"columns": "x"}, "is text"),
        (mean_of_x, {"columns": []}, "columns is empty"),
        (mean_of_x, {"target": "y"}, "for estimators"),
        (mean_of_x, {"level": 1.5}, "level=1.5"),
        (mean_of_x, {"of": "population"}, "needs variances"),
        (3, {}, "analysis is a int"),
        (lambda _: "much", {}, "draw 1 has is not a number"),
        (lambda _: {}, {}, "draw 1 has no numbers"),
        (lambda _: [], {}, "draw 1 has no numbers"),
        (lambda _: 10**400, {}, "draw 1 has a number that is larger than a float can be"),
    ],
)
def test_what_cannot_be_analysed_is_refused(fitted, analysis, options, says):
    """The error says which argument, and what to give."""
    with pytest.raises(ParameterError, match=says):
        sp.analyse(fitted, analysis, **{"draws": 5, "n_rows": 50, "seed": 1, **options})


def test_an_analysis_that_never_varies_says_so(fitted):
    """A spread of zero between draws is an interval without width, and no sign of certainty."""
    options = {"draws": 5, "n_rows": 50, "seed": 1, "columns": ["x"]}
    assert "same on every draw" not in sp.analyse(fitted, mean_of_x, **options).why
    assert "the estimate is the same on every draw" in sp.analyse(fitted, lambda _: 1.0, **options).why
    found = sp.analyse(fitted, lambda rows: {"one": 1.0, "mean": mean_of_x(rows)}, **options)
    assert "the estimate of one is the same on every draw" in found.why


def test_only_releases_are_analysed():
    """A table is not a release."""
    with pytest.raises(ParameterError, match="is a DataFrame; give what"):
        sp.analyse(pd.DataFrame(), mean_of_x)


def test_slopes_inside_ranges_are_in_the_interval():
    """Two numbers fall inside ranges and rise across them: draws agree, and their spread misses it."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2000, 20_000)
    table = pd.DataFrame({"x": x, "y": (x + 300 * ((x % 100 < 50) * 2 - 1)).clip(0, 1999)})
    schema = sp.Schema({"x": sp.Integer(0, 1999), "y": sp.Integer(0, 1999)})
    entropy = sp.UnsafeSeededEntropy(1)
    release = sp.ForestSynthesizer(epsilon=3, quality="fast").fit(table, schema, entropy=entropy).release_

    def slope(rows):
        return float(np.polyfit(rows["x"], rows["y"], 1)[0])

    found = sp.analyse(release, slope, columns=["x", "y"], draws=10, n_rows=5_000, seed=1)
    assert found.statement == "indicative"
    assert found.low <= slope(table) <= found.high
