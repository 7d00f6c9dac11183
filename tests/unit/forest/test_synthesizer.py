"""ForestSynthesizer: what a user gets, odd tables first."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError, ParameterError, ParameterWarning, SchemaError
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.synthesizers.verify import check_plan

RNG = np.random.default_rng(5)
N = 3000


def mixed(n: int = N, seed: int = 0) -> pl.DataFrame:
    """Numbers, categories, dates and nulls; `wealth` and `town` go with `label`."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.3
    town = np.where(label, rng.choice(["A", "B"], n, p=[0.9, 0.1]), rng.choice(["A", "B"], n, p=[0.1, 0.9]))
    wealth = rng.normal(np.where(label, 40.0, 10.0), 3.0)
    days = rng.integers(0, 300, n)
    rating = [None if r < 0.2 else int(6 * r) for r in rng.random(n)]
    return pl.DataFrame(
        {
            "wealth": wealth,
            "town": town,
            "since": [date(2020, 1, 1).toordinal() + int(d) for d in days],
            "rating": rating,
            "label": label,
        }
    ).with_columns(pl.col("since").map_elements(date.fromordinal, return_dtype=pl.Date))


SCHEMA = sp.Schema(
    {
        "wealth": sp.Real(-1000, 1000),
        "town": sp.Category(["A", "B", "C"]),
        "since": sp.Date("2019-01-01", "2022-12-31"),
        "rating": sp.Integer(0, 5, nullable=True),
        "label": sp.Boolean(),
    }
)


def fit(frame=None, schema=SCHEMA, seed=1, **options):
    options.setdefault("epsilon", 3)
    return sp.ForestSynthesizer(**options).fit(
        mixed() if frame is None else frame, schema, entropy=sp.UnsafeSeededEntropy(seed)
    )


