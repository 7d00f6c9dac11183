"""The benchmark of coverage: its truths are right, it goes on where it stopped, and a wrong interval shows."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from benchmarks.coverage.__main__ import main
from benchmarks.coverage.questions import Asked, Questions
from benchmarks.coverage.results import Results, summary, to_json
from benchmarks.coverage.tables import MADE_UP, MADE_UP_TREE, population
from benchmarks.coverage.trials import Figure, Outcome, Trial, figure_of, run
from benchmarks.coverage.truths import Truth, interval_width, least_squares, truth

import spinney as sp
from spinney.release.answers.answer import Answer

SCHEMA = sp.Schema({"age": sp.Integer(0, 50), "sex": sp.Category(["a", "b"]), "pay": sp.Real(0, 10, nullable=True)})
FRAME = pl.DataFrame({"age": [10, 20, 30, 70], "sex": ["a", "b", "a", "b"], "pay": [1.0, 2.0, None, 40.0]})


def test_truths_are_those_of_the_rows() -> None:
    """Values beyond a bound count as the bound, nulls have no mean, counts are scaled to the table's size."""
    count = truth(Asked("", "count", where={"age": (20, 50), "sex": ["b"]}), FRAME, SCHEMA, n_rows=8)
    assert count == Truth(4.0, 2**0.5)
    mean = truth(Asked("", "mean", "pay", {"sex": "b"}), FRAME, SCHEMA, n_rows=4)
    assert mean.value == 6.0
    assert truth(Asked("", "quantile", "age", at=0.5), FRAME, SCHEMA, n_rows=4).value == 20.0


def test_coefficients_are_those_of_least_squares() -> None:
    frame = pl.DataFrame({"age": [0, 1, 2, 3] * 5, "sex": ["a", "b"] * 10})
    frame = frame.with_columns(pay=1 + 0.5 * pl.col("age") + 2 * (pl.col("sex") == "b"))
    found = least_squares("pay ~ age + sex", frame, SCHEMA)
    assert {name: round(true.value, 9) for name, true in found.items()} == {"Intercept": 1, "age": 0.5, "sex[b]": 2}


def test_intervals_that_miss_and_those_that_are_narrow_are_counted() -> None:
    answers = [
        (Answer(5, low, high, 0.95, "certified", "", "table", ""), Truth(5.0, 1.0))
        for low, high in ((4, 6), (4.2, 9.8), (5.5, 6))
    ]
    figure = figure_of(("one column", "table", "auto", "certified", 0.95), answers)
    assert (figure.n_answers, figure.n_held, figure.n_held_narrow) == (3, 2, 1)
    assert figure.width == pytest.approx(2 / interval_width(1.0, 0.95))
    none = [(Answer(5, None, None, 0.95, "not supported", "", "table", ""), Truth(5.0, 1.0))]
    assert figure_of(("one column", "table", "auto", "not supported", 0.95), none).n_held is None


def test_questions_repeat_and_hold_rows() -> None:
    here = population(MADE_UP, None, most_rows=4_000)
    names = list(here.schema)
    first, again = (Questions(here, 3).of_forest([(names[0], names[1])], 4) for _ in range(2))
    assert first == again
    assert {asked.kind for asked in first} >= {"one column", "pairs together", "pairs apart"}
    together = [asked for asked in first if asked.kind == "pairs together"]
    assert all(set(asked.where) == {names[0], names[1]} for asked in together)
    one = [asked for asked in first if asked.kind == "one column"]
    assert all(truth(asked, here.frame, here.schema, n_rows=100).value >= 1 for asked in one)


def test_a_release_of_a_tree_is_asked_everything() -> None:
    outcome = run(Trial(MADE_UP_TREE, "5", 0, n_questions=4), None, most_rows=4_000)
    kinds = {(figure.kind, figure.of, figure.wanted) for figure in outcome.figures}
    assert ("boxes", "table", "auto") in kinds
    assert ("boxes", "population", "auto") in kinds
    assert ("boxes", "table", "certified") in kinds
    assert {figure.level for figure in outcome.figures} == {0.8, 0.95, 0.99}


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    figure = Figure("boxes", "table", "auto", "certified", 0.95, 10, 9, 5, 1.5)
    trials = [Trial("adult", "1", repetition) for repetition in range(3)]
    results = Results(tmp_path)
    for trial, n_held in zip(trials[:2], (9, 10), strict=True):
        some = Figure(**{name: getattr(figure, name) for name in Figure.__slots__} | {"n_held": n_held})
        results.add(Outcome(trial, (some,), 1.0, 0.5, 0.01, "0"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"trial": cut off')
    assert results.missing(trials) == [trials[2]]
    [cell] = summary(results.read())
    assert cell["coverage"] == 0.95
    assert cell["n_answers"] == 20
    assert cell["narrow_coverage"] == 0.5
    held = json.loads(to_json(results.read()))
    assert held["releases"] == 2
    assert held["cells"][0]["table"] == "adult"


def test_the_command_writes_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--out", str(tmp_path), "--only", MADE_UP_TREE, "--epsilon", "1", "--runs", "1", "--questions", "2"]
    assert main(arguments) == 0
    assert "1 of 1 releases to make" in capsys.readouterr().out
    assert json.loads((tmp_path / "coverage.json").read_text())["releases"] == 1
    assert main(arguments) == 0
    assert "0 of 1 releases to make" in capsys.readouterr().out
    assert main(["--data", str(tmp_path), "--out", str(tmp_path), "--only", "adult"]) == 2
