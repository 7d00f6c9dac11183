"""Implications, derived columns and sums as they are stated: in Python, in TOML, and wrongly."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.schema.rules import clauses_of, rule_from_dict
from support.in_one_test import in_one_test

CENTS = sp.Real(0, 100, multiple_of=0.01)
COLUMNS = {
    "name": sp.Identifier(),
    "age": sp.Integer(0, 120),
    "marital": sp.Category(["never", "married"], nullable=True),
    "income": sp.Real(0, 1e6, nullable=True),
    "band": sp.Category(["low", "middle", "high"], nullable=True),
    "industry": sp.Category(["011", "012", "101", "999"]),
    "sector": sp.Category(["farm", "shop", "other"]),
    "fare": CENTS,
    "tip": CENTS,
    "total": sp.Real(-10, 300, multiple_of=0.01),
    "day": sp.Date("2020-01-01", "2020-12-31"),
    "flag": sp.Boolean(),
    "code": sp.Integer(1, 4),
    "found": sp.Integer(bounds="private"),
}
SECTORS = {"011": "farm", "012": "farm", "101": "shop", "999": "other"}
RULES = [
    sp.Implies({"age": (0, 14)}, {"marital": ["never", None], "income": None}),
    sp.Implies({"age": (65, None), "flag": True}, {"income": [(0, 10), (20, None), None]}),
    sp.Implies({"day": ("2020-03-01", "2020-03-31")}, {"flag": False}),
    sp.Derived("sector", "industry", by=SECTORS),
    sp.Derived("band", "income", cuts=[100, 1000], labels=["low", "middle", "high"]),
    sp.Sum("total", ["fare", "tip"], residual=sp.Real(-2, 2, multiple_of=0.01)),
]


def test_rules_are_the_same_after_toml_and_json():
    """Ranges, nulls, mappings and residuals included."""
    schema = sp.Schema(COLUMNS, rules=RULES)
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    plain = json.loads(json.dumps([rule.to_dict() for rule in RULES], default=str))
    assert [rule_from_dict(1, entry) for entry in plain[:2]] == RULES[:2]
    assert [rule_from_dict(1, entry) for entry in plain[3:]] == RULES[3:]
    assert len({*RULES, *schema.rules}) == len(RULES)


def test_rules_read_as_they_are_written():
    assert repr(RULES[0]) == "Implies({'age': (0, 14)}, {'income': None, 'marital': ['never', None]})"
    assert repr(RULES[4]) == "Derived('band', 'income', cuts=[100, 1000], labels=['low', 'middle', 'high'])"
    assert repr(sp.Sum("a", {"b": 1, "c": -1})) == "Sum('a', {'b': 1, 'c': -1})"


def test_rules_of_toml():
    """As the template shows them."""
    text = """
        [columns.age]
        type = "integer"
        low = 0
        high = 99
        [columns.marital]
        type = "category"
        values = ["never", "married"]
        nullable = true
        [[rules]]
        type = "implies"
        when.age = { low = 0, high = 14 }
        then.marital = ["never", { null = true }]
    """
    (rule,) = sp.Schema.from_toml(text).rules
    assert rule == sp.Implies({"age": (0, 14)}, {"marital": ["never", None]})


@in_one_test(
    ("rule", "message"),
    [
        (lambda: sp.Implies({"agee": 3}, {"flag": True}), "'agee' is not in the schema; did you mean 'age'"),
        (lambda: sp.Implies({"name": 3}, {"flag": True}), "'name' is of type identifier"),
        (lambda: sp.Implies({"age": 300}, {"flag": True}), "'age' is never 300: it lies in 0..120"),
        (lambda: sp.Implies({"marital": "nver"}, {"flag": True}), "'nver' is not a value.*did you mean 'never'"),
        (lambda: sp.Implies({"age": (0, 120)}, {"flag": True}), "'age' allows all of its values"),
        (lambda: sp.Implies({"age": 3}, {"age": 4}), "in when and in then"),
        (lambda: sp.Implies({}, {"age": 4}), "when=.* is not a mapping"),
        (lambda: sp.Implies({"age": 3}, "married"), "then=.* is not a mapping"),
        (lambda: sp.Implies({"found": 3}, {"flag": True}), "'found' has no bounds yet"),
        (lambda: sp.Derived("sector", "industry", by={"011": "farm"}), "leaves out 3 of 4 values.*'012'.*default"),
        (lambda: sp.Derived("sector", "industry", by={**SECTORS, "7": "farm"}), "'7' is not a value of column"),
        (lambda: sp.Derived("sector", "industry", by=SECTORS | {"011": "f"}), "'f' is not a value of it"),
        (lambda: sp.Derived("sector", "industry"), "equals 'industry', and .* list the same values, or state by"),
        (lambda: sp.Derived("sector", "income", by={1: "farm"}), "by takes a category, a boolean or an integer"),
        (lambda: sp.Derived("sector", "name", by=SECTORS), "'name' is of type identifier"),
        (lambda: sp.Derived("sector", "sector", by={"farm": "farm"}, default="shop"), "its own source"),
        (lambda: sp.Derived("day", "flag", by={True: "2020-01-01"}, default="2020-01-02"), "can be derived"),
        (lambda: sp.Derived("sector", "marital", by={}, default="shop"), "is not a mapping"),
        (lambda: sp.Derived("sector", "marital", by={"never": "farm"}, default="shop"), "is null where 'marital' is"),
        (lambda: sp.Derived("band", "income", cuts=[5], labels=["low"]), "1 cuts and 1 labels"),
        (lambda: sp.Derived("band", "income", cuts=[9, 5], labels=["low", "middle", "high"]), "not ascending"),
        (lambda: sp.Derived("band", "industry", cuts=[9], labels=["low", "high"]), "has no order"),
        (lambda: sp.Derived("found", "flag", by={True: 1, False: 2}), "bounds are not estimated; state them"),
        (lambda: sp.Derived("age", "flag", by={True: 1, False: 200}), "not within its bounds"),
        (lambda: sp.Sum("tip", ["fare", "total"]), "state low=-10.0 and high=400.0 for 'tip'"),
        (lambda: sp.Sum("total", ["fare", "day"]), "'day' is of type date; numbers can be added"),
        (lambda: sp.Sum("total", ["fare", "income"]), "'total' is null where 'income' is"),
        (lambda: sp.Sum("total", ["fare", "fare"]), "named twice"),
        (lambda: sp.Sum("total", []), "is not a list of columns"),
        (lambda: sp.Sum("total", {"fare": 0}), "is not a weight"),
        (lambda: sp.Sum("total", ["fare"], residual=sp.Integer(0, 1)), "is not a real"),
        (lambda: sp.Sum("total", ["fare"], residual=sp.Real(bounds="private")), "needs stated bounds"),
        (lambda: sp.Sum("code", ["fare"]), "steps of 0.01, and it comes in steps of 1; make it a Real"),
        (lambda: sp.Sum("found", ["fare"]), "state them"),
    ],
)
def test_rules_that_cannot_be(rule, message):
    """Told when they are stated, with what to type instead."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema(COLUMNS, rules=[rule()])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([sp.Derived("sector", "industry", by=SECTORS), sp.Derived("sector", "flag", by={True: "farm", False: "shop"})],
         "computed by two rules"),
        ([sp.Sum("total", ["fare"]), sp.Sum("fare", {"total": 1})], "add up|circle"),
        ([sp.Sum("total", ["fare", "tip"]), sp.AtMost("fare", "total")], "'total' is computed from others"),
        ([sp.Sum("total", ["fare"]), sp.Implies({"flag": True}, {"total": (0, 5)})], "Implies: .* is a sum of 'fare'"),
        ([sp.AtMost("fare", "tip"), sp.Implies({"flag": True}, {"tip": (0, 5)})], "cannot be kept together"),
        ([sp.Implies({"flag": True}, {"age": 3}), sp.Implies({"flag": True}, {"age": 3})], "stated twice"),
    ],
)  # fmt: skip
def test_rules_that_do_not_go_together(rules, message):
    with pytest.raises(SchemaError, match=message):
        sp.Schema(COLUMNS, rules=rules)


