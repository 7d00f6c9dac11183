"""Column types: what may be stated about a column, and what is refused with which words."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.errors import SchemaError, SpinneyError

BOUNDED = {
    sp.Real: (0.5, 2.5),
    sp.Integer: (-3, 12),
    sp.Date: (date(2020, 1, 1), date(2020, 12, 31)),
    sp.Datetime: (datetime(2020, 1, 1), datetime(2020, 12, 31)),
}
each_bounded = pytest.mark.parametrize(("kind", "ends"), BOUNDED.items(), ids=lambda v: getattr(v, "__name__", ""))


@each_bounded
def test_bounds_are_kept_as_stated(kind, ends):
    """A bounded column holds its two ends in the column's own type."""
    column = kind(*ends)
    assert (column.low, column.high) == ends
    assert type(column.low) is type(ends[0])
    assert column.has_bounds
    assert column.bounds == "stated"


@each_bounded
@pytest.mark.parametrize("missing", ["low", "high"])
def test_one_missing_bound_is_named(kind, ends, missing):
    """Leaving out one end, or both, names an end that is missing and both remedies."""
    given = {"low": ends[0], "high": ends[1]}
    del given[missing]
    with pytest.raises(SchemaError, match=rf"{kind.__name__}: {missing} is missing.*private"):
        kind(**given)
    with pytest.raises(SchemaError, match="low and high are missing"):
        kind()


@each_bounded
def test_reversed_bounds_are_refused(kind, ends):
    """low above high is a mistake, not an empty column."""
    with pytest.raises(SchemaError, match="is not below"):
        kind(ends[1], ends[0])


@each_bounded
def test_equal_bounds_fit_all_but_reals(kind, ends):
    """One possible value is a column for integers and dates; a real interval needs a length."""
    if kind is sp.Real:
        with pytest.raises(SchemaError, match="is not below"):
            kind(ends[0], ends[0])
    else:
        assert kind(ends[0], ends[0]).low == ends[0]


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan, np.float64("nan")])
@pytest.mark.parametrize("kind", [sp.Real, sp.Integer])
def test_infinite_bounds_are_refused(kind, bound):
    """An infinite bound is no bound."""
    with pytest.raises(SchemaError, match=rf"{kind.__name__}: low="):
        kind(bound, 1)


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (sp.Real, "abc"),
        (sp.Real, True),
        (sp.Real, [1]),
        (sp.Integer, 1.5),
        (sp.Integer, "7"),
        (sp.Integer, False),
        (sp.Integer, 2**61 + 1),
        (sp.Date, "tomorrow"),
        (sp.Date, 20200101),
        (sp.Date, datetime(2020, 1, 1)),
        (sp.Datetime, "noon"),
        (sp.Datetime, date(2020, 1, 1)),
        (sp.Datetime, 0),
    ],
)
def test_bounds_of_the_wrong_type_are_refused(kind, bound):
    """A bound of another type is refused, naming the end and the kind of column."""
    with pytest.raises(SchemaError, match=f"{kind.__name__}: high="):
        kind(BOUNDED[kind][0], bound)


def test_bounds_from_text_and_numpy():
    """Text dates and numpy numbers are read as what they mean."""
    assert sp.Date("2020-01-01", "2020-02-01") == sp.Date(date(2020, 1, 1), date(2020, 2, 1))
    assert sp.Datetime("2020-01-01T12:30", "2020-02-01").low == datetime(2020, 1, 1, 12, 30)
    assert sp.Integer(np.int64(1), np.uint8(5)) == sp.Integer(1, 5)
    assert type(sp.Integer(np.int64(1), 5.0).high) is int
    assert sp.Real(np.float32(0.5), 1) == sp.Real(0.5, 1.0)


@each_bounded
@pytest.mark.parametrize("source", ["private", "from-data-not-private"])
def test_bounds_that_are_still_to_come(kind, ends, source):
    """Paid-for and data-derived bounds leave the ends open until a fit fills them in."""
    column = kind(bounds=source)
    assert not column.has_bounds
    filled = column._with_bounds(*ends)
    assert (filled.low, filled.high) == ends
    # A paid-for bound is public from then on; a data-derived one stays branded.
    assert filled.bounds == ("stated" if source == "private" else source)


