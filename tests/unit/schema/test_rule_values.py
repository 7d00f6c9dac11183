"""Conditions of rules as sets of values: what may be stated, and that complements and unions are exact."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import SchemaError
from spinney.schema.rules.base import ValueSet, described, parse_condition, universe, value_set
from support.in_one_test import in_one_test

COLUMNS = {
    "whole": sp.Integer(-3, 20, nullable=True),
    "steps": sp.Integer(0, 500, multiple_of=50),
    "real": sp.Real(-2, 5, nullable=True),
    "cents": sp.Real(0, 3, multiple_of=0.05),
    "day": sp.Date("2020-01-01", "2020-12-31", nullable=True),
    "kind": sp.Category(["a", "b", "c", "d"], nullable=True),
    "truth": sp.Boolean(),
}


def found(name: str, stated) -> ValueSet:
    return value_set(COLUMNS[name], parse_condition(stated, "it"), "it")


@in_one_test(
    ("name", "stated", "ranges", "has_null"),
    [
        ("whole", 4, [(4, 4)], False),
        ("whole", (0, 14), [(0, 14)], False),
        ("whole", (None, 3), [(-3, 3)], False),
        ("whole", [(0, 3), (4, 7), None, 20], [(0, 7), (20, 20)], True),
        ("whole", {"low": 5}, [(5, 20)], False),
        ("whole", {"null": True}, [], True),
        ("whole", np.int64(3), [(3, 3)], False),
        ("whole", (10, 99), [(10, 20)], False),
        ("steps", (40, 120), [(50, 100)], False),
        ("real", (0.5, None), [(0.5, 5.0)], False),
        ("cents", (0.12, 0.31), [(0.15, 0.3)], False),
        ("day", ("2020-03-01", dt.date(2020, 3, 31)), [(18322, 18352)], False),
        ("kind", ["d", "a", None], [(0, 0), (3, 3)], True),
        ("truth", True, [(1, 1)], False),
    ],
)
def test_what_a_condition_allows(name, stated, ranges, has_null):
    """Values, ranges with both ends, of which one may be open, lists of these, and null."""
    assert found(name, stated) == ValueSet(tuple(ranges), has_null)
    assert found(name, described(parse_condition(stated, "it"))) == found(name, stated)


@in_one_test(
    ("name", "stated", "message"),
    [
        ("whole", [], "is empty"),
        ("whole", (1, 2, 3), r"a range is \(low, high\)"),
        ("whole", (None, None), "without ends"),
        ("whole", (5, 4), "5 is above 4; swap"),
        ("whole", (21, 30), r"is never \(21, 30\): it lies in -3..20"),
        ("whole", "four", "is not a number"),
        ("whole", 2.5, "whole number"),
        ("whole", [[1], 2], "holds another list"),
        ("whole", {"from": 3}, "a table is a range"),
        ("whole", object(), "is not a value"),
        ("whole", math.nan, "is not a value"),
        ("steps", 75, "in steps of 50"),
        ("real", "high", "is not a number"),
        ("day", "yesterday", "not a day"),
        ("kind", "e", "'e' is not a value"),
        ("kind", ("a", "b"), "has no ranges; list its values"),
        ("truth", 1, "use True or False"),
        ("truth", None, "never null"),
    ],
)
def test_conditions_that_make_no_sense(name, stated, message):
    with pytest.raises(SchemaError, match=message):
        found(name, stated)


def test_nothing_is_said_of_values_whose_bounds_are_to_be_found():
    column = sp.Integer(bounds="private", nullable=True)
    assert value_set(column, (None,), "it") == ValueSet(has_null=True)
    with pytest.raises(SchemaError, match="no bounds yet"):
        value_set(column, (3,), "it")


@st.composite
def sets(draw, column):
    """Sets of whole numbers or floats of a column."""
    low, high = universe(column)
    number = st.integers(low, high) if isinstance(low, int) else st.floats(low, high, allow_nan=False)
    ranges = [tuple(sorted(pair)) for pair in draw(st.lists(st.tuples(number, number), max_size=4))]
    joined = ValueSet(has_null=column.nullable and draw(st.booleans()))
    for pair in ranges:
        joined |= ValueSet((pair,))
    return joined


@pytest.mark.parametrize("name", ["whole", "real", "kind"])
@given(data=st.data())
def test_a_value_is_in_a_set_or_outside_of_it(name, data):
    """Never both, for numbers at and next to the ends of ranges too; unions and intersections are those of sets."""
    column = COLUMNS[name]
    one, other = data.draw(sets(column)), data.draw(sets(column))
    ends = [end for pair in (*one.ranges, *other.ranges) for end in pair]
    near = [step for end in ends for step in (end, np.nextafter(end, -np.inf), np.nextafter(end, np.inf), end + 1)]
    low, high = universe(column)
    numbers = np.array([n for n in [*near, low, high, (low + high) / 2] if low <= n <= high] + [np.nan])
    if isinstance(low, int):
        numbers = numbers[np.isnan(numbers) | (numbers == np.rint(numbers))]
    inside, outside = one.holds(numbers), one.outside(column).holds(numbers)
    assert (inside != outside)[~np.isnan(numbers) | column.nullable].all()
    assert ((one | other).holds(numbers) == (inside | other.holds(numbers))).all()
    assert ((one & other).holds(numbers) == (inside & other.holds(numbers))).all()
    assert one.outside(column).outside(column).holds(numbers).tolist() == inside.tolist()
