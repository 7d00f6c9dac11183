"""Quantiles of a column over the rows asked for: where the share of rows below is what it should be (Woodruff).

The share of rows up to a value has an error like any share. The ends of the interval are the least and the largest
value of which the release cannot tell that too few, or too many, rows lie up to it: by what the model does not know of
that share, by where rows of the value's own leaf lie, and by rows that leaves may hold which are taken for empty. An
estimate in steps may be off by a step whatever shares say, so the next values that have rows belong to the interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from spinney.forest.release.answers.calibrated import calibrated
from spinney.forest.release.answers.counted import Counted
from spinney.forest.release.answers.factors import Factor, Ratio
from spinney.forest.release.answers.influence import PLACEMENT, scatter_inside
from spinney.forest.release.answers.laws import Laws
from spinney.forest.release.answers.misfit import Misfit
from spinney.forest.release.answers.parts import Flags, Part
from spinney.forest.release.answers.tails import hidden, is_coarse, noise_quantile
from spinney.forest.release.column_model import Floats
from spinney.forest.release.measured import MeasuredColumn

# Of a step: shares of leaves are rounded.
_NEAR = 1e-9
# Places inside a leaf at which an end of an interval is looked for.
_PLACES = 64


def calibrated_quantile(
    laws: Laws,
    misfit: Misfit | None,
    parts: Mapping[int, Part],
    at: float,
    counted: Counted | None,
    column: MeasuredColumn | None,
    *,
    level: float,
    of_population: bool,
) -> tuple[float, float, float]:
    """The estimate of a quantile and the ends of its interval."""
    variable, part = next((variable, part) for variable, part in parts.items() if part.values is not None)
    values = part.values
    assert values is not None
    weights = np.maximum(part.share * rows_by_leaf(laws, parts, variable), 0.0)
    order = np.argsort(values.mean, kind="stable")
    order = order[part.touches[order]]
    low, high, mass = values.low[order], values.high[order], weights[order]
    if not mass.any():
        mass = np.ones_like(mass)
    n_rows, mass = laws.total * float(mass.sum()), mass / mass.sum()
    below = np.concatenate([[0.0], np.cumsum(mass)])
    n_steps = np.ones(len(low)) if values.spacing is None else np.rint((high - low) / values.step) + 1

    def value(leaf: int, inside: float) -> float:
        """The value that a share of a leaf's rows lies at or below."""
        if values.spacing is None:
            return float(low[leaf] + inside * (high[leaf] - low[leaf]))
        n_passed = math.ceil(inside * n_steps[leaf] - _NEAR)
        return float((round(float(low[leaf]) / values.step) + max(n_passed - 1, 0)) * values.spacing)

    leaf = int(np.clip(np.searchsorted(below, at, side="left") - 1, 0, len(low) - 1))
    estimate = value(leaf, min(max((at - below[leaf]) / max(mass[leaf], 1e-300), 0.0), 1.0))

    # The error of the share of rows below the end of a leaf that is nearest to the quantile; leaves are whole there.
    beneath = np.zeros(len(part.share), dtype=np.bool_)
    beneath[order[: leaf + (below[leaf + 1] - at < at - below[leaf])]] = True
    plain = {number: Factor(replace(one, values=None)) for number, one in parts.items()}
    cut = Part(part.leaves, part.share * beneath, part.touches & beneath, part.is_whole & beneath)
    found = calibrated(
        laws,
        misfit,
        Ratio({**plain, variable: Factor(cut)}, plain),
        counted,
        of_population=of_population,
    )
    # A share next to 0 or 1 has the error of one as far inside as the quantile is.
    reach = found.half_width(level)
    z = noise_quantile(column.noise, level) if column is not None else 2.0
    inside = z * mass * np.sqrt(scatter_inside(laws, variable, part)[order])
    # Among some rows, leaves of a state have shares that the state alone is known by.
    inside_states = z * _spread_in_states(mass, part.leaves.states[order]) if len(parts) > 1 else np.zeros(len(below))

    ends = []
    for side in (False, True):
        lost = _lost_beyond(part, column, order, is_above=side)
        own = np.hypot(reach, inside_states[:-1] if side else inside_states[1:])
        room = np.maximum(own, lost[0] / max(n_rows, 1.0) + np.hypot(own, z * lost[1] / max(n_rows, 1.0)))
        is_fine = (below[:-1] - room <= at) if side else (below[1:] + room >= at)
        chosen = np.flatnonzero(is_fine)
        end = (int(chosen[-1]) if side else int(chosen[0])) if len(chosen) else (len(low) - 1 if side else 0)
        if mass[end] == 0 or (is_coarse(low, high)[end] and end != leaf):
            ends.append(float(high[end] if side else low[end]))
            continue
        # Inside the leaf, the share of its rows that lie up to a value may be off.
        n = int(min(n_steps[end], _PLACES)) if values.spacing is not None else _PLACES
        p = np.arange(1, n + 1) / n
        until = p - (1 / n if values.spacing is not None and side else 0.0)  # rows below the value itself
        spread = np.hypot(room[end], inside[end] * np.sqrt(until * (1 - until)))
        share = below[end] + until * mass[end]
        fine = np.flatnonzero(share - spread <= at) if side else np.flatnonzero(share + spread >= at)
        place = (p[fine[-1]] if side else p[fine[0]]) if len(fine) else float(side)
        ends.append(value(end, float(place)))
    if values.spacing is not None or min(ends) == max(ends):
        ends += _next_values(estimate, low, high, mass > 0, values.step)
    if values.spacing is not None:
        ends = [float(round(end / values.step) * values.spacing) for end in ends]
    return estimate, min(estimate, *ends), max(estimate, *ends)


