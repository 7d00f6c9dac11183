"""Certified intervals of forests: exact over the noise, whatever the rows are, and no wider than that needs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.forest.release.answers import _WIDEST, ForestAnswers
from spinney.forest.release.certify import (
    Counted,
    certified_count,
    certified_counts,
    certified_mean,
    certified_quantile,
    certified_ratio,
)
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.measured import NoiseLaw
from spinney.forest.release.parts import Part, Values
from spinney.release.answers.question import Question
from support import small_forests

TRUE_COUNTS = np.array([40, 0, 300, 25, 7, 500, 60, 68])
LAWS = {
    "gaussian": NoiseLaw("discrete gaussian", Fraction(100)),
    "laplace": NoiseLaw("discrete laplace", Fraction(1, 7)),
}
N_TRIALS = 800


def part(*, inside: Any, touched: Any = None, values: bool = False) -> Part:
    """Conditions that hold some of the eight leaves, and touch others; leaf k has the values 10 k to 10 k + 9."""
    n = len(TRUE_COUNTS)
    low = 10.0 * np.arange(n)
    leaves = ColumnModel(low, np.full(n, 10.0), np.zeros(n, dtype=bool), np.ones(n), np.arange(n, dtype=np.int32), n)
    is_whole = np.isin(np.arange(n), inside)
    touches = is_whole if touched is None else np.isin(np.arange(n), touched)
    held = Values(low, low + 9, low + 4.5, (low + 4.5) ** 2) if values else None
    return Part(leaves, is_whole.astype(float), touches, is_whole, held)


def trials(law: NoiseLaw, *, total: bool = True, true_counts: Any = TRUE_COUNTS, n: int = N_TRIALS) -> Any:
    """Releases of the same leaves, each with noise of its own."""
    rng = np.random.default_rng(11)
    for _ in range(n):
        noisy = true_counts + law.draw(rng, len(true_counts))
        labels = np.arange(len(true_counts))
        yield Counted((0,), noisy, law, labels, True, int(true_counts.sum()) if total else None)


def coverage(law: NoiseLaw, truth: float, asked: Part, ask: Any, **options: Any) -> float:
    hits = []
    for counted in trials(law, **options):
        found = ask(counted, {counted.variables[0]: asked})
        hits.append(found is not None and found.low <= truth <= found.high)
    return float(np.mean(hits))


def count(counted: Counted, parts: Any, width: float = 1.0) -> Any:
    found = certified_count(counted, parts, 0.95)
    middle = (found.low + found.high) / 2
    half = width * (found.high - found.low) / 2
    return mock.Mock(low=middle - half, high=middle + half)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("total", [True, False])
def test_counts_of_whole_leaves_hold_as_often_as_they_say_and_no_narrower_ones_do(law: NoiseLaw, total: bool) -> None:
    """Nine tenths and a half of the time; seven tenths of the width hold far less often."""
    asked, truth = part(inside=[2, 3, 5]), 825
    found = coverage(law, truth, asked, count, total=total)
    assert 0.93 <= found <= 0.985
    assert coverage(law, truth, asked, lambda *both: count(*both, width=0.7), total=total) < 0.9


@pytest.mark.parametrize("factor", [Fraction(1, 10**6), Fraction(1, 4)], ids=["forgotten", "halved"])
def test_noise_that_is_forgotten_or_halved_is_noticed(factor: Fraction) -> None:
    """A law of another size than that of the real noise does not pass the same test."""
    law = LAWS["gaussian"]

    def ask(counted: Counted, parts: Any) -> Any:
        counted.noise = NoiseLaw("discrete gaussian", law.scale * factor)
        return count(counted, parts)

    assert coverage(law, 825, part(inside=[2, 3, 5]), ask, n=600) < 0.8


def test_luck_of_the_noise_is_not_taken_for_knowledge() -> None:
    """Where noise puts a count far below 0, or above all rows, its interval still has a width."""
    law = NoiseLaw("discrete gaussian", Fraction(100))
    for noisy in ([-45, 1045], [1045, -45]):
        counted = Counted((0,), np.array([*noisy, *[0] * 6]), law, np.arange(8), True, 1000)
        found = count(counted, {0: part(inside=[0])})
        assert 3 < found.high - found.low < 20
        assert found.low >= 0
        assert found.high <= 1000
    cut = count(
        Counted((0,), np.array([-45, 1045, *[0] * 6]), law, np.arange(8), True, 1000), {0: part(inside=[], touched=[0])}
    )
    assert cut.low == 0
    assert 3 < cut.high < 20


def test_rows_of_cut_leaves_may_lie_on_either_side() -> None:
    """All rows of a cut leaf inside the condition, or none of them: the interval holds for both."""
    asked = part(inside=[2], touched=[2, 3, 5])
    for truth in (300, 325, 825, 300 + 250):
        assert coverage(LAWS["gaussian"], truth, asked, count, n=400) >= 0.95


def test_shares_means_and_quantiles_hold_at_least_as_often_as_they_say() -> None:
    """Rows lie at the low ends of their leaves, or at the high ends."""
    law = LAWS["gaussian"]
    every = part(inside=range(8), values=True)
    some = {"n": 40}
    share = 365 / 1000

    def ratio(counted: Counted, parts: Any) -> Any:
        (variable,) = counted.variables
        return certified_ratio(counted, {variable: part(inside=[0, 2, 3])}, {}, 0.95)

    assert coverage(law, share, every, ratio, **some, total=False) >= 0.85
    for offset in (0, 9):
        mean = float((TRUE_COUNTS * (10 * np.arange(8) + offset)).sum() / TRUE_COUNTS.sum())
        assert coverage(law, mean, every, lambda c, p: certified_mean(c, p, 0.95), **some) >= 0.9
    rows = np.repeat(10 * np.arange(8), TRUE_COUNTS)
    for at in (0.34, 0.365, 0.366):
        wanted = float(np.quantile(rows, at, method="inverted_cdf"))
        assert coverage(law, wanted, every, lambda c, p, at=at: certified_quantile(c, p, at, 0.95), **some) >= 0.9


def test_intervals_of_a_table_hold_all_at_once() -> None:
    """Every cell by itself holds 95 % of the time, all eight together far less often; with one rank they do."""
    law, apart, together = LAWS["gaussian"], [], []
    asked = [part(inside=[leaf]) for leaf in range(8)]
    for counted in trials(law, n=600):
        parts = [{counted.variables[0]: one} for one in asked]
        single = [certified_count(counted, one, 0.95) for one in parts]
        joint = certified_counts(counted, parts, 0.95)
        for found, hits in ((single, apart), (joint, together)):
            hits.append(all(one.low <= truth <= one.high for one, truth in zip(found, TRUE_COUNTS, strict=True)))
    assert np.mean(apart) < 0.85
    assert np.mean(together) >= 0.93


def test_a_leaf_that_weighs_nothing_is_not_empty() -> None:
    """Rows may lie where the model has none: the certified interval counts what a condition touches there."""
    release = small_forests.fitted("5").release_
    name = "size"
    column = release.columns[name]
    weightless = np.flatnonzero((column.weights == 0) & (column.length > 0))
    assert len(weightless)
    leaf = weightless[0]
    low, high = column.low[leaf], column.low[leaf] + column.length[leaf]
    answer = release.count({name: (low + 0.3 * (high - low), low + 0.6 * (high - low))}, statement="certified")
    assert answer.estimate >= 0
    assert answer.high is not None
    assert answer.high > 0


def test_what_is_called_certified_is_not_chosen_by_the_noise_that_it_is_about() -> None:
    """Of releases that differ in noise alone, all or none are certified, and those hold as often as they say.

    Their rows are two standard deviations of the total too few for a certified interval to be worth having. Chosen by
    the noisy total, few were certified, and next to none of these held.
    """
    frame = pl.DataFrame({"g": ["a", "b"] * 500})
    schema = sp.Schema({"g": sp.Category(["a", "b"])})
    synthesizer = sp.ForestSynthesizer("0.1", unit="add-remove", assumed_rows=1_000_000)
    release = synthesizer.fit(frame, schema, entropy=sp.UnsafeSeededEntropy(4)).release_
    measured = release.measured
    assert measured is not None
    assert measured.columns[0] is not None
    law = measured.columns[0].noise
    border = 2 * (2 * law.std / _WIDEST) ** 2
    true_counts = np.full(2, round((border - 2 * math.sqrt(2) * law.std) / 2))
    question, rng, hits = Question("count", where={"g": ["a", "b"]}), np.random.default_rng(2), []
    for _ in range(200):
        noisy = true_counts + law.draw(rng, 2)
        release.measured = replace(measured, columns=(replace(measured.columns[0], noisy=noisy),))
        release.noisy_total = int(noisy.sum())
        answers = ForestAnswers(release)
        found = answers._bounds(question, answers.counted((0,)), 0.95, is_wanted=False)
        if found is not None:
            hits.append(found.low <= true_counts.sum() <= found.high)
    assert len(hits) in (0, 200)
    assert np.mean(hits) >= 0.9


def test_several_columns_are_answered_from_the_earliest_table_that_holds_them() -> None:
    """Later tables are chosen by the noise of earlier ones, so the first one alone has noise that nothing chose."""
    release = small_forests.fitted("5", target="label", delta="1e-6").release_
    measured = release.measured
    assert measured is not None
    label, kind = (release.variables.index(name) for name in ("label", "kind"))
    both = tuple(sorted((label, kind)))
    holding = [table for table in measured.tables if set(both) <= set(table.columns)]
    found = release._answering.counted(both)
    assert found is not None
    assert found.noisy is holding[0].noisy


def test_a_certified_answer_that_cannot_be_given_is_refused_with_a_remedy() -> None:
    """Columns in no one table, and populations."""
    release = small_forests.fitted("5", delta="1e-6").release_
    apart = [
        (one, other)
        for one in release.variables
        for other in release.variables
        if one < other and not any({one, other} <= set(names) for names in release.looked_at)
    ]
    wanted = {"kind": "a", "free": "u", "label": True, "size": (0, 1)}
    one, other = apart[0]
    with pytest.raises(ParameterError, match=r"no counted table holds .* workload="):
        release.count({one: wanted[one], other: wanted[other]}, statement="certified")
    with pytest.raises(ParameterError, match="population"):
        release.count({"kind": "a"}, statement="certified", of="population")


@pytest.mark.parametrize("epsilon", ["1", "20"])
def test_rows_at_the_upper_bound_are_not_below_it(epsilon: str) -> None:
    """Two fifths of the rows are cut off at the bound: whoever asks for less gets the others only."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1000) < 0.4, 100.0, rng.uniform(0, 100, 1000))
    frame = pl.DataFrame({"x": x, "g": rng.choice(["a", "b"], 1000)})
    schema = sp.Schema({"x": sp.Real(0, 100), "g": sp.Category(["a", "b"])})
    release = sp.ForestSynthesizer(epsilon).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(4)).release_
    below = {"x": (None, float(np.nextafter(100, 0)))}
    for statement in ("auto", "certified"):
        found = release.count(below, statement=statement)
        assert found.low <= (x < 100).sum() <= found.high
    assert release.count(below).estimate + release.count({"x": (100, 100)}).estimate == pytest.approx(1000, abs=60)
    assert release.count({"x": (None, 100)}).estimate == 1000
    mean = release.mean("x", where=below)
    assert mean.low <= x[x < 100].mean() <= mean.high
