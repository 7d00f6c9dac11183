"""Dates, datetimes and times of which one is never before the other: their difference is what a forest models."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import ParameterError, SchemaError
from spinney.forest.release.lags import Reach, reaches, settle
from spinney.schema.rules import lags_of

N = 6000
DAY = sp.Date("2000-01-01", "2009-12-31")
MAYBE = sp.Date("2000-01-01", "2009-12-31", nullable=True)
CHAIN = sp.Schema(
    {"asked": DAY, "paid": MAYBE, "closed": MAYBE, "kind": sp.Category(["x", "y"])},
    rules=[sp.AtMost("asked", "paid"), sp.AtMost("paid", "closed")],
)
FIRST, LAST = np.datetime64("2000-01-01"), np.datetime64("2009-12-31")


def chain(n: int = N) -> pd.DataFrame:
    """Requests that are paid after some weeks, two in ten on the same day, or never; a few are closed all the same."""
    rng = np.random.default_rng(3)
    asked = FIRST + rng.integers(0, 3000, n)
    lag = np.where(rng.random(n) < 0.2, 0, rng.gamma(2, 20, n).astype(int))
    paid = np.minimum(asked + lag, LAST)
    closed = np.minimum(paid + rng.integers(0, 400, n), LAST)
    frame = pd.DataFrame({"asked": asked, "paid": paid, "closed": closed, "kind": rng.choice(["x", "y"], n)})
    frame.loc[rng.random(n) < 0.1, "paid"] = pd.NaT
    frame.loc[rng.random(n) < 0.3, "closed"] = pd.NaT
    return frame.astype(dict.fromkeys(("asked", "paid", "closed"), "datetime64[us]"))


def days(column) -> np.ndarray:
    return (pd.to_datetime(pd.Series(column)) - pd.Timestamp("2000-01-01")).dt.days.to_numpy(dtype=float)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference between two distribution functions."""
    one, other = (np.sort(column[~np.isnan(column)]) for column in (one, other))
    at = np.union1d(one, other)
    return float(
        np.abs(np.searchsorted(one, at, "right") / len(one) - np.searchsorted(other, at, "right") / len(other)).max()
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return chain()


@pytest.fixture(scope="module")
def release(table) -> sp.Release:
    return sp.ForestSynthesizer("8").fit(table, CHAIN, entropy=sp.UnsafeSeededEntropy(2)).release_


def test_rows_keep_the_order_and_the_lags_of_a_chain(table, release):
    """Columns and differences are near the table's, zeros pile up, and no row is out of order or out of bounds."""
    rows = release.sample(N, seed=1)
    asked, paid, closed = (days(rows[name]) for name in ("asked", "paid", "closed"))
    for name in ("asked", "paid", "closed"):
        found = days(rows[name])
        assert distance(days(table[name]), found) < 0.03
        assert np.nanmin(found) >= 0
        assert np.nanmax(found) <= (LAST - FIRST).astype(int)
    lag = paid - asked
    assert (lag[~np.isnan(lag)] >= 0).all()
    assert (closed - paid)[~np.isnan(closed - paid)].min() >= 0
    real = days(table.paid) - days(table.asked)
    assert distance(real, lag) < 0.03
    assert abs(np.nanquantile(lag, 0.9) / np.nanquantile(real, 0.9) - 1) < 0.05
    # One leaf of noise may be believed beyond the longest lag: a few rows, in the next round range.
    assert (lag > np.nanmax(real)).sum() <= N // 500
    assert np.nanmax(lag) < 3 * np.nanmax(real)
    assert abs((lag == 0).mean() - (real == 0).mean()) < 0.02


def test_nulls_are_those_of_the_table(table, release):
    """A date is there or not whatever the one before it is, and where that is null it has its own law."""
    rows = release.sample(N, seed=2)
    for name in ("paid", "closed"):
        assert abs(rows[name].isna().mean() - table[name].isna().mean()) < 0.02
    alone, real = ((frame.paid.isna() & frame.closed.notna()) for frame in (rows, table))
    assert abs(alone.mean() - real.mean()) < 0.02
    assert distance(days(table.closed[real]), days(rows.closed[alone])) < 0.15


def test_the_card_states_the_difference(release, tmp_path):
    """Ranges follow from public bounds; a file draws the same rows, and its own numbers agree."""
    assert release.schema.rules[0] == sp.AtMost("asked", "paid", difference=sp.Integer(0, 3652))
    release.save(tmp_path / "rows.spinney")
    loaded = sp.load(tmp_path / "rows.spinney")
    assert loaded.schema == release.schema
    assert loaded.sample(200, seed=3).equals(release.sample(200, seed=3))
    assert loaded.verify()
    assert "of its difference" in str(release.explain())


def test_a_card_without_differences_deals_out_values_as_before(table):
    """What is named in a workload is counted as it is; so are the columns of files from before."""
    model = sp.ForestSynthesizer("8", workload=[("paid", "kind"), ("closed",)])
    found = model.fit(table, CHAIN, entropy=sp.UnsafeSeededEntropy(2)).release_
    assert found.schema.rules == CHAIN.rules
    rows = found.sample(N, seed=1)
    assert (days(rows.paid) - days(rows.asked))[rows.paid.notna()].min() >= 0
    assert found.count({"paid": ("2003-01-01", None)}).statement == "certified"


def test_conditions_and_shares_hold_in_every_row(release):
    """Of the computed column, of one that is computed from it, beside others, and of nulls."""
    where = {"paid": ("2004-03-01", "2004-04-30"), "asked": (None, "2004-03-31")}
    rows = release.sample(800, where=where, seed=4)
    assert len(rows) == 800
    assert rows.paid.between("2004-03-01", "2004-04-30").all()
    assert rows.asked.max() <= pd.Timestamp("2004-03-31")
    assert (rows.paid >= rows.asked).all()
    assert rows.closed.isna().any()
    assert rows.closed.notna().any()
    assert release.sample(100, where={"paid": None}, seed=4).paid.isna().all()
    several = release.sample(300, where={"paid": ["2004-03-01", ("2005-01-01", "2005-12-31"), None]}, seed=5)
    assert several.paid.isna().any()
    assert (several.paid.dropna().between("2005-01-01", "2005-12-31") | (several.paid.dropna() == "2004-03-01")).all()
    even = release.sample(4000, where={"closed": ("2003-01-01", None)}, balance={"kind": 0.2}, seed=6)
    assert abs((even.kind == "y").mean() - 0.2) < 0.03
    assert even.closed.min() >= pd.Timestamp("2003-01-01")
    parts = release.sample(1000, parts=4, where={"paid": ("2004-01-01", None)}, seed=7)
    assert [len(part) for part in parts] == [250] * 4
    assert all(part.paid.min() >= pd.Timestamp("2004-01-01") for part in parts)


def test_rows_under_a_condition_have_the_law_of_all_rows_that_meet_it(release):
    every = release.sample(60_000, seed=8)
    met = every[every.paid.between("2003-01-01", "2003-12-31")]
    rows = release.sample(6000, where={"paid": ("2003-01-01", "2003-12-31")}, seed=9)
    assert distance(days(met.paid), days(rows.paid)) < 0.035
    assert distance(days(met.asked), days(rows.asked)) < 0.035
    assert distance(days(every.asked), days(rows.asked)) > 0.2  # which another law would show


def test_conditions_that_no_row_meets_are_refused(release):
    for wanted in (("2011-01-01", None), 5, None):
        with pytest.raises(ParameterError, match=r"asked|paid"):
            release.sample(10, where={"asked" if wanted is None else "paid": wanted})
    where = {"asked": ("2007-06-01", None), "paid": (None, "2007-05-01")}
    with pytest.raises(ParameterError, match="no row can meet all these conditions"):
        release.sample(10, where=where)


def test_answers_are_those_of_rows_and_called_indicative(table, release):
    where = {"paid": ("2003-01-01", "2003-12-31")}
    found = release.count(where)
    rows = release.sample(60_000, seed=10)
    assert found.statement == "indicative"
    assert abs(found.estimate - N * rows.paid.between("2003-01-01", "2003-12-31").mean()) < 0.01 * N
    assert found.low <= table.paid.between("2003-01-01", "2003-12-31").sum() <= found.high
    share = release.proportion({"kind": "x"}, given=where)
    assert share.low <= 0.5 <= share.high
    with pytest.raises(ParameterError, match="nothing can be certified"):
        release.count(where, statement="certified")
    assert release.count({"asked": ("2003-01-01", None)}).statement == "certified"
    assert release.trust(["paid", "kind"]).of("paid").statement == "indicative"
    assert release.trust(["paid", "kind"]).of("kind").statement == "certified"
    by_kind = release.table({"kind": ["x", "y"], "paid": [("2000-01-01", "2004-12-31"), ("2005-01-01", None)]})
    assert len(by_kind) == 4


def test_columns_that_follow_from_a_difference_are_asked_for_and_balanced(table):
    schema = sp.Schema(
        {**{name: CHAIN[name] for name in ("asked", "paid", "kind")}, "late": sp.Boolean(nullable=True)},
        rules=[sp.AtMost("asked", "paid"), sp.Derived("late", "paid", cuts=["2005-01-01"], labels=[False, True])],
    )
    frame = table[["asked", "paid", "kind"]].assign(late=True)
    found = sp.ForestSynthesizer("8").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(4)).release_
    rows = found.sample(3000, balance={"late": 0.8}, seed=1)
    assert abs(rows.late.mean() - 0.8) < 0.04
    assert ((rows.paid >= "2005-01-01") == rows.late).all()
    assert found.sample(200, where={"late": True}, seed=1).paid.min() >= pd.Timestamp("2005-01-01")
    with pytest.raises(ParameterError, match="no row can meet all these conditions"):
        found.sample(10, where={"late": True, "paid": (None, "2004-01-01")})
    true = (table.paid >= "2005-01-01").sum()
    answer = found.count({"late": True})
    assert answer.low <= true <= answer.high


