"""Calibrated intervals of forests: coverage on tables whose law is known, and of intervals that leave a source out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.forest.release import calibrate as calibrated
from spinney.forest.release import calibrate as influence
from spinney.forest.release.fit import Refitter
from spinney.forest.release.measured import NoiseLaw
from spinney.forest.release.model import ForestRelease
from support import one_factor

N_ROWS = 8000
N_RELEASES = 8
SCHEMA = sp.Schema(
    {
        "a": sp.Category([*"uvwxyz"]),
        "b": sp.Integer(0, 9),
        "c": sp.Category([*"pqr"]),
        "d": sp.Integer(0, 9),
        "lumps": sp.Integer(0, 99_999),
    }
)


@cache
def chain() -> pl.DataFrame:
    """Rows of a chain: each column depends on the one before it alone; and numbers in lumps that leaves cut through."""
    rng = np.random.default_rng(7)
    a = rng.choice(6, N_ROWS, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    b = rng.binomial(9, 0.15 + 0.12 * a)
    c = (rng.random(N_ROWS) < 0.2 + 0.06 * b).astype(int) + (rng.random(N_ROWS) < 0.3)
    d = rng.binomial(9, 0.2 + 0.25 * c)
    places = rng.integers(0, 100_000, 60)
    return pl.DataFrame(
        {
            "a": np.array([*"uvwxyz"])[a],
            "b": b,
            "c": np.array([*"pqr"])[c],
            "d": d,
            "lumps": places[rng.choice(60, N_ROWS, p=rng.dirichlet(np.full(60, 0.7)))],
        }
    )


def releases(epsilon: str, rows: pl.DataFrame, schema: sp.Schema, n: int = N_RELEASES) -> Iterator[ForestRelease]:
    for seed in range(n):
        model = sp.ForestSynthesizer(epsilon, "1e-6")
        model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed))
        yield model.release_


@cache
def of_chain(seed: int) -> bytes:
    """What a release of the chain measured, as a file, so that every test may answer from it anew."""
    import tempfile
    from pathlib import Path

    model = sp.ForestSynthesizer("1", "1e-6")
    model.fit(chain(), SCHEMA, entropy=sp.UnsafeSeededEntropy(seed))
    with tempfile.TemporaryDirectory() as folder:
        model.release_.save(Path(folder) / "x.spinney")
        return (Path(folder) / "x.spinney").read_bytes()


def loaded(seed: int) -> ForestRelease:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.spinney"
        path.write_bytes(of_chain(seed))
        return sp.load(path)


def held(rows: pl.DataFrame, where: dict[str, Any]) -> int:
    found = rows
    for name, wanted in where.items():
        is_range = isinstance(wanted, tuple)
        found = found.filter(pl.col(name).is_between(*wanted) if is_range else pl.col(name) == wanted)
    return found.height


def one_column(rng: np.random.Generator) -> dict[str, Any]:
    return [{"a": str(rng.choice([*"uvwxyz"]))}, {"b": _range(rng, 9)}, {"d": _range(rng, 9)}][rng.integers(3)]


def neighbours(rng: np.random.Generator) -> dict[str, Any]:
    pairs = [
        {"a": str(rng.choice([*"uvwxy"])), "b": _range(rng, 9)},
        {"b": _range(rng, 9), "c": str(rng.choice([*"pqr"]))},
    ]
    return pairs[rng.integers(2)]


def lumps(rng: np.random.Generator) -> dict[str, Any]:
    return {"lumps": _range(rng, 99_999)}


def _range(rng: np.random.Generator, most: int) -> tuple[int, int]:
    low, high = sorted(rng.integers(0, most + 1, 2).tolist())
    return low, high


def coverage(
    questions: Callable[[np.random.Generator], dict[str, Any]], sabotage: Callable[[], Any] = nullcontext
) -> float:
    hits = []
    for seed in range(N_RELEASES):
        release, rng = loaded(seed), np.random.default_rng(seed)
        with sabotage():
            for _ in range(25):
                where = questions(rng)
                answer = release.count(where, statement="calibrated", force=True)
                assert answer.low is not None
                assert answer.high is not None
                hits.append(answer.low - 0.5 <= held(chain(), where) <= answer.high + 0.5)
    return float(np.mean(hits))


@contextmanager
def noise(part: Fraction, only: str | None = None) -> Iterator[None]:
    """Redrawn noise of another size: all of it, or that on single columns alone."""
    real = Refitter.with_noise

    def weaker(self: Refitter, numbers: Any, rng: np.random.Generator) -> Any:
        measured = self.measured
        columns = tuple(
            None if one is None else replace(one, noise=_weaker(one.noise, part)) for one in measured.columns
        )
        tables = measured.tables
        if only is None:
            tables = tuple(replace(one, noise=_weaker(one.noise, part)) for one in measured.tables)
        return real(replace(self, measured=replace(measured, columns=columns, tables=tables)), numbers, rng)

    with mock.patch.object(Refitter, "with_noise", weaker):
        yield


def _weaker(law: NoiseLaw, part: Fraction) -> NoiseLaw:
    return NoiseLaw(law.law, law.scale * part**2 if law.law == "discrete gaussian" else law.scale / part)


def without(name: str) -> AbstractContextManager[Any]:
    """One source of variance left out."""
    return mock.patch.object(calibrated, name, return_value=0.0)


def test_intervals_of_what_was_counted_hold_about_as_often_as_they_say() -> None:
    """On rows of a law that the forest can hold: single columns and pairs that were counted together."""
    assert 0.9 <= coverage(one_column) <= 1.0
    assert 0.9 <= coverage(neighbours) <= 1.0


@pytest.mark.parametrize(
    ("questions", "sabotage"),
    [
        pytest.param(one_column, lambda: noise(Fraction(1, 100)), id="noise forgotten"),
        pytest.param(neighbours, lambda: noise(Fraction(1, 3)), id="noise of a third"),
        pytest.param(one_column, lambda: noise(Fraction(1, 100), only="columns"), id="one-way noise forgotten"),
        pytest.param(lumps, lambda: without("placement"), id="placement left out"),
    ],
)
def test_intervals_that_leave_a_source_out_hold_less_often(questions: Any, sabotage: Any) -> None:
    """Each falls below what the whole interval reaches on the same questions, clearly."""
    assert coverage(questions, sabotage) < min(0.9, coverage(questions) - 0.05)


def test_pairs_apart_are_priced_by_their_products() -> None:
    """Columns depend on one factor, and a tree of pairs misses most of it: products correct that and price the rest."""
    rows = one_factor.table(20_000)
    hits, bare = [], []
    for release in releases("5", rows, one_factor.SCHEMA, n=3):
        rng = np.random.default_rng(3)
        counted = {frozenset(pair) for pair in release.counted_pairs}
        names = ["x", "y", "n", "z"]
        for _ in range(40):
            one, other = rng.choice(names, 2, replace=False).tolist()
            if frozenset((release.variables.index(one), release.variables.index(other))) in counted:
                continue
            where = {
                name: tuple(sorted(rows[name].sample(2, seed=int(rng.integers(2**31))).to_list()))
                for name in (one, other)
            }
            answer = release.count(where)
            assert answer.statement in ("calibrated", "indicative")  # groups are cut by some ranges more than by others
            truth = held(rows, where)
            hits.append(answer.low <= truth <= answer.high)
            with without("_misfit"):
                plain = release.count(where)
            bare.append(plain.low <= truth <= plain.high)
    assert np.mean(hits) >= 0.88
    assert np.mean(bare) < min(0.85, np.mean(hits) - 0.08)


def test_the_shares_of_cut_leaves_are_uncertain_by_how_far_they_are_cut() -> None:
    """A condition that ends where leaves end has no placement; one that ends inside has."""
    release = loaded(0)
    column = release.columns["lumps"]
    leaf = int(np.argmax(column.weights * (column.length > 1000)))
    low, high = int(column.low[leaf]), int(column.low[leaf] + column.length[leaf]) - 1
    laws = release._answering.laws
    from spinney.forest.release.misfit import Factor
    from spinney.forest.release.parts import parts_of

    variances = []
    for end in (high, (low + high) // 2):
        (part,) = parts_of(release, {"lumps": (low, end)}).values()
        factors = {release.variables.index("lumps"): Factor(part)}
        variances.append(influence.placement(laws, influence.Influence((influence.Term(1.0, factors),))))
    assert variances[0] < 1e-12 < variances[1]


@pytest.mark.parametrize(
    ("column", "spike"),
    [(sp.Real(0, 3, multiple_of=0.01), 0.7), (sp.Real(0, 3, multiple_of=0.5), 1.5), (sp.Integer(0, 3000), 700)],
)
def test_the_quantile_of_a_column_in_steps_is_a_step(column: sp.Real | sp.Integer, spike: float) -> None:
    """Two fifths of the rows have one value: quantiles in their midst are that value, give or take a step."""
    rng = np.random.default_rng(2)
    step = float(column.spacing)
    spread = np.round(np.round(rng.uniform(0.13, 0.83, 20_000) * column.high / step) * step, 9)
    values = np.where(rng.random(20_000) < 0.4, spike, spread)
    frame = pl.DataFrame({"x": values, "kind": rng.choice(list("abc"), 20_000)})
    schema = sp.Schema({"x": column, "kind": sp.Category(list("abc"))})
    model = sp.ForestSynthesizer(5, delta="1e-5").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1))
    below = float((values < spike - step / 2).mean())
    for share in (0.15, 0.25):
        answer = model.release_.quantile("x", round(below + share, 3))
        assert answer.estimate == spike
        assert (answer.low, answer.high) == pytest.approx((spike - step, spike + step), abs=1e-9)
    for at in (0.05, 0.8, 0.97):
        answer = model.release_.quantile("x", at)
        for value in (answer.low, answer.estimate, answer.high):
            assert value == pytest.approx(round(value / step) * step, abs=1e-12)
        true = float(np.quantile(values, at, method="inverted_cdf"))
        assert answer.low - 2 * step <= true <= answer.high + 2 * step


CODES = sp.Schema({"group": sp.Category([*"abcd"]), "days": sp.Integer(0, 10_000), "grade": sp.Integer(1, 16)})


@cache
def coded(seed: int, epsilon: str = "0.5") -> tuple[pl.DataFrame, ForestRelease]:
    """Small counts with a code far out in few rows; grades that come in jumps, which depend on a group."""
    rng = np.random.default_rng([seed, 1])
    n_rows = 4000
    group = rng.choice(4, n_rows, p=[0.4, 0.3, 0.2, 0.1])
    days = np.where(rng.random(n_rows) < 0.018, 9999, np.minimum(rng.poisson(0.3, n_rows), 9))
    grade = rng.choice([9, 11, 13, 16], n_rows, p=[0.3, 0.19, 0.31, 0.2])
    grade = np.where((group == 1) & (rng.random(n_rows) < 0.1), 9, grade)
    rows = pl.DataFrame({"group": np.array([*"abcd"])[group], "days": days, "grade": grade})
    model = sp.ForestSynthesizer(epsilon, "1e-6", quality="fast")
    return rows, model.fit(rows, CODES, entropy=sp.UnsafeSeededEntropy(seed)).release_


def share_that_holds(
    ask: Callable[[ForestRelease], Any], true: Callable[[pl.DataFrame], float], epsilon: str = "0.5"
) -> float:
    """How often intervals hold; all of them have a width."""
    hits = []
    for seed in range(N_RELEASES):
        rows, release = coded(seed, epsilon)
        answer = ask(release)
        assert answer.low < answer.high
        hits.append(answer.low - 1e-9 <= true(rows) <= answer.high + 1e-9)
    return float(np.mean(hits))


def test_a_mean_has_room_for_codes_far_out() -> None:
    """Leaves that hold hardly more than noise are taken for empty; the interval of a mean says what they may hold."""
    assert share_that_holds(lambda release: release.mean("days"), lambda rows: float(rows["days"].mean())) >= 0.85


def test_a_count_beyond_a_threshold_has_room_for_what_was_cut() -> None:
    """The threshold lies inside the leaf that holds the code, so that its raw count says how many there may be."""
    held_far = share_that_holds(
        lambda release: release.count({"days": (5000, None)}, statement="calibrated"),
        lambda rows: float(rows.filter(pl.col("days") >= 5000).height),
    )
    assert held_far >= 0.85


def test_a_count_of_a_code_has_room_for_all_rows_of_a_leaf_that_stands_alone() -> None:
    """The code is one of thousands of values of its leaf, and all that is there."""
    held_there = share_that_holds(
        lambda release: release.count({"days": 9999}, statement="calibrated"),
        lambda rows: float(rows.filter(pl.col("days") == 9999).height),
        epsilon="1",
    )
    assert held_there >= 0.85


def test_an_outer_quantile_has_room_for_what_was_cut() -> None:
    """Eighteen in a thousand rows have the code; without them the quantile would be among small counts."""
    held_far = share_that_holds(
        lambda release: release.quantile("days", 0.99),
        lambda rows: float(np.quantile(rows["days"], 0.99, method="inverted_cdf")),
    )
    assert held_far >= 0.85


def test_a_quantile_ends_where_the_certified_one_does() -> None:
    """Where nothing is assumed less is left open at times: calibrated intervals are cut to it, and keep a width."""
    rng = np.random.default_rng(5)
    n = 20_000
    amounts = np.where(rng.random(n) < 0.97, 0, rng.integers(1, 10_000, n))
    table = pl.DataFrame({"amount": amounts, "kind": rng.choice(["a", "b"], n)})
    schema = sp.Schema({"amount": sp.Integer(0, 100_000), "kind": sp.Category(["a", "b"])})
    n_cut = 0
    for seed in range(3):
        model = sp.ForestSynthesizer("1", delta="1e-6")
        release = model.fit(table, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for at in (0.01, 0.1, 0.5, 0.9, 0.96, 0.98, 0.99):
            found = release.quantile("amount", at)
            certain = release.quantile("amount", at, statement="certified", level=1 - 0.05 * 0.05)
            assert found.low < found.high
            if certain.low < certain.high:
                assert min(certain.low, found.estimate) <= found.low
                assert found.high <= max(certain.high, found.estimate)
                n_cut += found.high == certain.high
    assert n_cut


def test_medians_of_groups_in_steps_have_a_width_and_hold() -> None:
    """At a jump the median is either of two values, as noise has it."""
    hits = [
        share_that_holds(
            lambda release, group=group: release.quantile("grade", 0.5, where={"group": group}),
            lambda rows, group=group: float(
                np.quantile(rows.filter(pl.col("group") == group)["grade"], 0.5, method="inverted_cdf")
            ),
        )
        for group in "abcd"
    ]
    assert np.mean(hits) >= 0.85


def test_a_range_may_end_where_another_column_changes_at_once() -> None:
    """A state of several years holds both sides of a threshold, and the model mixes them: 65 is inside of one."""
    hits = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 2])
        age = np.minimum(rng.integers(0, 91, 20_000), rng.integers(0, 120, 20_000))
        rows = pl.DataFrame({"age": age, "filer": np.where(age >= 65, "old", np.where(age < 18, "none", "young"))})
        schema = sp.Schema({"age": sp.Integer(0, 100), "filer": sp.Category(["none", "young", "old"])})
        model = sp.ForestSynthesizer("5", "1e-6", quality="fast")
        release = model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        answer = release.count({"age": (10, 64), "filer": "young"}, statement="calibrated")
        hits.append(answer.low <= int(((age < 65) & (age >= 18)).sum()) <= answer.high)
    assert np.mean(hits) >= 0.85


def test_a_count_of_one_value_may_be_all_of_its_leaf() -> None:
    """People tip five dollars, and the leaf that holds five holds hundreds of values that nobody pays."""
    hits = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 3])
        tip = np.where(rng.random(8000) < 0.012, 5.0, np.round(rng.gamma(2.0, 0.6, 8000), 2).clip(0, 200))
        rows = pl.DataFrame({"tip": tip, "kind": rng.choice(list("ab"), 8000)})
        schema = sp.Schema({"tip": sp.Real(0, 200, multiple_of="0.01"), "kind": sp.Category(list("ab"))})
        model = sp.ForestSynthesizer("1", "1e-6", quality="fast")
        release = model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        answer = release.count({"tip": 5.0}, statement="calibrated")
        hits.append(answer.low <= int((tip == 5.0).sum()) <= answer.high)
    assert np.mean(hits) >= 0.85


def test_rows_that_noise_may_have_put_there_have_no_mean_and_no_quantile() -> None:
    """Ten of 4,000 rows are rare, less than noise: their mean has no interval, or one that is nearly all values."""
    rng = np.random.default_rng(2)
    kind = np.where(np.arange(4000) < 10, "rare", rng.choice(["a", "b"], 4000))
    frame = pl.DataFrame({"kind": kind, "x": rng.integers(0, 50, 4000)})
    schema = sp.Schema({"kind": sp.Category(["a", "b", "rare"]), "x": sp.Integer(0, 99)})
    refused = 0
    for seed in range(3):
        model = sp.ForestSynthesizer("0.3", delta="1e-6").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed))
        release = model.release_
        found = release.mean("x", where={"kind": "rare"})
        refused += found.statement == "not supported"
        assert found.low is None or found.high - found.low > 50
        assert release.mean("x", where={"kind": "a"}).low is not None
    assert refused >= 2


def test_one_question_in_several_words_has_one_answer() -> None:
    """A condition that all values meet says nothing, and rows of one value have its mean for certain."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({name: rng.integers(0, 10, 20_000) for name in "abc"})
    schema = sp.Schema(dict.fromkeys("abc", sp.Integer(0, 9)))
    release = sp.ForestSynthesizer("1", delta="1e-6").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    for where, wordy in (({"a": 3}, {"a": (3, 3), "b": (0, 9)}), ({"a": (2, 5)}, {"a": (2, 5), "c": list(range(10))})):
        for one, other in (
            (release.count(where), release.count(wordy)),
            (release.proportion(where), release.proportion(wordy)),
            (release.mean("a", where=where), release.mean("a", where=wordy)),
            (release.proportion({"a": 3}, given={"b": (0, 9)}), release.proportion({"a": 3})),
        ):
            assert one.statement == other.statement
            assert (one.low, one.high) == pytest.approx((other.low, other.high))
    for found in (release.mean("a", where={"a": 3}), release.quantile("a", 0.5, where={"a": (3, 3)})):
        assert (found.statement, found.low, found.high) == ("certified", 3, 3)


