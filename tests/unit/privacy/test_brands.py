"""Brands: what voids a guarantee is on the ledger, on the card and in the file, and cannot be overlooked."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.privacy.entropy import SystemEntropy, is_system
from spinney.privacy.mechanisms import NotPrivate, UnsafeEntropy, brands
from spinney_paper.baselines.vector import release_vector
from support.handmade_leaves import noisy_numbers, noisy_part
from support.in_one_test import in_one_test

FROM_DATA = "from-data-not-private"


MODELS = {
    "moments": sp.KDTreeSynthesizer(1),
    "bins": sp.KDTreeSynthesizer(1, moments=False),
    "grid": sp.GridSynthesizer(1),
    "forest": sp.ForestSynthesizer(1),
    "forest, pure": sp.ForestSynthesizer(1, 0),
    "forest, target": sp.ForestSynthesizer(1, target="y", quality="high"),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@each_model
def test_a_clean_release_has_no_brand(model, square):
    """With stated bounds and the system's randomness nothing is branded."""
    model.fit(*square)
    assert model.card_.is_private
    assert model.card_.brands == []
    assert model.card_.to_dict()["warnings"] == []
    assert "NOT PRIVATE" not in str(model.card_) + repr(model.card_)


@each_model
def test_bounds_from_the_data_brand_the_release(model, square, tmp_path):
    """Data-derived bounds are on the ledger, shouted by the card, and survive the file."""
    schema = sp.Schema({"x": sp.Real(bounds=FROM_DATA), "y": sp.Real(0, 1)})
    model.fit(square[0], schema)
    assert isinstance(model.ledger_.events[0], NotPrivate)
    model.save(tmp_path / "release")
    for card in (model.card_, sp.load(tmp_path / "release").card):
        assert not card.is_private
        assert [type(brand) for brand in card.brands] == [NotPrivate]
        assert str(card).startswith("*** NOT PRIVATE *** bounds were read off the data")
        assert "NOT PRIVATE" in repr(card)
        assert card.to_dict()["is_private"] is False
        assert card.schema["x"].bounds == FROM_DATA


def test_bounds_from_the_data_are_the_extremes(people):
    """Each type gets the smallest and the largest value, nulls aside."""
    frame, schema = people
    names = ["weight", "age", "born", "left", "seen"]
    asked = {
        "weight": sp.Real(bounds=FROM_DATA, nullable=True),
        "age": sp.Integer(bounds=FROM_DATA),
        "born": sp.Date(bounds=FROM_DATA),
        "left": sp.Datetime(bounds=FROM_DATA),
        "seen": sp.Datetime(bounds=FROM_DATA, timezone="Europe/Berlin"),
    }
    found = sp.KDTreeSynthesizer(1).fit(frame[names], sp.Schema(asked)).schema_
    for name in names:
        assert found[name].low == frame[name].min()
        assert found[name].high == frame[name].max()
    assert found["age"].low == schema["age"].low == 0


def test_a_constant_column_gets_a_little_room():
    """One value alone spans no interval; half a unit on both sides does."""
    found = sp.KDTreeSynthesizer(1).fit(np.full(50, 3.0), sp.Schema({"v": sp.Real(bounds=FROM_DATA)})).schema_
    assert (found["v"].low, found["v"].high) == (2.5, 3.5)
    days = pd.DataFrame({"v": [date(2020, 1, 1)] * 50})
    found = sp.KDTreeSynthesizer(1).fit(days, sp.Schema({"v": sp.Date(bounds=FROM_DATA)})).schema_
    assert found["v"].low == found["v"].high == date(2020, 1, 1)


def test_a_column_of_nulls_has_no_bounds():
    """Bounds cannot be read off nothing; the column is named."""
    with pytest.raises(InputError, match="column 'v' holds no finite value"):
        sp.KDTreeSynthesizer(1).fit(np.full(5, np.nan), sp.Schema({"v": sp.Real(bounds=FROM_DATA, nullable=True)}))


@each_model
def test_stated_bounds_under_that_name_stay_branded(model, square):
    """Bounds once read off the data do not become public by being written down."""
    schema = sp.Schema({"x": sp.Real(0, 1, bounds=FROM_DATA), "y": sp.Real(0, 1)})
    assert not model.fit(square[0], schema).card_.is_private


@each_model
def test_seeded_noise_brands_the_release(model, square, seeded, tmp_path):
    """A release with repeatable noise says that its seed undoes it."""
    model.fit(*square, entropy=seeded(1))
    model.save(tmp_path / "release")
    for card in (model.card_, sp.load(tmp_path / "release").card):
        assert [type(brand) for brand in card.brands] == [UnsafeEntropy]
        assert "whoever knows the seed can remove it" in str(card)
        assert not card.is_private


