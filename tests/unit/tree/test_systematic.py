"""Even rows: every leaf gets its share, rows lie in their leaves, and the whole is nearer than independent draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.tree.release.density import LeafDensity, box_shares, exponential_slopes
from spinney.tree.release.draw import EvenRows, kronecker_strides, take_logs
from spinney.tree.release.geometry import Boxes
from support.strategies import MODEST


def density_of(weights, means, *, spread=0.6, null_share=None) -> LeafDensity:
    """Leaves side by side along the first axis, each one long; means is (n_leaves, n_axes)."""
    means = np.asarray(means, dtype=float)
    low = np.zeros_like(means)
    low[:, 0] = np.arange(len(means))
    nulls = np.zeros_like(means) if null_share is None else np.asarray(null_share, dtype=float)
    boxes = Boxes(low, np.ones_like(means), nulls)
    return LeafDensity(
        boxes, np.asarray(weights, dtype=float), means, exponential_slopes(means), np.full_like(means, spread)
    )


def drawn(density: LeafDensity, n_rows: int, seed: int = 0) -> np.ndarray:
    return EvenRows(density).draw(n_rows, np.random.default_rng(seed))


RNG = np.random.default_rng(8)
HILLS = density_of(RNG.gamma(0.5, size=40), RNG.uniform(-0.9, 0.9, (40, 2)))


@MODEST
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=20).filter(any),
    st.integers(1, 300),
    st.integers(0, 2**32),
)
def test_every_leaf_gets_its_share_to_within_one_row(weights, n_rows: int, seed: int) -> None:
    """Also where some leaves weigh nothing: those get no row at all."""
    density = density_of(weights, np.zeros((len(weights), 1)), spread=0.5)
    rows = drawn(density, n_rows, seed)
    seen = np.bincount(np.floor(rows[0]).astype(int), minlength=len(weights))
    expected = n_rows * density.weights / density.weights.sum()
    assert (np.abs(seen - expected) < 1 + 1e-6).all()
    assert (seen[density.weights == 0] == 0).all()


def test_rows_lie_in_the_part_of_the_leaf_that_the_spread_allows() -> None:
    """A row of a leaf lies within its box, and within spread half-edges around the shrunk mean."""
    rows = drawn(HILLS, 20_000)
    leaf = np.floor(rows[0]).astype(int)
    assert (HILLS.weights[leaf] > 0).all()
    offset = np.stack([2 * (rows[0] - leaf) - 1, 2 * rows[1] - 1], axis=1)
    assert (np.abs(offset) <= 1).all()
    assert (np.abs(offset - HILLS.means[leaf] * 0.4) <= 0.6 + 1e-12).all()


def test_rows_of_a_leaf_have_its_mean() -> None:
    """In every well-filled leaf and along both axes, to a hundredth; the whole has the mean of the density."""
    rows = drawn(HILLS, 100_000)
    leaf = np.floor(rows[0]).astype(int)
    for i in np.flatnonzero(HILLS.weights > 0.02 * HILLS.weights.sum()):
        inside = rows[:, leaf == i]
        assert 2 * (inside[0] - i).mean() - 1 == pytest.approx(HILLS.means[i, 0], abs=0.01)
        assert 2 * inside[1].mean() - 1 == pytest.approx(HILLS.means[i, 1], abs=0.01)
    centre = np.average((1 + HILLS.means) / 2 + HILLS.boxes.low, weights=HILLS.weights, axis=0)
    assert rows.mean(axis=1) == pytest.approx(centre, abs=1e-3)


def test_the_density_inside_a_leaf_is_exponential() -> None:
    """Not the mean alone: quantiles along an axis are those of exp(alpha u)."""
    mean = 0.6
    density = density_of([1.0], [[mean]], spread=1.0)
    alpha = density.slopes[0, 0]
    u = np.sort(2 * drawn(density, 10_000)[0] - 1)
    below = np.expm1(alpha * (u + 1)) / np.expm1(2 * alpha)
    assert np.abs(below - (np.arange(10_000) + 0.5) / 10_000).max() < 1e-3


def test_a_seed_repeats_rows() -> None:
    """The same seed gives the same rows in the same order, another seed others; order is not that of leaves."""
    one, again, other = (drawn(HILLS, 500, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(np.sort(one[1]), np.sort(other[1]))
    assert abs(np.corrcoef(np.arange(500), one[0])[0, 1]) < 0.2


def test_rows_are_the_same_on_any_number_of_cores(monkeypatch) -> None:
    """The number of threads changes nothing, to the last bit; several parts give the rows that one gives, reordered."""
    whole = drawn(HILLS, 5000)
    monkeypatch.setattr("spinney.tree.release.draw.PART_ITEMS", 300)
    several = []
    for n_cores in (1, 2, 7):
        monkeypatch.setenv("SPINNEY_THREADS", str(n_cores))
        several.append(drawn(HILLS, 5000))
    assert np.array_equal(several[0], several[1])
    assert np.array_equal(several[0], several[2])
    assert not np.array_equal(several[0], whole)
    by_value = [rows[:, np.lexsort(rows)] for rows in (whole, several[0])]
    assert np.array_equal(*by_value)


def test_rows_are_those_of_the_formulas() -> None:
    """Row i by itself: the leaf at (i + s) / n of the weight, then the inverse of an axis's law at frac(s + i g^-a)."""
    n_rows = 3000
    starts, strides = np.random.default_rng(4).random(3), kronecker_strides(2)
    ends = np.cumsum(HILLS.weights) / HILLS.weights.sum()
    leaf = np.searchsorted(ends, (np.arange(n_rows) + starts[0]) / n_rows, side="right")
    u = (starts[1:] + np.arange(n_rows)[:, None] * strides) % 1
    alpha, mean, spread = HILLS.slopes[leaf], HILLS.means[leaf], HILLS.spread[leaf]
    offset = np.log1p(u * np.expm1(2 * alpha)) / alpha - 1  # -1..1, density exp(alpha u)
    offset = spread * offset + (1 - spread) * mean
    expected = (HILLS.boxes.low[leaf] + (1 + offset) / 2).T
    rows = drawn(HILLS, n_rows, seed=4)
    expected, rows = (some[:, np.lexsort(some)] for some in (expected, rows))
    assert rows == pytest.approx(expected, abs=1e-9)


