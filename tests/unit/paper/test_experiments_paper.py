"""What the paper's figures rest on: data, distances, stages of a partition, bounds; each against an independent way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spinney.errors import ParameterError
from spinney.grid.lattice import tree_lattice
from spinney_paper.experiments import mixtures, partition, rivals_wording, scaling, sweep, trials
from spinney_paper.experiments.catalogue import experiment
from spinney_paper.experiments.framework import Inputs, run_experiment, seed_of
from spinney_paper.experiments.results import Results
from spinney_paper.experiments.wording import markdown_table, number, with_range, with_spread
from spinney_paper.kernels import kernel_metric, rkhs_distance
from spinney_paper.theory import best_box_half_width

RESULTS = Path(__file__).parents[3] / "docs/paper/results"
OURS = ["fig-partition", "fig-high-dim", "fig-scaling", "fig-uniform-mixture", "fig-size", "fig-variance"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict[str, Results]:
    """Quick results of all experiments of this file."""
    folder = tmp_path_factory.mktemp("quick")
    return {one: run_experiment(experiment(one), folder, inputs=Inputs(), is_quick=True) for one in OURS}


def test_the_mixture_is_the_published_one():
    """The mean of the full kernel matrix agrees with the published one to all digits."""
    points = mixtures.balog(2)
    assert points.shape == (100_000, 2)
    mean = kernel_metric(points, points, gamma=mixtures.balog_gamma(2))
    assert mean == pytest.approx(0.21215986369427045, abs=1e-9)


def test_mixtures_of_any_size_share_their_means():
    """Fewer rows and tighter clusters come from the same ten means."""
    wide, tight = mixtures.balog(5, n_rows=2000), mixtures.balog(5, n_rows=2000, spread=0.3)
    assert wide.shape == tight.shape == (2000, 5)
    np.testing.assert_allclose((wide - tight).std(axis=0), 29.7, rtol=0.1)
    assert len(np.unique(tight.round(-1), axis=0)) < 60


@pytest.mark.parametrize("n_points", [3, 1000, 2500])
def test_distances_by_products_of_matrices(n_points):
    """Beyond twenty dimensions the sums are the same as term by term, blocks full or not."""
    points = mixtures.balog(25, n_rows=2100)
    rng = np.random.default_rng(0)
    others, weights = points[rng.integers(0, 2100, n_points)] + rng.normal(0, 20, (n_points, 25)), rng.random(n_points)
    gamma = mixtures.balog_gamma(25)
    kappa = trials.own_kappa(points, gamma=gamma)
    assert kappa == pytest.approx(kernel_metric(points, points, gamma=gamma), rel=1e-12)
    ours = trials.distance(points, others, weights / weights.sum(), gamma=gamma, kappa=kappa)
    plain = rkhs_distance(points, others, synthetic_weights=weights / weights.sum(), gamma=gamma)
    assert ours == pytest.approx(plain, rel=1e-9)


def test_an_empty_release_is_as_far_as_the_empty_set():
    """No bins: the norm of the real density itself."""
    points, gamma = mixtures.balog(2, n_rows=100), mixtures.balog_gamma(2)
    kappa = trials.own_kappa(points, gamma=gamma)
    model = trials.tree("paper", "0.001", threshold=10**9)
    found = trials.trial(model, points, mixtures.box_schema(2), method="paper", gamma=gamma, kappa=kappa, seed=1)
    assert found["n_bins"] == 0
    assert found["mmd"] == pytest.approx(kappa**0.5, rel=1e-6)


@pytest.mark.parametrize("one", OURS)
def test_records_can_be_drawn_again(quick, one, tmp_path):
    """A picture, a table and a verdict follow from the file alone; the same tasks give the same numbers."""
    described, results = experiment(one), quick[one]
    assert described.draw(results).axes
    assert described.table(results).count("\n") >= 3
    verdict = described.verdict(results)
    assert any(letter.isdigit() for letter in verdict)
    assert "nan" not in described.table(results) + verdict
    task = described.tasks(results.params)[-1]
    again = described.run(results.params, task | {"seed": results.records[-1]["seed"]}, Inputs())
    assert again.items() <= results.records[-1].items()


@pytest.mark.parametrize("one", OURS)
def test_quick_and_full_have_the_same_parameters(one):
    """A quick run is a small full one."""
    described = experiment(one)
    assert set(described.full) == set(described.quick)
    assert len(described.tasks(described.full)) >= len(described.tasks(described.quick))


# ---------------------------------------------------------------------------------------------------- partition


@pytest.mark.parametrize("method", ["paper", "spinney"])
def test_the_leaves_fill_the_square(quick, method):
    """Leaves with and without rows cover every place once, and hold every row."""
    record, params = quick["fig-partition"].where(method=method)[0], quick["fig-partition"].params
    leaves = np.array(record["true_leaves"] + record["empty_leaves"])
    left, bottom, right, top, counts = leaves.T
    assert ((right - left) * (top - bottom)).sum() == pytest.approx(1, abs=1e-12)
    places = np.random.default_rng(3).random((500, 2))
    x, y = places[:, :1], places[:, 1:]
    assert (((left <= x) & (x < right) & (bottom <= y) & (y < top)).sum(axis=1) == 1).all()
    assert counts.sum() == params["n_rows"]
    rows = partition.made_up_rows(params["n_rows"])
    x, y = rows[:, :1], rows[:, 1:]
    assert (((left <= x) & (x < right) & (bottom <= y) & (y < top)).sum(axis=0) == counts).all()


@pytest.mark.parametrize("method", ["paper", "spinney"])
def test_final_bins_are_leaves_of_the_same_tree(quick, method):
    """What is released was a leaf with rows, or lies in empty space; and it passed the threshold."""
    record = quick["fig-partition"].where(method=method)[0]
    occupied = {tuple(leaf[:4]) for leaf in record["true_leaves"]}
    empty = [tuple(leaf[:4]) for leaf in record["empty_leaves"]]
    n_leaves = 0
    for *box, noisy_count in record["final_bins"]:
        assert noisy_count >= record["threshold"]
        n_leaves += tuple(box) in occupied
        assert tuple(box) in occupied or any(partition._is_in(tuple(box), gap) for gap in empty)
    assert n_leaves > 5


def test_fixed_levels_halve_in_turns():
    """Depth 3 has eight boxes, twice as many across as up."""
    boxes = partition.fixed_boxes(3)
    assert len(boxes) == 8
    assert {(right - left, top - bottom) for left, bottom, right, top in boxes} == {(0.25, 0.5)}


# ------------------------------------------------------------------------------------------ sweeps and scaling


def test_best_is_no_worse_than_automatic(quick):
    """The best setting is chosen among the automatic one too."""
    results = quick["fig-size"]
    for one in results.params["cases"]:
        for epsilon in results.params["epsilons"]:
            best = sweep.mean_distance(results, one, "best", epsilon)
            assert best <= sweep.mean_distance(results, one, "paper", epsilon)
            grid = [r["mmd"] for r in results.where(method="best", epsilon=epsilon, **one)]
            assert best >= min(*grid, sweep.mean_distance(results, one, "paper", epsilon))


@pytest.mark.parametrize("one", ["fig-high-dim", "fig-size", "fig-variance"])
def test_every_setting_fits_its_lattice(one):
    """No task of a full run asks for more levels than the columns have."""
    described = experiment(one)
    for params in (described.full, described.quick):
        depths = {n_axes: tree_lattice(mixtures.box_schema(n_axes)).depth for n_axes in (5, 10, 20, 30, 50, 100)}
        asked = [(task["max_depth"], task["n_axes"]) for task in described.tasks(params) if "max_depth" in task]
        assert asked
        assert all(depth <= depths[n_axes] for depth, n_axes in asked)


def test_bounds_hold_where_they_apply(quick):
    """No release is further away than the theorem allows."""
    results, n_bounds = quick["fig-scaling"], 0
    for bound in results.where(method="bound"):
        if bound["mmd"] is not None:
            about = {name: bound[name] for name in ("n_axes", "epsilon", "bin_width")}
            assert results.range("mmd", method="paper", **about)[1] <= bound["mmd"]
            n_bounds += 1
    assert n_bounds


def test_the_divergence_is_smallest_at_the_width_in_closed_form(quick):
    """Of the widths tried, the best one is next to the closed form's."""
    results = quick["fig-uniform-mixture"]
    widths = results.params["half_widths"]
    best = min(widths, key=lambda c: results.mean("kl", half_width=c))
    exact = best_box_half_width(results.params["n_side"])
    assert abs(best - exact) <= min(abs(width - exact) for width in widths) + 0.1
    assert results.mean("kl", half_width=best) > 0


