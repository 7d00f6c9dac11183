"""Conditions on what is drawn: columns cut to what is wanted, shares brought about, and clear words for nonsense."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import whole_range
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.conditions import balanced, condition, grouped
from spinney.release.frames import to_frame
from support.in_one_test import in_one_test
from support.small_forests import model_of


def short(value) -> str:
    """A test's name for a value, which may be too long to be written out."""
    try:
        shown = sorted(value, key=str) if isinstance(value, set) else value  # sets of strings have no order
        return " ".join(str(shown).split())[:60]
    except ValueError:
        return "thousands of digits"


# ------------------------------------------------------------------------------------------------------ where

WHOLE = model_of([5, 5, 10], [1, 2, 3], [0, 1, 2], null=1)
DAYS = sp.Date("2020-01-01", "2020-01-20", nullable=True)
MOMENTS = sp.Datetime("2020-01-01T00:00:00", "2020-01-01T00:00:00.000019", nullable=True)
ZONED = sp.Datetime("2020-01-01T00:00:00", "2020-01-01T00:00:00.000019", nullable=True, timezone="UTC")
INTEGER = sp.Integer(100, 119, nullable=True)
REAL = sp.Real(0, 20, nullable=True)
LIST = sp.Category([*"abcdefghijklmnopqrst"], nullable=True)
ONES = model_of([1] * 20, [1] * 20, [0] * 10 + [1] * 10, null=1)


def met(column, wanted, model=WHOLE):
    """Whole places that a condition leaves, counted from the column's low bound, and how much of each state."""
    near, cut, left = condition("v", column, model, wanted)
    is_listed = isinstance(column, (sp.Category, sp.Boolean, sp.Real))
    shift = 0 if is_listed else whole_range(near)[0] - whole_range(column)[0]
    places = [cut.draw(np.full(200, s, dtype=np.int32), np.random.default_rng(1)) for s in np.flatnonzero(left > 0)]
    found = np.concatenate(places)
    is_null = np.isnan(found)
    numbers = set(np.floor(found[~is_null] + shift).astype(int).tolist())
    return numbers | ({"null"} if is_null.any() else set()), left.tolist()


