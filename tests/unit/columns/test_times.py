"""Times of day: the whole day by default, bounds, steps of seconds, strings in any engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import spinney as sp
from spinney.columns.base import Spelling
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.tables.csv_reader import guess_types
from spinney.tables.frames import open_table
from support.command_line import spinney
from support.in_one_test import in_one_test


def test_the_whole_day_is_public():
    """Without bounds a time is any time of day, stated and not paid for; one bound may be left out."""
    anything = sp.Time()
    assert (anything.low, anything.high, anything.bounds) == (time.min, time.max, "stated")
    assert repr(anything) == "Time()"
    assert anything.to_dict() == {"type": "time"}
    assert not sp.Schema({"t": anything})._awaits_bounds
    assert sp.Time("08:00") == sp.Time("08:00", "24:00") == sp.Time(time(8), time.max)
    assert repr(sp.Time("08:00", "18:00", nullable=True)) == "Time(low='08:00:00', high='18:00:00', nullable=True)"
    assert sp.Time(bounds="private").low is None


def test_bounds_that_are_none():
    """Numbers, moments, offsets and impossible times are refused by name."""
    for low in ("25:00", "8", "08:60", 8, datetime(2020, 1, 1, 8), "24:00", "08:00Z", "08:00.5"):
        with pytest.raises(SchemaError, match=r"Time: low=.* is not a time of day like 08:30"):
            sp.Time(low, "23:00")
    with pytest.raises(SchemaError, match="has an offset"):
        sp.Time(time(8, tzinfo=UTC), "18:00")
    with pytest.raises(SchemaError, match="is not below high"):
        sp.Time("18:00", "08:00")


def test_steps_of_seconds():
    """Steps are exact numbers of microseconds, counted from midnight."""
    assert sp.Time("08:10", "09:00", multiple_of=900)._multiples == (time(8, 15), time(9))
    assert sp.Time(multiple_of=Decimal("0.001")).multiple_of == 0.001
    assert sp.Time(multiple_of=0.1).step == 100_000
    assert type(sp.Time(multiple_of=60.0).multiple_of) is int
    for step in (0, -1, 1e-7, float("nan"), "hour", True, 1e30):
        with pytest.raises(SchemaError, match="Time: multiple_of="):
            sp.Time(multiple_of=step)
    with pytest.raises(SchemaError, match="no multiple of multiple_of=3600 lies between"):
        sp.Time("08:10", "08:50", multiple_of=3600)


def test_schemas_in_toml_and_json(tmp_path):
    """TOML has times of its own; a card holds them as strings, and a saved release comes back."""
    schema = sp.Schema.from_toml('[columns.t]\ntype = "time"\nlow = 08:00:00\nhigh = 18:00:00\nmultiple_of = 60\n')
    assert schema["t"] == sp.Time("08:00", "18:00", multiple_of=60)
    table = pa.table({"t": pa.array([time(9), time(10)] * 200)})
    release = sp.KDTreeSynthesizer("5").fit(table, schema).release_
    assert json.loads(json.dumps(release.card.to_dict()))["schema"]["columns"]["t"]["low"] == "08:00:00"
    release.save(tmp_path / "r.spinney")
    assert sp.load(tmp_path / "r.spinney").schema == schema


def shifts() -> list[time]:
    rng = np.random.default_rng(3)
    return [
        time(6 + int(hour), 15 * int(quarter))
        for hour, quarter in zip(rng.integers(0, 12, 3000), rng.integers(0, 4, 3000), strict=True)
    ]


FRAMES = {
    "pyarrow": lambda: pa.table({"t": pa.array(shifts(), pa.time64("us"))}),
    "seconds": lambda: pa.table({"t": pa.array(shifts(), pa.time32("s"))}),
    "pandas": lambda: pd.DataFrame({"t": shifts()}),
    "pandas strings": lambda: pd.DataFrame({"t": [one.isoformat("minutes") for one in shifts()]}),
    "polars": lambda: pl.DataFrame({"t": shifts()}),
    "polars lazy": lambda: pl.LazyFrame({"t": shifts()}),
    "duckdb": lambda: duckdb.connect().from_arrow(pa.table({"t": pa.array(shifts(), pa.time64("us"))})),
}


@in_one_test("kind", FRAMES)
@in_one_test("synthesizer", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
@in_one_test("bounds", [{}, {"low": "06:00", "high": "18:00"}, {"bounds": "private"}])
def test_quarters_come_back_as_quarters(kind, synthesizer, bounds):
    """Whatever holds the table, all of it is on the quarter, within the bounds, and about where it was."""
    schema = sp.Schema({"t": sp.Time(multiple_of=900, **bounds)})
    drawn = synthesizer("10").fit(FRAMES[kind](), schema).sample(500, seed=1, frame="pyarrow")["t"].to_pylist()
    assert all(one.minute % 15 == 0 and one.second == one.microsecond == 0 for one in drawn)
    inside = sum(time(5, 45) <= one <= time(18, 15) for one in drawn)
    assert inside > 450


def test_nulls_and_kinds_of_frames_out():
    """Nulls come back as nulls; pandas gives objects, polars its own type, numpy refuses."""
    table = pa.table({"t": pa.array([time(9), None] * 300, pa.time64("us"))})
    model = sp.KDTreeSynthesizer("5").fit(table, sp.Schema({"t": sp.Time(nullable=True)}))
    assert 100 < model.sample(400, seed=0, frame="pyarrow")["t"].null_count < 300
    assert model.sample(9, seed=0, frame="polars").schema["t"] == pl.Time
    assert {type(one) for one in model.sample(99, seed=0, frame="pandas")["t"]} == {time, type(None)}
    with pytest.raises(ParameterError, match="cannot hold a column of type time"):
        model.sample(9, frame="numpy")


def test_ranges_of_times():
    """Conditions take times, strings and the end of the day; the library and the command line alike."""
    table = pa.table({"t": pa.array(shifts()), "b": pa.array([True, False] * 1500)})
    model = sp.ForestSynthesizer("20").fit(table, sp.Schema({"t": sp.Time(), "b": sp.Boolean()}))
    for wanted in (("08:00", "12:00"), (time(8), time(12))):
        drawn = model.sample(50, where={"t": wanted}, seed=0, frame="pyarrow")["t"].to_pylist()
        assert all(time(8) <= one <= time(12) for one in drawn)
    assert min(model.sample(50, where={"t": ("15:00", "24:00")}, seed=0, frame="pyarrow")["t"].to_pylist()) >= time(15)
    assert set(model.sample(9, where={"t": ["09:00", time(10)]}, seed=0, frame="pyarrow")["t"].to_pylist()) <= {
        time(9),
        time(10),
    }
    with pytest.raises(ParameterError, match="where: column 't': Time: where='noon' is not a time of day"):
        model.sample(5, where={"t": "noon"})
    with pytest.raises(ParameterError, match="is of type time, which 8 is not"):
        model.sample(5, where={"t": 8})


def test_from_a_csv_to_a_csv(tmp_path):
    """The command line guesses times, writes a template for them, fits, and samples under a condition."""
    path, schema, out = tmp_path / "in.csv", tmp_path / "s.toml", tmp_path / "out.csv"
    path.write_text("t,b\n" + "".join(f"{one.isoformat('minutes')},{row % 2}\n" for row, one in enumerate(shifts())))
    assert pa.types.is_time(guess_types(str(path)).field("t").type)
    spinney("schema", path, "--out", schema)
    text = schema.read_text()
    assert 'type = "time"\n# low = 00:00:00\n# high = 23:59:59.999999\n' in text
    schema.write_text('[columns.t]\ntype = "time"\n[columns.b]\ntype = "boolean"\n')
    release = tmp_path / "r.spinney"
    spinney("fit", path, "--schema", schema, "--epsilon", "10", "--out", release, "--method", "forest")
    spinney("sample", release, "--rows", "40", "--out", out, "--where", "t=08:00..12:00")
    drawn = sp.Time()._from_strings(pacsv.read_csv(out)["t"].cast(pa.string())).to_pylist()
    assert len(drawn) == 40
    assert all(time(8) <= one <= time(12) for one in drawn)


def test_formats_of_a_csv():
    """A format of times is read; a format of the dates beside it is not taken for one."""
    column = sp.Time(nullable=True)
    dotted = Spelling(date_format="%H.%M")
    assert column._from_strings(pa.array(["8.05", None]), dotted).to_pylist() == [time(8, 5), None]
    assert column._from_strings(pa.array(["08:05"]), Spelling(date_format="%d/%m/%Y")).to_pylist() == [time(8, 5)]
    with pytest.raises(InputError):
        column._from_strings(pa.array(["08:05"]), Spelling(date_format="%H.%M"))
    assert "does not match date_format='%H.%M'" in column._cause("x", Spelling(date_format="%H.%M"))
    assert "has a day" in column._cause("2020-01-31 08:00", Spelling())
    assert "has an offset" in column._cause("08:00+01:00", Spelling())


def test_times_in_order():
    """A time is at most another time, and nothing else."""
    schema = sp.Schema({"a": sp.Time(), "b": sp.Time(multiple_of=60)}, rules=[sp.AtMost("a", "b")])
    rng = np.random.default_rng(0)
    opens = [time(int(hour)) for hour in rng.integers(6, 12, 600)]
    shuts = [time(int(hour), 30) for hour in rng.integers(12, 22, 600)]
    drawn = (
        sp.ForestSynthesizer("4").fit(pa.table({"a": opens, "b": shuts}), schema).sample(300, seed=0, frame="pyarrow")
    )
    assert all(a <= b for a, b in zip(drawn["a"].to_pylist(), drawn["b"].to_pylist(), strict=True))
    with pytest.raises(SchemaError, match="dates with dates, datetimes with datetimes, times with times"):
        sp.Schema({"a": sp.Time(), "b": sp.Integer(0, 1)}, rules=[sp.AtMost("a", "b")])


def test_columns_of_other_types():
    """Moments and numbers are refused with what to do; so is a time where a number is meant."""
    with pytest.raises(SchemaError, match=r"\.dt\.time"):
        open_table(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), sp.Schema({"t": sp.Time()}))
    with pytest.raises(SchemaError, match="convert the numbers to times of day"):
        open_table(pa.table({"t": [1]}), sp.Schema({"t": sp.Time()}))
    with pytest.raises(SchemaError, match="describe it as Time, or convert the column"):
        open_table(pa.table({"t": [time(8)]}), sp.Schema({"t": sp.Integer(0, 1)}))


def test_a_step_longer_than_a_day_is_refused() -> None:
    """Otherwise every time would become midnight."""
    with pytest.raises(SchemaError, match="multiple_of=90000 is more than a day has"):
        sp.Time(multiple_of=90_000)


@pytest.mark.parametrize("number", [-1, 86_400 * 10**6, 2**62])
def test_numbers_that_no_clock_shows_are_refused(number: int) -> None:
    """Arrow's times may hold any number; one outside of a day is no time, whoever reads it."""
    table = pa.table({"t": pa.array([0, number]).cast(pa.time64("us"))})
    with pytest.raises(InputError, match="cannot be read as time"):
        open_table(table, sp.Schema({"t": sp.Time()})).physical("t")
