"""What forests say of their answers: which statement, why, and what to do where there is none."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from support import one_factor, small_forests

GOLDEN = Path(__file__).parents[2] / "golden"


@cache
def factors(**parameters: Any) -> ForestRelease:
    model = sp.ForestSynthesizer("3", **{"delta": "1e-6", **parameters})
    model.fit(one_factor.table(10_000), one_factor.SCHEMA, entropy=sp.UnsafeSeededEntropy(2))
    return model.release_


def pair(release: ForestRelease, *, together: bool) -> tuple[str, str]:
    """Two columns of values that were counted together, or were not."""
    names = ["flag", "mark", "band", "colour"]
    counted = [set(group) for group in release.looked_at]
    return next(
        (one, other)
        for at, one in enumerate(names)
        for other in names[at + 1 :]
        if any({one, other} <= group for group in counted) is together
    )


VALUES = {"flag": True, "mark": True, "band": "b", "colour": "red"}


def asked(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: VALUES[name] for name in names}


def test_one_column_is_certified_where_conditions_hold_whole_leaves() -> None:
    """Values of a category are leaves; a range that cuts a leaf is calibrated unless the certificate is asked for."""
    release = factors()
    whole = release.count({"band": ["a", "b"]})
    assert whole.statement == "certified"
    assert "whatever the rows are" in whole.why
    cut = release.count({"x": (-0.123, 0.4567)})
    assert cut.statement == "calibrated"
    certain = release.count({"x": (-0.123, 0.4567)}, statement="certified")
    assert certain.low is not None
    assert certain.low <= cut.estimate <= certain.high


def test_the_number_of_all_rows_is_public_or_an_estimate() -> None:
    """Under replace-one there is no interval to speak of; under add-remove there is."""
    assert factors().count().low == factors().count().high == 10_000
    private = factors(unit="add-remove", assumed_rows=10_000).count()
    assert private.low < 10_000 < private.high
    assert private.statement == "calibrated"


def test_columns_that_were_counted_together_and_apart_say_so() -> None:
    """Apart, sums of products correct the model and price what is left; the sentence says how well they are known."""
    release = factors()
    together, apart = pair(release, together=True), pair(release, together=False)
    assert release.count(asked(together), statement="calibrated").why.startswith("the columns were counted together")
    found = release.count(asked(apart))
    assert found.statement == "calibrated"
    assert "were not counted together" in found.why
    assert "±" in found.why


def test_without_sums_of_products_pairs_apart_have_no_interval_unless_forced() -> None:
    """Pure epsilon releases none: the estimate stands alone, and the sentence names what to measure."""
    release = factors(delta=0)
    apart = pair(release, together=False)
    found = release.count(asked(apart))
    assert found.statement == "not supported"
    assert found.low is None
    assert found.high is None
    assert any(f"workload=[({one!r}, {other!r})]" in found.why for one, other in (apart, apart[::-1]))
    forced = release.count(asked(apart), force=True)
    assert forced.statement == "not supported"
    assert forced.low < forced.estimate < forced.high
    assert forced.half_width > 50  # assumed to be off by as much as strongly dependent columns are
    assert forced.why.startswith("forced: ")


def test_three_columns_in_no_one_table_are_indicative() -> None:
    """However small the interval, it is not to be tested with."""
    release = factors()
    apart = pair(release, together=False)
    third = next(name for name in VALUES if name not in apart)
    found = release.count(asked((*apart, third)))
    assert found.statement == "indicative"
    assert "workload=" in found.why


def test_a_population_is_less_certain_than_its_table() -> None:
    """Shares and means, of one column and of rows that meet a condition."""
    release = factors()
    for ask in (
        lambda of: release.count({"band": "b"}, of=of, statement="calibrated"),
        lambda of: release.proportion({"flag": True}, given={"band": "b"}, of=of),
        lambda of: release.mean("n", of=of),
        lambda of: release.mean("n", where={"flag": True}, of=of),
        lambda of: release.quantile("x", 0.3, of=of),
    ):
        table, population = ask("table"), ask("population")
        assert table.estimate == population.estimate
        assert population.half_width > table.half_width


def test_a_table_at_once_is_wider_and_adds_up() -> None:
    """The cells of a column, certified; and those of a pair."""
    release = factors()
    single, joint = release.table("band"), release.table("band", simultaneous=True)
    assert all(one.half_width < other.half_width for one, other in zip(single, joint, strict=True))
    assert {answer.statement for answer in joint} == {"certified"}
    apart = pair(release, together=False)
    cells = release.table(list(apart), simultaneous=True)
    assert math.isclose(sum(answer.estimate for answer in cells), 10_000, rel_tol=0.03)


def test_estimates_are_those_of_the_rows() -> None:
    """Counts, shares, means and quantiles lie near those of the table, and inside their intervals' reach."""
    release, rows = factors(), one_factor.table(10_000)
    flags = rows.filter(pl.col("flag"))
    for found, truth in (
        (release.count({"n": (0, 8)}), rows.filter(pl.col("n") <= 8).height),
        (release.count({"colour": None}), rows["colour"].null_count()),
        (
            release.proportion({"band": "b"}, given={"flag": True}),
            flags.filter(pl.col("band") == "b").height / flags.height,
        ),
        (release.mean("n"), rows["n"].mean()),
        (release.mean("n", where={"flag": True}), flags["n"].mean()),
        (release.mean("flag"), rows["flag"].mean()),
        (release.mean("n", statement="certified"), rows["n"].mean()),
        (release.quantile("x", 0.25), rows["x"].quantile(0.25)),
        (release.quantile("n", 0.5, statement="certified"), rows["n"].median()),
    ):
        reach = 2 * found.half_width + 1e-9
        assert abs(found.estimate - truth) <= reach, found


