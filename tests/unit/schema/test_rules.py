"""Rules between columns: which may be stated, what they mean for a row, and bounds that are widened to keep them."""

from __future__ import annotations

import json
import math
from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import exact
from spinney.errors import SchemaError
from spinney.schema.rules import in_order, least_values, most_values
from support.in_one_test import in_one_test
from support.strategies import MODEST

COLUMNS = {
    "start": sp.Date("2020-01-01", "2020-12-31"),
    "end": sp.Date("2020-01-01", "2021-12-31", nullable=True),
    "seen": sp.Datetime("2020-01-01", "2021-01-01"),
    "zoned": sp.Datetime("2020-01-01", "2021-01-01", timezone="UTC"),
    "few": sp.Integer(0, 10),
    "much": sp.Real(0, 100, nullable=True),
    "huge": sp.Integer(1000, 2000),
    "sevens": sp.Integer(0, 1500, multiple_of=700),
    "status": sp.Category(["new", "open", "closed"]),
    "grade": sp.Category([1, 2, 3], nullable=True),
    "member": sp.Boolean(),
    "id": sp.Identifier(),
}
RULES = [
    sp.AtMost("start", "end"),
    sp.AtMost("few", "much"),
    sp.EmptyWhen("end", "status", ["new", "open"]),
    sp.EmptyWhen("much", "grade"),
]


@in_one_test(
    ("rules", "message"),
    [
        ([sp.AtMost("start", "stop")], "AtMost: column 'stop' is not in the schema"),
        ([sp.EmptyWhen("stop", "status", ["new"])], "EmptyWhen: column 'stop' is not in the schema"),
        ([sp.AtMost("id", "few")], "'id' is of type identifier"),
        ([sp.EmptyWhen("end", "id")], "'id' is of type identifier"),
        ([sp.AtMost("few", "status")], "'status' is of type category, whose values have no size"),
        ([sp.AtMost("member", "few")], "'member' is of type boolean"),
        ([sp.AtMost("start", "few")], "'start' is of type date and 'few' of type integer; compare"),
        ([sp.AtMost("start", "seen")], "'start' is of type date and 'seen' of type datetime"),
        ([sp.AtMost("seen", "zoned")], "one of 'seen' and 'zoned' has a time zone"),
        ([sp.AtMost("few", "much"), sp.AtMost("much", "few")], "circle, 'few' -> 'much' -> 'few'|circle, 'much' ->"),
        ([sp.AtMost("few", "much"), sp.AtMost("few", "much")], "stated twice"),
        ([sp.AtMost("huge", "few")], "column 'few' has no value as large .* raise its high=10"),
        ([sp.AtMost("huge", "sevens"), sp.AtMost("sevens", "much")], "column 'much' has no value as large"),
        ([sp.EmptyWhen("start", "status", ["new"])], "'start' is never null; declare it nullable"),
        ([sp.EmptyWhen("end", "status")], "'status' is never null; list values"),
        ([sp.EmptyWhen("end", "few", [3])], "'few' is of type integer; values can be listed of a category"),
        ([sp.EmptyWhen("end", "status", ["shut"])], "'shut' is not a value of column 'status'"),
        ([sp.EmptyWhen("end", "grade", ["1"])], "'1' is not a value of column 'grade'"),
        ([sp.EmptyWhen("end", "grade", [True])], "True is not a value of column 'grade'"),
        ([sp.EmptyWhen("end", "member", [1])], "1 is not a value of column 'member'"),
        ([sp.EmptyWhen("end", "status", ["new", "open", "closed"])], "'end' would always be empty"),
        ([sp.EmptyWhen("end", "member", [True]), sp.EmptyWhen("end", "status", ["new"])], "two rules"),
        ([sp.EmptyWhen("end", "much"), sp.EmptyWhen("much", "end")], "circle"),
        (["start <= end"], "'start <= end' is not a rule such as"),
        (sp.AtMost("few", "much"), "not a list of rules"),
        ("at-most", "not a list of rules"),
        (3, "not a list of rules"),
    ],
)
def test_rules_that_make_no_sense(rules, message):
    """A rule about a missing column, of the wrong type, or against another rule is refused with the reason."""
    with pytest.raises(SchemaError, match=message):
        sp.Schema(COLUMNS, rules=rules)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.AtMost("a", "a"), "'a' is named twice"),
        (lambda: sp.AtMost("a", ""), "'' is not the name"),
        (lambda: sp.AtMost(3, "a"), "3 is not the name"),
        (lambda: sp.EmptyWhen("a", "b", []), "values is empty"),
        (lambda: sp.EmptyWhen("a", "b", "open"), "values='open' is not a list"),
        (lambda: sp.EmptyWhen("a", "b", 3), "values=3 is not a list"),
        (lambda: sp.EmptyWhen("a", "b", ["x", "x"]), "each listed once"),
        (lambda: sp.EmptyWhen("a", "b", [1.5]), "strings, whole numbers or booleans"),
        (lambda: sp.EmptyWhen("a", "b", [None]), "strings, whole numbers or booleans"),
    ],
)
def test_rules_that_are_none(make, message):
    """A rule names two columns, and lists plain values."""
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('[[rules]]\ncolumn = "a"\nother = "b"', "rule 1: the entry needs a type"),
        (
            '[[rules]]\ntype = "below"\ncolumn = "a"\nother = "b"',
            "rule 1: type 'below' is not one of",
        ),
        ('[[rules]]\ntype = "at-most"\ncolumn = "a"', "rule 1: other is missing"),
        ('[[rules]]\ntype = "at-most"\ncolumn = "a"\nother = "b"\nvalues = [1]', "rule 1: 'values' is not an option"),
        (
            '[[rules]]\ntype = "empty-when"\ncolumn = "a"\nother = "b"\nvalues = []',
            "rule 1: EmptyWhen: values",
        ),
        ('[[rules]]\ntype = "at-most"\ncolumn = "a"\nother = "c"', "AtMost: column 'c' is not in the schema"),
        ('[rules]\ntype = "at-most"', "rules is not a list of tables"),
    ],
)
def test_mistakes_in_a_file(entry, message):
    """Whatever is wrong in a file is reported with the rule that it is wrong in."""
    columns = '[columns.a]\ntype = "boolean"\nnullable = true\n[columns.b]\ntype = "boolean"\n'
    with pytest.raises(SchemaError) as caught:
        sp.Schema.from_toml(columns + entry)
    assert message in str(caught.value)


