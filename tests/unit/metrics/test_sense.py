"""Figures of single rows: counted as by hand, the same for all frames, and silent where nothing is to be seen."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spinney as sp
from spinney import metrics
from spinney.errors import InputError
from spinney.metrics.sense import MULTIPLES, Both, Codes, Common, Related, _percents, sense
from support.slow_metrics import percents

N = 2_000
LOANS = sp.Schema(
    {
        "asked": sp.Integer(0, 10**7),
        "paid": sp.Integer(0, 10**7),
        "backed": sp.Integer(0, 10**7),
        "fee": sp.Real(0, 10**5, multiple_of=0.01),
        "kind": sp.Category(["a", "b"]),
    }
)


def loans(equal: float, half: float, seed: int = 0) -> pl.DataFrame:
    """Amounts of which so many are the same, and so many half of another."""
    rng = np.random.default_rng(seed)
    asked = rng.integers(50, 5_000, N) * 100
    paid = np.where(np.arange(N) < equal * N, asked, rng.integers(10_000, 500_000, N))
    backed = np.where(np.arange(N) >= (1 - half) * N, asked // 2, rng.integers(10_000, 500_000, N))
    fee = rng.integers(100, 9_999, N) / 100
    return pl.DataFrame({"asked": asked, "paid": paid, "backed": backed, "fee": fee, "kind": ["a", "b"] * (N // 2)})


def test_equal_and_proportional_columns_are_found_with_their_shares():
    """Of a column of another step nothing is said: cents and euros are not of one kind."""
    found = sense(loans(0.75, 0.4), loans(0.25, 0.4, seed=1), LOANS)
    shares = {(one.column, one.base, one.percent): one.shares for one in found.related}
    equal = [both for (column, base, percent), both in shares.items() if {column, base} == {"asked", "paid"}]
    assert equal == [pytest.approx(Both(0.75, 0.25), abs=0.002)]
    half = [(name, both) for name, both in shares.items() if set(name[:2]) == {"asked", "backed"}]
    assert half == [(("backed", "asked", 50), pytest.approx(Both(0.4, 0.4), abs=0.002))]
    assert "fee" not in {name for key in shares for name in key[:2]}
    assert list(shares.values()) == sorted(shares.values(), key=lambda both: -max(both))


def test_relations_that_only_synthetic_rows_have_are_shown():
    found = sense(loans(0, 0), loans(0.5, 0, seed=1), LOANS).related
    assert [(one.percent, round(one.shares.synthetic, 2)) for one in found] == [(100, 0.5)]
    assert sense(loans(0, 0), loans(0, 0, seed=1), LOANS).related == []


def test_what_is_equal_by_chance_is_no_relation():
    """Two small numbers are equal in a third of the rows; zeros and nulls are equal by being nothing."""
    rng = np.random.default_rng(0)
    schema = sp.Schema(dict.fromkeys("xyz", sp.Integer(0, 9, nullable=True)))
    rows = pl.DataFrame({"x": rng.integers(1, 4, N), "y": rng.integers(1, 4, N), "z": [0, None] * (N // 2)})
    assert sense(rows, rows, schema).related == []
    same = rows.with_columns(y=pl.when(pl.int_range(N) < N // 2).then("x").otherwise("y"))
    assert [(one.percent, {one.column, one.base}) for one in sense(rows, same, schema).related] == [(100, {"x", "y"})]
    nothing = rows.with_columns(x=pl.lit(0), y=pl.lit(0))
    assert sense(nothing, nothing, schema).related == []


def test_dates_can_be_equal_and_are_no_percentage_of_each_other():
    days = [date(2020, 1, 1) + timedelta(days=number % 300) for number in range(N)]
    rows = pl.DataFrame({"a": days, "b": days})
    schema = sp.Schema(dict.fromkeys("ab", sp.Date("2020-01-01", "2020-12-31")))
    assert sense(rows, rows, schema).related == [Related("b", "a", 100, Both(1.0, 1.0))]


@pytest.mark.parametrize("has_steps", [True, False])
def test_percentages_are_those_of_exact_arithmetic(has_steps):
    rng = np.random.default_rng(3)
    base = rng.integers(-40_000, 40_000, 3_000).astype(float)
    exact = np.rint(base * rng.integers(1, 210, 3_000) / 100)
    x = np.where(rng.random(3_000) < 0.6, exact, exact + rng.integers(-2, 3, 3_000))
    x[:50], base[40:90] = np.nan, 0.0
    counts, chances = _percents(x, base, True, has_steps)
    assert counts.tolist() == percents(x.tolist(), base.tolist(), has_steps)
    assert counts.sum() > 500 if has_steps else counts.sum() > 20
    assert chances[100] == 0
    assert (chances >= 0).all()


def test_grain_counts_multiples_of_steps():
    """Multiples that are not small beside the values are left out, and so are numbers without steps."""
    schema = sp.Schema(
        {
            "euros": sp.Integer(0, 10**6),
            "cents": sp.Real(0, 1e4, multiple_of=0.01),
            "few": sp.Integer(0, 9),
            "x": sp.Real(0, 1),
        }
    )
    real = {"euros": [1_000, 2_000, 2_100, 30] * 5, "cents": [100.0, 25.5, 25.55, 0.1] * 5, "few": [1, 2, 3, 4] * 5}
    drawn = {"euros": [1_003, 2_000, 2_100, 31] * 5, "cents": [100.0, 25.5, 25.55, 0.11] * 5, "few": [1, 1, 1, 1] * 5}
    found = sense(*(pl.DataFrame(side | {"x": [0.5, 0.25, 0.1, 0.2] * 5}) for side in (real, drawn)), schema).grain
    grain = {one.column: one for one in found}
    assert set(grain) == {"euros", "cents", "few"}
    assert grain["euros"].multiples == {10: Both(1, 0.5), 100: Both(0.75, 0.5), 1_000: Both(0.5, 0.25)}
    assert grain["cents"].multiples == {10: Both(0.75, 0.5), 100: Both(0.25, 0.25), 1_000: Both(0.25, 0.25)}
    assert (grain["few"].multiples, grain["few"].distinct) == ({}, Both(4, 1))
    assert grain["cents"].step == 0.01
    assert MULTIPLES == (10, 100, 1_000)


def test_dates_know_weekends_and_ends_of_months():
    schema = sp.Schema({"day": sp.Date("2024-01-01", "2024-12-31", nullable=True)})
    real = pl.DataFrame({"day": [date(2024, 2, 29), date(2024, 2, 28), date(2024, 3, 29), None]})
    drawn = pl.DataFrame({"day": [date(2024, 3, 30), date(2024, 3, 31), date(2024, 4, 1), date(2024, 4, 30)]})
    (found,) = sense(real, drawn, schema).days
    assert found.weekends == Both(0, 0.5)
    assert found.month_ends == pytest.approx(Both(1 / 3, 0.5))


def test_moments_lie_on_the_days_of_their_own_clocks():
    """At 23:30 UTC on a Friday it is Saturday in Berlin."""
    moments = pl.DataFrame({"at": pl.Series([datetime(2024, 3, 1, 23, 30)] * 4).dt.replace_time_zone("UTC")})
    for timezone, weekends in (("UTC", 0), ("Europe/Berlin", 1)):
        schema = sp.Schema({"at": sp.Datetime("2024-01-01", "2024-12-31", timezone=timezone)})
        assert sense(moments, moments, schema).days[0].weekends == Both(weekends, weekends)


def test_lags_of_stated_and_of_seen_orders():
    """A rule is looked at whatever the rows say; dates where nearly all real rows agree; other dates not at all."""
    start = [date(2020, 1, 1) + timedelta(days=number) for number in range(100)]
    end = [day + timedelta(days=number) for number, day in enumerate(start)]
    wrong = [day - timedelta(days=1) for day in start[:10]] + end[10:]
    schema = sp.Schema(
        {
            **dict.fromkeys(("start", "end", "other"), sp.Date("2019-01-01", "2021-12-31")),
            "x": sp.Integer(0, 9),
            "y": sp.Integer(0, 9),
        },
        rules=[sp.AtMost("x", "y")],
    )
    rows = {"start": start, "other": start[::-1], "x": [1] * 100, "y": [3] * 100}
    found = sense(pl.DataFrame(rows | {"end": end}), pl.DataFrame(rows | {"end": wrong}), schema).lags
    assert [(one.column, one.other, one.is_stated) for one in found] == [("x", "y", True), ("start", "end", False)]
    assert found[0].median == Both(2, 2)
    assert found[1].longest == Both(99, 99)
    assert found[1].broken == Both(0, 0.1)
    assert found[1].median == Both(49.5, 49.5)
    assert found[1].most_90 == pytest.approx(Both(89.1, 89.1))


def test_numbers_of_other_steps_are_in_order_but_for_rounding():
    """7 hundredths are 0.07000000000000001 as floats, which is not above 0.07."""
    schema = sp.Schema({"cents": sp.Real(0, 9, multiple_of=0.01), "x": sp.Real(0, 9)}, rules=[sp.AtMost("cents", "x")])
    rows = pl.DataFrame({"cents": [0.07, 0.29, 0.57, 1.13], "x": [0.07, 0.29, 0.57, 1.12]})
    assert any(number * 0.01 > number / 100 for number in (7, 29, 57))
    (found,) = sense(rows, rows, schema).lags
    assert found.broken == Both(0.25, 0.25)
    early, late = datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 12, 0, 0, 1)  # a microsecond is not rounding
    moments = sp.Schema(dict.fromkeys("ab", sp.Datetime("2024-01-01", "2024-12-31")), rules=[sp.AtMost("a", "b")])
    both = pl.DataFrame({"a": [early, late], "b": [late, early]})
    assert sense(both, both, moments).lags[0].broken == Both(0.5, 0.5)


def test_codes_are_few_values_with_many_rows_far_out():
    rng = np.random.default_rng(0)
    late = rng.poisson(0.5, (2, N))
    late[:, :40] = 98
    days = np.where(np.arange(N) >= N - 30, -90, rng.integers(0, 40, N))
    income = rng.lognormal(8, 1.5, N).round()
    schema = sp.Schema(
        {
            **dict.fromkeys(("late", "later"), sp.Integer(0, 100)),
            "days": sp.Integer(-100, 99),
            "income": sp.Integer(0, 10**7),
            "flag": sp.Integer(0, 1),
        }
    )
    rows = pl.DataFrame({"late": late[0], "later": late[1], "days": days, "income": income, "flag": np.arange(N) % 2})
    drawn = rows.with_columns(later=pl.col("later").shuffle(seed=0))[: N // 2]
    found = sense(rows, drawn, schema)
    codes = {one.columns: one for one in found.codes}
    assert {name: one.values for name, one in codes.items()} == {
        ("late",): ("98",),
        ("later",): ("98",),
        ("days",): ("-90",),
    }
    assert codes["late",].rows == Both(40, 80)  # for as many rows as the real table has
    assert codes["days",].rows == Both(30, 0)
    (joint,) = found.together
    assert joint.columns == ("late", "later")
    assert joint.rows.real == 40
    assert joint.rows.synthetic <= 10
    assert sense(rows, rows, schema).together == [Codes(("late", "later"), (), Both(40, 40))]


def test_common_values_are_those_of_either_table():
    schema = sp.Schema({"x": sp.Integer(0, 99, nullable=True), "kind": sp.Category(["a", "b"])})
    real = pl.DataFrame({"x": [5, 5, 5, None], "kind": ["a", "a", "a", "b"]})
    drawn = pl.DataFrame({"x": [7, 7, 7, 5], "kind": ["b"] * 4})
    found = sense(real, drawn, schema).common
    assert set(found["x"]) == {Common("5", Both(0.75, 0.25)), Common("7", Both(0, 0.75)), Common(None, Both(0.25, 0))}
    assert found["kind"] == [Common("b", Both(0.25, 1)), Common("a", Both(0.75, 0))]
    many = pl.DataFrame({"x": list(range(99)), "kind": ["a"] * 99})
    assert len(sense(many, many, schema).common["x"]) == 20


def test_shown_rows_are_rows_of_the_tables():
    real, drawn = loans(0.5, 0.5), loans(0.5, 0.5, seed=1)
    rows = sense(real, drawn, LOANS).to_dict()["rows"]
    for side, table in (("real", real), ("synthetic", drawn)):
        written = {
            tuple(f"{value:.10g}" if isinstance(value, float) else str(value) for value in row) for row in table.rows()
        }
        assert len(rows[side]) == 5
        assert {tuple(row.values()) for row in rows[side]} <= written
    few = sense(real[:2], drawn, LOANS).to_dict()["rows"]
    assert [len(few[side]) for side in ("real", "synthetic")] == [2, 5]


def test_a_repr_holds_no_rows_and_no_values():
    real = loans(0.5, 0.5).with_columns(asked=pl.lit(7_654_321))
    assert "7654321" in json.dumps(sense(real, real, LOANS).to_dict())
    assert "7654321" not in repr(sense(real, real, LOANS))


@pytest.mark.parametrize("made", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, lambda rows: rows.lazy().collect()])
def test_all_frames_agree(made):
    real, drawn = loans(0.5, 0.5), loans(0.25, 0.5, seed=1)
    assert sense(made(real), made(drawn), LOANS).to_dict() == sense(real, drawn, LOANS).to_dict()


def test_tables_in_which_nothing_can_be_seen():
    """One row, and columns of nulls alone."""
    schema = sp.Schema(
        {
            "x": sp.Integer(0, 9, nullable=True),
            "y": sp.Integer(0, 9, nullable=True),
            "day": sp.Date("2020-01-01", "2020-12-31", nullable=True),
            "later": sp.Date("2020-01-01", "2020-12-31", nullable=True),
        },
        rules=[sp.AtMost("x", "y")],
    )
    row = pd.DataFrame({"x": [None], "y": [1], "day": [None], "later": [None]})
    found = sense(row, row, schema)
    assert (found.related, found.days, found.lags, found.codes, found.together) == ([], [], [], [], [])
    assert found.common["x"] == [Common(None, Both(1, 1))]
    with pytest.raises(InputError, match="real has no rows"):
        sense(row[:0], row, schema)


def test_the_comparison_has_them_unless_rows_have_weights():
    real, drawn = loans(0.5, 0.5), loans(0.25, 0.5, seed=1)
    found = metrics.compare(real, drawn, LOANS, ways=1)
    assert found.sense is not None
    assert found.sense.to_dict() == metrics.sense(real, drawn, LOANS).to_dict()
    shares = np.full(N, 1 / N)
    assert metrics.compare(real, drawn, LOANS, ways=1, real_weights=shares).sense is None
