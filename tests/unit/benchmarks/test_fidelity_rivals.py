"""The rivals of the fidelity benchmark do what their papers say: sizes, noise, consistency, answers."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from benchmarks.fidelity import maps, ranges
from benchmarks.fidelity.answers import Box, GridAnswers, LeafAnswers, RowAnswers, count_in_boxes
from benchmarks.fidelity.distances import Spectrum
from benchmarks.fidelity.grids import adaptive_grid, uniform_grid
from benchmarks.fidelity.privtree import decision_noise, privtree
from benchmarks.fidelity.targets import range_lines

from spinney.errors import FileError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.noise.discrete import arb_fraction
from spinney.tree.bins import worst_path_loss
from spinney_paper.kernels import rkhs_distance

BOX = Box((-2.0, 10.0), (6.0, 12.0))
HUGE = Fraction(10**4)  # noise is 0 in all draws that a test could make
RIVALS = {"UG": uniform_grid, "AG": adaptive_grid, "PrivTree": privtree}


def points(n_rows: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(1)
    clusters = np.array([[0.2, 0.3], [0.7, 0.8], [0.71, 0.2]])
    return BOX.from_unit((clusters[rng.integers(0, 3, n_rows)] + rng.normal(0, 0.05, (n_rows, 2))).clip(0, 0.999999))


def brute_force(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.array([((rows >= a) & (rows < b)).all(axis=1).sum() for a, b in zip(low, high, strict=True)])


def variance(rate: Fraction) -> float:
    """Of discrete Laplace noise: 2a/(1-a)²."""
    a = math.exp(-rate)
    return 2 * a / (1 - a) ** 2


# --------------------------------------------------------------------------------------------------- answers


def test_exact_counts_meet_brute_force_with_points_on_the_edges() -> None:
    rows = np.random.default_rng(0).integers(0, 8, (500, 2)) / 8
    corners = np.random.default_rng(1).integers(0, 9, (200, 2, 2)) / 8
    low, high = corners.min(axis=1), corners.max(axis=1)
    assert (count_in_boxes(rows, low, high) == brute_force(rows, low, high)).all()


def test_grid_and_rectangles_answer_alike_and_as_areas_say() -> None:
    """Prefix sums meet the loop over rectangles, and a box over a quarter of one cell gets a quarter of its count."""
    counts = np.arange(12.0).reshape(3, 4)
    corners = np.stack(np.meshgrid(np.arange(3) / 3, np.arange(4) / 4, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = GridAnswers(counts, BOX)
    leaves = LeafAnswers(corners, corners + np.array([1 / 3, 1 / 4]), counts.ravel(), BOX)
    low, high = ranges.random_boxes(BOX, (1e-3, 0.3), 100, seed=0)
    assert grid.range_counts(low, high) == pytest.approx(leaves.range_counts(low, high), abs=1e-9)
    low, high = BOX.from_unit(np.array([[1 / 3, 0.5]])), BOX.from_unit(np.array([[0.5, 0.625]]))
    assert grid.range_counts(low, high) == pytest.approx([counts[1, 2] / 4])


def test_boxes_that_reach_beyond_the_map_count_what_is_inside() -> None:
    grid = GridAnswers(np.ones((2, 2)), BOX)
    assert grid.range_counts(np.array([[-99.0, -99.0]]), np.array([[99.0, 99.0]])) == pytest.approx([4])


def test_rows_stand_for_the_total() -> None:
    rows = points()
    low, high = ranges.random_boxes(BOX, (0.01, 0.1), 20, seed=0)
    doubled = RowAnswers(np.concatenate([rows, rows]), len(rows))
    assert doubled.range_counts(low, high) == pytest.approx(count_in_boxes(rows, low, high))
    assert (RowAnswers(np.empty((0, 2)), 0).range_counts(low, high) == 0).all()


# --------------------------------------------------------------------------------------------------- rivals


@pytest.mark.parametrize("name", RIVALS)
def test_without_noise_aligned_boxes_are_exact(name: str) -> None:
    """In the limit of no noise, boxes along a coarse lattice that all cells respect get their true counts."""
    rows = points()
    # 3000 rows, epsilon/2: 1,225 cells a side for UG; 307 times whatever for AG; halves for PrivTree.
    m = {"UG": 1225, "AG": 307, "PrivTree": 8}[name]
    corners = np.random.default_rng(2).integers(0, m + 1, (100, 2, 2))
    low, high = BOX.from_unit(corners.min(axis=1) / m), BOX.from_unit(corners.max(axis=1) / m)
    released = RIVALS[name](rows, BOX, HUGE, UnsafeSeededEntropy(0))
    assert released.range_counts(low, high) == pytest.approx(count_in_boxes(rows, low, high), abs=1e-6)
    noisy = RIVALS[name](rows, BOX, Fraction(1, 10), UnsafeSeededEntropy(0))
    assert np.abs(noisy.range_counts(low, high) - count_in_boxes(rows, low, high)).max() > 20


def test_uniform_grid_has_the_size_of_its_rule_and_the_noise_of_its_budget() -> None:
    """n = 8,000, epsilon = 1: m = 20; the total's noise is that of 400 cells of rate 1/2, and of no other rate."""
    rows = points(8000)
    low, high = np.array([BOX.low]), np.array([BOX.high])
    totals = [
        uniform_grid(rows, BOX, Fraction(1), UnsafeSeededEntropy(seed)).range_counts(low, high)[0] - 8000
        for seed in range(400)
    ]
    spread = np.std(totals) / math.sqrt(400 * variance(Fraction(1, 2)))
    assert 0.88 < spread < 1.13  # 400 draws: a standard error of 0.035
    assert not 0.88 < spread * 1.3 < 1.13
    assert not 0.88 < spread * 0.7 < 1.13
    assert abs(np.mean(totals)) < 4 * np.std(totals) / 20


