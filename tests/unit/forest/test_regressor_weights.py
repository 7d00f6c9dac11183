"""Weights of named regressions: where noise goes, what files say of them, and intervals where it hides a predictor."""

from __future__ import annotations

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import spinney as sp
from spinney.cli.app import app
from spinney.errors import ParameterError
from spinney.forest.release.analyses import Spread, balanced, spreads_of
from spinney.forest.release.formula import MOST_WEIGHT, Block, blocks_of, parse_formulas
from spinney.forest.release.regression import LeastSquares, fit_moments, regress
from spinney.forest.sums import _cut, true_sums_of
from spinney.privacy.budget import Unit
from spinney.release.card import ContradictionError
from spinney.tables.open import open_source

N = 10_000
SCHEMA = sp.Schema(
    {
        "value": sp.Integer(0, 1000),
        "income": sp.Real(0, 100),
        "age": sp.Integer(0, 100),
        "place": sp.Category(["coast", "inland", "island"]),
    }
)
FORMULA = "value ~ income + age + place"


def table() -> pl.DataFrame:
    """Incomes fill a twentieth of their bounds, go with places, and explain most of the values."""
    rng = np.random.default_rng(1)
    place = rng.choice(3, N, p=[0.6, 0.3995, 0.0005])
    income = (4 - 1.2 * (place == 1) + rng.normal(0, 1.5, N)).clip(0, 100)
    age = rng.integers(0, 60, N)
    value = 50 + 40 * income - 60 * (place == 1) + age + rng.normal(0, 40, N)
    names = np.array(["coast", "inland", "island"])[place]
    return pl.DataFrame({"value": value.clip(0, 1000).astype(int), "income": income, "age": age, "place": names})


def truth() -> dict[str, float]:
    frame = table()
    columns = {"Intercept": np.ones(N), "income": frame["income"].to_numpy(), "age": frame["age"].to_numpy()}
    columns |= {f"place[{name}]": (frame["place"] == name).to_numpy() for name in ("inland", "island")}
    found = np.linalg.lstsq(np.stack([*columns.values()], axis=1).astype(float), frame["value"].to_numpy(), rcond=None)
    return dict(zip(columns, found[0], strict=True))


def spreads(block: Block) -> dict[str, Spread]:
    found = {}
    for column in block.columns:
        if column.is_number:
            offset, reach = column.line
            values = (table()[column.name].to_numpy() - offset) / reach
            found[column.name] = Spread(float(values.mean()), float(values.std()))
    return found


def trials(block: Block, mean_squared: float, n_trials: int = 120):
    """Answers over noise drawn anew."""
    (formula,) = parse_formulas([FORMULA], SCHEMA)
    source = open_source(table(), SCHEMA, engine=None)
    sums = true_sums_of(source.state_rows([_cut(column) for column in block.columns]), block)
    variance, rng = block.sensitivity_squared(Unit.REPLACE_ONE) / mean_squared, np.random.default_rng(2)
    for _ in range(n_trials):
        noisy = sums + np.rint(rng.normal(0, np.sqrt(variance), len(sums))).astype(np.int64)
        moments = fit_moments(block, noisy, variance=variance, n_rows=N)
        yield regress(formula, block, moments, spreads(block), level=0.95, of="table", n_rows=N, frame="polars")


def weighted(mean_squared: float) -> tuple[Block, Block]:
    formulas = parse_formulas([FORMULA], SCHEMA)
    (even,) = blocks_of(formulas, SCHEMA, Unit.REPLACE_ONE)
    return even, balanced(even, formulas, spreads(even), precision=N * mean_squared**0.5)


@pytest.mark.parametrize("mean_squared", [0.014, 0.26, 40.0])
def test_intervals_hold_also_where_noise_hides_a_predictor(mean_squared):
    """What goes with a hidden predictor is wide or not supported, never narrow and wrong."""
    _, block = weighted(mean_squared)
    held, expected = [], truth()
    for found in trials(block, mean_squared):
        held += [one.low <= expected[name] <= one.high for name, one in found.items() if one.has_interval]
        assert not found["place[island]"].has_interval
    assert len(held) > 20
    assert np.mean(held) >= 0.93


def test_an_equation_that_noise_answers_would_make_intervals_wrong():
    """With the sums of squares taken for granted, what goes with the hidden predictor is narrow and off."""
    _, block = weighted(0.014)
    expected, held = truth(), []
    with mock.patch.object(LeastSquares, "_hides", return_value=False):
        for found in trials(block, 0.014):
            one = found["place[inland]"]
            held += [one.low <= expected["place[inland]"] <= one.high] if one.has_interval else []
    assert len(held) > 20
    assert np.mean(held) < 0.8


def test_weights_make_intervals_narrower():
    """Where the predictors are told, weights from released spreads make intervals narrower than even ones."""
    widths = []
    for block in weighted(40.0):
        answers = [found["income"] for found in trials(block, 40.0, 20)]
        widths.append(np.median([one.half_width for one in answers if one.has_interval]))
    even, balanced_width = widths
    assert balanced_width < 0.85 * even


def test_a_response_weighs_more_than_each_of_its_predictors():
    """So does a number that is narrow in its bounds; nothing is out of range."""
    names = ("y", "a", "b", "c")
    schema = sp.Schema({name: sp.Integer(-100, 100) for name in names})
    formulas = parse_formulas(["y ~ a + b + c"], schema)
    (block,) = blocks_of(formulas, schema, Unit.REPLACE_ONE)
    plain = dict.fromkeys(names, Spread(0.0, 0.5))
    found = balanced(block, formulas, plain, precision=1e6)
    weights = dict(zip(found.names, found.weights[1:], strict=True))
    assert weights["y"] > 1.05 * weights["a"]
    narrow = balanced(block, formulas, plain | {"a": Spread(0.0, 0.01)}, precision=1e3)
    assert narrow.columns[1].weight > narrow.columns[2].weight
    assert max(*found.weights, *narrow.weights) <= MOST_WEIGHT


