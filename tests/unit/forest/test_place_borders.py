"""Places near the border of their shape: no point outside, and no rows in strips that the border leaves of regions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.forest.columns import NoisyPlace, place_model
from spinney.grid.axes import place_axis

TRIANGLE = [(2.1, 2.2), (7.3, 3.1), (4.7, 8.9)]


@cache
def in_triangle(step=None, epsilon="1", seed=0):
    rng = np.random.default_rng(seed)
    data = pa.table({"x": rng.uniform(0, 10, 4000), "y": rng.uniform(0, 10, 4000), "z": rng.random(4000) < 0.5})
    columns = {"x": sp.Real(0, 10, multiple_of=step), "y": sp.Real(0, 10), "z": sp.Boolean()}
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=TRIANGLE)])
    return sp.ForestSynthesizer(epsilon).fit(data, schema, entropy=sp.UnsafeSeededEntropy(1))


def n_outside(model, **options):
    """Of 2000 rows, how many lie outside the triangle by the statement itself, or break the condition."""
    rows = model.sample(2000, seed=1, **options)
    points = np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()], axis=1)
    is_wrong = ~model.schema_.places[0].within.holds(points, [(0, 10), (0, 10)])
    for name, (low, high) in options.get("where", {}).items():
        is_wrong |= (rows[name].to_numpy() < low) | (rows[name].to_numpy() > high)
    return is_wrong.sum()


@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_no_condition_brings_points_outside(epsilon):
    """Values in steps are tested as they are shown, and where the border leaves hardly anything, nothing is made up."""
    for seed in range(2):
        assert n_outside(in_triangle(1 / 3, epsilon, seed), where={"x": (3.0, 3.4)}) == 0
        assert n_outside(in_triangle(0.25, epsilon, seed), where={"x": (4.0, 5.4)}) == 0
    model = in_triangle(None, epsilon)
    for nothing in ({"x": (7.26845, 7.26848), "y": (3.17946, 3.17968)}, {"y": (8.9, 9.5)}):
        with pytest.raises(ParameterError, match="never"):
            model.sample(100, where=nothing)
    rng = np.random.default_rng(5)
    n_drawn = 0
    for x, y in rng.uniform(2, 8, (40, 2)):  # windows smaller than a part of the raster, many of them on the border
        try:
            assert n_outside(model, where={"x": (x, x + 0.03), "y": (y, y + 0.003)}) == 0
        except ParameterError:
            continue
        n_drawn += 1
    assert n_drawn > 5


@pytest.mark.parametrize(("edge", "count", "is_kept"), [(4.2, 35, False), (4.2, 45, True), (5.2, 35, True)])
def test_noise_is_not_drawn_in_strips(edge, count, is_kept):
    """A quarter of which a strip lies inside the shape is empty below four deviations of its noise; a wider one not."""
    columns = {"x": sp.Real(0, 8), "y": sp.Real(0, 8)}
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=[(0, 0), (edge, 0), (edge, 8), (0, 8)])])
    axis = place_axis(schema.places[0], schema)
    codes = (np.arange(4, dtype=np.uint64) << np.uint64(62))[:, None]
    depths = np.full(4, 2)
    empty = np.zeros(4)
    whole, _ = place_model(NoisyPlace(axis, codes, depths, empty, 10.0), total=2000, most_states=4)
    is_right = whole.low[:, 0] >= 4
    assert is_right.sum() == 2
    counts = np.where(is_right, float(count), 1000.0)
    model, _ = place_model(NoisyPlace(axis, codes, depths, counts, 10.0), total=2000, most_states=4)
    assert ((model.weights > 0) == (is_kept | ~is_right)).all()