def test_the_exponent_is_that_of_the_fall_alone(quick):
    """A made-up curve, flat, then falling as 1/epsilon, then flat, has exponent -1 and its last value as floor."""
    epsilons = ["0.01", "0.1", "0.2", "0.5", "1", "2", "5", "10"]
    curve = dict(zip(epsilons, [1, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01, 0.01], strict=True))
    records = [{"method": "nothing", "n_axes": 1, "mmd": 1.0}]
    records += [{"method": "paper", "n_axes": 1, "epsilon": epsilon, "mmd": mmd} for epsilon, mmd in curve.items()]
    results = Results("fig-scaling", True, {"epsilons": epsilons}, records, {})
    assert scaling._rate(results, method="paper", n_axes=1) == pytest.approx(-1)
    assert scaling._floor(results, method="paper", n_axes=1) == 0.01
    steep = Results("fig-scaling", True, {"epsilons": epsilons[:4]}, records, {})
    assert np.isnan(scaling._floor(steep, method="paper", n_axes=1))


# ------------------------------------------------------------------------------------------- committed results


@pytest.mark.parametrize(
    ("one", "about"),
    [
        ("fig-partition", {}),
        ("fig-size", {"n_rows": 1000, "epsilon": "1", "repetition": 0}),
        ("fig-scaling", {"n_axes": 1, "epsilon": "0.1", "bin_width": 0.25, "method": "bound"}),
    ],
)
def test_committed_results_come_out_again(one, about):
    """Today's code gives the numbers that the page shows: a few tasks that take moments, of the full run."""
    described, results = experiment(one), Results.read(RESULTS / f"{one}.json")
    assert results.params == json.loads(json.dumps(described.full))
    chosen, inputs = results.where(**about), Inputs()
    tasks = {seed_of(one, task): task for task in described.tasks(results.params)}
    assert list(tasks) == [record["seed"] for record in results.records]
    assert chosen
    for record in chosen:
        made = described.run(results.params, tasks[record["seed"]] | {"seed": record["seed"]}, inputs)
        for name, value in made.items():
            close = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
            assert record[name] == close


