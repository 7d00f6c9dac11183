"""Regressions that are named before the fit: measured, kept in the file, and answered with intervals that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import spinney as sp
from spinney.cli.app import app
from spinney.errors import ParameterError
from spinney.forest.release.analyses import Spread, balanced
from spinney.forest.release.formula import blocks_of, parse_formula
from spinney.forest.release.regression import fit_moments, regress
from spinney.forest.sums import true_sums_of
from spinney.privacy.budget import Unit
from spinney.release.card import ContradictionError
from spinney.tables.open import open_source
from support.in_one_test import in_one_test

N = 12_000
COLUMNS = {
    "hours": sp.Integer(0, 80),
    "age": sp.Integer(17, 90),
    "score": sp.Real(-5, 5),
    "sex": sp.Category(["female", "male"]),
    "region": sp.Category(["a", "b", "c", "rare"]),
    "works": sp.Boolean(),
    "pay": sp.Integer(0, 50, nullable=True),
    "start": sp.Date("2000-01-01", "2020-01-01"),
    "id": sp.Identifier(),
}
SCHEMA = sp.Schema(COLUMNS)
FORMULA = "hours ~ age + sex + region + score"


def table(n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    age, is_male, score = rng.integers(17, 91, n), rng.random(n) < 0.55, rng.normal(0, 1.5, n).clip(-5, 5)
    region = rng.choice(4, n, p=[0.5, 0.3, 0.199, 0.001])
    hours = 40 + 5 * is_male - 0.2 * (age - 40) + 3 * (region == 1) + score + rng.normal(0, 8, n)
    pay = [
        None if is_gone else int(one) for is_gone, one in zip(rng.random(n) < 0.1, rng.integers(0, 51, n), strict=True)
    ]
    return pl.DataFrame(
        {
            "hours": hours.clip(0, 80).round().astype(int),
            "age": age,
            "score": score,
            "sex": np.where(is_male, "male", "female"),
            "region": np.array(["a", "b", "c", "rare"])[region],
            "works": rng.random(n) < 0.3 + 0.004 * age,
            "pay": pay,
            "start": pl.Series(rng.integers(11_000, 18_000, n)).cast(pl.Date),
            "id": np.arange(n),
        }
    )


def least_squares(frame: pl.DataFrame, response: str, predictors: list[str]) -> dict[str, float]:
    """The regression of a table as it is, by the textbook."""
    frame = frame.drop_nulls([response, *predictors])
    columns = {"Intercept": np.ones(frame.height)}
    for name in predictors:
        column = COLUMNS[name]
        if not column.listed:
            columns[name] = frame[name].to_numpy().astype(float)
        for value in column.listed[1:]:
            label = str(value).lower() if isinstance(value, bool) else value
            columns[f"{name}[{label}]"] = (frame[name] == value).to_numpy().astype(float)
    found = np.linalg.lstsq(np.stack([*columns.values()], axis=1), frame[response].to_numpy().astype(float), rcond=None)
    return dict(zip(columns, found[0], strict=True))


def fit(analyses, **options):
    options = {"epsilon": 2} | options
    return sp.ForestSynthesizer(analyses=analyses, **options).fit(table(), SCHEMA, entropy=sp.UnsafeSeededEntropy(6))


@pytest.fixture(scope="module")
def fitted():
    return fit([FORMULA, "works ~ age + sex"])


def test_coefficients_are_those_of_the_table_within_their_intervals(fitted):
    """Numbers, categories and the intercept in the units of the columns."""
    found = fitted.release_.regression(FORMULA)
    truth = least_squares(table(), "hours", ["age", "sex", "region", "score"])
    assert list(found) == list(truth)
    assert {answer.statement for answer in found.values()} <= {"calibrated", "not supported"}
    supported = [name for name, answer in found.items() if answer.has_interval]
    assert len(supported) >= 5
    for name in supported:
        answer = found[name]
        assert answer.low < answer.estimate < answer.high
        assert abs(answer.estimate - truth[name]) < 1.6 * answer.half_width, name
    assert abs(found["sex[male]"].estimate - 5) < 1.5


def test_what_does_not_stand_out_of_the_noise_is_not_supported():
    """A dozen rows have this value: at a small epsilon nothing is claimed of it, and still of the sexes."""
    found = fit([FORMULA], epsilon="0.2").release_.regression(FORMULA)
    assert found["region[rare]"].statement == "not supported"
    assert "few rows have this value" in found["region[rare]"].why
    assert found["region[rare]"].low is None
    assert found["sex[male]"].statement == "calibrated"
    assert found["sex[male]"].low < 5 < found["sex[male]"].high


def test_what_is_measured_answers_every_regression_of_its_columns(fitted):
    """Another order, fewer predictors, another response, an intercept alone, and booleans as the response."""
    ask = fitted.release_.regression
    assert ask("hours ~ sex + age")["age"].has_interval
    mean = ask("hours ~ 1")["Intercept"]
    assert abs(mean.estimate - table()["hours"].mean()) < 1.6 * mean.half_width < 1
    share = ask("works ~ age + sex")
    truth = least_squares(table(), "works", ["age", "sex"])
    assert abs(share["age"].estimate - truth["age"]) < 1.6 * share["age"].half_width
    assert ask("works ~ score + region")["region[b]"].has_interval


def test_the_population_has_wider_intervals_and_higher_levels_too(fitted):
    """Sampling adds to noise, and 99 % are wider than 95 %."""
    ask = fitted.release_.regression
    plain, of_all, surer = ask(FORMULA), ask(FORMULA, of="population"), ask(FORMULA, level=0.99)
    for name in ("age", "sex[male]", "score"):
        assert plain[name].half_width < of_all[name].half_width
        assert plain[name].half_width < surer[name].half_width
        assert plain[name].estimate == of_all[name].estimate


def test_it_is_paid_for_told_and_kept_in_the_file(fitted, tmp_path):
    """A stage of its own, sums on the card, the same answers after loading, and verification."""
    release = fitted.release_
    assert {stage.name for stage in release.explain().stages} >= {"analyses"}
    assert "sums of the 2 regressions" in str(release.explain())
    assert release.card.released["sums of analyses"] == release.analyses.n_sums
    assert any("named analyses" in line for line in release.verify_contents())
    release.save(tmp_path / "r.spinney")
    loaded = sp.load(tmp_path / "r.spinney")
    assert loaded.regression(FORMULA).to_dict() == release.regression(FORMULA).to_dict()
    assert loaded.regression(FORMULA).to_frame().columns[:2] == ["name", "estimate"]
    assert "hours ~ age" in str(loaded.regression(FORMULA))


def test_sums_with_less_noise_than_was_paid_for_are_found_out(fitted):
    """A file that states other noise, or sums that nothing paid for, contradicts itself."""
    release, honest = fitted.release_, fitted.release_.analyses
    try:
        release.analyses = replace(honest, variance=honest.variance / 2)
        with pytest.raises(ContradictionError, match="less noise"):
            release.verify_contents()
        release.analyses = None
        with pytest.raises(ContradictionError, match="do not go together"):
            release.verify_contents()
    finally:
        release.analyses = honest


def test_rows_with_nulls_are_left_out():
    """Of an analysis with a nullable column; others keep all rows, and both come from one vector."""
    release = fit(["hours ~ pay + sex", "hours ~ age"], epsilon=5).release_
    found, truth = release.regression("hours ~ pay + sex"), least_squares(table(), "hours", ["pay", "sex"])
    for name, value in truth.items():
        assert abs(found[name].estimate - value) < 2 * found[name].half_width
    assert abs(found.n_rows - table()["pay"].drop_nulls().len()) < 200
    assert release.regression("hours ~ age").n_rows == N
    with pytest.raises(ParameterError, match="was not named before the fit"):
        release.regression("hours ~ sex")  # measured among rows without nulls only


def test_private_numbers_of_rows_are_measured_too():
    """Under add-remove the number of rows is one of the sums."""
    release = fit(["hours ~ age"], unit="add-remove", epsilon=2).release_
    found, truth = release.regression("hours ~ age"), least_squares(table(), "hours", ["age"])
    assert 0 < abs(found.n_rows - N) < 1_000
    assert abs(found["age"].estimate - truth["age"]) < 2 * found["age"].half_width


def test_intervals_hold_as_often_as_they_say():
    """Over the noise alone 95 % hold; with half of the noise accounted for they do not."""
    formula = parse_formula(FORMULA, SCHEMA, argument="formula")
    block, frame = blocks_of([formula], SCHEMA, Unit.REPLACE_ONE)[0], table()
    source = open_source(frame, SCHEMA, engine=None)
    from spinney.forest.sums import _cut

    # The regression of the grid's numbers is the same to four digits.
    truth = least_squares(frame, "hours", ["age", "sex", "region", "score"])
    spreads = {name: Spread(0.0, 0.4) for name in ("hours", "age", "score")}
    block = balanced(block, [formula], spreads, precision=N * 0.1)
    true_sums = true_sums_of(source.state_rows([_cut(column) for column in block.columns]), block)
    rng, variance = np.random.default_rng(5), block.sensitivity_squared(Unit.REPLACE_ONE) / 0.02
    held: dict[float, list[bool]] = {1.0: [], 0.25: []}
    for _ in range(150):
        noisy = true_sums + np.rint(rng.normal(0, np.sqrt(variance), len(true_sums))).astype(np.int64)
        for part, found in held.items():
            moments = fit_moments(block, noisy, variance=part * variance, n_rows=N)
            answers = regress(formula, block, moments, spreads, level=0.95, of="table", n_rows=N, frame="polars")
            found += [one.low <= truth[name] <= one.high for name, one in answers.items() if one.has_interval]
    assert 0.93 <= np.mean(held[1.0]) <= 0.98
    assert np.mean(held[0.25]) < 0.8


@in_one_test(
    ("formula", "says"),
    [
        ("hours", "there is no ~"),
        ("hours ~ agee", "'agee' is not a column of the schema; did you mean 'age'"),
        ("hours ~ age + ", "a column is missing here"),
        (" ~ age", "a column is missing here"),
        ("hours ~ age ~ sex", "a second ~"),
        ("hours ~ age * sex", "no products or functions"),
        ("hours ~ log(age)", "no products or functions"),
        ("hours ~ 0 + age", "an intercept is always fitted"),
        ("hours ~ age + age", "stands in the formula twice"),
        ("hours ~ hours", "stands in the formula twice"),
        ("sex ~ age", "logistic regressions"),
        ("hours ~ id", "is an identifier"),
        ("hours ~ start", "of type date"),
        (7, "entry 1 is no formula"),
    ],
)
def test_wrong_formulas_are_refused_before_anything_is_spent(formula, says):
    """The message shows the formula and points at the place."""
    ledger = sp.Ledger(1, delta="1e-6")
    with pytest.raises(ParameterError, match=says) as caught:
        sp.ForestSynthesizer(analyses=[formula]).fit(table(100), SCHEMA, ledger=ledger)
    assert not ledger.events
    if isinstance(formula, str) and "~" in formula:  # anything else may be a cell of the table, and is not shown
        assert "^" in str(caught.value)


def test_the_pointer_stands_under_the_place():
    """Line by line: the problem, the formula, the pointer."""
    with pytest.raises(ParameterError) as caught:
        parse_formula("hours ~ age + sx", SCHEMA, argument="analyses")
    _, shown, pointer = str(caught.value).splitlines()
    assert shown[pointer.index("^") : pointer.rindex("^") + 1] == "sx"


def test_names_with_signs_stand_between_backticks():
    """A + in a name is not an operator there."""
    schema = sp.Schema({"a+b": sp.Integer(0, 9), "c d": sp.Integer(0, 9)})
    assert parse_formula("`a+b` ~ c d", schema, argument="formula").columns == ("a+b", "c d")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"analyses": FORMULA}, "is not a list of formulas"),
        ({"analyses": [FORMULA, FORMULA]}, "is named twice"),
        ({"analyses": [FORMULA], "delta": 0}, "analyses need a delta"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_spent(options, says):
    """Lists, repetitions and pure epsilon."""
    ledger = sp.Ledger(1, delta="1e-6")
    with pytest.raises(ParameterError, match=says):
        sp.ForestSynthesizer(**options).fit(table(100), SCHEMA, ledger=ledger)
    assert not ledger.events


def test_too_many_values_are_refused():
    """The message says how many, and which column has most."""
    schema = sp.Schema({"y": sp.Integer(0, 9), "code": sp.Category([str(code) for code in range(100)])})
    frame = pl.DataFrame({"y": [1, 2], "code": ["1", "2"]})
    with pytest.raises(ParameterError, match="'code' alone has 100"):
        sp.ForestSynthesizer(analyses=["y ~ code"]).fit(frame, schema)


def test_what_was_not_named_is_refused_with_a_remedy(fitted):
    """Other columns, no analyses at all, and options out of range."""
    with pytest.raises(ParameterError, match=r"analyses=\['hours ~ pay'\]"):
        fitted.release_.regression("hours ~ pay")
    with pytest.raises(ParameterError, match="none was named"):
        fit(None).release_.regression(FORMULA)
    with pytest.raises(ParameterError, match="level=2"):
        fitted.release_.regression(FORMULA, level=2)
    with pytest.raises(ParameterError, match="of='rows'"):
        fitted.release_.regression(FORMULA, of="rows")


def test_check_and_the_command_line_take_analyses(tmp_path):
    """`fit --analysis` measures it, `check` points at a wrong one."""
    table(2_000).write_parquet(tmp_path / "t.parquet")
    SCHEMA.to_file(tmp_path / "s.toml")
    common = [str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "s.toml")]
    out = tmp_path / "r.spinney"
    runner = CliRunner()
    done = runner.invoke(app, ["fit", *common, "--epsilon", "2", "--analysis", "hours ~ age", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert sp.load(out).regression("hours ~ age")["age"].has_interval
    checked = runner.invoke(app, ["check", *common, "--analysis", "hours ~ agee"])
    assert checked.exit_code != 0
    assert "did you mean 'age'" in checked.output
    assert sp.check(table(100), SCHEMA, analyses=["hours ~ age"]).is_clean