# ------------------------------------------------------------------------------------------------------ every engine


MOMENTS = sp.Schema(
    {
        "start": sp.Datetime("2020-01-01", "2020-03-01", multiple_of=1),
        "end": sp.Datetime("2020-01-01", "2020-03-02", multiple_of=1, nullable=True),
        "opens": sp.Time("06:00", "20:00", multiple_of=60, nullable=True),
        "closes": sp.Time("06:00", "23:00", multiple_of=60),
        "asked": sp.Date("2020-01-01", "2020-12-31"),
        "paid": sp.Date("2020-01-01", "2021-12-31", nullable=True),
    },
    rules=[sp.AtMost("start", "end"), sp.AtMost("opens", "closes"), sp.AtMost("asked", "paid")],
)


def moments(n: int = 1500) -> pa.Table:
    rng = np.random.default_rng(1)
    start = np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 59 * 86_400, n)
    opens = 60 * rng.integers(360, 900, n)
    asked = np.datetime64("2020-01-01") + rng.integers(0, 366, n)

    def clock(seconds: np.ndarray) -> list:
        return [(datetime(2000, 1, 1) + timedelta(seconds=int(one))).time() for one in seconds]

    holes = rng.random((3, n)) < 0.2
    return pa.table(
        {
            "start": pa.array(start.astype("datetime64[us]")),
            "end": pa.array((start + 60 * rng.integers(0, 600, n)).astype("datetime64[us]"), mask=holes[0]),
            "opens": pa.array(clock(opens), mask=holes[1]),
            "closes": pa.array(clock(opens + 1800 * rng.integers(0, 16, n))),
            "asked": pa.array(asked),
            "paid": pa.array(asked + rng.integers(0, 300, n), mask=holes[2]),
        }
    )


