"""What a plan says, how it is shown, and what it refuses. No table is at hand in any of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError, SchemaError, UnknownParameterError
from support.command_line import spinney
from support.in_one_test import in_one_test
from support.small_people import FLAT, TABLES, write_shop

SQUARE = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
MIXED = sp.Schema(
    {"age": sp.Integer(0, 99), "kind": sp.Category(["a", "b", "c"]), "amount": sp.Real(0, 1000), "label": sp.Boolean()}
)
# Quickly planned at every quality.
SMALL = sp.Schema({"kind": sp.Category(["a", "b", "c"]), "size": sp.Category(list("abcd")), "label": sp.Boolean()})


# ------------------------------------------------------------------------------------------------------- measured


def test_measured_errors_of_a_forest_are_the_expected_ones():
    """Over seeded releases, noise on counts of single columns spreads as planned, and not by 0.7 or 1.3 times that.

    What the model then answers is nearer to the table, as all counts are fitted to each other.
    """
    rng = np.random.default_rng(0)
    n_rows, n_columns, n_releases = 5000, 4, 12
    table = rng.choice(4, (n_rows, n_columns), p=[0.1, 0.2, 0.3, 0.4])
    schema = sp.Schema({f"c{number}": sp.Category(range(4)) for number in range(n_columns)})
    plan = sp.plan(schema, n_rows, 1)
    expected = next(error for error in plan.errors if error.stage == "one-way").noise_std
    true = np.array([np.bincount(column, minlength=4) for column in table.T])
    noise, errors = [], []
    for seed in range(n_releases):
        release = sp.ForestSynthesizer(1).fit(table, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        noise.append(np.array([column.noisy for column in release.measured.columns]) - true)
        errors.append([release.count({f"c{c}": 0}).estimate - true[c, 0] for c in range(n_columns)])
    n_draws = np.size(noise)
    spread = math.sqrt(np.mean(np.square(noise)))
    within = 4 / math.sqrt(2 * n_draws)  # four standard deviations of a standard deviation
    assert abs(spread / expected - 1) < within < 0.25
    assert math.sqrt(np.mean(np.square(errors))) < 1.2 * expected
    assert plan.answer.noise_std == expected
    low, high = plan.answer.interval
    assert low <= 500 - 1.9 * expected < 500 + 1.9 * expected <= high


def test_measured_errors_of_a_tree_are_about_the_expected_ones():
    """Boxes that hold a tenth of evenly spread rows are off by about as much as planned, over seeded releases."""
    rng = np.random.default_rng(0)
    table = rng.random((20_000, 2))
    plan = sp.plan(SQUARE, 20_000, 1)
    errors, n_leaves = [], []
    for seed in range(8):
        model = sp.KDTreeSynthesizer(1).fit(table, SQUARE, entropy=sp.UnsafeSeededEntropy(seed))
        n_leaves.append(model.card_.released["leaves"])
        for x in (0, 0.25, 0.5):
            for y in (0, 0.2, 0.6):
                inside = (table[:, 0] >= x) & (table[:, 0] <= x + 0.25) & (table[:, 1] >= y) & (table[:, 1] <= y + 0.4)
                answer = model.release_.count({"x": (x, x + 0.25), "y": (y, y + 0.4)})
                errors.append(answer.estimate - inside.sum())
    assert 0.7 < math.sqrt(np.mean(np.square(errors))) / plan.answer.noise_std < 1.5
    assert np.mean(n_leaves) == pytest.approx(plan.structure.numbers["leaves of even rows"], rel=0.1)


# ------------------------------------------------------------------------------------------------------ what it says


def test_more_epsilon_buys_more():
    """Noise falls and structures grow with epsilon, in rows that say so side by side."""
    plans = sp.plan(SMALL, 1000, ["0.005", "0.5", 5], quality="high", delta=0)
    assert [plan.structure.name for plan in plans] == ["uniform", "tree", "rounds"]
    noises = [plan.errors[0].noise_std for plan in plans[1:]]
    assert noises[0] > 5 * noises[1]
    assert any("so far nothing is told from noise" in hint for hint in plans[0].hints)
    page = str(plans)
    assert "uniform" in page
    assert "rounds" in page
    assert [len(plans), len(plans[1:])] == [3, 2]
    assert json.loads(json.dumps(plans.to_dict()))["plans"][2]["structure"]["name"] == "rounds"


def test_a_hint_names_an_epsilon_that_does_pay_for_more():
    """What a hint says of another epsilon is what the plan for that one says."""
    plan = sp.plan(MIXED, 2000, "0.05")
    (hint,) = (hint for hint in plan.hints if "would pay for" in hint)
    larger = sp.plan(MIXED, 2000, hint.split()[1].rstrip(","))
    assert plan.structure.name == "independent"
    assert larger.structure.name == "tree"
    assert "pairs of columns along a tree" in hint


def test_everything_is_said():
    """Method, guarantee as odds, structure, errors, question, budget, what is not known: as data and text."""
    plan = sp.plan(MIXED, 10_000, 1, target="label", utility_share="0.05")
    told = json.loads(json.dumps(plan.to_dict()))
    assert (told["method"], told["reason"]) == ("forest", "there is a target, 'label'")
    assert told["promise"]["guess"] == 0.7311
    assert [group["size"] for group in told["promise"]["groups"]] == [2, 5, 10]
    assert math.isclose(sum(stage["share"] for stage in told["budget"]), 1)
    assert {"classes", "one-way", "pairs", "cliques"} == {error["stage"] for error in told["errors"]}
    assert {cost["stage"] for cost in told["costs"]} == {"classes", "utility"}
    assert told["answer"]["low"] < told["answer"]["expected"] == 1000 < told["answer"]["high"]
    assert any("'label'" in sentence for sentence in told["unknown"])
    page = str(plan)
    for text in ("10,000 rows at epsilon 1", "nothing was spent", "73.2 %", "triples with the target", "not known"):
        assert text in page
    assert all(len(line) <= 100 for line in page.splitlines())
    html = plan._repr_html_()
    assert "spinney-fragment" in html
    assert "73.2 %" in html
    assert "spinney-fragment" in sp.plan(SMALL, 1000, ["0.5", 5], quality="high", delta=0)._repr_html_()


def test_names_are_escaped():
    """A column's name is text in HTML, not markup."""
    schema = sp.Schema({"<script>": sp.Category(["a", "b"]), "b": sp.Category(["a", "b"])})
    assert "<script>" not in sp.plan(schema, 1000, 1, delta=0)._repr_html_()