def test_private_and_stated_bounds_exclude_each_other():
    """bounds="private" together with numbers is a contradiction."""
    with pytest.raises(SchemaError, match="not both"):
        sp.Real(0, 1, bounds="private")


def test_unknown_source_of_bounds():
    """A misspelt source lists the three that exist."""
    with pytest.raises(SchemaError, match="'stated', 'private', 'from-data-not-private'"):
        sp.Real(bounds="automatic")


@pytest.mark.parametrize("bits", [-1, 33, 1.5, True, "8"])
def test_bits_out_of_range(bits):
    """`bits` is a whole number from 0 to 32."""
    with pytest.raises(SchemaError, match="bits="):
        sp.Real(0, 1, bits=bits)


def test_nullable_is_true_or_false():
    """A truthy text is not taken for a truth value."""
    with pytest.raises(SchemaError, match="nullable='yes'"):
        sp.Boolean(nullable="yes")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "empty"),
        ("abc", "list"),
        (5, "list"),
        (["a", 1], "all strings or all whole numbers"),
        ([1.5, 2.5], "all strings or all whole numbers"),
        ([True, False], "all strings or all whole numbers"),
        (["a", "b", "a"], "repeats"),
        ([2**70], "beyond"),
    ],
)
def test_bad_category_lists(values, message):
    """A category list is non-empty, of one type and without repeats."""
    with pytest.raises(SchemaError, match=message):
        sp.Category(values)


def test_category_lists_of_numpy():
    """Strings and whole numbers of numpy are those of Python; booleans and floats are refused with what to use."""
    assert sp.Category(np.array(["b", "a"])) == sp.Category(["b", "a"])
    assert sp.Category([np.str_("b"), "a"]) == sp.Category(["b", "a"])
    assert sp.Category(np.arange(3, dtype=np.int8)) == sp.Category([0, 1, 2])
    assert type(sp.Category(np.arange(3)).values[0]) is int
    for wrong in (np.array([True, False]), np.array([0.5, 1.5])):
        with pytest.raises(SchemaError, match=r"all whole numbers; use Boolean\(\)"):
            sp.Category(wrong)


def test_category_keeps_its_order():
    """Neighbours in the list are neighbours in the tree, so the order is part of the column."""
    assert sp.Category(["b", "a"]).values == ("b", "a")
    assert sp.Category(["b", "a"]) != sp.Category(["a", "b"])


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../etc", 5])
def test_unknown_time_zone(zone):
    """A zone that the system does not know is refused when it is stated."""
    with pytest.raises(SchemaError, match="timezone="):
        sp.Datetime("2020-01-01", "2021-01-01", timezone=zone)


@pytest.mark.parametrize(
    ("low", "high", "zone", "name"),
    [
        ("2020-01-01", "9999-12-31T23:59:59.999999", "America/New_York", "high"),  # the year 10000 in UTC
        ("0001-01-01", "2020-01-01", "Asia/Tokyo", "low"),  # the year 0 in UTC
        ("2020-01-01", "9999-12-31T23:59:59+00:00", "Asia/Tokyo", "high"),  # the year 10000 in the zone
        ("0001-01-01T00:00+00:00", "2020-01-01", "America/New_York", "low"),
    ],
)
def test_moments_beyond_the_calendar_are_refused(low, high, zone, name):
    """A bound that cannot be told in UTC and in the column's zone is refused when it is stated, not in a fit."""
    with pytest.raises(SchemaError, match=rf"{name}=.* outside the years 1 to 9999 .* a day inwards"):
        sp.Datetime(low, high, timezone=zone)


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Pacific/Kiritimati"])
def test_bounds_just_inside_the_calendar_serve(zone):
    """From the second day of the calendar to the last but one, rows are read and made in any zone."""
    column = sp.Datetime("0001-01-02", "9999-12-30T23:59:59.999999", timezone=zone)
    table = pl.DataFrame({"at": [column.low, column.high] * 50}, {"at": pl.Datetime("us", zone)})
    rows = sp.KDTreeSynthesizer(epsilon=1).fit(table, sp.Schema({"at": column})).sample(20, seed=1)
    assert rows["at"].is_between(column.low, column.high).all()


