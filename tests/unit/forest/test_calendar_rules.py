"""Parts of dates, shares, equal columns, and columns that lie on some days only: in rows, conditions and checks."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError, SchemaError
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.days import on_days
from spinney.schema.rules.calendar import MONTHS, WEEKDAYS

N = 5000
DAY = sp.Date("2000-01-01", "2009-12-31")
WEEK = sp.Category(WEEKDAYS)
COLUMNS = {
    "approved": DAY,
    "closed": sp.Date("2000-01-01", "2010-12-31", nullable=True),
    "amount": sp.Integer(0, 100_000),
    "fiscal": sp.Integer(2000, 2010),
    "quarter": sp.Category(["Q1", "Q2", "Q3", "Q4"]),
    "month": sp.Category([name[:3] for name in MONTHS]),
    "weekday": WEEK,
    "share": sp.Integer(0, 75_000),
    "same": sp.Integer(0, 100_000),
    "copy": DAY,
}
RULES = [
    sp.AtMost("approved", "closed"),
    sp.OnlyOn("approved", "weekdays"),
    sp.OnlyOn("closed", "month-ends"),
    sp.Derived("fiscal", "approved", part="year", starting="October"),
    sp.Derived("quarter", "approved", part="quarter", starting="October"),
    sp.Derived("month", "approved", part="month"),
    sp.Derived("weekday", "approved", part="weekday"),
    sp.Derived("share", "amount", times="0.75"),
    sp.Derived("same", "amount"),
    sp.Derived("copy", "approved"),
]
SCHEMA = sp.Schema(COLUMNS, rules=RULES)


def with_computed(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that rules compute, by pandas."""
    month = frame.approved.dt.month
    return frame.assign(
        fiscal=frame.approved.dt.year + (month >= 10),
        quarter=[f"Q{(one - 10) % 12 // 3 + 1}" for one in month],
        month=[MONTHS[one - 1][:3] for one in month],
        weekday=frame.approved.dt.day_name(),
        share=np.floor(frame.amount * 0.75 + 0.5).astype(np.int64),
        same=frame.amount,
        copy=frame.approved,
    )


def made(n: int = N) -> pd.DataFrame:
    """Loans that are approved on weekdays, and paid back at the end of a month, or not."""
    rng = np.random.default_rng(0)
    days = pd.bdate_range("2000-01-03", "2009-12-31")
    approved = pd.Series(days[rng.integers(0, len(days), n)])
    closed = approved + pd.to_timedelta(rng.gamma(2, 60, n).astype(int), unit="D") + pd.offsets.MonthEnd(0)
    frame = pd.DataFrame({"approved": approved, "closed": closed.where(closed <= "2010-12-31")})
    frame = with_computed(frame.assign(amount=rng.integers(10, 1000, n) * 100))
    return frame[list(COLUMNS)].astype(dict.fromkeys(("approved", "closed", "copy"), "datetime64[us]"))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return made()


