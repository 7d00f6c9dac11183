"""Questions as text: what is understood, and errors that point at the place."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.grammar import parse_conditions, parse_question
from support.in_one_test import in_one_test

SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "income": sp.Real(0, 1e6, nullable=True),
        "sex": sp.Category(["Male", "Female"]),
        "region": sp.Category(
            ["North", "South", "North East", "Bed and breakfast", "up and age = 3", "a, b", "O'Hare"]
        ),
        "pay": sp.Category(["<=50K", ">50K"]),
        "hours per week": sp.Integer(0, 99),
        "hours": sp.Integer(0, 24),
        "count": sp.Integer(0, 9),
        "x, y": sp.Real(0, 1),
        "member": sp.Boolean(),
        "born": sp.Date("1900-01-01", "2020-12-31", nullable=True),
        "seen": sp.Datetime("2020-01-01", "2020-12-31"),
        "key": sp.Identifier(),
    }
)


@in_one_test(
    ("text", "wanted"),
    [
        ("age in 30..40", {"age": (30, 40)}),
        ("age = 30..40 and sex = Male", {"age": (30, 40), "sex": "Male"}),
        ("age=30 AND sex=Male", {"age": 30, "sex": "Male"}),
        ("region in (North, South) and age > 1", {"region": ["North", "South"], "age": (2, None)}),
        ("income > 1000", {"income": (math.nextafter(1000, 2000), None)}),
        ("age > 30", {"age": (31, None)}),
        ("age >= 30 and age < 40", {"age": (30, 39)}),
        ("age < 40 and sex = Female and age > 17", {"age": (18, 39), "sex": "Female"}),
        ("income <= 5e4", {"income": (None, 50000)}),
        ("income is null", {"income": None}),
        ("income = null and born = null", {"income": None, "born": None}),
        ("region = North East and age = 3", {"region": "North East", "age": 3}),
        ("region = 'North East' and age = 3", {"region": "North East", "age": 3}),
        ('region in ("a, b", North)', {"region": ["a, b", "North"]}),
        ("region in ('a, b', 'North East')", {"region": ["a, b", "North East"]}),
        ("region = O'Hare and age = 3", {"region": "O'Hare", "age": 3}),
        ("region = Bed and breakfast", {"region": "Bed and breakfast"}),
        ("region = Bed and breakfast and age = 3", {"region": "Bed and breakfast", "age": 3}),
        ("region = up and age = 3", {"region": "up and age = 3"}),
        ("region = up and age = 3 and sex = Male", {"region": "up and age = 3", "sex": "Male"}),
        ("pay = >50K", {"pay": ">50K"}),
        ("pay=<=50K", {"pay": "<=50K"}),
        ("hours per week in 10..20 and hours = 3", {"hours per week": (10, 20), "hours": 3}),
        ('"hours per week" = 3', {"hours per week": 3}),
        ("'x, y' < 0.5", {"x, y": (None, math.nextafter(0.5, 0))}),
        ("x, y = 0.5", {"x, y": 0.5}),
        ("born > 1999-12-31", {"born": (date(2000, 1, 1), None)}),
        ("born in 1999-01-01..2000-01-01", {"born": ("1999-01-01", "2000-01-01")}),
        ("seen < 2020-02-01", {"seen": (None, datetime(2020, 1, 31, 23, 59, 59, 999999))}),
        ("member = true and count in 1,2,3", {"member": True, "count": [1, 2, 3]}),
    ],
)
def test_conditions_are_read_by_the_schema(text: str, wanted: dict[str, Any]) -> None:
    assert parse_conditions(text, SCHEMA) == wanted


@pytest.mark.parametrize(
    ("text", "kind", "column", "at", "by", "where"),
    [
        ("count", "count", None, None, (), {}),
        ("  COUNT  where age = 3 ", "count", None, None, (), {"age": 3}),
        ("count by sex", "table", None, None, ("sex",), {}),
        ("table by sex, hours where age > 3", "table", None, None, ("sex", "hours"), {"age": (4, None)}),
        ("table by 'x, y'", "table", None, None, ("x, y",), {}),
        ("mean(income)", "mean", "income", None, (), {}),
        ("mean( hours per week ) by region", "mean", "hours per week", None, ("region",), {}),
        ("mean('x, y') where sex=Male", "mean", "x, y", None, (), {"sex": "Male"}),
        ("mean (count) by sex where age in (3, 5)", "mean", "count", None, ("sex",), {"age": [3, 5]}),
        ("median(income)", "quantile", "income", 0.5, (), {}),
        ("quantile(age, 0.9) by sex", "quantile", "age", 0.9, ("sex",), {}),
        ("proportion where pay = >50K", "proportion", None, None, (), {"pay": ">50K"}),
    ],
)
def test_questions(text: str, kind: str, column: str | None, at: float | None, by: tuple[str, ...], where: Any) -> None:
    asked = parse_question(text, SCHEMA)
    assert (asked.kind, asked.column, asked.at, tuple(asked.by), asked.where) == (kind, column, at, by, where)
    assert asked.text == text.strip()
    assert asked.given is None


def test_a_table_may_list_its_cells() -> None:
    """Numbers in ranges, categories in some of their values, quoted ones with brackets and commas in them."""
    text = "count by age (0..17, 18..64, 99), region ('a, b', North), income (..100, null), sex where hours = 3"
    asked = parse_question(text, SCHEMA)
    assert asked.by == {
        "age": [(0, 17), (18, 64), 99],
        "region": ["a, b", "North"],
        "income": [(None, 100), None],
        "sex": None,
    }
    assert asked.where == {"hours": 3}


def test_a_proportion_may_be_of_some_rows_only() -> None:
    asked = parse_question("proportion where pay = >50K and age > 30 given sex = Female and region = North", SCHEMA)
    assert asked.where == {"pay": ">50K", "age": (31, None)}
    assert asked.given == {"sex": "Female", "region": "North"}
    assert asked.columns == ("pay", "age", "sex", "region")


@in_one_test(
    ("text", "phrase", "marked"),
    [
        ("", "the question is empty", ""),
        ("mode(age)", "'mode' is not something to ask for", "mode"),
        ("cuont", "did you mean 'count'?", "cuont"),
        ("mean", "needs a column in brackets", ""),
        ("mean income", "write mean(COLUMN)", "i"),
        ("mean(incom)", "did you mean 'income'?", "incom"),
        ("mean(income", "is not a column", "income"),
        ("mean(income, 0.5)", "mean takes one column", ","),
        ("mean(key)", "identifier", "key"),
        ("quantile(age)", "needs a share", ")"),
        ("quantile(age, 1.5)", "between 0 and 1", "1.5"),
        ("quantile(age, )", "between 0 and 1", ")"),
        ("quantile(age, 0.5", "the bracket is not closed", ""),
        ("table", "table needs columns", ""),
        ("table by sx", "did you mean 'sex'?", "sx"),
        ("table by sex, sex", "named twice", "sex"),
        ("count by key", "identifier", "key"),
        ("count by age (0..17, old)", "'old' is not a number", "old"),
        ("count by age (0..17", "the bracket is not closed", "("),
        ("count by ", "is not a column", ""),
        ("count where", "there is no condition", "where"),
        ("count where age", "has no equals sign", "age"),
        ("count where ages = 3", "did you mean 'age'?", "ages"),
        ("count where age = 3 and sx = Male", "did you mean 'sex'?", "sx"),
        ("count where age = old", "'old' is not a number", "old"),
        ("count where age in 30..old and sex = Male", "'old' is not a number", "old"),
        ("count where age in (3, old, 5)", "'old' is not a number", "old"),
        ("count where sex = Mal", "'Mal' is not a value", "Mal"),
        ("count where sex > Male", "listed and not compared", "sex > Male"),
        ("count where age >", "no value to compare", "age >"),
        ("count where age != 3", "not what it is not", "!="),
        ("count where sex not in (Male)", "not what it is not", "not"),
        ("count where age = 3 or sex = Male", "joined by `and` alone", "or"),
        ("count where age = 3 and age = 4", "names column 'age' twice", "age"),
        ("count where age > 3 and age > 4", "names column 'age' twice", "age"),
        ("count where age = ", "is empty", "age ="),
        ("count where region = 'North", "'North\"", "'North"),
        ('count where region = "North', "the quote is not closed", '"'),
        ("count where born = 31.12.1999", "a day like", "31.12.1999"),
        ("count where key = 3", "identifier", "key"),
        ("count where age = 3 given sex = Male", "`given` belongs to a proportion", "given sex = Male"),
        ("proportion", "a proportion needs conditions", ""),
        ("proportion by sex", "takes no `by`", "by"),
        ("proportion where sex = Male given", "'Male given' is not a value", "Male given"),
        ("count(age)", "count takes no column", "(age)"),
        ("count where age in 40..30", "40 is above 30; swap the two", "age in 40..30"),
        (
            "count where hours > 24",
            "is never > 24 in this release; ask for values within its bounds",
            "hours > 24",
        ),
        ("count where income > 5 and income < 3", "is never > 5 and < 3 in", "income > 5 and income < 3"),
        ("count where x, y > 1", "is never > 1 in this release", "x, y > 1"),
        ("mean(sex)", "means and quantiles are those of numbers; ask for count by sex", "sex"),
        ("median(born)", "is of type date", "born"),
        ("count of age", "this was not understood", "of age"),
    ],
)
def test_errors_point_at_the_place(text: str, phrase: str, marked: str) -> None:
    """The last two lines of a message are the text, and marks under what is wrong with it."""
    with pytest.raises(ParameterError) as caught:
        parse_question(text, SCHEMA)
    problem, shown, marks = str(caught.value).rsplit("\n", 2)
    assert phrase in problem
    assert shown == f"  {text}"
    start = marks.index("^")
    assert set(marks[start:]) == {"^"}
    assert shown[start:][: len(marks) - start] == marked


def test_long_lines_are_shown_around_the_place() -> None:
    text = f"count where region in ({', '.join(['North'] * 100)}, Nort, {', '.join(['North'] * 100)})"
    with pytest.raises(ParameterError) as caught:
        parse_question(text, SCHEMA)
    _, shown, marks = str(caught.value).rsplit("\n", 2)
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert shown[marks.index("^") :].startswith("Nort, ")


def test_control_characters_are_shown_as_escapes_and_marked() -> None:
    with pytest.raises(ParameterError) as caught:
        parse_question("count where\x1b[2Jx = 3", SCHEMA)
    assert "\x1b" not in str(caught.value)


def test_whatever_is_typed_is_read_or_refused_with_a_pointer() -> None:
    """Words of the grammar, names, values and signs in any order: an error is always one that points."""
    words = ["count", "mean(", "age", ")", "by", "where", "and", "or", "given", "in", "is", "not", "null", "..", "3"]
    words += ["=", "==", "<", ">=", "!=", "(", ",", '"', "'", "sex", "Male", "hours per week", "\n", "", "é", "region"]
    rng = np.random.default_rng(0)
    n_read = 0
    problems = []
    for _ in range(4000):
        text = " ".join(rng.choice(words, rng.integers(1, 9)))
        for start in ("", "count where ", "mean(age) by "):
            try:
                parse_question(start + text, SCHEMA)
                n_read += 1
            except ParameterError as err:
                problems.append(str(err))
    assert n_read > 50
    assert all("^" in problem.rsplit("\n", 1)[-1] for problem in problems)
