"""A plan is made once for a fit: it is rehearsed before a row is read, and what was rehearsed is released."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinney as sp
from spinney.synthesizers import forest, tree
from spinney.synthesizers import partition as grid
from spinney.synthesizers import partition as paper_tree

MODELS = {
    "moments": (sp.KDTreeSynthesizer(1), tree, "privtree_plan"),
    "bins": (sp.KDTreeSynthesizer(1, moments=False), tree, "privtree_plan"),
    "paper": (sp.PaperTreeSynthesizer(1), paper_tree, "paper_plan"),
    "grid": (sp.GridSynthesizer(1), grid, "grid_plan"),
    "forest": (sp.ForestSynthesizer(1), forest, "design"),
}


@pytest.fixture
def made(monkeypatch):
    """The plans that were made, by the function that makes them."""
    calls: defaultdict[str, list[Any]] = defaultdict(list)

    def count(module, name):
        maker = getattr(module, name)

        def counted(*given, **named):
            calls[name].append(maker(*given, **named))
            return calls[name][-1]

        monkeypatch.setattr(module, name, counted)

    for _, module, name in {name: model for name, model in MODELS.items() if name != "bins"}.values():
        count(module, name)
    return calls


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_is_made_once(name, made, square):
    """The plan of the rehearsal is that of the release."""
    model, _, maker = MODELS[name]
    model.fit(*square)
    assert {name: len(plans) for name, plans in made.items()} == {maker: 1}


@pytest.mark.parametrize("name", MODELS)
def test_bounds_that_were_found_ask_for_another_plan(name, made, square):
    """What was rehearsed on the widest bounds is not what fits those that came to light."""
    model, _, maker = MODELS[name]
    schema = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)})
    fitted = type(model)(**(model.get_params() | {"epsilon": 4})).fit(square[0], schema)
    assert {name: len(plans) for name, plans in made.items()} == {maker: 2}
    assert fitted.schema_["x"].high < 2**10


def test_the_rehearsal_of_a_target_is_the_plan_that_follows(made):
    """With classes that are all common, what was rehearsed and what is released have the same noise and charges."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(4000), rng.random(4000), rng.random(4000) < 0.5])
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    model = sp.ForestSynthesizer(2, target="z").fit(table, schema)
    rehearsed, released = made["design"]
    assert rehearsed.plan == released.plan
    assert rehearsed == released == model.design_
    assert model.ledger_.events[1:] == rehearsed.plan.charges


def test_parameters_that_change_during_a_fit_do_not_reach_it(tmp_path: Path) -> None:
    """A fit runs with the parameters that it began with, and its card says those."""
    model = sp.KDTreeSynthesizer(1)

    class Meddling(sp.UnsafeSeededEntropy):
        def words(self, n_words: int) -> np.ndarray:
            model.set_params(epsilon=9)
            return super().words(n_words)

    points = np.random.default_rng(0).random((200, 1))
    model.fit(points, sp.Schema({"x": sp.Real(0, 1)}), entropy=Meddling(1))
    assert model.card_.parameters["epsilon"] == 1
    assert model.epsilon == 9
    model.save(tmp_path / "x.spinney")
    assert sp.load(tmp_path / "x.spinney").card.epsilon == 1