@pytest.mark.parametrize("one", ["fig-grid-vs-balog", "fig-tree-vs-balog"])
def test_the_best_setting_is_no_worse_than_the_automatic_one(one):
    """What a user gets without choosing is one of the settings."""
    results = Results.read(RESULTS / f"{one}.json")
    for epsilon in results.params["epsilons"]:
        for method in ("grid", "paper"):
            best = rivals_wording._best(results, method, epsilon)[1]
            assert best.mean() <= rivals_wording._best(results, f"{method} automatic", epsilon)[1].mean()


def test_a_verdict_on_rivals_says_no_more_than_was_compared():
    """Better than one rival and worse than the other is not "neither"; rows that are public are said to be."""
    distances = {"balog1": 0.5, "balog1 leak": 0.1, "balog2": 0.3}
    records = [{"method": name, "epsilon": "1", "mmd_1": mmd, "mmd_2": mmd} for name, mmd in distances.items()]
    ours = {"grid": 0.45, "grid automatic": 0.4, "paper": 0.2, "paper automatic": 0.4, "spinney": 0.2, "moments": 0.25}
    setting = {"bins": 4, "fixed_depth": 2, "max_depth": 4, "scale": "1", "n_bins": 3, "epsilon": "1"}
    records += [setting | {"method": name, "mmd": mmd} for name, mmd in ours.items()]
    params = {"epsilons": ["1"], "n_rows": 10, "n_axes": 2, "sizes": {name: [1, 2] for name in distances}, "bins": [4]}
    params |= {"fixed_depths": [2], "levels": [2], "scales": ["1"]}
    told = rivals_wording.verdict(Results("fig-grid-vs-balog", True, params, records, {}), [])
    assert "at its best setting beats the better rival at no ε: 1 (0.400 against 0.300)." in told
    assert "PrivTree with bins beats both rivals at their best size at ε = 1 (0.200 against 0.300)." in told
    assert "Spinney's default beats both rivals at their best size at ε = 1 (0.250 against 0.300)." in told
    assert "nearer than all of ours at ε = 1 (0.100 against 0.200)" in told


# ---------------------------------------------------------------------------------------------------- wording


def test_unknown_experiments_are_named():
    """A misspelt id lists the ids."""
    with pytest.raises(ParameterError, match=r"'fig-siez' is not an experiment; .*fig-size, fig-variance"):
        experiment("fig-siez")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456, "0.123"), (0.0123456, "0.0123"), (12.345, "12.3"), (1234.5, "1,234"), (0, "0"), (1e-9, "1.0e-09")],
)
def test_numbers_have_three_digits(value, text):
    """Numbers read the same on every page."""
    assert number(value) == text


def test_tables_and_ranges():
    """Missing numbers are a dash."""
    assert markdown_table(["", "a"], [["x", "1"]]) == "|  | a |\n| --- | ---: |\n| x | 1 |"
    assert with_range(0.5, (0.25, 1.0)) == "0.500 (0.250–1.00)"
    assert with_spread(np.array([0.1, 0.3])) == "0.200 ± 0.14"
    assert with_spread(np.array([0.417] * 5)) == with_spread(np.array([0.417])) == "0.417"
    assert with_range(float("nan"), (0, 0)) == number(float("inf")) == "–"