@pytest.mark.parametrize("units", [(1, 1), (1, 1, 1, 1, 0), (1, 1, 1, 1, 1 << 20), (1, 1, 1, 1, 1.5)])
def test_weights_that_cannot_be_are_refused(units):
    """Too few, none, too large, or no whole number."""
    (block,) = blocks_of(parse_formulas([FORMULA], SCHEMA), SCHEMA, Unit.REPLACE_ONE)
    with pytest.raises(ValueError, match="weights of a block"):
        block.weighing(units)


def test_larger_weights_need_more_noise():
    """A file that states other weights for the same noise contradicts what was charged."""
    model = sp.ForestSynthesizer("2", analyses=[FORMULA]).fit(table(), SCHEMA)
    release, honest = model.release_, model.release_.analyses
    assert release.verify_contents()
    (block,) = honest.blocks
    widest = [1 << 15, *((1 << 15) // column.n_steps for column in block.columns)]
    for units, says in ((widest, "less noise"), ([max(1, unit // 4) for unit in block.units], "more noise")):
        release.analyses = replace(honest, blocks=(block.weighing(units),))
        with pytest.raises(ContradictionError, match=f"{says} than what was charged"):
            release.verify_contents()


def test_spreads_are_those_of_the_released_columns():
    """Mean and deviation where the bounds are -1 and 1; a leaf's rows lie evenly in it."""
    release = sp.ForestSynthesizer("20", analyses=[FORMULA]).fit(table(), SCHEMA).release_
    (block,) = release.analyses.blocks
    found, expected = spreads_of(block, release.columns), spreads(block)
    for name, spread in expected.items():
        assert found[name].mean == pytest.approx(spread.mean, abs=0.02)
        assert found[name].deviation == pytest.approx(spread.deviation, rel=0.3)


def test_a_larger_share_gives_less_noise():
    """For what a row can move; shares outside (0, 1) are refused before anything is spent."""
    noise = []
    for share in ("0.1", "0.8"):
        model = sp.ForestSynthesizer("5", analyses=[FORMULA], analyses_share=share).fit(table(), SCHEMA)
        assert model.release_.verify_contents()
        found = model.release_.analyses
        noise.append(found.variance / found.sensitivity_squared(Unit.REPLACE_ONE))
    assert noise[1] < noise[0] / 5
    ledger = sp.Ledger(1, delta="1e-6")
    for share in (0, 1, "much"):
        with pytest.raises(ParameterError, match="analyses_share"):
            sp.ForestSynthesizer(analyses=[FORMULA], analyses_share=share).fit(table(), SCHEMA, ledger=ledger)
    assert not ledger.events


# ------------------------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def release_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regressions")
    table().write_parquet(folder / "t.parquet")
    SCHEMA.to_file(folder / "s.toml")
    arguments = ["fit", str(folder / "t.parquet"), "--schema", str(folder / "s.toml"), "--epsilon", "5"]
    arguments += ["--analysis", FORMULA, "--analyses-share", "0.5", "--out", str(folder / "r.spinney")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return str(folder / "r.spinney")


def ask(*arguments: str):
    return CliRunner().invoke(app, ["ask", *arguments])


def test_a_regression_is_printed_by_ask(release_path, tmp_path):
    """As a table, as JSON, as a file and as a picture; the numbers are those of the library."""
    question, found = f"regression {FORMULA}", sp.load(release_path).regression(FORMULA)
    printed = ask(release_path, question)
    assert printed.exit_code == 0, printed.output
    lines = printed.output.splitlines()
    assert lines[1].split()[:2] == ["coefficient", "estimate"]
    assert [line.split()[0] for line in itertools.takewhile(str.strip, lines[2:])] == list(found)
    out, picture = tmp_path / "r.csv", tmp_path / "r.svg"
    as_json = ask(release_path, question, "--json", "--out", str(out), "--picture", str(picture), "--population")
    assert as_json.exit_code == 0, as_json.output
    of_all = sp.load(release_path).regression(FORMULA, of="population")
    written = pl.read_csv(out)
    assert written["coefficient"].to_list() == list(of_all)
    assert written["low"].to_list() == [one.low for one in of_all.values()]
    assert '"coefficient": "income"' in as_json.output
    assert "place[inland]" in picture.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["regression"], "needs a formula"),
        (["regression value"], "needs a formula"),
        (["regression value ~ agee"], "did you mean 'age'"),
        (["regression place ~ age"], "linear probability"),
        (["regresion value ~ age"], "did you mean 'regression'"),
        ([f"regression {FORMULA}", "--certified"], "takes none of `certified`"),
        ([f"regression {FORMULA}", "--force"], "takes none of `certified`, `force`"),
        ([f"regression {FORMULA}", "--simultaneous"], "and `simultaneous`"),
    ],
)
def test_wrong_regressions_are_refused(release_path, arguments, says):
    """With what to type instead."""
    done = ask(release_path, *arguments)
    assert done.exit_code != 0
    assert says in done.output


def test_trees_measure_no_regressions(tmp_path):
    """The message names what does."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.random(500), "y": rng.random(500)})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    sp.KDTreeSynthesizer("1").fit(frame, schema).release_.save(tmp_path / "t.spinney")
    done = ask(str(tmp_path / "t.spinney"), "regression y ~ x")
    assert done.exit_code != 0
    assert "--analysis" in done.output