@in_one_test(
    ("column", "wanted", "places", "left"),
    [
        (INTEGER, 103, {3}, [0.2, 0, 0, 0]),
        (INTEGER, 103.0, {3}, [0.2, 0, 0, 0]),
        (INTEGER, np.int64(103), {3}, [0.2, 0, 0, 0]),
        (INTEGER, np.float32(103), {3}, [0.2, 0, 0, 0]),
        (INTEGER, np.array(103), {3}, [0.2, 0, 0, 0]),
        (INTEGER, pa.scalar(103), {3}, [0.2, 0, 0, 0]),
        (INTEGER, Decimal("103.0"), {3}, [0.2, 0, 0, 0]),
        (INTEGER, Fraction(103), {3}, [0.2, 0, 0, 0]),
        (INTEGER, (-(10**400), 10**400), set(range(20)), [1, 1, 1, 0]),
        (INTEGER, (103, float("inf")), set(range(3, 20)), [0.4, 1, 1, 0]),
        (INTEGER, (103, None), set(range(3, 20)), [0.4, 1, 1, 0]),
        (INTEGER, (None, 101), {0, 1}, [0.4, 0, 0, 0]),
        (REAL, (None, 6.0), set(range(6)), [1, 0.2, 0, 0]),
        (DAYS, ("2020-01-19", None), {18, 19}, [0, 0, 0.2, 0]),
        (INTEGER, pd.NA, {"null"}, [0, 0, 0, 1]),
        (INTEGER, (103, 106), {3, 4, 5, 6}, [0.4, 0.4, 0, 0]),
        (INTEGER, (102.5, 105.5), {3, 4, 5}, [0.4, 0.2, 0, 0]),
        (INTEGER, (-1000, 101), {0, 1}, [0.4, 0, 0, 0]),
        (INTEGER, [101, 119, 7], {1, 19}, [0.2, 0, 0.1, 0]),
        (INTEGER, {101, 102}, {1, 2}, [0.4, 0, 0, 0]),
        (INTEGER, [101, None, 119], {1, 19, "null"}, [0.2, 0, 0.1, 1]),
        (INTEGER, [101, (107, 109)], {1, 7, 8, 9}, [0.2, 0.6, 0, 0]),
        (INTEGER, [500, None], {"null"}, [0, 0, 0, 1]),
        (INTEGER, None, {"null"}, [0, 0, 0, 1]),
        (REAL, (3.0, 6.0), {3, 4, 5}, [0.4, 0.2, 0, 0]),
        (REAL, 7.0, {7}, [0, 1, 0, 0]),
        (REAL, (7, 7), {7}, [0, 1, 0, 0]),
        (DAYS, "2020-01-04", {3}, [0.2, 0, 0, 0]),
        (DAYS, date(2020, 1, 4), {3}, [0.2, 0, 0, 0]),
        (DAYS, np.datetime64("2020-01-04"), {3}, [0.2, 0, 0, 0]),
        (DAYS, np.datetime64("2020-01-04", "ns"), {3}, [0.2, 0, 0, 0]),
        (DAYS, datetime(2020, 1, 4), {3}, [0.2, 0, 0, 0]),
        (DAYS, pd.Timestamp("2020-01-04"), {3}, [0.2, 0, 0, 0]),
        (DAYS, (pd.Timestamp("2020-01-04"), np.str_("2020-01-06")), {3, 4, 5}, [0.4, 0.2, 0, 0]),
        (DAYS, pd.NaT, {"null"}, [0, 0, 0, 1]),
        (DAYS, np.datetime64("NaT"), {"null"}, [0, 0, 0, 1]),
        (DAYS, (date(2020, 1, 4), "2020-01-06"), {3, 4, 5}, [0.4, 0.2, 0, 0]),
        (DAYS, ["2020-01-02", "2020-01-20"], {1, 19}, [0.2, 0, 0.1, 0]),
        (MOMENTS, "2020-01-01T00:00:00.000003", {3}, [0.2, 0, 0, 0]),
        (MOMENTS, date(2020, 1, 1), {0}, [0.2, 0, 0, 0]),
        (MOMENTS, pd.Timestamp("2020-01-01T00:00:00.000003"), {3}, [0.2, 0, 0, 0]),
        (MOMENTS, np.datetime64("2020-01-01T00:00:00.000003", "ns"), {3}, [0.2, 0, 0, 0]),
        (ZONED, pd.Timestamp("2020-01-01T01:00:00.000003", tz="Europe/Berlin"), {3}, [0.2, 0, 0, 0]),
        (MOMENTS, (datetime(2020, 1, 1, 0, 0, 0, 3), "2020-01-01T00:00:00.000005"), {3, 4, 5}, [0.4, 0.2, 0, 0]),
        (ZONED, datetime(2020, 1, 1, 0, 0, 0, 3, tzinfo=UTC), {3}, [0.2, 0, 0, 0]),
    ],
    ids=short,
)
def test_conditions_on_numbers_and_dates(column, wanted, places, left):
    """One value, a range with both ends, a list, or null; values outside the bounds do no harm beside others."""
    found, found_left = met(column, wanted)
    assert found == places
    assert found_left == pytest.approx(left, abs=1e-6)


@pytest.mark.parametrize(
    ("column", "wanted", "places"),
    [
        (LIST, "c", {2}),
        (LIST, np.str_("c"), {2}),
        (LIST, pa.scalar("c"), {2}),
        (LIST, ["c", "t"], {2, 19}),
        (sp.Category(list(range(20)), nullable=True), np.int8(7), {7}),
        (LIST, ("c", "t"), {2, 19}),
        (LIST, {"c"}, {2}),
        (LIST, ["c", None], {2, "null"}),
        (LIST, None, {"null"}),
        (sp.Category(list(range(20)), nullable=True), 7, {7}),
        (sp.Category(list(range(20)), nullable=True), [7, 19], {7, 19}),
    ],
    ids=short,
)
def test_conditions_on_categories(column, wanted, places):
    assert met(column, wanted, ONES)[0] == places


