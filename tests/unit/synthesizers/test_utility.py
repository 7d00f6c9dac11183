"""Figures of utility: what is published of a release, how it is charged, and who has them."""

from __future__ import annotations

import json
from fractions import Fraction
from unittest import mock

import duckdb
import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.counting import states as distances
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import ComposedRelease, GaussianVector, LeafMoments
from spinney.release import utility as laws
from spinney.release.utility import GAP_STEPS
from spinney.synthesizers import utility
from spinney.synthesizers.utility import compared_pairs
from support.command_line import spinney, write_people
from support.forgeries import forged
from support.in_one_test import in_one_test

N_ROWS = 1500
SCHEMA = sp.Schema({"x": sp.Real(-3, 9), "k": sp.Category([0, 1, 2, 3], nullable=True), "b": sp.Boolean()})
FEW = sp.Schema({"x": sp.Real(-3, 9), "y": sp.Real(0, 1, nullable=True)})
FIGURES = ("one-way mean", "one-way worst", "two-way mean", "two-way worst")


@pytest.fixture(autouse=True)
def fewer_drawn():
    """Rows are drawn in a moment."""
    with mock.patch.object(utility, "MOST_DRAWN", 1 << 15):
        yield


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    k = rng.integers(0, 4, N_ROWS)
    x = k + rng.normal(0, 0.3, N_ROWS)
    known = [int(value) if value != 2 else None for value in k]
    return pl.DataFrame({"x": x, "k": known, "b": rng.random(N_ROWS) < 0.3, "y": rng.random(N_ROWS)})


MODELS = {
    "forest": (sp.ForestSynthesizer(2, utility_share="0.1"), SCHEMA),
    "forest, add-remove": (sp.ForestSynthesizer(2, utility_share="0.1", unit="add-remove"), SCHEMA),
    "forest, pure": (sp.ForestSynthesizer(2, 0, utility_share="1/10"), SCHEMA),
    "forest, target": (sp.ForestSynthesizer(2, target="b", utility_share="0.1"), SCHEMA),
    "tree": (sp.KDTreeSynthesizer(2, utility_share="0.1"), FEW),
    "tree, add-remove": (sp.KDTreeSynthesizer(2, utility_share="0.1", unit="add-remove"), FEW),
    "bins": (sp.KDTreeSynthesizer(2, moments=False, utility_share="0.1"), FEW),
    "grid": (sp.GridSynthesizer(2, bins=6, utility_share="0.1"), FEW),
    "one column": (sp.ForestSynthesizer(2, utility_share="0.1"), sp.Schema({"k": SCHEMA["k"]})),
}


def fit(name: str, table=None):
    model, schema = MODELS[name]
    return model.fit((frame() if table is None else table)[list(schema)], schema)


@pytest.mark.parametrize("name", MODELS)
def test_figures_are_on_the_card_and_in_the_file(name, tmp_path):
    """With intervals, statements and noise; what was asked for in all is spent, and figures have their part of it."""
    model = fit(name)
    found = model.release_.utility
    assert [figure.name for figure in found] == list(FIGURES[: len(found)])
    assert len(found) == (2 if name == "one column" else 4)
    assert model.card_.epsilon == 2
    assert all(figure.low <= figure.estimate <= figure.high and figure.statement == "certified" for figure in found)
    model.save(tmp_path / "release.spinney")
    loaded = sp.load(tmp_path / "release.spinney")
    assert loaded.utility == found
    assert "certified" in str(loaded.card)
    assert json.loads(loaded.card.to_json())["utility"]["figures"][0]["name"] == "one-way mean"
    run = spinney("verify", tmp_path / "release.spinney")
    assert run.status == 0
    assert f"{len(found)} figures of utility" in run.out
    if name.startswith("forest"):
        assert "utility" in str(model.explain())


@pytest.mark.parametrize("name", MODELS)
def test_intervals_hold_the_true_distance(name):
    """The figure is the distance that a count of all rows gives, but for noise of the stated deviation."""
    seen = []

    def watched(*given):
        seen.append(distances.true_figures(*given))
        return seen[-1]

    with mock.patch.object(utility, "true_figures", watched):
        found = fit(name).release_.utility
    for figure, true in zip(found, seen[0] / (2 * GAP_STEPS * found.n_rows), strict=True):
        assert abs(figure.estimate - min(max(true, 0), 1)) <= 8 * figure.noise_std
        assert figure.high - figure.low < 8 * figure.noise_std or figure.low == 0


