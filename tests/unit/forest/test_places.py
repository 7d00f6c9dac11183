"""Places in a forest: drawn jointly, with their nulls, steps and shapes, under conditions, and out of files again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError, SchemaError
from spinney.forest.columns import NoisyPlace, place_model, unmeasured_place
from spinney.grid.axes import place_axis
from spinney.release.verify import verification
from support.command_line import spinney
from support.ring_road import COLUMNS, LAKE, PLACED, RING, N, fit, fitted, table, within


def distance(rows):
    """How far points lie from the ring road."""
    return np.abs(np.hypot(rows["x"].to_numpy() - 5, rows["y"].to_numpy() - 5) - 3)


# ------------------------------------------------------------------------------------------------------ drawing


def test_a_place_is_drawn_jointly():
    """Points lie on the ring, which two columns by themselves cannot know; columns that depend on them still do."""
    rows = fitted().sample(4000, seed=1)
    alone = fit(table(), sp.Schema(COLUMNS)).sample(4000, seed=1)
    assert np.mean(distance(rows) < 0.6) > 0.9
    assert np.mean(distance(rows) < 0.25) > 1.03 * np.mean(distance(alone) < 0.25)
    assert np.mean((rows["x"].to_numpy() > 5) == (rows["side"].to_numpy() == "east")) > 0.95
    assert np.mean((rows["y"].to_numpy() > 5) == rows["high"].to_numpy()) > 0.9
    assert rows.column_names == list(COLUMNS)


@pytest.mark.parametrize(
    "options",
    [{"delta": 0}, {"unit": "add-remove"}, {"target": "side"}, {"quality": "high"}, {"delta": 0, "target": "high"}],
    ids=str,
)
def test_every_kind_of_forest_has_places(options, tmp_path):
    """Pure and composed, with a target, in rounds, with a private number of rows; and out of its file the same."""
    model = fitted(**options)
    rows = model.sample(3000, seed=2)
    assert np.mean(distance(rows) < 0.8) > 0.8
    model.save(tmp_path / "forest.spinney")
    loaded = sp.load(tmp_path / "forest.spinney")
    assert loaded.sample(3000, seed=2).equals(rows)
    verification(loaded)


def test_a_place_may_be_all_there_is():
    schema = sp.Schema({"x": sp.Real(0, 10), "y": sp.Real(0, 10)}, places=[sp.Place("x", "y")])
    for options in ({}, {"delta": 0}, {"unit": "add-remove"}):
        model = fit(table().select(["x", "y"]), schema, **options)
        assert np.mean(distance(model.sample(2000, seed=1)) < 0.6) > 0.9
        assert model.explain().structure == "independent"
    poor = sp.ForestSynthesizer("0.0001").fit(table(50).select(["x", "y"]), schema)
    assert poor.explain().structure == "uniform"
    assert abs(np.mean(poor.sample(4000, seed=1)["x"].to_numpy()) - 5) < 0.3


def test_three_columns_are_a_place(tmp_path):
    """A helix: height goes with the angle."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 20_000)
    helix = pa.table({"x": np.cos(angle), "y": np.sin(angle), "z": angle, "k": rng.integers(0, 3, 20_000)})
    columns = {"x": sp.Real(-2, 2), "y": sp.Real(-2, 2), "z": sp.Real(0, 8), "k": sp.Category([0, 1, 2])}
    model = fit(helix, sp.Schema(columns, places=[sp.Place("x", "y", "z")]))
    rows = model.sample(4000, seed=1)
    x, y, z = (rows[name].to_numpy() for name in "xyz")
    assert np.quantile(np.hypot(x - np.cos(z), y - np.sin(z)), 0.9) < 0.8
    model.save(tmp_path / "helix.spinney")
    assert sp.load(tmp_path / "helix.spinney").sample(50, seed=1).equals(model.sample(50, seed=1))


