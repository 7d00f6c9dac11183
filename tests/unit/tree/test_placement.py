"""Where rows lie inside their bins: at the centre, anywhere, or leaning toward the denser neighbour."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spinney as sp
from spinney.grid.lattice import grid_lattice
from spinney.tree.release.bins import mean_points
from spinney.tree.release.geometry import bin_boxes, shifts
from support.slow_trees import axis_order, box_of, unpack

LINE = sp.Schema({"x": sp.Real(0, 8)})


def slow_shifts(bins):
    """The lean of every bin along every axis, straight from the formula, over all pairs of bins."""
    lattice = bins.lattice
    order = axis_order(lattice)
    nodes = [
        (int(d), format(unpack(code.tolist(), int(d)), f"0{int(d)}b") if d else "")
        for d, code in zip(bins.depths, bins.codes, strict=True)
    ]
    counts = bins.noisy_counts.tolist()

    def total(prefix):
        return sum(n for n, (_, bits) in zip(counts, nodes, strict=True) if bits.startswith(prefix))

    leans = np.zeros((len(nodes), lattice.n_axes))
    for row, (depth, bits) in enumerate(nodes):
        for index, axis in enumerate(lattice.axes):
            cuts = [level for level in range(depth) if order[level] == index]
            if not cuts or (axis.nullable and len(cuts) == 1):
                continue  # never cut along this axis, or only into null and values
            own, side = bits[: cuts[-1] + 1], bits[cuts[-1]]
            sibling = own[:-1] + ("0" if side == "1" else "1")
            sibling_cells = box_of((len(sibling), int(sibling, 2)), lattice)[index]
            if not any(axis.first <= cell <= axis.last for cell in sibling_cells):
                continue
            lean = min((total(sibling) / total(own) - 1) / 12, 1 / 3)
            leans[row, index] = lean if side == "0" else -lean
    return leans


SCHEMAS = {
    "square": sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1)}),
    "more than 64 bits": sp.Schema({f"c{i}": sp.Real(0, 1, bits=30) for i in range(3)}),
    "nulls and lists": sp.Schema(
        {"a": sp.Real(0, 1, nullable=True), "b": sp.Category(range(5)), "c": sp.Integer(0, 9)}
    ),
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_leans_meet_their_slow_twin(schema, seeded):
    """The compiled leans are the formula's, on lattices of one and of two words, with nulls and gaps."""
    rng = np.random.default_rng(4)
    n = 3000
    columns = []
    for column in schema.values():
        if isinstance(column, sp.Real):
            values = rng.beta(2, 9, n)
            columns.append(np.where(rng.random(n) < 0.2, np.nan, values) if column.nullable else values)
        else:
            columns.append(rng.integers(0, 5, n).astype(float))
    model = sp.KDTreeSynthesizer(4, moments=False).fit(np.stack(columns, axis=1), schema, entropy=seeded(1))
    fast, slow = shifts(model.release_.bins, model.release_.bins.noisy_counts), slow_shifts(model.release_.bins)
    assert len(fast) > 30
    assert np.abs(slow).max() > 0.05
    assert np.array_equal(fast, slow)


def test_the_formula_by_hand(release_of):
    """edge * (c_sib / c_own - 1) / 12 toward the sibling, at most a third of the edge."""
    points, weights = release_of(LINE, {"0": 100, "10": 30, "11": 270}).weighted_points(placement="tilted")
    lower = 2 + 4 * (300 / 100 - 1) / 12
    left = 5 + 2 * (1 / 3)  # (270/30 - 1) / 12 = 2/3, limited
    right = 7 - 2 * (30 / 270 - 1) / 12
    assert points["x"].to_pylist() == pytest.approx([lower, left, right])
    assert weights.tolist() == pytest.approx([0.25, 0.075, 0.675])


@pytest.mark.parametrize("counts", [(100, 300), (100, 150), (100, 1), (1, 1000), (100, 100), (30, 150)])
def test_tilted_rows_have_the_mean_of_the_formula(release_of, counts):
    """Rows of a bin lie inside it, with the mean that the formula asks for."""
    release = release_of(LINE, dict(zip(("0", "1"), counts, strict=True)))
    rows = release.sample(200_000, seed=1, placement="tilted")["x"].to_numpy()
    assert rows.min() >= 0
    assert rows.max() <= 8
    for side, own, sibling in ((0, counts[0], counts[1]), (1, counts[1], counts[0])):
        inside = rows[(rows >= 4) == side]
        if len(inside) < 100:
            continue
        toward_sibling = (1 if side == 0 else -1) * min((sibling / own - 1) / 12, 1 / 3)
        mean = 4 * side + 2 + 4 * toward_sibling
        margin = 5 * 4 * math.sqrt(1 / 12 / len(inside))
        assert abs(inside.mean() - mean) < margin
        if abs(toward_sibling) > 0.05:
            assert abs(inside.mean() - (4 * side + 2)) > margin  # a uniform placement would fail