def test_adaptive_grid_sizes_follow_first_counts() -> None:
    """All rows in one of 10 x 10 cells, almost no noise: m2 = ceil(sqrt(n (1-alpha) e / c2)) there and 1 elsewhere."""
    rows = BOX.from_unit(np.random.default_rng(0).random((2000, 2)) * 0.1)
    released = adaptive_grid(rows, BOX, Fraction(7), UnsafeSeededEntropy(0))
    m2 = math.ceil(math.sqrt(2000 * 0.5 * 3.5 / 5))
    # 26.5 before rounding, far from a step. A noisy count of 3 or more cuts an empty cell in four: 1 in 220 has one.
    assert len(released) - m2**2 in {99 + 3 * n_cut for n_cut in range(5)}


def test_adaptive_grid_is_consistent_and_better_than_either_level() -> None:
    """The total's noise is that of the weighted mean of both levels, cell by cell, below that of each."""
    rows = BOX.from_unit(np.random.default_rng(0).random((40_000, 2)))
    # e = 1/2: m1 = 12, 278 rows a cell, m2 = ceil(sqrt(278/4/5)) = 4 in nearly all.
    low, high = np.array([BOX.low]), np.array([BOX.high])
    totals, sizes = [], []
    for seed in range(300):
        released = adaptive_grid(rows, BOX, Fraction(1), UnsafeSeededEntropy(seed))
        sizes.append(len(released))
        totals.append(released.range_counts(low, high)[0] - 40_000)
        assert totals[-1] + 40_000 == pytest.approx(released.noisy_counts.sum())
    m2_squared = np.mean(sizes) / 144
    each = variance(Fraction(1, 4))
    of_both = 144 * each / (1 + 1 / m2_squared)  # inverse variances 1 and 1/m2² of a rate-1/4 draw add up
    assert m2_squared == pytest.approx(16, abs=1)
    spread = np.var(totals) / of_both
    assert 0.75 < spread < 1.3  # 300 draws: a standard error of 0.08
    assert not 0.75 < spread * 2 < 1.3
    assert np.var(totals) < 0.5 * 144 * m2_squared * each, "leaves alone are far noisier"


def test_privtree_noise_is_the_papers_and_certified() -> None:
    """lambda = 7/3 * 2 / epsilon, delta >= lambda ln 4; the worst case of discrete noise is within epsilon."""
    epsilon = Fraction(1, 3)
    rate, delta = decision_noise(epsilon)
    assert 1 / rate == Fraction(7, 3) * 2 / epsilon
    assert 0 <= delta - math.log(4) / rate < 1
    with flint.ctx.workprec(192):
        assert worst_path_loss(rate, delta, 20, Unit.REPLACE_ONE) <= arb_fraction(epsilon)
        assert not worst_path_loss(2 * rate, delta, 20, Unit.REPLACE_ONE) <= arb_fraction(epsilon)


def test_privtree_tiles_the_map_and_goes_deeper_where_rows_are() -> None:
    released = privtree(points(), BOX, Fraction(2), UnsafeSeededEntropy(0))
    sizes = released.high - released.low
    assert sizes.prod(axis=1).sum() == pytest.approx(1)
    dense = (np.abs(released.low - [0.2, 0.3]) < 0.1).all(axis=1)
    assert sizes[dense, 0].mean() < sizes[~dense, 0].mean()