def test_offsets_need_a_zone():
    """A bound with an offset makes sense only on a column with a zone, and is then the same moment."""
    with pytest.raises(SchemaError, match="offset"):
        sp.Datetime("2020-01-01T00:00+02:00", "2021-01-01")
    column = sp.Datetime("2020-01-01T00:00+02:00", "2021-01-01", timezone="Europe/Berlin")
    assert column.low == datetime(2019, 12, 31, 22, tzinfo=UTC)
    assert column.high == datetime(2021, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("column", "value", "number"),
    [
        (sp.Real(0, 1), 0.25, 0.25),
        (sp.Integer(-5, 5), -3, -3),
        (sp.Date("1960-01-01", "1980-01-01"), date(1969, 12, 30), -2),
        (sp.Datetime("1960-01-01", "1980-01-01"), datetime(1969, 12, 31, 23, 59, 59, 999999), -1),
        (sp.Datetime("1960-01-01", "1980-01-01", timezone="Asia/Tokyo"), datetime(1970, 1, 1, 9), 0),
    ],
)
def test_physical_and_logical_undo_each_other(column, value, number):
    """Days and microseconds since 1970 stand for dates and moments, before 1970 too."""
    if getattr(column, "timezone", None):
        value = value.replace(tzinfo=ZoneInfo(column.timezone))
    assert column.physical(value) == number
    assert column.logical(number) == value


def test_logical_moments_come_back_in_their_zone():
    """A moment on a zoned column is shown in that zone, summer time included."""
    column = sp.Datetime("2020-01-01", "2020-12-31", timezone="Europe/Berlin")
    winter, summer = (column.logical(column.physical(datetime(2020, m, 1, tzinfo=UTC))) for m in (1, 7))
    assert (winter.utcoffset(), summer.utcoffset()) == (timedelta(hours=1), timedelta(hours=2))


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (sp.Real(-9, 3), "Real(low=-9.0, high=3.0)"),
        (sp.Integer(0, 120, nullable=True, bits=4), "Integer(low=0, high=120, nullable=True, bits=4)"),
        (sp.Real(bounds="private"), "Real(bounds='private')"),
        (sp.Date("2020-01-01", "2020-01-31"), "Date(low='2020-01-01', high='2020-01-31')"),
        (sp.Real(0, 1, multiple_of=0.25), "Real(low=0.0, high=1.0, multiple_of=0.25)"),
        (sp.Boolean(), "Boolean()"),
        (sp.Category(["a", "b"]), "Category(values=('a', 'b'))"),
        (sp.Category(range(100)), "Category(values=<100 values>)"),
    ],
)
def test_repr_reads_like_the_call(column, text):
    """The repr shows what differs from the defaults and stays short for long lists."""
    assert repr(column) == text


def test_columns_compare_by_value():
    """Equal statements are equal columns, and a different statement is not."""
    assert sp.Real(0, 1) == sp.Real(0.0, 1.0)
    assert sp.Real(0, 1) != sp.Integer(0, 1)
    assert sp.Boolean() != sp.Boolean(nullable=True)
    assert len({sp.Real(0, 1), sp.Real(0, 1), sp.Real(0, 2)}) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.Real(0, 1, nulable=True), "'nulable' is not an option of Real; it takes low, high, .*did you mean"),
        (lambda: sp.Category(["a"], value=1), "'value' is not an option of Category; .*did you mean 'values'"),
        (lambda: sp.Identifier(low=1), "'low' is not an option of Identifier"),
    ],
)
def test_an_unknown_option_names_those_there_are(make, message):
    """A misspelt option of a column is told with what was likely meant, and is a TypeError as Python has it."""
    with pytest.raises(SpinneyError, match=message):
        make()
    with pytest.raises(TypeError):
        make()