def test_the_unsafe_name_says_so():
    """The only seeded source of noise is called unsafe, and is the only one that can be seeded."""
    assert "Unsafe" in sp.UnsafeSeededEntropy.__name__
    words = sp.UnsafeSeededEntropy(5).words(100)
    assert np.array_equal(words, sp.UnsafeSeededEntropy(5).words(100))
    assert not np.array_equal(words, sp.UnsafeSeededEntropy(6).words(100))
    with pytest.raises(TypeError):
        sp.KDTreeSynthesizer(1, seed=5)


class _Zeros:
    """No noise at all, under a name and an attribute that say otherwise."""

    is_unsafe = False

    def words(self, n):
        return np.zeros(n, dtype=np.uint32)


class _Subclass(SystemEntropy):
    is_unsafe = False

    def words(self, n):
        return sp.UnsafeSeededEntropy(3).words(n)


class _QuietSubclass(SystemEntropy):
    """Changes nothing today; tomorrow it may."""


def _dressed() -> object:
    """Seeded noise that swears to be safe."""
    source = sp.UnsafeSeededEntropy(3)
    source.is_unsafe = False
    return source


@each_model
@in_one_test("make", [_Subclass, _QuietSubclass, _dressed])
def test_whatever_is_not_exactly_the_systems_brands_the_release(model, square, make):
    """What a source of noise says of itself is not believed: only the system's own class leaves no brand."""
    model.fit(*square, entropy=make())
    assert [type(brand) for brand in model.card_.brands] == [UnsafeEntropy]
    assert not model.card_.is_private
    model.fit(*square, entropy=SystemEntropy())
    assert model.card_.is_private


@pytest.mark.parametrize(("entropy", "n_brands"), [(_dressed(), 1), (_Subclass(), 1), (SystemEntropy(), 0)])
def test_one_vector_of_gaussian_noise_is_branded_too(entropy, n_brands):
    """What the rival systems release goes by the same rule."""
    ledger, nothing = sp.Ledger(limit=1, delta="0.1"), np.zeros(2, dtype=np.int64)
    claim = {"sensitivity_squared": Fraction(1), "variance": Fraction(10**4), "epsilon": Fraction(1)}
    release_vector(nothing, **claim, delta=Fraction(1, 10), ledger=ledger, entropy=entropy, what="sums")
    assert len(brands(ledger.events)) == n_brands


def test_the_systems_source_cannot_be_dressed_up(monkeypatch):
    """Nothing can be set on an instance, and a class whose words were replaced is no longer the system's."""
    source = SystemEntropy()
    for name in ("words", "is_unsafe"):
        with pytest.raises(AttributeError):
            setattr(source, name, None)
    assert is_system(source)
    monkeypatch.setattr(SystemEntropy, "words", _Zeros.words)
    assert not is_system(source)


def test_seeded_noise_repeats_the_release(square, people, seeded):
    """The same seed and table give the same release, another seed another; noise is never reused within a release."""
    models = [
        (sp.KDTreeSynthesizer(1), *square),
        (sp.KDTreeSynthesizer(1, moments=False), *square),
        (sp.PaperTreeSynthesizer(3, h=3, h_prime=12, tau=9, t=3), *people),
        (sp.GridSynthesizer("0.5", bins=9, unit="add-remove"), *square),
    ]
    for model, table, schema in models:
        one, two, other = (model.fit(table, schema, entropy=seeded(seed)).release_ for seed in (1, 1, 2))
        for name in ("codes", "depths"):
            assert np.array_equal(getattr(noisy_part(one), name), getattr(noisy_part(two), name))
        assert np.array_equal(noisy_numbers(one), noisy_numbers(two))
        assert noisy_numbers(one).tolist() != noisy_numbers(other).tolist()


@pytest.mark.parametrize("target", [None, "smoker", "height"])
@pytest.mark.parametrize("quality", ["fast", "high"])
def test_seeded_noise_repeats_a_forest(people, seeded, tmp_path, target, quality):
    """The same seed gives the same file, rounds and all, whatever threads do; another seed another."""
    model = sp.ForestSynthesizer(3, target=target, quality=quality)
    for place, seed in enumerate((1, 1, 2)):
        model.fit(*people, entropy=seeded(seed)).save(tmp_path / f"{place}")
    one, two, other = ((tmp_path / f"{place}").read_bytes() for place in range(3))
    assert one == two
    assert one != other
