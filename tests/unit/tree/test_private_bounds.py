"""Bounds that are paid for: generous powers of two around the data, for every type that has bounds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import BudgetError, InputError, ParameterError
from spinney.privacy.mechanisms import DiscreteLaplaceCounts

N = 2000
RNG = np.random.default_rng(3)
PAID = "private"


def found(values, column, **options):
    """The column with the bounds that a fit finds."""
    options = {"epsilon": 20, "bounds_share": "0.5"} | options
    table, schema = pd.DataFrame({"v": values}), sp.Schema({"v": column})
    # Seeded: an empty rung passes by chance in one of a thousand fits.
    return sp.KDTreeSynthesizer(**options).fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).schema_["v"]


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (RNG.uniform(5, 60, N), 0, 64),
        (-RNG.uniform(5, 60, N), -64, 0),
        (RNG.uniform(-100, 3, N), -128, 4),
        (RNG.uniform(1e-3, 1.5e-3, N), 2**-10, 2**-9),
        (np.zeros(N), 0, 2**-20),
        (np.full(N, 1e15), 2**40, 2**41),
        (np.full(N, -1e15), -(2**41), -(2**40)),
    ],
    ids=["positive", "negative", "both signs", "small", "zeros", "huge", "hugely negative"],
)
def test_real_bounds(values, low, high):
    """The ends of the outermost crowded rungs of the ladder."""
    column = found(values, sp.Real(bounds=PAID))
    assert (column.low, column.high) == (low, high)
    assert column.bounds == "stated"


def test_few_rows_near_zero_are_not_moved():
    """A tenth of the rows lies in rungs too small to stand out; the bounds still reach down to them."""
    values = RNG.uniform(0, 10, N)
    column = found(values, sp.Real(bounds=PAID), epsilon=1)
    assert (column.low, column.high) == (0, 16)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (RNG.integers(5, 60, N), 0, 63),
        (RNG.integers(20, 60, N), 16, 63),
        (RNG.integers(-60, -4, N), -64, 0),
        (RNG.integers(-3, 4, N), -4, 3),
        (np.zeros(N, dtype=int), 0, 0),
        (np.full(N, -1), -1, -1),
        (np.full(N, 1), 1, 1),
    ],
)
def test_integer_bounds(values, low, high):
    """Whole numbers get whole ends, both included; zeros alone make a column of one value."""
    column = found(values, sp.Integer(bounds=PAID))
    assert (column.low, column.high) == (low, high)
    assert column.low <= values.min()
    assert values.max() <= column.high


def test_dates_and_moments():
    """Days and moments lie inside the bounds found, on both sides of 1970, with and without zone."""
    days = [date(1950, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 25_000, N)]
    column = found(days, sp.Date(bounds=PAID))
    assert column.low <= min(days)
    assert max(days) <= column.high
    moments = pd.Series(pd.to_datetime(days))
    naive = found(moments, sp.Datetime(bounds=PAID))
    assert naive.low <= moments.min()
    assert moments.max() <= naive.high
    zoned = found(moments.dt.tz_localize("UTC"), sp.Datetime(bounds=PAID, timezone="America/New_York"))
    assert zoned.low <= moments.min().replace(tzinfo=UTC)
    assert zoned.timezone == "America/New_York"


def test_the_ends_of_the_calendar():
    """Rungs that reach beyond the years 1 and 9999 are cut there, in any zone."""
    days = [date(2, 1, 1), date(9998, 1, 1)] * (N // 2)
    column = found(days, sp.Date(bounds=PAID))
    assert (column.low, column.high) == (date(1, 1, 1), date(9999, 12, 31))
    moments = pd.Series([datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)] * (N // 2))
    for zone in ("America/New_York", "Pacific/Auckland"):
        column = found(moments, sp.Datetime(bounds=PAID, timezone=zone))
        assert column.low <= moments.min()
        assert moments.max() <= column.high


def test_nulls_have_no_bounds():
    """Nulls are counted apart: they neither stretch nor hide the bounds."""
    values = np.where(RNG.random(N) < 0.5, np.nan, RNG.uniform(5, 60, N))
    column = found(values, sp.Real(bounds=PAID, nullable=True))
    assert (column.low, column.high, column.nullable) == (0, 64, True)
    assert found(pd.array([5, None] * N, dtype="Int64"), sp.Integer(bounds=PAID, nullable=True)).high == 7


def test_one_outlier_does_not_move_the_bounds():
    """A single row does not stand out from the noise: that is the point of paying."""
    values = np.append(RNG.uniform(5, 60, N), 1e9)
    assert found(values, sp.Real(bounds=PAID), epsilon=1).high == 64


def test_nothing_stands_out():
    """Where no magnitude passes the noise, the error says what was spent and what to do."""
    ledger = sp.Ledger(limit=1)
    model, schema = sp.KDTreeSynthesizer("0.01", bounds_share="0.1"), sp.Schema({"v": sp.Real(bounds=PAID)})
    with pytest.raises(BudgetError, match=r"column 'v': no magnitude .*epsilon=1/1000 is spent.*bounds_share"):
        model.fit(np.array([[3.0]]), schema, ledger=ledger, entropy=sp.UnsafeSeededEntropy(1))
    assert ledger.spent == Fraction(1, 1000)


def test_the_share_is_divided_among_the_columns():
    """Each column that needs bounds pays the same part; the release gets the rest."""
    table = pd.DataFrame({"a": RNG.uniform(1, 9, N), "b": RNG.uniform(1, 9, N), "c": RNG.uniform(0, 1, N)})
    schema = sp.Schema({"a": sp.Real(bounds=PAID), "b": sp.Real(bounds=PAID), "c": sp.Real(0, 1)})
    model = sp.GridSynthesizer(4, bounds_share="1/4", bins=3).fit(table, schema)
    bounds = [event for event in model.ledger_.events if "bounds" in event.note]
    assert [event.epsilon for event in bounds] == [Fraction(1, 2)] * 2
    assert all(isinstance(event, DiscreteLaplaceCounts) and event.sensitivity == 2 for event in bounds)
    assert model.plan_.epsilon == 3
    assert model.card_.is_private


def test_the_share_is_not_taken_where_nobody_needs_it(square):
    """With all bounds stated the release gets the whole budget."""
    assert sp.GridSynthesizer(4, bounds_share="1/4").fit(*square).plan_.epsilon == 4


@pytest.mark.parametrize("kind", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_rows_come_out_inside_the_bounds_found(unit, kind):
    """A release on paid-for bounds samples inside them."""
    values = RNG.normal(50, 5, N)
    model = kind(5, unit=unit).fit(values, sp.Schema({"v": sp.Real(bounds=PAID)}))
    rows = model.sample(500, seed=1)
    column = model.schema_["v"]
    assert column.low <= rows.min()
    assert rows.max() <= column.high
    assert abs(rows.mean() - 50) < 5


def test_depths_are_cut_where_bounds_were_paid_for():
    """A depth that the bounds found leave no room for is cut, not refused after the bounds were charged."""
    values = np.random.default_rng(0).integers(0, 3, (5_000, 1))
    schema = sp.Schema({"n": sp.Integer(bounds="private")})
    model = sp.PaperTreeSynthesizer(4, h=12, h_prime=15, bounds_share="0.5").fit(values, schema)
    assert model.schema_["n"].high < 2**10
    assert model.plan_.max_depth < 12
    again = sp.KDTreeSynthesizer(4, max_depth=15, bounds_share="0.5").fit(values, schema)
    assert again.plan_.max_depth < 12


@pytest.mark.parametrize("bounds", ["private", "from-data-not-private"])
@pytest.mark.parametrize(
    "model",
    [sp.PaperTreeSynthesizer(s2=1), sp.PaperTreeSynthesizer(s1=4), sp.GridSynthesizer(bin_width=2)],
    ids=repr,
)
def test_lengths_wait_for_bounds(model, bounds):
    """Lengths in units of a column are refused while its bounds are to be found, and nothing is spent."""
    ledger = sp.Ledger(limit=1)
    with pytest.raises(ParameterError, match="measured in units of the columns"):
        model.fit(np.ones((10, 1)), sp.Schema({"x": sp.Real(bounds=bounds)}), ledger=ledger)
    assert ledger.events == ()


def test_impossible_sizes_are_refused_before_bounds_are_paid_for():
    """A plan that would drown in empty bins costs nothing, private bounds or not."""
    ledger = sp.Ledger(limit=1)
    schema = sp.Schema({name: sp.Real(bounds="private") for name in "abc"})
    with pytest.raises(BudgetError, match="empty bins"):
        sp.PaperTreeSynthesizer(h=40, t=1).fit(np.ones((10, 3)), schema, ledger=ledger)
    assert ledger.events == ()


def test_days_before_the_calendar_are_moved_into_it():
    """Values before the year 1, which a day column can hold, cost their share and give bounds, not an error."""
    days = pa.table({"d": pa.array([-(2**21) + 5] * N, type=pa.int32()).cast(pa.date32())})
    model = sp.KDTreeSynthesizer(4, bounds_share="0.5").fit(days, sp.Schema({"d": sp.Date(bounds=PAID)}))
    assert model.schema_["d"].low == date(1, 1, 1)


def test_data_beyond_the_calendar_have_no_bounds_to_read_off():
    """UTC's last hours are in the year 10000 in Tokyo: a refusal that names the column, not the value."""
    moments = pa.array([0, 253402300799 * 10**6] * 10, pa.timestamp("us", "Asia/Tokyo"))
    column = sp.Datetime(bounds="from-data-not-private", timezone="Asia/Tokyo")
    with pytest.raises(InputError, match="'at' goes beyond the years 1 to 9999; state its bounds") as caught:
        sp.KDTreeSynthesizer().fit(pa.table({"at": moments}), sp.Schema({"at": column}))
    assert "2534" not in str(caught.value)
