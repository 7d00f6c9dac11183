"""Distances of columns see what is skewed, piled up or missing, in tables of every kind."""

from __future__ import annotations

import time as clock
from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney import metrics
from spinney.errors import InputError, SchemaError
from spinney.metrics.reading import Side, quantile_bins
from support import slow_metrics as twins

N = 20_000


def one(values, name: str = "x") -> pl.DataFrame:
    return pl.DataFrame({name: values})


def only(found: dict) -> float:
    (value,) = found.values()
    return value


# ------------------------------------------------------------------------------------------------ what was not seen


def debts(n: int, *, is_smeared: bool) -> np.ndarray:
    """A ratio with a median of 0.37 under a bound of a million, and what halving 20 times makes of it."""
    rng = np.random.default_rng(1 if is_smeared else 0)
    ratio = rng.lognormal(np.log(0.37), 1.2, n)
    return np.where(ratio < 1, rng.random(n), ratio) if is_smeared else ratio


def test_a_column_whose_mass_lies_in_one_equal_bin_is_seen():
    """Equal bins and parts of the range call a ruined debt ratio right; the distances by default do not."""
    schema = sp.Schema({"x": sp.Real(0, 1_000_000)})
    real, drawn = one(debts(N, is_smeared=False)), one(debts(N, is_smeared=True))
    assert only(metrics.total_variation(real, drawn, schema, scale="range")) < 0.00005
    assert only(metrics.wasserstein(real, drawn, schema, scale="range")) < 0.00005
    assert only(metrics.ks_distance(real, drawn, schema)) > 0.1
    assert only(metrics.total_variation(real, drawn, schema)) > 0.1
    assert only(metrics.wasserstein(real, drawn, schema)) > 0.05
    again = one(debts(N, is_smeared=False)[::-1].copy())
    assert only(metrics.total_variation(real, again, schema)) == 0


def test_a_pile_that_comes_back_beside_its_place_is_seen():
    """Zeros that return as small numbers change no equal bin, and KS hardly when few; the values say it."""
    rng = np.random.default_rng(0)
    real = np.where(rng.random(N) < 0.2, 0.0, rng.exponential(100, N))
    drawn = np.where(real == 0, rng.random(N) * 1e-3, real)
    schema = sp.Schema({"x": sp.Real(0, 10_000)})
    share = (real == 0).mean()
    assert only(metrics.total_variation(one(real), one(drawn), schema, scale="range")) == 0
    assert only(metrics.total_variation(one(real), one(drawn), schema)) == pytest.approx(share)
    assert only(metrics.ks_distance(one(real), one(drawn), schema)) == pytest.approx(share)
    assert only(metrics.zeros_off(one(real), one(drawn), schema)) == pytest.approx(share)
    assert only(metrics.common_values_kept(one(real), one(drawn), schema)) < 0.01
    assert only(metrics.wasserstein(one(real), one(drawn), schema)) == pytest.approx(share**2 / 2)


def test_what_a_wrong_bound_cuts_off_is_seen():
    """Real values beyond the bounds are compared as they are."""
    schema = sp.Schema({"x": sp.Real(0, 1)})
    real = np.linspace(0, 2, N)
    drawn = np.clip(real, 0, 1)
    assert only(metrics.ks_distance(one(real), one(drawn), schema)) == pytest.approx(0.5, abs=0.001)
    assert only(metrics.total_variation(one(real), one(drawn), schema, scale="range")) == 0
    assert only(metrics.total_variation(one(real), one(drawn), schema)) > 0.4


def test_pairs_and_triples_are_seen_where_the_mass_is():
    """Two skewed columns whose dependence is broken, and three of which only all together depend."""
    rng = np.random.default_rng(0)
    schema = sp.Schema({"x": sp.Real(0, 1e6), "y": sp.Real(0, 1e6)})
    x = rng.lognormal(0, 1, N)
    real, drawn = pl.DataFrame({"x": x, "y": x}), pl.DataFrame({"x": x, "y": rng.permutation(x)})
    assert only(metrics.total_variation(real, drawn, schema, ways=2, scale="range")) < 0.001
    assert only(metrics.total_variation(real, drawn, schema, ways=2)) > 0.8
    a, b, noise = rng.integers(0, 2, (3, N))
    schema = sp.Schema({name: sp.Boolean() for name in "abc"})
    real = pl.DataFrame({"a": a == 1, "b": b == 1, "c": (a ^ b) == 1})
    drawn = real.with_columns(c=noise == 1)
    assert max(metrics.total_variation(real, drawn, schema, ways=2).values()) < 0.03
    assert only(metrics.total_variation(real, drawn, schema, ways=3)) == pytest.approx(0.5, abs=0.02)


