"""`spinney ask`: questions in, tables, JSON, CSV and pictures out; what is refused costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.forest.release.model import ForestRelease
from spinney.release.answers.answer import Answer
from spinney.release.answers.question import Question
from support.command_line import files_in, spinney

SCHEMA = sp.Schema(
    {"age": sp.Integer(0, 99), "sex": sp.Category(["Male", "Female"]), "region": sp.Category(["North", "South"])}
)
N_ROWS = 400


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": rng.integers(0, 100, N_ROWS),
            "sex": rng.choice(["Male", "Female"], N_ROWS),
            "region": rng.choice(["North", "South"], N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "people.spinney"
    sp.ForestSynthesizer(3).fit(table(), SCHEMA).save(path)
    return path


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The questions that a release was asked; it answers with made-up numbers, and not those about the South."""
    seen: list[Question] = []

    def answer(_: Any, asked: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        del simultaneous
        seen.extend(asked)
        answers = []
        for place, one in enumerate(asked):
            if one.where.get("region") == "South" and not one.force:
                answers.append(Answer(50, None, None, one.level, "not supported", "never counted", one.of, one.asked))
            else:
                low, high = 1234.5 + place, 1290.25 + place
                answers.append(
                    Answer(1250 + place, low, high, one.level, "certified", "whole leaves", one.of, one.asked)
                )
        return answers

    monkeypatch.setattr(ForestRelease, "_answer", answer)
    return seen


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["count where ages = 3"], "did you mean 'age'?\n  count where ages = 3\n              ^^^^"),
        (["cuont"], "did you mean 'count'?"),
        (["count", "--level", "95"], "is not a number between 0 and 1"),
        (["count", "--level", "0"], "is not a number between 0 and 1"),
        (["count", "--out", "a.txt"], "does not end in"),
        (["count", "--picture", "a.txt"], "does not end in"),
        (["count", "--json", "--out", "-"], "leave one out"),
        (["count", "--table", "-"], "is for --buy"),
        (["count where age < 9", "--buy", "0.1"], "--buy needs --table"),
        (["count where age < 9", "--buy", "no"], "--buy='no' is not a number"),
        ([], "Missing argument"),
    ],
)
def test_wrong_calls(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], phrase: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = spinney("ask", release, *arguments)
    assert run.status == 2
    assert phrase in run.err


def test_files_are_not_overwritten_unasked(release: Path, tmp_path: Path, questions: list[Question]) -> None:
    out = tmp_path / "a.csv"
    out.write_text("kept")
    assert spinney("ask", release, "count", "--out", out).status == 2
    assert out.read_text() == "kept"
    assert not questions
    assert spinney("ask", release, "count", "--out", out, "--overwrite").status == 0
    assert pacsv.read_csv(out).num_rows == 1


# ------------------------------------------------------------------------------------------------------ answers


def test_one_answer_is_printed_with_what_it_rests_on(release: Path, questions: list[Question]) -> None:
    run = spinney("ask", release, "count where age in 30..40")
    assert run.status == 0
    assert questions[0].where == {"age": (30, 40)}
    assert run.out.splitlines() == [
        "count where age in 30..40",
        "  estimate        95 % interval   statement",
        "   1,250.0   1,234.5 to 1,290.2   certified [1]",
        "",
        "  [1] whole leaves",
    ]


def test_a_forest_answers_for_itself(release: Path) -> None:
    """Nothing is made up here: an estimate near the truth, inside an interval that has a statement."""
    told = spinney("ask", release, "count where age < 50", "count by sex", "--json").json["answers"]
    answer = told[0]["answer"]
    true = int(np.sum(table()["age"].to_numpy() < 50))
    assert answer["low"] <= answer["estimate"] <= answer["high"]
    assert abs(answer["estimate"] - true) < 60
    assert answer["statement"] in ("certified", "calibrated")
    assert [cell["sex"] for cell in told[1]["cells"]] == ["Male", "Female"]