@in_one_test(
    ("wanted", "places"),
    [
        (True, {1}),
        (False, {0}),
        (np.True_, {1}),
        (np.False_, {0}),
        ([True, False], {0, 1}),
        ([np.True_], {1}),
        (1, {1}),
        (0, {0}),
        (1.0, {1}),
        (np.int64(1), {1}),
        (np.float32(0), {0}),
        (pa.scalar(1), {1}),
        (np.array(1), {1}),
        ("true", {1}),
        ("False", {0}),
        (np.str_("TRUE"), {1}),
        ([1, 0], {0, 1}),
        (None, {"null"}),
        (pd.NA, {"null"}),
    ],
)
def test_conditions_on_truth(wanted, places):
    model = model_of([1, 1], [3, 5], [0, 1], null=1)
    assert met(sp.Boolean(nullable=True), wanted, model)[0] == places


@in_one_test(
    ("column", "wanted", "message"),
    [
        (INTEGER, 99, "is never 99 in this release; ask for values within its bounds"),
        (INTEGER, (200, 300), "is never"),
        (INTEGER, (105, 103), "105 is above 103; swap the two"),
        (INTEGER, (None, None), "a range without ends says nothing; leave the column out"),
        (INTEGER, (200, None), r"is never \(200, None\)"),
        (INTEGER, (pd.NA, 103), "NaN cannot be a bound"),
        (DAYS, (pd.NaT, "2020-01-04"), "is of type date, which nan is not"),
        (INTEGER, (1, 2, 3), r"takes a range as \(low, high\)"),
        (INTEGER, 103.5, "holds whole numbers, and 103.5 is not a whole number"),
        (INTEGER, "103", "is of type integer, which '103' is not; write numbers without quotes"),
        (INTEGER, True, "is of type integer, which True is not"),
        (INTEGER, date(2020, 1, 4), "is of type integer, which"),
        (INTEGER, [], "is never"),
        (INTEGER, [103.5], "holds whole numbers, and 103.5 is not a whole number"),
        (INTEGER, float("inf"), "holds whole numbers, and inf is not a whole number"),
        (INTEGER, float("nan"), "holds whole numbers, and nan is not a whole number"),
        (INTEGER, [500], "is never"),
        (INTEGER, (103.2, 103.4), "is never"),
        (INTEGER, 10**400, r"is never 10+\.\.\. in this release"),
        (INTEGER, -(10**5000), "is never a number of thousands of digits"),
        (INTEGER, (103, float("nan")), "NaN cannot be a bound"),
        (INTEGER, np.array([103, 104]), r"not a ndarray; write list\(...\)"),
        (INTEGER, pd.Series([103]), r"not a Series; write list\(...\)"),
        (INTEGER, {103: 1}, r"not a dict; write list\(...\)"),
        (INTEGER, np.True_, "is of type integer, which True is not"),
        (INTEGER, pd.Timestamp("2020-01-04"), "is of type integer, which"),
        (sp.Integer(100, 119), pd.NA, "is never null"),
        (REAL, 10**400, "is never 10+"),
        (REAL, -(10**400), "is never -10+"),
        (DAYS, datetime(2020, 1, 4, 12), "is not a day like"),
        (DAYS, pd.Timestamp("2020-01-04", tz="UTC"), "is not a day like"),
        (DAYS, np.int64(3), "is of type date, which 3 is not"),
        (DAYS, pd.Series(["2020-01-04"]), "not a Series"),
        (MOMENTS, pd.Timestamp("2020-01-01T00:00:00.000003004"), "finer than a microsecond"),
        (MOMENTS, np.datetime64("2020-01-01T00:00:00.000003004"), "finer than a microsecond"),
        (LIST, pd.Series(["a"]), "not a Series"),
        (LIST, pl.Series(["a"]), "not a Series"),
        (LIST, [["a"]], r"\['a'\] is not a value"),
        (LIST, b"a", "b'a' is not a value"),
        (sp.Boolean(), np.int64(2), "2 is not a value of column 'v'; use True or False"),
        (sp.Boolean(), Decimal("sNaN"), "is not a value"),
        (sp.Boolean(), pd.Timestamp("2020-01-04"), "is not a value"),
        (sp.Integer(100, 119), None, "is never null"),
        (
            REAL,
            [1.0, 2.0],
            r"is real and does not take a list of values; .* range \(low, high\): \(1.0, 2.0\)",
        ),
        (REAL, 21.0, "is never 21.0"),
        (REAL, (5.0, 1.0), "5.0 is above 1.0"),
        (REAL, float("nan"), "is never nan"),
        (DAYS, 3, "is of type date, which 3 is not"),
        (DAYS, "yesterday", "column 'v': "),
        (DAYS, "2021-01-01", "is never"),
        (MOMENTS, "soon", "column 'v': "),
        (LIST, "z", "'z' is not a value of column 'v'"),
        (LIST, ["a", "z"], "'z' is not a value"),
        (LIST, [], "is never"),
        (LIST, 1, "1 is not a value"),
        (sp.Category(list(range(20))), True, "True is not a value"),
        (sp.Boolean(), 0.5, "0.5 is not a value"),
        (sp.Boolean(), "yes", "'yes' is not a value of column 'v'; use True or False"),
        (sp.Category(["red", "green"]), "Red", "'Red' is not a value of column 'v'; did you mean 'red'"),
        (sp.Category(["1", "2"]), 1, "1 is not a value of column 'v'; did you mean '1'"),
        (sp.Category([1, 2]), "1", "'1' is not a value of column 'v'; did you mean 1"),
        (REAL, Decimal("sNaN"), "is never"),
    ],
    ids=short,
)
def test_conditions_that_make_no_sense(column, wanted, message):
    """The column, what was asked for, and the remedy."""
    model = ONES if isinstance(column, (sp.Category, sp.Boolean)) else WHOLE
    with pytest.raises(ParameterError, match=message) as caught:
        condition("v", column, model, wanted)
    assert "'v'" in str(caught.value)