def test_logarithms() -> None:
    """As numpy's to 15 digits, from the least to the largest normal number and close to 1; NaN stays NaN."""
    rng = np.random.default_rng(2)
    edges = [np.finfo(float).tiny, np.finfo(float).max, 0.5, 0.5**0.5, np.nextafter(0.5**0.5, 0), 2**0.5, 2, 1e-16]
    near_1 = 1 + np.concatenate([rng.uniform(-1e-4, 1e-4, 10_000), [2.0**-52, -(2.0**-53)]])
    numbers = np.concatenate([edges, near_1, np.exp(rng.uniform(-700, 700, 100_000)), rng.random(10_000) + 1e-16])
    logs = numbers.copy()
    take_logs(logs)
    assert (np.abs(logs - np.log(numbers)) <= 4e-15 * np.abs(np.log(numbers))).all()
    special = np.array([1.0, np.nan])
    take_logs(special)
    assert special[0] == 0
    assert np.isnan(special[1])


def test_nulls_have_their_share() -> None:
    """NaN in the share of rows that is null, all where it is 1, none where it is 0; values keep their law."""
    density = density_of([1, 1, 2], np.zeros((3, 2)), null_share=[[0, 0], [0, 0.25], [0, 1]], spread=1.0)
    rows = drawn(density, 8000)
    leaf = np.floor(rows[0]).astype(int)
    assert not np.isnan(rows[0]).any()
    shares = [np.isnan(rows[1, leaf == i]).mean() for i in range(3)]
    assert shares == pytest.approx([0, 0.25, 1], abs=0.01)
    values = rows[1, (leaf == 1) & ~np.isnan(rows[1])]
    assert values.mean() == pytest.approx(0.5, abs=0.01)
    assert np.ptp(values) > 0.99


class LastNumbers(np.random.Generator):
    """Draws the largest number below 1, always."""

    def random(self, size: int) -> np.ndarray:
        return np.full(size, 1 - 2.0**-53)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.1, 0.3, 0.45])
def test_the_last_number_stays_in_its_leaf(share: float) -> None:
    """Also where rows crowd at the low end, nulls stretch the others, and rounding would make it 1."""
    density = density_of([1.0], [[-0.97]], spread=1.0, null_share=[[share]])
    rows = EvenRows(density).draw(1, LastNumbers(np.random.PCG64(0)))
    assert 0 < rows[0, 0] <= 1


@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_rows(n_rows: int) -> None:
    """None and one are numbers of rows too."""
    rows = drawn(HILLS, n_rows)
    assert rows.shape == (2, n_rows)
    assert np.isfinite(rows).all()


def test_the_only_row_may_come_from_any_leaf() -> None:
    """A single row follows the weights over seeds: systematic does not mean the first."""
    density = density_of([1, 3], np.zeros((2, 1)))
    leaves = np.array([drawn(density, 1, seed)[0, 0] // 1 for seed in range(400)])
    assert leaves.mean() == pytest.approx(0.75, abs=0.1)


def test_even_rows_are_nearer_than_independent_ones() -> None:
    """Over random boxes the error of 2,000 even rows is less than a half of that of as many independent ones."""
    n_rows, rng = 2000, np.random.default_rng(6)
    low = rng.uniform([0, 0], [30, 0.5], (200, 2))
    high = low + rng.uniform([1, 0.1], [15, 0.5], (200, 2))
    share = box_shares(HILLS, low, high) / HILLS.weights.sum()

    def error(rows: np.ndarray) -> float:
        inside = (rows.T[:, None] >= low) & (rows.T[:, None] < high)
        return float(np.sqrt(np.mean((inside.all(axis=2).mean(axis=0) - share) ** 2)))

    # Independent rows: many even ones, a few of them chosen blindly.
    many = drawn(HILLS, 200_000)
    independent = np.mean([error(many[:, rng.integers(0, 200_000, n_rows)]) for _ in range(5)])
    assert independent == pytest.approx(np.sqrt(np.mean(share * (1 - share)) / n_rows), rel=0.4)
    assert error(drawn(HILLS, n_rows)) < independent / 2


@pytest.mark.parametrize("n_axes", [1, 2, 5])
def test_strides_are_powers_of_one_root(n_axes: int) -> None:
    """g^-1, g^-2, ... with g^(d+1) = g + 1; the golden ratio for one axis."""
    strides = kronecker_strides(n_axes)
    g = 1 / strides[0]
    assert g ** (n_axes + 1) == pytest.approx(g + 1)
    assert strides == pytest.approx([g**-k for k in range(1, n_axes + 1)])
    if n_axes == 1:
        assert g == pytest.approx((1 + 5**0.5) / 2)