def test_steep_leans_reach_less_far(release_of):
    """A lean beyond a sixth of the edge crowds the rows on the sibling's side and leaves the far side empty."""
    rows = release_of(LINE, {"0": 1, "1": 1000}).sample(500_000, seed=1)["x"].to_numpy()
    lonely = rows[rows < 4]
    assert len(lonely) > 100
    # Mean a third off the centre: a triangle over the nearer half of the edge.
    assert lonely.min() >= 2 - 1e-9


def test_centre_places_all_rows_at_centres(release_of):
    """The paper's placement: one point per bin."""
    release = release_of(LINE, {"00": 5, "1": 7})
    assert set(release.sample(200, seed=1, placement="centre")["x"].to_pylist()) == {1.0, 6.0}
    assert release.weighted_points()[0]["x"].to_pylist() == [1.0, 6.0]


def test_uniform_fills_the_bin_evenly(release_of):
    """Each quarter of a bin gets a quarter of its rows, whatever the neighbours hold."""
    rows = release_of(LINE, {"0": 1000, "1": 10}).sample(40_000, seed=1, placement="uniform")["x"].to_numpy()
    quarters = np.histogram(rows[rows < 4], bins=4, range=(0, 4))[0]
    assert np.abs(quarters / quarters.sum() - 0.25).max() < 6 * math.sqrt(0.25 * 0.75 / 39_000)


def test_bins_of_a_ragged_grid_end_at_the_bound(release_of):
    """Where the width does not divide the range, the last bin is cut at the high bound."""
    schema = sp.Schema({"x": sp.Real(10, 11)})
    lattice = grid_lattice(schema, width=0.3)
    release = release_of(schema, {"00": 1, "11": 1}, lattice=lattice)
    boxes = bin_boxes(release.bins)
    assert boxes.low[:, 0].tolist() == pytest.approx([10, 10.9])
    assert boxes.length[:, 0].tolist() == pytest.approx([0.3, 0.1])
    assert release.sample(1000, seed=1)["x"].to_numpy().max() <= 11


def test_whole_values_are_spread_over_their_bin(release_of):
    """A bin of several whole values gives each of them, and none beyond the bounds."""
    schema = sp.Schema({"n": sp.Integer(-3, 6, bits=2)})  # four cells: three values each, the last one value
    release = release_of(schema, {"00": 10, "11": 10})
    for where in ("uniform", "tilted"):
        assert set(release.sample(2000, seed=1, placement=where)["n"].to_pylist()) == {-3, -2, -1, 6}
    assert set(release.sample(2000, seed=1, placement="centre")["n"].to_pylist()) == {-2, 6}


def test_a_root_bin_of_an_unfinished_list_stays_in_the_list(release_of):
    """Five values on three bits: a bin that spans the gap gives only values that exist."""
    release = release_of(sp.Schema({"c": sp.Category(["a", "b", "c", "d", "e"])}), {"": 10})
    assert set(release.sample(2000, seed=1, placement="uniform")["c"].to_pylist()) == set("abcde")


def test_null_shares(release_of):
    """A null bin gives nulls, a value bin none, and a bin that holds both one null cell among its cells."""
    schema = sp.Schema({"x": sp.Real(0, 1, bits=2, nullable=True)})
    assert release_of(schema, {"1": 10}).sample(100, seed=1)["x"].null_count == 100
    assert release_of(schema, {"0": 10}).sample(100, seed=1)["x"].null_count == 0
    both = release_of(schema, {"": 10}).sample(20_000, seed=1)["x"]
    assert abs(both.null_count / 20_000 - 1 / 5) < 6 * math.sqrt(0.2 * 0.8 / 20_000)
    points = mean_points(release_of(schema, {"0": 1, "1": 1}).bins, "tilted")
    assert points[0, 0] == 0.5  # the null half is no neighbour to lean on
    assert math.isnan(points[1, 0])


def test_weights_are_normalised_counts(square, seeded):
    """Weights add up to 1 and are proportional to the noisy counts; there is one point per bin."""
    points, schema = square
    model = sp.GridSynthesizer(1, bins=8).fit(points, schema, entropy=seeded(2))
    where, weights = model.weighted_points()
    counts = model.release_.bins.noisy_counts
    assert len(where) == len(weights) == len(counts)
    assert weights.sum() == pytest.approx(1)
    assert np.allclose(weights * counts.sum(), counts)
    assert (weights > 0).all()
