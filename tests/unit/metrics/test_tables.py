"""Marginal distances and train-on-synthetic, for tables of every kind."""

from __future__ import annotations

import sys
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney import metrics
from spinney.errors import InputError, MissingExtraError, ParameterError, SchemaError
from support import slow_metrics as twins

SCHEMA = sp.Schema(
    {
        "size": sp.Real(0, 8),
        "rooms": sp.Integer(1, 6),
        "kind": sp.Category(["flat", "house", "boat"]),
        "sold": sp.Boolean(),
        "day": sp.Date(date(2020, 1, 1), date(2020, 1, 31), nullable=True),
    }
)


def town(n: int, seed: int) -> dict:
    rng = np.random.default_rng(seed)
    size = rng.random(n) * 8
    day = [None if u < 0.1 else date(2020, 1, 1 + int(u * 30)) for u in rng.random(n)]
    return {
        "size": size.tolist(),
        "rooms": np.clip(np.round(size), 1, 6).astype(int).tolist(),
        "kind": rng.choice(["flat", "house", "boat"], n, p=[0.5, 0.3, 0.2] if seed % 2 else [0.2, 0.3, 0.5]).tolist(),
        "sold": (size + rng.normal(0, 2, n) > 4).tolist(),
        "day": day,
    }


def binned(table: dict, names: tuple[str, ...]) -> list[tuple]:
    """Rows as the twin sees them: reals in eight bins, everything else as it is."""
    columns = [[min(int(v), 7) for v in table[name]] if name == "size" else table[name] for name in names]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_total_variation_agrees_with_its_twin(ways):
    """Every choice of columns, nulls and categories included, over joint bins."""
    real, synthetic = town(300, 1), town(200, 2)
    found = metrics.total_variation(
        pl.DataFrame(real), pl.DataFrame(synthetic), SCHEMA, ways=ways, bins=8, scale="range"
    )
    assert len(found) == {1: 5, 2: 10, 3: 10}[ways]
    for chosen, distance in found.items():
        if "day" in chosen:
            continue  # 31 days in 8 bins; below, one bin per day
        assert distance == pytest.approx(twins.total_variation(binned(real, chosen), binned(synthetic, chosen)))
    bins = {"size": 8, "rooms": 6, "kind": 3, "sold": 2, "day": 31}
    found = metrics.total_variation(
        pl.DataFrame(real), pl.DataFrame(synthetic), SCHEMA, ways=ways, bins=bins, scale="range"
    )
    for chosen, distance in found.items():
        assert distance == pytest.approx(twins.total_variation(binned(real, chosen), binned(synthetic, chosen)))


def test_kinds_of_tables_agree():
    """pandas, polars and pyarrow hold the same rows, so distances are the same, also across kinds."""
    real, synthetic = town(100, 1), town(100, 2)
    kinds = [pd.DataFrame, pl.DataFrame, pa.table]
    distances = (metrics.total_variation, metrics.ks_distance, metrics.wasserstein, metrics.common_values_kept)
    for distance in distances:
        expected = distance(pl.DataFrame(real), pl.DataFrame(synthetic), SCHEMA)
        for kind in kinds:
            assert distance(kind(real), kind(synthetic), SCHEMA) == expected
        assert distance(pd.DataFrame(real), pa.table(synthetic), SCHEMA) == expected


def test_many_joint_bins():
    """Joint bins too many to be counted in an array give the same as few rows in a dictionary."""
    rng = np.random.default_rng(0)
    schema = sp.Schema({name: sp.Integer(0, 9999) for name in "abc"})
    real, synthetic = rng.integers(0, 10_000, (50, 3)), rng.integers(0, 10_000, (50, 3))
    synthetic[:20] = real[:20]
    found = metrics.total_variation(real, synthetic, schema, ways=3, bins=10_000, scale="range")
    expected = twins.total_variation([*map(tuple, real.tolist())], [*map(tuple, synthetic.tolist())])
    assert found["a", "b", "c"] == pytest.approx(expected) == pytest.approx(0.6)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(-3, 7), st.floats(-3, 7)), min_size=1, max_size=20))
def test_wasserstein_agrees_with_matching(pairs):
    """Sorted values matched in turn, clamped to the bounds, as a part of the range."""
    first, second = map(list, zip(*pairs, strict=True))
    schema = sp.Schema({"x": sp.Real(-2, 6)})
    clamped = [[(min(max(v, -2), 6) + 2) / 8 for v in values] for values in (first, second)]
    found = metrics.wasserstein(np.array(first)[:, None], np.array(second)[:, None], schema, scale="range")["x"]
    # Where one side happens to be in single precision, both are compared in it.
    assert found == pytest.approx(twins.wasserstein(*clamped), abs=1e-6)


