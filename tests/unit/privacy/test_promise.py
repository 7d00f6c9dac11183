"""What a promise means for people: default deltas, weak promises, several rows of one person."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

import spinney as sp
from spinney.errors import PrivacyWarning
from spinney.privacy.budget import Unit
from spinney.privacy.composition import (
    cautions,
    chain_deltas,
    composed_delta,
    composed_deltas,
    default_delta,
    group_promise,
    least_noise,
)
from spinney.privacy.mechanisms import (
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    GaussianTables,
    GaussianVector,
    NotPrivate,
    Selections,
    SplitDecisions,
    TreeShapes,
)
from spinney.privacy.noise.gaussian import delta_from_rho
from spinney_paper.baselines.vector import least_variance
from support.command_line import spinney, write_people
from support.in_one_test import in_one_test

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Category(["a", "b", "c"])})
ONE = Fraction(1)


def table(n_rows: int) -> object:
    import polars as pl

    rng = np.random.default_rng(0)
    return pl.DataFrame({"x": rng.random(n_rows), "y": rng.choice(["a", "b", "c"], n_rows)})


def composed(epsilon: str, delta: str, unit: Unit, n_tables: int = 40) -> ComposedRelease:
    def tables(budget: Fraction) -> list[GaussianTables]:
        return [GaussianTables(variance=unit.factor * n_tables / budget, times=n_tables, note="tables")]

    parts = least_noise(tables, Fraction(epsilon), Fraction(delta), unit)
    return ComposedRelease(Fraction(epsilon), Fraction(delta), parts, note="tables")


# ------------------------------------------------------------------------------------------------------- the default


@pytest.mark.parametrize("n_rows", [1, 99, 1_000, 99_999, 100_001, 240_992, 10**6, 7 * 10**7, 10**9])
def test_the_default_delta_is_far_below_one_over_the_rows(n_rows):
    """At most a tenth of 1/n and at most 1e-6, and not needlessly smaller."""
    delta = default_delta(n_rows)
    assert delta <= Fraction(1, 10 * n_rows)
    assert delta <= Fraction(1, 10**6)
    assert delta >= min(Fraction(1, 10**6), Fraction(1, 20 * n_rows))
    assert len(f"{float(delta):g}") <= len("4e-07"), "one digit, as people write it"


def test_a_forest_takes_its_delta_from_the_number_of_rows():
    """Public under replace-one, the stated guess under add-remove; a stated delta is taken as it is."""
    forest = sp.ForestSynthesizer("1").fit(table(500), SCHEMA)
    assert forest.card_.delta == Fraction(1, 10**6)
    guessed = sp.ForestSynthesizer("1", unit="add-remove", assumed_rows=300_000).fit(table(500), SCHEMA)
    assert guessed.card_.delta == Fraction(3, 10**7)
    assert sp.ForestSynthesizer("1", "1e-9").fit(table(500), SCHEMA).card_.delta == Fraction(1, 10**9)
    assert sp.ForestSynthesizer("1", 0).fit(table(500), SCHEMA).card_.delta == 0


def test_the_number_of_rows_decides_nothing_where_it_is_private():
    """Under add-remove two tables of very different sizes get the same delta."""
    sizes = (200, 150_000)
    deltas = {sp.ForestSynthesizer("1", unit="add-remove").fit(table(n), SCHEMA).card_.delta for n in sizes}
    assert len(deltas) == 1


# ------------------------------------------------------------------------------------------------------ weak promises


@pytest.mark.parametrize(
    ("epsilon", "delta", "n_rows", "told"),
    [
        ("1", "1e-6", 1_000, []),
        ("1", "1e-5", 240_992, ["delta=1e-05 is above one over the number of rows (1/240,992)"]),
        ("1", "0.5", 100, ["delta=0.5"]),
        ("20", "0", 100, []),
        ("20.5", "0", 100, ["epsilon=20.5 is above 20"]),
        ("1000", "0.1", 100, ["epsilon=1000", "delta=0.1"]),
        ("1", "0.5", None, []),
    ],
)
def test_weak_promises_are_told(epsilon, delta, n_rows, told):
    found = cautions(Fraction(epsilon), Fraction(delta), n_rows)
    assert len(found) == len(told)
    assert all(part in caution for part, caution in zip(told, found, strict=True))


def test_a_weak_promise_is_told_on_fit_before_anything_is_spent():
    """As a warning that can be turned into an error, which then spends nothing; and on card and explanation."""
    ledger = sp.Ledger(limit=100, delta="0.9")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="one over the number of rows"):
            sp.ForestSynthesizer("1", "0.5").fit(table(300), SCHEMA, ledger=ledger)
        with pytest.raises(PrivacyWarning, match="above 20"):
            sp.KDTreeSynthesizer("21").fit(table(300).select("x"), sp.Schema({"x": sp.Real(0, 1)}), ledger=ledger)
    assert not ledger.events
    with pytest.warns(PrivacyWarning, match=r"delta=0\.5"):
        model = sp.ForestSynthesizer("1", "0.5").fit(table(300), SCHEMA)
    assert "caution     delta=0.5" in str(model.card_)
    assert "caution     delta=0.5" in str(model.explain())
    assert len(json.loads(model.card_.to_json())["cautions"]) == len(model.explain().to_dict()["cautions"]) == 1


def test_the_warning_points_at_the_call_and_comes_every_time():
    """Whoever reads it finds the line that asked for the promise, and a second fit tells it again."""
    with warnings.catch_warnings(record=True) as told:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        warnings.simplefilter("always", PrivacyWarning)
        for _ in range(2):
            sp.ForestSynthesizer("1", "0.5").fit(table(300), SCHEMA)
    ours = [warning for warning in told if warning.category is PrivacyWarning]
    assert [warning.filename for warning in ours] == [__file__, __file__]


def test_the_rivals_tell_too():
    """A rival system keeps its published default, and says where that is too much."""
    from spinney_paper.baselines import BalogAlgorithm2

    schema = sp.Schema({"x": sp.Real(0, 1)})
    rival = BalogAlgorithm2("1", delta="0.4", n_features=10, n_points=5, n_steps=2)
    with pytest.warns(PrivacyWarning, match=r"delta=0\.4"):
        rival.fit(table(300).select("x"), schema)


def test_the_command_tells_in_one_line(tmp_path):
    """On standard error and before the release is written; the card repeats it."""
    people, schema = write_people(tmp_path)
    out = tmp_path / "people.spinney"
    run = spinney("fit", people, "--schema", schema, "--epsilon", "21", "--delta", "0.5", "--out", out)
    assert run.status == 0
    assert [line for line in run.err.splitlines() if line.startswith("caution: epsilon=21")]
    assert "Warning" not in run.err
    assert "caution     epsilon=21" in spinney("card", out).out
    again = spinney("fit", people, "--schema", schema, "--epsilon", "1", "--out", out, "--force")
    assert "caution: epsilon" not in again.err


# -------------------------------------------------------------------------------------------------------------- groups


def gaussian_delta(mean: float, epsilon: float) -> float:
    """The exact delta of N(mean, 1) against N(0, 1)."""
    law = NormalDist()
    return law.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * law.cdf(-mean / 2 - epsilon / mean)


@in_one_test("unit", Unit)
@in_one_test(("epsilon", "delta"), [("0.3", "1e-6"), ("1", "1e-6"), ("2", "1e-8")])
@in_one_test("n_rows", [2, 5, 10])
def test_groups_are_promised_nearly_what_a_gaussian_gives(unit, epsilon, delta, n_rows):
    """Many Gaussian tables are one Gaussian: k rows move it k times as far. Never less, and at most 6 % more."""
    event = composed(epsilon, delta, unit)
    mean = n_rows * math.sqrt(unit.factor * 40 / float(event.parts[0].variance))
    group = group_promise([event], unit, n_rows)
    truth = gaussian_delta(mean, float(group.epsilon))
    assert truth <= float(group.delta) * (1 + 1e-6)
    if group.delta == Fraction(delta):
        assert gaussian_delta(mean, float(group.epsilon) * 0.94) > float(delta), "the bound is close"


@pytest.mark.parametrize(("n_rows", "times"), [(2, 1.1), (5, 2.5), (10, 10)])
def test_groups_are_promised_more_than_the_line_for_everybody(n_rows, times):
    """delta (e^(k epsilon) - 1) / (e^epsilon - 1) at k epsilon holds for every mechanism; ours is far below it."""
    event = composed("1", "1e-6", Unit.REPLACE_ONE)
    generic = 1e-6 * math.expm1(n_rows) / math.expm1(1)
    grid = np.arange(0, 25, 0.01)
    ours = chain_deltas(composed_deltas(event.parts, grid, Unit.REPLACE_ONE), grid, n_rows)[100 * n_rows]
    assert gaussian_delta(n_rows * math.sqrt(80 / float(event.parts[0].variance)), n_rows) < ours < generic / times


def test_a_group_of_one_is_the_promise_itself():
    event = composed("1", "1e-6", Unit.REPLACE_ONE)
    group = group_promise([event], Unit.REPLACE_ONE, 1)
    assert (float(group.epsilon), group.delta) == (pytest.approx(1, rel=0.01), Fraction(1, 10**6))


def test_every_kind_of_part_counts():
    """Trees and choices are in the losses too: without one of them the group is promised more than is true."""
    parts = (
        TreeShapes(Fraction(1, 40), 28, 20, 10, note="trees"),
        GaussianTables(Fraction(3000), 20, note="tables"),
        Selections(Fraction(1, 20), 10, note="selection"),
        GaussianVector(Fraction(1, 200), note="products"),
    )
    delta = Fraction(1, 10**6)
    assert composed_delta(parts, ONE, Unit.REPLACE_ONE) <= delta
    whole = group_promise([ComposedRelease(ONE, delta, parts, "all")], Unit.REPLACE_ONE, 5).epsilon
    for missing in range(4):
        fewer = parts[:missing] + parts[missing + 1 :]
        less = group_promise([ComposedRelease(ONE, delta, fewer, "fewer")], Unit.REPLACE_ONE, 5)
        assert less.delta == delta
        assert less.epsilon < whole


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("n_rows", [2, 5])
def test_k_rows_move_a_vector_k_times_as_far(unit, n_rows):
    """Its Gaussian's mean is k times as large: never promised less, and at most 6 % more."""
    delta = Fraction(1, 10**6)
    (part,) = least_noise(lambda budget: [GaussianVector(budget, "products")], ONE, delta, unit)
    group = group_promise([ComposedRelease(ONE, delta, (part,), "sums")], unit, n_rows)
    mean = n_rows * math.sqrt(part.mean_squared)
    assert group.delta == delta
    assert gaussian_delta(mean, float(group.epsilon)) <= float(delta) * (1 + 1e-6)
    assert gaussian_delta(mean, float(group.epsilon) * 0.94) > float(delta)


