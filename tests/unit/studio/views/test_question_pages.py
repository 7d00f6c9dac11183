"""Questions: written or put together, with intervals as the library gives them, and faults beside their fields."""

import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.grammar import parse_question
from spinney_studio.views import built_question
from support.shown_releases import SCHEMA
from support.studios import text_of


def test_an_answer_is_that_of_the_release_with_its_kind_of_statement(get, studio):
    release = sp.load(studio.workspace.release("people").path)
    answer = release.count({"age": (30, 40)})
    said = text_of(get("/releases/people/questions", params={"q": "count where age in 30..40"}))
    assert all(number in said for number in str(answer).split(" (")[0].replace("to", "").split())
    assert answer.statement in said
    assert answer.why in said
    assert "What kind of statement this is" in said


def test_a_question_that_was_put_together_is_the_same_as_the_written_one(get):
    built = get(
        "/releases/people/questions",
        params={"kind": "mean", "column": "income", "by": "region", "where": "age in 30..40", "level": "0.9"},
    )
    written = get(
        "/releases/people/questions", params={"q": "mean(income) by region where age in 30..40", "level": "0.9"}
    )
    tables = [page.text.split('aria-label="Answers"')[1].split("</table>")[0] for page in (built, written)]
    assert tables[0] == tables[1]
    assert "90 %" in text_of(built)
    assert tables[0].count("<tr>") == 5


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kind": "count"}, "count"),
        ({"kind": "count", "by": "age", "cells": "(0..49, 50..99)"}, "count by age (0..49, 50..99)"),
        ({"kind": "quantile", "column": "income", "share": "0.9"}, "quantile(income, 0.9)"),
        ({"kind": "median", "column": "age", "where": 'region = "south, coast"'}, None),
        ({"kind": "proportion", "where": "sex = male"}, "proportion where sex = male"),
    ],
)
def test_what_the_form_puts_together_can_be_read(given, text):
    built = built_question(given)
    assert text is None or built == text
    parse_question(built, SCHEMA)


@pytest.mark.parametrize("name", ["a, b", 'say "hi"', "where", "x (y)", "plain"])
def test_names_with_signs_are_put_in_quotes(name):
    schema = sp.Schema({name: sp.Integer(0, 9)})
    assert parse_question(built_question({"kind": "mean", "column": name}), schema).column == name


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"kind": "mean"}, "column", "choose the column"),
        ({"kind": "sum"}, "kind", "choose one of"),
        ({"kind": "proportion"}, "where", "needs a condition"),
        ({"kind": "proportion", "by": "sex", "where": "age > 3"}, "by", "takes no groups"),
        ({"q": "cuont"}, "q", "did you mean"),
        ({"q": "count where ages = 3"}, "q", "did you mean 'age'"),
        ({"q": "mean(sex)"}, "q", "numbers"),
        ({"q": "count by age, income"}, "q", "income"),
        ({"q": "count", "level": "95"}, "level", "between 0 and 1"),
        ({"q": "count", "level": "x"}, "level", "between 0 and 1"),
        ({"q": "c" * 3_000}, "q", "at most"),
        ({"q": "regression income ~ age"}, "q", "income ~ age"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(get, query, field, said):
    answer = get("/releases/people/questions", params=query)
    assert answer.status_code == 400
    assert said in text_of(answer)
    before = answer.text.split('class="fault"')[0]
    assert f'name="{field}"' in before


def test_intervals_may_be_asked_to_hold_at_once(get):
    pages = [
        get("/releases/people/questions", params={"q": "count by region", **more})
        for more in ({}, {"simultaneous": "yes"})
    ]
    assert "Each interval holds by itself" in text_of(pages[0])
    assert "All intervals hold at once" in text_of(pages[1])


def test_a_release_that_gives_no_answers_says_what_to_do(get):
    page = get("/releases/at?path=v3-points.spinney")
    answer = get(f"/releases/{str(page.url).rpartition('/')[2]}/questions", params={"q": "count"})
    assert answer.status_code == 400
    assert "does not hold what error bars follow from" in text_of(answer)


def test_a_form_without_a_kind_is_refused():
    with pytest.raises(ParameterError, match="kind"):
        built_question({})
