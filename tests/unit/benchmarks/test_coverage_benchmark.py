"""The benchmark of coverage: its truths are right, it goes on where it stopped, and a wrong interval shows."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.coverage.__main__ import main
from benchmarks.coverage.questions import Pool, Question
from benchmarks.coverage.results import Results, rows_summary, share_of, summary, to_json, values_summary
from benchmarks.coverage.tables import MADE_TREE, persons_frame, population
from benchmarks.coverage.trials import Bars, Judged, Outcome, Rows, Tally, Trial, ranges, tally
from benchmarks.coverage.truths import Truth, Truths, interval_width, least_squares
from benchmarks.people.tables import KEY, People, PeopleTable

import spinney as sp

SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 50),
        "sex": sp.Category(["a", "b"]),
        "pay": sp.Real(0, 10, nullable=True),
        "on": sp.Date("2020-01-01", "2020-12-31"),
        "is_new": sp.Boolean(),
    }
)
FRAME = pl.DataFrame(
    {
        "age": [10, 20, 30, 70],
        "sex": ["a", "b", "a", "b"],
        "pay": [1.0, 2.0, None, 40.0],
        "on": [datetime.date(2020, month, 1) for month in (1, 2, 3, 4)],
        "is_new": [True, False, True, True],
    }
)
NO_TALLY = Tally("values", "auto", "table", "certified", 0.95, *(0,) * 7, None)


def an_outcome(repetition: int, *tallies: Tally, rows: tuple[Rows, ...] = (), questions: Any = ()) -> Outcome:
    trial = Trial("adult", "replace-one", "1", repetition)
    return Outcome(trial, tallies, rows, tuple(questions), 1.0, 2.0, "0")


def of_statement(statement: str, n: int, n_held: int, **changes: Any) -> Tally:
    return replace(NO_TALLY, kind="ranges", statement=statement, n=n, n_barred=n, n_held=n_held, **changes)


def verdict(statement: str, held: list[int], n: int, **changes: Any) -> str:
    """What is said of a cell of as many releases, each with n intervals of which so many held."""
    tallies = [of_statement(statement, n, good, **changes) for good in held]
    [cell] = summary([an_outcome(number, one) for number, one in enumerate(tallies)])
    return str(cell["verdict"])


def test_truths_are_those_of_the_rows() -> None:
    """Values beyond a bound count as the bound, nulls have no mean, counts are scaled to the table's size."""
    double, truths = Truths(FRAME, SCHEMA, n_rows=8), Truths(FRAME, SCHEMA)
    assert double.of(Question("", "count", where={"age": (20, 50), "sex": "b"})) == Truth(4.0, 2**0.5)
    assert truths.of(Question("", "mean", "pay", {"sex": "b"})).value == 6.0
    assert truths.of(Question("", "quantile", "age", at=0.5)).value == 20.0
    assert truths.of(Question("", "proportion", where={"sex": "b"}, given={"is_new": True})).value == 1 / 3
    days = (datetime.date(2020, 2, 1), datetime.date(2020, 3, 1))
    assert truths.of(Question("", "count", where={"on": days})).value == 2
    assert np.isnan(truths.of(Question("", "mean", "pay", {"age": (30, 30)})).value)


def test_coefficients_are_those_of_least_squares() -> None:
    frame = pl.DataFrame({"age": [0, 1, 2, 3] * 5, "sex": ["a", "b"] * 10})
    frame = frame.with_columns(pay=1 + 0.5 * pl.col("age") + 2 * (pl.col("sex") == "b"))
    found = least_squares("pay ~ age + sex", frame, SCHEMA)
    assert {name: round(true.value, 9) for name, true in found.items()} == {"Intercept": 1, "age": 0.5, "sex[b]": 2}


def test_intervals_that_miss_are_narrow_or_have_no_width_are_counted() -> None:
    ends = ((4, 6), (4.2, 9.8), (5.5, 6), (5, 5), (4, 4), (None, None))
    question = Question("ranges", "count")
    answers = [
        Judged(question, "auto", "table", Bars(low, high, "calibrated", 0.95), Truth(5.0, 1.0)) for low, high in ends
    ]
    found = tally(("ranges", "auto", "table", "calibrated", 0.95), answers)
    assert (found.n, found.n_barred, found.n_held, found.n_below, found.n_narrow) == (6, 5, 3, 1, 2)
    assert (found.n_flat, found.n_flat_missed) == (2, 1)
    assert found.width == pytest.approx(0.5 / interval_width(1.0, 0.95))


def test_the_pool_asks_about_every_pair_and_releases_take_turns() -> None:
    """Of thirteen columns with two of them counted together, few releases ask about all other pairs."""
    here = population("made waves", None, most_rows=3_000)
    pool, together = Pool(here), {"hour", "wave 1"}
    parts = [pool.part(repetition, 1.0, lambda pair: set(pair) <= together) for repetition in range(4)]
    assert parts[0] == Pool(here).part(0, 1.0, lambda pair: set(pair) <= together)
    assert parts[0] != parts[1]
    apart = {frozenset(one.columns) for part in parts for one in part if one.kind == "range by value, apart"}
    wanted = [
        frozenset(pair)
        for pair in combinations(here.schema, 2)
        if len({*pair} & {*pool.ordered}) == 1 and set(pair) != together
    ]
    assert apart == set(wanted)
    kinds = {one.kind for part in parts for one in part}
    assert {"values", "ranges", "tails", "means", "quantiles", "outer quantiles", "shares, apart"} <= kinds
    assert all(set(one.columns) == together for part in parts for one in part if one.kind.endswith("together"))
    codes = Pool(population("made codes", None, most_rows=3_000))
    assert any(one.where == {"visits": 98} for one in codes.part(0, 1.0, lambda _: False))


