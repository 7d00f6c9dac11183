"""Pairs of columns that no table counted: what sums of products see of a question, and what the rest is priced at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import polars as pl

import spinney as sp
from spinney.forest.release.answers import ANYWHERE, INSIDE_COUNTED, REMEDY_INSIDE_APART
from spinney.forest.release.misfit import NEARLY_ALL, Factor, Misfit
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.parts import parts_of
from spinney.release.answers.answer import Answer

N_ROWS = 20_000
KINDS = [*"abcdefgh"]
SCHEMA = sp.Schema(
    {
        "zone": sp.Category([*"ABCD"]),
        "hour": sp.Integer(0, 23),
        "kind": sp.Category(KINDS),
        "age": sp.Integer(0, 99),
        "month": sp.Integer(1, 12),
        "flag": sp.Boolean(),
        "side": sp.Boolean(),
    }
)


@cache
def incidents() -> pl.DataFrame:
    """Hours and kinds depend on the zone, which a tree counts; of three hours at noon one kind is thrice as common."""
    rng = np.random.default_rng(0)
    zone = rng.choice(4, N_ROWS, p=[0.4, 0.3, 0.2, 0.1])
    centre = np.array([8, 12, 17, 22])[zone]
    even = rng.random(N_ROWS) < 0.3
    hour = np.where(even, rng.integers(0, 24, N_ROWS), (centre + np.rint(rng.normal(0, 4, N_ROWS))) % 24).astype(int)
    month = rng.integers(1, 13, N_ROWS)
    chances = np.tile(np.log([0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04]), (N_ROWS, 1))
    chances[:, :4] += 1.2 * (np.arange(4) == zone[:, None])
    chances[:, 2] += 1.3 * ((hour >= 10) & (hour <= 12))
    chances[:, 5] += 1.5 * (hour == 3)
    kind = (chances + rng.gumbel(size=chances.shape)).argmax(axis=1)
    return pl.DataFrame(
        {
            "zone": np.array([*"ABCD"])[zone],
            "hour": hour,
            "kind": np.array(KINDS)[kind],
            "age": rng.normal(40 + 5 * zone, 15).clip(0, 99).astype(int),
            "month": month,
            "flag": rng.random(N_ROWS) < 0.4 + 0.2 * np.isin(month, [7, 12]),
            "side": rng.random(N_ROWS) < 0.5,
        }
    )


@cache
def release_of(epsilon: str, seed: int) -> ForestRelease:
    model = sp.ForestSynthesizer(epsilon, delta="1e-6", quality="fast")
    return model.fit(incidents(), SCHEMA, entropy=sp.UnsafeSeededEntropy(seed)).release_


def are_apart(release: ForestRelease, *names: str) -> bool:
    first, second = sorted(release.variables.index(name) for name in names)
    return (first, second) not in release.counted_pairs


def bumps(epsilon: str, seeds: range) -> Iterator[tuple[Answer, int]]:
    """Counts of a kind in the hours around its bump, from releases that did not count hours and kinds together."""
    for release in (release_of(epsilon, seed) for seed in seeds):
        assert are_apart(release, "hour", "kind")
        for low, high in ((9, 12), (10, 12), (10, 13), (8, 13), (11, 12), (6, 11), (13, 17), (10, 11)):
            for kind in ("b", "c"):
                rows = incidents().filter(pl.col("hour").is_between(low, high) & (pl.col("kind") == kind))
                yield release.count({"hour": (low, high), "kind": kind}), rows.height


def test_counts_where_a_dependence_is_finer_than_groups_hold() -> None:
    """A bump of three hours is invisible to halves of a day: such answers are indicative, and hold all the same."""
    answers = list(bumps("0.3", range(2)))
    assert {answer.statement for answer, _ in answers} == {"indicative"}
    assert np.mean([answer.low <= truth <= answer.high for answer, truth in answers]) >= 0.9


def test_an_interval_of_two_conditions_ends_where_each_of_them_does() -> None:
    """Certified counts of a rare kind bound counts of it in any hours; those of nearly all rows bound from below."""
    release = release_of("0.3", 2)
    certain: dict[str, Any] = {"statement": "certified", "level": 0.9999}
    n_cut = 0
    for kind in KINDS:
        for other in ({"hour": (10, 12)}, {"hour": (0, 11)}, {"month": (1, 6)}, {"side": True}):
            assert are_apart(release, "kind", *other)
            answer, alone = release.count({"kind": kind, **other}), release.count({"kind": kind}, **certain)
            assert answer.low >= 0
            assert answer.high <= max(alone.high, answer.estimate)
            share = release.proportion({"kind": kind}, given=other)
            assert 0 <= share.low <= share.high
            given = release.count(other, **certain)
            assert share.high <= max(alone.high / given.low, share.estimate)
            n_cut += answer.high == release.count({"kind": kind}, statement="certified", level=1 - 0.05 * 0.05 / 2).high
    assert n_cut >= 4, "and some would have gone beyond that"
    nearly_all, half = {"age": (1, 98)}, {"side": True}
    answer = release.count({**nearly_all, **half})
    assert answer.low >= release.count(nearly_all, **certain).low + release.count(half, **certain).low - N_ROWS
    of_all = release.count({"kind": "h", "hour": (10, 12)}, of="population")
    assert of_all.high > release.count({"kind": "h", "hour": (10, 12)}).high, "a population is not bound by the table"


def test_a_median_ends_where_the_share_below_cannot_be_a_half() -> None:
    """A share of rows below a value and the quantile there are one question, and have room for the same."""
    for seed, kind in product(range(2), "abc"):
        release = release_of("0.3", seed)
        assert are_apart(release, "age", "kind")
        median = release.quantile("age", 0.5, where={"kind": kind})
        assert median.statement == "indicative"
        low, high = round(median.low), round(median.high)
        below, until = (release.proportion({"age": (None, at)}, given={"kind": kind}) for at in (low - 1, high))
        assert 0.35 < below.high < 0.52, "next to the lower end a share of a half is just ruled out"
        assert 0.48 < until.low < 0.65


def test_values_given_one_value_of_several_in_a_state_are_not_supported() -> None:
    """Three hours share a state, and whatever is different at one of them is in no number of the release."""
    release = release_of("0.3", 0)
    assert are_apart(release, "age", "hour")
    states = release.columns["hour"].states
    hour = next(hour for hour in range(24) if (states == states[hour]).sum() > 2)
    whole = [int(other) for other in np.flatnonzero(states == states[hour])]
    for where, is_inside in (({"hour": hour}, True), ({"hour": (whole[0], whole[-1])}, False)):
        for answer in (release.mean("age", where=where), release.quantile("age", 0.5, where=where)):
            assert (INSIDE_COUNTED in answer.why) is is_inside
            if is_inside:
                assert (answer.statement, answer.low) == ("not supported", None)
                assert answer.why.endswith(REMEDY_INSIDE_APART)
    assert release.count({"age": (20, 40), "hour": hour}).statement == "indicative", "sums of counts are priced"


def test_an_interval_that_holds_every_value_is_not_given() -> None:
    """An interval of all hours of the day says nothing of the hours of a rare kind."""
    answers = [
        release_of("0.3", seed).quantile("hour", at, where={"kind": kind}, force=True)
        for seed, kind, at in product(range(2), KINDS, (0.25, 0.5, 0.75))
    ]
    is_all = np.array([(answer.low, answer.high) == (0, 23) for answer in answers])
    assert 0 < is_all.sum() < len(is_all)
    assert [ANYWHERE in answer.why for answer in answers] == is_all.tolist()


def test_what_sums_see_of_a_mean_is_what_they_see_of_its_values() -> None:
    """Ages of a kind depend on ages, though no condition is on them: it is not nothing that is seen."""
    release = release_of("0.3", 0)
    assert are_apart(release, "age", "kind")
    answer = release.mean("age", where={"kind": "a"})
    parts = parts_of(release, {"kind": "a"}, values="age")
    age, kind = sorted(parts) if parts[min(parts)].values is not None else sorted(parts, reverse=True)
    factors = {age: Factor(parts[age], shift=0.0), kind: Factor(parts[kind])}
    first, second = sorted(factors)
    share = release._answering.misfit.seen((first, second), factors[first], factors[second])
    assert answer.statement == "indicative"
    assert 0.01 < share < NEARLY_ALL
    assert f"see {int(100 * share)} % of what this question" in answer.why


def test_conditions_that_sums_of_products_see_are_calibrated() -> None:
    """A group of hours that is asked for whole is seen whole; half of it is not."""
    release = release_of("3", 0)
    misfit = release._answering.misfit
    hour, flag = release.variables.index("hour"), release.variables.index("side")
    assert are_apart(release, "hour", "side")
    model = release.columns["hour"]
    groups = release.products.tilt.groups[hour][model.states]
    members = model.low[(groups == 1) & ~model.is_null]
    whole = {"hour": (int(members.min()), int(members.max() + model.length[np.argmax(model.low)] - 1)), "side": True}
    answers = {}
    for where in (whole, {"hour": 3, "side": True}):
        parts = parts_of(release, where)
        share = misfit.seen((hour, flag), Factor(parts[hour]), Factor(parts[flag]))
        answers[share] = release.count(where)
    assert {share >= NEARLY_ALL for share in answers} == {True, False}
    for share, answer in answers.items():
        assert answer.statement == ("calibrated" if share >= NEARLY_ALL else "indicative")
        assert ("see all groups" if share >= NEARLY_ALL else f"see {int(100 * share)} %") in answer.why
    assert release.trust(["hour", "side"]).of("hour", "side").statement == "indicative"


def test_a_residual_in_the_direction_of_a_question_is_in_its_interval() -> None:
    """Sums that disagree with the model in one direction alone move its interval, and no more than that of others."""
    release = release_of("3", 0)
    products = release.products
    place = products.pairs.index((release.variables.index("kind"), release.variables.index("month")))
    pair = products.pairs[place]
    misfit = release._answering.misfit
    plain: dict[int, Any] = {v: Factor(p) for v, p in parts_of(release, {"kind": "a", "month": (1, 4)}).items()}
    along, other = (misfit.split(v, plain[v]).direction for v in pair)
    # Twelve standard deviations of the noise of a sum, in this direction.
    unit = np.outer(along, other) / np.linalg.norm(np.outer(along, other))
    off = 12 * np.sqrt(float(products.variance)) * unit
    moved = replace(
        products,
        sums=tuple(
            sums + np.rint(off).astype(np.int64) if at == place else sums for at, sums in enumerate(products.sums)
        ),
    )
    try:
        release.products = moved
        found = Misfit(release, release._answering.laws)
        shift = 12 * misfit.error * float(np.linalg.norm(along) * np.linalg.norm(other))
        assert 2 * np.sqrt(found.variance(pair, plain[pair[0]], plain[pair[1]])) > 0.9 * shift
    finally:
        release.products = products
