"""Questions to a tree: conditions on every kind of column, what each answer says of itself, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Answers
from support.in_one_test import in_one_test

N = 3000


def tree(epsilon: str, **options) -> sp.KDTreeSynthesizer:
    return sp.KDTreeSynthesizer(epsilon, **{"moments": True, **options})


def fitted(frame: pd.DataFrame, columns: dict, epsilon: str = "2000", seed: int = 3, **options):
    return tree(epsilon, **options).fit(frame, sp.Schema(columns), entropy=sp.UnsafeSeededEntropy(seed)).release_


def column_examples() -> dict[str, tuple[sp.Column, list]]:
    """A column of every kind with values that lie at its ends, in piles and in between; None is null."""
    rng = np.random.default_rng(5)
    money = np.round(rng.lognormal(3, 1.5, N).clip(0, 5000), 2)
    money[rng.random(N) < 0.3] = rng.choice([0, 10, 100, 500], (rng.random(N) < 0.3).sum() or 1)[0]
    whole = rng.integers(-20, 400, N)
    whole[rng.random(N) < 0.2] = 0
    days = [date(2001, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 4000, N)]
    return {
        "even": (sp.Real(-1.3, 2.9), rng.normal(0.7, 0.5, N).clip(-1.3, 2.9).tolist()),
        "money": (sp.Real(0, 5000, multiple_of=0.01), money.tolist()),
        "decades": (sp.Real(0, 5000), money.tolist()),
        "steps": (sp.Real(0, 10, multiple_of=0.5), (rng.integers(0, 21, N) / 2).tolist()),
        "whole": (sp.Integer(-20, 400), whole.tolist()),
        "fives": (sp.Integer(0, 100, multiple_of=5), (5 * rng.integers(0, 21, N)).tolist()),
        "days": (sp.Date("2001-01-01", "2015-12-31"), days),
        "moments": (
            sp.Datetime("2020-01-01", "2020-12-31"),
            [datetime(2020, 1, 1) + timedelta(minutes=int(m)) for m in rng.integers(0, 500_000, N)],
        ),
        "flag": (sp.Boolean(), (rng.random(N) < 0.3).tolist()),
        "colour": (
            sp.Category(["a", "b", "c", "d", "e"]),
            rng.choice(list("abcde"), N, p=[0.5, 0.2, 0.1, 0.1, 0.1]).tolist(),
        ),
        "some": (sp.Real(0, 1, nullable=True), [None if rng.random() < 0.2 else float(v) for v in rng.beta(2, 5, N)]),
        "few": (
            sp.Integer(0, 9, nullable=True),
            [None if rng.random() < 0.2 else int(v) for v in rng.integers(0, 10, N)],
        ),
    }


EXAMPLES = column_examples()


def conditions(column: sp.Column, values: list) -> list:
    """What may be asked of a column: values, ranges with and without ends, lists, null."""
    rng = np.random.default_rng(1)
    known = sorted({value for value in values if value is not None})
    asked: list = []
    if isinstance(column, sp.Boolean):
        return [True, False]
    if isinstance(column, sp.Category):
        return ["a", ["a", "c"], ["b", "d", "e"]]
    for _ in range(6):
        low, high = sorted(rng.integers(0, len(known), 2))
        asked.append((known[low], known[high]))
    asked += [(None, known[len(known) // 3]), (known[len(known) // 2], None), known[len(known) // 4]]
    if isinstance(column, sp.Integer):
        asked.append([known[0], known[3], known[-1]])
    if column.nullable:
        asked.append(None)
    return asked


def is_met(values: list, wanted) -> np.ndarray:
    if wanted is None:
        return np.array([value is None for value in values])
    several = wanted if isinstance(wanted, list) else [wanted]

    def one(value, part) -> bool:
        if value is None:
            return False
        if isinstance(part, tuple):
            return (part[0] is None or value >= part[0]) and (part[1] is None or value <= part[1])
        return value == part

    return np.array([any(one(value, part) for part in several) for value in values])


@pytest.fixture(scope="module")
def releases():
    """One release of each kind of column beside a real one, with next to no noise: what is left is geometry."""
    made = {}
    rng = np.random.default_rng(0)
    other = rng.random(N)
    for name, (column, values) in EXAMPLES.items():
        series = pd.Series(values, dtype="Int64") if isinstance(column, sp.Integer) else pd.Series(values)
        frame = pd.DataFrame({"v": series, "x": other})
        made[name] = fitted(frame, {"v": column, "x": sp.Real(0, 1)}, max_depth=10)
    return made, other


@pytest.mark.parametrize("name", EXAMPLES)
def test_certified_counts_hold_for_every_kind_of_column(releases, name: str) -> None:
    """With hardly any noise an interval is what the cut leaves leave open: it holds the truth every time."""
    made, other = releases
    column, values = EXAMPLES[name]
    for wanted in conditions(column, values):
        met = is_met(values, wanted)
        for more, also in (({}, True), ({"x": (0.21, 0.83)}, (other >= 0.21) & (other <= 0.83))):
            truth = int((met & also).sum())
            answer = made[name].count({"v": wanted, **more}, statement="certified", level=0.99)
            assert answer.low <= truth <= answer.high, (wanted, more, truth, str(answer))
            assert answer.low <= answer.estimate <= answer.high
            share = made[name].proportion({"v": wanted}, given=more, statement="certified", level=0.99)
            shared = truth / (N if not more else int(also.sum()))
            assert share.low - 1e-9 <= shared <= share.high + 1e-9, (wanted, more)


@pytest.mark.parametrize("name", ["even", "money", "decades", "steps", "whole", "fives", "flag", "some", "few"])
def test_certified_means_and_quantiles_hold_for_every_kind_of_number(releases, name: str) -> None:
    """Over all rows and over ranges of either column, nulls left out, the true mean and quantiles are inside."""
    made, other = releases
    column, values = EXAMPLES[name]
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    for where, also in (({}, np.ones(N, dtype=bool)), ({"x": (0.21, 0.83)}, (other >= 0.21) & (other <= 0.83))):
        chosen = numbers[also & ~np.isnan(numbers)]
        answer = made[name].mean("v", where=where, statement="certified", level=0.99)
        assert answer.low - 1e-9 <= chosen.mean() <= answer.high + 1e-9, (where, str(answer), chosen.mean())
        if isinstance(column, sp.Boolean):
            continue
        for at in (0.1, 0.5, 0.8):
            truth = np.quantile(chosen, at, method="inverted_cdf")
            answer = made[name].quantile("v", at, where=where, statement="certified", level=0.99)
            assert answer.low - 1e-9 <= truth <= answer.high + 1e-9, (where, at, str(answer), truth)


@pytest.mark.parametrize("name", EXAMPLES)
def test_estimates_are_near_for_every_kind_of_column(releases, name: str) -> None:
    """The density puts about as many rows into a range as there are; a tenth of all rows would be far off."""
    made, _ = releases
    column, values = EXAMPLES[name]
    for wanted in conditions(column, values):
        truth = int(is_met(values, wanted).sum())
        answer = made[name].count({"v": wanted}, statement="calibrated")
        assert abs(answer.estimate - truth) < 0.05 * N, (wanted, truth, str(answer))
        assert answer.statement == "calibrated"
        assert answer.low <= answer.estimate <= answer.high


# ------------------------------------------------------------------------------------------------- what is said


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"x": rng.normal(5, 2, N).clip(0, 20), "g": rng.choice(["a", "b"], N), "f": rng.random(N) < 0.4}
    )
    return fitted(frame, {"x": sp.Real(0, 20), "g": sp.Category(["a", "b"]), "f": sp.Boolean()}, epsilon="2")


def test_an_answer_says_what_it_is(release) -> None:
    """A line for people, plain data for programs, and the kind of statement."""
    answer = release.count({"g": "a", "x": (3, 6)}, statement="calibrated")
    assert isinstance(answer, Answer)
    assert answer.asked == "count where g = a and x in 3..6"
    assert str(answer).startswith(f"{answer.estimate:,.1f}   {answer.low:,.1f} to {answer.high:,.1f} (95 %")
    assert "(95 %, calibrated: " in str(answer)
    assert answer.to_dict()["statement"] == "calibrated"
    assert answer == release.count({"g": "a", "x": (3, 6)}, statement="calibrated")


def test_the_number_of_rows_is_known_where_it_is_public(release) -> None:
    """Without a condition the count is exact under replace-one, and has an interval under add-remove."""
    answer = release.count()
    assert (answer.low, answer.estimate, answer.high) == (N, N, N)
    frame = release.sample(500, seed=1)
    private = tree("2", unit="add-remove", assumed_rows=500).fit(
        frame, release.schema, entropy=sp.UnsafeSeededEntropy(1)
    )
    answer = private.release_.count()
    assert answer.low < 500 < answer.high
    share = private.release_.proportion({"g": "a"}, statement="certified")
    assert 0 < share.low < (frame["g"] == "a").mean() < share.high < 1


def test_unasked_an_answer_is_certified_where_no_leaf_is_cut(release) -> None:
    """auto: whole leaves are certified; a range that cuts many is calibrated; either can be asked for."""
    assert release.count({"g": "a"}).statement == "certified"
    assert release.mean("x").statement == "certified"
    assert release.quantile("x").statement == "calibrated"
    for wanted in ("certified", "calibrated"):
        assert release.count({"x": (3.1, 6.2)}, statement=wanted).statement == wanted
    narrow, wide = (release.count({"x": (3.1, 6.2)}, statement=kind) for kind in ("calibrated", "certified"))
    assert wide.high - wide.low > narrow.high - narrow.low


def test_higher_levels_are_wider_and_populations_wider_still(release) -> None:
    """An interval grows with its level, and with the sampling error of the rows."""
    for statement in ("certified", "calibrated"):
        widths = [
            answer.high - answer.low
            for answer in (
                release.count({"g": "a"}, statement=statement, level=0.8),
                release.count({"g": "a"}, statement=statement, level=0.99),
                release.count({"g": "a"}, statement=statement, level=0.99, of="population"),
            )
        ]
        assert widths == sorted(widths)
        assert widths[2] > 1.2 * widths[1]


def test_tables_have_a_cell_for_every_value(release) -> None:
    """By one column and by two; labels, frames of each kind, ranges given by hand, means by group."""
    cells = release.table("g", simultaneous=True)
    assert isinstance(cells, Answers)
    assert cells.labels == (("a",), ("b",))
    assert sum(cell.estimate for cell in cells) == pytest.approx(N, abs=60)
    alone, at_once = (release.table(["g", "f"], simultaneous=choice) for choice in (False, True))
    assert at_once[0].high - at_once[0].low > alone[0].high - alone[0].low
    frame = release.table(["g", "f"]).to_frame("pandas")
    assert list(frame) == ["g", "f", "estimate", "low", "high", "statement", "why"]
    assert len(frame) == 4
    ranges = release.table({"x": [(0, 5), (5.0001, 20)]}, where={"g": "a"})
    assert ranges.to_frame("pyarrow")["x"].to_pylist() == ["0..5", "5.0001..20"]
    means = release.mean("x", by="g")
    assert [abs(cell.estimate - 5) < 0.5 for cell in means] == [True, True]
    assert means.cell("a") is means[0]
    with pytest.raises(ParameterError, match="has no cell"):
        means.cell("z")


def test_trust_says_what_to_expect(release) -> None:
    """Every column and pair has a verdict, and three columns at once are no more than indicative."""
    trust = release.trust(["x", "g", "f"])
    assert trust.of("g", "x").statement == "calibrated"
    assert trust.statement == "indicative"
    assert "scatter of rows along x" in str(trust)
    assert release.trust(["x", "g"]).statement == "calibrated"


def test_four_columns_are_called_rough() -> None:
    """Where most of the doubt is where rows lie, an answer from four columns says so."""
    rng = np.random.default_rng(0)
    rows = np.round(rng.beta(2, 3, (N, 4)) * 4) / 4 * 0.98 + 0.01
    release = fitted(pd.DataFrame(rows, columns=list("abcd")), {name: sp.Real(0, 1) for name in "abcd"}, epsilon="8")
    answer = release.count({"a": (0.1, 0.4), "b": (0.3, 0.6), "c": (0.1, 0.8)}, statement="calibrated")
    assert "rough" in answer.why


# ----------------------------------------------------------------------------------------------- what is refused

REFUSED = [
    (lambda r: r.count({"zz": 1}), "there is no column 'zz'"),
    (lambda r: r.count({"g": "c"}), "'c'"),
    (lambda r: r.count({"g": []}), "none of its values"),
    (lambda r: r.count({"x": (30, 40)}), "never"),
    (lambda r: r.count({"x": (6, 3)}), "swap"),
    (lambda r: r.count({"x": (None, None)}), "says nothing"),
    (lambda r: r.count({"x": None}), "never null"),
    (lambda r: r.count([1]), "not a mapping"),
    (lambda r: r.count(level=0), "between 0 and 1"),
    (lambda r: r.count(level=1.0), "between 0 and 1"),
    (lambda r: r.count(level=95), "0.95"),
    (lambda r: r.count(level="high"), "between 0 and 1"),
    (lambda r: r.mean("x", level=0.99999, statement="certified"), "lower level"),
    (lambda r: r.count(of="sample"), "'population'"),
    (lambda r: r.count(statement="sure"), "'certified'"),
    (lambda r: r.proportion({}), "needs a condition"),
    (lambda r: r.proportion({"g": "a"}, given={"g": "b"}), "`given`"),
    (lambda r: r.mean("g"), "takes columns of numbers"),
    (lambda r: r.mean("zz"), "no column"),
    (lambda r: r.mean("x", of="population", statement="certified"), "calibrated"),
    (lambda r: r.quantile("f"), "takes columns of numbers"),
    (lambda r: r.quantile("x", 1.5), "between 0 and 1"),
    (lambda r: r.table([]), "names no column"),
    (lambda r: r.table("x"), "give ranges"),
    (lambda r: r.table(["g", "g"]), "twice"),
    (lambda r: r.table("g", where={"g": "a"}), "`by` and in `where`"),
    (lambda r: r.table("g", simultaneous="yes"), "simultaneous"),
    (lambda r: r.trust(["zz"]), "no column"),
    (lambda r: r.trust([]), "name the columns"),
    (lambda r: r.trust(5), "columns is a int; name the columns of the analysis in a list"),
    (lambda r: r.table({"g": ["a", "a"]}), "column 'g' has the cell 'a' twice"),
    (lambda r: r.table({"x": [(0, 0.5), (0, 0.5)]}), "twice; list it once"),
]


@in_one_test(("ask", "told"), REFUSED, ids=range(len(REFUSED)))
def test_a_question_that_makes_no_sense_is_refused(release, ask, told: str) -> None:
    """Unknown columns, empty conditions, ranges outside the bounds, levels outside (0, 1): each says what to do."""
    with pytest.raises(ParameterError) as err:
        ask(release)
    assert told in str(err.value)


def test_bins_refuse_and_say_what_to_fit() -> None:
    """A release of bins has no counts below its threshold, and says which release has."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(500), "y": rng.random(500)})
    release = fitted(frame, {"x": sp.Real(0, 1), "y": sp.Real(0, 1)}, epsilon="1", moments=False)
    for ask in (lambda: release.count({"x": (0, 0.5)}), lambda: release.trust(["x"])):
        with pytest.raises(ParameterError, match="moments=True"):
            ask()


def test_files_answer_as_the_release_did(release, tmp_path) -> None:
    """A saved and loaded release gives the same answers, to the last digit."""
    release.save(tmp_path / "tree.spinney")
    loaded = sp.load(tmp_path / "tree.spinney")
    for statement in ("certified", "calibrated"):
        one, other = (held.count({"x": (3, 6)}, statement=statement) for held in (release, loaded))
        assert one == other
