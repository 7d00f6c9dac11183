"""An explanation says what was released: dependence where there is some, noise where there is nothing else."""

from __future__ import annotations

import json
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import NotFittedError, ParameterError
from spinney.forest.design import _SHARES
from spinney.forest.release.explain import explain, strength
from spinney.synthesizers.forest import _CLASSES_SHARE
from spinney.synthesizers.paying import ROWS_SHARE
from support.small_forests import SCHEMA, chain, fitted, table

# ------------------------------------------------------------------------------------------------- strength


def test_independent_columns_have_no_strength() -> None:
    law = np.multiply.outer([0.2, 0.8], [0.5, 0.3, 0.2])
    assert strength(law).distance == pytest.approx(0, abs=1e-12)
    assert strength(law).bits == pytest.approx(0, abs=1e-12)


def test_equal_columns_have_all_of_it() -> None:
    """Four values that two columns share: 3 rows of 4 would have to move, and one column tells 2 bits of the other."""
    found = strength(np.eye(4) / 4)
    assert found.distance == pytest.approx(0.75)
    assert found.bits == pytest.approx(2)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_a_common_cause_explains_everything(given: int) -> None:
    """Two columns that agree with a third are independent given it, and not otherwise."""
    law = np.zeros((2, 2, 2))
    law[0, 0, 0] = law[1, 1, 1] = 0.5
    law = np.moveaxis(law, 0, given)
    assert strength(law, given).distance == pytest.approx(0, abs=1e-12)
    assert strength(law).bits == pytest.approx(2), "three columns as one: three bits of their own, one together"


def test_given_a_column_strengths_are_averages() -> None:
    layers = [np.eye(2) / 2, np.full((2, 2), 0.25)]
    law = np.stack([0.3 * layers[0], 0.7 * layers[1]])
    assert strength(law, 0).distance == pytest.approx(0.3 * 0.5)
    assert strength(law, 0).bits == pytest.approx(0.3)


# -------------------------------------------------------------------------------------------------- cliques


@pytest.mark.parametrize("delta", ["1e-5", 0])
def test_the_dependent_columns_come_first(delta: str | int) -> None:
    found = fitted(delta=delta).explain().cliques
    assert found[0].columns == ("kind", "size")
    assert found[0].distance > 0.5
    assert found[0].bits > 1
    assert "free" in found[-1].columns
    assert found[-1].distance < 0.15
    distances = [clique.distance for clique in found]
    assert distances == sorted(distances, reverse=True)


def test_counted_tables_and_tables_of_the_model_are_told_apart() -> None:
    """Rounds count more sets of columns than the model has cliques: the page says both, and which is which."""
    release = fitted(quality="high").release_
    n_counted, n_cliques = len(set(release.looked_at)), len(release.model.tree.cliques)
    assert n_counted != n_cliques
    page = " ".join(str(release.explain()).split())
    tables = "1 joint table of columns" if n_cliques == 1 else f"{n_cliques} joint tables of columns"
    assert f"model {tables}, the cliques of a junction tree" in page
    assert f"{n_counted} sets counted, strongest first" in page
    assert "cliques released" not in page


def test_a_target_is_what_strengths_are_given() -> None:
    """Kind decides the label, and half of what kind says about size is known from the label."""
    explanation = fitted(target="label").explain()
    by_columns = {(clique.columns, clique.given): clique for clique in explanation.cliques}
    assert by_columns[("kind", "label"), None].reason == "target"
    chosen = by_columns[("kind", "size"), "label"]
    assert chosen.reason == "chosen"
    assert 0.3 < chosen.distance < 0.5
    assert "label" in explanation.meaning
    assert "kind and size given label" in str(explanation)


def test_rounds_are_explained() -> None:
    explanation = fitted(quality="high").explain()
    assert explanation.structure == "rounds"
    assert {clique.reason for clique in explanation.cliques} == {"round"}
    assert "round" in explanation.meaning.lower()