def test_pure_charges_cost_a_group_k_times_epsilon():
    """Exactly, added to what else was charged; brands cost nothing, since nothing is promised."""
    pure = [
        DiscreteLaplaceCounts(Fraction(1, 4), 2, note="counts"),
        SplitDecisions(Fraction(1, 2), "privtree", Fraction(1, 9), 20, note="tree"),
        NotPrivate(note="bounds"),
    ]
    group = group_promise(pure, Unit.REPLACE_ONE, 10)
    assert (group.epsilon, group.delta, str(group)) == (Fraction(15, 2), 0, "epsilon 7.5")
    mixed = group_promise([*pure, composed("1", "1e-6", Unit.REPLACE_ONE)], Unit.REPLACE_ONE, 2)
    alone = group_promise([composed("1", "1e-6", Unit.REPLACE_ONE)], Unit.REPLACE_ONE, 2)
    assert float(mixed.epsilon) == pytest.approx(1.5 + float(alone.epsilon), rel=0.01)


@pytest.mark.parametrize("n_rows", [2, 10])
def test_gaussian_vectors_move_k_times_as_far(n_rows):
    """k rows move sums by k D: the group's delta is that of k^2 rho."""
    epsilon, delta, squared = ONE, Fraction(1, 10**6), Fraction(2)
    variance = least_variance(epsilon, delta, squared)
    event = DiscreteGaussianVector(epsilon, delta, squared, variance, note="sums")
    group = group_promise([event], Unit.REPLACE_ONE, n_rows)
    rho = n_rows**2 * squared / (2 * variance)
    assert delta_from_rho(rho, group.epsilon) <= group.delta == delta
    assert delta_from_rho(rho, group.epsilon * Fraction(9, 10)) > delta