def test_a_table_has_a_line_for_each_cell(release: Path, questions: list[Question]) -> None:
    run = spinney("ask", release, "mean(age) by region, sex where age > 20", "--level", "0.9", "--population")
    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[1].split() == [
        "region",
        "sex",
        "estimate",
        "90",
        "%",
        "interval",
        "of",
        "the",
        "population",
        "statement",
    ]
    assert lines[2].split()[:2] == ["North", "Male"]
    assert lines[4].split() == ["South", "Male", "50", "none", "not", "supported", "[2]"]
    assert lines[-1] == "  [2] never counted"
    assert {(one.level, one.of, one.statement) for one in questions} == {(0.9, "population", "auto")}


def test_options_reach_the_release(release: Path, questions: list[Question]) -> None:
    run = spinney("ask", release, "count by region", "--certified", "--force", "--simultaneous")
    assert run.status == 0
    assert "95 % interval at once" in run.out
    assert {(one.statement, one.force) for one in questions} == {("certified", True)}


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("median(age) where sex = Male", "quantile", {"column": "age", "at": 0.5, "where": {"sex": "Male"}}),
        ("proportion where age = 5 given sex = Male", "proportion", {"where": {"age": 5}, "given": {"sex": "Male"}}),
        ("mean(age)", "mean", {"column": "age"}),
    ],
)
def test_every_kind_of_question_is_asked_as_meant(
    release: Path, questions: list[Question], text: str, kind: str, rest: dict[str, Any]
) -> None:
    assert spinney("ask", release, text).status == 0
    assert questions[0].kind == kind
    assert {name: getattr(questions[0], name) for name in rest} == rest


def test_several_questions_as_json(release: Path, questions: list[Question]) -> None:
    run = spinney("ask", release, "count where age < 50", "count by region", "--json")
    assert len(questions) == 3
    first, second = run.json["answers"]
    assert first["question"] == "count where age < 50"
    assert first["answer"]["estimate"] == 1250
    assert [cell["region"] for cell in second["cells"]] == ["North", "South"]
    assert second["cells"][1]["low"] is None
    assert second["cells"][1]["statement"] == "not supported"


def test_a_question_that_is_refused_does_not_lose_the_others(
    release: Path, tmp_path: Path, questions: list[Question]
) -> None:
    """Good answers are printed, then why the others have none; the call counts as wrong, and no file is written."""
    wrong = ("count where ages < 50", "cuont")
    run = spinney("ask", release, "count where age < 50", *wrong, "count where age < 20")
    assert run.status == 2
    assert len(questions) == 2
    assert "count where age < 50" in run.out
    assert "count where age < 20" in run.out
    assert "2 of 4 questions were refused" in run.err
    assert "did you mean 'age'?" in run.err
    assert "did you mean 'count'?" in run.err
    run = spinney("ask", release, "count where age < 50", wrong[0], "--json", "--out", tmp_path / "a.csv")
    assert run.status == 2
    assert [one["question"] for one in run.json["answers"]] == ["count where age < 50"]
    assert list(run.json["refused"]) == [wrong[0]]
    assert "1 of 2 questions was refused, and nothing was written to" in json.loads(run.err)["error"]
    assert not files_in(tmp_path)
    run = spinney("ask", release, "count where age < 50", wrong[0], "--out", "-")
    assert run.status == 2
    assert len(run.out.splitlines()) == 2
    run = spinney("ask", release, *wrong)
    assert (run.status, run.out) == (2, "")


def test_answers_as_csv(release: Path, questions: list[Question]) -> None:
    run = spinney("ask", release, "count where age < 50", "count by region", "--out", "-")
    rows = pacsv.read_csv(pa.py_buffer(run.out.encode())).to_pylist()
    assert len(rows) == len(questions)
    assert [row["region"] for row in rows] == ["", "North", "South"]
    assert [row["low"] for row in rows] == [1234.5, 1234.5, None]


