"""Cards that promise more than their files bear out, made with care: each is refused on the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.privacy.mechanisms import UNITS, vector_variance
from spinney.synthesizers import utility
from support.command_line import spinney
from support.forgeries import (
    card,
    charges,
    forged,
    lower_parts,
    lower_pure_forest,
    lower_tree,
    members_of,
    settle,
)
from support.in_one_test import in_one_test

ROW_STAGES = ("row trees", "row one-way", "row spikes", "alikeness", "row selection", "row tables")


def fitted() -> dict[str, object]:
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 4, 1500)
    table = pl.DataFrame(
        {
            "x": kind + rng.normal(0, 0.3, 1500),
            "kind": kind,
            "c": rng.integers(0, 3, 1500),
            "b": rng.random(1500) < 0.3,
        }
    )
    schema = sp.Schema(
        {"x": sp.Real(-3, 9), "kind": sp.Category([0, 1, 2, 3]), "c": sp.Integer(0, 2), "b": sp.Boolean()}
    )
    few = sp.Schema({"x": sp.Real(-3, 9), "c": sp.Integer(0, 2)})
    person = np.repeat(np.arange(500), rng.integers(1, 6, 500))
    rows = pl.DataFrame(
        {
            "who": person,
            "amount": rng.gamma(2, 20, len(person)).clip(0, 500),
            "w": rng.choice(["a", "b"], len(person)),
            "u": rng.choice(["a", "b", "c"], len(person)),
        }
    )
    columns = {
        "who": sp.Identifier(),
        "amount": sp.Real(0, 500),
        "w": sp.Category(["a", "b"]),
        "u": sp.Category(["a", "b", "c"]),
    }
    people = sp.Schema(columns, person="who", most_rows=20)
    models = {
        "bins": (sp.KDTreeSynthesizer(2, moments=False), few),
        "moments": (sp.KDTreeSynthesizer(2), few),
        "moments, utility": (sp.KDTreeSynthesizer(2, utility_share="0.1"), few),
        "grid": (sp.GridSynthesizer(2, bins=4), few),
        "grid, add-remove": (sp.GridSynthesizer(2, bins=4, unit="add-remove"), few),
        "paper": (sp.PaperTreeSynthesizer(2), few),
        "forest": (sp.ForestSynthesizer(2, utility_share="0.1", analyses=["x ~ kind + c"]), schema),
        "forest, add-remove": (sp.ForestSynthesizer(2, unit="add-remove"), schema),
        "forest, target": (sp.ForestSynthesizer(3, target="b"), schema),
        "forest, pure": (sp.ForestSynthesizer(4, 0), schema),
    }
    found: dict[str, object] = {name: model.fit(table[list(s)], s) for name, (model, s) in models.items()}
    return found | {"people": sp.LinkedSynthesizer(2).fit(rows, people)}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Iterator[dict[str, Path]]:
    folder, paths = tmp_path_factory.mktemp("honest"), {}
    with mock.patch.object(utility, "MOST_DRAWN", 1 << 15):  # fits and checks alike draw fewer rows
        for number, (name, model) in enumerate(fitted().items()):
            paths[name] = folder / f"{number}.spinney"
            model.save(paths[name])
        yield paths


def row_variance(members) -> None:
    """Wider noise of tables of rows, also where the rows' own members say how much they have."""
    lower_parts(members, 4, only=ROW_STAGES)
    parts = [part for event in charges(members) for part in event.get("parts", ())]
    (part,) = [part for part in parts if part["stage"] == "row tables"]
    needed = vector_variance(Fraction(part["mean_squared"]), 2 * UNITS**2)
    members["card.json"]["people"]["row_variance"] = str(Fraction(math.ceil(needed * 2**24), 2**24))


def calmer_decay(members) -> None:
    """A tree with a decay that makes its calmer decisions cost what is stated."""
    lower_tree(members)
    for event in charges(members):
        if event["event"] == "SplitDecisions" and event["decay"] is not None:
            event["decay"] *= 5
            card(members)["plan"]["decay"] = event["decay"]


def without_words(change):
    """The forgery, with figures of utility in words taken away: numbers alone are left to tell."""

    def changed(members) -> None:
        change(members)
        card(members).pop("utility", None)

    return changed


def smaller_delta(members) -> None:
    """A delta of a thousandth at the same epsilon."""
    (event,) = [event for event in charges(members) if event["event"] == "ComposedRelease"]
    event["delta"] = str(Fraction(event["delta"]) / 1000)
    settle(members)


def fewer_levels(members) -> None:
    """Trees of one level, which cost less."""
    for event in charges(members):
        for part in event.get("parts", ()):
            if part["part"] == "TreeShapes":
                part["levels"] = 1
    lower_parts(members, 1)


def other_structure(members) -> None:
    """A forest of independent columns: choices and cliques were never made."""
    plan = card(members)["plan"]
    for event in charges(members):
        if "parts" in event:
            event["parts"] = [
                part for part in event["parts"] if part["stage"] not in ("selection", "cliques", "products")
            ]
    for name in [name for name in plan if name.startswith(("cliques", "products", "epsilon of"))]:
        del plan[name]
    plan["structure"] = "independent"
    lower_parts(members, 1)