def test_where_nothing_is_left_to_promise_the_card_says_so():
    """Ten rows at epsilon 10 are out in the open: no number would be believed."""
    assert str(group_promise([composed("10", "1e-6", Unit.REPLACE_ONE)], Unit.REPLACE_ONE, 10)) == "no guarantee"
    assert str(group_promise([composed("40", "1e-6", Unit.REPLACE_ONE)], Unit.REPLACE_ONE, 10)) == "no guarantee"


@pytest.mark.parametrize("epsilon", ["300", "70000", "1048576"])
def test_absurd_epsilons_have_a_card(epsilon):
    """Nothing is promised to anybody, and nothing breaks after the budget is spent."""
    model = sp.ForestSynthesizer(epsilon, "1e-6").fit(table(300), SCHEMA)
    assert "10 rows: no guarantee" in " ".join(str(model.card_).split())


def test_the_card_says_whom_it_promises_what():
    """The unit is one row; two, five and ten rows of one person are promised less, in text and in JSON."""
    forest = sp.ForestSynthesizer("1").fit(table(500), SCHEMA)
    text = str(forest.card_)
    assert "unit        one row, replaced by any other (replace-one)" in text
    said = "groups the guarantee is for one row; for a person with several rows it is weaker: 2 rows: epsilon 2."
    assert said in " ".join(text.split())
    rows = [group["rows"] for group in forest.card_.to_dict()["groups"]]
    epsilons = [Fraction(group["epsilon"]) for group in forest.card_.to_dict()["groups"]]
    assert rows == [2, 5, 10]
    assert all(epsilon >= k for k, epsilon in zip(rows, epsilons, strict=True))
    tree = sp.KDTreeSynthesizer("1/2", unit="add-remove").fit(table(500).select("x"), sp.Schema({"x": sp.Real(0, 1)}))
    assert "one row, added or removed (add-remove)" in str(tree.card_)
    assert "2 rows: epsilon 1; 5 rows: epsilon 2.5; 10 rows: epsilon 5" in " ".join(str(tree.card_).split())


def test_a_card_without_a_promise_promises_nothing_to_groups():
    seeded = sp.ForestSynthesizer("1").fit(table(500), SCHEMA, entropy=sp.UnsafeSeededEntropy(1))
    assert seeded.card_.groups == ()
    assert "groups" not in str(seeded.card_)