def test_derivations_that_run_in_a_circle():
    columns = {name: sp.Category(["x", "y"]) for name in "abc"}
    swap = {"x": "y", "y": "x"}
    rules = [sp.Derived("a", "b", by=swap), sp.Derived("b", "c", by=swap), sp.Derived("c", "a", by=swap)]
    with pytest.raises(SchemaError, match=r"Derived: the rules run in a circle, '.' -> '.' -> '.' -> '.'"):
        sp.Schema(columns, rules=rules)


def test_rules_about_derived_columns_are_rules_about_their_sources():
    """Through several derivations, nulls and defaults included."""
    columns = {
        "income": sp.Integer(0, 100, nullable=True),
        "band": sp.Category(["low", "high", "none"]),
        "is_poor": sp.Boolean(),
        "flag": sp.Boolean(),
    }
    schema = sp.Schema(
        columns,
        rules=[
            sp.Derived("band", "income", cuts=[50], labels=["low", "high"], null="none"),
            sp.Derived("is_poor", "band", by={"low": True}, default=False),
            sp.Implies({"is_poor": True}, {"flag": False}),
        ],
    )
    (clause,) = clauses_of(schema.rules, schema)
    assert clause["income"].ranges == ((50, 100),)
    assert clause["income"].has_null
    assert clause["flag"].ranges == ((0, 0),)
    assert list(schema._modelled) == ["income", "flag"]


