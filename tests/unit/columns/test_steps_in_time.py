"""`multiple_of` of dates, datetimes and times: whole weeks, hours and quarters come back as such."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import whole_range
from spinney.errors import SchemaError
from spinney.tables.frames import open_table

SYNTHESIZERS = pytest.mark.parametrize("synthesizer", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
FRAMES = pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
HOURS = [datetime(2021, 3, 1) + timedelta(hours=int(h)) for h in np.random.default_rng(5).integers(0, 4000, 2000)]


def held(values: list, frame: str, kind: pa.DataType):
    """The values as a column of a frame."""
    table = pa.table({"t": pa.array(values, kind)})
    return {"pyarrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}[frame]()


def drawn(model, n_rows: int = 600) -> list:
    return model.sample(n_rows, seed=3, frame="pyarrow")["t"].to_pylist()


@SYNTHESIZERS
@FRAMES
@pytest.mark.parametrize("bounds", [{"low": "2021-01-01", "high": "2021-12-31"}, {"bounds": "private"}])
def test_whole_hours_come_back_whole(synthesizer, frame, bounds):
    """A table of whole hours gives whole hours; without the step hardly any row is on the hour."""
    table = held(HOURS, frame, pa.timestamp("us"))
    model = synthesizer("10").fit(table, sp.Schema({"t": sp.Datetime(multiple_of=3600, **bounds)}))
    on_the_hour = [one.minute == one.second == one.microsecond == 0 for one in drawn(model)]
    assert all(on_the_hour)
    without = synthesizer("10").fit(table, sp.Schema({"t": sp.Datetime(**bounds)}))
    assert sum(one.minute == one.second == one.microsecond == 0 for one in drawn(without)) < 60


@SYNTHESIZERS
@FRAMES
@pytest.mark.parametrize("bounds", [{"low": "2020-01-06", "high": "2021-12-31"}, {"bounds": "private"}])
def test_mondays_come_back_as_mondays(synthesizer, frame, bounds):
    """Weeks are counted from the low bound, and from a Monday where that is to be found."""
    rng = np.random.default_rng(5)
    days = [date(2020, 1, 6) + timedelta(weeks=int(week)) for week in rng.integers(0, 100, 2000)]
    schema = sp.Schema({"t": sp.Date(multiple_of=7, **bounds)})
    model = synthesizer("10").fit(held(days, frame, pa.date32()), schema)
    assert {one.weekday() for one in drawn(model)} == {0}


def test_other_days_of_the_week():
    """The low bound says which day it is; so does the smallest day, of bounds that are read off the data."""
    days = pa.table({"t": pa.array([date(2020, 1, 5) + timedelta(weeks=week) for week in range(90)] * 9)})
    for column in (
        sp.Date("2020-01-05", "2021-12-31", multiple_of=7),
        sp.Date(bounds="from-data-not-private", multiple_of=7),
    ):
        model = sp.KDTreeSynthesizer("10").fit(days, sp.Schema({"t": column}))
        assert {one.weekday() for one in drawn(model)} == {6}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns"])
def test_hours_are_whole_in_the_zone(zone):
    """Also where a zone is half or a quarter of an hour off."""
    here = ZoneInfo(zone)
    moments = [moment.replace(tzinfo=here).astimezone(UTC) for moment in HOURS]
    column = sp.Datetime("2021-01-01", "2021-12-31", timezone=zone, multiple_of=3600)
    model = sp.KDTreeSynthesizer("10").fit(held(moments, "pyarrow", pa.timestamp("us", zone)), sp.Schema({"t": column}))
    assert all(one.astimezone(here).minute == 0 for one in drawn(model))


def test_cells_lie_around_steps():
    """What rounds to one value stays in one cell, and the range holds all that rounds to a value."""
    column = sp.Datetime("2021-01-01", "2021-01-02", multiple_of=3600)
    first, last = whole_range(column)
    assert (last - first + 1) % 3_600_000_000 == 0
    assert column._multiples == (datetime(2021, 1, 1), datetime(2021, 1, 2))
    assert sp.Datetime("2021-01-01T00:30", "2021-01-01T02:30", multiple_of=3600)._multiples == (
        datetime(2021, 1, 1, 1),
        datetime(2021, 1, 1, 2),
    )


def test_steps_that_are_none():
    """Days are whole; seconds are whole microseconds; some value lies in the bounds."""
    for step in (0, -7, 1.5, "week", True, 10**9):
        with pytest.raises(SchemaError, match="Date: multiple_of="):
            sp.Date("2020-01-01", "2020-12-31", multiple_of=step)
    for step in (0, -1, Decimal("1e-7"), "hour", float("inf")):
        with pytest.raises(SchemaError, match="Datetime: multiple_of="):
            sp.Datetime("2020-01-01", "2020-12-31", multiple_of=step)
    with pytest.raises(SchemaError, match="no multiple of multiple_of=3600 lies between"):
        sp.Datetime("2020-01-01T00:10", "2020-01-01T00:50", multiple_of=3600)


def test_steps_survive_plain_data():
    """TOML, a dictionary and a saved release keep the steps."""
    schema = sp.Schema(
        {
            "d": sp.Date("2020-01-06", "2020-12-31", multiple_of=7),
            "t": sp.Datetime(bounds="private", multiple_of=Decimal("0.25"), timezone="UTC"),
            "c": sp.Time(multiple_of=60),
        }
    )
    assert sp.Schema.from_toml(schema.to_toml()) == schema == sp.Schema.from_dict(schema.to_dict())
    assert schema["t"].multiple_of == 0.25
    assert repr(schema["d"]) == "Date(low='2020-01-06', high='2020-12-31', multiple_of=7)"


def test_found_bounds_hold_a_step():
    """Bounds between two steps are widened to both; those at the ends of the calendar stay in it."""
    column = sp.Datetime(bounds="private", multiple_of=86400)
    found = column._with_bounds(datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 9))
    assert (found.low, found.high) == (datetime(2020, 1, 1), datetime(2020, 1, 2))
    weekly = sp.Date(bounds="private", multiple_of=7)
    assert weekly._with_bounds(date(2020, 1, 9), date(2020, 1, 10)).low == date(2020, 1, 6)
    assert weekly._with_bounds(date(1, 1, 2), date(2, 1, 1)).low.weekday() == 0


def test_conditions_count_in_steps():
    """A range is cut to the steps inside it, a value between steps is never drawn, and the day of the week stays."""
    rng = np.random.default_rng(0)
    days = [date(2020, 1, 7) + timedelta(weeks=int(week)) for week in rng.integers(0, 90, 900)]
    table = pa.table({"t": pa.array(days), "b": pa.array(rng.random(900) < 0.5)})
    schema = sp.Schema({"t": sp.Date("2020-01-07", "2021-12-31", multiple_of=7), "b": sp.Boolean()})
    model = sp.ForestSynthesizer("20").fit(table, schema)
    some = model.sample(80, where={"t": ("2020-02-01", "2020-06-30")}, seed=0, frame="pyarrow")["t"].to_pylist()
    assert {one.weekday() for one in some} == {1}
    assert all(date(2020, 2, 1) <= one <= date(2020, 6, 30) for one in some)
    wanted = [date(2020, 2, 4), date(2020, 3, 3)]
    assert set(model.sample(40, where={"t": wanted}, seed=0, frame="pyarrow")["t"].to_pylist()) <= set(wanted)
    with pytest.raises(sp.SpinneyError, match="is never"):
        model.sample(5, where={"t": "2020-02-05"})


@pytest.mark.parametrize("bounds", [("2021-01-01", "2021-12-31"), None])
def test_rules_count_in_steps(bounds):
    """An end on the hour is never before a start to the minute, and still on the hour."""
    rng = np.random.default_rng(1)
    starts = [moment + timedelta(minutes=int(m)) for moment, m in zip(HOURS, rng.integers(0, 60, 2000), strict=True)]
    ends = [moment + timedelta(hours=int(h) + 1) for moment, h in zip(HOURS, rng.integers(0, 9, 2000), strict=True)]
    given = {"bounds": "private"} if bounds is None else {"low": bounds[0], "high": bounds[1]}
    schema = sp.Schema(
        {"start": sp.Datetime(multiple_of=60, **given), "end": sp.Datetime(multiple_of=3600, **given)},
        rules=[sp.AtMost("start", "end")],
    )
    model = sp.ForestSynthesizer("10").fit(pd.DataFrame({"start": starts, "end": ends}), schema)
    rows = model.sample(500, seed=0)
    assert (rows["start"] <= rows["end"]).all()
    assert (rows["end"].dt.minute == 0).all()
    assert (rows["start"].dt.second == 0).all()


def test_found_bounds_of_days_keep_their_day_under_rules():
    """Bounds that a rule widens stay on the steps that the table has."""
    later, sooner = date(2020, 6, 7), date(2020, 1, 5)  # Sundays
    schema = sp.Schema(
        {
            "a": sp.Date(bounds="from-data-not-private", multiple_of=7),
            "b": sp.Date("2020-01-01", "2020-02-01"),
        },
        rules=[sp.AtMost("a", "b")],
    )
    widened = schema._with_bounds({"a": (later, later + timedelta(weeks=4))})["a"]
    assert widened.low <= date(2020, 2, 1)
    assert widened.low.weekday() == sooner.weekday()


def test_the_same_column_without_steps_is_unchanged():
    """Stating no step leaves cells and ranges as they were."""
    plain = sp.Datetime("2020-01-01", "2020-12-31")
    assert replace(plain, multiple_of=None) == plain
    assert whole_range(plain) == (plain.physical(plain.low), plain.physical(plain.high))


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("number", [2**62, -(2**62)])
def test_timestamps_beyond_microseconds_go_to_the_nearer_bound(unit: str, number: int) -> None:
    """A coarse unit reaches further than microseconds; what is beyond is outside of the bounds, not back in 1970."""
    table = pa.table({"t": pa.array([number, 0]).cast(pa.timestamp(unit))})
    for column in (sp.Datetime("1969-01-01", "1971-01-01"), sp.Date("1969-01-01", "1971-01-01")):
        far, near = open_table(table, sp.Schema({"t": column})).physical("t").values.tolist()
        assert near == 0
        assert far > column.physical(column.high) if number > 0 else far < column.physical(column.low)