def test_wasserstein_of_every_type():
    """Integers and dates by their range, truth values by their share, categories as total variation, nulls apart."""
    real = {"size": [0.0, 8.0], "rooms": [1, 1], "kind": ["flat", "boat"], "sold": [True, True]}
    synthetic = {"size": [4.0, 8.0], "rooms": [6, 1], "kind": ["boat", "boat"], "sold": [False, True]}
    real["day"], synthetic["day"] = [date(2020, 1, 1), None], [date(2020, 1, 31), date(2020, 1, 31)]
    found = metrics.wasserstein(pl.DataFrame(real), pl.DataFrame(synthetic), SCHEMA, scale="range")
    assert found == pytest.approx({"size": 0.25, "rooms": 0.5, "kind": 0.5, "sold": 0.5, "day": 0.5 + 0.5 * 1})
    alone = sp.Schema({"day": SCHEMA["day"]})
    empty = pl.DataFrame({"day": pl.Series([None, None], dtype=pl.Date)})
    assert metrics.wasserstein(empty, pl.DataFrame({"day": synthetic["day"]}), alone) == {"day": 1.0}


def test_weights_stand_for_repeated_rows():
    """A row of weight 2/n is a row that is there twice."""
    real, synthetic = town(60, 1), pl.DataFrame(town(40, 2))
    repeated = pl.concat([pl.DataFrame(real), pl.DataFrame(real)[:20]])
    weights = np.r_[np.full(20, 2 / 80), np.full(40, 1 / 80)]
    distances = [
        (metrics.total_variation, {"ways": 2}),
        (metrics.total_variation, {"ways": 2, "scale": "range"}),
        (metrics.wasserstein, {}),
        (metrics.wasserstein, {"scale": "range"}),
        (metrics.ks_distance, {}),
        (metrics.common_values_kept, {}),
        (metrics.zeros_off, {}),
    ]
    for distance, options in distances:
        by_rows = distance(repeated, synthetic, SCHEMA, **options)
        by_weights = distance(pl.DataFrame(real), synthetic, SCHEMA, real_weights=weights, **options)
        assert by_rows == pytest.approx(by_weights)
    with pytest.raises(InputError, match="real_weights adds up to 60"):
        metrics.wasserstein(pl.DataFrame(real), synthetic, SCHEMA, real_weights=np.ones(60))


def test_bad_input_is_named():
    """Ways, bins, missing values, empty tables, unknown bounds."""
    frame, schema = np.array([[0.5], [0.25]]), sp.Schema({"x": sp.Real(0, 1)})
    for ways in (0, 4, True, "1"):
        with pytest.raises(ParameterError, match="ways="):
            metrics.total_variation(frame, frame, schema, ways=ways)
    with pytest.raises(ParameterError, match="ways=2 columns cannot be chosen from 1"):
        metrics.total_variation(frame, frame, schema, ways=2)
    with pytest.raises(ParameterError, match="bins=None"):
        metrics.total_variation(frame, frame, schema, bins=None)
    with pytest.raises(ParameterError, match="0 bins on column 'x'"):
        metrics.total_variation(frame, frame, schema, bins=0)
    for bins in (2.5, True, "equal"):
        with pytest.raises(ParameterError, match="bins="):
            metrics.total_variation(frame, frame, schema, bins=bins)
    with pytest.raises(ParameterError, match="bins: 'y' is not a column"):
        metrics.total_variation(frame, frame, schema, bins={"y": 3})
    with pytest.raises(ParameterError, match="bins says nothing about column 'x'"):
        metrics.total_variation(frame, frame, schema, bins={})
    for distance in (metrics.total_variation, metrics.wasserstein, metrics.compare):
        with pytest.raises(ParameterError, match="scale='equal' is not 'quantiles' or 'range'"):
            distance(frame, frame, schema, scale="equal")
    for n_values in (0, 2.5, True):
        with pytest.raises(ParameterError, match="n_values="):
            metrics.common_values_kept(frame, frame, schema, n_values=n_values)
    for least in (-0.1, 2, "all", float("nan")):
        with pytest.raises(ParameterError, match="least="):
            metrics.common_values_kept(frame, frame, schema, least=least)
    alone = sp.Schema({"id": sp.Identifier()})
    with pytest.raises(SchemaError, match="no column to compare"):
        metrics.ks_distance(pl.DataFrame({"id": ["a"]}), pl.DataFrame({"id": ["b"]}), alone)
    every = (
        metrics.total_variation,
        metrics.wasserstein,
        metrics.ks_distance,
        metrics.common_values_kept,
        metrics.zeros_off,
        metrics.compare,
    )
    for distance in every:
        with pytest.raises(InputError, match="column 'x' holds a missing"):
            distance(frame, frame * np.nan, schema)
        with pytest.raises(InputError, match="synthetic has no rows"):
            distance(frame, frame[:0], schema)
        with pytest.raises(SchemaError, match="the schema leaves some bounds open"):
            distance(frame, frame, sp.Schema({"x": sp.Real(bounds="private")}))


# --------------------------------------------------------------------------------------------- train on synthetic

QUICK = ("Logistic Regression", "Gaussian Naive Bayes", "Linear SVM", "Decision Tree")


