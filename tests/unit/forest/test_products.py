"""Products of all pairs in a whole forest: when there are any, what is released, and what rows obey with them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.forest.release.fit import sensitivity_squared
from spinney.forest.sums import _mean_places, counted_pairs
from spinney.privacy.budget import Unit
from support import one_factor

UNITS = pytest.mark.parametrize("unit", ["replace-one", "add-remove"])


def test_categories_are_ordered_by_where_their_rows_lie():
    """Along another column, by rank; those without a row lie in the middle."""
    table = np.array([[0.0, 0.3], [0.2, 0.0], [0.0, 0.0], [0.25, 0.25]])
    assert _mean_places(table).tolist() == pytest.approx([0.725, 0.225, 0.5, 0.475])


def test_pairs_of_counted_tables():
    """All pairs of a triple, ascending, each once."""
    assert counted_pairs([(3, 1), (0, 1, 2), (1, 2)]) == {(1, 3), (0, 1), (0, 2), (1, 2)}


# ------------------------------------------------------------------------------------------------------------ design


@UNITS
@pytest.mark.parametrize("quality", ["fast", "high"])
@pytest.mark.parametrize("target", [None, "flag"])
def test_every_pair_is_counted_or_summed(unit, quality, target):
    """None twice; the noise is that of the sensitivity of these pairs, and the card says how many sums there are."""
    release = one_factor.fitted("6", unit=unit, quality=quality, target=target).release_
    products = release.products
    assert products is not None
    summed, counted = set(products.pairs), set(release.counted_pairs)
    assert not summed & counted
    assert summed | counted == set(combinations(range(8), 2))
    assert set(products.tilt.pairs) == summed | counted
    needed = sensitivity_squared(products.tilt.n_groups, products.pairs, Unit.parse(unit))
    assert products.sensitivity_squared(Unit.parse(unit)) == needed
    parts = [part for event in release.card.events for part in getattr(event, "parts", ())]
    mean_squared = next(part for part in parts if part.stage == "products").mean_squared
    assert 0 <= products.variance - (needed / mean_squared + 4) < 1e-6
    assert release.card.released["sums"] == products.n_sums == sum(table.size for table in products.sums)


def test_there_is_no_vector_where_there_are_as_many_tables_as_pairs():
    """With rows enough for three rounds a column, and a table of every column with the target."""
    release = one_factor.fitted("10", 60_000, quality="high", target="flag").release_
    assert release.products is None
    assert not any(part.stage == "products" for event in release.card.events for part in getattr(event, "parts", ()))


def test_the_sums_are_the_tables_with_noise_of_that_size():
    """Beside the sums of the rows themselves, the released ones are off by their noise, and not by much less."""
    release = one_factor.fitted("6").release_
    products, frame = release.products, one_factor.table(6000)
    place = next(place for place, pair in enumerate(products.pairs) if {0, 1, 6} >= set(pair))
    i, j = products.pairs[place]
    means = products.sums[place] / 6000
    assert np.abs(means).max() <= 1 + 5 * np.sqrt(float(products.variance)) / 6000
    halves = [frame[release.variables[column]].to_numpy() > 0 for column in (i, j)]
    true = np.where(halves[0] == halves[1], 1, -1).mean()
    error = np.sqrt(float(products.variance)) / 6000
    # The one function of both that splits the order in the middle.
    from spinney.forest.release.fit import signs

    lines = [signs(products.tilt.n_groups[column]) for column in (i, j)]
    middle = [next(k for k, line in enumerate(of) if (np.diff(line) != 0).sum() == 1) for of in lines]
    assert abs(abs(means[middle[0], middle[1]]) - abs(true)) < 5 * error + 0.05
    assert error > 0.001


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"delta": 0}, None),
        ({"target": "flag"}, ["x", "flag"]),
        ({"target": "flag"}, ["x", "y", "flag"]),
        ({}, ["x", "y"]),
        ({"epsilon": "0.05"}, None),
    ],
    ids=["pure", "one column and a target", "all pairs with a target", "one pair", "too much noise"],
)
def test_no_vector_where_it_would_be_no_use(parameters, names):
    """Pure epsilon, a tree that counts every pair, noise above a twentieth: nothing is paid for it."""
    names = names or list(one_factor.SCHEMA)
    schema = sp.Schema({name: one_factor.SCHEMA[name] for name in names})
    model = sp.ForestSynthesizer(**({"epsilon": "6"} | parameters))
    model.fit(one_factor.table(3000).select(names), schema, entropy=sp.UnsafeSeededEntropy(1))
    assert model.release_.products is None
    assert "products" not in model.design_.plan.vectors
    assert "products mean squared" not in model.card_.plan
    assert "sums" not in model.card_.released
    assert model.explain().products is None


def test_more_columns_have_no_vector():
    """Beyond a hundred."""
    from spinney.forest.design import design
    from spinney.grid.axes import column_axis

    for n_columns, expected in ((100, True), (101, False)):
        axes = [column_axis(f"c{number}", sp.Boolean()) for number in range(n_columns)]
        budget = {"epsilon": Fraction(9), "delta": Fraction(1, 10**5)}
        found = design(axes, n_rows=10**6, unit=Unit.REPLACE_ONE, **budget)
        assert ("products" in found.plan.vectors) is expected


# -------------------------------------------------------------------------------------------------------------- rows


def test_a_file_draws_the_same_rows(tmp_path):
    """Saved, loaded and saved again, with a seed; equal releases are equal bytes."""
    release = one_factor.fitted().release_
    release.save(tmp_path / "a.spinney")
    again = sp.load(tmp_path / "a.spinney")
    again.save(tmp_path / "b.spinney")
    assert (tmp_path / "a.spinney").read_bytes() == (tmp_path / "b.spinney").read_bytes()
    for options in ({}, {"where": {"flag": True}}, {"balance": {"flag": 0.3}}):
        assert release.sample(700, seed=3, **options).equals(again.sample(700, seed=3, **options))
    assert not release.sample(700, seed=3).equals(release.sample(700, seed=4))


def test_rows_do_not_depend_on_threads(monkeypatch):
    """Neither the fit nor the draw."""
    drawn = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("SPINNEY_THREADS", n_threads)
        model = sp.ForestSynthesizer("3").fit(
            one_factor.table(3000), one_factor.SCHEMA, entropy=sp.UnsafeSeededEntropy(4)
        )
        assert model.release_.products is not None
        drawn.append(model.sample(2000, seed=1))
    assert drawn[0].equals(drawn[1])


def test_conditions_hold_and_reach_pairs_that_were_only_summed():
    """Rows meet `where` and `balance` to the row, and a column that was summed with the condition's is moved by it."""
    release = one_factor.fitted("20", 20_000).release_
    assert release.products is not None
    rows = release.sample(3000, seed=1, where={"x": (1.0, 8.0)})
    assert rows["x"].is_between(1.0, 8.0).all()
    others = release.sample(3000, seed=1, where={"x": (-8.0, -1.0)})
    for name in ("y", "z", "n"):
        assert rows[name].mean() - others[name].mean() > 0.4
    balanced = release.sample(4000, seed=1, balance={"band": {"a": 0.7, "b": 0.1, "c": 0.1, "d": 0.1}})
    assert abs((balanced["band"] == "a").mean() - 0.7) < 0.002
    assert balanced["y"].mean() < release.sample(4000, seed=1)["y"].mean() - 0.1
    both = release.sample(2000, seed=1, balance={"mark": 0.5}, where={"colour": ["red", "blue"]})
    assert set(both["colour"]) == {"red", "blue"}
    assert abs(both["mark"].mean() - 0.5) < 0.002