# ------------------------------------------------------------------------------------------- inside of what was counted


def test_single_days_of_a_weekly_pattern_are_in_their_intervals():
    """Leaves of a few days hold nothing on Sundays and much on Mondays: rows may all be on one day of such a leaf."""
    rng = np.random.default_rng(3)
    day = rng.integers(0, 104, 6000) * 7 + rng.choice(7, 6000, p=[0.3, 0.3, 0.2, 0.1, 0.08, 0.02, 0])
    start = date(2022, 1, 3)
    frame = pl.DataFrame({"d": [start + timedelta(days=int(one)) for one in day]})
    schema = sp.Schema({"d": sp.Date("2022-01-01", "2024-12-31")})
    held = asked = 0
    for seed in range(4):
        release = sp.ForestSynthesizer("5").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for first, last in [(week * 7, week * 7 + n) for week in range(5, 100, 9) for n in (0, 2)]:
            answer = release.count({"d": (start + timedelta(days=first), start + timedelta(days=last))})
            held += int(answer.low <= ((day >= first) & (day <= last)).sum() <= answer.high)
            asked += 1
    assert held >= 0.9 * asked


@pytest.mark.parametrize("epsilon", ["1", "5"])
def test_what_a_condition_cuts_out_of_a_state_is_not_calibrated(epsilon):
    """One hour of a state of several is all that is different in it: certified, and no guess by the state's mean."""
    rng = np.random.default_rng(4)
    hour = rng.integers(0, 24, 8000)
    size = np.where(hour == 17, rng.normal(100, 2, 8000), rng.normal(10, 2, 8000)).clip(0, 120)
    frame = pl.DataFrame({"h": hour, "z": size})
    schema = sp.Schema({"h": sp.Integer(0, 23), "z": sp.Real(0, 120)})
    held = asked = 0
    for seed in range(5):
        release = sp.ForestSynthesizer(epsilon).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        share = release.proportion({"z": (50, None)}, given={"h": 17})
        count = release.count({"h": 17, "z": (50, None)})
        held += int(share.low <= 1 <= share.high) + int(count.low <= (hour == 17).sum() <= count.high)
        asked += 2
        drawn = release.sample(50_000, seed=1, frame="polars").filter((pl.col("h") == 17) & (pl.col("z") > 50)).height
        assert abs(count.estimate - drawn * 8000 / 50_000) < 40  # the estimate is that of the rows
    assert held >= 0.9 * asked