def test_columns_of_a_rule_say_so() -> None:
    rng = np.random.default_rng(0)
    start = rng.random(5000)
    rows = pa.table({"start": start, "end": start + rng.random(5000), "other": rng.random(5000)})
    ends = {name: sp.Real(0, 2) for name in ("start", "end", "other")}
    schema = sp.Schema(ends, rules=[sp.AtMost("start", "end")])
    explanation = sp.ForestSynthesizer("1").fit(rows, schema).explain()
    reasons = {frozenset(clique.columns): clique.reason for clique in explanation.cliques}
    assert reasons[frozenset(["start", "end"])] == "rule"
    assert list(reasons.values()).count("rule") == 1
    assert "obeys the schema's rule," in explanation.meaning


# ------------------------------------------------------------------------------------------------- structure


def test_too_small_a_budget_is_said_in_plain_words() -> None:
    explanation = fitted("0.0001", 20).explain()
    assert explanation.structure == "uniform"
    assert "too small" in explanation.meaning
    assert "too small" in " ".join(str(explanation).split())
    assert explanation.cliques == ()
    assert explanation.stages == ()
    assert "nothing was spent" in str(explanation)
    assert [leaf["rows"] for leaf in explanation.bins("kind")] == pytest.approx([5] * 4), "even, as it says"


def test_nothing_is_called_fitted_or_measured_that_was_not() -> None:
    """Of a budget that buys nothing; and of one that bought the sizes of a target's classes, and nothing else."""
    nothing, classes = fitted("0.0001", 20), fitted("0.0001", 20, target="label")
    for model in (nothing, classes):
        page = " ".join(str(model.card_).split())
        assert "fitted to all that was counted" not in page
        assert "leaves released" not in page
    assert "nothing was counted" in " ".join(str(nothing.card_).split())
    page = " ".join(str(classes.card_).split())
    assert classes.card_.events
    assert "nothing was counted" not in page
    assert "but for counts of 'label'" in page
    assert "but the sizes of the classes of the target, label" in classes.explain().meaning
    assert "nothing was measured" not in classes.explain().meaning


def test_high_quality_that_was_not_to_be_had_is_said() -> None:
    assert 'quality="high"' not in fitted(quality="high").explain().meaning
    poor = fitted("0.5", 2000, quality="high", target="label").explain()
    assert poor.structure in ("tree", "target")
    assert 'quality="high"' in poor.meaning


def test_columns_on_their_own_are_said_to_be_so() -> None:
    explanation = fitted("0.5", 300).explain()
    assert explanation.structure == "independent"
    assert "on its own" in explanation.meaning
    assert "no columns were counted together" in str(explanation)


def test_known_columns_need_no_measurement() -> None:
    schema = sp.Schema({"x": sp.Integer(3, 3), "y": sp.Category(["only"])})
    rows = pa.table({"x": [3] * 50, "y": ["only"] * 50})
    explanation = sp.ForestSynthesizer("1").fit(rows, schema).explain()
    assert "nothing to measure" in explanation.meaning
    assert explanation.bins("x") == [{"low": 3, "high": 3, "is_null": False, "state": 0, "rows": 50.0}]


def test_a_target_alone_was_measured() -> None:
    """A target's classes are counted before the columns; where there is nothing else, that is what was measured."""
    rows = pa.table({"label": np.arange(500) % 2 == 0})
    explanation = sp.ForestSynthesizer("1", target="label").fit(rows, sp.Schema({"label": sp.Boolean()})).explain()
    assert explanation.stages[0].name == "classes"
    assert "nothing to measure" not in explanation.meaning