@pytest.fixture(scope="module")
def release(table) -> sp.Release:
    return sp.ForestSynthesizer("4").fit(table, SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_


def check_rows(rows: pd.DataFrame) -> None:
    """Every row obeys every rule."""
    computed = with_computed(rows)
    for name in ("fiscal", "quarter", "month", "weekday", "share", "same"):
        assert (rows[name].astype(str) == computed[name].astype(str)).all(), name
    assert (rows["copy"] == rows["approved"]).all()
    assert (rows.approved.dt.day_of_week < 5).all()
    assert rows.closed.dropna().dt.is_month_end.all()
    assert (rows.closed.isna() | (rows.closed >= rows.approved)).all()
    assert rows.closed.max() <= pd.Timestamp("2010-12-31")


def test_every_row_obeys(table, release):
    """Days are those of the rules, and months hold as many rows as in the table."""
    rows = release.sample(N, seed=1)
    check_rows(rows)
    months = [frame.closed.dropna().dt.to_period("Q").value_counts(normalize=True) for frame in (table, rows)]
    assert (months[0] - months[1]).abs().sum() < 0.25
    assert abs(rows.closed.isna().mean() - table.closed.isna().mean()) < 0.02
    assert sorted(release.columns) == ["amount", "approved", "closed"]


@pytest.mark.parametrize(
    "where",
    [
        {"fiscal": 2004},
        {"quarter": ["Q1", "Q3"]},
        {"month": "Feb"},
        {"weekday": ["Monday", "Friday"]},
        {"share": (1000, 2000)},
        {"same": (None, 5000)},
        {"copy": ("2004-01-01", "2004-02-28")},
        {"approved": ("2003-01-03", "2003-01-06"), "weekday": "Monday"},
        {"closed": ("2004-01-05", "2004-07-03"), "weekday": "Tuesday"},
    ],
)
def test_conditions_are_met(release, where):
    """On computed columns and on columns with days, alone and together."""
    rows = release.sample(200, where=where, seed=2)
    check_rows(rows)
    for name, wanted in where.items():
        column = rows[name]
        if isinstance(wanted, tuple):
            low, high = (
                None if end is None else (pd.Timestamp(end) if isinstance(end, str) else end) for end in wanted
            )
            assert low is None or (column >= low).all()
            assert high is None or (column <= high).all()
        else:
            assert column.isin(wanted if isinstance(wanted, list) else [wanted]).all()


def test_answers_about_computed_columns(table, release):
    """Fiscal years are ranges of dates, so their counts are those of the dates."""
    answer = release.count({"fiscal": 2004})
    assert answer.statement in ("certified", "calibrated")
    assert answer.low <= (table.fiscal == 2004).sum() <= answer.high
    alike = release.count({"approved": ("2003-10-01", "2004-09-30")})
    assert (answer.estimate, answer.statement) == pytest.approx((alike.estimate, alike.statement), abs=1)


def test_days_without_values_are_refused(release):
    for where in ({"approved": "2003-01-05"}, {"approved": ("2003-01-04", "2003-01-05")}, {"weekday": "Sunday"}):
        with pytest.raises(ParameterError, match="is never"):
            release.sample(5, where=where)


def test_shares_of_weekdays_are_as_asked(release):
    rows = release.sample(2000, balance={"weekday": {"Monday": 0.5, "Tuesday": 0.5}}, seed=3)
    check_rows(rows)
    assert abs((rows.weekday == "Monday").mean() - 0.5) < 0.02


def test_schemas_are_written_and_read(tmp_path):
    assert sp.Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    assert sp.Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert "part='year', starting='October'" in repr(SCHEMA)
    assert "OnlyOn('closed', 'month-ends')" in repr(SCHEMA)


def broken(table: pd.DataFrame) -> pd.DataFrame:
    """The table with five rows that break each rule."""
    frame = table.copy()
    frame.loc[:4, "fiscal"] += 1
    frame.loc[5:9, "quarter"] = frame.quarter[5:10].map({"Q1": "Q2", "Q2": "Q1", "Q3": "Q1", "Q4": "Q1"})
    frame.loc[10:14, "share"] += 2
    frame.loc[15:19, "same"] += 1
    frame.loc[20:24, "weekday"] = "Sunday"
    frame.loc[25:29, "month"] = frame.month[25:30].map(lambda name: "Jan" if name != "Jan" else "Feb")
    closed = frame.index[frame.closed.notna()][30:35]
    frame.loc[closed, "closed"] += pd.Timedelta(days=1)
    return frame


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "lazy", "duckdb"])
def test_checks_find_rows_that_break_rules(table, kind):
    """The same rows in every engine."""
    frame = broken(table)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    held = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_arrow(arrow),
        "pyarrow": lambda: arrow,
        "lazy": lambda: pl.from_arrow(arrow).lazy(),
        "duckdb": lambda: duckdb.connect().from_arrow(arrow),
    }[kind]()
    said = str(sp.check(held, SCHEMA))
    for column in ("fiscal", "quarter", "month", "weekday", "share", "same"):
        line = next(line for line in said.splitlines() if f"Derived('{column}'" in line)
        assert "(5 rows)" in line
    assert "(5 rows)" in next(line for line in said.splitlines() if "OnlyOn('closed'" in line)
    assert not any("OnlyOn('approved'" in line for line in said.splitlines())
    assert not any("Derived('copy'" in line for line in said.splitlines())