# ------------------------------------------------------------------------------------------------------ far numbers


def even_model(n_values) -> ColumnModel:
    """Leaves of even length, ends rounded as floats are."""
    edges = [n_values * k // 7 for k in range(8)]
    states = np.array([0, 0, 1, 1, 1, 2, 2], dtype=np.int32)
    length = np.array([stop - low for low, stop in pairwise(edges)], dtype=np.float64)
    return ColumnModel(
        np.array(edges[:-1], dtype=np.float64), length, np.zeros(7, dtype=np.bool_), np.ones(7), states, 3
    )


FAR = {
    "far and short": sp.Integer(10**18, 10**18 + 99),
    "as wide as can be": sp.Integer(-(2**61), 2**61),
    "fifties": sp.Integer(10**18, 10**18 + 5000, multiple_of=50),
    "sevens": sp.Integer(-(2**60), 2**60, multiple_of=7),
    "moments": sp.Datetime("2020-01-01T03:04:05.000678", "2336-11-20T20:50:45.000678"),
    "zoned": sp.Datetime("1950-01-01", "2450-01-01", timezone="Europe/Berlin"),
}


def values_under(column, wanted, seed=0):
    """Physical numbers of rows drawn under a condition, as a table shows them."""
    low, high = whole_range(column)
    near, cut, left = condition("v", column, even_model(high - low + 1), wanted)
    states = np.random.default_rng(seed).choice(np.flatnonzero(left > 0), 300).astype(np.int32)
    table = to_frame(cut.draw(states, np.random.default_rng(seed))[None], sp.Schema({"v": near}), "pyarrow")
    return [column.physical(value) for value in table["v"].to_pylist()]


@pytest.mark.parametrize("column", FAR.values(), ids=FAR)
def test_far_numbers_are_exact(column):
    """One value, a short range and a list give those and no others, all of them, wherever in the column they lie."""
    step = getattr(column, "multiple_of", None) or 1
    ends = column._multiples if step > 1 else (column.low, column.high)
    first, last = (column.physical(end) for end in ends)
    for number in (first, first + step, first + (last - first) // step // 3 * step, last - step, last):
        assert set(values_under(column, column.logical(number))) == {number}
        near = [number + k * step for k in (-2, -1, 0, 1, 2) if first <= number + k * step <= last]
        assert set(values_under(column, (column.logical(near[0]), column.logical(near[-1])))) == set(near)
        listed = [column.logical(near[0]), column.logical(near[-1])]
        assert set(values_under(column, listed)) == {near[0], near[-1]}


@pytest.mark.parametrize("column", FAR.values(), ids=FAR)
def test_wide_ranges_keep_to_their_ends(column):
    first, last = (column.physical(end) for end in (column.low, column.high))
    drawn = values_under(column, (column.logical(first + 1), column.logical(last - 1)))
    assert first < min(drawn) < max(drawn) < last


def test_values_too_far_apart_to_list():
    """Places of floats cannot tell both from their neighbours, so the list is refused, and each value is not."""
    column = FAR["as wide as can be"]
    with pytest.raises(ParameterError, match=r"column 'v': the values are 2\^53 or more apart; ask for one at a time"):
        values_under(column, [-(2**60) + 1, 2**60 + 1])
    assert set(values_under(column, [2**60 + 1])) == {2**60 + 1}


def test_an_hour_that_comes_twice():
    """A range within the hour in which clocks go back is read by the moments, not by the faces of the clocks."""
    column = sp.Datetime("2020-10-25T00:00:00", "2020-10-25T05:00:00", timezone="Europe/Berlin")
    low = column.parse("2020-10-25T02:30:00+02:00", "low")
    high = column.parse("2020-10-25T02:10:00+01:00", "high")
    assert high - low == timedelta(minutes=40)
    drawn = values_under(column, (low, high))
    assert column.physical(low) <= min(drawn) < max(drawn) <= column.physical(high)


# ------------------------------------------------------------------------------------------------------ balance


def balanced_alone(column, model, asked, law):
    """One column of a table that has no other, balanced."""
    schema = sp.Schema({"v": column})
    return balanced("v", grouped("v", asked, schema, schema._as_drawn, {"v": model}), np.array(law))


def shares_of(column, model, asked, law):
    """The shares of all leaves once a column is balanced."""
    cut, evidence = balanced_alone(column, model, asked, law)
    states = np.array(law) * evidence
    return (states / states.sum())[cut.states] * cut.inside()


def test_balanced_columns_have_the_shares_that_were_asked_for():
    """Whatever the law of the states was, also where several values share a state."""
    column = sp.Category([*"abcd"])
    model = model_of([1] * 4, [5, 1, 3, 3], [0, 0, 1, 1])
    wanted = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    for law in ([0.5, 0.5], [0.99, 0.01]):
        assert shares_of(column, model, wanted, law) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert shares_of(column, model, {"b": 0.5, "c": 0.5}, [0.5, 0.5]) == pytest.approx([0, 0.5, 0.5, 0])
    assert shares_of(column, model, {"d": 1}, [0.5, 0.5]) == pytest.approx([0, 0, 0, 1])


def test_a_share_of_the_second_of_two():
    """True, or the second category; nulls are not drawn."""
    model = model_of([1, 1], [9, 1], [0, 1], null=4)
    law = [0.6, 0.1, 0.3]
    assert shares_of(sp.Boolean(nullable=True), model, 0.25, law) == pytest.approx([0.75, 0.25, 0])
    assert shares_of(sp.Category(["no", "yes"], nullable=True), model, 0.5, law) == pytest.approx([0.5, 0.5, 0])
    for asked in (
        {True: 0.4, False: 0.6},
        {1: 0.4, 0: 0.6},
        {np.int64(1): 0.4, np.False_: 0.6},
        {"true": np.float32(0.4), "False": Fraction(3, 5)},
        Decimal("0.4"),
        np.float64(0.4),
    ):
        assert shares_of(sp.Boolean(nullable=True), model, asked, law) == pytest.approx([0.6, 0.4, 0]), asked


@in_one_test(
    ("column", "shares", "message"),
    [
        (sp.Integer(0, 3), 0.5, "balance categories or booleans"),
        (sp.Category([*"abcd"]), 0.5, "has 4 values; give a mapping with a share for each value"),
        (sp.Category([*"abcd"]), "half", "takes a share or a mapping"),
        (sp.Category([*"abcd"]), {"z": 1.0}, "'z' is not a value"),
        (sp.Category([*"abcd"]), {"a": 0.5}, "add up to 0.5, not to 1"),
        (sp.Category([*"abcd"]), {"a": 1.5, "b": -0.5}, "1.5 is not a share between 0 and 1"),
        (sp.Boolean(), 1.5, "balance: 1.5 is not a share"),
        (sp.Boolean(), -0.5, "balance: -0.5 is not a share"),
        (sp.Boolean(), Fraction(3, 2), "balance: 1.5 is not a share"),
        (sp.Boolean(), 10**400, "balance: 10+"),
        (sp.Boolean(), float("nan"), "balance: nan is not a share"),
        (sp.Category([*"abcd"]), {"a": 10**400}, "balance: 10+"),
        (sp.Category([*"abcd"]), {"a": True}, "True is not a share"),
        (sp.Category([*"abcd"]), {"a": "1"}, "'1' is not a share"),
        (sp.Category([*"abcd"]), {"a": float("nan"), "b": 1}, "nan is not a share"),
        (sp.Category([*"abcd"]), {}, "add up to 0"),
        (sp.Category([*"abcd"]), {"A": 1.0}, "'A' is not a value of column 'v'; did you mean 'a'"),
        (sp.Category([1, 2, 3, 4]), {True: 1.0}, "True is not a value of column 'v'"),
        (sp.Boolean(), {2: 1.0}, "2 is not a value of column 'v'; use True or False"),
        (sp.Boolean(), {"true": 0.5, True: 0.5}, "True of column 'v' is given two shares; give one"),
        (sp.Boolean(), Decimal("sNaN"), "is not a share"),
    ],
    ids=short,
)
def test_shares_that_make_no_sense(column, shares, message):
    model = model_of([1] * 4, [5, 1, 3, 3], [0, 1, 2, 3])
    with pytest.raises(ParameterError, match=message) as caught:
        balanced_alone(column, model, shares, np.full(4, 0.25))
    assert "'v'" in str(caught.value)


def test_what_never_occurs_cannot_be_balanced():
    model = model_of([1, 1], [9, 0], [0, 1])
    with pytest.raises(ParameterError, match="never occurs in the model; leave it out"):
        balanced_alone(sp.Boolean(), model, 0.5, [1.0, 0.0])


# ------------------------------------------------------------------------------------------------------ whole rows


@pytest.fixture(scope="module")
def forest():
    """Numbers, categories, truth and days that go together."""
    rng = np.random.default_rng(0)
    n = 3000
    kind = rng.integers(0, 3, n)
    frame = pl.DataFrame(
        {
            "kind": np.array([*"abc"])[kind],
            "size": 10.0 * kind + rng.random(n),
            "rank": [None if r < 0.1 else int(k) for k, r in zip(kind, rng.random(n), strict=True)],
            "flag": kind == 2,
        }
    )
    schema = sp.Schema(
        {
            "kind": sp.Category([*"abc"]),
            "size": sp.Real(0, 30),
            "rank": sp.Integer(0, 4, nullable=True),
            "flag": sp.Boolean(),
        }
    )
    return sp.ForestSynthesizer(5).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(2))


def test_conditions_reach_the_other_columns(forest):
    """Given a size, kind and flag are those that go with it; given two conditions, both are met."""
    rows = forest.sample(500, seed=1, where={"size": (20, 30)})
    assert (rows["size"] >= 20).all()
    assert (rows["kind"] == "c").mean() > 0.9
    assert rows["flag"].mean() > 0.9
    rows = forest.sample(500, seed=1, where={"kind": ["a", "b"], "rank": None})
    assert set(rows["kind"]) == {"a", "b"}
    assert rows["rank"].null_count() == 500
    assert len(forest.sample(0, where={"kind": "a"})) == 0


def test_balance_and_condition_together(forest):
    rows = forest.sample(1000, seed=1, balance={"flag": 0.5}, where={"rank": (0, 2)})
    assert abs(rows["flag"].mean() - 0.5) < 0.01
    assert rows["rank"].is_between(0, 2).all()
    two = forest.sample(1000, seed=1, balance={"flag": 0.5, "kind": {"a": 0.25, "b": 0.25, "c": 0.5}})
    assert abs((two["kind"] == "c").mean() - 0.5) < 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": ["kind"]}, "where is not a mapping"),
        ({"balance": 0.5}, "balance is not a mapping"),
        ({"where": {"colour": "red"}}, "where: 'colour' is not a column"),
        ({"balance": {"colour": 0.5}}, "balance: 'colour' is not a column"),
        ({"where": {"flag": True}, "balance": {"flag": 0.5}}, "'flag' is in where and in balance"),
        (
            {"placement": "centre"},
            r"sample\(\) has no option 'placement' .* are .*, like, .*where, balance",
        ),
        ({"wher": {"kind": "a"}}, "has no option 'wher' .*; did you mean 'where'"),
        ({"where": {"Kind": "a"}}, "where: 'Kind' is not a column that the model knows; did you mean 'kind'"),
        ({"balance": {"flags": 0.5}}, "balance: 'flags' is not a column .*; did you mean 'flag'"),
        ({"where": {"kind": "z"}}, "'z' is not a value of column 'kind'"),
        ({"where": {"kind": pd.Series(["a"])}}, "column 'kind' takes a value, .* not a Series"),
        ({"n_rows": 2**70}, r"n_rows is 2\^70 or more, and above 2\^40 nothing is drawn at once; ask for fewer"),
        ({"n_rows": 10**5000}, "ask for fewer rows"),
    ],
    ids=short,
)
def test_options_that_make_no_sense(forest, options, message):
    with pytest.raises(ParameterError, match=message):
        forest.sample(**{"n_rows": 5} | options)


