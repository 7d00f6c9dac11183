"""Certified quantiles: bounds on how many rows of a region lie at or below values of a column, for many values at once.

Leaves that lie wholly below a value are added up once, in the order of the values; only those that the value cuts are
bounded anew for each. From this the share q of the bounds on all rows of the region is taken away.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from spinney.schema.rules.values import ValueSet, universe
from spinney.schema.table import Schema
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.answers.bounds import Bracket, Linear, bracket
from spinney.tree.release.answers.certified import Certifier, Test
from spinney.tree.release.answers.leaves import Floats, Leaves, Parts, parts_of
from spinney.tree.release.answers.regions import Integers, Region, at_or_below, joined


def quantile_tests(
    certifier: Certifier,
    leaves: Leaves,
    moments: NoisyMoments,
    schema: Schema,
    axis: int,
    at: float,
    region: Region,
    found: Bracket,
    level: float,
) -> tuple[Test, Test]:
    """Bounds from below and from above on sum over the region's rows of 1[x <= t] - q, at values t."""
    column = schema[moments.lattice.axes[axis].name]
    least = universe(column)[0]
    asked = leaves.some(found.upper.leaves)

    @cache
    def cuts(t: float) -> tuple[NDArray[np.int8], Bracket]:
        below = {axis: ValueSet(((least, at_or_below(column, t)),))}
        parts = parts_of(asked, below, schema, moments)
        state = np.zeros(len(asked), dtype=np.int8)
        state[parts.inside], state[parts.cut] = 2, 1
        chosen = found.upper.leaves[state == 1]
        both = parts_of_some(leaves, joined(region, below), schema, moments, chosen)
        return state, bracket(leaves, both)

    def test(side: str, whole: Linear, other: Linear) -> Test:
        each, each_noise = certifier.measured_each(whole, level)
        all_rows, all_noise = certifier.measured(other, level)

        def at_values(t: Floats) -> tuple[Floats, Floats]:
            value, noise = np.empty(len(t)), np.empty((len(t), len(all_noise)))
            state, before = np.zeros(len(each), dtype=np.int8), np.zeros(len(each), dtype=np.bool_)
            so_far, so_far_noise = 0.0, np.zeros(len(all_noise))
            for place, top in enumerate(t):
                state, cut = cuts(float(top))
                fresh = (state == 2) & ~before
                before |= fresh
                so_far += float(each[fresh].sum())
                so_far_noise = so_far_noise + each_noise[fresh].sum(axis=0)
                part, part_noise = certifier.measured(getattr(cut, side), level)
                value[place] = so_far + part - at * all_rows
                noise[place] = so_far_noise + part_noise - at * all_noise
            return value, noise

        return at_values

    return test("lower", found.lower, found.upper), test("upper", found.upper, found.lower)


def parts_of_some(leaves: Leaves, region: Region, schema: Schema, moments: NoisyMoments, chosen: Integers) -> Parts:
    """How a region lies in some leaves only."""
    parts = parts_of(leaves.some(chosen), region, schema, moments)
    return Parts(chosen[parts.inside], chosen[parts.cut], parts.along)
