"""One vector of sums in a forest's plan: what it is charged, what noise it gets, and what its card says of it."""

from __future__ import annotations

import json
import math
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import GaussianVector
from spinney.release.card import plan_entries
from spinney.release.verify import verification
from support.command_line import spinney

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
DELTA = Fraction(1, 10**5)
SHARES = {"one-way": "0.5", "pairs": "0.3", "products": "0.2"}


def shape(shares=SHARES) -> Shape:
    return Shape({"one-way": 4, "pairs": 3}, {stage: Fraction(share) for stage, share in shares.items()})


def planned(shares=SHARES, *, epsilon="1", delta=DELTA, unit=Unit.REPLACE_ONE):
    return forest_plan(shape(shares), epsilon=Fraction(epsilon), delta=Fraction(delta), unit=unit)


def opened(plan) -> PrepaidMechanisms:
    ledger = sp.Ledger(limit=plan.epsilon, delta=plan.delta, unit=plan.unit)
    return PrepaidMechanisms(plan, ledger, UnsafeSeededEntropy(5))


# -------------------------------------------------------------------------------------------------------------- plan


@UNITS
@pytest.mark.parametrize("epsilon", ["0.01", "1", "10"])
def test_a_share_of_products_is_a_vector(epsilon, unit):
    """It is a part of the charge, of its share of all squared means, and the whole is certified and hardly wastes."""
    plan = planned(epsilon=epsilon, unit=unit)
    (charge,) = plan.charges
    part = charge.parts[-1]
    assert (type(part), part.stage, part.times) == (GaussianVector, "products", 1)
    assert plan.vectors["products"] == part
    tables = sum(noise.times * unit.factor / float(noise.variance) for noise in plan.tables.values())
    assert float(part.mean_squared) / (tables + float(part.mean_squared)) == pytest.approx(0.2, rel=1e-3)
    assert composed_delta(charge.parts, charge.epsilon, unit) <= DELTA
    keener = (*charge.parts[:-1], GaussianVector(part.mean_squared * Fraction(11, 10), "products"))
    assert composed_delta(keener, charge.epsilon, unit) > DELTA


@pytest.mark.parametrize(
    "shares", [{"one-way": "0.6", "pairs": "0.4"}, SHARES | {"products": "0"}], ids=["absent", "0"]
)
def test_without_a_share_there_is_no_vector(shares):
    """The plan does not speak of it, and nothing can be had."""
    plan = planned(shares)
    assert "products" not in plan.vectors
    assert "products mean squared" not in plan_entries({"rule": "forest"}, plan.charges, plan.unit)
    with pytest.raises(BudgetError, match="paid for no more of 'products'"):
        opened(plan).noisy_sums(np.zeros(3, dtype=np.int64), 3)


@UNITS
def test_without_a_delta_the_others_have_its_share(unit):
    """Pure plans spend all of epsilon on the other stages, each as much more as all."""
    plan = planned(delta=0, unit=unit)
    assert "products" not in plan.vectors
    assert {charge.stage: charge.epsilon for charge in plan.charges} == {
        "one-way": Fraction(5, 8),
        "pairs": Fraction(3, 8),
    }


def test_a_vector_that_cannot_be_accounted_for_is_refused():
    """A budget so small that the noise would be beyond the sampler's range."""
    with pytest.raises(BudgetError, match="too wide to account for"):
        planned(SHARES | {"products": "1e-12"}, epsilon="0.001")


def test_the_plan_says_the_squared_mean():
    """To nine digits, however small it is."""
    plan = planned(epsilon="0.01")
    stated = plan_entries({"rule": "forest"}, plan.charges, plan.unit)["products mean squared"]
    assert stated == pytest.approx(float(plan.vectors["products"].mean_squared), rel=1e-8)
    assert json.loads(json.dumps(stated)) == stated


# ------------------------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("squared", [1, 7, 2500, 2**22])
def test_the_variance_is_that_of_the_proof(squared):
    """Squared distance over squared mean, plus 4, rounded up by a hair."""
    mean_squared = Fraction(3, 70)
    excess = GaussianVector(mean_squared, "products").variance(squared) - (squared / mean_squared + 4)
    assert 0 <= excess < Fraction(1, 10**6)