def test_every_engine_reads_the_same_differences(tmp_path):
    """Under the same noise the release is the same to the last byte."""
    table = moments()
    pacsv.write_csv(table, tmp_path / "rows.csv")
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=400)
    connection = duckdb.connect()
    sources = {
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "csv": str(tmp_path / "rows.csv"),
        "parquet": str(tmp_path / "rows.parquet"),
        "lazy": pl.scan_parquet(tmp_path / "rows.parquet"),
        "duckdb": connection.from_arrow(table),
        "stream": table.to_reader(max_chunksize=333),
    }
    members = {
        name: sp.ForestSynthesizer("2", "1e-6")
        .fit(source, MOMENTS, entropy=sp.UnsafeSeededEntropy(7))
        .release_.to_members()
        for name, source in sources.items()
    }
    assert all(found == members["pandas"] for found in members.values())


def test_differences_of_datetimes_and_times_come_in_their_steps():
    table = moments()
    rows = sp.ForestSynthesizer("8").fit(table, MOMENTS, entropy=sp.UnsafeSeededEntropy(7)).sample(1500, seed=1)
    rows = rows.to_pandas()
    length = (rows.end - rows.start).dropna().dt.total_seconds()
    assert length.min() >= 0
    assert (length % 1 == 0).all()
    real = (table.to_pandas().end - table.to_pandas().start).dropna().dt.total_seconds()
    assert distance(real.to_numpy(), length.to_numpy()) < 0.08
    seconds = [[t.hour * 3600 + t.minute * 60 + t.second for t in rows[name].dropna()] for name in ("opens", "closes")]
    assert all(one % 60 == 0 for column in seconds for one in column)
    both = rows.dropna(subset=["opens"])
    assert (both.opens <= both.closes).all()
    assert rows.closes.notna().all()


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("columns", "rules", "said"),
    [
        ({"a": sp.Integer(0, 9), "b": sp.Integer(0, 9)}, {"difference": sp.Integer(0, 5)}, "leave difference out"),
        ({"a": DAY, "b": DAY}, {"difference": sp.Integer(-3, 5)}, "needs bounds from 0 up"),
        ({"a": DAY, "b": DAY}, {"difference": sp.Real(0, 5)}, "not a range of whole numbers"),
        ({"a": DAY, "b": DAY}, {"difference": 7}, "not a range of whole numbers"),
        ({"a": DAY, "b": DAY}, {"difference": sp.Integer(0, 5, nullable=True)}, "leave nullable out"),
        ({"a": DAY, "b": DAY}, {"difference": sp.Integer(0, 70, multiple_of=7)}, "in the steps of these columns"),
        ({"a": DAY, "b": DAY}, {"difference": sp.Integer(4000, 5000)}, "no row has a difference of 4000"),
        (
            {"a": DAY, "b": sp.Date("2000-01-03", "2009-12-31", multiple_of=7)},
            {"difference": sp.Integer(0, 70)},
            "come in different steps",
        ),
    ],
)
def test_differences_that_cannot_be_modelled_are_refused(columns, rules, said):
    with pytest.raises(SchemaError, match=said):
        sp.Schema(columns, rules=[sp.AtMost("a", "b", **rules)])


