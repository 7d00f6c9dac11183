"""Schemas whose rows belong to persons: what may be stated, and what is refused before any data is seen."""

from __future__ import annotations

import json
import re

import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.schema.template import read_schema
from support.in_one_test import in_one_test

COLUMNS = {
    "card": sp.Identifier(),
    "day": sp.Date("2020-01-01", "2020-12-31"),
    "late": sp.Date("2020-01-01", "2020-12-31", nullable=True),
    "kind": sp.Category(["food", "fuel"]),
    "cash": sp.Boolean(),
    "amount": sp.Real(0, 100),
    "note": sp.Ignore(),
}


def flat(**options):
    return sp.Schema(COLUMNS, **({"person": "card", "most_rows": 200} | options))


FULL = flat(
    order="day",
    steps=True,
    role="kind",
    differences=["amount"],
    rules=[sp.First("kind", ["food"], only=True), sp.NeverAfter("cash", [True])],
)


def test_what_is_stated_about_persons_can_be_read_off():
    """The schema knows its column of persons and all that was stated about their rows."""
    assert FULL.person == "card"
    facts = FULL._person_rows
    assert (facts.most_rows, facts.order, facts.steps, facts.role) == (200, "day", True, "kind")
    assert facts.differences == ("amount",)
    assert sp.Schema(COLUMNS).person is None


@pytest.mark.parametrize("schema", [FULL, flat(), flat(order="amount", most_rows=1)], ids=["full", "plain", "order"])
def test_persons_survive_every_way_of_writing_a_schema(schema):
    """TOML, plain data, JSON and repr give the same schema again."""
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    assert sp.Schema.from_dict(json.loads(json.dumps(schema.to_dict(), default=lambda day: day.isoformat()))) == schema
    names = {name: getattr(sp, name) for name in sp.__all__}
    assert eval(repr(schema).removeprefix("sp."), names) == schema


def test_a_person_table_of_toml_reads_like_the_call():
    """[person] names the column and the options."""
    text = flat(order="day").to_toml()
    assert '[person]\ncolumn = "card"\nmost_rows = 200\norder = "day"\n' in text


def test_schemas_that_differ_in_persons_differ():
    """Equality sees whose rows they are."""
    assert flat() != sp.Schema(COLUMNS)
    assert flat() != flat(most_rows=100)
    assert flat(order="day") != flat(order="day", steps=True)


def test_methods_that_change_columns_keep_the_persons():
    """Bounds, lists of values and dropped columns leave the statement about persons as it was."""
    columns = COLUMNS | {"amount": sp.Real(bounds="private"), "kind": sp.Category("private", other="other")}
    schema = sp.Schema(columns, person="card", most_rows=200, order="day")
    found = schema._with_bounds({"amount": (0, 9)})._with_values({"kind": ["food"]})._without_ignored()
    assert found._person_rows == schema._person_rows
    assert "note" not in found


def test_schemas_without_the_person_column_have_no_persons():
    """What is modelled, and what a table is read by, says nothing of persons."""
    assert "card" not in FULL._modelled
    assert FULL._modelled.person is None
    assert FULL._as_read.person is None
    computed = sp.Schema(
        {"card": sp.Identifier(), "a": sp.Integer(0, 9), "b": sp.Integer(0, 9), "all": sp.Integer(0, 18)},
        rules=[sp.Sum("all", ["a", "b"])],
        person="card",
        most_rows=5,
    )
    assert computed._as_read.person is None


@in_one_test(
    ("options", "said"),
    [
        ({"person": "crad"}, "person='crad': column 'crad' is not in the schema; did you mean 'card'?"),
        ({"person": "kind"}, "person='kind': column 'kind' is of type category; declare .* as sp.Identifier()"),
        ({"person": 3}, "person=3 is not the name of a column"),
        ({"person": None}, "most_rows=200 is about the rows of a person; name the column of persons too"),
        ({"person": None, "most_rows": None, "order": "day"}, "order='day' is about the rows of a person"),
        ({"most_rows": None}, "person='card': most_rows is missing; .* such as most_rows=200"),
        ({"most_rows": 0}, "most_rows=0 is not a whole number in 1..65535"),
        ({"most_rows": 65_536}, "most_rows=65536 is not a whole number in 1..65535"),
        ({"most_rows": True}, "most_rows=True is not a whole number in 1..65535"),
        ({"most_rows": 2.0}, "most_rows=2.0 is not a whole number in 1..65535"),
        ({"order": "dayy"}, "order: column 'dayy' is not in the schema; did you mean 'day'?"),
        ({"order": "kind"}, "order='kind' is of type category, whose values have no order"),
        ({"order": "cash"}, "order='cash' is of type boolean, whose values have no order"),
        ({"order": "late"}, "order='late' may be null"),
        ({"order": "card"}, "order: column 'card' is of type identifier, whose values are never read"),
        ({"order": ""}, "order='' is not the name of a column"),
        ({"steps": True}, "steps=True needs order="),
        ({"steps": "yes", "order": "day"}, "steps='yes' is not true or false"),
        ({"role": "cash"}, "role='cash' is of type boolean; name a category"),
        ({"role": "amount"}, "role='amount' is of type real; name a category"),
        ({"differences": "amount"}, "differences='amount' is not a list of columns"),
        ({"differences": ["kind"]}, "differences: column 'kind' is of type category, whose values have no difference"),
        ({"differences": ["amount", "amount"]}, "column 'amount' is named twice"),
        ({"differences": ["day"], "order": "day", "steps": True}, "column 'day' is in steps already"),
        ({"rules": [sp.NeverAfter("kind", ["fuel"])]}, r"NeverAfter\('kind', \['fuel'\]\) needs order="),
    ],
)
def test_statements_about_persons_that_cannot_be_are_refused(options, said):
    """The error names the option, the column and what to state instead."""
    with pytest.raises(SchemaError, match=said):
        flat(**options)