def test_a_range_that_leaves_out_the_first_value_of_a_leaf_has_room_for_a_pile_there():
    """More than 400,000 leaves out the pile at 400,000, which is in the leaf that begins there."""
    rng = np.random.default_rng(5)
    limit = (rng.gamma(2, 60_000, 12_000) // 10_000 * 10_000).clip(0, 1_000_000).astype(int)
    frame = pl.DataFrame(
        {"limit": limit, "other": rng.integers(0, 100, 12_000), "kind": rng.choice(list("ab"), 12_000)}
    )
    schema = sp.Schema({"limit": sp.Integer(0, 1_000_000), "other": sp.Integer(0, 99), "kind": sp.Category(["a", "b"])})
    held = asked = 0
    for seed in range(4):
        release = sp.ForestSynthesizer("1").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for value in range(200_000, 500_000, 50_000):
            answer = release.count({"limit": (value + 1, None)})
            held += int(answer.low <= (limit > value).sum() <= answer.high)
            asked += 1
    assert held >= 0.9 * asked


def test_heaps_may_belong_to_one_value_of_another_column() -> None:
    """One of two meters rounds to tenths, and a range that ends just before a tenth parts its rows from the other's."""
    hits = []
    for seed in range(10):
        rng = np.random.default_rng([seed, 4])
        meter = rng.choice(["coarse", "fine"], 20_000)
        exact = np.round(rng.gamma(2.0, 1.2, 20_000), 2)
        length = np.where(meter == "coarse", np.round(exact, 1), exact).clip(0, 100)
        rows = pl.DataFrame({"length": length, "meter": meter, "noise": rng.normal(0, 1, 20_000).clip(-5, 5)})
        schema = sp.Schema(
            {
                "length": sp.Real(0, 100, multiple_of="0.01"),
                "meter": sp.Category(["coarse", "fine"]),
                "noise": sp.Real(-5, 5),
            }
        )
        model = sp.ForestSynthesizer("2", "1e-6", quality="fast")
        release = model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for low, high in ((0.5, 0.99), (1.0, 1.99), (2.0, 2.99)):
            answer = release.count({"length": (low, high), "meter": "fine"}, statement="calibrated")
            truth = int(((length >= low) & (length <= high) & (meter == "fine")).sum())
            hits.append(answer.low <= truth <= answer.high)
    assert np.mean(hits) >= 0.85