def test_a_column_is_computed_from_one_other():
    """A stated difference beside another rule about the same column is refused; by itself none is taken there."""
    columns = {"a": DAY, "b": DAY, "c": DAY}
    with pytest.raises(SchemaError, match="compares it with one more"):
        sp.Schema(columns, rules=[sp.AtMost("a", "c", difference=sp.Integer(0, 9)), sp.AtMost("b", "c")])
    plain = sp.Schema(columns, rules=[sp.AtMost("a", "c"), sp.AtMost("b", "c")])
    assert plain._with_differences() == plain


def test_what_is_stated_is_written_and_read():
    schema = sp.Schema({"a": DAY, "b": MAYBE}, rules=[sp.AtMost("a", "b", difference=sp.Integer(0, 400))])
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert "difference=Integer(low=0, high=400)" in repr(schema)
    narrow = sp.ForestSynthesizer("2").fit(
        chain()[["asked", "paid"]].rename(columns={"asked": "a", "paid": "b"}), schema
    )
    rows = narrow.sample(500, seed=1)
    assert (days(rows.b) - days(rows.a))[rows.b.notna()].max() <= 400


# ------------------------------------------------------------------------------------------------- bounds, on their own


def test_ranges_that_reach_each_other():
    """Bounds of a sum bound its parts, along a chain."""
    schema = CHAIN._with_differences()
    lags = lags_of(schema.rules, schema)
    apart, near = reaches(
        lags,
        {"paid": Reach(5, 50), "closed": Reach(0, 10)},
        {"asked": Reach(0, 100), "paid": Reach(0, 100), "closed": Reach(0, 60)},
    )
    assert near == {"asked": Reach(0, 55), "paid": Reach(5, 60), "closed": Reach(5, 60)}
    assert apart == {"paid": Reach(5, 50), "closed": Reach(0, 10)}


