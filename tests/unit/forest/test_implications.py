"""Implications in a forest: no row breaks one; impossible cells get no noise; contradictions are told in time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import whole_range
from spinney.counting.states import StateRows
from spinney.errors import SchemaError
from spinney.forest.cliques import measure
from spinney.forest.release.measured import NoiseLaw
from spinney.forest.rules import RuleTables, impossible_values

N = 3000
RULES = [
    sp.Implies({"age": (0, 14)}, {"marital": None, "income": None}),
    sp.Implies({"age": (15, None)}, {"income": (0, None)}),
    sp.Implies({"sex": "m", "age": (50, None)}, {"ratio": (0.25, 1.5)}),
    sp.Implies({"marital": "widowed"}, {"day": ("2020-06-01", "2020-12-31")}),
]
SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 120),
        "marital": sp.Category(["never", "married", "widowed"], nullable=True),
        "income": sp.Real(0, 1e6, nullable=True, multiple_of=0.01),
        "ratio": sp.Real(0, 10),
        "sex": sp.Category(["m", "f"]),
        "day": sp.Date("2020-01-01", "2020-12-31"),
    },
    rules=RULES,
)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Rows that break the rules in many ways: what is stated holds whatever the table says."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, N),
            "marital": rng.choice(["never", "married", "widowed", None], N),
            "income": np.where(rng.random(N) < 0.1, np.nan, np.round(rng.lognormal(9, 1, N), 2)),
            "ratio": 2 * rng.random(N),
            "sex": rng.choice(["m", "f"], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, N), unit="D"),
        }
    )


def n_broken(rows: pd.DataFrame) -> int:
    """Rows that break a rule, counted by hand."""
    is_child = rows.age < 15
    faults = (is_child & (rows.marital.notna() | rows.income.notna())) | (~is_child & rows.income.isna())
    faults |= (rows.sex == "m") & (rows.age >= 50) & ~rows.ratio.between(0.25, 1.5)
    faults |= (rows.marital == "widowed") & (rows.day < "2020-06-01")
    return int(faults.sum())


@pytest.mark.parametrize("options", [{}, {"target": "sex"}, {"target": "age"}, {"quality": "high"}, {"delta": 0}])
@pytest.mark.parametrize("epsilon", ["20", "1", "0.1", "0.00001"])
def test_no_row_breaks_an_implication(people, epsilon, options):
    """From a tree of pairs down to even rows, with conditions too."""
    assert n_broken(people) > N / 4
    model = sp.ForestSynthesizer(epsilon, **options).fit(people, SCHEMA, entropy=sp.UnsafeSeededEntropy(3))
    assert n_broken(model.sample(20_000, seed=1)) == 0
    for where in ({"age": (10, 20)}, {"sex": "m"}, {"ratio": (1.4, 1.6)}, {"marital": None}):
        assert n_broken(model.sample(2000, seed=2, where=where)) == 0, where
    assert n_broken(model.sample(2000, seed=3, balance={"sex": {"m": 0.9, "f": 0.1}})) == 0


def test_every_structure_is_among_those(people):
    """The trials above mean something only where forests differ."""
    trials = [("20", {}), ("20", {"quality": "high"}), ("0.1", {"target": "sex"}), ("0.1", {}), ("0.00001", {})]
    found = {sp.ForestSynthesizer(epsilon, **more).fit(people, SCHEMA).design_.structure for epsilon, more in trials}
    assert found == {"tree", "rounds", "target", "independent", "uniform"}


def test_a_release_with_rules_verifies_and_loads(people, tmp_path):
    """And draws the same rows from its file."""
    model = sp.ForestSynthesizer("1").fit(people, SCHEMA)
    model.save(tmp_path / "people.spinney")
    loaded = sp.load(tmp_path / "people.spinney")
    assert loaded.schema == SCHEMA
    pd.testing.assert_frame_equal(loaded.sample(500, seed=4), model.sample(500, seed=4))
    page = str(loaded.explain())
    assert "rules that every row obeys; they cost nothing" in page
    assert "Implies({'age': (0, 14)}" in page
    assert "Implies({'age': (0, 14)}" in str(loaded.card)
    assert loaded.explain().to_dict()["rules"] == [repr(rule) for rule in RULES]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_rules(seed):
    """Random implications over numbers, steps, categories and nulls; those that contradict each other aside."""
    rng = np.random.default_rng(seed)
    columns = {
        "a": sp.Integer(0, 60, nullable=True),
        "b": sp.Real(-1, 1, nullable=bool(rng.integers(2))),
        "c": sp.Category([*"uvwxyz"], nullable=True),
        "d": sp.Real(0, 10, multiple_of=0.1),
        "e": sp.Boolean(),
    }

    def condition(name):
        column = columns[name]
        if column.listed:
            chosen = rng.permutation(len(column.listed))[: int(rng.integers(1, len(column.listed)))]
            stated = [column.listed[place] for place in chosen]
        else:
            low, high = np.sort(rng.uniform(float(column.low), float(column.high), 2))
            stated = [(int(low), int(high) + 1) if column.is_whole else (round(low, 1), round(high + 0.2, 1))]
        return [*stated, None] if column.nullable and rng.random() < 0.3 else stated

    rules = []
    for _ in range(int(rng.integers(1, 5))):
        names = rng.permutation([*columns])
        n_when, n_then = rng.integers(1, 3, 2)
        when = {str(name): condition(str(name)) for name in names[:n_when]}
        rules.append(sp.Implies(when, {str(name): condition(str(name)) for name in names[n_when : n_when + n_then]}))
    try:
        schema = sp.Schema(columns, rules=rules)
    except SchemaError:  # a condition that says nothing
        return
    rows = pd.DataFrame(
        {
            "a": pd.array(rng.integers(0, 61, 400), dtype="Int64"),
            "b": rng.uniform(-1, 1, 400),
            "c": rng.choice([*"uvwxyz"], 400),
            "d": np.round(rng.uniform(0, 10, 400), 1),
            "e": rng.integers(0, 2, 400).astype(bool),
        }
    )
    model = sp.ForestSynthesizer(str(rng.choice(["5", "0.5", "0.001"])), target=rng.choice([None, "e"]))
    try:
        drawn = model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed)).sample(2000, seed=1, frame="pyarrow")
    except SchemaError as err:
        assert "contradict" in str(err)  # noqa: PT017
        return
    numbers = {}
    for name, column in columns.items():
        physical = column._read(drawn[name].combine_chunks())
        missing = np.isnan(physical.values) if physical.is_null is None else physical.is_null
        numbers[name] = np.where(missing, np.nan, physical.values.astype(float))
    for rule in rules:
        assert rule.holds(numbers, schema).all(), rule


# ------------------------------------------------------------------------------------------------ before spending


def refused(rules, columns, message):
    """A fit that is refused before its ledger is charged, and a check that says so."""
    table = pd.DataFrame({name: [1, 0, 1] for name in columns})
    schema = sp.Schema(columns, rules=rules)
    ledger = sp.Ledger(limit=5)
    with pytest.raises(SchemaError, match=message):
        sp.ForestSynthesizer("1", 0).fit(table, schema, ledger=ledger)
    assert not ledger.events
    found = sp.check(table, schema)
    assert any("contradict" in fault.message or "cells" in fault.message for fault in found.faults)


def test_rules_that_contradict_each_other_are_told_before_anything_is_spent():
    """Also where it takes all of them to see it."""
    columns = {name: sp.Category([0, 1]) for name in "abc"}
    rules = [
        sp.Implies({"a": 0}, {"b": 0}),
        sp.Implies({"a": 1}, {"b": 1}),
        sp.Implies({"b": 0}, {"c": 1}),
        sp.Implies({"b": 1}, {"c": 1}),
    ]
    sp.ForestSynthesizer("1")._check(sp.Schema(columns, rules=rules))
    refused([*rules, sp.Implies({"c": 1}, {"a": 0}), sp.Implies({"c": 1}, {"a": 1})], columns, "contradict each other")


def test_rules_that_make_the_model_too_large_are_told_before_anything_is_spent():
    """With the columns that they join, and the remedy."""
    columns = {f"c{place}": sp.Category(list(range(40))) for place in range(9)}
    when = {name: list(range(0, 40, 2)) for name in list(columns)[:8]}
    refused([sp.Implies(when, {"c8": [0, 1]})], columns, "join 9 columns into one table.*sp.Derived")


def test_columns_of_large_tables_get_fewer_states():
    """A rule of four numbers fits, because each is cut into fewer states than it would have alone."""
    columns = {name: sp.Integer(0, 10**6) for name in "abcd"}
    rule = sp.Implies({"a": (0, 9), "b": (5, 10**5), "c": (7, 700)}, {"d": (0, 0)})
    schema = sp.Schema(columns, rules=[rule])
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, 1000, 50_000) // 20 for name in columns})
    model = sp.ForestSynthesizer("8").fit(table, schema)
    assert max(model.design_.fewer_states.values()) < model.design_.most_states
    drawn = model.sample(20_000, seed=0)
    is_met = (drawn.a <= 9) & drawn.b.between(5, 10**5) & drawn.c.between(7, 700)
    assert is_met.sum() > 30
    assert (drawn.d[is_met] == 0).all()


def test_values_that_rules_make_impossible_are_warned_of():
    columns = {"a": sp.Integer(0, 9, nullable=True), "b": sp.Boolean()}
    rules = [sp.Implies({"a": (3, 5)}, {"b": True}), sp.Implies({"a": (4, 5)}, {"b": False})]
    schema = sp.Schema(columns, rules=rules)
    assert impossible_values(schema) == [("a", "4..5")]
    found = sp.check(pd.DataFrame({"a": [1, 2, None], "b": [True, False, True]}), schema)
    assert any("'a' can never be 4..5" in warning.message for warning in found.warnings)


def test_values_that_rules_make_impossible_weigh_nothing():
    """Although rows of the table have them, and also where all rows do."""
    columns = {"a": sp.Integer(0, 99, nullable=True), "b": sp.Category([0, 1, 2])}
    rules = [sp.Implies({"a": (40, None)}, {"b": 1}), sp.Implies({"a": (40, None)}, {"b": 2})]
    rules += [sp.Implies({"a": (0, 39)}, {"b": [0, 1]}), sp.Implies({"a": None}, {"b": [0, 1]})]
    for low, high in ((0, 100), (40, 100)):
        table = pd.DataFrame({"a": np.random.default_rng(0).integers(low, high, 2000), "b": 1})
        model = sp.ForestSynthesizer("5").fit(table, sp.Schema(columns, rules=rules))
        column, category = (model.release_.columns[name] for name in "ab")
        assert column.weights[(column.low >= 40) & ~column.is_null].sum() == 0
        assert column.weights.sum() == pytest.approx(2000)
        assert category.weights[2] == 0
        assert (model.sample(500).a.dropna() < 40).all()  # where no row kept to the rules, all may be missing


def test_a_tree_refuses_an_implication_and_auto_takes_the_forest():
    columns = {"a": sp.Integer(0, 9), "b": sp.Integer(0, 9)}
    schema = sp.Schema(columns, rules=[sp.Implies({"a": (3, 5)}, {"b": 1})])
    table = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    with pytest.raises(SchemaError, match=r"KDTreeSynthesizer cannot enforce Implies.*ForestSynthesizer"):
        sp.KDTreeSynthesizer("1").fit(table, schema)
    assert sp.check(table, schema).method == "forest"


# --------------------------------------------------------------------------------------------------------- no noise


def test_impossible_cells_get_no_noise_and_no_rows(monkeypatch):
    """They are in no box, rows that lie there are not counted, and boxes without a possible cell are not measured."""
    states = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]], dtype=np.uint8)
    possible = np.array([[True, False], [True, True], [False, False]])
    asked = []

    class Exact:
        class plan:
            @staticmethod
            def noise_law(stage):
                return NoiseLaw("discrete gaussian", Fraction(1))

        def noisy_counts(self, true_counts, stage):
            asked.append(true_counts.tolist())
            return true_counts

    found = measure(
        StateRows(states, (3, 2)), (0, 1), np.ones((3, 2)), Exact(), stage="cliques", least=0.1, possible=possible
    )
    assert asked == [[1, 1, 1]]
    assert len(found.noisy) == 3
    assert found.labels[possible].tolist() == [0, 1, 2]
    assert found.counted.labels.tolist() == [0, -1, 1, 2, -1, -1]


def test_trees_are_cut_at_the_ends_of_rules():
    """Leaves of a number begin at public ends of ranges, and those of different labels share no state."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(0, 1000, 5000), "k": rng.integers(0, 2, 5000)})
    schema = sp.Schema(
        {"x": sp.Integer(0, 10**6), "k": sp.Category([0, 1])}, rules=[sp.Implies({"x": (37, 611)}, {"k": 1})]
    )
    model = sp.ForestSynthesizer("5").fit(table, schema)
    column = model.release_.columns["x"]
    assert {37, 612} <= set(column.low.astype(int) + whole_range(schema["x"])[0])
    inside = (column.low >= 37) & (column.low < 612)
    assert set(column.states[inside]).isdisjoint(column.states[~inside])
    tables = RuleTables.of(schema)
    assert tables.cliques == ((1, 0),)
