"""A table gets the tree or the forest by what is public about it and by the options; contradictions are refused."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError, SchemaError
from spinney.synthesizers.method import METHODS, choose, make
from support.in_one_test import in_one_test
from support.small_people import FLAT, TABLES, flat_model, shop

NUMBERS = sp.Schema({"x": sp.Real(0, 1), "y": sp.Integer(0, 9)})
MIXED = sp.Schema({"x": sp.Real(0, 1), "kind": sp.Category(["a", "b"])})
RNG = np.random.default_rng(0)
NUMBERS_TABLE = pa.table({"x": RNG.random(300), "y": RNG.integers(0, 10, 300)})
MIXED_TABLE = pa.table({"x": RNG.random(300), "kind": RNG.choice(["a", "b"], 300)})

# ------------------------------------------------------------------------------------------------- bad input


@in_one_test(
    ("options", "message"),
    [
        ({"eps": 1}, "did you mean epsilon"),
        ({"nonsense": 1}, r"nonsense is not a parameter of any method; the tree takes .* the forest takes"),
        ({"nonsense": None}, "nonsense is not a parameter"),
        ({"quallity": "fast"}, "quallity is not a parameter .*; did you mean quality"),
        ({"method": "forrest"}, "method='forrest' is not one of .*; did you mean 'forest'"),
        ({"bins": 3}, r"bins is for the grid.*method='grid'"),
        ({"rule": "paper", "delta": 0}, "rule is for the tree and delta for the forest"),
        (
            {"threshold": 2, "moments": False, "quality": "fast", "target": "x"},
            "threshold and moments are for the tree and quality and target for the forest",
        ),
        ({"method": "wood"}, "method='wood' is not one of auto, tree, forest, grid"),
        ({"method": "tree", "target": "x"}, "target is for method='forest', not for method='tree'"),
        ({"method": "forest", "threshold": 3}, "threshold is for method='tree' or method='grid', not"),
        ({"method": "grid", "delta": 0}, "delta is for method='forest', not for method='grid'"),
        ({"target": "z"}, "target='z' is not a column"),
        ({"target": ["x"]}, "target=<a list> is not a column"),
        ({"method": "forest", "target": "z"}, "target='z' is not a column"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: dict[str, Any], message: str) -> None:
    """Before the table is looked at: it is none."""
    with pytest.raises(ParameterError, match=message):
        sp.synthesize("no table", NUMBERS, **options)


def test_what_is_no_schema_is_refused() -> None:
    for ask in (lambda: sp.synthesize(NUMBERS_TABLE, 42), lambda: choose(None, {})):
        with pytest.raises(SchemaError, match="not a Schema"):
            ask()


def test_a_tree_that_was_asked_for_still_refuses_what_it_cannot_make() -> None:
    schema = sp.Schema({"x": sp.Real(0, 1), "number": sp.Identifier()})
    with pytest.raises(SchemaError, match="ForestSynthesizer"):
        sp.synthesize(pa.table({"x": [0.5], "number": [1]}), schema, threshold=3)


def test_a_pure_ledger_names_delta_0() -> None:
    """A forest is (epsilon, delta) unless told otherwise; an account without delta says what would fit."""
    ledger = sp.Ledger(limit=3)
    with pytest.raises(BudgetError, match="delta=0"):
        sp.synthesize(MIXED_TABLE, MIXED, ledger=ledger)
    assert ledger.events == ()
    sp.synthesize(MIXED_TABLE, MIXED, ledger=ledger, delta=0)
    assert (ledger.spent, ledger.spent_delta) == (1, 0)


# ------------------------------------------------------------------------------------------------ the choice


def columns(n: int) -> dict[str, sp.Real]:
    return {f"c{index}": sp.Real(0, 1) for index in range(n)}


EVERY_TREE_TYPE = {
    "real": sp.Real(0, 1, nullable=True),
    "integer": sp.Integer(0, 200),
    "coordinate": sp.Real(-180, 180),
    "time": sp.Time(),
    "boolean": sp.Boolean(nullable=True),
}


@in_one_test(
    ("schema", "target", "kind"),
    [
        (sp.Schema(columns(1)), None, sp.KDTreeSynthesizer),
        (sp.Schema(columns(8)), None, sp.KDTreeSynthesizer),
        (sp.Schema(EVERY_TREE_TYPE), None, sp.KDTreeSynthesizer),
        (sp.Schema(columns(2) | {"income": sp.Real(0, 500_000)}), None, sp.ForestSynthesizer),
        (sp.Schema({"integer": sp.Integer(0, 10_000)}), None, sp.ForestSynthesizer),
        (sp.Schema({"integer": sp.Integer(bounds="private")}), None, sp.ForestSynthesizer),
        (sp.Schema({"date": sp.Date("2020-01-01", "2021-01-01")}), None, sp.ForestSynthesizer),
        (sp.Schema({"datetime": sp.Datetime("2020-01-01", "2021-01-01")}), None, sp.ForestSynthesizer),
        (sp.Schema({"income": sp.Real(0, 500_000, bits=12)}), None, sp.KDTreeSynthesizer),
        (sp.Schema(columns(9)), None, sp.ForestSynthesizer),
        (sp.Schema(columns(2)), "c1", sp.ForestSynthesizer),
        (sp.Schema(columns(2) | {"number": sp.Identifier()}), None, sp.ForestSynthesizer),
        (sp.Schema(columns(1) | {"kind": sp.Category([1, 2])}), None, sp.ForestSynthesizer),
        (sp.Schema(columns(2), rules=[sp.AtMost("c0", "c1")]), None, sp.ForestSynthesizer),
    ],
)
def test_the_schema_decides(schema: sp.Schema, target: str | None, kind: type) -> None:
    assert type(make(choose(schema, {"target": target}).method, 1, {"target": target})) is kind


TREE_ONLY = inspect.signature(sp.KDTreeSynthesizer).parameters.keys() - (
    inspect.signature(sp.ForestSynthesizer).parameters.keys()
)
PAPER_ONLY = {"fixed_depth": "h", "largest_edge": "s1", "smallest_edge": "s2", "cutoff": "tau", "axes": "axes"}


@pytest.mark.parametrize("schema", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_options_of_one_method_choose_it(schema: sp.Schema) -> None:
    assert {"moments", "threshold"} <= TREE_ONLY
    for name in TREE_ONLY:
        assert choose(schema, {name: "given"}).method == "tree", name
    for name in PAPER_ONLY:
        assert choose(schema, {name: "given", "rule": "paper"}).method == "tree", name
    for name in ("delta", "quality"):
        assert choose(schema, {name: 0}).method == "forest", name


def test_the_rule_makes_the_tree_the_papers() -> None:
    """Options are words; the paper's class gets them under its symbols, and values pass untouched."""
    words = {**PAPER_ONLY, "max_depth": "h_prime", "threshold": "t"}
    made = make("tree", "1/3", {"rule": "paper", "focus": None, **{name: object() for name in words}})
    assert type(made) is sp.PaperTreeSynthesizer
    assert made.epsilon == "1/3"
    values = {name: object() for name in words}
    made = make("tree", 1, {"rule": "paper", **values})
    assert {name: getattr(made, symbol) for name, symbol in words.items()} == values
    for rule in ({}, {"rule": None}, {"rule": "privtree"}):
        made = make("tree", 1, {**rule, "threshold": 5, "max_depth": 3})
        assert type(made) is sp.KDTreeSynthesizer
        assert (made.threshold, made.max_depth) == (5, 3)