def test_trust_says_beforehand_what_answers_will_say() -> None:
    """Columns, pairs and all together, with the numbers behind the verdicts."""
    release = factors()
    together, apart = pair(release, together=True), pair(release, together=False)
    trust = release.trust(list(dict.fromkeys([*together, *apart])))
    assert trust.of(together[0]).statement == "certified"
    assert trust.of(*apart).statement == release.count(asked(apart)).statement
    assert trust.together.statement == "indicative"
    assert 0 < trust.measures["noise of a mean product"] < 0.05
    assert "counted together" in str(trust)
    assert factors(delta=0).trust(list(pair(factors(delta=0), together=False))).together.instead.startswith("name them")


@pytest.mark.parametrize("name", ["v1-forest-mixed", "v3-forest-products"])
def test_files_from_before_answer_without_intervals_and_say_why(name: str) -> None:
    """They hold no noisy counts; the estimate is the model's."""
    release = sp.load(GOLDEN / f"{name}.spinney")
    found = release.count({"eggs": (1, 3)})
    assert found.statement == "not supported"
    assert "earlier version" in found.why
    assert found.low is None
    rows = release.sample(20_000, seed=1, frame="polars")
    share = rows.filter(pl.col("eggs").is_between(1, 3)).height / rows.height
    assert math.isclose(found.estimate / release._answering.laws.total, share, abs_tol=0.02)
    with pytest.raises(ParameterError, match="earlier version"):
        release.count({"eggs": (1, 3)}, statement="certified")


def test_what_has_no_mean_is_refused() -> None:
    """Categories have shares, not means."""
    release = small_forests.fitted().release_
    with pytest.raises(ParameterError, match="column 'kind' is of type category"):
        release.mean("kind")
    with pytest.raises(ParameterError, match="never"):
        release.count({"size": (7, 9)})


def test_means_that_hang_on_rows_which_noise_hides_are_indicative() -> None:
    """The few rows far out are lost, and the interval reaches to where they may be; counts are as good as any."""
    rng = np.random.default_rng(5)
    far = np.where(rng.random(8000) < 0.02, np.exp(rng.normal(8, 1.2, 8000)), 0).clip(0, 99_999).astype(int)
    rows = pl.DataFrame({"far": far, "near": rng.integers(0, 20, 8000), "flag": rng.random(8000) < 0.5})
    schema = {"far": sp.Integer(0, 100_000), "near": sp.Integer(0, 19), "flag": sp.Boolean()}
    release = sp.ForestSynthesizer("0.5", "1e-6").fit(rows, schema, entropy=sp.UnsafeSeededEntropy(2)).release_
    found = release.mean("far")
    assert found.statement == "indicative"
    assert "certified" in found.why
    assert found.low is not None
    certain = release.mean("far", statement="certified")
    assert 0 == found.low <= far.mean() <= found.high < 1.1 * certain.high < 0.02 * 100_000
    assert release.mean("near").statement == "calibrated"
    assert release.count({"far": (0, 9)}).statement in ("certified", "calibrated")


def test_the_same_question_has_the_same_answer() -> None:
    """Simulated noise and redrawn models follow from the release, not from chance."""
    release = factors()
    again = sp.ForestSynthesizer("3", "1e-6").fit(
        one_factor.table(10_000), one_factor.SCHEMA, entropy=sp.UnsafeSeededEntropy(2)
    )
    for where in ({"band": "b"}, asked(pair(release, together=False)), {"x": (-0.1, 0.3)}):
        assert release.count(where) == again.release_.count(where)
    assert np.isfinite(release.count({"x": 0.1}).estimate)