def test_a_computed_column_orders_nothing():
    """A column that follows from others is named by its sources."""
    columns = {"card": sp.Identifier(), "a": sp.Integer(0, 9), "b": sp.Integer(0, 9), "all": sp.Integer(0, 18)}
    with pytest.raises(SchemaError, match="order: column 'all' is computed from others; name one of these"):
        sp.Schema(columns, rules=[sp.Sum("all", ["a", "b"])], person="card", most_rows=5, order="all")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("most_rows = 5", r"\[person\] needs the column"),
        ('column = "card"\nmost_row = 5', r"\[person\] has no entry 'most_row'; .* did you mean 'most_rows'\?"),
        ('column = "card"', "most_rows is missing"),
        ('column = "card"\nmost_rows = 5\norder = "kind"', "whose values have no order"),
        ('column = "card"\nmost_rows = 5\norder = 7', "order=7 is not the name of a column"),
    ],
)
def test_a_wrong_person_table_is_told_with_all_other_faults(tmp_path, text, said):
    """Reading stops at the first fault; checking a file lists this one among the others, and keeps the columns."""
    columns = '[columns.card]\ntype = "identifier"\n[columns.kind]\ntype = "category"\nvalues = ["a"]\n'
    with pytest.raises(SchemaError, match=said):
        sp.Schema.from_toml(f"{columns}\n[person]\n{text}\n")
    file = tmp_path / "schema.toml"
    file.write_text(f'{columns}\n[columns.age]\ntype = "intger"\n\n[person]\n{text}\n')
    reading = read_schema(file)
    assert len(reading.faults) == 2
    assert reading.schema is not None
    assert reading.schema.person is None


# ------------------------------------------------------------------------------------------------ rules of positions


@pytest.mark.parametrize(
    "rule",
    [sp.First("kind", ["food"]), sp.First("cash", [True], only=True), sp.NeverAfter("kind", ["fuel"])],
    ids=repr,
)
def test_rules_of_positions_survive_toml(rule):
    """They are written and read like all rules."""
    schema = flat(order="day", rules=[rule])
    assert sp.Schema.from_toml(schema.to_toml()).rules == (rule,)
    assert eval(repr(rule), {"First": sp.First, "NeverAfter": sp.NeverAfter}) == rule


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sp.First("kind", "food"), "First: values='food' is not a list"),
        (lambda: sp.First("kind", []), "First: values is empty"),
        (lambda: sp.First("kind", ["food", "food"]), "each listed once"),
        (lambda: sp.First("kind", ["food"], only="yes"), "First: only='yes' is not true or false"),
        (lambda: sp.NeverAfter("", ["food"]), "NeverAfter: '' is not the name of a column"),
        (lambda: flat(rules=[sp.First("kind", ["fod"])]), "'fod' is not a value of column 'kind'; did you mean 'food'"),
        (lambda: flat(rules=[sp.First("cash", [1])]), "1 is not a value of column 'cash'; use True or False"),
        (lambda: flat(rules=[sp.First("amount", [1])]), "First: column 'amount' is of type real; values can be listed"),
        (lambda: flat(rules=[sp.First("knd", ["food"])]), "column 'knd' is not in the schema; did you mean 'kind'"),
        (lambda: flat(rules=[sp.First("card", ["food"])]), "column 'card' is of type identifier"),
        (lambda: flat(rules=[sp.First("kind", ["food", "fuel"])]), "all values of column 'kind' are listed"),
    ],
)
def test_rules_of_positions_that_cannot_be_are_refused(make, said):
    """The error names the rule, the column and the value that was likely meant."""
    with pytest.raises(SchemaError, match=said):
        make()


def test_rules_of_positions_say_nothing_about_single_rows():
    """No clause comes of them, so no table of one row's columns is cut by them."""
    rule = sp.NeverAfter("kind", ["fuel"])
    assert rule.clauses(COLUMNS) == []
    assert rule.says(COLUMNS["kind"]).ranges == ((1, 1),)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (sp.Real(-8e307, 8e307), "from -8e+307 to 8e+307"),
        (sp.Real(-1e308, 1e308), "from -1e+308 to 1e+308"),
        (sp.Integer(-(2**61), 2**61), "from -2305843009213693952 to 2305843009213693952"),
    ],
)
@pytest.mark.parametrize("options", [{"order": "t", "steps": True}, {"differences": ["t"]}])
def test_columns_that_reach_too_far_have_no_differences(column, shown, options):
    """Sums of their differences would leave the range of floats: rows would be null where they cannot be."""
    columns = {"who": sp.Identifier(), "t": column}
    with pytest.raises(SchemaError, match=re.escape(f"column 't' reaches {shown}, too far")):
        sp.Schema(columns, person="who", most_rows=5, **options)
    with pytest.raises(SchemaError, match=re.escape(f"column 't' reaches {shown}, too far")):
        sp.Tables(
            {"persons": {"id": sp.Identifier(), "a": sp.Boolean()}, "rows": columns},
            links=[sp.Link("rows.who", "persons.id", most=5, **options)],
        )
    sp.Schema(columns, person="who", most_rows=5, order="t")
    sp.Schema(columns | {"t": sp.Real(-4e149, 4e149)}, person="who", most_rows=5, **options)
