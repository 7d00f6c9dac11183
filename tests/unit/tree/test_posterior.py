"""Posterior means of leaves that barely stand out: against sums over a fine grid, and in the two limits."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import spinney as sp
from spinney.tree.release import density as reconstruction
from spinney.tree.release import density as source
from spinney.tree.release.density import (
    Stopping,
    exponential_slopes,
    exponential_variances,
    leaf_posterior,
    spread_with_doubt,
)
from support.handmade_leaves import moments_by_hand, prefixes

MEASURED = np.ones((1, 1), dtype=np.bool_)
# Decisions at depths 2 to 8, on scores that fall by 6 a level and with noise of scale 2.
PLAN = {
    "rule": "privtree",
    "fixed_depth": 2,
    "max_depth": 9,
    "cutoff": 0,
    "decay": 6,
    "decision_noise_scale": 2.0,
}


def stopped(rows: np.ndarray, depth: int) -> np.ndarray:
    """The chance that a node of so many rows is a leaf, by the rule as the plan states it."""
    score = np.maximum(rows - (depth - PLAN["fixed_depth"]) * PLAN["decay"], PLAN["cutoff"] - PLAN["decay"])
    x = (PLAN["cutoff"] - score) / PLAN["decision_noise_scale"]
    return np.where(x > 0, 1 - np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x)) / 2)


def twin(
    count: float, total_offset: float, *, shift: float = 0.0, depth: int | None = None
) -> tuple[float, float, float]:
    """E[w], E[w m] / E[w] and its variance given rows, by a sum over all (w, m); noise exp(-max |z|), scale 1."""
    w = np.linspace(1, 60, 2400)[:, None]
    m = np.linspace(-1, 1, 401)[None, :]
    density = np.exp(-np.maximum(np.abs(count + shift - w), np.abs(total_offset - w * m))) / w
    if depth is not None:
        density *= stopped(w, depth)
    density /= density.sum()
    rows = float((density * w).sum())
    mean = float((density * w * m).sum()) / rows
    return rows, mean, float((density * w * m**2).sum()) / rows - mean**2


def integrals(count: float, offset: float, stopping: Stopping) -> tuple[float, float, float]:
    """What `twin` adds up, by the two sums of the library."""
    _, _, rows, means, squares = source._integrals(
        np.array([count]), np.array([[offset]]), MEASURED, stopping.edges, stopping.reach, stopping.rates
    )
    return rows.item(), means.item(), (squares - means**2).item()


@pytest.mark.parametrize(("count", "offset"), list(itertools.product([2.0, 9.0, 25.0], [0.0, 4.0, -8.0])))
def test_the_two_sums_are_the_integral_over_counts_and_means(count: float, offset: float) -> None:
    """Given rows, all three numbers are those of a fine sum over counts and means, and not those of a shifted count."""
    found = integrals(count, offset, Stopping(np.zeros(1), 0.0, np.zeros(1)))
    assert found == pytest.approx(twin(count, offset), rel=0.05, abs=0.02)
    assert found != pytest.approx(twin(count, offset, shift=3.0), rel=0.05, abs=0.02)


@pytest.mark.parametrize(("count", "depth"), [(9.0, 2), (25.0, 2), (9.0, 4), (25.0, 4)])
def test_a_leaf_that_was_not_split_has_fewer_rows_than_its_count_says(count: float, depth: int) -> None:
    """The sums are those of a fine sum in which every count is weighted by its chance to have stopped there."""
    found = integrals(count, 4.0, Stopping.by_plan(PLAN, np.array([depth])))
    assert found == pytest.approx(twin(count, 4.0, depth=depth), rel=0.05, abs=0.02)
    assert found[0] < 0.98 * twin(count, 4.0)[0]


@pytest.mark.parametrize("plan", [PLAN, {"rule": "privtree", "fixed_depth": 9, "max_depth": 9}, {"rule": "grid"}])
def test_leaves_at_the_greatest_depth_were_not_decided_on(plan: dict) -> None:
    """Where splitting ends anyhow, and without decisions, that a node is a leaf says nothing."""
    counts, sums, is_measured = np.array([3.0, 12.0]), np.array([[1.0], [-5.0]]), np.ones((2, 1), dtype=np.bool_)
    plain = leaf_posterior(counts, sums, is_measured, 1.0, 20.0)
    found = leaf_posterior(counts, sums, is_measured, 1.0, 20.0, Stopping.by_plan(plan, np.array([9, 9])))
    assert found.rows.tolist() == plain.rows.tolist()
    assert found.means.tolist() == plain.means.tolist()


def test_units_of_rows_do_not_matter() -> None:
    """Everything ten times as large, noise and decisions too: ten times the rows, and the same means."""
    large = PLAN | {"decay": 60, "decision_noise_scale": 20.0}
    counts, sums, is_measured = np.array([3.0, 12.0]), np.array([[1.0], [-5.0]]), np.ones((2, 1), dtype=np.bool_)
    depths = np.array([2, 4])
    one = leaf_posterior(counts, sums, is_measured, 1.0, 20.0, Stopping.by_plan(PLAN, depths))
    ten = leaf_posterior(10 * counts, 10 * sums, is_measured, 10.0, 200.0, Stopping.by_plan(large, depths))
    assert ten.rows == pytest.approx(10 * one.rows)
    assert ten.means == pytest.approx(one.means)


@pytest.mark.parametrize(
    "changed",
    [{"decay": None}, {"decay": 0}, {"decay": "6"}, {"cutoff": True}, {"decision_noise_scale": float("nan")}],
    ids=repr,
)
def test_a_plan_that_cannot_be_is_refused(changed: dict) -> None:
    """Numbers that are missing, of another kind or out of range are no plan."""
    with pytest.raises(ValueError, match="plan of the decisions"):
        Stopping.by_plan(PLAN | changed, np.array([3]))


def test_leaves_far_above_the_noise_keep_their_numbers() -> None:
    """A count of a thousand noise scales: rows, mean and its variance are as if noise were not there."""
    counts, sums = np.full(50, 1000.0), np.tile([300.0, -900.0], (50, 1))
    found = leaf_posterior(counts, sums, np.ones((50, 2), dtype=np.bool_), 1.0, 50_000.0)
    assert found.rows == pytest.approx(counts, rel=0.01)
    assert found.means == pytest.approx(sums / 1000, abs=0.01)
    assert (found.variances < 1e-4).all()


def test_noise_alone_holds_few_rows_and_says_nothing_of_means() -> None:
    """Ninety-nine empty leaves and a full one: the empty ones keep a small part, with means near the centre."""
    rng = np.random.default_rng(8)
    noise = rng.gamma(4, size=(100, 1)) * rng.uniform(-1, 1, (100, 3))
    noise[0] += [400.0, 200.0, 0.0]
    found = leaf_posterior(noise[:, 0], noise[:, 1:], np.ones((100, 2), dtype=np.bool_), 1.0, 400.0)
    assert found.rows[0] == pytest.approx(400, rel=0.05)
    assert found.rows[1:].sum() < 0.2 * np.abs(noise[1:, 0]).sum()
    assert np.median(np.abs(found.means[1:])) < 0.5
    assert np.median(found.variances[1:]) > 0.1


def test_axes_without_order_need_no_sums() -> None:
    """What stands in the column of an axis that was not measured changes nothing."""
    is_measured = np.array([[True, False]])
    plain, other = (
        leaf_posterior(np.array([7.0]), np.array([[3.0, extra]]), is_measured, 1.0, 10.0) for extra in (0.0, 99.0)
    )
    assert plain.rows == other.rows
    assert plain.means[0].tolist() == [other.means[0, 0], 0.0]


@pytest.mark.parametrize("numbers", [(-(2.0**61), 0.0), (0.0, 2.0**61), (2.0**61, -(2.0**61)), (-50.0, 80.0)])
def test_noise_of_any_size_gives_finite_numbers(numbers: tuple[float, float]) -> None:
    """Rare noise is no reason for a NaN."""
    count, offset = numbers
    found = leaf_posterior(np.array([count, 5.0]), np.array([[offset], [1.0]]), np.ones((2, 1), dtype=np.bool_), 1.0, 9)
    for part in (found.rows, found.means, found.variances):
        assert np.isfinite(part).all()
    assert (np.abs(found.means) <= 1).all()


def test_doubt_widens_the_spread_up_to_the_leaf() -> None:
    """Variances add up: rows' own, and that of the mean; without doubt the part stays, and no part is above 1."""
    slopes = exponential_slopes(np.array([0.0, 0.5, -0.8]))
    variances = exponential_variances(slopes)
    assert spread_with_doubt(0.4, slopes, np.zeros(3)) == pytest.approx(np.full(3, 0.4))
    wider = spread_with_doubt(0.4, slopes, 0.2 * variances)
    assert wider**2 * variances == pytest.approx(0.16 * variances + 0.2 * variances)
    assert spread_with_doubt(0.4, slopes, variances).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("rows", "n_axes", "is_faint"), [(2, 4, True), (4000, 4, False), (2, 3, False)], ids=["faint", "clear", "a map"]
)
def test_only_faint_leaves_get_a_posterior(
    rows: int, n_axes: int, is_faint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows a leaf against the noise in four columns: posterior; many, or fewer columns: not. Totals are kept."""
    calls = []
    monkeypatch.setattr(
        reconstruction, "leaf_posterior", lambda *numbers: calls.append(numbers) or leaf_posterior(*numbers)
    )
    schema = sp.Schema({f"x{axis}": sp.Real(0, 1) for axis in range(n_axes)})
    leaves = dict.fromkeys(prefixes(2), (rows, *[rows / 2] * n_axes))
    density = reconstruction.reconstruct(moments_by_hand(schema, leaves, rate=Fraction(1)), 4 * rows)
    assert bool(calls) == is_faint
    assert density.weights.sum() == pytest.approx(4 * rows)
    assert ((density.spread > 0) & (density.spread <= 1)).all()


def test_on_faint_maps_decisions_move_weights_and_not_means() -> None:
    """Two columns: a leaf that stopped above is worth less than its count, and the means stay those of the fit."""
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    leaves = {"00": (4, 1, 1), "01": (4, -1, 1), "10": (4, 1, -1), "110": (4, 1, 0), "111": (4, 0, 1)}
    moments = moments_by_hand(schema, leaves, rate=Fraction(1))
    plain = reconstruction.reconstruct(moments, 20)
    read = reconstruction.reconstruct(moments, 20, stopping=Stopping.by_plan(PLAN, moments.depths))
    assert read.weights.sum() == pytest.approx(20)
    assert plain.weights == pytest.approx([4.0] * 5)
    assert read.weights[:3].max() < read.weights[3:].min()
    assert (read.spread == 1).all()
    sums = moments.noisy_steps[:, 1:] / moments.quantum
    variance = reconstruction.coordinate_variance(np.full(5, 3), 1.0)
    lean = 2 * reconstruction.shifts(moments, read.weights)
    assert read.means == pytest.approx(reconstruction.leaf_means(read.weights, sums, lean, variance))