def test_thresholds_that_lose_evenly_spread_rows_are_told():
    """No interval is promised where most leaves of evenly spread rows would fall below the threshold."""
    plan = sp.plan(SQUARE, 50_000, 1, rule="paper")
    assert plan.answer is None
    assert "they hold about 49 each" in plan.structure.sentence
    assert any("threshold" in hint for hint in plan.hints)
    assert sp.plan(SQUARE, 50_000, 1, moments=False, threshold=1).structure.smallest_group > 1


@pytest.mark.parametrize("schema", [FLAT, pytest.param(TABLES, marks=pytest.mark.long)], ids=["flat", "linked"])
def test_persons_are_planned_for_as_persons(schema):
    """Of persons with many rows, the number is of persons, and so are noise and guarantee."""
    plan = sp.plan(schema, 600, 2)
    assert plan.method == "linked"
    assert plan.who == "persons"
    assert "one person with all their rows" in plan.promise["protected"]
    assert "600 persons" in str(plan)
    assert {"row one-way", "row tables"} <= {error.stage for error in plan.errors}


def test_a_private_number_of_rows_stands_for_the_assumed_one():
    """Under add-remove the number that is stated is assumed, and the plan says what counting would cost."""
    plan = sp.plan(SMALL, 1000, 1, unit="add-remove")
    assert plan.card.n_rows is None
    assert plan.card.assumed_rows == 1000
    assert any("assumed_rows" in sentence for sentence in plan.unknown)
    with pytest.raises(ParameterError, match="assumed_rows: a plan takes the number of rows for it"):
        sp.plan(SMALL, 1000, 1, unit="add-remove", assumed_rows=5)