def test_distances_are_those_of_a_count_row_by_row():
    """Total variation of the table and of rows drawn anew by the seed, value by value, where noise is next to none."""
    schema = sp.Schema({"k": SCHEMA["k"], "b": SCHEMA["b"]})
    model = sp.ForestSynthesizer(200, utility_share="0.9").fit(frame()[["k", "b"]], schema)
    found = model.release_.utility
    parts = model.sample(found.drawn_rows, seed=found.seed, parts=1, frame="polars")

    def distance(*names: str) -> float:
        counts = [rows.group_by(names).len().with_columns(pl.col("len") / rows.height) for rows in (frame(), parts[0])]
        joined = counts[0].join(counts[1], on=names, how="full", suffix="_drawn", nulls_equal=True)
        return float((joined["len"].fill_null(0) - joined["len_drawn"].fill_null(0)).abs().sum()) / 2

    wanted = [(distance("k") + distance("b")) / 2, max(distance("k"), distance("b")), *[distance("k", "b")] * 2]
    for figure, true in zip(found, wanted, strict=True):
        assert figure.noise_std < 0.002
        assert figure.estimate == pytest.approx(true, abs=6 * figure.noise_std + 1e-3)


def test_a_release_with_a_delta_pays_with_its_composed_charge():
    """One vector among its parts, of about the share that was asked for; without figures nothing changes."""
    composed = next(event for event in fit("forest").card_.events if isinstance(event, ComposedRelease))
    vectors = [part for part in composed.parts if isinstance(part, GaussianVector) and part.stage == "utility"]
    assert len(vectors) == 1
    stages = {stage.name: stage.share for stage in fit("forest").explain().stages}
    assert stages["utility"] == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("name", ["forest, pure", "tree", "grid", "bins"])
def test_a_pure_release_pays_first(name):
    """One charge of its own, before all others, of the share to the last fraction."""
    first, *rest = fit(name).card_.events
    assert isinstance(first, LeafMoments)
    assert (first.stage, first.epsilon) == ("utility", Fraction(1, 5))
    assert sum(event.epsilon for event in rest) == Fraction(9, 5)


def test_nothing_is_charged_where_values_cannot_be_read():
    """Values are looked at before the first charge."""
    ledger = Ledger(limit=5)
    bad = frame()[["x", "y"]].with_columns(x=pl.lit("no number"))
    with pytest.raises(sp.SpinneyError):
        sp.KDTreeSynthesizer(1, utility_share="0.1").fit(bad, FEW, ledger=ledger)
    assert not ledger.events


@in_one_test("share", [0, 1, "0", "1.5", "-0.1", "much", float("nan")])
@in_one_test("kind", [sp.ForestSynthesizer, sp.KDTreeSynthesizer, sp.GridSynthesizer])
def test_shares_that_are_none(kind, share):
    """Refused before anything is read."""
    with pytest.raises(sp.SpinneyError, match="utility_share"):
        kind(1, utility_share=share).fit(frame()[["x", "y"]], FEW)


def test_shares_that_leave_nothing():
    schema = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)})
    with pytest.raises(sp.SpinneyError, match=r"utility_share=0.6 leave nothing"):
        sp.KDTreeSynthesizer(1, utility_share="0.6", bounds_share="0.5").fit(frame()[["x", "y"]], schema)


def test_persons_have_none_and_are_told_why():
    """Of the class, of the call and of the command line."""
    with pytest.raises(sp.SpinneyError, match="one row a person"):
        sp.LinkedSynthesizer(utility_share="0.1")
    table = pl.DataFrame({"who": [1, 1, 2], "v": [0.1, 0.2, 0.3]})
    schema = sp.Schema({"who": sp.Identifier(), "v": sp.Real(0, 1)}, person="who", most_rows=3)
    with pytest.raises(sp.SpinneyError, match="one row a person"):
        sp.synthesize(table, schema, utility_share="0.1")


def test_the_command_line_has_them(tmp_path):
    table, schema = write_people(tmp_path)
    out = tmp_path / "people.spinney"
    run = spinney("fit", table, "--schema", schema, "--epsilon", 1, "--utility-share", "0.05", "--out", out)
    assert run.status == 0
    assert "two-way mean" in run.out
    assert "two-way mean" in spinney("card", out).out
    assert "two-way mean" in spinney("explain", out).out


def test_engines_that_count_where_rows_are(tmp_path):
    """Files, lazy frames and DuckDB give the same figures to the last digit, forests and trees alike."""
    table = frame()
    table.write_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    for kind, schema in ((sp.ForestSynthesizer, SCHEMA), (sp.KDTreeSynthesizer, FEW)):
        found = []
        for rows in (table, table.lazy(), duckdb.read_parquet(path)):
            part = rows.select(list(schema)) if not isinstance(rows, duckdb.DuckDBPyRelation) else rows.select(*schema)
            model = kind(2, utility_share="0.1").fit(part, schema, entropy=sp.UnsafeSeededEntropy(1))
            found.append(model.card_.plan["utility"])
        assert found[0] == found[1] == found[2]


def test_many_columns_are_compared_in_some_pairs():
    """Evenly spaced ones of the list, never more than two thousand."""
    assert len(compared_pairs(10)) == 45
    some = compared_pairs(200)
    assert len(some) == len(set(some)) == 2000
    assert some[0] == (0, 1)