def test_datetimes_have_parts_and_days_in_their_zone():
    """A moment late on a Friday evening in New York is a Friday's, though it is Saturday in UTC."""
    zone = "America/New_York"
    moment = sp.Datetime("2020-01-01", "2020-06-30", timezone=zone)
    schema = sp.Schema(
        {"at": moment, "day": WEEK, "year": sp.Integer(2020, 2020)},
        rules=[
            sp.OnlyOn("at", ["Friday", "Thursday"]),
            sp.Derived("day", "at", part="weekday"),
            sp.Derived("year", "at", part="year"),
        ],
    )
    rng = np.random.default_rng(2)
    start = pd.Timestamp("2020-01-02 00:00", tz=zone)
    at = pd.Series([start + pd.Timedelta(weeks=int(w), hours=int(h)) for w, h in rng.integers(0, (24, 48), (800, 2))])
    frame = pd.DataFrame({"at": at.astype(f"datetime64[us, {zone}]"), "day": at.dt.day_name(), "year": 2020})
    rows = sp.ForestSynthesizer("4").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).sample(800, seed=1)
    local = pd.to_datetime(rows["at"]).dt.tz_convert(zone)
    assert set(local.dt.day_name()) == {"Thursday", "Friday"}
    assert (rows.day == local.dt.day_name()).all()


def test_trees_compute_and_do_not_keep_days():
    """Parts, shares and equal columns need no forest; days do."""
    schema = sp.Schema({name: COLUMNS[name] for name in ("amount", "share", "same")}, rules=RULES[7:9])
    rows = sp.KDTreeSynthesizer("1").fit(made()[["amount", "share", "same"]], schema).sample(300)
    assert (rows.share == np.floor(rows.amount * 0.75 + 0.5)).all()
    assert (rows.same == rows.amount).all()
    with pytest.raises(SchemaError, match="cannot enforce OnlyOn"):
        sp.KDTreeSynthesizer("1").fit(made()[["approved"]], sp.Schema({"approved": DAY}, rules=RULES[1:2]))


def test_shares_are_rounded_to_steps_exactly():
    """Halves go up, cents are cents, thirds are fractions, and floats without steps are multiplied."""
    cents = sp.Real(0, 1000, multiple_of=0.01)
    schema = sp.Schema(
        {"a": sp.Real(0, 100, multiple_of=0.1), "b": cents, "c": sp.Integer(0, 50), "d": sp.Real(0, 300)},
        rules=[
            sp.Derived("b", "a", times="1/3"),
            sp.Derived("c", "a", times=0.5),
            sp.Derived("d", "a", times=2),
        ],
    )
    rows = (
        sp.ForestSynthesizer("1")
        .fit(pd.DataFrame({"a": np.arange(200) / 10, "b": 0.0, "c": 0, "d": 0.0}), schema)
        .sample(400, seed=1)
    )
    tenths = np.rint(rows.a * 10).astype(int)
    assert (np.rint(rows.b * 100).astype(int) == (2 * 10 * tenths + 3) // 6).all()
    assert (rows.c == (tenths + 10) // 20).all()
    assert np.allclose(rows.d, rows.a * 2)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda: sp.Derived("fiscal", "amount", part="year"), "dates and datetimes have parts"),
        (lambda: sp.Derived("fiscal", "approved", part="decade"), "is not one of year, quarter, month, weekday"),
        (lambda: sp.Derived("fiscal", "approved", part="month", starting="May"), "starting says when years begin"),
        (lambda: sp.Derived("fiscal", "approved", part="year", starting="Octobre"), "is not a month such as 'October'"),
        (lambda: sp.Derived("fiscal", "approved", part="year", times=2), "takes one of by, cuts, part and times"),
        (lambda: sp.Derived("fiscal", ["approved", "copy"], part="year"), "takes one source and no default"),
        (lambda: sp.Derived("same", "amount", times="0"), "is not a number above 0"),
        (lambda: sp.Derived("same", "amount", times="2"), "reaches 0..200000 by the bounds of 'amount'"),
        (lambda: sp.Derived("same", "approved"), "state how it follows: by, a mapping"),
        (lambda: sp.Derived("same", "approved", times="2"), "both must be numbers"),
        (lambda: sp.Derived("quarter", "weekday"), "'Monday' of its source is not a value of it"),
        (lambda: sp.Derived("quarter", "approved", part="weekday"), "has no value for weekday"),
        (lambda: sp.Derived("share", "approved", part="year"), "is not within its bounds"),
        (lambda: sp.OnlyOn("amount", "weekdays"), "dates and datetimes lie on days"),
        (lambda: sp.OnlyOn("approved", "sundays"), "is no day of the week"),
        (lambda: sp.OnlyOn("approved", []), "is not 'weekdays', 'month-ends', or names of days"),
        (lambda: sp.OnlyOn("approved", list(WEEKDAYS)), "all days of the week are listed"),
    ],
)
def test_what_makes_no_sense_is_refused(rule, said):
    columns = {**COLUMNS, "share": sp.Integer(0, 100)}
    with pytest.raises(SchemaError, match=said):
        sp.Schema(columns, rules=[rule()])