@pytest.mark.parametrize("name", PAPER_ONLY)
def test_options_of_the_other_rule_are_named(name: str) -> None:
    """A tree by PrivTree's rule does not silently become the paper's, nor the other way round."""
    for method in ("auto", "tree"):
        with pytest.raises(ParameterError, match=f"{name} is for the tree by rule='paper'; add rule='paper', or leave"):
            sp.synthesize("no table", NUMBERS, method=method, **{name: 3})
    with pytest.raises(ParameterError, match=f"{name} is for the tree by rule='paper'; say rule='paper'"):
        choose(NUMBERS, {name: 3, "rule": "privtree"})
    with pytest.raises(ParameterError, match="moments is for the tree by rule='privtree'; say rule='privtree'"):
        choose(NUMBERS, {"moments": True, "rule": "paper"})
    for wrong in ("random", ["paper"], 5):
        with pytest.raises(ParameterError, match="is not 'privtree' or 'paper'"):
            choose(NUMBERS, {"rule": wrong})


def test_one_call_makes_the_papers_tree() -> None:
    ledger = sp.Ledger(limit=5)
    options = {"rule": "paper", "fixed_depth": 2, "max_depth": 6, "cutoff": 4, "threshold": 3}
    sp.synthesize(NUMBERS_TABLE, NUMBERS, epsilon=5, n_rows=3, ledger=ledger, **options)
    decisions, counts = ledger.events
    assert (decisions.rule, decisions.levels, counts.stage) == ("paper", 4, "leaves")


@pytest.mark.parametrize("name", ["unit", "bounds_share", "assumed_rows"])
def test_options_of_all_methods_choose_nothing(name: str) -> None:
    assert choose(NUMBERS, {name: "given"}) == choose(NUMBERS, {})
    assert choose(MIXED, {name: "given"}) == choose(MIXED, {})


def test_none_is_an_option_not_given() -> None:
    assert choose(NUMBERS, {"delta": None, "target": None, "rule": None, "bins": None}).method == "tree"
    rows = sp.synthesize(NUMBERS_TABLE, NUMBERS, n_rows=5, target=None, quality=None)
    assert rows.num_rows == 5