@pytest.mark.parametrize("delta", ["1e-5", 0])
@pytest.mark.parametrize("target", [None, "label", "wealth"])
@pytest.mark.parametrize("quality", ["fast", "high"])
def test_learns_what_goes_together(delta, target, quality):
    """Columns keep their shapes, and two that depend on each other still do, over three releases."""
    models = [fit(delta=delta, target=target, quality=quality, seed=seed) for seed in (1, 2, 3)]
    rows = pl.concat([model.sample(4000, seed=0) for model in models])
    real = mixed()
    assert rows.schema == real.schema
    assert abs(rows["label"].mean() - 0.3) < 0.05
    for frame, slack in ((real, 0.03), (rows, 0.12)):
        with_label = frame.filter(pl.col("label"))
        assert abs((with_label["town"] == "A").mean() - 0.9) < slack
        assert abs(with_label["wealth"].mean() - 40) < 60 * slack
    assert abs(rows["rating"].is_null().mean() - 0.2) < 0.05
    assert rows["since"].min() >= date(2019, 1, 1)
    assert rows["since"].max() <= date(2022, 12, 31)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_the_kind_of_table_that_came_in_goes_out(frame):
    table = mixed()
    given = {"pandas": table.to_pandas(), "polars": table, "pyarrow": table.to_arrow()}[frame]
    rows = fit(given).sample(10, seed=0)
    assert isinstance(rows, {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[frame])


def test_the_budget_is_what_was_asked_for():
    """One charge for all parts together, of exactly epsilon and delta; pure epsilon adds up exactly."""
    model = fit(epsilon="0.5", delta="1e-6")
    assert str(model.card_.epsilon) == "1/2"
    assert model.card_.delta == model.ledger_.spent_delta
    assert float(model.card_.delta) == 1e-6
    pure = fit(epsilon="0.5", delta=0)
    assert str(pure.card_.epsilon) == "1/2"
    assert pure.card_.delta == 0


def test_a_shared_ledger_is_charged_and_holds():
    ledger = sp.Ledger(limit="1", delta="1e-5")
    sp.ForestSynthesizer("0.6").fit(mixed(400), SCHEMA, ledger=ledger)
    with pytest.raises(sp.SpinneyError, match=r"epsilon=0\.6 does not fit"):
        sp.ForestSynthesizer("0.6").fit(mixed(400), SCHEMA, ledger=ledger)
    assert str(ledger.spent) == "3/5"


def test_a_pure_ledger_refuses_a_delta_before_rows_are_read():
    ledger = sp.Ledger(limit="1")
    with pytest.raises(sp.SpinneyError, match="delta"):
        sp.ForestSynthesizer("0.6").fit(mixed(200), SCHEMA, ledger=ledger)
    assert ledger.spent == 0


# --------------------------------------------------------------------------------------------------------- odd tables


@pytest.mark.parametrize("delta", ["1e-5", 0])
@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
@pytest.mark.parametrize("quality", ["fast", "high"])
def test_one_row(delta, unit, quality):
    rows = fit(mixed(1), delta=delta, unit=unit, quality=quality, target="label").sample(20, seed=0)
    assert len(rows) == 20


def test_no_rows_is_refused_where_the_number_is_public():
    with pytest.raises(InputError, match="no rows"):
        fit(mixed(1).head(0))
    assert len(fit(mixed(1).head(0), unit="add-remove").sample(5, seed=0)) == 5


@pytest.mark.parametrize("target", [None, "x"])
@pytest.mark.parametrize(
    "column", [sp.Real(0, 1), sp.Boolean(), sp.Category(["a"]), sp.Integer(4, 4), sp.Integer(0, 9)]
)
def test_one_column(column, target):
    values = {"real": RNG.random(500), "boolean": RNG.random(500) < 0.5, "category": ["a"] * 500}
    frame = pl.DataFrame({"x": values.get(column.type_name, np.full(500, 4))})
    rows = fit(frame, sp.Schema({"x": column}), target=target).sample(50, seed=0)
    assert rows["x"].null_count() == 0
    if column in (sp.Category(["a"]), sp.Integer(4, 4)):
        assert rows["x"].n_unique() == 1


def test_all_rows_equal():
    """Noise may add values, but nearly all rows are the one there is."""
    frame = pl.DataFrame({"x": np.full(5000, 0.25), "k": ["b"] * 5000, "t": [True] * 5000})
    schema = sp.Schema({"x": sp.Real(0, 1), "k": sp.Category(["a", "b"]), "t": sp.Boolean()})
    rows = fit(frame, schema, target="t").sample(1000, seed=0)
    assert (rows["x"] - 0.25).abs().median() < 1e-3
    assert (rows["k"] == "b").mean() > 0.97


def test_a_class_of_five_rows():
    frame = mixed(4000).with_columns(label=pl.Series(np.arange(4000) < 5))
    rows = fit(frame, target="label", epsilon=1).sample(4000, seed=0)
    assert rows["label"].mean() < 0.03
    forced = fit(frame, target="label", epsilon=1).sample(100, seed=0, where={"label": True})
    assert forced["label"].all()


def test_a_target_of_one_class():
    frame = mixed(2000).with_columns(label=pl.lit(value=True))
    assert fit(frame, target="label").sample(500, seed=0)["label"].mean() > 0.95
    known = sp.Schema({**SCHEMA, "label": sp.Category(["yes"])})
    rows = fit(frame.with_columns(label=pl.lit("yes")), known, target="label").sample(500, seed=0)
    assert (rows["label"] == "yes").all()


def test_categories_never_seen_are_rare():
    rows = fit(epsilon=5).sample(3000, seed=0)
    assert (rows["town"] == "C").mean() < 0.02


def test_ten_thousand_categories():
    """Those that stand out keep their counts; the rest share what is left and stay possible."""
    names = [f"c{i}" for i in range(10_000)]
    values = np.where(RNG.random(20_000) < 0.5, "c7", RNG.choice(names, 20_000))
    frame = pl.DataFrame({"code": values, "y": values == "c7"})
    schema = sp.Schema({"code": sp.Category(names), "y": sp.Boolean()})
    rows = fit(frame, schema, target="y").sample(5000, seed=0)
    assert abs((rows["code"] == "c7").mean() - 0.5) < 0.05
    assert rows["code"].n_unique() > 50
    assert (rows.filter(pl.col("y"))["code"] == "c7").mean() > 0.9


def test_a_column_of_nulls_alone():
    frame = mixed(2000).with_columns(rating=pl.lit(None, dtype=pl.Int64))
    assert fit(frame).sample(1000, seed=0)["rating"].is_null().mean() > 0.97


def test_bounds_a_million_times_too_wide():
    frame = pl.DataFrame({"x": RNG.normal(5, 1, 20_000), "y": RNG.integers(0, 9, 20_000)})
    schema = sp.Schema({"x": sp.Real(-1e6, 1e6), "y": sp.Integer(-(10**7), 10**7)})
    rows = fit(frame, schema, epsilon=2).sample(5000, seed=0)
    assert abs(rows["x"].median() - 5) < 0.5
    assert rows["y"].is_between(-50, 60).mean() > 0.95


def test_two_identical_columns():
    x = RNG.integers(0, 10, 5000)
    schema = sp.Schema({"a": sp.Integer(0, 9), "b": sp.Integer(0, 9), "c": sp.Boolean()})
    frame = pl.DataFrame({"a": x, "b": x, "c": RNG.random(5000) < 0.5})
    rows = fit(frame, schema).sample(5000, seed=0)
    assert (rows["a"] == rows["b"]).mean() > 0.85


def test_a_budget_too_small_falls_back_to_uniform_and_says_so():
    model = fit(mixed(50), epsilon="0.001", delta="1e-6")
    assert model.card_.plan["structure"] == "uniform"
    rows = model.sample(9000, seed=0)
    assert abs((rows["town"] == "C").mean() - 1 / 3) < 0.05
    assert abs(rows["wealth"].mean()) < 50
    assert rows["wealth"].std() > 400


def test_an_identifier_is_made_afresh_and_never_read():
    frame = mixed(500).with_columns(who=pl.Series([object() for _ in range(500)], dtype=pl.Object))
    schema = sp.Schema({**SCHEMA, "who": sp.Identifier(prefix="P-")})
    rows = fit(frame, schema).sample(12, seed=0)
    assert rows["who"][0] == "P-000001"
    assert rows["who"].n_unique() == 12
    with pytest.raises(SchemaError, match="identifiers"):
        fit(frame.select("who"), sp.Schema({"who": sp.Identifier()}))
    with pytest.raises(ParameterError, match="target='who'"):
        fit(frame, schema, target="who")


# --------------------------------------------------------------------------------------------------------- bad input


def test_bad_parameters_are_named():
    for options, message in (
        ({"quality": "better"}, "quality='better' is not 'fast' or 'high'"),
        ({"target": "income"}, "target='income'"),
        ({"delta": 2}, "delta=2"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"unit": "person"}, "unit='person'"),
        ({"assumed_rows": 0}, "assumed_rows=0"),
    ):
        with pytest.raises(ParameterError, match=message):
            fit(mixed(10), **options)