def test_rules_survive_toml_and_json():
    """Rules of both kinds, with and without values, are written and read back, in order."""
    schema = sp.Schema(COLUMNS, rules=RULES)
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    described = json.loads(json.dumps(schema.to_dict(), default=lambda value: value.isoformat()))
    assert sp.Schema.from_dict(described) == schema
    assert sp.Schema.from_dict(described).rules == tuple(RULES)
    truth = sp.Schema(COLUMNS, rules=[sp.EmptyWhen("end", "member", [True])])
    assert sp.Schema.from_toml(truth.to_toml()).rules[0].values == (True,)


def test_a_schema_without_rules_is_as_before():
    """No rules leave no trace in the file or the repr, and rules are part of equality."""
    plain = sp.Schema(COLUMNS)
    assert "rules" not in plain.to_dict()
    assert "rules" not in repr(plain)
    assert plain.rules == ()
    assert plain != sp.Schema(COLUMNS, rules=RULES)
    assert plain == sp.Schema(COLUMNS, rules=())
    assert sp.Schema(COLUMNS, rules=RULES) != sp.Schema(COLUMNS, rules=RULES[::-1])


def test_repr_shows_the_rules():
    """The repr reads like the call."""
    schema = sp.Schema({"a": sp.Boolean(nullable=True), "b": sp.Boolean()}, rules=[sp.EmptyWhen("a", "b", [False])])
    assert repr(schema).endswith("}, rules=[EmptyWhen(column='a', other='b', values=[False])])")
    assert repr(sp.EmptyWhen("a", "b")) == "EmptyWhen(column='a', other='b')"
    assert repr(sp.AtMost("a", "b")) == "AtMost(column='a', other='b')"


def test_at_most_row_by_row():
    """Equal is allowed, larger is not, and a null on either side satisfies the rule."""
    nan = math.nan
    rows = {"few": np.array([1, 2, 3, 4, 5]), "much": np.array([1.0, 1.5, 9.0, nan, 4.999])}
    assert sp.AtMost("few", "much").holds(rows, COLUMNS).tolist() == [True, False, True, True, False]
    assert sp.AtMost("much", "few").holds(rows, COLUMNS).tolist() == [True, True, False, True, True]


