"""Figures of the real table for the holder's report: the same as `compare` has, and real rows counted bar by bar."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.metrics import beside, compare
from spinney.metrics.compare import real_bars, table_beside
from support.small_forests import SCHEMA, table

ROWS = pa.table(
    {
        "kind": ["a", "b", "b", None],
        "age": [1, 5, 9, 200],
        "on": [True, False, True, True],
        "day": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 2, 1), date(2020, 2, 2)],
        "size": [0.0, 0.5, 0.999, 1.0],
    }
)
BARS = sp.Schema(
    {
        "kind": sp.Category(["a", "b", "c"], nullable=True),
        "age": sp.Integer(0, 99),
        "on": sp.Boolean(),
        "day": sp.Date("2020-01-01", "2020-12-31"),
        "size": sp.Real(0, 1),
    }
)


def test_bars_hold_the_rows_of_their_value_or_range() -> None:
    """Values beyond a bound count at it, as in a fit; null has a bar of its own."""
    cuts = {
        "kind": ["a", "b", "c", None],
        "age": [(0, 4), 5, (6, 99)],
        "on": [False, True],
        "day": [(date(2020, 1, 1), date(2020, 1, 31)), (date(2020, 2, 1), date(2020, 12, 31))],
        "size": [(0.0, np.nextafter(0.5, 0)), (0.5, 1.0)],
    }
    assert real_bars(ROWS, BARS, cuts) == {
        "kind": [1, 2, 0, 1],
        "age": [1, 1, 2],
        "on": [1, 3],
        "day": [2, 2],
        "size": [1, 3],
    }
    shares = real_bars(ROWS, BARS, {"t.on": [False, True]}, as_shares=["t.on"], prefix="t.")
    assert shares == {"t.on": [0.25, 0.75]}


def test_bars_of_a_report_hold_all_rows() -> None:
    rows = table(500)
    model = sp.ForestSynthesizer("2").fit(rows, SCHEMA)
    contents = model.report()
    for name, counts in real_bars(rows, SCHEMA, contents.cuts).items():
        assert sum(counts) == 500, name


def test_distances_are_those_of_compare() -> None:
    real, synthetic = table(400), table(300)
    found, page = table_beside(real, synthetic, SCHEMA), compare(real, synthetic, SCHEMA)
    assert found["mean_ks"] == page.mean_ks
    assert {column["name"]: column["ks"] for column in found["columns"]} == {
        name: column.ks for name, column in page.columns.items()
    }
    assert page.sense is not None
    assert found["sense"] == page.sense.to_dict()
    assert {tuple(pair["columns"]): pair["total_variation"] for pair in found["pairs"]} == dict(page.pairs)
    assert (found["n_real"], found["n_synthetic"]) == (400, 300)
    assert found["trained"] is None


def test_classifiers_are_trained_where_there_is_a_target() -> None:
    pytest.importorskip("sklearn")
    found = table_beside(table(600), table(500), SCHEMA, target="label", unseen=table(300))
    assert found["trained"]["target"] == "label"
    assert min(found["trained"]["synthetic"].values()) > 0.9
    assert "has not seen" in found["trained"]["note"]
    halves = table_beside(table(600), table(500), SCHEMA, target="label")
    assert "has seen" in halves["trained"]["note"]
    other = table_beside(table(100), table(100), SCHEMA, target="kind")
    assert other["trained"] is None
    assert "two values" in other["not_trained"]


def test_a_report_beside_the_real_table_is_for_the_holder() -> None:
    rows = table(500)
    model = sp.ForestSynthesizer("2").fit(rows, SCHEMA)
    report = model.report()
    made = beside(report, rows, model.sample(500, seed=0), model.schema_)
    assert report.publishable
    assert not made.publishable
    assert made.to_dict()["holder"]["tables"][0]["n_real"] == 500
    assert sum(made.to_dict()["holder"]["bars"]["label"]) == 500
