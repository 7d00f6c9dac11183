"""Stated workloads: tables that a call wants measured as they are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import spinney as sp
from spinney.cli.app import app
from spinney.errors import ParameterError
from spinney.release.card import ContradictionError

N = 8_000
REGIONS = list("abcdefghij")
SCHEMA = sp.Schema(
    {
        "region": sp.Category(REGIONS),
        "size": sp.Integer(0, 9),
        "age": sp.Integer(0, 99),
        "label": sp.Boolean(),
        "other": sp.Real(0, 1),
        "id": sp.Identifier(),
    }
)


def table(n: int = N) -> pl.DataFrame:
    """`size` follows `region` and `label` together: neither alone tells it, and two regions are rare."""
    rng = np.random.default_rng(0)
    region = rng.choice(10, n, p=[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.04, 0.005, 0.005])
    label = rng.random(n) < 0.5
    size = np.where(label, region, 9 - region)
    age = np.clip(rng.normal(45, 15, n), 0, 99).astype(int)
    return pl.DataFrame(
        {
            "region": [REGIONS[place] for place in region],
            "size": size,
            "age": age,
            "label": label,
            "other": rng.random(n),
            "id": np.arange(n),
        }
    )


def fit(workload, *, seed=3, **options):
    options = {"epsilon": 2, "delta": "1e-6"} | options
    entropy = sp.UnsafeSeededEntropy(seed)
    return sp.ForestSynthesizer(workload=workload, **options).fit(table(), SCHEMA, entropy=entropy)


def shares(frame: pl.DataFrame, names) -> dict:
    counted = frame.group_by(names).len()
    return {row[:-1]: row[-1] / frame.height for row in counted.rows()}


def error(model, names) -> float:
    """The sum over all cells of |synthetic share - real share|."""
    real, drawn = shares(table(), names), shares(model.sample(100_000, seed=1), names)
    return sum(abs(real.get(cell, 0) - drawn.get(cell, 0)) for cell in {*real, *drawn})


STATED = ("region", "size", "label")


@pytest.mark.parametrize("quality", ["fast", "high"])
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_a_stated_table_is_nearer_than_one_that_is_not(quality, delta):
    """What pairs cannot show is shown where its table is stated, rare categories too."""
    stated, other = (
        [fit(workload, seed=seed, quality=quality, delta=delta) for seed in (3, 4, 5)] for workload in ([STATED], None)
    )
    assert sum(error(model, STATED) for model in stated) < 0.6 * sum(error(model, STATED) for model in other)
    stated = stated[0]
    assert stated.release_.columns["region"].n_states == len(REGIONS)
    assert stated.release_.verify_contents()


def test_stated_tables_of_one_column_are_in_the_explanation():
    """Every stated table is in the list, also one of a single column."""
    explained = fit([STATED, ("age",)]).explain()
    assert {clique.columns for clique in explained.cliques if clique.reason == "stated"} == {STATED, ("age",)}


def test_the_stage_is_paid_for_and_told():
    """Card, plan and explanation say what stated tables took, and that they were stated."""
    model = fit([STATED, ("age",)], target="label")
    assert model.card_.parameters["workload"] == [list(STATED), ["age"]]
    stage = next(stage for stage in model.explain().stages if stage.name == "workload")
    assert stage.times == 2
    assert 0.3 < stage.share < 0.45
    assert stage.noise_std == pytest.approx(model.card_.plan["workload noise"], abs=1e-3)
    assert {clique.reason for clique in model.explain().cliques if set(STATED) <= {*clique.columns, clique.given}} == {
        "stated"
    }
    assert "2 tables of the workload were counted as stated" in str(model.explain()).replace("\n" + 14 * " ", " ")


def test_files_hold_them(tmp_path):
    """A file with stated tables loads, verifies and draws what the model draws; one whose card denies them does not."""
    model = fit([("size", "region")])
    model.save(tmp_path / "it.spinney")
    again = sp.load(tmp_path / "it.spinney")
    assert again.verify_contents()
    assert again.sample(50, seed=2, frame="polars").equals(model.sample(50, seed=2))
    again.card.parameters["workload"].append(["age", "label"])
    with pytest.raises(ContradictionError, match="workload"):
        again.verify_contents()


def test_all_columns_joined_by_stated_tables():
    """Where stated tables join all columns, nothing is left to choose."""
    schema = sp.Schema({name: SCHEMA[name] for name in STATED})
    model = sp.ForestSynthesizer("2", workload=[STATED]).fit(table().select(STATED), schema)
    assert model.release_.looked_at == (STATED,)
    assert model.card_.plan["structure"] == "independent"
    assert "beyond the workload" in model.explain().meaning
    assert model.release_.verify_contents()


def test_conditions_and_rules_hold_within_stated_tables():
    """Rows of a stated table obey rules and conditions."""
    rules = [sp.Implies({"region": "a"}, {"size": [0, 9]})]
    schema = sp.Schema(dict(SCHEMA), rules=rules)
    model = sp.ForestSynthesizer("2", workload=[STATED]).fit(table(), schema)
    rows = model.sample(2000, seed=0, where={"region": ["a", "b"]}, balance={"label": 0.9})
    assert set(rows.filter(pl.col("region") == "a")["size"]) <= {0, 9}
    assert set(rows["region"]) == {"a", "b"}
    assert rows["label"].mean() == pytest.approx(0.9, abs=0.05)
    assert model.release_.verify_contents()


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("region", "is not a list of tables"),
        ([("region", "sise")], "did you mean 'size'"),
        (["region"], r"write \('region',\)"),
        ([("region", "region")], "twice in the table"),
        ([("region", "size"), ("size", "region")], "stated twice"),
        ([()], "0 columns"),
        ([("id", "region")], "identifier"),
        ([3], "not a list of columns"),
    ],
)
def test_what_cannot_be_stated_is_refused_by_name(workload, message):
    """Wrong workloads are refused before anything is spent, and by `check`."""
    ledger = sp.Ledger(limit=5, delta="1e-3")
    with pytest.raises(ParameterError, match=message):
        sp.ForestSynthesizer(workload=workload).fit(table(100), SCHEMA, ledger=ledger)
    assert ledger.spent == 0
    assert any("workload" in fault.message for fault in sp.check(table(100), SCHEMA, workload=workload).faults)


def test_tables_that_are_too_large_are_refused_before_budget_is_spent():
    """The message says how many cells there would be, of which columns, and what to do."""
    columns = {f"c{i}": sp.Category([str(j) for j in range(40)]) for i in range(4)}
    frame = pl.DataFrame({name: ["1"] * 100 for name in columns})
    with pytest.raises(ParameterError, match=r"2,560,000 cells, and it may have 1,000,000.*'c3'.*fewer columns"):
        sp.ForestSynthesizer(workload=[tuple(columns)]).fit(frame, sp.Schema(columns))
    long = sp.Schema({"c": sp.Category([str(j) for j in range(300)]), "d": sp.Boolean()})
    with pytest.raises(ParameterError, match="300 values, and a stated table tells up to 256"):
        sp.ForestSynthesizer(workload=[("c", "d")]).fit(pl.DataFrame({"c": ["1"], "d": [True]}), long)
    many = [tuple(sorted(pair)) for pair in zip(columns, [*columns][1:] + [*columns][:1], strict=True)]
    with pytest.raises(ParameterError, match="c"):  # a ring of pairs needs triples
        sp.ForestSynthesizer(workload=[*many, ("c0", "c2"), ("c1", "c3")]).fit(frame, sp.Schema(columns))


def test_computed_columns_and_places_are_refused():
    """Columns without states of their own cannot be stated."""
    schema = sp.Schema(
        {"x": sp.Real(0, 1), "y": sp.Real(0, 1), "a": sp.Integer(0, 3), "b": sp.Integer(0, 3), "c": sp.Integer(0, 6)},
        rules=[sp.Sum("c", ["a", "b"])],
        places=[sp.Place("x", "y")],
    )
    frame = pl.DataFrame({"x": [0.5], "y": [0.5], "a": [1], "b": [2], "c": [3]})
    for workload, message in (([("x", "a")], "part of the place"), ([("c", "a")], "computed from others")):
        with pytest.raises(ParameterError, match=message):
            sp.ForestSynthesizer(workload=workload).fit(frame, schema)


def test_synthesize_and_the_command_line_take_a_workload(tmp_path):
    """`synthesize(workload=)` chooses the forest, and `--workload` states a table each time it is given."""
    assert sp.synthesize(table(500), SCHEMA, workload=[("size",)], n_rows=5).height == 5
    table().write_csv(tmp_path / "t.csv")
    SCHEMA.to_file(tmp_path / "s.toml")
    given = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--workload", "region, size"]
    options = ["--workload", "age", "--epsilon", "1", "--out", str(tmp_path / "o.spinney")]
    result = CliRunner().invoke(app, ["fit", *given, *options])
    assert result.exit_code == 0, result.output
    assert sp.load(tmp_path / "o.spinney").card.parameters["workload"] == [["region", "size"], ["age"]]
    assert CliRunner().invoke(app, ["check", *given]).exit_code == 0
    assert CliRunner().invoke(app, ["check", *given, "--workload", "nobody"]).exit_code == 1


def test_other_columns_have_fewer_states_where_there_is_little_room():
    """A stated table that leaves little room is measured all the same, however many rows there turn out to be."""
    rng = np.random.default_rng(4)
    n_rows = 60_000
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "y": rng.normal(size=n_rows),
            "b": rng.integers(0, 3, n_rows),
            "u": rng.random(n_rows),
        }
    )
    schema = sp.Schema({"x": sp.Real(-9, 9), "y": sp.Real(-9, 9), "b": sp.Category((0, 1, 2)), "u": sp.Real(0, 1)})
    model = sp.ForestSynthesizer("4", target="u", unit="add-remove", workload=[("x", "y", "b")]).fit(frame, schema)
    assert ("x", "y", "b") in model.release_.looked_at
    assert model.release_.model.tree.n_cells <= 1_000_000


@pytest.mark.parametrize("workload", [iter([("x", "y")]), [iter("xy")], {("x", "y")}], ids=["all", "one", "a set"])
def test_what_can_be_read_once_is_no_workload(workload):
    """An iterator would be empty when it is needed."""
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    with pytest.raises(ParameterError, match="workload"):
        sp.ForestSynthesizer("1", workload=workload).fit(np.zeros((10, 3)), schema)