# --------------------------------------------------------------------------------------------------- budget


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", ["1e-5", 0])
@pytest.mark.parametrize("target", [None, "label"])
def test_shares_are_those_of_the_plan(unit: str, delta: str | int, target: str | None) -> None:
    """Shares are read off the charges alone, by formulas of their own, and agree with what was planned."""
    explanation = fitted(unit=unit, delta=delta, target=target).explain()
    planned = {stage: float(share) for stage, share in _SHARES["tree", target is not None].items()}
    # Of four columns, or of three beside the target, one has a tree, and an eighth of its share goes to its spikes.
    planned["spikes"] = planned["one-way"] / (8 * (4 if target is None else 3))
    planned["one-way"] -= planned["spikes"]
    if target is not None:
        planned = {stage: share * float(1 - _CLASSES_SHARE) for stage, share in planned.items()}
        planned["classes"] = float(_CLASSES_SHARE)
    if delta:  # products have theirs of choices and cliques
        whole = 1.0 if target is None else float(1 - _CLASSES_SHARE)
        given = planned["selection"] + planned["cliques"]
        planned |= {s: planned[s] * (1 - 0.15 * whole / given) for s in ("selection", "cliques")}
        planned["products"] = 0.15 * whole
    if unit == "add-remove":
        planned = {stage: share * float(1 - ROWS_SHARE) for stage, share in planned.items()}
        planned["rows"] = float(ROWS_SHARE)
    found = {stage.name: stage.share for stage in explanation.stages}
    assert found == pytest.approx(planned, rel=1e-3)
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize("delta", ["1e-5", 0])
def test_noise_and_numbers_are_those_of_the_plan(delta: str | int) -> None:
    model = fitted(delta=delta, target="label")
    plan = model.design_.plan
    found = {stage.name: stage for stage in model.explain().stages}
    for name, noise in plan.tables.items():
        assert found[name].noise_std == pytest.approx(noise.noise_std(plan.unit), rel=1e-3)
        assert found[name].times == noise.times
    assert found["trees"].times == plan.trees["trees"].times
    assert found["selection"].times == plan.choices["selection"].times
    assert found["trees"].noise_std is None


def test_bounds_that_were_paid_for_are_a_stage() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 3))
    schema = sp.Schema({name: sp.Real(bounds="private") for name in "xyz"})
    explanation = sp.ForestSynthesizer("2", bounds_share="0.1").fit(rows, schema).explain()
    first, *others = explanation.stages
    assert (first.name, first.times) == ("bounds", 3)
    assert first.share == pytest.approx(0.1)
    assert sum(stage.share for stage in others) == pytest.approx(0.9)
    assert "3 columns" in str(explanation)


# -------------------------------------------------------------------------------------------------- columns


def test_columns_are_described() -> None:
    columns = {column.name: column for column in fitted().explain().columns}
    assert list(columns) == list(SCHEMA)
    assert columns["size"].type == "real"
    assert columns["size"].n_leaves > columns["size"].n_states > 4
    assert (columns["kind"].n_leaves, columns["kind"].n_states) == (4, 4)
    assert columns["free"].null_share == pytest.approx(0.25, abs=0.03)
    assert columns["kind"].null_share is None


def test_bins_are_where_the_rows_are() -> None:
    model = fitted()
    explanation = model.explain()
    for name in SCHEMA:
        assert sum(leaf["rows"] for leaf in explanation.bins(name)) == pytest.approx(5000)
    bins = explanation.bins("size")
    assert [leaf["low"] for leaf in bins[1:]] == [leaf["high"] for leaf in bins[:-1]]
    assert (bins[0]["low"], bins[-1]["high"]) == (-2, 6)
    true_sizes = table(5000)["size"].to_numpy()
    below = sum(leaf["rows"] for leaf in bins if leaf["high"] <= 1)
    assert below == pytest.approx((true_sizes < 1).sum(), abs=250)
    *values, null = explanation.bins("free")
    assert [(leaf["low"], leaf["high"]) for leaf in values] == [("u", "u"), ("v", "v"), ("w", "w")]
    assert null["is_null"]
    assert null["low"] is None
    assert [leaf["low"] for leaf in explanation.bins("label")] == [False, True]


