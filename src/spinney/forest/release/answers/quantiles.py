"""Quantiles of a column over the rows asked for: where the share of rows below is what it should be (Woodruff).

The share of rows below the estimate has an error like any share. So many rows more or less, read off the released
distribution of the column, are the ends of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spinney.forest.release.answers.calibrated import calibrated
from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.factors import Factor, Ratio
from spinney.forest.release.answers.laws import Laws
from spinney.forest.release.answers.misfit import Misfit
from spinney.forest.release.answers.parts import Part
from spinney.forest.release.column_model import Floats

# Of a step: shares of leaves are rounded.
_NEAR = 1e-9


def calibrated_quantile(
    laws: Laws,
    misfit: Misfit | None,
    parts: Mapping[int, Part],
    at: float,
    counted: Counted | None,
    *,
    level: float,
    of_population: bool,
) -> tuple[float, float, float]:
    """The estimate of a quantile and the ends of its interval."""
    variable, part = next((variable, part) for variable, part in parts.items() if part.values is not None)
    values = part.values
    assert values is not None
    spacing = values.spacing
    weights = part.share * _rows(laws, parts, variable)
    order = np.argsort(values.mean, kind="stable")
    order = order[part.touches[order]]
    low, high, mass = values.low[order], values.high[order], np.maximum(weights[order], 0.0)
    if not mass.any():
        mass = np.ones_like(mass)
    below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()

    def value(share: float) -> float:
        place = int(np.clip(np.searchsorted(below, share, side="left") - 1, 0, len(low) - 1))
        inside = min(max((share - below[place]) / max(below[place + 1] - below[place], 1e-300), 0.0), 1.0)
        if spacing is None:
            return float(low[place] + inside * (high[place] - low[place]))
        first, last = (round(float(ends[place]) / values.step) for ends in (low, high))
        n_passed = math.ceil(inside * (last - first + 1) - _NEAR)
        return float((first + max(n_passed - 1, 0)) * spacing)

    estimate = value(at)
    plain = {number: Factor(replace(one, values=None)) for number, one in parts.items()}
    # Of a leaf in steps, those up to the estimate are below it, the estimate's own included.
    reach_of_leaves = values.high - values.low + values.step
    is_below = np.clip((estimate - values.low + values.step) / np.maximum(reach_of_leaves, 1e-300), 0.0, 1.0)
    is_below = np.where(values.high <= estimate, 1.0, np.where(values.low > estimate, 0.0, is_below))
    beneath = Part(part.leaves, part.share * is_below, part.touches & (is_below > 0), part.is_whole & (is_below >= 1))
    ratio = Ratio({**plain, variable: Factor(beneath)}, plain)
    reach = calibrated(laws, misfit, ratio, counted, of_population=of_population).half_width(level)
    return estimate, value(max(at - reach, 0.0)), value(min(at + reach, 1.0))


def _rows(laws: Laws, parts: Mapping[int, Part], variable: int) -> Floats:
    """How many rows that meet the conditions on all other variables each leaf of one has, in proportion."""
    leaves = laws.leaves[variable]
    others = tuple(sorted(number for number in parts if number != variable))
    inside = leaves.inside()
    if not others or not laws.is_small((variable, *others)):
        return np.asarray(laws.law((variable,))[leaves.states] * inside)
    law = laws.law(tuple(sorted((variable, *others))))
    for number in sorted((variable, *others), reverse=True):
        if number != variable:
            axis = sorted((variable, *others)).index(number)
            line = Factor(replace(parts[number], values=None)).of(laws.leaves[number])
            law = (
                np.tensordot(law, line, axes=([min(axis, law.ndim - 1)], [0]))
                if axis >= law.ndim
                else np.tensordot(law, line, axes=([axis], [0]))
            )
    return np.asarray(law[leaves.states] * inside)
