"""Releases side by side: promises, shared columns, and distances that know what chance does."""

import re

import pytest

from spinney_studio.views import distances, shared_columns
from support.studios import text_of


def test_two_releases_stand_beside_each_other(get):
    page = get("/compare", params={"release": ["people", "people-small"]})
    said = text_of(page)
    assert "What each promises" in said
    assert page.text.count('alt="Distribution of income') == 2
    assert "How far people-small is from people" in said


def test_releases_without_a_shared_column_say_so(get):
    page = get("/compare", params={"release": ["people", "town"]})
    assert page.status_code == 200
    assert "share no column" in text_of(page)


def test_a_release_of_the_folder_is_chosen_by_its_path(get):
    page = get("/compare", params={"release": ["people", "./v3-moments-mixed.spinney"]})
    assert page.status_code == 200
    assert "v3-moments-mixed" in text_of(page)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (["people"], "two to 4"),
        (["people", "town", "people-small", "./v3-points.spinney", "./v3-grid-branded.spinney"], "two to 4"),
        (["people", "./people.spinney"], "the same release"),
        (["people", "none"], "no release"),
        (["people", "../x/y.spinney"], "outside"),
    ],
)
def test_wrong_choices_are_told(get, chosen, said):
    answer = get("/compare", params={"release": chosen})
    assert answer.status_code == 400
    assert said in text_of(answer)


def test_the_choice_offers_all_releases(get):
    assert len(re.findall(r'type="checkbox"', get("/compare").text)) >= 8


def test_distances_tell_releases_apart_and_one_from_itself_not(studio):
    """A release is as far from itself as chance says, another epsilon further off; pairs see more than columns."""
    one, other = (studio.shelf.by_key(name).at for name in ("people", "people-small"))
    assert shared_columns((one, other)) == ["age", "sex", "region", "income"]
    same, apart = distances(one, one), distances(one, other)
    for column in same["columns"]:
        assert column["distance"] <= 0.02
    assert max(pair["distance"] for pair in apart["pairs"]) > 3 * max(pair["distance"] for pair in same["pairs"])
    by_column = {column["name"]: column["distance"] for column in apart["columns"]}
    for pair in apart["pairs"]:
        assert pair["distance"] >= max(by_column[name] for name in pair["columns"]) - 1e-9