def test_bins_speak_the_language_of_their_column() -> None:
    n = 3000
    rng = np.random.default_rng(0)
    schema = sp.Schema(
        {
            "day": sp.Date("2020-01-01", "2023-12-31"),
            "moment": sp.Datetime("2020-01-01", "2020-12-31", nullable=True),
            "age": sp.Integer(18, 90),
            "pay": sp.Integer(0, 10_000, multiple_of=50),
            "price": sp.Real(0, 100, multiple_of=0.25),
            "number": sp.Identifier(),
        }
    )
    rows = pa.table(
        {
            "day": pa.array(rng.integers(18262, 19722, n).astype(np.int32)).cast(pa.date32()),
            "moment": pa.array(rng.integers(18262, 18600, n) * 86_400_000_000).cast(pa.timestamp("us")),
            "age": rng.integers(18, 91, n),
            "pay": rng.integers(0, 201, n) * 50,
            "price": rng.integers(0, 401, n) * 0.25,
            "number": np.arange(n),
        }
    )
    explanation = sp.ForestSynthesizer("5").fit(rows, schema).explain()
    days, moments, ages, pays, prices = (explanation.bins(name) for name in list(schema)[:5])
    assert (days[0]["low"], days[-1]["high"]) == (date(2020, 1, 1), date(2023, 12, 31))
    assert moments[0]["low"] == datetime(2020, 1, 1)
    assert moments[-1]["is_null"]
    assert moments[-2]["high"] == datetime(2020, 12, 31)
    assert (ages[0]["low"], ages[-1]["high"]) == (18, 90)
    assert all(after["low"] == before["high"] + 1 for before, after in pairwise(ages))
    for leaves, step, top in ((pays, 50, 10_000), (prices, 0.25, 100)):
        assert (leaves[0]["low"], leaves[-1]["high"]) == (0, top)
        assert all(leaf[end] % step == 0 for leaf in leaves for end in ("low", "high"))
        assert all(b["low"] - a["high"] == step for a, b in pairwise(leaves))
    number = explanation.columns[-1]
    assert (number.type, number.n_leaves) == ("identifier", 0)
    with pytest.raises(ParameterError, match="'number' is not a column"):
        explanation.bins("number")


# ---------------------------------------------------------------------------------------------- pages and files


@pytest.mark.parametrize("parameters", [{}, {"target": "label", "delta": 0}, {"unit": "add-remove"}], ids=str)
def test_a_file_explains_the_same(parameters: dict, tmp_path: Path) -> None:
    model = fitted(**parameters)
    model.save(tmp_path / "a.spinney")
    explanation, again = model.explain(), sp.load(tmp_path / "a.spinney").explain()
    assert again.to_dict() == explanation.to_dict()
    assert str(again) == str(explanation)
    assert again.bins("size") == explanation.bins("size")


def test_an_explanation_is_json_ready() -> None:
    described = fitted(target="label").explain().to_dict()
    assert json.loads(json.dumps(described)) == described
    assert described["cliques"][0]["distance"] > described["cliques"][-1]["distance"]
    assert "seeded" in described["warnings"][0]


def test_a_page_is_short_and_narrow() -> None:
    """Of 300 columns and 299 pairs, the first and the strongest are shown, and how many more there are."""
    text = str(chain(300).explain())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) < 90
    assert "and 260 more" in text
    assert "and 279 more" in text
    assert "column 000 and column 001" in text
    assert "column 298 and column 299" not in text


def test_long_names_are_cut_and_stay_told_apart() -> None:
    names = ["left " + "x" * 90, "right " + "y" * 90]
    rows = pa.table({name: np.arange(4000) % 2 == 0 for name in names})
    text = str(sp.ForestSynthesizer("1").fit(rows, sp.Schema({name: sp.Boolean() for name in names})).explain())
    assert max(map(len, text.splitlines())) <= 100
    line = next(line for line in text.splitlines() if " and " in line and "chosen" in line)
    assert "left x" in line
    assert "right y" in line


def test_a_release_that_is_not_private_says_so_first() -> None:
    assert str(fitted().explain()).startswith("*** NOT PRIVATE ***")
    safe = sp.ForestSynthesizer("1").fit(table(500), SCHEMA)
    assert "NOT PRIVATE" not in str(safe.explain())


def test_other_releases_are_not_explained() -> None:
    release = sp.KDTreeSynthesizer("1").fit(np.zeros((50, 1)), sp.Schema({"x": sp.Real(0, 1)})).release_
    with pytest.raises(ParameterError, match="not a forest"):
        explain(release)


def test_an_unfitted_forest_says_so() -> None:
    with pytest.raises(NotFittedError, match="fit"):
        sp.ForestSynthesizer("1").explain()