def test_conditions_leave_the_release_alone(forest):
    """The next sample without conditions is as before."""
    before = forest.sample(50, seed=1)
    forest.sample(50, seed=1, where={"kind": "a"}, balance={"flag": 0.5})
    assert forest.sample(50, seed=1).equals(before)


def test_a_value_is_found_where_a_table_in_single_precision_has_it():
    """1.4 is met by the pile at the float32 nearest to it, and comes out as 1.4."""
    pile = float(np.float32(1.4))
    model = ColumnModel(
        np.array([0.0, pile, 1.5]),
        np.array([1.0, 0.0, 18.5]),
        np.zeros(3, dtype=np.bool_),
        np.array([1.0, 5.0, 3.0]),
        np.arange(3, dtype=np.int32),
        3,
    )
    _, cut, left = condition("v", sp.Real(0, 20), model, 1.4)
    assert left.tolist() == [0, 1, 0]
    assert (cut.draw(np.full(5, 1, dtype=np.int32), np.random.default_rng(1)) == 1.4).all()


@pytest.mark.parametrize("place", [1e300, -1e300, 1e-300])
def test_numbers_beyond_single_precision_are_told_apart(place):
    """Numbers that single precision calls infinite, or 0, are not the same."""
    point, left = model_of([0], [1], [0], low=2 * place).restrict_to_point(place)
    assert left.tolist() == [0]
    assert point.weights.tolist() == [0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_list_with_null_means_the_same_to_every_kind_of_release():
    """Trees and forests count the rows that have one of the values or none; forests draw them, too."""
    table = pd.DataFrame({"state": ["CA"] * 500 + ["NV"] * 300 + [None] * 200, "age": [*range(50)] * 20})
    schema = sp.Schema({"state": sp.Category(["CA", "NV"], nullable=True), "age": sp.Integer(0, 49)})
    where = {"state": ["CA", None]}
    for kind in (sp.KDTreeSynthesizer, sp.ForestSynthesizer):
        release = kind(epsilon=10).fit(table, schema).release_
        assert release.count(where=where).estimate == pytest.approx(700, abs=30)
        assert release.count(where={"age": [3, (10, 19)]}).estimate == pytest.approx(220, abs=40)
    drawn = release.sample(200, where=where, seed=1)["state"]
    assert set(drawn.dropna()) == {"CA"}
    assert drawn.isna().mean() == pytest.approx(2 / 7, abs=0.1)