def test_ranges_for_rows_reach_beyond_the_outermost_values() -> None:
    pool = Pool(population("made codes", None, most_rows=3_000))
    asked = [where["days"] for where in ranges(pool, "days")]
    assert (9_999, 10_000) in asked  # 99.99 % of the bounds
    assert any(low <= 9_900 and high == 10_000 for low, high in asked)
    assert len({where["amount"] for where in ranges(pool, "amount")}) > 10


def test_persons_have_the_columns_that_questions_name() -> None:
    """Numbers of rows are cut to the most that is stated; without a table of persons all have a row."""
    persons = pl.DataFrame({KEY: [3, 1, 2], "age": [30, 10, 20]})
    rows = pl.DataFrame({KEY: [1, 3, 1, 1], "paid": [1.0, 2.0, 3.0, 4.0]})
    table = PeopleTable("made", People(persons, rows), {"paid": sp.Real(0, 9)}, 2, "paid", {"age": sp.Integer(0, 99)})
    found = persons_frame(table, persons, rows)
    assert found.to_dict(as_series=False) == {"persons.age": [30, 10, 20], "rows.#": [1, 2, 0]}
    assert persons_frame(table, None, rows).to_dict(as_series=False) == {"#": [2, 1]}


def test_shares_have_the_standard_error_of_releases() -> None:
    """Where whole releases fail together, the error is that of two draws and not of two hundred."""
    share = share_of([100, 100, 0], [100, 80, 0])
    assert share is not None
    assert (share.value, share.n_releases) == (0.9, 2)
    assert share.error == pytest.approx(0.1)
    assert share.below(0.95) == pytest.approx(0.5)
    assert share_of([0], [0]) is None


@pytest.mark.parametrize(
    ("statement", "held", "expected"),
    [
        ("certified", [19, 19, 20, 19, 19, 20], "ok"),
        ("certified", [15, 14, 16, 15, 14, 15], "fails"),
        ("calibrated", [19, 19, 20, 19, 18, 19], "ok"),
        ("calibrated", [15, 14, 16, 15, 14, 15], "fails"),
        ("indicative", [18, 17, 18, 17, 18, 17], "ok"),
        ("indicative", [12, 11, 12, 11, 12, 11], "fails"),
        ("calibrated", [19, 19], "not judged"),
    ],
)
def test_a_statement_that_does_not_hold_fails(statement: str, held: list[int], expected: str) -> None:
    assert verdict(statement, held, 20) == expected


def test_too_wide_is_off_and_no_width_fails() -> None:
    assert verdict("calibrated", [100] * 6, 100) in ("off", "fails")
    assert verdict("certified", [100] * 6, 100) == "ok"
    assert verdict("indicative", [19] * 6, 20, n_flat=1) == "fails"
    assert verdict("certified", [19] * 6, 20, n_flat=1) == "ok"


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    trials = [Trial("adult", "replace-one", "1", repetition) for repetition in range(3)]
    results = Results(tmp_path)
    rows = Rows("age", 10, 9, 8, 5, 4, 1.5, "age above 90: 0 rows", 2.0)
    for repetition in range(2):
        asked = [("ranges", "auto", "calibrated", "count where age in 1..2", 1.5 - repetition)]
        results.add(an_outcome(repetition, of_statement("calibrated", 10, 9), rows=(rows,), questions=asked))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"trial": cut off')
    assert results.missing(trials) == [trials[2]]
    [cell] = summary(results.read())
    assert (cell["n"], cell["held"], cell["n_answers"]) == ([10, 10], [9, 9], 20)
    assert cell["worst"] == [("count where age in 1..2", 1, 2, 1.0)]
    [found] = rows_summary(results.read())
    assert (found["n"], found["inside"], found["strictly"], found["tails_inside"], found["widest"]) == (
        20,
        18,
        16,
        8,
        ["age", 1.5],
    )
    record = json.loads(to_json(results.read()))
    assert record["releases"] == 2
    assert record["releases_a_cell"] == [2, 2]


def test_a_value_that_fails_in_every_release_shows() -> None:
    """Luck that is fixed for a value is more than the scatter of independent releases."""
    outcomes = [
        an_outcome(
            repetition,
            questions=[
                ("values", "certified", "certified", f"count where kind = {value}", 3.0 if value == 0 else 0.5)
                for value in range(20)
            ],
        )
        for repetition in range(10)
    ]
    [found] = values_summary(outcomes)
    assert found["dispersion"] > 1 + 5 * found["dispersion_error"]
    assert found["worst"][0] == ["adult: count where kind = 0", 10, 10]


def test_the_command_writes_results_and_refuses_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--out", str(tmp_path), "--tables", MADE_TREE, "--max-rows", "500", "--questions", "0.1"]
    assert main(arguments) == 0
    assert "1 of 1 releases to make" in capsys.readouterr().out
    record = json.loads((tmp_path / "coverage.json").read_text())
    kinds = {cell["kind"] for cell in record["cells"]}
    assert {"tails", "boxes of two", "boxes of all", "means", "quantiles"} <= kinds
    assert {cell["asked"] for cell in record["cells"]} == {"auto", "certified", "naive"}
    assert record["rows"][0]["n"] > 0
    assert main(arguments) == 0
    assert "0 of 1 releases to make" in capsys.readouterr().out
    assert main(["--out", str(tmp_path)]) == 2
    assert main(["--data", str(tmp_path), "--out", str(tmp_path), "--tables", "adult"]) == 2
