"""Rulers: every range is cut at the roundest place inside it, whatever its bounds, and never too deep."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.grid.ruler import Ruler, calendar_ruler, number_ruler
from support.in_one_test import in_one_test
from support.slow_rulers import number_cuts


def one_cut(ruler: Ruler, low: int, high: int) -> int:
    """Where the range of multiples low..high-1 is cut, as a multiple."""
    return int(ruler.cuts(np.array([low + ruler.zero]), np.array([high + ruler.zero]))[0]) - ruler.zero


@in_one_test(
    ("low", "high", "cut"),
    [
        (-300, 500, 0),
        (-1, 1, 0),
        (0, 10_000_000, 1000),
        (0, 1000, 10),
        (1, 1000, 10),
        (-10_000, 0, -100),
        (-1000, -1, -10),
        (100, 1000, 500),
        (1000, 2000, 1500),
        (30, 40, 35),
        (30, 35, 32),
        (0, 2, 1),
        (7, 9, 8),
        (99_998, 100_001, 100_000),
    ],
)
def test_numbers_are_cut_at_zero_at_decades_and_at_round_numbers(low: int, high: int, cut: int) -> None:
    """Signs first, then powers of ten, then the fewest digits in the middle half."""
    assert one_cut(number_ruler(20_000_001, 10_000_000), low, high) == cut


def test_a_unit_of_its_own_is_cut_at_its_round_multiples() -> None:
    """Multiples of 25 are cut at hundreds, multiples of 7 at themselves."""
    quarters = number_ruler(4001, 0, mantissa=25)
    assert one_cut(quarters, 0, 4001) * 25 == pytest.approx(1000)
    assert one_cut(quarters, 10, 20) * 25 % 100 == 0
    assert one_cut(number_ruler(100, 0, mantissa=7), 3, 6) in (4, 5)


@given(data=st.data(), zero=st.integers(-(10**6), 2 * 10**9), n_cells=st.integers(2, 2**32))
def test_a_cut_lies_inside_and_depth_is_bounded(data: st.DataObject, zero: int, n_cells: int) -> None:
    """Going down from the whole axis, always by the larger or always by a drawn child, ends before `max_levels`."""
    ruler = number_ruler(n_cells, zero, data.draw(st.sampled_from([1, 2, 5, 25, 3, 7])))
    low, high, depth = 0, n_cells, 0
    while high - low > 1:
        cut = int(ruler.cuts(np.array([low]), np.array([high]))[0])
        assert low < cut < high
        low, high = data.draw(st.sampled_from([(low, cut), (cut, high)]))
        depth += 1
    assert depth <= 3 * ruler.max_levels


@given(start=st.integers(0, 10**9), length=st.integers(2, 10**6))
def test_no_rounder_number_lies_in_the_middle_half(start: int, length: int) -> None:
    """Against a plain search: of all numbers in the middle half, none has fewer digits, by 1, 2 and 5."""
    low, high = start + 10**9, start + 10**9 + length  # too far from 0 to span decades
    found = one_cut(number_ruler(2**32, 0), low, high)
    reach = max(length // 4, 1)

    def rank(number: int) -> int:
        return max(
            step for power in range(11) for step in (10**power, 2 * 10**power, 5 * 10**power) if number % step == 0
        )

    window = range(low + reach, high - reach + 1)
    assert found in window
    step = rank(found)
    larger = [s for power in range(11) for s in (10**power, 2 * 10**power, 5 * 10**power) if s > step]
    assert not any(-(-window[0] // s) * s <= window[-1] for s in larger)


def test_dates_are_cut_at_years_and_months() -> None:
    """A century of days is cut at a year's first day, a year at a month's, a month at some day."""
    origin = date(1970, 1, 1).toordinal()
    days = [date.fromordinal(origin + k) for k in range(36_525)]
    years = np.array([k for k, day in enumerate(days) if (day.month, day.day) == (1, 1)])
    months = np.array([k for k, day in enumerate(days) if day.day == 1])
    ruler = calendar_ruler(len(days), 0, [7], [years, months])
    cut = days[one_cut(ruler, 0, len(days))]
    assert (cut.month, cut.day) == (1, 1)
    assert days[one_cut(ruler, int(years[3]), int(years[4]))].day == 1
    low = int(months[5])
    assert low < one_cut(ruler, low, low + 20) < low + 20


def test_times_are_cut_at_hours_and_minutes() -> None:
    """Seconds of a day: noon, then whole hours, then quarters of an hour, then minutes."""
    ruler = calendar_ruler(86_400, 0, [43_200, 21_600, 3600, 1800, 900, 300, 60, 30, 10])
    assert one_cut(ruler, 0, 86_400) == 43_200
    assert one_cut(ruler, 8 * 3600, 18 * 3600) % 3600 == 0
    assert one_cut(ruler, 8 * 3600, 9 * 3600) == 8 * 3600 + 1800
    assert one_cut(ruler, 8 * 3600, 8 * 3600 + 100) % 10 == 0


def test_a_pile_at_a_round_number_is_the_first_cell_of_a_range() -> None:
    """Whatever range is left around a round number, it begins there, as soon as it is short enough."""
    ruler = number_ruler(10**7 + 1, 0)
    low, high = 0, 10**7 + 1
    while high - low > 5000:
        cut = int(ruler.cuts(np.array([low]), np.array([high]))[0])
        low, high = (cut, high) if cut <= 50_000 else (low, cut)
    assert low == 50_000
    assert math.log2(10**7) < ruler.max_levels


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    begin=st.integers(-400, 400),
    length=st.integers(2, 600),
    zero=st.integers(-50, 50),
    unit=st.sampled_from([1, 2, 5, 25, 3, 7]),
)
def test_cuts_are_those_of_the_definition(begin: int, length: int, zero: int, unit: int) -> None:
    """Against the slow twin, which looks at every number of a range."""
    ruler = number_ruler(2000, zero, unit)
    low, high = begin + zero, begin + zero + length
    assert int(ruler.cuts(np.array([low]), np.array([high]))[0]) == number_cuts(zero, Fraction(unit))(low, high)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(number=st.integers(-(10**10), 10**10), length=st.integers(10**4, 10**9))
def test_single_precision_is_allowed_for(number: int, length: int) -> None:
    """A cut lies so far below its number as a float of 32 bits may miss it, and no further; piles reach as far."""
    exact, single = number_ruler(2**34, 0), number_ruler(2**34, 0, is_single=True)
    low, high = number * np.ones(1, dtype=np.int64), (number + length) * np.ones(1, dtype=np.int64)
    cut = single.cuts(low, high)
    assert low[0] < cut[0] < high[0]
    stop = single.pile_stops(cut, cut + 10**12)
    place = int(single.roundest(cut, stop)[0])
    assert exact.pile_stops(cut, cut + 10**12)[0] == cut[0] + 1
    missed = math.ceil(abs(float(np.float32(place)) - place) - 0.5)
    if cut[0] < place:  # the cut was moved
        assert cut[0] <= place - missed
        assert place + missed < stop[0]
        assert place - cut[0] <= abs(place) / 2**24 + 1


def test_cuts_of_huge_numbers_do_not_overflow() -> None:
    """Around 2^61, the largest whole numbers there are."""
    for zero in (-(2**61), 2**61):
        ruler = number_ruler(10**6, zero)
        low, high = 0, 10**6
        while high - low > 1:
            cut = int(ruler.cuts(np.array([low]), np.array([high]))[0])
            assert low < cut < high
            low, high = (low, cut) if cut > 123_456 else (cut, high)