FORGERIES = {
    "bins": ("bins", lower_tree),
    "bins, and a decay for it": ("bins", calmer_decay),
    "moments": ("moments", lower_tree),
    "moments, and a decay for it": ("moments", calmer_decay),
    "moments with figures": ("moments, utility", without_words(calmer_decay)),
    "grid": ("grid", lower_tree),
    "grid by a little": ("grid", partial(lower_tree, by=2)),
    "grid, add-remove": ("grid, add-remove", lower_tree),
    "paper": ("paper", lower_tree),
    "forest": ("forest", without_words(lower_parts)),
    "forest's analyses": ("forest", without_words(partial(lower_parts, only=("analyses",)))),
    "forest's figures": ("forest", without_words(partial(lower_parts, only=("utility",)))),
    "forest's products": ("forest", without_words(partial(lower_parts, only=("products",)))),
    "forest's choices": ("forest", without_words(partial(lower_parts, by=8, only=("selection",)))),
    "forest's trees": ("forest", without_words(partial(lower_parts, by=8, only=("trees",)))),
    "forest's columns": ("forest", without_words(partial(lower_parts, only=("one-way", "spikes")))),
    "forest, add-remove": ("forest, add-remove", lower_parts),
    "forest with a target": ("forest, target", lower_parts),
    "forest's delta": ("forest, add-remove", smaller_delta),
    "forest's levels": ("forest, add-remove", fewer_levels),
    "forest's structure": ("forest, add-remove", other_structure),
    "pure forest": ("forest, pure", lower_pure_forest),
    "people": ("people", lower_parts),
    "people's rows": ("people", partial(lower_parts, only=ROW_STAGES)),
    "people's rows and their members": ("people", row_variance),
}


def test_honest_files_pass(files):
    """So that what is refused below is refused for what was changed."""
    for name, path in files.items():
        run = spinney("verify", path)
        assert run.status == 0, (name, run.err)
        assert "the plan was made again" in run.out
        assert "not checked" in run.out


@in_one_test("what", FORGERIES)
def test_a_lower_promise_above_unchanged_noise_fails(files, tmp_path, what):
    """Epsilon lowered in events, parts, plan and call alike; the file's own numbers, or the plan, give it away."""
    name, change = FORGERIES[what]
    path = forged(files[name], change, tmp_path / "forged")
    before, after = (card(members_of(one)) for one in (files[name], path))
    assert Fraction(after["epsilon"]) < Fraction(before["epsilon"]) or after["delta"] != before["delta"]
    run = spinney("verify", path)
    assert run.status == 1
    assert "inconsistent contents" in run.err


def figures(**changed):
    """Figures of utility that say they are of something else."""

    def change(members) -> None:
        entry = card(members)["plan"]["utility"]
        for name, value in changed.items():
            assert entry[name] != value
            entry[name] = value

    return without_words(change)


@pytest.mark.parametrize("name", ["forest", "moments, utility"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (figures(cells=[2, 4]), "cells would be"),
        (figures(columns=3, pairs=3), "columns"),
        (figures(drawn_rows=1 << 20), "drawn_rows would be"),
        (figures(sampling=[0.0001, 0.0001]), "sampling error of columns would be"),
    ],
)
def test_figures_of_utility_of_something_else_fail(files, tmp_path, name, change, told):
    """How many columns, pairs and cells were compared, by how many rows, is found again from the release."""
    run = spinney("verify", forged(files[name], change, tmp_path / "forged"))
    assert run.status == 1
    assert told in run.err


def test_a_plan_of_another_version_is_told_and_not_judged(files, tmp_path):
    """A card that names another version may have another plan: that it does is said, with what differs."""

    def change(members) -> None:
        card(members)["spinney_version"] = "0.0.9"
        card(members)["plan"]["threshold"] += 1

    run = spinney("verify", forged(files["grid"], change, tmp_path / "other"))
    assert run.status == 0
    assert "made by spinney 0.0.9" in run.out
    assert "threshold would be" in run.out


@in_one_test("name", ["grid", "moments", "forest", "people"])
@in_one_test("value", [None, [], {"x": 1}, "x" * 1000, 10**18, -1, 1e308, True])
def test_parameters_of_a_file_may_be_anything(files, tmp_path, name, value):
    """A plan that cannot be made is a plan that is not the one on the card; nothing crashes or hangs."""

    def change(members) -> None:
        parameters = card(members)["parameters"]
        for place, key in enumerate(sorted(parameters)):
            if key not in ("epsilon", "delta", "unit") and place % 2:
                parameters[key] = value

    run = spinney("verify", forged(files[name], change, tmp_path / "forged"))
    assert run.status in (0, 1)


# ------------------------------------------------------------------------------------------------- totals and noise


def spread(noise_std: float, stated: float, *, n_tables: int, seed: int, total: float | None = 1000.0) -> bool:
    """Whether totals of so much noise pass where another deviation is stated."""
    from spinney.release.card import ContradictionError
    from spinney.release.verify import TableSum, check_spread

    totals = 1000 + np.random.default_rng(seed).normal(0, noise_std, n_tables)
    try:
        check_spread([TableSum(one, stated**2) for one in totals.tolist()], total, "tables")
    except ContradictionError:
        return False
    return True


@pytest.mark.parametrize("std", [0.05, 0.3, 0.6, 1.0, 3.0])
def test_whole_totals_of_little_noise_pass(std):
    """Of whole numbers with little noise nearly all are exactly right: a file is not refused for that."""
    from spinney.release.verify import TableSum, check_spread

    rng = np.random.default_rng(1)
    for n_tables in (4, 7, 30):
        for _ in range(200):
            totals = 1000 + np.round(rng.normal(0, std, n_tables))
            check_spread([TableSum(one, std**2) for one in totals.tolist()], 1000.0, "tables")


@pytest.mark.parametrize("total", [1000.0, None])
def test_totals_tell_much_less_noise_than_stated(total):
    """Noise as stated, or more, always passes; a fifth of it never does, where there are enough tables."""
    for seed in range(200):
        assert spread(10, 10, n_tables=4 + seed % 40, seed=seed, total=total)
        assert spread(30, 10, n_tables=12, seed=seed, total=total)
        assert not spread(2, 10, n_tables=40, seed=seed, total=total)