def test_empty_when_row_by_row():
    """Null exactly when said: missing where it should be there is as wrong as there where it should be missing."""
    nan = math.nan
    rows = {"end": np.array([nan, nan, nan, 5.0, 5.0, 5.0]), "status": np.array([0.0, 1, 2, 0, 2, 1])}
    listed = sp.EmptyWhen("end", "status", ["open", "new"])
    assert listed.says(COLUMNS["status"]).ranges == ((0, 0), (1, 1))
    assert listed.holds(rows, COLUMNS).tolist() == [True, True, False, False, True, False]
    rows = {"much": np.array([nan, nan, 5.0, 5.0]), "grade": np.array([nan, 1, nan, 1])}
    assert sp.EmptyWhen("much", "grade").holds(rows, COLUMNS).tolist() == [True, False, False, True]
    # A null has none of the listed values.
    assert sp.EmptyWhen("much", "grade", [2]).holds(rows, COLUMNS).tolist() == [False, True, True, False]
    rows = {"end": np.array([nan, 5.0]), "member": np.array([1, 1])}
    assert sp.EmptyWhen("end", "member", [True]).holds(rows, COLUMNS).tolist() == [True, False]


def test_columns_in_order():
    """The smaller before the larger, and what says so before what is empty."""
    assert in_order([sp.AtMost("b", "c"), sp.AtMost("a", "b"), sp.EmptyWhen("z", "a")], sp.AtMost) == ["a", "b", "c"]
    assert in_order([sp.EmptyWhen("a", "b"), sp.EmptyWhen("b", "c")], sp.EmptyWhen) == ["c", "b", "a"]
    assert sp.AtMost("a", "b").columns == ("a", "b")


def test_bounds_that_are_found_keep_the_rules():
    """Rules survive `with_bounds`, whose found bounds give way to each other and to stated ones."""
    rules = [sp.AtMost("a", "b"), sp.AtMost("b", "c")]
    columns = {
        "a": sp.Real(bounds="private"),
        "b": sp.Integer(0, 10),
        "c": sp.Integer(bounds="from-data-not-private"),
    }
    found = sp.Schema(columns, rules=rules)._with_bounds({"a": (64, 128), "c": (-8, -1)})
    assert found.rules == tuple(rules)
    assert (found["a"].low, found["a"].high) == (10, 128)
    assert (found["b"].low, found["b"].high) == (0, 10)
    assert (found["c"].low, found["c"].high) == (-8, 10)
    kept = sp.Schema(columns, rules=rules)._with_bounds({"a": (0, 5), "c": (0, 20)})
    assert (kept["a"].high, kept["c"].high) == (5, 20)


def test_dates_that_are_found_keep_the_rules():
    """Days give way as numbers do."""
    columns = {"start": sp.Date(bounds="private"), "end": sp.Date(bounds="private")}
    schema = sp.Schema(columns, rules=[sp.AtMost("start", "end")])
    ends = (date(2021, 1, 1), date(2022, 1, 1)), (date(2019, 1, 1), date(2020, 1, 1))
    found = schema._with_bounds(dict(zip(columns, ends, strict=True)))
    assert found["start"].low <= found["end"].high
    assert (found["start"].high, found["end"].low) == (ends[0][1], ends[1][0])


numbers = st.integers(-40, 40)


@st.composite
def chains(draw):
    """A few columns in a line, some with stated bounds, some whose bounds are yet to be found, some in steps."""
    columns, found = {}, {}
    for index in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from([sp.Integer, sp.Real]))
        low, length = draw(numbers), draw(st.integers(1, 30))
        step = (
            draw(st.sampled_from([None, 1, 7, 20])) if kind is sp.Integer else draw(st.sampled_from([None, 0.3, 12.5]))
        )
        if draw(st.booleans()):
            columns[f"c{index}"] = kind(bounds="private", multiple_of=step)
            found[f"c{index}"] = (low, low + length)
        else:
            columns[f"c{index}"] = kind(-60, 60, multiple_of=step)._with_bounds(low, low + length)
    return columns, found, [sp.AtMost(*pair) for pair in pairwise(columns)]


@MODEST
@given(chains())
def test_either_the_stated_bounds_contradict_or_all_can_be_kept(drawn):
    """Where the stated part of a chain is accepted, found bounds of any size leave a row that obeys every rule."""
    columns, found, rules = drawn
    try:
        schema = sp.Schema(columns, rules=rules)
    except SchemaError:
        least = least_values(rules, columns)
        assert any(column.has_bounds and least[name] > exact(column.high) for name, column in columns.items())
        return
    schema = schema._with_bounds(found)
    least, most = least_values(rules, schema), most_values(rules, schema)
    for name, column in schema.items():
        assert exact(column.low) <= least[name] <= most[name] <= exact(column.high)
        step = column.multiple_of or (1 if isinstance(column, sp.Integer) else None)
        if step:
            assert math.isclose(float(least[name]) / step, round(float(least[name]) / step), abs_tol=1e-9)
    for row in (least, most):
        values = {name: np.array([float(value)]) for name, value in row.items()}
        assert all(rule.holds(values, schema).all() for rule in schema.rules)
    assert sp.Schema.from_toml(schema.to_toml()) == schema