def test_nulls_come_back_together_and_alone():
    """Each column has nulls of its own: both at once in a tenth of the rows, one alone in a twentieth."""
    data = table(20_000).to_pandas()
    rng = np.random.default_rng(3)
    u = rng.random(len(data))
    data.loc[u < 0.15, "x"] = None
    data.loc[(u < 0.1) | (u > 0.95), "y"] = None
    columns = COLUMNS | {"x": sp.Real(0, 10, nullable=True), "y": sp.Real(0, 10, nullable=True)}
    model = fit(data, sp.Schema(columns, places=[sp.Place("x", "y")]))
    rows = model.sample(20_000, seed=1)
    both, x_alone = (rows.x.isna() & rows.y.isna()).mean(), (rows.x.isna() & rows.y.notna()).mean()
    y_alone = (rows.x.notna() & rows.y.isna()).mean()
    assert (both, x_alone, y_alone) == (pytest.approx(0.1, abs=0.01), pytest.approx(0.05, abs=0.01),
                                        pytest.approx(0.05, abs=0.01))  # fmt: skip
    kept = rows[rows.x.notna() & rows.y.notna()]
    assert np.mean(np.abs(np.hypot(kept.x - 5, kept.y - 5) - 3) < 0.6) > 0.9
    low = rows[rows.x.isna() & rows.y.notna()]
    assert abs(((low.y < 5) == ~low.high.astype(bool)).mean()) > 0.8
    assert model.sample(200, seed=1, where={"x": None})["x"].isna().all()
    chosen = model.sample(200, seed=1, where={"x": None, "y": (6, 8)})
    assert chosen["x"].isna().all()
    assert chosen["y"].between(6, 8).all()
    share = next(column for column in model.explain().columns if column.name == "x, y").null_share
    assert share == pytest.approx(0.2, abs=0.01)


def test_steps_hold():
    """Whole numbers, numbers in steps and dates, drawn within their bounds."""
    rng = np.random.default_rng(5)
    day = rng.integers(0, 300, N)
    data = pa.table(
        {
            "e": 50 * (day // 5),
            "n": np.round(rng.normal(5, 1, N), 1),
            "d": pa.array((18_000 + day).astype(np.int32)).cast(pa.date32()),
        }
    )
    columns = {
        "e": sp.Integer(0, 4000, multiple_of=50),
        "n": sp.Real(0, 10, multiple_of=0.1),
        "d": sp.Date("2019-01-01", "2021-01-01"),
    }
    for names in (("e", "n"), ("e", "d"), ("d", "n", "e")):
        rows = fit(data, sp.Schema(columns, places=[sp.Place(*names)])).sample(2000, seed=1)
        assert not (rows["e"].to_numpy() % 50).any()
        assert np.allclose(rows["n"].to_numpy() * 10, np.rint(rows["n"].to_numpy() * 10))
    near = rows["e"].to_numpy() - 10 * (rows["d"].cast(pa.int32()).to_numpy() - 18_000)
    assert np.quantile(np.abs(near), 0.8) < 600


def test_a_place_of_one_value_is_known():
    columns = {"x": sp.Integer(4, 4), "y": sp.Integer(7, 7), "k": sp.Category(["a", "b"])}
    data = pa.table({"x": [4] * 500, "y": [7] * 500, "k": ["a", "b"] * 250})
    model = fit(data, sp.Schema(columns, places=[sp.Place("x", "y")]))
    rows = model.sample(50, seed=1)
    assert set(rows["x"].to_pylist()) == {4}
    assert set(rows["y"].to_pylist()) == {7}


def test_private_bounds_are_found_for_a_place():
    """Each column's bounds are paid for, and the place is cut between them."""
    columns = COLUMNS | {"x": sp.Real(bounds="private"), "y": sp.Real(bounds="private")}
    model = fit(table(), sp.Schema(columns, places=[sp.Place("x", "y")]))
    assert model.schema_["x"].high <= 16
    assert model.schema_.places == (sp.Place("x", "y"),)
    assert np.mean(distance(model.sample(3000, seed=1)) < 0.8) > 0.8


# ------------------------------------------------------------------------------------------------------ conditions


def test_conditions_hold_exactly():
    """A box of both columns; what is drawn is what an unconditional draw has there."""
    model = fitted()
    rows = model.sample(3000, seed=1, where={"x": (6.25, 8.0), "y": (4.125, 6.5)})
    assert rows["x"].to_numpy().min() >= 6.25
    assert rows["x"].to_numpy().max() <= 8.0
    assert rows["y"].to_numpy().min() >= 4.125
    assert rows["y"].to_numpy().max() <= 6.5
    assert np.mean(rows["side"].to_numpy() == "east") > 0.95
    every = model.sample(60_000, seed=2).to_pandas()
    there = every[every.x.between(6.25, 8) & every.y.between(4.125, 6.5)]
    assert rows["x"].to_numpy().mean() == pytest.approx(there.x.mean(), abs=0.03)
    assert rows["high"].to_numpy().mean() == pytest.approx(there.high.mean(), abs=0.04)
    one = model.sample(100, seed=1, where={"x": 7.5})
    assert set(one["x"].to_pylist()) == {7.5}
    assert np.mean(distance(one) < 1) > 0.9
    assert model.sample(5, seed=1, where={"side": "west", "x": (0, 5)}).num_rows == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": {"x": (20, 30)}}, "column 'x' is never"),
        ({"where": {"x": [1, 2]}}, "part of the place 'x, y' and takes one value or a range"),
        ({"where": {"x": "far"}}, "'x'"),
        ({"where": {"x": None}}, "never null"),
        ({"where": {"x, y": 1}}, "'x, y' is not a column"),
        ({"balance": {"x": 0.5}}, "part of a place"),
    ],
)
def test_conditions_that_cannot_be_met_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        fitted().sample(10, **options)


