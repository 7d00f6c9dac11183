"""Rows of a forest come in the steps that people write: multiples of thousands, cents, weekdays and ends of months."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

import spinney as sp
from spinney.errors import FileError
from spinney.forest.design import design
from spinney.forest.release.grain import GrainLaw
from spinney.forest.release.model import ForestRelease
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit
from spinney.release.card import ContradictionError
from support.forgeries import forged

N = 20_000
SCHEMA = sp.Schema(
    {
        "paid": sp.Integer(0, 5_000_000),
        "price": sp.Real(0, 2_000, multiple_of="0.01", nullable=True),
        "smooth": sp.Integer(0, 100_000),
        "day": sp.Date("1995-01-01", "2024-12-31"),
        "kind": sp.Category([*"abc"]),
    }
)


@cache
def loans() -> pl.DataFrame:
    """Amounts of which nine in ten are in thousands; prices in halves or cents; even numbers; ends of months."""
    rng = np.random.default_rng(1)
    paid, price = np.exp(rng.normal(10.5, 1, N)), np.exp(rng.normal(3.5, 1, N))
    step = np.where(rng.random(N) < 0.9, 1000, 100)
    in_cents = np.where(rng.random(N) < 0.7, np.rint(price * 2) / 2, np.rint(price * 100) / 100)
    day = np.datetime64("1998-01-01") + rng.integers(0, 9_000, N)
    end = (day.astype("M8[M]") + 1).astype("M8[D]") - 1
    day = np.where(rng.random(N) < 0.5, end, day)
    weekday = (day.astype(int) + 3) % 7
    day = day - np.maximum(weekday - 4, 0)
    return pl.DataFrame(
        {
            "paid": (np.maximum(np.rint(paid / step), 1) * step).astype(int),
            "price": pl.Series(in_cents).set(pl.Series(rng.random(N) < 0.1), None),
            "smooth": rng.integers(0, 100_000, N),
            "day": day,
            "kind": rng.choice([*"abc"], N),
        }
    )


@cache
def release() -> ForestRelease:
    model = sp.ForestSynthesizer(4, "1e-6", quality="fast")
    return model.fit(loans(), SCHEMA, entropy=sp.UnsafeSeededEntropy(5)).release_


def evenly() -> ForestRelease:
    """The same release, drawn without its steps."""
    found = release()
    return ForestRelease(
        found.columns,
        found.model,
        found.card,
        looked_at=found.looked_at,
        noisy_total=found.noisy_total,
        products=found.products,
        measured=found.measured,
        steps={},
    )


def shares(rows: pl.DataFrame) -> dict[str, float]:
    """What part of the rows is written in which step."""
    cents = (rows["price"].drop_nulls() * 100).round().cast(int)
    days = rows["day"]
    return {
        "thousands": float((rows["paid"] % 1000 == 0).mean()),
        "hundreds": float((rows["paid"] % 100 == 0).mean()),
        "halves": float((cents % 50 == 0).mean()),
        "tens of cents": float((cents % 10 == 0).mean()),
        "tens of smooth numbers": float((rows["smooth"] % 10 == 0).mean()),
        "ends of months": float((days == days.dt.month_end()).mean()),
        "weekends": float((days.dt.weekday() > 5).mean()),
    }


# ------------------------------------------------------------------------------------------------------ rows


def test_rows_come_in_the_steps_of_the_table():
    """Within two points of every share; drawn evenly, all but the smooth column would be far off."""
    real, drawn, even = (shares(rows) for rows in (loans(), release().sample(N, seed=1), evenly().sample(N, seed=1)))
    for name, share in real.items():
        assert drawn[name] == pytest.approx(share, abs=0.02), name
    far = {name for name, share in real.items() if abs(even[name] - share) > 0.05}
    assert far >= {"thousands", "hundreds", "halves", "weekends"}
    assert drawn["weekends"] <= 0.005
    n_real, n_drawn, n_even = (
        rows["paid"].n_unique() for rows in (loans(), release().sample(N, seed=1), evenly().sample(N, seed=1))
    )
    assert 0.5 * n_real < n_drawn < 1.5 * n_real < n_even


def test_distributions_stay_what_they_were():
    """No column is further from the table than it is when rows lie evenly inside leaves, but for a little luck."""
    rows, even = release().sample(N, seed=2), evenly().sample(N, seed=2)
    for name in ("paid", "price", "smooth"):
        real, drawn, other = (np.sort(frame[name].drop_nulls().to_numpy()) for frame in (loans(), rows, even))
        at = np.unique(real)
        gap, before = (
            np.abs(
                np.searchsorted(real, at, "right") / len(real) - np.searchsorted(found, at, "right") / len(found)
            ).max()
            for found in (drawn, other)
        )
        assert gap < 1.05 * before + 0.005, name
    assert rows["price"].null_count() == even["price"].null_count()


def test_states_weigh_what_they_did():
    """Leaves of one state exchange rows that are noise; states, null and leaves that stand out keep theirs."""
    found = release()
    assert set(found.steps) == {"paid", "price", "smooth", "day"}
    for name, drawn in found.drawn_columns.items():
        before = found.columns[name]
        assert drawn.state_weights() == pytest.approx(before.state_weights())
        assert (drawn.law is not None) == (name in found.steps)


def test_conditions_inside_leaves_keep_to_them_and_to_the_steps():
    """Rows of a range that cuts leaves lie in it, in steps; also where nobody writes such values."""
    found = release()
    rows = found.sample(4_000, seed=3, where={"paid": (30_500, 47_300), "day": ("2001-03-03", "2001-05-17")})
    assert rows["paid"].is_between(30_500, 47_300).all()
    assert rows["day"].is_between(pl.date(2001, 3, 3), pl.date(2001, 5, 17)).all()
    assert (rows["paid"] % 1000 == 0).mean() > 0.8
    assert (rows["day"].dt.weekday() > 5).mean() < 0.01
    leaves = found.drawn_columns["paid"]
    wide = int(leaves.low[(leaves.weights > 0) & (leaves.length > 1_000)][0]) // 100 * 100 + 100
    odd = found.sample(50, seed=3, where={"paid": (wide + 1, wide + 40)})
    assert odd["paid"].is_between(wide + 1, wide + 40).all()
    # Of several values, those in the steps that are written are the commonest.
    one_by_one = found.sample(4_000, seed=3, where={"paid": [31_000, 31_100, 31_150, 31_151]})["paid"]
    assert (one_by_one == 31_000).mean() > 0.6
    cents = found.sample(500, seed=3, where={"price": (10.01, 10.37)})["price"]
    assert cents.is_between(10.01, 10.37).all()


def test_answers_about_parts_of_leaves_are_those_of_rows():
    """A range inside leaves is estimated as rows are drawn, not by its length; certified ends hold the table."""
    found = release()
    rows = found.sample(60_000, seed=4)["paid"]
    for low, high in [(30_500, 30_999), (41_001, 41_999), (100_001, 120_500), (62_500, 90_200)]:
        drawn = float(rows.is_between(low, high).sum()) / len(rows) * N
        answer = found.count({"paid": (low, high)})
        assert answer.estimate == pytest.approx(drawn, abs=40 + 0.05 * drawn)
        truth = int(loans()["paid"].is_between(low, high).sum())
        certain = found.count({"paid": (low, high)}, statement="certified", level=0.9999)
        assert certain.low <= truth <= certain.high


def test_redrawn_tables_come_in_steps_of_their_own():
    """Every draw has the table of steps with fresh noise."""
    found = release()
    tables = found.sample(N, seed=6, draws=2)
    for table in tables:
        assert shares(table)["thousands"] == pytest.approx(shares(loans())["thousands"], abs=0.03)
    noisy = [redrawn.grains["paid"].tolist() for redrawn in found.redrawn(2, around="numbers")]
    assert noisy[0] != noisy[1] != found.steps["paid"].noisy.tolist()


def test_places_inside_a_leaf_have_the_law_of_its_factors():
    """Chi-squared over the values of a leaf, by a law that its draws have, and by one that they do not."""
    axis = column_axis("v", sp.Integer(0, 1_000))
    factors = np.random.default_rng(1).random(axis.grain.n_values) + 0.1
    law = GrainLaw(axis.grain, factors, 0.0, 1.0, 0.0)
    low, length = np.array([95.0, 480.0]), np.array([12.0, 31.0])
    rng = np.random.default_rng(2)
    drawn = law.places(low, length, rng.integers(0, 2, 40_000), rng)
    for first, size in zip(low.astype(int), length.astype(int), strict=True):
        cells = np.arange(first, first + size)
        here = drawn[(drawn >= first) & (drawn < first + size)].astype(int)
        found = np.bincount(here - first, minlength=size)
        chances = factors[axis.grain.classes(cells)]
        assert chisquare(found, len(here) * chances / chances.sum()).pvalue > 1e-4
        assert chisquare(found, np.full(size, len(here) / size)).pvalue < 1e-6
        # What a part of the leaf has is the same law.
        part = law.share(*(np.array([float(n)]) for n in (first, size, first + 3, first + 8)))
        assert part[0] == pytest.approx(chances[3:8].sum() / chances.sum())


# ------------------------------------------------------------------------------------------------------ the plan


def test_steps_cost_next_to_nothing():
    """A table for each column with steps; the noise of all else is wider by less than one per cent."""
    axes = [column_axis(name, column) for name, column in SCHEMA.items()]
    for delta in (Fraction(1, 10**6), Fraction(0)):
        plans = [
            design(axes, n_rows=N, epsilon=Fraction(1), delta=delta, unit=Unit.REPLACE_ONE, has_grain=has_grain).plan
            for has_grain in (True, False)
        ]
        assert plans[0].times("grain") == 4
        assert "grain" not in plans[1].tables
        for stage in ("one-way", "spikes", "cliques"):
            assert 1 < plans[0].noise_std(stage) / plans[1].noise_std(stage) < 1.01
    many = [column_axis(f"v{place}", sp.Integer(0, 10**6)) for place in range(40)]
    options = {"n_rows": 10**6, "epsilon": Fraction(1), "delta": Fraction(1, 10**7), "unit": Unit.REPLACE_ONE}
    with_steps, without = (design(many, has_grain=has, **options).plan.noise_std("one-way") for has in (True, False))
    assert with_steps / without < 1.01


def test_the_explanation_and_the_report_list_the_stage():
    stages = {stage.name: stage for stage in release().explain().stages}
    assert stages["grain"].times == 4
    assert stages["grain"].share < 0.01
    assert "grain noise" in str(release().card)


# ------------------------------------------------------------------------------------------------------ files


def test_a_file_holds_the_table_of_steps(tmp_path):
    """Read again, the same rows; verified, its noise and sums are those that were paid for."""
    release().save(tmp_path / "a.spinney")
    again = sp.load(tmp_path / "a.spinney")
    assert again.sample(500, seed=1).equals(release().sample(500, seed=1))
    assert any("of steps" in line for line in again.verify_contents())


def test_steps_that_were_not_paid_for_are_refused(tmp_path):
    """Without their noise, with that of another stage, and with sums that noise does not explain."""

    def without_noise(members):
        del members["card.json"]["measured"]["columns"][0]["noise of grain"]

    def other_noise(members):
        columns = members["card.json"]["measured"]["columns"]
        columns[0]["noise of grain"] = columns[0]["noise"]

    release().save(tmp_path / "a.spinney")
    for change, problem in [
        (without_noise, "no noise is stated"),
        (other_noise, "other noise than was paid for"),
    ]:
        with pytest.raises(FileError, match=problem):
            sp.load(forged(tmp_path / "a.spinney", change, tmp_path / "b.spinney"))


def test_steps_of_other_rows_are_refused():
    """Every row is in one class: sums far from the number of rows, or beyond what noise explains, were changed."""
    found = release()
    columns = list(found.measured.columns)
    column = columns[0]
    assert column.grain is not None
    columns[0] = replace(column, grain=replace(column.grain, noisy=column.grain.noisy + 5_000))
    other = ForestRelease(
        found.columns,
        found.model,
        found.card,
        looked_at=found.looked_at,
        noisy_total=found.noisy_total,
        products=found.products,
        measured=replace(found.measured, columns=tuple(columns)),
    )
    with pytest.raises(ContradictionError, match="the steps of 'paid' do not add up"):
        other.verify_contents()
