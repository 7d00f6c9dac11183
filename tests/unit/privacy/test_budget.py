"""Budgets: exact numbers from whatever people type, and clear words for what is no budget."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney.privacy.budget import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
    Unit,
    parse_delta,
    parse_epsilon,
    parse_fraction,
    parse_length,
    parse_share,
)
from support.in_one_test import in_one_test

NOT_NUMBERS = [
    None,
    True,
    False,
    np.True_,
    "",
    "abc",
    "nan",
    "inf",
    "1/0",
    "0.1.2",
    float("nan"),
    float("inf"),
    np.float32("nan"),
    Decimal("NaN"),
    Decimal("Infinity"),
    1j,
    b"1",
    [1],
    np.array([1, 2]),
    np.array([1]),
    np.datetime64("2020-01-01"),
]


@pytest.mark.parametrize(
    "value",
    ["0.1", " 0.1 ", "1/10", "1e-1", 0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1)],
    ids=repr,
)
def test_one_tenth_is_one_tenth(value):
    """Every way of writing 0.1 is the fraction 1/10, not the nearest binary number."""
    assert parse_epsilon(value) == Fraction(1, 10)


@pytest.mark.parametrize("value", [2, "2", 2.0, np.int64(2), np.uint8(2), np.array(2), Fraction(2)], ids=repr)
def test_whole_numbers(value):
    """Integers of any make are themselves."""
    assert parse_epsilon(value) == 2


@given(st.floats(min_value=1e-6, max_value=1e5))
def test_floats_are_read_as_typed(value):
    """A float means its shortest decimal form."""
    assert parse_epsilon(value) == Fraction(repr(value))


@in_one_test("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_number(value):
    """Anything else is refused under the argument's name."""
    with pytest.raises(ParameterError, match="budget="):
        parse_fraction(value, "budget")


@pytest.mark.parametrize("value", ["1e999999999", "1e-999999999", Decimal("1e99999999")], ids=repr)
def test_absurd_exponents_are_refused_at_once(value):
    """A slip in an exponent neither hangs nor fills the memory."""
    with pytest.raises(ParameterError, match="epsilon="):
        parse_epsilon(value)


@pytest.mark.parametrize("value", [0, "0", 0.0, -1, "-0.1", -1e-9])
def test_budgets_are_positive(value):
    """Zero and less are no budget."""
    with pytest.raises(ParameterError, match=r"epsilon=.* is not positive"):
        parse_epsilon(value)


def test_budgets_have_a_range():
    """Budgets that protect nobody, and those under which nothing survives, are refused; the ends are allowed."""
    assert parse_epsilon(SMALLEST_EPSILON) == SMALLEST_EPSILON
    assert parse_epsilon(LARGEST_EPSILON) == LARGEST_EPSILON
    for value in (SMALLEST_EPSILON / 2, LARGEST_EPSILON + 1):
        with pytest.raises(ParameterError, match="outside"):
            parse_epsilon(value)


@pytest.mark.parametrize("value", [0, 1, "1", -0.5, 1.5])
def test_shares_lie_strictly_between_0_and_1(value):
    """A share of nothing or of everything leaves a part without noise or without budget."""
    with pytest.raises(ParameterError, match=r"tree_share=.* strictly between"):
        parse_share(value, "tree_share")
    assert parse_share("0.4", "tree_share") == Fraction(2, 5)


@pytest.mark.parametrize("value", ["1e-6", 1e-6, "1/1000000", Decimal("0.000001"), Fraction(1, 10**6)], ids=repr)
def test_delta_is_read_exactly(value):
    """A millionth is a millionth, however it is written."""
    assert parse_delta(value) == Fraction(1, 10**6)


def test_delta_starts_at_zero_and_ends_below_one():
    """0 is pure; from 1 on nothing is promised, and below 0 nothing is meant. The name is the caller's."""
    assert parse_delta(0) == parse_delta("0.0") == 0
    assert parse_delta("0.999") == Fraction(999, 1000)
    for value in (1, "1", 1.0, "1.5", 5):
        with pytest.raises(ParameterError, match=r"delta=.* guarantees nothing"):
            parse_delta(value)
    for value in (-1, "-1e-9", -0.5):
        with pytest.raises(ParameterError, match=r"share=.* is negative; 0 means pure"):
            parse_delta(value, "share")
    for value in NOT_NUMBERS:
        with pytest.raises(ParameterError, match="delta="):
            parse_delta(value)


def test_lengths_are_positive_floats():
    """Bin widths are ordinary floats, however they are written."""
    assert parse_length("0.1", "bin_width") == 0.1
    for value in (0, -1, "x", "1e400", float("inf")):
        with pytest.raises(ParameterError, match="bin_width="):
            parse_length(value, "bin_width")


def test_units():
    """A replaced row changes two counts and keeps n; an added or removed row changes one and does not."""
    assert (Unit.parse("replace-one").factor, Unit.parse("replace-one").n_is_public) == (2, True)
    assert (Unit.parse("add-remove").factor, Unit.parse("add-remove").n_is_public) == (1, False)
    assert Unit.parse(Unit.ADD_REMOVE) is Unit.ADD_REMOVE
    for value in ("replace", None, 2):
        with pytest.raises(ParameterError, match=r"unit=.* is not 'replace-one' or 'add-remove'"):
            Unit.parse(value)