# ---------------------------------------------------------------------------------------------------- slow twins

numbers = st.lists(st.sampled_from([None, -2.0, 0.0, 0.5, 1.0, 1e9]) | st.floats(-3, 3, width=16), min_size=1)


@settings(deadline=None, max_examples=100)
@given(numbers, numbers)
def test_ks_agrees_with_its_twin(first, second):
    """Ties, nulls and values beyond the bounds, against shares counted at every value."""
    schema = sp.Schema({"x": sp.Real(-1, 1, nullable=True)})
    frames = [pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}) for values in (first, second)]
    assert only(metrics.ks_distance(*frames, schema)) == pytest.approx(twins.ks(first, second), abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=30))
def test_wasserstein_agrees_with_ranks(pairs):
    """Ranks among the real values, ties in the middle, matched in order."""
    first, second = map(list, zip(*pairs, strict=True))
    schema = sp.Schema({"x": sp.Integer(-3, 3)})
    found = only(metrics.wasserstein(one(first), one(second), schema))
    assert found == pytest.approx(twins.rank_distance(first, second), abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 40) | st.just(7), min_size=1, max_size=200), st.integers(1, 20))
def test_quantile_bins_hold_even_shares_and_piles_stand_alone(values, n_bins):
    """A pile is a bin of its own, bins without one hold at most two shares, and bins are in order."""
    side = Side(np.array(values), np.zeros(len(values), bool), None)
    bins = quantile_bins(side.distribution, n_bins)
    cells = bins.cells(side)
    order = np.argsort(values, kind="stable")
    assert (np.diff(cells[order]) >= 0).all()
    assert cells.max() < bins.size - 1
    for value in set(values):
        mine = cells[np.array(values) == value]
        share = len(mine) / len(values)
        assert len(set(mine.tolist())) == 1
        together = np.mean(cells == mine[0])
        if share > 1 / n_bins or len(set(values)) <= n_bins:
            assert together == share
        else:
            assert together <= 2.5 / n_bins
    beside = Side(np.array(values) + 0.25, side.is_null, None)
    if len(set(values)) <= n_bins:
        assert not set(bins.cells(beside).tolist()) & set(cells.tolist())


# ------------------------------------------------------------------------------------------------- every kind of column


def test_every_kind_of_column_and_frame():
    """Dates, times, datetimes, booleans, categories, nulls: rows against themselves, and against rows moved on."""
    days = [date(2020, 1, 1) + timedelta(days=i % 28) for i in range(56)]
    real = {
        "real": [i / 7 for i in range(56)],
        "whole": [i % 9 for i in range(56)],
        "day": [None if i % 8 == 0 else day for i, day in enumerate(days)],
        "at": [datetime(2020, 1, 1, i % 24, i % 60) for i in range(56)],
        "hour": [time(i % 24, 30) for i in range(56)],
        "is": [i % 3 == 0 for i in range(56)],
        "kind": [("a", "b", None)[i % 3] for i in range(56)],
    }
    schema = sp.Schema(
        {
            "real": sp.Real(0, 8),
            "whole": sp.Integer(0, 8),
            "day": sp.Date(date(2020, 1, 1), date(2020, 12, 31), nullable=True),
            "at": sp.Datetime(datetime(2020, 1, 1), datetime(2021, 1, 1)),
            "hour": sp.Time(),
            "is": sp.Boolean(),
            "kind": sp.Category(["a", "b"], nullable=True),
        }
    )
    moved = {name: values[28:] * 2 for name, values in real.items()}
    functions = (metrics.ks_distance, metrics.wasserstein, metrics.total_variation)
    for function in functions:
        assert set(function(pl.DataFrame(real), pl.DataFrame(real), schema).values()) == {0}
        found = function(pl.DataFrame(real), pl.DataFrame(moved), schema)
        assert list(found.values()) == pytest.approx(
            list(function(pa.table(real), pd.DataFrame(moved).astype({"day": object}), schema).values())
        )
        assert min(v for k, v in found.items() if k in ("real", ("real",))) > 0.2
    kept = metrics.common_values_kept(pl.DataFrame(real), pl.DataFrame(real), schema)
    assert list(kept) == list(schema)
    assert set(kept.values()) == {1}
    assert list(metrics.zeros_off(pl.DataFrame(real), pl.DataFrame(real), schema)) == ["real", "whole"]


