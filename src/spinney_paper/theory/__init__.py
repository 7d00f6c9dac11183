"""The paper's results as functions: one each, named after what it says, preconditions checked.

Where the printed statement slips, the function computes the corrected one and its docstring says what changed
(docs/errata.md lists all slips). Every argument is public knowledge or an assumption about the data: nothing here sees
a table. Names load on first use.

    noise     how large Laplace noise gets
    bounds    distance of kernel densities after binning: worst case, and with a threshold
    gaussian  the same for a Gaussian sample
    trees     levels, empty bins and cutoff of the data-dependent tree
    uniforms  boxes that imitate a standard Gaussian
    suggest   the width and the threshold that the bounds ask for
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney_paper.theory.bounds import (
        n_grid_bins,
        perturbation_bound,
        rounding_bound,
        threshold_bound,
        worst_case_bound,
    )
    from spinney_paper.theory.gaussian import (
        chernoff_tail,
        gaussian_bound,
        gaussian_heavy_bins,
        gaussian_light_rows,
        norm_radius,
        norm_tail,
    )
    from spinney_paper.theory.noise import (
        discrete_laplace_mean_size,
        discrete_laplace_tail,
        laplace_mean_size,
        laplace_tail,
        largest_noise,
    )
    from spinney_paper.theory.suggest import suggest_threshold, suggest_width
    from spinney_paper.theory.trees import (
        cutoff_sparing_empty_bins,
        data_dependent_levels,
        most_empty_bins,
        tree_threshold,
    )
    from spinney_paper.theory.uniforms import best_box_half_width, best_box_weights, boxes_kl, boxes_mmd, centres_mmd

_HOME = {
    "best_box_half_width": "uniforms",
    "best_box_weights": "uniforms",
    "boxes_kl": "uniforms",
    "boxes_mmd": "uniforms",
    "centres_mmd": "uniforms",
    "chernoff_tail": "gaussian",
    "cutoff_sparing_empty_bins": "trees",
    "data_dependent_levels": "trees",
    "discrete_laplace_mean_size": "noise",
    "discrete_laplace_tail": "noise",
    "gaussian_bound": "gaussian",
    "gaussian_heavy_bins": "gaussian",
    "gaussian_light_rows": "gaussian",
    "laplace_mean_size": "noise",
    "laplace_tail": "noise",
    "largest_noise": "noise",
    "most_empty_bins": "trees",
    "n_grid_bins": "bounds",
    "norm_radius": "gaussian",
    "norm_tail": "gaussian",
    "perturbation_bound": "bounds",
    "rounding_bound": "bounds",
    "suggest_threshold": "suggest",
    "suggest_width": "suggest",
    "threshold_bound": "bounds",
    "tree_threshold": "trees",
    "worst_case_bound": "bounds",
}

__all__ = [
    "best_box_half_width",
    "best_box_weights",
    "boxes_kl",
    "boxes_mmd",
    "centres_mmd",
    "chernoff_tail",
    "cutoff_sparing_empty_bins",
    "data_dependent_levels",
    "discrete_laplace_mean_size",
    "discrete_laplace_tail",
    "gaussian_bound",
    "gaussian_heavy_bins",
    "gaussian_light_rows",
    "laplace_mean_size",
    "laplace_tail",
    "largest_noise",
    "most_empty_bins",
    "n_grid_bins",
    "norm_radius",
    "norm_tail",
    "perturbation_bound",
    "rounding_bound",
    "suggest_threshold",
    "suggest_width",
    "threshold_bound",
    "tree_threshold",
    "worst_case_bound",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spinney_paper.theory' has no attribute {name!r}")
    value = getattr(import_module(f"spinney_paper.theory.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
