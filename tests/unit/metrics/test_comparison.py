"""The page that compares two tables: means and spreads beside distances by rank."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import spinney as sp
from spinney import metrics
from spinney.metrics.compare import NOT_PRIVATE


def test_means_and_spreads_see_how_far_wrong_rows_lie():
    """One row in a thousand at ten thousand is nothing to KS, and a multiple of the standard deviation."""
    rng = np.random.default_rng(4)
    real = pd.DataFrame({"x": rng.gamma(2, 1, 5000), "c": "a"})
    wrong = real.copy()
    wrong.loc[:4, "x"] = 10_000.0
    found = metrics.compare(real, wrong, {"x": sp.Real(0, 1e5), "c": sp.Category(["a"])}, ways=1).columns
    assert found["x"].ks < 0.002
    assert found["x"].mean_off > 5
    assert found["x"].spread > 100
    assert found["c"].mean_off is None
    same = metrics.compare(real, real, {"x": sp.Real(0, 1e5), "c": sp.Category(["a"])}, ways=1).columns["x"]
    assert (same.mean_off, same.spread) == (0, 1)


def test_the_page_says_what_its_figures_of_moments_are():
    """In one line, where a column has them."""
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]})
    schema = sp.Schema({"x": sp.Real(0, 9), "c": sp.Category(["a", "b"])})
    assert "mean off by: synthetic less real, in real standard deviations" in str(metrics.compare(rows, rows, schema))
    assert "mean off by:" not in str(metrics.compare(rows[["c"]], rows[["c"]], sp.Schema({"c": schema["c"]})))


def made(equal: float, seed: int = 0) -> pd.DataFrame:
    """Amounts, of which so many are equal, a code, and two dates."""
    rng = np.random.default_rng(seed)
    asked = rng.integers(100, 900, 1_000) * 100
    paid = np.where(rng.random(1_000) < equal, asked, asked + 7)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, 1_000), unit="D")
    late = np.where(np.arange(1_000) < 30, 98, rng.integers(0, 5, 1_000))
    end = start + pd.to_timedelta(rng.integers(0, 9, 1_000), unit="D")
    return pd.DataFrame({"asked": asked, "paid": paid, "late": late, "start": start, "end": end})


MADE = sp.Schema(
    {
        **dict.fromkeys(("asked", "paid"), sp.Integer(0, 10**6)),
        "late": sp.Integer(0, 100),
        **dict.fromkeys(("start", "end"), sp.Date("2024-01-01", "2024-12-31")),
    }
)


def test_the_page_shows_single_rows_and_says_for_whom():
    """As text, in notebooks and as plain data; the real rows under a mark of their own."""
    real, drawn = made(0.8), made(0.3, seed=1)
    found = metrics.compare(real, drawn, MADE)
    assert found.sense is not None
    shares = found.sense.related[0].shares
    page, html = str(found), found._repr_html_()
    assert html is not None
    assert page.startswith(NOT_PRIVATE)
    assert max(map(len, page.splitlines())) <= 100
    for shown in (page, html):
        assert "FOR THE HOLDER ONLY" in shown
        for title in ("equal or proportional", "round numbers", "dates", "how far apart", "rows with codes"):
            assert title in shown, title
        assert f"{100 * shares.real:.2f} %" in shown
        assert f"{100 * shares.synthetic:.2f} %" in shown
        for row in found.sense.to_dict()["rows"]["real"]:
            assert set(row.values()) <= set(shown.replace("<", " ").replace(">", " ").split())
    assert page.index("real rows, FOR THE HOLDER ONLY") < page.index("  synthetic rows")
    plain = found.to_dict()
    assert plain["not_private"] == NOT_PRIVATE
    assert plain["sense"] == found.sense.to_dict()
    assert json.dumps(plain["sense"])
    weights = np.full(1_000, 1 / 1_000)
    without = metrics.compare(real, drawn, MADE, synthetic_weights=weights)
    assert without.to_dict()["sense"] is None
    assert "FOR THE HOLDER ONLY" not in str(without)


def test_common_values_stand_side_by_side():
    """In one line of text, and as a table each in notebooks; null is a value."""
    schema = sp.Schema({"x": sp.Integer(0, 9, nullable=True)})
    real, drawn = (pd.DataFrame({"x": values}) for values in ([1, 1, 1, None], [2, 1, 2, 2]))
    found = metrics.compare(real, drawn, schema, ways=1)
    assert "x: 1=75.00|25.00, 2=0.00|75.00, -=25.00|0.00" in str(found)
    assert found.sense is not None
    assert [table.rows for table in found.sense.common_tables()] == [
        [("1", "75.00 %", "25.00 %"), ("2", "0.00 %", "75.00 %"), ("-", "25.00 %", "0.00 %")]
    ]


def test_hostile_names_and_values_are_escaped_where_single_rows_are_shown():
    """No letter that turns a line around, no mark-up, and long values are cut."""
    name = "<b>x\u202e"
    rows = pd.DataFrame({name: ["<i>y\u202e" + "z" * 100, "b"]})
    schema = sp.Schema({name: sp.Category(list(rows[name]))})
    found = metrics.compare(rows, rows, schema, ways=1)
    page, html = str(found), found._repr_html_()
    assert html is not None
    for shown in (page, html):
        assert "\u202e" not in shown
        assert "z" * 100 not in shown
    assert "<b>" not in html
    assert "<i>" not in html