def test_pictures_have_bars(release: Path, tmp_path: Path, questions: list[Question]) -> None:
    out = tmp_path / "a.svg"
    run = spinney("ask", release, "count by region", "mean(age)", "--picture", out)
    assert run.status == 0
    assert run.out.endswith(f"wrote {out}\n")
    drawn = out.read_text()
    assert drawn.startswith("<?xml")
    assert len(questions) == 3
    again = tmp_path / "b.svg"
    spinney("ask", release, "count by region", "mean(age)", "--picture", again, "--json")
    assert again.read_text() == drawn


def test_a_release_that_cannot_answer_says_what_to_fit(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((300, 2))
    path = tmp_path / "grid.spinney"
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    sp.GridSynthesizer(1, bins=4).fit(rows, schema).save(path)
    run = spinney("ask", path, "count where x < 0.5")
    assert run.status == 2
    assert "moments=True" in run.err


# ------------------------------------------------------------------------------------------------------ purchases


@pytest.fixture
def private(tmp_path: Path) -> tuple[Path, Path]:
    """A private table, and the ledger of its people."""
    rows, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    pacsv.write_csv(table(), rows)
    sp.Ledger.create(ledger, limit=1)
    return rows, ledger


def test_what_was_bought_is_printed_beside_what_the_release_says(
    release: Path, private: tuple[Path, Path], questions: list[Question]
) -> None:
    rows, ledger = private
    question = "count where age < 50 and region = South"
    run = spinney("ask", release, question, "--buy", "0.5", "--table", rows, "--ledger", ledger)
    assert run.status == 0
    assert len(questions) == 1
    lines = [line.split() for line in run.out.splitlines()]
    assert lines[2][:3] == ["release", "50", "none"]
    assert lines[3][0] == "bought"
    assert lines[3][-2] == "certified"
    assert "bought for epsilon=0.5" in run.out
    assert sp.Ledger.open(ledger).spent == Fraction(1, 2)
    told = spinney("ask", release, question, "--buy", "0.25", "--table", rows, "--ledger", ledger, "--json").json
    true = int(np.sum((table()["age"].to_numpy() < 50) & (np.array(table()["region"].to_pylist()) == "South")))
    assert abs(told["bought"]["estimate"] - true) < 60
    assert sp.Ledger.open(ledger).spent == Fraction(3, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ["count where ages < 50", "--buy", "0.5"],
        ["count by region", "--buy", "0.5"],
        ["count where age < 50", "--buy", "2"],
        ["count where age < 50", "count where age < 9", "--buy", "0.5"],
        ["count where age < 50", "--buy", "0.5", "--picture", "a.txt"],
        ["count where age < 50", "--buy", "0.5", "--delimiter", ";"],
        ["mean(age) where age < 50", "--buy", "0.5", "--population"],
        ["median(age)", "--buy", "0.5"],
        ["mean(age) where sex = Male", "--buy", "0.5", "--level", "0.999999"],
    ],
)
@pytest.mark.usefixtures("questions")
def test_a_purchase_that_is_refused_is_not_charged(
    release: Path, private: tuple[Path, Path], arguments: list[str]
) -> None:
    rows, ledger = private
    run = spinney("ask", release, *arguments, "--table", rows, "--ledger", ledger)
    assert run.status in (1, 2)
    assert not sp.Ledger.open(ledger).events