def test_privtree_of_nothing_has_as_many_leaves_as_its_law_says() -> None:
    """Empty nodes draw noise too: 1 + 3 s0/(1 - 4 s) leaves, where the root splits with s0 and a node below with s."""
    rate, delta = decision_noise(Fraction(1, 2))

    def expected(rate: Fraction) -> float:
        a = math.exp(-rate)
        return 1 + 3 * (a / (1 + a)) / (1 - 4 * a ** (delta + 1) / (1 + a))

    sizes = [len(privtree(np.empty((0, 2)), BOX, Fraction(1), UnsafeSeededEntropy(seed))) for seed in range(2000)]
    error = np.std(sizes) / math.sqrt(len(sizes))
    assert abs(np.mean(sizes) - expected(rate)) < 3 * error
    assert abs(np.mean(sizes) - expected(rate * Fraction(13, 10))) > 5 * error
    assert abs(np.mean(sizes) - expected(rate * Fraction(10, 13))) > 5 * error


# --------------------------------------------------------------------------------------- workload and verdicts


def test_boxes_lie_on_the_map_with_areas_of_their_class() -> None:
    low, high = (BOX.to_unit(corner) for corner in ranges.random_boxes(BOX, (1e-3, 1e-2), 1000, seed=3))
    sides = high - low
    areas = sides.prod(axis=1)
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert 1e-3 <= areas.min() < 1.2e-3
    assert 8e-3 < areas.max() <= 1e-2 * (1 + 1e-9)
    assert 3 < (sides[:, 0] / sides[:, 1]).max() <= 4 * (1 + 1e-9)


def test_error_is_relative_with_a_floor_of_a_thousandth() -> None:
    errors = ranges.relative_errors(np.array([90.0, 3.0]), np.array([100.0, 0.0]), 10_000)
    assert errors == pytest.approx([0.1, 0.3])


def test_verdicts_are_geometric_means_over_cells() -> None:
    """Twice as good here and twice as bad there is a ratio of 1; small areas meet the best rival of each cell."""
    errors = {"UG": 1.0, "AG": 0.5, "PrivTree": 2.0}
    cells = [
        ranges.Cell("a", 1, "1", ranges.SMALL, {**errors, "Spinney": 0.5}),
        ranges.Cell("a", 1, "1", "1-10 %", {**errors, "Spinney": 2.0}),
    ]
    measured = [result.measured for result, _ in range_lines(cells)]
    assert measured == pytest.approx([1, 2, 0.5, 1])


def test_every_method_answers_the_workload() -> None:
    cells = ranges.compare([maps.made_up_map(5000)], n_runs=1, n_boxes=20)
    assert len(cells) == 9
    assert all(set(cell.errors) == {"UG", "AG", "PrivTree", "Spinney", "Spinney, small areas"} for cell in cells)
    assert sum("focus='small-areas' over the default" in line for line in ranges.summaries(cells)) == 3
    by_epsilon = [np.mean([c.errors["UG"] for c in cells if c.epsilon == e]) for e in ranges.EPSILONS]
    assert by_epsilon[0] > by_epsilon[1] > by_epsilon[2], "more budget, smaller errors"


def test_a_folder_without_maps_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(FileError, match=r"none of uk_accidents\.parquet"):
        maps.check_folder(tmp_path)


def test_lattices_become_points_in_their_cells(tmp_path, capsys) -> None:
    counts = np.array([[3, 0], [0, 400_000]], dtype=np.int32)
    np.savez(tmp_path / "dpcomp_2d_256.npz", Toy=counts)
    (toy,) = maps.maps_in(tmp_path)
    assert "uk_accidents.parquet is not there" in capsys.readouterr().out
    assert len(toy.points) == maps.MAX_ROWS
    found = np.histogram2d(*toy.points.T, bins=(2, 2), range=((0, 2), (0, 2)))[0]
    assert found[0, 1] == found[1, 0] == 0
    assert found[1, 1] >= maps.MAX_ROWS - 3


def test_distances_by_frequencies_meet_those_by_pairs() -> None:
    rng = np.random.default_rng(0)
    real, near, far = rng.normal(size=(2000, 5)), rng.normal(size=(500, 5)), rng.normal(0.3, 1, (500, 5))
    spectrum = Spectrum(real, gamma=0.1, n_frequencies=4096)
    for rows in (near, far):
        assert spectrum.distance(rows) == pytest.approx(rkhs_distance(real, rows, gamma=0.1), rel=0.03)
    assert spectrum.distance(far) > 1.5 * spectrum.distance(near)