# ---------------------------------------------------------------------------------------------------------- shapes


def is_inside(rows):
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    return (x >= 0) & (x <= 8) & (y >= 0) & (y <= 8) & ~((x > 2) & (x < 5) & (y > 2) & (y < 6))


def test_no_point_lies_outside_the_shape(tmp_path):
    """Neither in the lake nor beyond the town, whatever is asked for, though rows of the table did."""
    assert not is_inside(table()).all()
    model = within()
    assert is_inside(model.sample(20_000, seed=1)).all()
    assert is_inside(model.sample(3000, seed=1, where={"x": (4, 8), "y": (1.9, 2.1)})).all()
    assert is_inside(model.sample(3000, seed=1, where={"x": (1.5, 5.5)})).all()
    with pytest.raises(ParameterError, match="never"):
        model.sample(3, where={"x": (3, 4), "y": (3, 4)})
    model.save(tmp_path / "lake.spinney")
    loaded = sp.load(tmp_path / "lake.spinney")
    assert loaded.sample(500, seed=1).equals(model.sample(500, seed=1))
    assert loaded.schema.places == model.schema_.places


def test_points_are_even_over_what_is_inside():
    """Where nothing is known, the shape alone is filled: half of a square below its diagonal."""
    columns = {"x": sp.Real(0, 1), "y": sp.Real(0, 1)}
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=[(0, 0), (1, 0), (1, 1)])])
    model = sp.ForestSynthesizer("0.0001").fit(np.random.default_rng(0).random((50, 2)), schema)
    rows = model.sample(40_000, seed=3)
    assert (rows[:, 1] <= rows[:, 0]).all()
    assert rows.mean(axis=0) == pytest.approx([2 / 3, 1 / 3], abs=0.01)


def test_whole_numbers_stay_within_a_shape():
    """Values are looked at as they are shown: rounded to steps."""
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.integers(0, 21, N), "y": 5 * rng.integers(0, 21, N)})
    columns = {"x": sp.Integer(0, 20), "y": sp.Integer(0, 100, multiple_of=5)}
    disc = [(10 + 7.3 * np.cos(a), 50 + 41 * np.sin(a)) for a in np.linspace(0, 6.28, 40)]
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=disc)])
    rows = fit(data, schema).sample(3000, seed=1)
    raster = place_axis(schema.places[0], schema).raster
    points = np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()], axis=1).astype(float)
    assert raster.holds(points).all()
    assert len(np.unique(points, axis=0)) > 100