# --------------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize("n_rows", [0, -3, 2.5, "many", True, None, 2**50])
def test_numbers_of_rows_that_are_none(n_rows):
    """Nonsense is refused by name, with what is wanted."""
    with pytest.raises(ParameterError, match=r"n_rows=.* is not a whole number from 1 to"):
        sp.plan(MIXED, n_rows, 1)


@in_one_test(
    ("given", "error", "message"),
    [
        ({"epsilon": -1}, ParameterError, "epsilon=-1 is not positive"),
        ({"epsilon": "much"}, ParameterError, "epsilon='much' is not a number"),
        ({"epsilon": []}, ParameterError, "a list of 0"),
        ({"epsilon": [1, 0]}, ParameterError, "epsilon=0 is not positive"),
        ({"target": "nobody"}, ParameterError, "target='nobody' is not a column"),
        ({"quality": "superb"}, ParameterError, "quality='superb'"),
        ({"delta": 2}, ParameterError, "delta=2 is 1 or more"),
        ({"utility_share": 3}, ParameterError, "utility_share=3"),
        ({"class_size": 5}, ParameterError, "class_size is of the classes of a forest's target"),
        ({"target": "label", "class_size": 0}, ParameterError, "class_size=0"),
        ({"bogus": 1}, ParameterError, "bogus is not a parameter of any method"),
        ({"method": "linked"}, ParameterError, "method='linked' is for persons"),
        ({"method": "tree", "delta": 0}, ParameterError, "delta is for"),
        ({"workload": [["age", "none"]]}, ParameterError, "workload: the second name of table 1"),
    ],
    ids=str,
)
def test_parameters_that_fit_would_refuse(given, error, message):
    """A plan refuses what a fit would refuse before it reads a row, with the same words."""
    with pytest.raises(error, match=message):
        sp.plan(MIXED, 1000, **{"epsilon": 1, **given})


def test_other_refusals():
    """A schema that is none, values that no such budget finds, and persons that none can see."""
    with pytest.raises((SchemaError, UnknownParameterError, ParameterError)):
        sp.plan({"x": 3}, 100, 1)
    with pytest.raises(BudgetError, match="a value is found from about"):
        sp.plan({"code": sp.Category(values="private", other="rest")}, 3, 1)
    with pytest.raises(BudgetError, match="too small for 20 persons"):
        sp.plan(FLAT, 20, "0.01")


# --------------------------------------------------------------------------------------------------- the command


def test_the_verb_prints_pages_and_data(tmp_path):
    """One epsilon gives a page, several a table, --json data; schemas of persons and linked tables take persons."""
    path = tmp_path / "schema.toml"
    MIXED.to_file(path)
    shop = write_shop(tmp_path)
    (tmp_path / "sales.parquet").unlink()  # a plan opens no table
    page = spinney("plan", path, "--rows", "1e4", "--epsilon", 1, "--target", "label", "--delta", 0)
    assert page.status == 0
    assert "Plan for 10,000 rows at epsilon 1" in page.out
    assert (
        "Plans for 10,000 rows"
        in spinney("plan", path, "--rows", 10_000, "--epsilon", 1, "--epsilon", 2, "--delta", 0).out
    )
    told = json.loads(spinney("plan", "--tables", shop, "--persons", 600, "--epsilon", 2, "--json").out)
    assert told["who"] == "persons"
    assert told["n_rows"] == 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name one SCHEMA"),
        (("schema.toml", "--tables", "shop.toml", "--rows", "5"), "name one SCHEMA"),
        (("schema.toml",), "--rows is missing"),
        (("schema.toml", "--rows", "5", "--persons", "5"), "both given"),
        (("schema.toml", "--persons", "5"), "does not say whose rows"),
        (("schema.toml", "--rows", "0"), "--rows=0 is not a whole number"),
        (("flat.toml", "--rows", "50"), "say --persons"),
        (("schema.toml", "--rows", "50", "--bins", "3", "--target", "label"), "--bins is for the grid"),
    ],
    ids=str,
)
def test_the_verb_says_what_is_wrong(tmp_path, monkeypatch, arguments, message):
    """Wrong calls name the option and the remedy."""
    MIXED.to_file(tmp_path / "schema.toml")
    write_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = spinney("plan", *arguments, "--epsilon", "1")
    assert done.status != 0
    assert message in done.err