FORGERIES = {
    "other figures in words": lambda c: c["card"]["utility"]["figures"][2].update(estimate=0.0001),
    "less noise in words": lambda c: c["card"]["utility"]["figures"][2].update(noise_std=0.0),
    "no numbers": lambda c: c["card"]["plan"].update(utility="very good"),
    "another number of rows": lambda c: c["card"]["plan"]["utility"].update(of_rows=10**9),
    "a negative distance": lambda c: c["card"]["plan"]["utility"].update(noisy=[-(10**12)] * 4),
    "a distance above 1": lambda c: c["card"]["plan"]["utility"].update(noisy=[10**12] * 4),
    "a mean above the worst": lambda c: c["card"]["plan"]["utility"]["noisy"].__setitem__(0, 2 * 1024 * 1500),
    "more pairs than there are": lambda c: c["card"]["plan"]["utility"].update(pairs=99),
    "no pairs": lambda c: c["card"]["plan"]["utility"].update(pairs=0),
    "a seed of one's own": lambda c: c["card"]["plan"]["utility"].update(seed=7),
    "floats": lambda c: c["card"]["plan"]["utility"].update(noisy=[0.5] * 4),
    "figures that are gone": lambda c: c["card"]["plan"].pop("utility"),
    "a call that did not ask": lambda c: c["card"]["parameters"].update(utility_share=None),
}


@in_one_test("what", FORGERIES)
@in_one_test("name", ["forest", "tree"])
def test_figures_that_were_changed(saved, tmp_path, name, what):
    """Refused, by the words on the card or, where those are taken away, by the numbers behind them."""

    def change(members):
        FORGERIES[what](members["card.json"])
        if not what.endswith("in words"):
            members["card.json"]["card"].pop("utility")

    run = spinney("verify", forged(saved[name], change, tmp_path / "forged"))
    assert run.status == 1
    assert "inconsistent contents" in run.err


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("saved"), {}
    with mock.patch.object(utility, "MOST_DRAWN", 1 << 15):
        for name in ("forest", "tree"):
            paths[name] = folder / f"{name}.spinney"
            fit(name).save(paths[name])
    return paths


NOTHING = {
    "known columns": (sp.ForestSynthesizer(1, utility_share="0.1"), sp.Schema({"k": sp.Category([0])}), {"k": [0] * 9}),
    "no bins": (sp.KDTreeSynthesizer(1, moments=False, threshold=10**6, utility_share="0.1"), FEW, None),
    "no budget": (sp.ForestSynthesizer("1e-5", utility_share="0.1"), SCHEMA, None),
}


@pytest.mark.parametrize(("model", "schema", "table"), NOTHING.values(), ids=NOTHING)
@pytest.mark.filterwarnings("ignore::spinney.errors.SchemaWarning")
def test_where_nothing_is_to_be_compared_there_are_none(tmp_path, model, schema, table):
    """Nothing that has more than one value, nothing released, or too little budget for anything: the file loads."""
    rows = frame()[list(schema)] if table is None else pl.DataFrame(table)
    model.fit(rows, schema).save(tmp_path / "r.spinney")
    assert sp.load(tmp_path / "r.spinney").utility is None


@pytest.mark.filterwarnings("ignore::spinney.errors.SchemaWarning")
def test_rules_places_and_identifiers_are_compared_as_they_are_drawn():
    """Computed columns follow from others, a place is one column, and identifiers are none."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"x": rng.gamma(2, 1, 400), "y": rng.gamma(2, 2, 400), "e": rng.random(400), "n": rng.random(400)}
    )
    table = table.with_columns(t=pl.col("x") + pl.col("y"), id=pl.int_range(400))
    columns = {name: sp.Real(0, 50) for name in ("x", "y")} | {"t": sp.Real(0, 100), "id": sp.Identifier()}
    columns |= {"e": sp.Real(0, 1), "n": sp.Real(0, 1)}
    schema = sp.Schema(columns, rules=[sp.Sum("t", ["x", "y"])], places=[sp.Place("e", "n")])
    found = sp.ForestSynthesizer(4, utility_share="0.1").fit(table[list(columns)], schema).release_.utility
    assert (found.n_columns, found.n_pairs) == (3, 3)


def test_one_pair_has_one_distance_and_the_text_says_so():
    """Its mean and its worst are the same but for noise; so is a mean above its worst."""

    def of(n_columns: int, n_pairs: int, *estimates: float) -> list[str]:
        found = [
            laws.UtilityFigure(name, estimate, 0.01, 0.0, 1.0, 0.95)
            for name, estimate in zip(laws.NAMES, estimates, strict=False)
        ]
        return laws.Utility(tuple(found), n_columns, n_pairs, 100, 100, 0, (0.1,)).remarks

    assert ["one pair" in remark for remark in of(2, 1, 0.1, 0.2, 0.3, 0.2)] == [True]
    assert ["one column" in remark for remark in of(1, 0, 0.2, 0.1)] == [True]
    assert ["above its worst" in remark for remark in of(3, 3, 0.2, 0.1, 0.2, 0.3)] == [True]
    assert of(3, 3, 0.1, 0.2, 0.2, 0.3) == []
