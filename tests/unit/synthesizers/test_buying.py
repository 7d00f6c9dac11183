"""Bought answers: checks come before the charge, the charge before the count, and intervals hold."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import BudgetError, InputError, ParameterError, SchemaError
from spinney.release.release import Release
from spinney.synthesizers import buy as buying
from support.in_one_test import in_one_test

SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "pay": sp.Real(0, 1000, nullable=True),
        "sex": sp.Category(["Male", "Female"]),
        "half": sp.Real(0, 10, multiple_of=0.5),
        "fifties": sp.Integer(0, 500, multiple_of=50),
        "member": sp.Boolean(nullable=True),
        "born": sp.Date("1950-01-01", "2009-12-31"),
        "key": sp.Identifier(),
    }
)
N_ROWS = 500


def made_up() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(-5, 105, N_ROWS),  # some outside the bounds
            "pay": pa.array(np.round(rng.exponential(300, N_ROWS), 2), mask=rng.random(N_ROWS) < 0.1),
            "sex": rng.choice(["Male", "Female"], N_ROWS),
            "half": rng.integers(0, 21, N_ROWS) / 2,
            "fifties": 50 * rng.integers(0, 11, N_ROWS),
            "member": pa.array(rng.random(N_ROWS) < 0.3, mask=rng.random(N_ROWS) < 0.2),
            "born": pa.array(rng.integers(-7305, 14609, N_ROWS).astype(np.int32)).cast(pa.date32()),
            "key": np.arange(N_ROWS),
        }
    )


TABLE = made_up()


@pytest.fixture(scope="module")
def release() -> Release:
    return sp.ForestSynthesizer(5).fit(TABLE, SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_


@pytest.fixture(scope="module")
def adding() -> Release:
    model = sp.ForestSynthesizer(5, unit="add-remove", delta="1e-6")
    return model.fit(TABLE, SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_


def bought(release: Release, question: str, *, epsilon: Any = 1, **more: Any) -> Any:
    options = {"ledger": sp.Ledger(10**6, unit=release.card.unit), "entropy": sp.UnsafeSeededEntropy(5)} | more
    return sp.buy_answer(release, question, TABLE, epsilon=epsilon, **options)


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("count", "say which rows"),
        ("table by sex", "say in `where` which cell"),
        ("mean(age) by sex", "say in `where` which cell"),
        ("median(age)", "proportion where age <= VALUE"),
        ("count where ages = 3", "did you mean 'age'?"),
        ("count where age = null", "never null"),
        ("count where age in 200..300", "is never"),
        ("mean(sex)", "means and quantiles are those of numbers"),
        ("mean(born)", "means and quantiles are those of numbers"),
        ("mean(age) where age = 3", "its mean is known"),
        ("mean(pay) where pay = null", "have no mean"),
        ("proportion where sex = Male given sex = Male", "in `where` and in `given`"),
    ],
)
def test_what_cannot_be_bought_costs_nothing(release: Release, question: str, phrase: str) -> None:
    ledger = sp.Ledger(1)
    with pytest.raises(ParameterError, match=phrase):
        bought(release, question, ledger=ledger)
    assert not ledger.events


@pytest.mark.parametrize(
    ("question", "of", "phrase"),
    [
        ("mean(age)", "population", "for counts, and for proportions of all rows"),
        ("proportion where sex = Male given age > 50", "population", "for counts, and for proportions of all rows"),
        ("count where age > 50", "people", "of='people' is not one of"),
    ],
)
def test_populations_that_cannot_be_bought_cost_nothing(release: Release, question: str, of: str, phrase: str) -> None:
    ledger = sp.Ledger(1)
    with pytest.raises(ParameterError, match=phrase):
        bought(release, question, ledger=ledger, of=of)
    assert not ledger.events


def test_a_population_needs_a_public_number_of_rows(adding: Release) -> None:
    ledger = sp.Ledger(1, unit="add-remove")
    with pytest.raises(ParameterError, match="under add-remove it is private"):
        bought(adding, "count where age > 50", ledger=ledger, of="population")
    assert not ledger.events


def test_answers_of_a_population_hold_over_noise_and_samples() -> None:
    """Of samples with replacement nine tenths and more hold the population's share; intervals of the table do not."""
    schema = sp.Schema({"x": sp.Integer(0, 9)})
    rng, held, plain = np.random.default_rng(0), [], []
    for trial in range(150):
        table = pa.table({"x": rng.integers(0, 10, 400)})
        options: dict[str, Any] = {"entropy": sp.UnsafeSeededEntropy(trial), "level": 0.9, "epsilon": 1}
        release = sp.KDTreeSynthesizer(1).fit(table, schema, entropy=sp.UnsafeSeededEntropy(trial)).release_
        for of, hits in (("population", held), ("table", plain)):
            ledger = sp.Ledger(9)
            found = sp.buy_answer(release, "proportion where x < 3", table, ledger=ledger, of=of, **options)
            assert (found.of, found.level, found.statement) == (of, 0.9, "certified")
            assert found.low is not None
            assert found.high is not None
            hits.append(found.low <= 0.3 <= found.high)
    count, share = (
        sp.buy_answer(
            release,
            question,
            table,
            **options | {"entropy": sp.UnsafeSeededEntropy(7), "ledger": sp.Ledger(9), "of": "population"},
        )
        for question in ("count where x < 3", "proportion where x < 3")
    )
    assert (count.low, count.high) == pytest.approx((400 * (share.low or 0), 400 * (share.high or 0)))
    assert np.mean(held) > 0.9
    assert np.mean(plain) < 0.6