def test_one_number_in_two_types_is_one_number():
    """float32 beside float64, integers beside floats, and decimals that floats hold only nearly."""
    cents = np.round(np.arange(1, 200) * 0.01, 2)
    schema = sp.Schema({"x": sp.Real(0, 10)})
    for table in (one(cents.astype(np.float32)), pa.table({"x": pa.array(cents.astype(np.float32))})):
        assert only(metrics.ks_distance(table, one(cents), schema)) == 0
        assert only(metrics.common_values_kept(one(cents), table, schema, least=0)) == 1
    schema = sp.Schema({"x": sp.Real(0, 10, multiple_of=0.01)})
    assert only(metrics.ks_distance(one(np.arange(1, 200) * 0.01), one(cents), schema)) == 0
    whole = sp.Schema({"x": sp.Integer(0, 10)})
    assert only(metrics.ks_distance(one([1, 2, 3]), one([1.0, 2.0, 3.0]), whole)) == 0


def test_identifiers_are_left_out():
    """Identifiers are made afresh, so there is nothing to compare."""
    schema = sp.Schema({"id": sp.Identifier(), "x": sp.Integer(0, 9)})
    frame = pl.DataFrame({"id": ["a", "b"], "x": [1, 2]})
    assert metrics.ks_distance(frame, frame, schema) == {"x": 0}
    assert metrics.total_variation(frame, frame, schema) == {("x",): 0}
    assert metrics.total_variation(frame, frame, schema, scale="range") == {("x",): 0}


def test_ignored_columns_are_left_out():
    """Synthetic rows do not have them; a copy of the real table does, and may be compared too."""
    schema = sp.Schema({"note": sp.Ignore(), "x": sp.Integer(0, 9)})
    real, drawn = pl.DataFrame({"note": ["a", "b"], "x": [1, 2]}), pl.DataFrame({"x": [1, 2]})
    for rows in (real, drawn):
        assert metrics.ks_distance(real, rows, schema) == {"x": 0}
    with pytest.raises((InputError, SchemaError), match="'x'"):
        metrics.ks_distance(real, pl.DataFrame({"y": [1, 2]}), schema)


def test_columns_without_piles_are_left_out():
    """The commonest values of a smooth column are no piles; they are looked at where `least` says so."""
    schema = sp.Schema({"x": sp.Real(0, 1)})
    real, drawn = one(np.linspace(0, 1, 500)), one(np.linspace(0, 1, 499))
    assert metrics.common_values_kept(real, drawn, schema) == {}
    assert only(metrics.common_values_kept(real, drawn, schema, least=0)) < 0.5
    assert metrics.METRICS["common_values_kept"](real, drawn, schema=schema) == 1


# ------------------------------------------------------------------------------------------------------------ one page


def test_compare_agrees_with_its_parts_and_says_what_it_is():
    """Every figure is that of its function; the page names the worst, and that it is not private."""
    rng = np.random.default_rng(0)
    schema = sp.Schema({"x": sp.Real(0, 1e6), "k": sp.Integer(0, 9), "c": sp.Category(["a", "b"])})
    tables = [
        pl.DataFrame(
            {"x": rng.lognormal(shift, 1, 500), "k": rng.integers(0, 10, 500), "c": rng.choice(["a", "b"], 500)}
        )
        for shift in (0, 1)
    ]
    found = metrics.compare(*tables, schema, ways=3)
    parts = {"ks": metrics.ks_distance, "wasserstein": metrics.wasserstein, "zeros_off": metrics.zeros_off}
    for name, function in parts.items():
        assert {
            column: getattr(each, name) for column, each in found.columns.items() if getattr(each, name) is not None
        } == function(*tables, schema)
    assert found.pairs == metrics.total_variation(*tables, schema, ways=2)
    assert found.triples == metrics.total_variation(*tables, schema, ways=3)
    assert found.columns["x"].total_variation == metrics.total_variation(*tables, schema)["x",]
    assert found.columns["x"].common_values_kept is None
    assert found.worst_ks == ("x", found.columns["x"].ks)
    assert found.mean_ks == metrics.METRICS["ks_distance"](*tables, schema=schema)
    page = str(found)
    assert "For the holder of the real table only" in page
    assert f"worst {found.columns['x'].ks:.4f} (x)" in page
    assert page.splitlines()[3].startswith("x ")
    assert metrics.compare(*tables, schema, ways=1).pairs == {}
    alone = sp.Schema({"k": schema["k"]})
    assert metrics.compare(tables[0].select("k"), tables[1].select("k"), alone).pairs == {}


def test_wide_tables_are_compared_in_seconds():
    """200,000 rows of 12 columns, pairs included: a fifth of what a million rows of thirty columns may take."""
    rng = np.random.default_rng(0)
    schema = sp.Schema({f"x{i}": sp.Real(0, 1e6) for i in range(12)})
    real, drawn = rng.lognormal(0, 1, (2, 200_000, 12))
    metrics.compare(real[:100], drawn[:100], schema)  # compile
    start = clock.perf_counter()
    metrics.compare(real, drawn, schema)
    assert clock.perf_counter() - start < 15