def test_days_of_differences_and_doubled_rules_are_refused():
    columns = {"a": DAY, "b": DAY}
    difference = sp.AtMost("a", "b", difference=sp.Integer(0, 20))
    with pytest.raises(SchemaError, match="does not reach from one of the days"):
        sp.Schema(columns, rules=[difference, sp.OnlyOn("b", "month-ends")])
    with pytest.raises(SchemaError, match="has two rules that say on which days it lies"):
        sp.Schema(columns, rules=[sp.OnlyOn("b", "month-ends"), sp.OnlyOn("b", "weekdays")])
    with pytest.raises(SchemaError, match="computed from others"):
        sp.Schema(columns, rules=[sp.Derived("b", "a"), sp.OnlyOn("b", "weekdays")])
    with pytest.raises(SchemaError, match="no such day lies within the bounds"):
        sp.Schema({"a": sp.Date("2000-01-01", "2000-01-02")}, rules=[sp.OnlyOn("a", "weekdays")])


def test_leaves_are_cut_to_days():
    """What a leaf weighs is spread over its days; a leaf without any weighs nothing."""
    rule, column = sp.OnlyOn("a", "weekdays"), sp.Date("2000-01-01", "2000-01-31")  # which begins on a Saturday
    model = ColumnModel(
        low=np.array([0.0, 2.0, 14.0]),
        length=np.array([2.0, 12.0, 2.0]),
        is_null=np.zeros(3, dtype=bool),
        weights=np.array([3.0, 20.0, 5.0]),
        states=np.array([0, 1, 2], dtype=np.int32),
        n_states=3,
    )
    parted, leaf = on_days(model, np.arange(3), column, rule.runs(column))
    assert leaf.tolist() == [0, 1, 1, 2]
    assert parted.low[1:3].tolist() == [2.0, 9.0]
    assert parted.length.tolist() == [0.0, 5.0, 5.0, 0.0]
    assert parted.weights.tolist() == [0.0, 10.0, 10.0, 0.0]


def test_runs_of_days():
    """Ends of months, leap years and the bounds included; the nearest day is not below a limit."""
    column = sp.Date("2000-01-15", "2000-03-31")
    runs = sp.OnlyOn("a", "month-ends").runs(column)
    days = [column.logical(first) for first in runs.first]
    assert days == [date(2000, 1, 31), date(2000, 2, 29), date(2000, 3, 31)]
    number = np.array([column.physical(date(2000, 2, 3))])
    low, high = np.array([column.physical(date(2000, 1, 1))]), number
    assert column.logical(runs.nearest(number, low)[0]) == date(2000, 1, 31)
    assert column.logical(runs.nearest(number, high)[0]) == date(2000, 2, 29)
    moments = sp.Datetime("2000-01-01", "2000-01-09", multiple_of=3600)
    hours = sp.OnlyOn("a", "weekdays").runs(moments)
    assert [moments.logical(first) for first in hours.first] == [datetime(2000, 1, 3)]
    assert [moments.logical(last) for last in hours.last] == [datetime(2000, 1, 7, 23)]


def test_many_ranges_leave_what_each_of_them_leaves():
    """A column cut to many ranges at once, against cuts to one range after another."""
    rng = np.random.default_rng(3)
    length = rng.integers(1, 40, 30).astype(float)
    low = np.cumsum(length + rng.integers(0, 3, 30)) - length
    states = np.sort(rng.integers(0, 5, 30)).astype(np.int32)
    weights = np.where(states == 2, 0.0, rng.random(30))
    model = ColumnModel(low, length, np.zeros(30, dtype=bool), weights, states, 5)
    begin = np.cumsum(rng.integers(3, 9, 60)).astype(float)
    stop = begin + rng.integers(1, 3, 60)
    cut, left = model.restrict_to_ranges(begin, stop)
    pieces = [model.restrict_to_range(first, last) for first, last in zip(begin, stop, strict=True)]
    assert left == pytest.approx(np.sum([one for _, one in pieces], axis=0))
    single = [(piece.low[at], piece.weights[at]) for piece, _ in pieces for at in np.flatnonzero(piece.weights > 0)]
    assert np.array(sorted(zip(cut.low, cut.weights, strict=True))) == pytest.approx(np.array(sorted(single)))