def test_a_mask_leaves_out_cells():
    mask = np.ones((10, 10), dtype=bool)
    mask[2:5, 2:6] = False
    schema = sp.Schema(COLUMNS, places=[sp.Place("x", "y", within=mask)])
    rows = fit(table(), schema).sample(5000, seed=1)
    assert mask[np.floor(rows["x"].to_numpy()).astype(int), np.floor(rows["y"].to_numpy()).astype(int)].all()


def test_check_counts_rows_outside_the_shape():
    """For the holder: how many rows lie outside, with the engine that reads the table."""
    schema = sp.Schema(COLUMNS, places=[sp.Place("x", "y", within=[RING, LAKE])])
    found = sp.check(table(), schema)
    (warning,) = [warning for warning in found.warnings if "outside its shape" in warning.message]
    assert warning.n_rows == pytest.approx((~is_inside(table())).sum(), abs=20)
    assert found.is_clean
    assert not sp.check(table(), PLACED).warnings


# -------------------------------------------------------------------------------------- who takes a place, who does not


def test_a_target_in_a_place_is_refused_before_anything_is_spent():
    ledger = sp.Ledger(limit=1, delta="1e-5")
    with pytest.raises(ParameterError, match="part of the place 'x, y', which cannot be a target"):
        sp.ForestSynthesizer(target="x").fit(table(), PLACED, ledger=ledger)
    assert ledger.spent == 0


def test_trees_take_places_but_no_shapes():
    """A place in a tree is joint anyway; a shape makes the choice a forest, and a tree that is asked for says so."""
    numbers = {name: COLUMNS[name] for name in ("x", "y")}
    plain = sp.Schema(numbers, places=[sp.Place("x", "y")])
    shaped = sp.Schema(numbers, places=[sp.Place("x", "y", within=RING)])
    data = table().select(["x", "y"])
    assert sp.check(data, plain).method == "tree"
    assert sp.check(data, shaped).method == "forest"
    assert sp.synthesize(data, plain, n_rows=10).num_rows == 10
    assert is_inside(sp.synthesize(data, sp.Schema(numbers, places=[sp.Place("x", "y", within=[RING, LAKE])]))).all()
    for model in (sp.KDTreeSynthesizer(), sp.GridSynthesizer(bins=4), sp.PaperTreeSynthesizer()):
        assert model.fit(data, plain).sample(5).num_rows == 5
        ledger = sp.Ledger(limit=1)
        with pytest.raises(SchemaError, match="cannot keep the place 'x, y' within its shape"):
            model.fit(data, shaped, ledger=ledger)
        assert ledger.spent == 0


def test_places_are_explained_by_name(tmp_path):
    """As one column of a page, a clique and bins; the card names it."""
    model = fitted()
    explanation = model.explain()
    place = next(column for column in explanation.columns if column.name == "x, y")
    assert (place.type, place.null_share) == ("place", None)
    assert [column.name for column in explanation.columns] == ["age", "x, y", "side", "high"]
    assert "x, y and " in str(explanation)
    regions = explanation.bins("x, y")
    assert sum(region["rows"] for region in regions) == pytest.approx(N, rel=1e-6)
    assert all(region["low"][k] < region["high"][k] for region in regions for k in (0, 1))
    assert len(regions) == place.n_leaves
    with pytest.raises(ParameterError, match="'x' is not a column that the forest learnt"):
        explanation.bins("x")
    assert {"regions", "places"} <= {stage.name for stage in explanation.stages}
    assert "place       x, y" in str(model.card_)
    model.save(tmp_path / "town.spinney")
    assert "x, y" in spinney("explain", tmp_path / "town.spinney").out


