"""One contract for all metrics: a name, a direction, a range that holds, and no claim of privacy."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney import metrics
from spinney_paper import kernels

SCHEMA = sp.Schema(
    {"x": sp.Real(-4, 4), "y": sp.Real(-4, 4), "pile": sp.Real(0, 4, multiple_of=0.5), "label": sp.Integer(0, 1)}
)
ROOT = Path(__file__).parents[3]
METRICS = metrics.METRICS | kernels.METRICS


def cloud(seed: int, shift: float = 0.0) -> np.ndarray:
    """Two columns, zeros that become halves, and a label that follows the first, or not, as the cloud moves."""
    rng = np.random.default_rng(seed)
    xy = rng.normal(shift, 1, (400, 2))
    label = (xy[:, 0] - shift + rng.normal(0, 1 + 20 * shift, 400) > 0).astype(float)
    pile = np.where(rng.random(400) < 0.8 / (1 + shift), 0.0, 0.5)
    return np.column_stack([xy, pile, label])


def measure(metric: metrics.Metric, real: np.ndarray, synthetic: np.ndarray) -> float:
    if metric.takes == "points":
        return metric(real[:, :2], synthetic[:, :2], bandwidth=1)
    is_learnt = metric.name == "train_on_synthetic"
    options = {"target": "label", "classifiers": ["Logistic Regression"]} if is_learnt else {}
    return metric(real, synthetic, schema=SCHEMA, **options)


@pytest.fixture(params=METRICS.values(), ids=lambda metric: metric.name)
def metric(request) -> metrics.Metric:
    return request.param


def test_metric_knows_itself(metric):
    """Found under its name, with a direction, a range, a best value inside it, and no privacy."""
    assert METRICS[metric.name] is metric
    assert metric.name in (kernels if metric.takes == "points" else metrics).METRICS
    assert metric.better in ("lower", "higher")
    assert metric.low < metric.high
    assert metric.low <= metric.best <= metric.high
    assert metric.is_private is False
    assert metric.takes in ("points", "tables")
    with pytest.raises((AttributeError, TypeError)):
        metric.is_private = True
    assert metric.is_private is False


def test_values_are_in_range_and_point_the_right_way(metric):
    """A sample of the same law is better than a shifted one, and better again than one far away; all are in range."""
    real = cloud(0)
    near, far, gone = (measure(metric, real, cloud(1, shift)) for shift in (0.0, 1.0, 30.0))
    for value in (near, far, gone):
        assert isinstance(value, float)
        assert metric.low <= value <= metric.high
    assert metric.is_improvement(near, far)
    assert not metric.is_improvement(far, near)
    assert not metric.is_improvement(near, near)


def test_same_table_is_best_or_close(metric):
    """A table against itself reaches the best value, where sampling leaves no doubt."""
    real = cloud(0)
    value = measure(metric, real, real)
    if metric.name == "train_on_synthetic":
        assert value > 0.6
    elif metric.name == "mmd_squared_unbiased":
        assert -0.01 < value <= 0
    else:
        assert value == pytest.approx(metric.best, abs=1e-7)


def test_every_function_says_that_it_is_not_private():
    """Docstrings of the module, its files and its functions, and the how-to page, say it."""
    for room in (metrics, kernels):
        assert "NOT PRIVATE" in room.__doc__
        compared = [getattr(room, name) for name in room.__all__ if inspect.isfunction(getattr(room, name))]
        assert len(compared) > 7
        for function in compared:
            assert "bound_from" in function.__name__ or "ot private" in function.__doc__, function.__name__
            file = f"{function.__module__.rpartition('.')[2]}.py"
            assert "NOT PRIVATE" in (Path(room.__file__).parent / file).read_text()
    assert "not private" in (ROOT / "docs/how-to/compare.md").read_text()


def test_every_public_name_is_documented():
    """Each name of both rooms stands in the library reference, and every metric in the how-to page."""
    reference = (ROOT / "docs/reference/library.md").read_text()
    assert not [name for name in (*metrics.__all__, *kernels.__all__) if f"`{name}`" not in reference]
    page = (ROOT / "docs/how-to/compare.md").read_text()
    assert not [name for name in METRICS if f"`{name}`" not in page]


def test_metrics_stay_out_of_the_front_door():
    """`import spinney` offers no metric: whoever compares with real data asks for the submodule by name."""
    assert not set(metrics.__all__) & set(sp.__all__)