def test_no_difference_leads_out_of_the_bounds():
    """Late sources take small differences of their state, and the state keeps its differences as far as it can."""
    schema = sp.Schema({"a": DAY, "b": DAY}, rules=[sp.AtMost("a", "b", difference=sp.Integer(0, 3652))])
    rng = np.random.default_rng(5)
    last = 3652.0
    places = {"a": last - rng.integers(0, 300, 5000), "b": rng.integers(0, 101, 5000).astype(float)}
    before = places["b"].copy()
    cut = np.minimum(before, last - places["a"])
    states = {name: np.zeros(5000, dtype=np.int32) for name in places}
    assert (places["a"] + places["b"] > last).mean() > 0.1
    settle(places, states, list(schema._lags.values()), schema, schema._as_drawn, rng, days={})
    assert (places["a"] + places["b"]).max() <= last
    assert places["b"].min() >= 0
    assert distance(before, places["b"]) < 0.01 < distance(before, cut)


def test_private_bounds_come_before_differences():
    """A range that is paid for is known before the difference is; the rows obey all the same."""
    found = sp.Date(bounds="private")
    schema = sp.Schema({"a": found, "b": found}, rules=[sp.AtMost("a", "b")])
    frame = chain()[["asked", "paid"]].dropna().rename(columns={"asked": "a", "paid": "b"})
    release = sp.ForestSynthesizer("8").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5)).release_
    (rule,) = release.schema.rules
    assert rule.difference is not None
    rows = release.sample(1000, seed=1)
    assert (rows.a <= rows.b).all()
    real = days(frame.b) - days(frame.a)
    assert distance(real, days(rows.b) - days(rows.a)) < 0.08
    assert isinstance(rows.a.iloc[0].date(), date)


def test_persons_keep_their_columns():
    """Their rows are modelled otherwise, so a stated difference is refused, and a rule without one is kept."""
    columns = {"who": sp.Identifier(), "a": DAY, "b": DAY}
    schema = sp.Schema(columns, rules=[sp.AtMost("a", "b", difference=sp.Integer(0, 9))], person="who", most_rows=3)
    with pytest.raises(SchemaError, match="rows of persons keep such columns as they are"):
        sp.LinkedSynthesizer("1").fit(pd.DataFrame({"who": [1], "a": [FIRST], "b": [LAST]}), schema)


def test_answers_of_what_nothing_measured_are_not_supported(table):
    """Rows of a model that is all noise say no more of a computed column than of any other."""
    schema = sp.Schema({name: CHAIN[name] for name in ("asked", "paid", "kind")}, rules=[sp.AtMost("asked", "paid")])
    tiny = sp.ForestSynthesizer("0.00001").fit(table[list(schema)], schema, entropy=sp.UnsafeSeededEntropy(4)).release_
    answer = tiny.count({"paid": ("2003-01-01", "2003-12-31"), "kind": "x"})
    assert answer.statement == "not supported"
    assert answer.low is None