# ---------------------------------------------------------------------------------------------------------- states


def test_states_are_boxes_of_the_tree_that_hold_rows():
    """Regions of a state follow each other, every state has weight, and rows find the state of their region."""
    model = fitted().release_.places["x, y"]
    assert (np.diff(model.states) >= 0).all()
    assert (np.diff(model.states) <= 1).all()
    assert (model.state_weights() > 0).all()
    assert model.state_weights().sum() == pytest.approx(N)


def test_regions_tile_what_is_possible():
    """Also where nothing was measured: one region for each way to be null."""
    columns = {"x": sp.Integer(0, 6, nullable=True), "y": sp.Integer(0, 4)}
    schema = sp.Schema(columns, places=[sp.Place("x", "y")])
    axis = place_axis(schema.places[0], schema)
    unknown = unmeasured_place(axis)
    model, cut = place_model(unknown, total=80.0, most_states=4)
    assert model.weights.sum() == pytest.approx(80)
    assert model.reach()[model.is_null.any(axis=1)].sum() > 0
    assert cut.first[0] == 0
    noisy = NoisyPlace(axis, unknown.codes, unknown.depths, np.array([1] * len(unknown.depths)), 100.0, 0)
    assert place_model(noisy, total=10.0, most_states=4)[0].weights.sum() == pytest.approx(10)


# ------------------------------------------------------------------------------------------- beside other columns


def test_places_stand_beside_rules(tmp_path):
    """Rules about other columns hold, though a place before them is one variable of several columns."""
    data = table().to_pandas()
    data["until"] = data.age + np.random.default_rng(1).integers(0, 20, N)
    data["decade"] = np.where(data.age < 50, "young", "old")
    columns = {name: COLUMNS[name] for name in ("x", "side", "y", "high", "age")} | {
        "until": sp.Integer(0, 200),
        "decade": sp.Category(["young", "old"]),
    }
    rules = [
        sp.AtMost("age", "until"),
        sp.Implies({"age": (0, 49)}, {"decade": ["young"]}),
        sp.Implies({"decade": ["young"]}, {"age": (0, 49)}),
    ]
    schema = sp.Schema(columns, rules=rules, places=[sp.Place("x", "y")])
    model = fit(data[list(columns)], schema)
    model.save(tmp_path / "both.spinney")
    rows = sp.load(tmp_path / "both.spinney").sample(3000, seed=1, where={"x": (4, 9)})
    assert (rows.age <= rows.until).all()
    assert ((rows.age < 50) == (rows.decade == "young")).all()
    assert rows.x.between(4, 9).all()
    assert ((rows.x > 5) == (rows.side == "east")).mean() > 0.9


def test_few_points_lie_far_from_all_rows_and_a_far_town_is_kept():
    """Under generous bounds the columns keep their spread and correlation, and a hundredth of the rows far away."""
    rng = np.random.default_rng(0)
    n, n_town = 20_000, 200
    x = rng.normal(20, 1, n)
    y = 10 + x + rng.normal(0, 0.5, n)
    schema = sp.Schema({"x": sp.Real(0, 100), "y": sp.Real(0, 100)}, places=[sp.Place("x", "y")])
    for has_town in (False, True):
        if has_town:
            x[:n_town], y[:n_town] = rng.normal(80, 1, n_town), rng.normal(70, 1, n_town)
        stray = []
        for seed in range(4):
            model = sp.ForestSynthesizer("1", "1e-6").fit(
                np.stack([x, y], 1), schema, entropy=sp.UnsafeSeededEntropy(seed)
            )
            rows = model.sample(n, seed=seed)
            in_town = (np.abs(rows[:, 0] - 80) < 5) & (np.abs(rows[:, 1] - 70) < 5)
            assert not has_town or 0.006 < in_town.mean() < 0.014
            stray.append(float(((np.abs(rows - [20, 30]) > 8).any(axis=1) & ~in_town).mean()))
        assert np.mean(stray) < 0.005, has_town
