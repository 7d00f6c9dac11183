"""All experiments in the order of the paper. Each loads on first use."""

from __future__ import annotations

from importlib import import_module

from spinney.errors import ParameterError
from spinney_paper.experiments.framework import Experiment

# Id and module; a module lists its experiments in EXPERIMENTS.
_HOME = {
    "fig-partition": "partition",
    "fig-grid-vs-balog": "rivals",
    "fig-tree-vs-balog": "rivals",
    "fig-high-dim": "high_dim",
    "fig-scaling": "scaling",
    "fig-roc-degradation": "fraud",
    "fig-uniform-mixture": "uniform_mixture",
    "fig-size": "size",
    "fig-variance": "variance",
    "tab-fraud-tree": "fraud",
    "tab-fraud-dpmerf": "fraud",
}

IDS = tuple(_HOME)


def experiment(experiment_id: str) -> Experiment:
    """The experiment of this id."""
    if experiment_id not in _HOME:
        raise ParameterError(f"{experiment_id!r} is not an experiment; choose one of {', '.join(IDS)}, or all")
    module = import_module(f"spinney_paper.experiments.{_HOME[experiment_id]}")
    found: Experiment = next(one for one in module.EXPERIMENTS if one.id == experiment_id)
    return found