@pytest.mark.parametrize("options", [[], ["--json"], ["--out", "-"]])
def test_an_answer_that_cannot_be_written_is_in_the_error(
    release: Path, private: tuple[Path, Path], options: list[str]
) -> None:
    """Standard output is full: standard error holds what was charged, and the answer that was paid for."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")
    rows, ledger = private
    call = ["ask", release, "count where age < 50", "--buy", "0.5", "--table", rows, "--ledger", ledger, *options]
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "spinney", *map(str, call)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    told = run.stderr.decode()
    assert run.returncode == 1
    assert "No space left" in told
    assert f"epsilon=0.5 was charged to '{ledger}'" in told
    assert "95 %, certified: bought for epsilon=0.5" in told
    assert sp.Ledger.open(ledger).spent == Fraction(1, 2)


@pytest.mark.usefixtures("questions")
def test_a_file_that_fails_after_the_purchase_does_not_lose_the_answer(
    release: Path, private: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spinney.cli.tables.write_table", fail)
    rows, ledger = private
    call = ["ask", release, "count where age < 50", "--buy", "0.5", "--table", rows, "--ledger", ledger]
    run = spinney(*call, "--out", tmp_path / "a.csv")
    assert run.status == 1
    assert "No space left on device; epsilon=0.5 was charged to" in run.err
    assert "bought for epsilon=0.5" in run.out
    assert "bought for epsilon=0.5" in run.err
    free = spinney("ask", release, "count where age < 50", "--out", tmp_path / "a.csv")
    assert "charged" not in free.err


@pytest.mark.usefixtures("questions")
def test_files_are_checked_before_the_purchase(
    release: Path, private: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not there, a file that is read, a picture that cannot be drawn: nothing is charged."""
    rows, ledger = private
    call = ["ask", release, "count where age < 50", "--buy", "0.5", "--table", rows, "--ledger", ledger, "--overwrite"]
    before = rows.read_bytes()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for options, phrase in [
        (["--out", tmp_path / "none" / "a.csv"], "does not exist"),
        (["--out", rows], "is also an input"),
        (["--picture", tmp_path / "a.svg"], "pip install matplotlib"),
    ]:
        run = spinney(*call, *options)
        assert run.status in (1, 2)
        assert phrase in run.err
    assert not sp.Ledger.open(ledger).events
    assert rows.read_bytes() == before


def test_an_answer_can_be_bought_where_the_release_gives_none(tmp_path: Path) -> None:
    """A release of bins has no intervals; what was bought is shown with the reason."""
    rows = np.random.default_rng(0).random((300, 2))
    path, ledger, private = tmp_path / "grid.spinney", tmp_path / "a.ledger", tmp_path / "rows.parquet"
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    sp.GridSynthesizer(1, bins=4).fit(rows, schema).save(path)
    sp.Ledger.create(ledger, limit=2)
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), private)
    call = ["ask", path, "count where x < 0.5", "--buy", "1", "--table", private, "--ledger", ledger]
    run = spinney(*call, "--picture", tmp_path / "a.svg")
    assert run.status == 0, run.err
    assert "bought for epsilon=1" in run.out
    assert "the release gives no answer" in run.out
    told = spinney(*call, "--json").json
    assert told["answers"][0]["answer"] is None
    assert abs(told["bought"]["estimate"] - np.sum(rows[:, 0] < 0.5)) < 20
    assert spinney(*call).status == 1
    assert sp.Ledger.open(ledger).spent == 2


def test_labels_that_are_not_printable_keep_columns_in_line_and_terminals_safe(tmp_path: Path) -> None:
    """Control characters are shown as escapes of their own width, on the terminal and in CSV; Parquet holds them."""
    odd = "\x1b[31mred"
    schema = sp.Schema({"k": sp.Category([odd, "plain"]), "n": sp.Integer(0, 3)})
    rows = pa.table({"k": [odd, "plain"] * 100, "n": [0, 1, 2, 3] * 50})
    path = tmp_path / "odd.spinney"
    sp.ForestSynthesizer(5).fit(rows, schema).save(path)
    run = spinney("ask", path, "count by k")
    assert "\x1b" not in run.out
    head, first, second = run.out.splitlines()[1:4]
    assert "\\x1b[31mred" in first
    ends = [line.index(word) for line, word in ((head, "statement"), (first, "cert"), (second, "cert"))]
    assert ends[0] == ends[1] == ends[2]
    for out in ("-", tmp_path / "a.csv", tmp_path / "a.parquet"):
        run = spinney("ask", path, "count by k", "--out", out)
        assert run.status == 0
        assert "\x1b" not in run.out
    assert "\x1b" not in (tmp_path / "a.csv").read_text()
    assert odd in pq.read_table(tmp_path / "a.parquet")["k"].to_pylist()


@pytest.mark.usefixtures("questions")
def test_errors_as_json(release: Path) -> None:
    run = spinney("ask", release, "count where age", "--json")
    assert run.status == 2
    assert "has no equals sign" in json.loads(run.err)["error"]
