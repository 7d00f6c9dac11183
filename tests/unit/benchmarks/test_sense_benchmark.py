"""The benchmark of single rows: made tables are what they say, limits are missed where they are, runs go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.sense import __main__ as benchmark
from benchmarks.sense.limits import lines, shown, verdicts
from benchmarks.sense.made import MADE
from benchmarks.sense.tables import BIRTHS, HELD_OUT, judged

import spinney as sp
from spinney.metrics import sense

N = 20_000


@pytest.mark.parametrize("name", list(MADE))
def test_made_tables_are_drawn_from_their_seed_and_fit_their_schemas(name):
    """Rules hold in every row, though schemas state them only when asked."""
    make, *_ = MADE[name]
    made = make(N)
    assert made.frame.equals(make(N).frame)
    schema = sp.Schema(made.columns, rules=made.rules)
    found = sense(made.frame, made.frame, schema)
    assert all(lag.broken.real == 0 for lag in found.lags)
    assert judged(name, None, is_stated=False, most_rows=100).schema.rules == ()
    stated = judged(name, None, is_stated=True, most_rows=100)
    assert stated.schema.rules == tuple(made.rules)
    assert (stated.fitted.height, stated.held_back.height) == (100, 100)
    for column, kind in made.columns.items():  # bounds hold all values, so that nothing is moved
        if isinstance(kind, sp.Integer | sp.Real | sp.Date):
            values = made.frame[column]
            assert kind.low <= values.min() <= values.max() <= kind.high, column


def test_loans_have_the_relations_they_are_made_for():
    found = sense(frame := MADE["loans"][0](N).frame, frame, sp.Schema(MADE["loans"][0](1).columns))
    shares = {(one.column, one.base, one.percent): one.shares.real for one in found.related}
    assert shares["paid_out", "approved", 100] == pytest.approx(0.77, abs=0.015)
    whole = sum(shares["guaranteed", "approved", percent] for percent in (50, 75, 80, 85, 90))
    assert whole == pytest.approx(0.88, abs=0.02)
    grain = {one.column: one.multiples for one in found.grain}["approved"]
    assert (grain[100].real, grain[1000].real) == pytest.approx((0.985, 0.9), abs=0.015)
    assert [one.weekends.real for one in found.days] == [0, 0]
    assert found.days[1].month_ends.real > 0.4
    assert [(one.columns, one.values) for one in found.codes] == [(("jobs_created",), ("8800",))]


def test_credit_has_codes_that_come_together():
    make = MADE["credit"][0]
    frame = make(120_000).frame
    found = sense(frame, frame, sp.Schema(make(1).columns))
    assert [(one.columns, one.rows.real) for one in found.together] == [(("late_30", "late_90", "late_60"), 209)]
    assert 50_000 * frame["income"].median() < 540_000_000
    assert (frame["usage"] == 0.9999999).mean() == pytest.approx(0.067, abs=0.01)


def figures(**changed: Any) -> dict[str, Any]:
    """Figures of a release that keeps every limit."""

    def both(real: float, synthetic: float) -> dict[str, float]:
        return {"real": real, "synthetic": synthetic}

    found: dict[str, Any] = {
        "related": [{"column": "b", "base": "a", "percent": 100, "shares": both(0.7, 0.69)}],
        "grain": [{"column": "a", "step": 1.0, "multiples": {"100": both(0.9, 0.89)}, "distinct": both(50, 60)}],
        "days": [{"column": "d", "weekends": both(0, 0.004), "month_ends": both(0.5, 0.49)}],
        "lags": [
            {
                "column": "d", "other": "e", "is_stated": True, "median": both(80, 82), "most_90": both(100, 96),
                "most_99": both(200, 900), "longest": both(500, 700), "broken": both(0, 0),
            }
        ],
        "codes": [{"columns": ["c"], "values": ["98"], "rows": both(200, 250)}],
        "together": [{"columns": ["c", "a"], "values": [], "rows": both(200, 130)}],
    }  # fmt: skip
    ks = {"a": 0.004, "b": 0.004, "c": 0.3, "d": 0.004}
    columns = {
        name: {"ks": distance, "spread": 1.2, "mean_real": 100.0, "mean": 100.5} for name, distance in ks.items()
    }
    whole = {"columns": columns, "lost": 0, "auc": both(0.9, 0.8), "fit_seconds": 1.0, "sample_seconds": 1.0}
    for name, value in changed.items():
        part = found if name in found else whole
        if name == "columns":
            columns |= {column: columns[column] | new for column, new in value.items()}
        elif name in found:
            part[name] = [part[name][0] | {key: both(*new) for key, new in value.items()}]
        else:
            part[name] = value
    return {"sense": found, **whole}


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"related": {"shares": (0.7, 0.67)}}, ["share b = a"]),
        ({"grain": {"distinct": (50, 80)}}, ["distinct values a"]),
        ({"days": {"weekends": (0, 0.006), "month_ends": (0.5, 0.4)}}, ["weekends d", "month ends d"]),
        ({"lags": {"median": (80, 85), "most_90": (100, 95)}}, ["lag median d to e", "lag 90 % d to e"]),
        ({"lags": {"longest": (500, 751), "broken": (0, 0.01)}}, ["lag longest d to e", "order broken d to e"]),
        ({"codes": {"rows": (200, 261)}}, ["rows with code 98 c"]),
        ({"together": {"rows": (200, 119)}}, ["rows with codes in c, a"]),
        ({"columns": {"a": {"ks": 0.006}, "d": {"mean": 102.0, "spread": 0.6}}}, ["KS a", "mean d", "sd ratio d"]),
        ({"columns": {"c": {"ks": 0.9}}}, []),  # neither related nor ordered
        ({"lost": 1}, ["values lost of the target"]),
    ],
)
def test_a_limit_is_missed_by_the_figure_that_is_off(changed, missed):
    found = list(lines(figures(**changed)))
    assert [line.what for line in found if line.is_met is False] == missed
    assert len([line for line in found if line.is_met is not None]) > 15


def test_verdicts_are_of_all_releases_and_count_those_that_miss():
    outcomes = [{"table": "t", "figures": figures()}, {"table": "t", "figures": figures(lost=3)}]
    by_name = {one.what: one for one in verdicts(outcomes)}
    lost = by_name["values lost of the target"]
    assert (lost.synthetic, lost.worst, lost.n_missed, lost.n_releases) == (1.5, (0, 3), 1, 2)
    page = shown(verdicts(outcomes))
    assert "MISSED in 1" in page
    assert page.endswith(f"{sum(bool(one.wanted) for one in by_name.values()) - 1} of 20 limits kept")
    assert json.dumps([asdict(one) for one in verdicts(outcomes)])


def test_births_are_coarsened_to_32_weights(tmp_path: Path):
    rng = np.random.default_rng(0)
    n = 500
    rows = {
        "mother_age": rng.integers(12, 51, n),
        "parity": rng.integers(1, 20, n),
        "gestation_week": rng.integers(17, 48, n),
        "is_female": rng.random(n) < 0.5,
        "birth_weight": rng.integers(227, 8_000, n),
        "date_of_birth": np.datetime64("2019-01-15") + rng.integers(0, 300, n).astype("timedelta64[D]"),
    }
    pl.DataFrame(rows).write_parquet(tmp_path / f"{BIRTHS}.parquet")
    table = judged(BIRTHS, tmp_path, is_stated=False)
    weight = table.schema["birth_weight"]
    assert isinstance(weight, sp.Integer)
    assert len(range(weight.low, weight.high + 1, weight.step)) == 32
    assert set(table.fitted["birth_weight"]) <= set(range(1_400, 4_501, 100))
    assert set(table.fitted["parity"]) == {"1", "2", "4", "7", "11"}
    assert table.lost_of == table.target == "birth_weight"
    sense(table.fitted, table.fitted, table.schema)  # every value is in the schema


def test_a_run_goes_on_where_another_stopped(tmp_path: Path, capsys, monkeypatch):
    made: list[tuple[str, int]] = []

    def release(table: Any, repetition: int, _: Any) -> dict[str, Any]:
        made.append((table.name, repetition))
        return figures()

    monkeypatch.setattr(benchmark, "_release", release)
    asked = ["--out", str(tmp_path), "--max-rows", "50"]
    assert benchmark.main([*asked, "--tables", "loans", "--releases", "1"]) == 0
    assert benchmark.main([*asked, "--tables", "loans,credit", "--releases", "2"]) == 0
    assert made == [("loans", 0), ("loans", 1), ("credit", 0), ("credit", 1)]
    assert benchmark.main([*asked, "--tables", "credit", "--releases", "1", "--stated"]) == 0
    assert made[4:] == [("credit", 0)]
    assert {one["table"] for one in json.loads((tmp_path / "sense.json").read_text())} == {"credit"}
    capsys.readouterr()
    assert benchmark.main([*asked, "--tables", "loens"]) == 2
    assert "no table 'loens'" in capsys.readouterr().err


def test_held_out_tables_are_measured_only_when_asked(tmp_path: Path, monkeypatch):
    made: list[str] = []

    def release(table: Any, *_: Any) -> dict[str, Any]:
        made.append(table.name)
        return figures()

    monkeypatch.setattr(benchmark, "_release", release)
    asked = ["--max-rows", "50", "--releases", "1"]
    benchmark.main(["--out", str(tmp_path / "a"), *asked])
    assert made == ["loans", "credit"]
    benchmark.main(["--out", str(tmp_path / "b"), *asked, "--held-out"])
    assert set(made[2:]) == {"loans", "credit", *HELD_OUT}