def _spread_in_states(mass: Floats, states: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Floats:
    """The standard deviation of the share of rows up to each end of a leaf that comes from ends inside states."""
    found = np.zeros(len(mass) + 1)
    runs = np.append(np.flatnonzero(np.append(True, states[1:] != states[:-1])), len(mass))
    for start, stop in pairwise(runs.tolist()):
        up_to = np.cumsum(mass[start:stop])
        found[start + 1 : stop] = np.sqrt(PLACEMENT * up_to * (up_to[-1] - up_to))[:-1]
    return found


def _lost_beyond(
    part: Part, column: MeasuredColumn | None, order: np.ndarray[tuple[int], np.dtype[np.int64]], *, is_above: bool
) -> tuple[Floats, Floats]:
    """Rows in leaves taken for empty that lie from each leaf on, or up to it: sums of raw counts, and their noise."""
    total, std = np.zeros(len(order)), np.zeros(len(order))
    if column is not None:
        for place in range(len(order)):
            touches = np.zeros(len(part.share), dtype=np.bool_)
            touches[order[place:] if is_above else order[: place + 1]] = True
            total[place], std[place] = hidden(replace(part, touches=touches), column)
    return total, std


def _next_values(estimate: float, low: Floats, high: Floats, holds: Flags, step: float) -> list[float]:
    """The nearest values to both sides of an estimate that have rows; the nearest possible ones where none have."""
    found = []
    for side, ends, beyond in ((-1.0, high, low < estimate), (1.0, low, high > estimate)):
        if beyond.any():
            near = ends[beyond & holds] if (beyond & holds).any() else ends[beyond]
            found.append(estimate + side * max(step, float((side * (near - estimate)).min())))
    return found


def rows_by_leaf(laws: Laws, parts: Mapping[int, Part], variable: int) -> Floats:
    """The share of all rows that meets the conditions on all other variables and lies in each leaf of one."""
    leaves = laws.leaves[variable]
    inside = leaves.inside()
    others = tuple(sorted(number for number in parts if number != variable))
    if not others or not laws.is_small((variable, *others)):
        return np.asarray(laws.law((variable,))[leaves.states] * inside)
    every = tuple(sorted((variable, *others)))
    law = laws.law(every)
    lines = {number: Factor(replace(parts[number], values=None)).of(laws.leaves[number]) for number in others}
    for number in reversed(every):
        if number != variable:
            law = np.tensordot(law, lines[number], axes=([every.index(number)], [0]))
    return np.asarray((law + laws.tilted_states(variable, lines))[leaves.states] * inside)