def test_unreadable_values_cost_nothing():
    ledger = sp.Ledger(limit="5", delta="1e-5")
    frame = mixed(100).with_columns(wealth=pl.lit(float("nan")))
    with pytest.raises(InputError, match="'wealth'"):
        sp.ForestSynthesizer(1).fit(frame, SCHEMA, ledger=ledger)
    assert ledger.spent == 0


def test_private_bounds_are_paid_for_within_the_budget():
    schema = sp.Schema({**SCHEMA, "wealth": sp.Real(bounds="private")})
    model = fit(schema=schema, epsilon=4)
    assert model.card_.epsilon == 4
    assert abs(model.sample(2000, seed=0)["wealth"].mean() - 19) < 8


# --------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("delta", ["1e-5", 0])
def test_a_saved_model_draws_the_same_rows(tmp_path, delta):
    model = fit(delta=delta, target="label")
    model.save(tmp_path / "m.spinney")
    loaded = sp.load(tmp_path / "m.spinney")
    options = {"seed": 3, "where": {"rating": None}, "balance": {"label": 0.5}}
    assert loaded.sample(100, **options).equals(model.sample(100, **options))
    assert str(loaded.card) == str(model.card_)


# ------------------------------------------------------------------------------------------------- a quality of before


def test_the_quality_of_before_is_that_of_now() -> None:
    """`quality="best"` was no nearer to tables than "high": a fit warns, and gives the release of "high"."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=2_000), rng.integers(0, 3, 2_000), rng.integers(0, 2, 2_000)])
    schema = sp.Schema({"x": sp.Real(-9, 9), "kind": sp.Integer(0, 2), "label": sp.Boolean()})

    def fitted(quality: str) -> sp.ForestSynthesizer:
        return sp.ForestSynthesizer("2", "1e-6", quality=quality).fit(table, schema, entropy=UnsafeSeededEntropy(1))

    with pytest.warns(ParameterWarning, match='write quality="high"'):
        old = fitted("best")
    new = fitted("high")
    assert old.release_.card.parameters["quality"] == "high"
    assert old.release_.card.plan == new.release_.card.plan
    assert old.sample(50, seed=1).tolist() == new.sample(50, seed=1).tolist()
    with pytest.warns(ParameterWarning, match="no more") as told:
        plan = sp.plan(schema, 2_000, 2, quality="best")
    assert len(told) == 1
    assert plan.to_dict() == sp.plan(schema, 2_000, 2, quality="high").to_dict()


def test_files_of_the_quality_of_before_are_as_they_were(monkeypatch, tmp_path) -> None:
    """They load, draw the same rows, and their plan is the one that the call made then: four rounds a column."""
    monkeypatch.setattr("spinney.synthesizers.forest.checked_quality", lambda quality: quality)
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (200_000, 4))
    schema = sp.Schema({f"b{k}": sp.Integer(0, 1) for k in range(4)})
    model = sp.ForestSynthesizer("9", "1e-6", quality="best").fit(table, schema)
    assert model.design_.plan.choices["selection"].times == 4 * 4
    path = tmp_path / "best.spinney"
    model.save(path)
    loaded = sp.load(path)
    assert loaded.sample(50, seed=1).tolist() == model.sample(50, seed=1).tolist()
    assert "the plan was made again" in check_plan(loaded)[0][0]