def test_good_rows_teach_more_than_bad_ones():
    """Rows of the same law teach the target; rows whose target is shuffled do not."""
    real, good = pl.DataFrame(town(600, 1)), pl.DataFrame(town(600, 3))
    shuffled = good.with_columns(good["sold"].shuffle(seed=0))
    learnt = metrics.train_on_synthetic(real, good, SCHEMA, target="sold", classifiers=QUICK)
    confused = metrics.train_on_synthetic(real, shuffled, SCHEMA, target="sold", classifiers=QUICK)
    assert list(learnt) == list(QUICK)
    assert min(learnt[name] for name in QUICK[:3]) > 0.8
    assert np.mean([*confused.values()]) < 0.65
    again = metrics.train_on_synthetic(real, good, SCHEMA, target="sold", classifiers=QUICK)
    assert again == learnt


def test_the_protocol_of_dp_merf():
    """Predicted labels, columns as they are, DP-MERF's two settings: against plain scikit-learn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.naive_bayes import BernoulliNB

    rng = np.random.default_rng(5)
    quick = ("Logistic Regression", "Bernoulli Naive Bayes")
    schema = sp.Schema({"x": sp.Real(-900, 900), "y": sp.Real(-9, 9), "is_x": sp.Integer(0, 1)})
    tables = []
    for n_rows in (400, 300):
        x, y = rng.normal(40, 100, n_rows), rng.normal(size=n_rows)
        tables.append(np.column_stack([x, y, x + 80 * y + rng.normal(0, 50, n_rows) > 30]))
    real, synthetic = tables
    areas = metrics.train_on_synthetic(real, synthetic, schema, target="is_x", classifiers=quick, protocol="dp-merf")
    for name, model in zip(quick, (LogisticRegression(max_iter=2000), BernoulliNB(alpha=0.02)), strict=True):
        predicted = model.fit(synthetic[:, :2], synthetic[:, 2]).predict(real[:, :2])
        assert areas[name] == pytest.approx(roc_auc_score(real[:, 2], predicted))
    ranked = metrics.train_on_synthetic(real, synthetic, schema, target="is_x", classifiers=quick)
    assert areas["Logistic Regression"] < ranked["Logistic Regression"]
    # Bernoulli naive Bayes cuts at 0, which is another place once columns are centred.
    assert areas["Bernoulli Naive Bayes"] != pytest.approx(ranked["Bernoulli Naive Bayes"], abs=0.01)


def test_the_papers_twelve():
    """Twelve classifiers under the names of the paper's table; all that scikit-learn has run on any table."""
    assert len(metrics.CLASSIFIERS) == 12
    names = [name for name in metrics.CLASSIFIERS if name != "XGBoost"]
    real, good = pl.DataFrame(town(150, 1)), pl.DataFrame(town(150, 3))
    areas = metrics.train_on_synthetic(real, good, SCHEMA, target="sold", classifiers=names)
    assert all(0.5 < area <= 1 for area in areas.values()), areas


def test_xgboost():
    """The twelfth, where it is installed."""
    pytest.importorskip("xgboost")
    real, good = pl.DataFrame(town(150, 1)), pl.DataFrame(town(150, 3))
    areas = metrics.train_on_synthetic(real, good, SCHEMA, target="sold", classifiers=["XGBoost"])
    assert areas["XGBoost"] > 0.6


def test_what_cannot_be_learnt(monkeypatch):
    """One class alone teaches nothing; real rows of one class cannot judge; wrong names are named."""
    real = pl.DataFrame(town(50, 1))
    one_class = real.with_columns(sold=pl.lit(value=True))
    areas = metrics.train_on_synthetic(real, one_class, SCHEMA, target="sold", classifiers=QUICK)
    assert areas == dict.fromkeys(QUICK, 0.5)
    call = {"schema": SCHEMA, "target": "sold", "classifiers": QUICK}
    with pytest.raises(InputError, match="real holds one value of 'sold' alone"):
        metrics.train_on_synthetic(one_class, real, **call)
    with pytest.raises(ParameterError, match="'Oracle' is not one of Logistic"):
        metrics.train_on_synthetic(real, real, **call | {"classifiers": ["Oracle"]})
    with pytest.raises(ParameterError, match="protocol='accuracy' is not 'ranking' or 'dp-merf'"):
        metrics.train_on_synthetic(real, real, protocol="accuracy", **call)
    with pytest.raises(ParameterError, match="seed=-1"):
        metrics.train_on_synthetic(real, real, seed=-1, **call)
    for target in ("price", "size", "kind"):
        with pytest.raises(SchemaError, match=f"target='{target}'"):
            metrics.train_on_synthetic(real, real, **call | {"target": target})
    alone = sp.Schema({"sold": sp.Boolean()})
    with pytest.raises(SchemaError, match="no column beside the target"):
        metrics.train_on_synthetic(real.select("sold"), real.select("sold"), **call | {"schema": alone})
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"pip install xgboost(-cpu)?, or .* extra 'classify'"):
        metrics.train_on_synthetic(real, real, **call | {"classifiers": ["XGBoost"]})