def test_tables_that_do_not_fit_cost_nothing(release: Release) -> None:
    question, ledger = "mean(age) where sex = Male", sp.Ledger(1)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (TABLE.drop_columns("age"), SchemaError, "'age'"),
        (TABLE.set_column(2, "sex", pa.array(["zqxj"] * N_ROWS)), InputError, "'sex'"),
        (TABLE.set_column(0, "age", pa.array([None] * N_ROWS, pa.int64())), InputError, "'age'"),
        (TABLE.slice(1), InputError, "499 rows, and the release is of a table of 500"),
        ("no-such-file.parquet", OSError, "no-such-file"),
    ]
    for table, kind, phrase in wrong:
        with pytest.raises(kind, match=phrase) as caught:
            sp.buy_answer(release, question, table, epsilon=1, ledger=ledger)
        assert "zqxj" not in str(caught.value)
        assert not ledger.events


def test_a_table_without_a_header_does_not_show_its_first_row(release: Release, tmp_path: Path) -> None:
    ledger = sp.Ledger(1)
    (tmp_path / "a.csv").write_text("zqxj,qxjz\na,b\n")
    with pytest.raises(InputError, match="none of the schema's columns") as caught:
        sp.buy_answer(release, "count where age = 3", tmp_path / "a.csv", epsilon=1, ledger=ledger)
    assert "zqxj" not in str(caught.value)
    assert not ledger.events


def test_a_ledger_is_needed_and_has_to_have_enough_left(release: Release) -> None:
    with pytest.raises(ParameterError, match="ledger is missing"):
        bought(release, "count where age = 3", ledger=None)
    poor = sp.Ledger("0.1")
    with pytest.raises(BudgetError, match="does not fit"):
        bought(release, "count where age = 3", ledger=poor)
    assert not poor.events
    other = sp.Ledger(9, unit="add-remove")
    with pytest.raises(ParameterError, match="does not match the ledger's"):
        bought(release, "count where age = 3", ledger=other)
    assert not other.events
    for wrong in (0, -1, "much", None):
        with pytest.raises(ParameterError):
            bought(release, "count where age = 3", epsilon=wrong, ledger=sp.Ledger(9))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        bought(release, "count where age = 3", level=95)


# --------------------------------------------------------------------------------------------------- charges


class _Reads:
    """A lazy column that can be read so many times, and then raises an error that quotes a value."""

    def __init__(self, n_reads: int) -> None:
        self.left = n_reads

    def __call__(self, values: pl.Series) -> pl.Series:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"zqxj {values[0]}")
        return values


@pytest.mark.parametrize("is_file", [False, True])
def test_an_error_after_the_charge_says_what_was_charged_and_where(
    release: Release, tmp_path: Path, is_file: bool
) -> None:
    """A table that can be read once and not twice fails after the charge; the error quotes nothing of the rows."""
    failed: list[tuple[InputError, Any]] = []
    for n_reads in range(6):
        ledger = sp.Ledger.create(tmp_path / f"{n_reads}.ledger", limit=9) if is_file else sp.Ledger(9)
        wanted = pl.col("half").map_batches(_Reads(n_reads), return_dtype=pl.Float64)
        lazy = pl.from_arrow(TABLE).lazy().with_columns(wanted)  # type: ignore[union-attr]
        try:
            sp.buy_answer(release, "mean(half)", lazy, epsilon="0.5", ledger=ledger)
        except InputError as err:
            failed.append((err, ledger))
    assert {bool(ledger.events) for _, ledger in failed} == {False, True}
    for problem, ledger in failed:
        where = repr(str(ledger.path)) if is_file else "the ledger"
        assert (f"epsilon=0.5 was charged to {where}" in str(problem)) == bool(ledger.events)
        assert "zqxj" not in str(problem)
        assert problem.__cause__ is None
        assert problem.__context__ is None


