"""Units: what a release may know about the number of rows, and what it may show of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from support.handmade_leaves import noisy_part

MODELS = {
    "moments": sp.KDTreeSynthesizer("0.5"),
    "bins": sp.KDTreeSynthesizer("0.5", moments=False),
    "paper": sp.PaperTreeSynthesizer("0.5"),
    "grid": sp.GridSynthesizer("0.5"),
    "grid by width": sp.GridSynthesizer("0.5", bin_width=0.1),
}
SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "c": sp.Integer(0, 6)})


def table(n):
    return np.floor(np.random.default_rng(n).random((n, 3)) * [1e6, 1e6, 6]) / [1e6, 1e6, 1]


def fitted(model, n, **options):
    model = type(model)(**(model.get_params() | options))
    return model.fit(table(n), SCHEMA)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_private_number_of_rows_shapes_nothing(model):
    """Under add-remove, with rows assumed, 2 rows and 20,000 are released by the same plan on the same lattice."""
    small, large = (fitted(model, n, unit="add-remove", assumed_rows=10_000) for n in (2, 20_000))
    assert small.plan_ == large.plan_
    assert noisy_part(small.release_).lattice == noisy_part(large.release_).lattice


def test_a_public_number_of_rows_may_shape_the_plan():
    """Under replace-one some automatic value follows n; otherwise the test above could not fail."""
    plans = [(fitted(model, 2).plan_, fitted(model, 20_000).plan_) for model in MODELS.values()]
    assert any(small != large for small, large in plans)


@pytest.mark.parametrize("name", ["grid", "paper", "moments"])
def test_assumed_rows_stand_in(name):
    """A public guess takes the place of n under add-remove, and only there."""
    model = MODELS[name]
    few, many = (fitted(model, 50, unit="add-remove", assumed_rows=n).plan_ for n in (10, 10**6))
    assert few != many
    few, many = (fitted(model, 50, assumed_rows=n).plan_ for n in (10, 10**6))
    assert few == many


@pytest.mark.parametrize("tree", [MODELS["moments"], MODELS["bins"]], ids=["moments", "bins"])
def test_the_card_hides_a_private_number_of_rows(tree):
    """Under add-remove the true number of rows is nowhere on the card; under replace-one it is public."""
    n = 7351
    model = fitted(tree, n, unit="add-remove")
    assert model.card_.n_rows is None
    assert "rows        private" in str(model.card_)
    public = fitted(tree, n)
    assert public.card_.n_rows == n
    assert "7,351 (public, under replace-one)" in str(public.card_)
    assert str(n) in public.card_.to_json()
    described = json.loads(model.card_.to_json())
    del described["released"]
    del described["plan"]["noisy_rows"]  # which may be the true number, as any other
    assert str(n) not in json.dumps(described)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_noise_follows_the_unit(model):
    """A replaced row counts twice: the noise on counts is twice as wide, and the sensitivity says so."""
    replace, add = (fitted(model, 500, unit=unit) for unit in ("replace-one", "add-remove"))
    assert (replace.plan_.unit, add.plan_.unit) == (Unit.REPLACE_ONE, Unit.ADD_REMOVE)
    assert replace.plan_.count_rate / replace.plan_.count_epsilon == add.plan_.count_rate / add.plan_.count_epsilon / 2
    assert replace.ledger_.events[-1].sensitivity == 2
    assert add.ledger_.events[-1].sensitivity == 1
    assert replace.card_.unit == "replace-one"
    assert add.card_.unit == "add-remove"


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_empty_table_is_a_neighbour_like_any_other(model):
    """Under add-remove a table without rows is released; an error would tell it from a table of one row."""
    threshold = {"moments": {}, "paper": {"t": 1}}.get(next(name for name in MODELS if MODELS[name] is model))
    options = {"unit": "add-remove", "assumed_rows": 10_000, **({"threshold": 1} if threshold is None else threshold)}
    empty, one = (fitted(model, n, **options) for n in (0, 1))
    assert empty.plan_ == one.plan_
    assert empty.card_.epsilon == one.card_.epsilon
    assert empty.card_.n_rows is None


FORESTS = {
    "forest": sp.ForestSynthesizer(3),
    "forest, target": sp.ForestSynthesizer(3, target="c"),
    "forest, high": sp.ForestSynthesizer(3, quality="high"),
    "forest, pure": sp.ForestSynthesizer(3, 0),
}
each_forest = pytest.mark.parametrize("model", FORESTS.values(), ids=FORESTS)


@each_forest
def test_a_private_number_of_rows_shapes_no_forest(model):
    """Under add-remove, with rows assumed, 0 rows and 5,000 are designed for alike, but for noisy class sizes."""
    empty, few, many = (fitted(model, n, unit="add-remove", assumed_rows=10_000) for n in (0, 20, 5000))
    if model.target is None:
        assert empty.design_ == few.design_ == many.design_
    assert empty.card_.epsilon == many.card_.epsilon == 3
    for small in (empty, few):
        assert small.card_.n_rows is None
        assert small.release_.noisy_total < 2000 < many.release_.noisy_total < 10_000


@each_forest
def test_a_public_number_of_rows_may_shape_a_forest(model):
    """Under replace-one the number of rows decides what is worth measuring; assumed_rows has no say."""
    few, many = (fitted(model, n).design_ for n in (5, 5000))
    assert few.structure != many.structure
    assert fitted(model, 5, assumed_rows=10**6).design_.structure == few.structure
    assert fitted(model, 5000, unit="add-remove", assumed_rows=10**6).design_.structure == many.structure
    assert fitted(model, 5000, unit="add-remove", assumed_rows=2).design_.structure != many.structure


@each_forest
def test_the_cards_of_forests_hide_a_private_number_of_rows(model):
    """The true number of rows is in no member of the file under add-remove, and on the card under replace-one."""
    n = 7351
    private = fitted(model, n, unit="add-remove")
    entries, _ = private.release_.to_members()
    described = json.loads(private.card_.to_json())
    del described["released"]
    del described["plan"]["noisy_rows"]  # which may be the true number, as any other
    assert str(n) not in json.dumps(described)
    assert set(entries) - {"products"} == {"looked_at", "measured", "noisy_total", "within_leaves"}
    assert entries["measured"]["total"] != n
    assert private.release_.noisy_total != n or private.fit(table(n), SCHEMA).release_.noisy_total != n
    assert str(n) in fitted(model, n).card_.to_json()


@each_forest
def test_the_noise_of_a_forest_follows_the_unit(model):
    """A replaced row counts twice: variances are about twice as large (rates half, where pure), choices as fuzzy."""
    units = ("replace-one", "add-remove")
    replace, add = (fitted(model, 5000, unit=unit, assumed_rows=5000).design_.plan for unit in units)
    assert (replace.unit, add.unit) == (Unit.REPLACE_ONE, Unit.ADD_REMOVE)
    for stage in replace.tables.keys() & add.tables.keys():
        ratio = (replace.noise_std(stage) / add.noise_std(stage)) ** 2
        assert ratio == pytest.approx(4 if replace.delta == 0 else 2, rel=0.15), stage


def test_private_bounds_of_an_empty_table():
    """Where no magnitude stands out, the error comes after the charge and says so, rows or no rows."""
    schema = sp.Schema({"x": sp.Real(bounds="private")})
    for n_rows in (0, 1):
        with pytest.raises(sp.SpinneyError, match="no magnitude stood out"):
            sp.KDTreeSynthesizer(1, unit="add-remove").fit(np.ones((n_rows, 1)), schema)