RULED = sp.Schema(
    {
        "id": sp.Identifier(),
        "paid": sp.Integer(0, 100),
        "due": sp.Integer(0, 100),
        "x": sp.Real(0, 10),
        "status": sp.Category(["open", "shut", "new"]),
        "end": sp.Integer(0, 50, nullable=True),
        "y": sp.Real(0, 10),
        "age": sp.Integer(0, 90),
        "generation": sp.Category(["young", "old"]),
        "flag": sp.Boolean(),
    },
    rules=[
        sp.AtMost("paid", "due"),
        sp.EmptyWhen("end", "status", ["open", "new"]),
        sp.Implies({"age": (0, 15)}, {"flag": False}),
        sp.Derived("generation", "age", cuts=[40], labels=["young", "old"]),
    ],
    places=[sp.Place("x", "y")],
)


def ruled_table(n_rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    factor = rng.normal(size=n_rows)
    due = (50 + 12 * factor + rng.normal(0, 10, n_rows)).clip(0, 100).astype(int)
    age = (40 + 10 * factor + rng.normal(0, 12, n_rows)).clip(0, 90).astype(int)
    status = np.array(["open", "shut", "new"])[np.digitize(factor + rng.normal(size=n_rows), [-0.5, 0.5])]
    return pl.DataFrame(
        {
            "id": np.arange(n_rows),
            "paid": (due * rng.random(n_rows)).astype(int),
            "due": due,
            "x": (5 + factor + rng.normal(size=n_rows)).clip(0, 10),
            "status": status,
            "end": [int(value) if here == "shut" else None for value, here in zip(due // 2, status, strict=True)],
            "y": (5 + rng.normal(size=n_rows)).clip(0, 10),
            "age": age,
            "generation": np.where(age < 40, "young", "old"),
            "flag": (age > 15) & (rng.random(n_rows) < 0.5),
        }
    )


@UNITS
@pytest.mark.parametrize(
    "options", [{}, {"where": {"age": (0, 30)}}, {"balance": {"status": {"open": 0.7, "shut": 0.2, "new": 0.1}}}]
)
def test_rules_places_and_computed_columns_hold(unit, options):
    """In every row, with conditions and without, among thousands that are weighted and exchanged."""
    model = sp.ForestSynthesizer("6", unit=unit).fit(ruled_table(6000), RULED, entropy=sp.UnsafeSeededEntropy(2))
    assert model.release_.products is not None
    rows = model.sample(5000, seed=1, **options)
    assert (rows["paid"] <= rows["due"]).all()
    assert (rows["end"].is_null() | (rows["status"] == "shut")).all()
    assert not rows.filter(pl.col("age") <= 15)["flag"].any()
    assert ((rows["generation"] == "young") == (rows["age"] < 40)).all()
    assert rows["id"].n_unique() == 5000
    if "where" in options:
        assert rows["age"].max() <= 30


def test_a_forest_without_a_vector_is_drawn_as_ever():
    """No part of the account, no members, and rows of the model itself."""
    with one_factor.no_products():
        model = sp.ForestSynthesizer("3").fit(one_factor.table(3000), one_factor.SCHEMA)
    entries, members = model.release_.to_members()
    assert "products" not in entries
    assert set(members) == {"leaves.arrow", "model.arrow", "counts.arrow", "tables.arrow"}


# ----------------------------------------------------------------------------------------------------------- explain


def test_an_explanation_says_what_the_vector_is():
    """Pairs, sums, groups of each column, and the error of a mean product: on the page and as data."""
    release = one_factor.fitted().release_
    explanation = release.explain()
    products, released = explanation.products, release.products
    assert (products.n_pairs, products.n_sums) == (len(released.pairs), released.n_sums)
    assert products.groups["flag"] == 2
    assert set(products.groups.values()) <= {2, 3, 4, 5, 6, 8, 16}
    assert products.standard_error == pytest.approx(float(released.variance) ** 0.5 / 6000)
    assert explanation.to_dict()["products"]["n_sums"] == released.n_sums
    page = str(explanation)
    assert f"all {products.n_pairs} other pairs, in {products.n_sums} sums of products" in page
    assert f"between -1 and 1: {products.standard_error:.4f}" in page
    assert "All other pairs were measured coarsely" in page
    assert "only through this tree" not in page
    assert max(map(len, page.splitlines())) <= 100


# -------------------------------------------------------------------------------------------------------- conditions


def test_rows_under_a_condition_are_those_of_a_sample_that_meet_it():
    """By the shares of every category and by the means of numbers."""
    model = one_factor.fitted("6")
    assert model.release_.products is not None
    whole = model.sample(60_000, seed=1).filter(pl.col("flag"))
    given = model.sample(whole.height, seed=2, where={"flag": True})
    for name in ("colour", "band", "mark"):
        shares = [dict(rows[name].cast(pl.String).value_counts(normalize=True).iter_rows()) for rows in (whole, given)]
        assert shares[0] == pytest.approx(shares[1], abs=0.015)
    for name in ("x", "y", "n", "z"):
        assert given[name].mean() == pytest.approx(whole[name].mean(), abs=0.03 * whole[name].std())


@pytest.mark.parametrize("n_rows", [10, 1000])
def test_balanced_columns_have_their_shares_to_the_row(n_rows):
    """Two that depend on each other, both."""
    rows = one_factor.fitted("6").sample(n_rows, seed=3, balance={"flag": 0.5, "mark": 0.3})
    assert (rows["flag"].sum(), rows["mark"].sum()) == (n_rows // 2, 3 * n_rows // 10)