@pytest.mark.parametrize(
    ("problem", "phrase"),
    [(MemoryError("zqxj"), "out of memory"), (RuntimeError("zqxj"), "unexpected RuntimeError")],
)
def test_errors_of_others_after_the_charge_are_told_without_their_words(
    release: Release, monkeypatch: pytest.MonkeyPatch, problem: Exception, phrase: str
) -> None:
    def fail(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(buying, "true_sums", fail)
    with pytest.raises(InputError, match=f"{phrase}.*epsilon=1 was charged to the ledger") as caught:
        bought(release, "count where age = 3", ledger=sp.Ledger(9))
    assert "zqxj" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_interruption_after_the_charge_stays_one_and_says_what_was_charged(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(buying, "true_sums", fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        bought(release, "count where age = 3", ledger=sp.Ledger(9))
    assert "epsilon=1 was charged to the ledger" in caught.value.__notes__[0]


def test_the_charge_is_on_the_ledger_before_the_table_is_counted(release: Release, monkeypatch: Any) -> None:
    ledger = sp.Ledger(1)
    seen = []

    def fail(*_: Any) -> Any:
        seen.append(ledger.spent)
        raise InputError("the table is gone")

    monkeypatch.setattr("spinney.synthesizers.buy.true_sums", fail)
    with pytest.raises(InputError, match="is gone"):
        bought(release, "count where age = 3", epsilon="0.25", ledger=ledger)
    assert seen == [Fraction(1, 4)]
    assert ledger.spent == Fraction(1, 4)


def test_a_ledger_file_says_what_was_bought(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=1)
    sp.buy_answer(release, "count where age = 3", TABLE, epsilon="0.05", ledger=path)
    sp.buy_answer(release, "mean(pay) where age > 3", TABLE, epsilon="0.1", ledger=str(path))
    ledger = sp.Ledger.open(path)
    assert ledger.spent == Fraction(3, 20)
    assert [event.note for event in ledger.events] == ["answer: count where age = 3", "answer: mean(pay) where age > 3"]
    assert [event.stage for event in ledger.events] == ["answer", "answer"]  # type: ignore[union-attr]
    bought(release, "count where age = 3", ledger=ledger, epsilon="0.1")
    assert "seeded generator" in ledger.events[-1].note


# --------------------------------------------------------------------------------------------------- answers

COLUMNS: dict[str, Any] = {name: np.array(TABLE[name].to_pylist()) for name in SCHEMA}
AGES = COLUMNS["age"].clip(0, 99)
PAY = np.array([np.nan if pay is None else min(pay, 1000) for pay in TABLE["pay"].to_pylist()])
MALE = COLUMNS["sex"] == "Male"
MEMBER = COLUMNS["member"]


@in_one_test(
    ("question", "true", "slack"),
    [
        ("count where age in 30..40", np.sum((AGES >= 30) & (AGES <= 40)), 0),
        ("count where age > 98", np.sum(AGES > 98), 0),
        ("count where age in (3, 50) and sex = Male", np.sum(((AGES == 3) | (AGES == 50)) & MALE), 0),
        ("count where pay = null", np.sum(np.isnan(PAY)), 0),
        ("count where pay >= 300.25", np.sum(PAY >= 300.25), 0),
        ("count where half > 2 and half <= 7.5", np.sum((COLUMNS["half"] > 2) & (COLUMNS["half"] <= 7.5)), 0),
        ("count where fifties in 40..260", np.sum((COLUMNS["fifties"] >= 50) & (COLUMNS["fifties"] <= 250)), 0),
        ("count where member = true", np.sum(MEMBER == True), 0),  # noqa: E712  # an array with None
        ("count where born < 1980-01-01", np.sum(COLUMNS["born"] < np.datetime64("1980-01-01")), 0),
        ("proportion where sex = Male", MALE.mean(), 0),
        ("proportion where sex = Male given age > 50", MALE[AGES > 50].mean(), 1e-3),
        ("mean(age)", AGES.mean(), 1e-6),
        ("mean(age) where sex = Male", AGES[MALE].mean(), 1e-3),
        ("mean(pay)", np.nanmean(PAY), 0.7),
        ("mean(pay) where pay < 100", PAY[PAY < 100].mean(), 0.07),
        ("mean(half) where age < 50", COLUMNS["half"][AGES < 50].mean(), 1e-3),
        ("mean(fifties)", COLUMNS["fifties"].mean(), 1e-3),
        ("mean(member)", np.mean([member for member in MEMBER if member is not None]), 1e-3),
    ],
)
@in_one_test("unit", ["replace-one", "add-remove"])
def test_with_hardly_any_noise_the_answer_is_that_of_the_table(
    release: Release, adding: Release, unit: str, question: str, true: float, slack: float
) -> None:
    """Values outside the bounds count as the nearer bound; a mean of reals is known to half a part of the range."""
    which = release if unit == "replace-one" else adding
    with pytest.warns(sp.errors.PrivacyWarning):
        answer = bought(which, question, epsilon=10**5)
    assert answer.statement == "certified"
    assert answer.low - 1e-9 <= true <= answer.high + 1e-9
    assert abs(answer.estimate - true) <= slack + 1e-4
    assert answer.high - answer.low <= 2 * slack + 2e-3


@pytest.mark.parametrize("kind", ["polars", "lazy", "parquet", "duckdb", "csv"])
def test_every_engine_counts_alike(release: Release, tmp_path: Path, kind: str) -> None:
    question = "mean(pay) where age in 20..70 and sex = Female and born > 1960-06-01"
    wanted = bought(release, question)
    table: Any = pl.from_arrow(TABLE)
    engine = None
    if kind == "lazy":
        table = table.lazy()
    elif kind in ("parquet", "duckdb"):
        pq.write_table(TABLE, tmp_path / "a.parquet")
        table, engine = str(tmp_path / "a.parquet"), "duckdb" if kind == "duckdb" else None
    elif kind == "csv":
        table.write_csv(tmp_path / "a.csv")
        table = str(tmp_path / "a.csv")
    options: dict[str, Any] = {"ledger": sp.Ledger(9), "entropy": sp.UnsafeSeededEntropy(5), "engine": engine}
    assert sp.buy_answer(release, question, table, epsilon=1, **options) == wanted


def test_columns_that_the_release_does_not_have_are_not_looked_at(release: Release) -> None:
    wider = TABLE.append_column("secret", pa.array([{"a": 1}] * N_ROWS))
    options: dict[str, Any] = {"ledger": sp.Ledger(9), "entropy": sp.UnsafeSeededEntropy(5)}
    question = "count where age < 50"
    assert sp.buy_answer(release, question, wider, epsilon=1, **options) == bought(release, question)


# ---------------------------------------------------------------------------------------------------- intervals


def coverage(answers: list[Any], true: float, *, narrowed: float = 1.0) -> float:
    """How often an interval, narrowed about its middle, holds the truth."""
    held = [
        abs(true - (answer.low + answer.high) / 2) <= narrowed * (answer.high - answer.low) / 2 + 1e-9
        for answer in answers
    ]
    return float(np.mean(held))


@pytest.mark.parametrize(
    ("question", "true"),
    [
        ("count where age < 50", np.sum(AGES < 50)),
        ("proportion where sex = Male given age > 20", MALE[AGES > 20].mean()),
        ("mean(age) where sex = Male", AGES[MALE].mean()),
        ("mean(age)", AGES.mean()),
    ],
)
@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_intervals_hold_as_often_as_they_say_and_no_oftener(
    release: Release, adding: Release, unit: str, question: str, true: float
) -> None:
    """90 % of 400 answers, within four errors of 0.015; intervals of 0.7 times the length fail the same test."""
    which = release if unit == "replace-one" else adding
    entropy = sp.UnsafeSeededEntropy(7)
    answers = [bought(which, question, epsilon="1/4", level=0.9, entropy=entropy) for _ in range(400)]
    assert 0.84 <= coverage(answers, true) <= 0.96
    assert coverage(answers, true, narrowed=0.7) < 0.84


def test_a_ratio_of_too_few_rows_is_anything(release: Release) -> None:
    """Where the rows do not stand out from the noise the interval is all that is possible, and says so."""
    answer = bought(release, "mean(age) where age in 0..3 and sex = Male", epsilon="1/100")
    assert (answer.low, answer.high) == (0, 3)


def test_a_table_in_the_place_of_the_question_is_not_shown(release: Release) -> None:
    """Arguments are easily swapped, and the table is private."""
    private = pa.table({"age": [4711]}).to_pandas()
    with pytest.raises(ParameterError, match="<a DataFrame>") as caught:
        sp.buy_answer(release, private, "count", epsilon="0.1", ledger=sp.Ledger(limit=1))
    assert "4711" not in str(caught.value)


def test_a_ledger_names_the_answer_that_it_paid_for(tmp_path: Path) -> None:
    """By the digest that the answer has; and where nothing came of a charge, it says so."""
    table = pl.DataFrame({"x": np.arange(200.0) % 7})
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=9)
    schema = sp.Schema({"x": sp.Real(0, 7)})
    release = sp.KDTreeSynthesizer("1").fit(table, schema, ledger=ledger).release_
    answer = sp.buy_answer(release, "count where x < 3", table, epsilon="0.5", ledger=ledger)
    fitted, *_, paid = ledger.charges
    assert paid.release == answer.digest != fitted.release
    assert len(answer.digest) == 64
    with (
        mock.patch.object(buying, "_counted", side_effect=MemoryError),
        pytest.raises(InputError, match="was charged"),
    ):
        sp.buy_answer(release, "count where x < 3", table, epsilon="0.5", ledger=ledger)
    assert ledger.charges[-1].error == "MemoryError"