def test_a_number_stored_in_single_precision_is_found():
    """1.4 is 1.39999998 in such a table, and a pile of it is what is asked for."""
    rng = np.random.default_rng(4)
    values = np.where(rng.random(4000) < 0.4, 1.4, rng.normal(0, 1, 4000)).astype(np.float32)
    schema = sp.Schema({"x": sp.Real(-10, 10), "kind": sp.Category(["a", "b"])})
    table = pl.DataFrame({"x": values, "kind": rng.choice(["a", "b"], 4000)})
    release = sp.ForestSynthesizer("5", "1e-6").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    for wanted in (1.4, (1.4, 1.4)):
        assert abs(release.count({"x": wanted}).estimate - (values == np.float32(1.4)).sum()) < 100


def test_where_the_model_has_no_rows_there_may_be_some() -> None:
    """A place without rows was counted with noise like all others, and its interval says so."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 4000)
    lon, lat = (rng.normal(np.where(kind == 1, one, two), 0.3).clip(0, 10) for one, two in ((2, 8), (8, 3)))
    rows = pl.DataFrame({"lon": lon, "lat": lat, "kind": np.where(kind == 1, "a", "b")})
    columns = {"lon": sp.Real(0, 10), "lat": sp.Real(0, 10), "kind": sp.Category(["a", "b"])}
    schema = sp.Schema(columns, places=[sp.Place("lon", "lat")])
    release = sp.ForestSynthesizer("1", "1e-5").fit(rows, schema, entropy=sp.UnsafeSeededEntropy(0)).release_
    found = release.count({"lon": (0, 1), "lat": (0, 1)})
    assert found.estimate < 1
    assert found.low == 0
    assert 5 < found.high < 100


def test_a_mean_of_no_rows_is_not_supported() -> None:
    """Conditions that no row of the model meets have no mean: no number, and null in JSON."""
    rng = np.random.default_rng(0)
    bmi = [
        None if is_null else float(value)
        for is_null, value in zip(rng.random(2000) < 0.2, rng.normal(28, 5, 2000), strict=True)
    ]
    rows = pl.DataFrame({"bmi": bmi, "g": rng.choice(["a", "b"], 2000)})
    schema = {"bmi": sp.Real(0, 300, nullable=True), "g": sp.Category(["a", "b"])}
    release = sp.ForestSynthesizer("1", "1e-5").fit(rows, schema, entropy=sp.UnsafeSeededEntropy(0)).release_
    for where in ({"bmi": None}, {"bmi": (250, None)}):
        for found in (release.mean("bmi", where=where), release.quantile("bmi", 0.5, where=where)):
            assert (found.statement, found.low) == ("not supported", None)
            assert found.to_dict()["estimate"] is None


def test_values_of_columns_apart_and_of_few_rows_are_indicative() -> None:
    """Sums of products tell counts of pairs apart, not means; states do not tell where few rows lie inside of them."""
    release = factors()
    name, rest = next(
        (name, rest)
        for name in ("x", "y", "z", "n")
        for rest in VALUES
        if not any({name, rest} <= set(group) for group in release.looked_at)
    )
    assert release.count({name: (None, 0), **asked((rest,))}).statement == "calibrated"
    assert release.mean(name, where=asked((rest,))).statement == "indicative"
    assert release.quantile(name, 0.5, where=asked((rest,))).statement == "indicative"
    assert release.quantile(name, 0.5).statement == "calibrated"
    assert release.quantile(name, 0.0005).statement == "indicative"


def test_hours_in_a_column_of_real_numbers_pile_up_at_the_ends_of_ranges() -> None:
    """Whole numbers that nobody stated: the interval of a count reaches over the pile at its end."""
    rng = np.random.default_rng(3)
    hours = np.round(rng.normal(40, 10, 20_000)).clip(0, 80)
    rows = pl.DataFrame({"hours": hours, "g": rng.choice(["a", "b"], 20_000)})
    schema = {"hours": sp.Real(0, 80), "g": sp.Category(["a", "b"])}
    hits = []
    for seed in range(4):
        release = sp.ForestSynthesizer("1", "1e-5").fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for end in (20, 25, 30, 35, 40, 45, 50, 60):
            found = release.count({"hours": (None, end)}, statement="calibrated")
            hits.append(found.low <= (hours <= end).sum() <= found.high)
    assert np.mean(hits) >= 0.7


def test_rules_are_part_of_what_is_certified() -> None:
    """Rows that break a rule are counted as if they did not, and the answer says so."""
    rows = pl.DataFrame({"a": [1, 2, 3] * 100, "b": [2, 3, 4] * 100})
    schema = sp.Schema({"a": sp.Integer(0, 9), "b": sp.Integer(0, 9)}, rules=[sp.AtMost("a", "b")])
    release = sp.ForestSynthesizer("1", "1e-5").fit(rows, schema, entropy=sp.UnsafeSeededEntropy(0)).release_
    assert "obey the schema's rules" in release.count({"a": 1}, statement="certified").why
