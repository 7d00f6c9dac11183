"""values="private": the common values of a column, found for a share of epsilon and delta that is charged first."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney import metrics
from spinney.counting.counter import ValueCounter
from spinney.errors import BudgetError, InputError, ParameterError, SchemaError, SchemaWarning
from spinney.privacy.mechanisms import ComposedRelease, PartitionSelection, event_from_dict, event_to_dict
from spinney.release.card import ContradictionError
from spinney.release.verify import verification
from spinney.tables.open import open_source
from support.command_line import spinney

CODES = sp.Schema({"code": sp.Category("private"), "y": sp.Integer(0, 49)})


def heavy_tail(n: int = 100_000, n_codes: int = 5_000) -> pd.DataFrame:
    """Codes whose frequencies fall like one over their rank."""
    rng = np.random.default_rng(3)
    weights = 1 / (np.arange(n_codes) + 6) ** 1.1
    names = np.array([f"C{i:05d}" for i in rng.permutation(n_codes)])
    return pd.DataFrame({"code": names[rng.choice(n_codes, n, p=weights / weights.sum())], "y": rng.integers(0, 50, n)})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return heavy_tail()


def found_in(model) -> set:
    return set(model.schema_["code"].listed) - {model.schema_["code"].other}


@pytest.mark.parametrize(("unit", "n_surely"), [("add-remove", 100), ("replace-one", 210)])
def test_every_common_code_is_found_and_none_is_invented(table, unit, n_surely):
    """Epsilon 0.2 and delta 1e-6 for 5,000 codes of 100,000 rows, in several releases."""
    counts = table.code.value_counts()
    common, rare = set(counts[counts > n_surely].index), set(counts[counts < 20].index)
    for seed in range(5):
        model = sp.ForestSynthesizer(1, "5e-6", unit=unit, values_share="0.2", assumed_rows=100_000)
        found = found_in(model.fit(table, CODES, entropy=sp.UnsafeSeededEntropy(seed)))
        assert common <= found
        assert found <= set(counts.index)
        assert len(found & rare) <= 2


def test_rows_of_other_codes_are_counted_as_other(table):
    """No row is lost, and the schema of the release is a plain list with `other` at its end."""
    model = sp.ForestSynthesizer(1, "1e-6").fit(table, CODES)
    column = model.schema_["code"]
    assert column == sp.Category(sorted(found_in(model)), other="other")
    expected = (~table.code.isin(found_in(model))).mean()
    drawn = model.sample(seed=1)
    assert abs((drawn.code == "other").mean() - expected) < 0.02
    assert set(drawn.code) <= set(column.listed)


def test_the_share_is_charged_and_the_rest_is_left_to_the_forest(table, tmp_path):
    """Epsilon and delta add up to those of the call; the file says so and is verified."""
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=2, delta="1e-5")
    model = sp.ForestSynthesizer(1, "1e-6", values_share="0.2").fit(table, CODES, ledger=ledger)
    values, forest = model.card_.events
    assert values == PartitionSelection(
        Fraction(1, 5), Fraction(1, 5 * 10**6), "values of code", stage="values", column="code"
    )
    assert isinstance(forest, ComposedRelease)
    assert (forest.epsilon, forest.delta) == (Fraction(4, 5), Fraction(4, 5 * 10**6))
    assert event_from_dict(event_to_dict(values)) == values
    assert sp.Ledger.open(tmp_path / "people.ledger").events == model.card_.events
    model.save(tmp_path / "codes.spinney")
    assert "found privately" in verification(sp.load(tmp_path / "codes.spinney")).checks[-1]
    assert "values      20.0 %" in str(model.release_.explain())
    groups = model.card_.groups
    assert groups[0].epsilon >= 2 * Fraction(1, 5)
    assert groups[0].delta >= values.delta * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": "y"}, "no category with an `other`"),
        ({"column": "nothing"}, "no category with an `other`"),
        ({"stage": None}, "no category with an `other`"),
        ({"epsilon": Fraction(1, 10)}, "epsilon"),
    ],
)
def test_a_card_that_lies_about_the_list_is_refused(table, change, message):
    """Another column, no stage, another epsilon."""
    release = sp.ForestSynthesizer(1, "1e-6", values_share="0.2").fit(table, CODES).release_
    events = (replace(release.card.events[0], **change), *release.card.events[1:])
    release.card = replace(release.card, events=events)
    with pytest.raises(ContradictionError, match=message):
        release.verify_contents()


def test_lists_of_whole_numbers_and_of_several_columns():
    """A number as `other` means numbers; columns share the budget evenly; null stays null."""
    rng = np.random.default_rng(0)
    n = 20_000
    frame = pd.DataFrame(
        {
            "a": rng.choice([7, 8, 10**15], n),
            "b": rng.choice(["x", "other", None], n),
            "c": np.where(rng.random(n) < 0.5, 2**62, 3),
        }
    )
    schema = sp.Schema(
        {
            "a": sp.Category("private", other=-1),
            "b": sp.Category("private", nullable=True),
            "c": sp.Category("private", other=0),
        }
    )
    model = sp.ForestSynthesizer(1, "1e-6").fit(frame, schema)
    assert model.schema_["a"] == sp.Category([7, 8, 10**15], other=-1)
    assert model.schema_["b"] == sp.Category(["x"], other="other", nullable=True)
    assert model.schema_["c"] == sp.Category([3], other=0)  # what no list may hold counts as other
    charges = [event for event in model.card_.events if isinstance(event, PartitionSelection)]
    assert [(event.column, event.epsilon) for event in charges] == [(name, Fraction(1, 30)) for name in "abc"]
    assert abs(model.sample(seed=1).b.isna().mean() - 1 / 3) < 0.02


def test_a_hierarchy_by_prefixes_orders_what_was_found(table):
    """Found codes are put into groups by what they begin with."""
    schema = sp.Schema(dict(CODES) | {"code": sp.Category("private", hierarchy=[3])})
    model = sp.ForestSynthesizer(2, "1e-6").fit(table, schema)
    assert model.schema_["code"].hierarchy == (3,)
    verification(model.release_)


def test_bounds_and_values_are_found_together(table):
    """Both shares are taken off; together they must leave something."""
    schema = sp.Schema({"code": sp.Category("private"), "y": sp.Integer(bounds="private")})
    model = sp.ForestSynthesizer(1, "1e-6", bounds_share="0.1", values_share="0.2").fit(table, schema)
    assert [event.stage for event in model.card_.events[:2]] == ["values", "bounds"]
    assert model.card_.epsilon == 1
    verification(model.release_)
    with pytest.raises(ParameterError, match="together they must be below 1"):
        sp.ForestSynthesizer(1, "1e-6", bounds_share="0.5", values_share="0.5").fit(table, schema)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (sp.ForestSynthesizer(1, 0), ParameterError, 'values="private" needs a delta, and delta is 0'),
        (sp.ForestSynthesizer("0.001", "1e-6"), BudgetError, "a value is found from about .* rows on"),
        (sp.ForestSynthesizer(1, "1e-6", values_share=0), ParameterError, "values_share=0 is not strictly between"),
        (sp.KDTreeSynthesizer(1), SchemaError, "KDTreeSynthesizer cannot find values privately; list them"),
        (sp.PaperTreeSynthesizer(1), SchemaError, "cannot find values privately"),
        (sp.GridSynthesizer(1), SchemaError, "GridSynthesizer cannot find values privately"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(table, model, error, message):
    """No delta, too little budget for the rows there are, a tree, a grid."""
    ledger = sp.Ledger(limit=10, delta="1e-3")
    with pytest.raises(error, match=message):
        model.fit(table.head(2_000), CODES, ledger=ledger)
    assert ledger.events == ()


def test_an_empty_list_is_told_and_everything_counts_as_other():
    """Nobody can know beforehand that no code is common; the fit goes on, warns, and says nothing of the codes."""
    frame = pd.DataFrame({"code": [f"p{i}" for i in range(5_000)], "y": np.arange(5_000) % 50})
    with pytest.warns(SchemaWarning, match="no value was common enough to be found, so all rows count as 'other'"):
        model = sp.ForestSynthesizer(1, "1e-6").fit(frame, CODES, entropy=sp.UnsafeSeededEntropy(1))
    assert model.schema_["code"].listed == ("other",)
    assert set(model.sample(100, seed=1).code) == {"other"}
    verification(model.release_)


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_a_list_that_comes_out_empty_costs_no_release_where_warnings_are_errors(unit):
    """Between a charge and the release nothing warns: rows, values and bounds are paid for, and rows can be drawn."""
    n = 5_000
    frame = pd.DataFrame({"code": [f"p{i}" for i in range(n)], "y": np.arange(n) % 50, "z": np.arange(n) % 90})
    schema = sp.Schema(dict(CODES) | {"z": sp.Integer(bounds="private")})
    model, ledger = sp.ForestSynthesizer(1, "1e-6", unit=unit), sp.Ledger(limit=1, delta="1e-6", unit=unit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SchemaWarning, match="no value was common enough"):
            model.fit(frame, schema, ledger=ledger)
    assert ledger.spent == 1
    assert len(model.sample(10)) == 10


def test_too_many_different_values_are_refused_before_anything_is_spent(monkeypatch):
    """A column of names does not fit into memory as a list, and none of its values is quoted."""
    frame = pd.DataFrame({"code": [f"person {i}" for i in range(30_000)], "y": 1})
    monkeypatch.setenv("SPINNEY_MEMORY_LIMIT", "1MiB")
    ledger = sp.Ledger(limit=1, delta="1e-6")
    with pytest.raises(InputError, match="column 'code' has more different values than the limit of memory") as caught:
        sp.ForestSynthesizer(1, "1e-6").fit(frame, CODES, ledger=ledger)
    assert "person" not in str(caught.value)
    assert ledger.events == ()


def test_values_that_cannot_be_read_are_refused_before_anything_is_spent():
    """A fraction among whole numbers, a null where none may be."""
    ledger = sp.Ledger(limit=1, delta="1e-6")
    schema = sp.Schema({"code": sp.Category("private", other=0)})
    for values in ([1.5] * 500, [1.0, np.nan] * 500):
        with pytest.raises(InputError, match="column 'code'"):
            sp.ForestSynthesizer(1, "1e-6").fit(pd.DataFrame({"code": values}), schema, ledger=ledger)
    assert ledger.events == ()


def test_nothing_but_the_list_shows_a_value(table):
    """Sources, counts and counters say that they are sensitive; the schema before the fit says nothing."""
    source = open_source(table, CODES)
    counts = source.count_values("code")
    assert repr(counts) == "ValueCounts(sensitive)"
    assert repr(ValueCounter("code", memory_limit=10**6)) == "ValueCounter(sensitive)"
    with pytest.raises(TypeError, match="never pickled"):
        counts.__reduce__()
    assert counts.true_values.to_pylist() == sorted(set(table.code))
    assert "C0" not in repr(source.schema)


def test_check_says_what_would_be_found_privately(table):
    """A note for the holder, and no complaint about values."""
    found = sp.check(table, CODES)
    assert found.is_clean
    assert not found.warnings
    assert "Values of 'code' would be found privately, using part of epsilon and delta." in found.notes
    listed = sp.check(table, sp.Schema(dict(CODES) | {"code": sp.Category(["C00001"], other="rest")}))
    (warning,) = listed.warnings
    assert warning.n_rows == (table.code != "C00001").sum()


def test_metrics_ask_for_the_schema_of_the_release(table):
    """A list that is not there has no columns to compare."""
    with pytest.raises(SchemaError, match="leaves some lists open"):
        metrics.total_variation(table, table, CODES)


def test_fifty_thousand_values_are_no_burden(tmp_path):
    """Fit, sample, save, load, verify and explain a list of 50,000, with and without a hierarchy, in seconds."""
    rng = np.random.default_rng(0)
    codes = [f"{i:05d}" for i in range(50_000)]
    frame = pd.DataFrame({"code": np.array(codes)[rng.zipf(1.3, 50_000) % 50_000], "y": rng.integers(0, 50, 50_000)})
    for name, column in {
        "flat": sp.Category(codes, other="other"),
        "tree": sp.Category(codes, other="other", hierarchy=[1, 3]),
    }.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = sp.ForestSynthesizer(1, "1e-6").fit(frame, sp.Schema(dict(CODES) | {"code": column}))
        model.save(tmp_path / name)
        release = sp.load(tmp_path / name)
        verification(release)
        drawn = release.sample(50_000, seed=1, where={"code": codes[:25_000]})
        assert set(drawn.code) <= set(codes[:25_000])
        assert len(str(release.card)) < 5_000
        assert len(str(release.explain())) < 5_000
        assert len(release.explain().bins("code")) <= 50_001
        assert time.perf_counter() - start < 20


def test_a_private_list_may_be_the_target():
    """Its classes are counted once they are known; a list that comes out empty has none."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"code": rng.choice(["a", "b", "c"], 6_000), "y": rng.integers(0, 50, 6_000)})
    model = sp.ForestSynthesizer(1, "1e-6", target="code").fit(frame, CODES)
    assert [event.stage for event in model.card_.events[:2]] == ["values", "classes"]
    assert found_in(model) == {"a", "b", "c"}
    frame["code"] = [f"p{i}" for i in range(6_000)]
    with pytest.warns(UserWarning, match="no value was common enough"):
        model = sp.ForestSynthesizer(1, "1e-6", target="code").fit(frame, CODES, entropy=sp.UnsafeSeededEntropy(2))
    verification(model.release_)


def test_the_command_line_says_what_was_found(tmp_path):
    """`--values-share`, the number of values in the output, and none of those that were not found."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"code": rng.choice(["often", "also"], 6_000), "y": rng.integers(0, 50, 6_000)})
    frame.loc[0, "code"] = "secret"
    frame.to_csv(tmp_path / "t.csv", index=False)
    CODES.to_file(tmp_path / "s.toml")
    arguments = ["fit", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1"]
    done = spinney(*arguments, "--values-share", "0.3", "--out", str(tmp_path / "r.spinney"))
    assert "values      code: 2 found privately; all others count as 'other'" in done.out
    assert "secret" not in done.out + done.err
    assert sp.load(tmp_path / "r.spinney").card.events[0].epsilon == Fraction(3, 10)