def test_values_that_are_derived():
    """By mappings of one column and of several, with defaults, and by cuts, at which the upper band begins."""
    nan = math.nan
    income = np.array([nan, 0, 99.99, 100, 999, 1000])
    assert RULES[4].numbers([income], COLUMNS).tolist()[1:] == [0, 0, 1, 1, 2]
    columns = {"a": sp.Category(["x", "y"]), "b": sp.Integer(1, 9, nullable=True), "c": sp.Integer(0, 50)}
    rule = sp.Derived("c", ["a", "b"], by={("x", 1): 11, ("y", 9): 29}, default=5, null=0)
    sp.Schema(columns, rules=[rule])
    found = rule.numbers([np.array([0.0, 1, 0, 1, 1]), np.array([1.0, 9, 9, nan, 1])], columns)
    assert found.tolist() == [11, 29, 5, 0, 5]
    assert rule_from_dict(1, rule.to_dict()) == rule
    arrays = {"a": pa.array(["x", "y"]), "b": pa.array([1, None])}
    assert rule.compute(arrays, columns, None).to_pylist() == [11, 0]


def test_sums_are_exact_in_steps():
    """A million sums of cents are the floats nearest to their decimals; weights and null count."""
    rng = np.random.default_rng(0)
    cents = rng.integers(0, 10_000, (2, 10**6))
    arrays = {name: pa.array(part / 100) for name, part in zip(("fare", "tip"), cents, strict=True)}
    rule = sp.Sum("total", {"fare": 1, "tip": -0.5})
    columns = {"fare": CENTS, "tip": CENTS, "total": sp.Real(-50, 100, multiple_of=0.005, nullable=True)}
    sp.Schema(columns, rules=[rule])
    found = rule.compute(arrays, columns, None).to_numpy()
    assert (found == (2 * cents[0] - cents[1]) / 200).all()
    nulls = {"fare": pa.array([1.0, None]), "tip": pa.array([0.5, 0.5])}
    assert rule.compute(nulls, columns, None).to_pylist() == [0.75, None]


def test_bounds_that_are_found_widen_a_sum():
    """So that a fit never fails after it has paid for the bounds of a part."""
    parts = {"a": sp.Integer(bounds="private"), "b": sp.Integer(0, 10), "c": sp.Integer(0, 20)}
    schema = sp.Schema(parts, rules=[sp.Sum("c", ["a", "b"])])
    found = schema._with_bounds({"a": (-5, 100)})
    assert (found["c"].low, found["c"].high) == (-5, 110)


@pytest.mark.parametrize(
    ("columns", "rule", "message"),
    [
        (
            {"a": sp.Real(0, 1, multiple_of=2.0**63), "b": CENTS, "t": sp.Real(0, 300, multiple_of=0.01)},
            sp.Sum("t", ["a", "b"]),
            "the steps of part 'a' are too long beside those of the others",
        ),
        (
            {"a": sp.Real(0, 1e300), "b": sp.Real(0, 1e300), "t": sp.Real(-1e308, 1e308)},
            sp.Sum("t", {"a": 1e9, "b": -1e9}, residual=sp.Real(-5, 5)),
            "too large for a float",
        ),
        (
            {name: sp.Real(0, 9e16, multiple_of=0.01) for name in "abt"},
            sp.Sum("t", {"a": 1, "b": -1}, residual=sp.Real(0, 1, multiple_of=0.01)),
            "too large for 64 bits, in steps of 1/100",
        ),
        (
            {"a": sp.Integer(0, 1, multiple_of=2**53), "t": sp.Integer(0, 1)},
            sp.Sum("t", {"a": 4096}),
            "too large for 64 bits",
        ),
    ],
    ids=["step", "float", "cancelling", "unit"],
)
def test_sums_that_cannot_be_counted(columns, rule, message):
    """Are refused when they are stated, in Python and in files: not when rows are drawn."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema(columns, rules=[rule])
    with pytest.raises(SchemaError, match=message):
        sp.Schema.from_dict({**sp.Schema(columns).to_dict(), "rules": [rule.to_dict()]})


def test_rows_that_obey():
    """`holds` is what `check` counts with: to half a step, within the residual, and with null where it must be."""
    nan = math.nan
    rows = {"total": np.array([5.0, 5.004, 5.3, nan, 7.5]), "fare": np.array([3.0, 3, 3, 3, 3]), "tip": np.full(5, 2.0)}
    assert sp.Sum("total", ["fare", "tip"]).holds(rows, COLUMNS).tolist() == [True, True, False, False, False]
    assert RULES[5].holds(rows, COLUMNS).tolist() == [True, True, True, True, False]
    rows = {"industry": np.array([0.0, 1, 2, 3]), "sector": np.array([0.0, 0, 0, 2])}
    assert RULES[3].holds(rows, COLUMNS).tolist() == [True, True, False, True]
    rows = {"age": [3, 14, 15, 200], "marital": [1, nan, 1, 1], "income": [nan, 1, 1, 1]}
    rows = {name: np.array(numbers, dtype=float) for name, numbers in rows.items()}
    assert RULES[0].holds(rows, COLUMNS).tolist() == [False, False, True, True]
