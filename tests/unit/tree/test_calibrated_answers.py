"""Calibrated answers of trees: how often they hold over releases, and that each source of doubt is needed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.tree.release.calibrate import Estimate
from spinney.tree.release.regions import region_of
from support.long import cases

LEVEL = 0.95
PLAIN = {"x": sp.Real(0, 10), "y": sp.Real(0, 10)}


def smooth(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of a mixture without fine structure."""
    centre = rng.choice([3.0, 6.5], n, p=[0.6, 0.4])
    return np.clip(np.stack([rng.normal(centre, 1.2), rng.normal(9 - centre, 1.0)], axis=1), 0, 9.99)


def lumpy(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of a random cascade: boxes are as uneven inside as they lie inside larger boxes, ten levels deep."""
    law = np.random.default_rng(9)
    boxes = np.zeros(n, dtype=np.int64)
    places = np.zeros((n, 2))
    for level in range(20):
        shares = law.beta(1.5, 1.5, 1 << level)
        upper = rng.random(n) < shares[boxes]
        boxes = 2 * boxes + upper
        places[:, level % 2] += upper * 2.0 ** -(level // 2 + 1)
    return 9.99 * (places + rng.uniform(0, 2.0**-10, (n, 2)))


def asked(rows: np.ndarray, epsilon: str, *, n_releases: int = 8, n_boxes: int = 40) -> list[tuple[Estimate, float]]:
    """Estimates of the counts of random boxes by several releases of a table, and the truth of each."""
    found = []
    schema = sp.Schema(PLAIN)
    for seed in range(n_releases):
        release = sp.KDTreeSynthesizer(epsilon, moments=True).fit(
            pd.DataFrame(rows, columns=["x", "y"]), schema, entropy=sp.UnsafeSeededEntropy(seed)
        )
        calibrator = release.release_._asked._calibrator
        rng = np.random.default_rng(seed)
        for _ in range(n_boxes):
            low = rng.uniform(0, 8, 2)
            high = low + rng.uniform(0.3, 3, 2)
            where = {"x": (low[0], min(high[0], 10.0)), "y": (low[1], min(high[1], 10.0))}
            truth = float(((rows >= low) & (rows <= high)).all(axis=1).sum())
            region = region_of(where, schema, release.release_.moments.lattice)
            found.append((calibrator.count(region, of_population=False), truth))
    return found


def coverage(found: list[tuple[Estimate, float]], **spoilt: float) -> float:
    """How often intervals hold; `spoilt` multiplies a source of variance."""
    hits = []
    for estimate, truth in found:
        changed = estimate._replace(**{name: factor * getattr(estimate, name) for name, factor in spoilt.items()})
        low, high = changed.interval(LEVEL, (0.0, np.inf))
        hits.append(low <= truth <= high)
    return float(np.mean(hits))


@pytest.fixture(scope="module")
def noisy() -> list[tuple[Estimate, float]]:
    return asked(smooth(np.random.default_rng(1), 4000), "0.3")


@pytest.fixture(scope="module")
def clustered() -> list[tuple[Estimate, float]]:
    return asked(lumpy(np.random.default_rng(1), 20_000), "1", n_releases=4)


def test_where_noise_rules_intervals_hold_as_often_as_they_say(noisy) -> None:
    """A small epsilon: near to the level; without the noise, or with half its size, clearly below."""
    assert 0.91 <= coverage(noisy) <= 0.995
    assert coverage(noisy, noise=0.0) < 0.85
    assert coverage(noisy, noise=0.25, luck=0.25) < 0.88


def test_where_rows_are_lumpy_placement_rules(clustered) -> None:
    """Rows as uneven inside leaves as leaves lie: without their scatter intervals do not hold."""
    assert 0.92 <= coverage(clustered) <= 0.997
    assert coverage(clustered, placement=0.0) < 0.88
    assert coverage(clustered, placement=0.0, luck=0.0) < 0.8


def test_rows_without_structure_do_not_scatter() -> None:
    """Even rows scatter by next to nothing, clusters by a lot: the release tells them apart."""

    def scatter(rows: np.ndarray) -> float:
        release = sp.KDTreeSynthesizer("3", moments=True).fit(
            pd.DataFrame(rows, columns=["x", "y"]), sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(3)
        )
        found = release.release_._asked._calibrator.scatter
        return float((found.together + found.alone).max())

    rng = np.random.default_rng(4)
    assert scatter(rng.uniform(0, 10, (20_000, 2))) < 0.01
    assert scatter(lumpy(rng, 20_000)) > 0.05


def test_a_population_needs_the_sample_too() -> None:
    """Tables drawn from one law: the interval of="population" holds for the law; without the sample it does not."""
    truth = float(((big := smooth(np.random.default_rng(0), 400_000)) < [5, 5]).all(axis=1).mean())
    del big
    hits, n_tables = {"table": 0, "population": 0}, cases(20, 40)
    for seed in range(n_tables):
        rows = pd.DataFrame(smooth(np.random.default_rng(100 + seed), 2000), columns=["x", "y"])
        release = sp.KDTreeSynthesizer("20", moments=True).fit(
            rows, sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(seed)
        )
        for of in hits:
            answer = release.release_.proportion({"x": (0, 4.999), "y": (0, 4.999)}, of=of, statement="calibrated")
            hits[of] += answer.low <= truth <= answer.high
    assert hits["population"] >= 0.85 * n_tables
    assert hits["table"] < 0.75 * n_tables


@pytest.mark.parametrize("step", [0.01, 0.5])
def test_the_quantile_of_a_column_in_steps_is_the_step_that_holds_it(step: float) -> None:
    """Two fifths of the rows have one value: quantiles in their midst are that value, give or take a step."""
    rng = np.random.default_rng(2)
    spike = 0.7 if step == 0.01 else 1.5
    spread = np.round(np.round(rng.uniform(0.4, 2.5, 20_000) / step) * step, 9)
    values = np.where(rng.random(20_000) < 0.4, spike, spread)
    schema = sp.Schema({"carat": sp.Real(0, 3, multiple_of=step), "x": sp.Real(0, 1)})
    frame = pd.DataFrame({"carat": values, "x": rng.random(20_000)})
    model = sp.KDTreeSynthesizer(50).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1))
    below = float((values < spike - step / 2).mean())
    for share in (0.15, 0.25):
        answer = model.release_.quantile("carat", round(below + share, 3), statement="calibrated")
        assert answer.estimate == spike
        assert (answer.low, answer.high) == pytest.approx((spike - step, spike + step), abs=1e-9)


def test_a_box_of_eight_columns_that_is_finer_than_leaves_has_no_interval() -> None:
    """Columns go up together, which leaves of eight columns cannot show; so the density's guess is no answer."""
    rng = np.random.default_rng(4)
    common = rng.random(8000)
    names = list("abcdefgh")
    rows = {name: ((common + 0.3 * rng.random(8000)) / 1.3) ** 3 for name in names}
    schema = sp.Schema({name: sp.Real(0, 1) for name in names})
    model = sp.KDTreeSynthesizer("0.3").fit(pd.DataFrame(rows), schema, entropy=sp.UnsafeSeededEntropy(3))
    box = dict.fromkeys(names, (0.1, 0.4))
    true = int(np.all([(column >= 0.1) & (column <= 0.4) for column in rows.values()], axis=0).sum())
    found = model.release_.count(box, statement="calibrated")
    assert (found.statement, found.low, found.high) == ("not supported", None, None)
    assert found.estimate < true / 2  # so no interval about it would hold


def test_means_in_boxes_have_room_for_where_rows_lie_in_the_part_of_a_leaf_that_is_inside() -> None:
    """Lumpy rows, boxes of about a leaf: without that room less than nine in ten of these intervals hold."""
    rows, schema, size, hits = lumpy(np.random.default_rng(1), 20_000), sp.Schema(PLAIN), 0.3, []
    n_seeds = cases(1, 3)
    for seed in range(n_seeds):
        model = sp.KDTreeSynthesizer("1", moments=True).fit(
            pd.DataFrame(rows, columns=["x", "y"]), schema, entropy=sp.UnsafeSeededEntropy(seed)
        )
        rng = np.random.default_rng(seed)
        for _ in range(100):
            low = np.clip(rows[rng.integers(len(rows))] - size / 2, 0, 10 - size)
            inside = rows[((rows >= low) & (rows <= low + size)).all(axis=1)]
            where = {name: (start, start + size) for name, start in zip("xy", low, strict=True)}
            for name, truth in zip("xy", inside.mean(axis=0), strict=True):
                found = model.release_.mean(name, where=where, statement="calibrated")
                if found.low is not None:
                    hits.append(found.low <= truth <= found.high)
    assert len(hits) > 100 * n_seeds
    assert np.mean(hits) >= 0.94


def test_a_box_of_two_columns_inside_of_a_leaf_has_no_interval() -> None:
    """Rows lie along a line, which no leaf shows; a range of one column is told by many leaves."""
    rng = np.random.default_rng(4)
    x = rng.random(4000)
    frame = pd.DataFrame({"x": 10 * x, "y": 10 * np.clip(x + rng.normal(0, 0.002, 4000), 0, 1)})
    model = sp.KDTreeSynthesizer("0.3", moments=True).fit(frame, sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(3))
    box = {"x": (5.3, 5.5), "y": (5.3, 5.5)}
    found = model.release_.count(box, statement="calibrated")
    assert (found.statement, found.low, found.high) == ("not supported", None, None)
    assert model.release_.count({"x": (5.3, 5.5)}, statement="calibrated").statement == "calibrated"


def test_rows_that_noise_may_have_put_there_have_no_mean_and_no_quantile() -> None:
    """Nothing lies where y is above x; its mean has an interval only if one is forced, and that is all it can be."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.uniform(6, 10, 3000), "y": rng.uniform(0, 4, 3000)})
    for seed in range(4):
        release = (
            sp.KDTreeSynthesizer("0.3", moments=True)
            .fit(frame, sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(seed))
            .release_
        )
        nowhere = {"x": (0, 4.5), "y": (5, 10)}
        for found in (release.mean("x", where=nowhere), release.quantile("x", 0.5, where=nowhere)):
            assert (found.statement, found.low, found.high) == ("not supported", None, None)
        forced = release.mean("x", where=nowhere, force=True)
        assert (forced.low, forced.high) == pytest.approx((0, 4.5))
        assert release.mean("x", where={"x": (6, 8)}, statement="calibrated").statement == "calibrated"


def test_one_question_in_several_words_has_one_answer() -> None:
    """A condition that all values meet says nothing, and rows of one value have its mean for certain."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.normal(5, 1, 9000).clip(0, 10), "n": rng.integers(0, 10, 9000)})
    schema = sp.Schema({"x": sp.Real(0, 10), "n": sp.Integer(0, 9)})
    for unit in ("replace-one", "add-remove"):
        release = sp.KDTreeSynthesizer("1", unit=unit).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
        plain = [release.count(), release.mean("x"), release.count({"x": (4, 5)})]
        wordy = [
            release.count({"x": (0, 10)}),
            release.mean("x", where={"n": (0, 9)}),
            release.count({"x": (4, 5), "n": (0, 9)}),
        ]
        for one, other in zip(plain, wordy, strict=True):
            assert (one.statement, one.estimate, one.low, one.high) == (
                other.statement,
                other.estimate,
                other.low,
                other.high,
            )
        everyone = release.proportion({"x": (0, 10)}, given={"n": 3})
        assert (everyone.statement, everyone.low, everyone.high) == ("certified", 1, 1)
        assert release.count({"n": 3}).low == release.count({"n": (3, 3)}).low
        for found in (release.mean("n", where={"n": 3}), release.quantile("n", 0.5, where={"n": (3, 3)})):
            assert (found.statement, found.low, found.high) == ("certified", 3, 3)


def test_outer_quantiles_have_room_for_a_coast() -> None:
    """Leaves that hold the outermost rows are all cut by one coast, so that the density is off in all of them alike."""
    hits = []
    for seed in range(10):
        rng = np.random.default_rng([seed, 5])
        x = rng.uniform(0, 10, 15_000)
        y = 2.03 + 0.25 * np.abs(np.sin(x)) + rng.gamma(1.2, 1.5, 15_000)
        rows = np.stack([x, y.clip(0, 10)], axis=1)
        model = sp.KDTreeSynthesizer("1", moments=True).fit(
            pd.DataFrame(rows, columns=["x", "y"]), sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(seed)
        )
        for share in (0.01, 0.03, 0.05):
            answer = model.release_.quantile("y", share)
            if answer.low is not None:
                hits.append(answer.low <= np.quantile(rows[:, 1], share, method="inverted_cdf") <= answer.high)
    assert len(hits) >= 20
    assert np.mean(hits) >= 0.9


def test_a_tail_has_room_for_a_limit_inside_of_a_last_leaf() -> None:
    """Values that were cut off at a limit are a point mass in a wide leaf, which the density spreads out."""
    rng = np.random.default_rng(0)
    names = [*"abcdefgh"]
    rows = rng.gamma(2.0, 1.0, (20_000, 8)).clip(0, 10)
    rows[:, 0] = np.where(rng.random(20_000) < 0.05, 9.6, rng.uniform(0, 9.6, 20_000))
    schema = sp.Schema({name: sp.Real(0, 10, multiple_of="0.1") for name in names})
    frame = pd.DataFrame(rows.round(1), columns=names)
    for seed in range(cases(1, 3)):
        model = sp.KDTreeSynthesizer("5", moments=True).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed))
        for low in (9.3, 9.2):
            answer = model.release_.count({"a": (low, 10)})
            assert answer.low <= int((frame["a"] >= low).sum()) <= answer.high


def test_an_interval_ends_where_the_certified_one_does() -> None:
    """A range that ends on the edge of leaves, edge included, takes no more than these leaves leave open."""
    rows = lumpy(np.random.default_rng(6), 20_000)
    model = sp.KDTreeSynthesizer("1", moments=True).fit(
        pd.DataFrame(rows, columns=["x", "y"]), sp.Schema(PLAIN), entropy=sp.UnsafeSeededEntropy(2)
    )
    release = model.release_
    for where in ({"y": (0, 2.5)}, {"y": (5, 7.5)}, {"x": (0, 5)}):
        answers = [release.count(where, statement="calibrated"), release.mean("x", where=where, statement="calibrated")]
        certain = [
            release.count(where, statement="certified", level=0.9975),
            release.mean("x", where=where, statement="certified", level=0.9975),
        ]
        for answer, bound in zip(answers, certain, strict=True):
            assert bound.low - 1e-6 <= answer.low < answer.high <= bound.high + 1e-6