def test_sums_are_had_once():
    """The second time is refused, and what else was paid for is not touched."""
    prepaid = opened(planned())
    prepaid.noisy_sums(np.zeros(5, dtype=np.int64), 5)
    for n_sums in (5, 1, 0):
        with pytest.raises(BudgetError, match="paid for no more of 'products'"):
            prepaid.noisy_sums(np.zeros(n_sums, dtype=np.int64), n_sums)
    for _ in range(4):
        prepaid.noisy_counts(np.zeros(2, dtype=np.int64), "one-way")


def test_sums_are_no_table():
    """The vector's budget cannot be had through the door of tables, whose noise does not cover it."""
    with pytest.raises(KeyError):
        opened(planned()).noisy_counts(np.zeros(2, dtype=np.int64), "products")


@pytest.mark.parametrize(
    "sums",
    [
        np.zeros(2**20 + 1, dtype=np.int64),
        np.zeros(3),
        np.zeros(3, dtype=np.int32),
        np.zeros((2, 2), dtype=np.int64),
        np.zeros(3, dtype=bool),
    ],
)
def test_only_a_vector_of_whole_numbers_takes_noise(sums):
    """Refused before it is used up."""
    prepaid = opened(planned())
    with pytest.raises(ParameterError, match="true_sums is not one vector of up to"):
        prepaid.noisy_sums(sums, 3)
    assert prepaid.noisy_sums(np.zeros(0, dtype=np.int64), 0).size == 0


@UNITS
def test_every_sum_has_noise_of_its_own(unit):
    """Ten thousand sums: their spread is the plan's and neither 0.9 nor 1.1 of it, and neighbours are unlike."""
    prepaid = opened(planned(unit=unit))
    true_sums = np.arange(10_000, dtype=np.int64) - 5000
    squared = unit.factor**2 * 10_000
    noise = prepaid.noisy_sums(true_sums, squared) - true_sums
    expected = math.sqrt(prepaid.plan.vectors["products"].variance(squared))
    ratio = noise.std() / expected
    assert ratio == pytest.approx(1, abs=0.04)
    assert abs(noise.mean()) < 4 * expected / 100
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.05


# -------------------------------------------------------------------------------------------------------------- card


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """A forest whose plan has a vector."""
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.beta(2, 5, 600), rng.random(600), rng.random(600) < 0.4])
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    path = tmp_path_factory.mktemp("sums") / "sums.spinney"
    sp.ForestSynthesizer(2).fit(table, schema).save(path)
    return path


def forged(source: Path, change, out: Path) -> Path:
    """The file with its card changed."""
    with zipfile.ZipFile(source) as old:
        members = {name: old.read(name) for name in old.namelist()}
    described = json.loads(members["card.json"])
    change(described["card"])
    with zipfile.ZipFile(out, "w") as new:
        for name, content in (members | {"card.json": json.dumps(described).encode()}).items():
            new.writestr(name, content)
    return out


def composed(card) -> dict:
    return next(event for event in card["events"] if event["event"] == "ComposedRelease")


def vector(card) -> dict:
    return next(part for part in composed(card)["parts"] if part["part"] == "GaussianVector")


FORGERIES = {
    "more noise than stated": lambda card: vector(card).update(mean_squared="1/1000000"),
    "another number in the plan": lambda card: card["plan"].update({"products mean squared": 1e-6}),
    "no number in the plan": lambda card: card["plan"].pop("products mean squared"),
    "a text in the plan": lambda card: card["plan"].update({"products mean squared": "0.1"}),
    "no charge": lambda card: composed(card)["parts"].remove(vector(card)),
    "a charge that claims no stage": lambda card: vector(card).update(stage=None),
    "less noise than was paid for": lambda card: (
        vector(card).update(mean_squared="1"),
        card["plan"].update({"products mean squared": 1.0}),
    ),
}


def test_a_release_with_a_vector_is_verified(release):
    """It loads, its card lists the part, and its explanation has the stage with its share."""
    loaded = sp.load(release)
    assert verification(loaded)
    assert "1 vector of sums: products (discrete Gaussian, squared mean" in str(loaded.card)
    stage = next(stage for stage in loaded.explain().stages if stage.name == "products")
    assert (stage.times, stage.noise_std) == (1, None)
    assert stage.share == pytest.approx(0.15, abs=0.02)
    assert "1 vector  discrete Gaussian" in str(loaded.explain())
    assert spinney("verify", release).status == 0


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_card_and_plan_agree_on_the_vector(release, tmp_path, change):
    """What was charged for the vector is what the plan states, and there is one if the plan has one."""
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(forged(release, change, tmp_path / "forged.spinney"))