@pytest.mark.parametrize("method", [method for method in METHODS if method != "linked"])
def test_a_method_that_is_named_is_taken(method: str) -> None:
    for schema in (NUMBERS, MIXED):
        choice = choose(schema, {}, method=method)
        assert (choice.method, choice.reason) == (method, "it was requested")


@pytest.mark.parametrize(
    ("schema", "options", "reason"),
    [
        (MIXED, {}, "column 'kind' is a category"),
        (MIXED, {"delta": 0}, "column 'kind' is a category"),
        (MIXED, {"target": "kind"}, "there is a target, 'kind'"),
        (MIXED, {"rule": "paper"}, "rule is for it"),
        (NUMBERS, {"delta": 0, "quality": "high"}, "delta and quality are for it"),
        (NUMBERS, {}, "2 columns of measurements, no categories, identifiers, rules or target"),
    ],
)
def test_reasons_are_true(schema: sp.Schema, options: dict[str, Any], reason: str) -> None:
    assert choose(schema, options).reason == reason


# ------------------------------------------------------------------------------------------------ synthesize


@pytest.mark.parametrize(
    ("table", "schema", "options", "delta"),
    [
        (NUMBERS_TABLE, NUMBERS, {}, False),
        (MIXED_TABLE, MIXED, {}, True),
        (MIXED_TABLE, MIXED, {"delta": 0}, False),
        (MIXED_TABLE, MIXED, {"rule": "paper", "threshold": 0}, False),
        (MIXED_TABLE, MIXED, {"method": "grid", "bins": 2}, False),
        (NUMBERS_TABLE, NUMBERS, {"target": "y"}, True),
        (NUMBERS_TABLE, NUMBERS, {"method": "forest"}, True),
    ],
)
def test_one_call_spends_what_the_method_promises(
    table: pa.Table, schema: sp.Schema, options: dict[str, Any], delta: bool
) -> None:
    """Trees and grids spend pure epsilon; a forest spends delta too, unless it is told not to."""
    ledger = sp.Ledger()
    rows = sp.synthesize(table, schema, epsilon="2", n_rows=20, seed=1, ledger=ledger, **options)
    assert rows.column_names == list(schema)
    assert rows.num_rows == 20
    assert ledger.spent == 2
    assert (ledger.spent_delta > 0) == delta


# -------------------------------------------------------------------------------------------------------- persons


def test_persons_get_their_own_model() -> None:
    """A schema that says whose rows they are, and linked tables, choose it by themselves, and it alone."""
    for stated, words in ((FLAT, "by column 'customer'"), (TABLES, "linked to 'customers'")):
        choice = choose(stated, {"target": None})
        assert choice.method == "linked"
        assert words in choice.reason
        assert choose(stated, {"delta": "1e-6"}, method="linked").reason == "it was requested"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "forest"}, "method='forest' protects rows, .* say method='linked'"),
        ({"method": "tree"}, "method='tree' protects rows"),
        ({"workload": [("day", "kind")]}, "workload is not a parameter of a model of persons"),
        ({"assumed_rows": 10}, "assumed_rows is for tables of rows, .*; say assumed_persons"),
        ({"n_rows": 10}, "n_rows: .* say persons=..."),
        ({"num_rows": 10}, "n_rows: .* say persons=..."),
        ({"nonsense": 1}, "nonsense is not a parameter of any method; .*the linked takes assumed_persons"),
        ({"persons": -1}, "-1"),
    ],
)
def test_a_model_of_persons_takes_its_own_options(options: dict[str, object], said: str) -> None:
    """Before the table is looked at."""
    with pytest.raises(ParameterError, match=said):
        sp.synthesize("no table", FLAT, **options)


@pytest.mark.parametrize("options", [{"method": "linked"}, {"assumed_persons": 10}, {"persons": 10}])
def test_what_is_of_persons_needs_persons(options: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="does not say whose rows they are"):
        sp.synthesize("no table", NUMBERS, **options)


def test_persons_come_in_one_call() -> None:
    """One table or several, as they were given."""
    frames = shop(200)
    rows = sp.synthesize(frames["sales"], FLAT, epsilon=5, persons=10, seed=1)
    assert list(rows) == list(FLAT)
    assert rows["customer"].nunique() == 10
    drawn = sp.synthesize(frames, TABLES, epsilon=5, persons=10, target="customers.churn")
    assert {name: list(table) for name, table in drawn.items()} == {name: list(TABLES[name]) for name in TABLES}
    assert len(drawn["customers"]) == 10


def test_rows_are_not_asked_of_persons() -> None:
    """The model and its release say what to ask for, however rows are called elsewhere."""
    model = flat_model()
    for holder in (model, model.release_):
        for name in ("n_rows", "num_rows", "rows", "size"):
            with pytest.raises(ParameterError, match="say how many with `persons`"):
                holder.sample(**{name: 5})
        with pytest.raises(ParameterError, match="sample\\(\\) has no option 'balance'"):
            holder.sample(balance={"kind": 0.5})
