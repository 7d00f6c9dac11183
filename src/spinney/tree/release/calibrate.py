"""Calibrated answers of a tree: the estimate of the density, and every known source of its error. PUBLIC.

    noise       the density fitted again to its own counts and sums with fresh noise
    luck        rows of a leaf that is cut fall on one side or the other: w P (1 - P)
    placement   rows do not lie in leaves as the density has them (`scatter`)
    sample      of the population only: the rows are a sample of it

Parts of the chapter:

    shares                shares of leaves in a region, and where the faces of the region cut them
    calibrated answers    estimates and standard errors of counts, shares, means and quantiles
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import exact
from spinney.compiled import compiled
from spinney.grid.lattice import Lattice
from spinney.release.answers.ranks import generator_of
from spinney.schema.rules.base import Number, ValueSet, after, universe
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.certify import draw_noise
from spinney.tree.release.density import LeafDensity, coordinate_variance, exponential_variances
from spinney.tree.release.geometry import ends_to_places, to_values
from spinney.tree.release.regions import Floats, Leaves, Region, at_or_below, joined, raw_ends
from spinney.tree.release.scatter import MANY_COLUMNS, Scatter, scatter_of

# --------------------------------------------------------------------------------------------------------------- shares
# Shares of leaves in a region by the fitted density: along every axis, and where the region's faces cut it.
#
# Along an axis a leaf has density proportional to exp(alpha u) over the part of it that rows spread over
# (`reconstruct`), and a share of nulls. Ends of ranges are those of `range_counts`: reals by themselves, whole
# numbers from the column's low bound up, in places where the axis has pieces.


class Ends(NamedTuple):
    """Ranges along an axis as ends in the density's units, for leaves as they are and for those further up."""

    low: Floats  # (2, n_ranges)
    high: Floats
    has_null: bool


def stretches_of(index: int, ranges: Sequence[tuple[Number, Number]], schema: Schema, lattice: Lattice) -> Floats:
    """Ranges of values along an axis, which may overlap, as `range_counts` takes them: (2, n_ranges)."""
    axis = lattice.axes[index]
    column = schema[axis.name]
    pairs = []
    for ends in ranges:
        low, high = raw_ends(column, *ends)
        if column.is_whole:
            pairs.append((float(int(low) - int(axis.low)), float(int(high) - int(axis.low) + 1)))
        elif column.spacing is not None:
            half = column.spacing / 2
            pairs.append((float(exact(float(low)) - half), float(exact(float(high)) + half)))
        else:
            pairs.append((float(low), after(float(high))))
    return np.array(pairs, dtype=np.float64).reshape(-1, 2).T


def ends_of(index: int, stretches: Floats, lattice: Lattice, density: LeafDensity, *, has_null: bool = False) -> Ends:
    """Stretches along an axis as ends in the density's units."""
    axis = lattice.axes[index]
    if axis.pieces is None:
        return Ends(stretches[[0, 0]], stretches[[1, 1]], has_null)
    piles = None if density.piles is None else density.piles.along(index)
    places = [found[:, 0].reshape(2, -1) for found in ends_to_places(stretches.reshape(-1, 1), Lattice((axis,)), piles)]
    return Ends(np.stack([found[0] for found in places]), np.stack([found[1] for found in places]), has_null)


class AxisShares(NamedTuple):
    """Along one axis: the share of every leaf, and how much of it lies below each end that cuts it."""

    share: Floats  # (n_leaves,)
    below: Floats  # (n_leaves, n_faces)
    faces: Floats  # (2, n_faces): the ends, for leaves as they are and for those further up


def axis_shares(density: LeafDensity, index: int, ends: Ends) -> AxisShares:
    """The shares of all leaves along an axis."""
    boxes = density.boxes
    half = np.maximum(boxes.length[:, index] / 2, 1e-300)
    centre = boxes.low[:, index] + half + half * density.means[:, index] * (1 - density.spread[:, index])
    reach = np.maximum(half * density.spread[:, index], 1e-300)
    lifted = np.zeros(len(centre), dtype=np.int64)
    if density.piles is not None:
        lifted = (density.piles.n_pieces[:, index] > 0).astype(np.int64)
    faces = np.concatenate([ends.low, ends.high], axis=1)
    below = _below(faces, centre, reach, density.slopes[:, index], lifted)
    n = ends.low.shape[1]
    null = boxes.null_share[:, index]
    present = (below[:, n:] - below[:, :n]).clip(0, 1).sum(axis=1).clip(0, 1)
    return AxisShares((1 - null) * present + null * ends.has_null, below, faces)


@compiled
def _below(faces: Floats, centre: Floats, reach: Floats, slopes: Floats, lifted: NDArray[Any]) -> Floats:
    """Which part of every leaf lies below each face: (n_leaves, n_faces)."""
    n_faces = faces.shape[1]
    below = np.empty((centre.size, n_faces))
    for leaf in range(centre.size):
        for face in range(n_faces):
            u = (faces[lifted[leaf], face] - centre[leaf]) / reach[leaf]
            if u <= -1.0:
                below[leaf, face] = 0.0
            elif u >= 1.0:
                below[leaf, face] = 1.0
            else:
                alpha = slopes[leaf]
                below[leaf, face] = np.expm1(alpha * (u + 1)) / np.expm1(2 * alpha)
    return below


# --------------------------------------------------------------------------------------------------- calibrated answers
# Calibrated answers: the density's own, with noise, rows' own luck and their placement inside leaves.
#
#     noise       the density is fitted anew to its own counts and sums with fresh noise; mean square of changes
#     luck        rows of a leaf that is cut fall on one side or the other: w P (1 - P)
#     placement   they do not lie as the density has them (`Scatter`): what leaves along a face of the region
#                 have in common adds up, what they have not adds in squares
#     sample      of the population only: the rows are a sample of it
#
# A share, a mean and a quantile are treated as sums over rows of a residual that is 0 on the whole: of rows in
# the region 1[part] - p, x - m, 1[x <= t] - q; the variance of that sum is then divided by the square of the
# number of rows.


N_REFITS = 30
# Values of a column at which its distribution is looked at, twice.
_POINTS = 128
# Ranges that are kept as ends, so that refits need not compute them again.
_MOST_KEPT = 1000
# Leaf edges of a column in steps are a rounding error away from its values.
_NEAR = 1e-9
# Rows of a leaf may all have the value that a range ends at, where a column has steps that nobody stated. If that is
# the lower edge of the leaf, next to none of them are counted, and all may be there.
_AT_THE_EDGE = 1e-4
# Where rows scatter more than this along an axis they lie in piles, and the interval reaches over a whole leaf.
_UNEVEN, _PILED = 0.03, 0.35
# Where a density rises or falls by a factor of exp(g) from one leaf to the next, rows of all leaves along the face lie
# on one side of what the density says, as at a coast: so much, in units of p (1 - p), times g squared over `_STEEP`.
_COAST, _STEEP = 0.02, 16.0
# Where so few rows lie beyond an end of a range that is open at the other, what leaves scatter by themselves elsewhere
# they may have in common. So they do, and this much more, where leaves are wide and hold a limit at which values were
# cut off.
_OUTER, _LIMIT = 0.1, 0.2
# Places inside a leaf that stand for its rows where a mean is not that of the leaf.
_STEPS = 8
# Halves of parents show how many rows lie on a side, given the mean of all; where they lie there is told by nothing.
_UNTOLD = 2.0
# A variance of values below this is one of values that are all the same.
_NONE = 1e-18
# A density that falls steeply has no end in floats, but all rows up to here.
_NEARLY_ALL = 1 - 1e-12
# A region is finer than leaves if more than the first part of its rows is in leaves that it cuts, and these are less
# than the second part of the rows there.
_MOSTLY, _FINE = 0.5, 0.1
# Of a range that ends where its column does: a limit at which values were cut off, somewhere in the last leaf, is a
# point mass that the density does not know.
_FINE_TAIL = 0.3
# So is one with conditions on so many columns.
_MANY_CUTS = 5
# Leaves of fewer columns than this are narrow in each of them, and only what is cut along two is finer than leaves.
_FEW_COLUMNS = 3
# Variance of faces there, in that of their scatter: what misses at a coast or a river does so in all releases.
_FEW_FACES = 1.7


class Estimate(NamedTuple):
    """A number and its standard error by source: noise, luck, placement, sample."""

    value: float
    rows: float  # how many rows it is of
    noise: float
    luck: float
    placement: float
    sample: float

    @property
    def variance(self) -> float:
        return self.noise + self.luck + self.placement + self.sample

    def interval(self, level: float, ends: tuple[float, float]) -> tuple[float, float]:
        """The normal interval of this level, cut to what is possible."""
        reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(self.variance)
        return max(self.value - reach, ends[0]), min(self.value + reach, ends[1])


class Part(NamedTuple):
    """A region under one density: shares of leaves in it, whole and by axis."""

    weights: Floats
    share: Floats  # (n_leaves,)
    along: dict[int, AxisShares]

    @property
    def rows(self) -> float:
        return float(self.weights @ self.share)

    def without(self, axis: int) -> Floats:
        """Shares by all axes but one."""
        return product([part.share for other, part in self.along.items() if other != axis], len(self.weights))


def product(shares: Sequence[Floats], n: int) -> Floats:
    """The product of shares, 1 where there are none."""
    found = np.ones(n)
    for share in shares:
        found = found * share
    return found


class Calibrator:
    """Answers by one density and by its refits."""

    def __init__(
        self, moments: NoisyMoments, schema: Schema, leaves: Leaves, density: LeafDensity, refits: list[LeafDensity]
    ) -> None:
        self.density = density
        self.refits = refits
        self._moments = moments
        self._schema = schema
        self._stretches: dict[tuple[int, ValueSet], Floats] = {}
        rate = float(moments.rate) * moments.quantum
        self._at_faces = _FEW_FACES if moments.lattice.n_axes < _FEW_COLUMNS else 1.0
        self._variance = coordinate_variance(leaves.is_measured.sum(axis=1) + 1, rate)
        self.scatter: Scatter = scatter_of(moments, leaves, self._variance)

    # ------------------------------------------------------------------------------------------------ answers

    def value(self, region: Region) -> float:
        """How many rows the density has in a region."""
        return self._part(self.density, region).rows

    def count(self, region: Region, *, of_population: bool) -> Estimate:
        """How many rows lie in a region."""
        part = self._part(self.density, region)
        value = part.rows
        noise = float(np.mean([(self._part(refit, region).rows - value) ** 2 for refit in self.refits]))
        luck = float(part.weights @ (part.share * (1 - part.share)))
        placement = self._at_faces * self._faces(part, dict.fromkeys(region, 1.0))
        total = float(part.weights.sum())
        sample = value * max(1 - value / max(total, 1e-9), 0.0) if of_population else 0.0
        return Estimate(value, value, noise, luck, placement, sample)

    def share(self, part: Region, whole: Region, *, of_population: bool, at: float | None = None) -> Estimate:
        """The share of the rows in `whole` that are in `part` too; `at` is another share to measure the doubt at."""
        both = joined(part, whole)
        inner, outer = self._part(self.density, both), self._part(self.density, whole)
        rows = max(outer.rows, 1e-9)
        value = inner.rows / rows
        p = value if at is None else at
        noise = 0.0
        for refit in self.refits:
            found = self._part(refit, both).rows - p * self._part(refit, whole).rows
            noise += (found - (value - p) * rows) ** 2 / len(self.refits)
        within, around = inner.share, outer.share
        expected = within - p * around
        luck = float(inner.weights @ (within * (1 - p) ** 2 + (around - within) * p**2 - expected**2).clip(0))
        placement = self._faces(inner, dict.fromkeys(part, 1.0))
        ratio = within / np.maximum(around, 1e-12)
        placement += self._faces(outer, dict.fromkeys([axis for axis in whole if axis not in part], ratio - p))
        placement *= self._at_faces
        sample = rows * p * (1 - p) if of_population else 0.0
        return Estimate(value, rows, *(number / rows**2 for number in (noise, luck, placement, sample)))

    def mean(self, axis: int, region: Region, *, of_population: bool) -> Estimate:
        """The mean of a column over a region."""
        part = self._part(self.density, region)
        rows = max(part.rows, 1e-9)
        at, inside = self._means(self.density, axis, part)
        value = float((part.weights * part.share) @ at) / rows
        noise = 0.0
        for refit in self.refits:
            other = self._part(refit, region)
            there, _ = self._means(refit, axis, other)
            noise += float((other.weights * other.share) @ (there - value)) ** 2 / len(self.refits)
        is_cut = (part.share > 0) & (part.share < 1)
        residual = at - value
        luck = float(part.weights @ (part.share * ((1 - part.share) * residual**2 + is_cut * inside)))
        placement = self._faces(part, dict.fromkeys(region, residual)) + self._bent(part, axis, inside)
        placement += self._shifted(part, axis, at, inside, residual)
        sample = float((part.weights * part.share) @ (residual**2 + inside)) if of_population else 0.0
        return Estimate(value, rows, *(number / rows**2 for number in (noise, luck, placement, sample)))

    def quantile(
        self, axis: int, at: float, region: Region, grid: Floats, level: float, *, of_population: bool
    ) -> tuple[float, float, float, Estimate]:
        """The value that a share of the rows of a region lies at or below, and the ends of its interval."""
        part = self._part(self.density, region)
        value = self._inverse(axis, [at], part, grid)[0]
        column = self._schema[self._moments.lattice.axes[axis].name]
        least = universe(column)[0]
        below: Region = {axis: ValueSet(((least, at_or_below(column, value)),))}
        doubt = self.share(below, region, of_population=of_population, at=at)
        reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(doubt.variance)
        low, high = self._inverse(axis, [max(at - reach, 0.0), min(at + reach, 1.0)], part, grid)
        # An estimate in steps may be off by one; where rows lie close together, it may be any value of their leaf.
        if self._is_stepped(axis):
            step = float(column.spacing or 1)
            before, after = self._in_steps(axis, np.array([value - step, value + step]))[[0, -1]].tolist()
            low, high = min(low, before), max(high, after)
        elif low == high:
            place = int(np.searchsorted(grid, value))
            low, high = float(grid[max(place - 1, 0)]), float(grid[min(place + 1, len(grid) - 1)])
        return value, low, high, doubt

    def is_finer(self, region: Region) -> bool:
        """Whether a region takes little of the leaves that it touches: what it holds is the density's guess.

        Counts of rows are told by leaves. Rows of a region that holds few leaves whole, and less than a part of
        those that it cuts, are as many as the density puts in a corner of its leaves.
        """
        if self._moments.lattice.n_axes < _FEW_COLUMNS and len(region) < 2:
            return False
        part = self._part(self.density, region)
        rows = part.weights * part.share
        is_cut = (part.share > 0) & (part.share < 1 - _NEAR)
        inside = float(rows[is_cut].sum())
        if inside <= _MOSTLY * float(rows.sum()):
            return False
        # Columns are independent inside a leaf by the density; cut along many, it may hold far more than their product.
        least = _FINE_TAIL if any(self._is_tail(axis, values) for axis, values in region.items()) else _FINE
        return inside < least * float(part.weights[is_cut].sum()) or len(part.along) >= _MANY_CUTS

    def _is_tail(self, axis: int, values: ValueSet) -> bool:
        """Whether values are a range up to one end of a column."""
        least, largest = universe(self._schema[self._moments.lattice.axes[axis].name])
        return any((low <= least) != (high >= largest) for low, high in values.ranges)

    def tail(self, axis: int, value: float, at: float, region: Region) -> Region:
        """The rows of a region on that side of a quantile where there are fewer."""
        column = self._schema[self._moments.lattice.axes[axis].name]
        least, largest = universe(column)
        at_value = at_or_below(column, value)
        return joined(region, {axis: ValueSet(((least, at_value) if at <= 1 / 2 else (at_value, largest),))})

    # ------------------------------------------------------------------------------------------------- inside

    def _part(self, density: LeafDensity, region: Region) -> Part:
        along = {axis: axis_shares(density, axis, self._ends(axis, values, density)) for axis, values in region.items()}
        return Part(density.weights, product([part.share for part in along.values()], len(density.weights)), along)

    def _ends(self, axis: int, values: ValueSet, density: LeafDensity) -> Ends:
        key = (axis, values)
        if key not in self._stretches:
            if len(self._stretches) > _MOST_KEPT:
                self._stretches.clear()
            self._stretches[key] = stretches_of(axis, values.ranges, self._schema, self._moments.lattice)
        return ends_of(axis, self._stretches[key], self._moments.lattice, density, has_null=values.has_null)

    def _faces(self, part: Part, jumps: dict[int, Floats | float]) -> float:
        """Variance of a sum over rows because they do not lie as the density has them, face by face."""
        variance = 0.0
        total = float(part.weights.sum())
        is_outer = min(part.rows, total - part.rows) < _OUTER * total
        for axis, jump in jumps.items():
            found = part.along[axis]
            by_others = part.without(axis)
            others = part.weights * by_others * np.abs(jump)
            # Columns may depend on each other in a leaf that several cut: half of that doubt is each of the two's.
            corner = (1 + 1 / np.maximum(by_others, _NONE)) / 2
            is_dense = not self._is_stepped(axis)
            together = []
            scatter = float(self.scatter.together[axis])
            held = found.below[part.weights > 0]
            if is_outer and held.size and (held[:, 0] <= 0).all() != (held[:, -1] >= 1).all():
                is_wide = self._moments.lattice.n_axes >= _FEW_COLUMNS
                scatter += float(self.scatter.alone[axis]) + _LIMIT * is_wide
            whole = max(_PILED / scatter, 1.0) if scatter > _UNEVEN else 1.0
            for f, steep in zip(found.below.T, self._steepness(part, axis), strict=True):
                is_edge = is_dense & (f > 0) & ((f < _AT_THE_EDGE) | ((f > 1 - _AT_THE_EDGE) & (f < 1)))
                spread = np.where(is_edge, whole, f * (1 - f))
                g = others * np.sqrt(spread)
                together.append(math.sqrt(scatter + _COAST * steep) * float(g.sum()))
                variance += self.scatter.alone[axis] * float((g * corner) @ g)
            # Piles are left out, or counted in, at both ends of a range alike.
            variance += sum(together) ** 2
        return variance

    def _steepness(self, part: Part, axis: int) -> Floats:
        """Of each face along an axis, how much the density changes across the leaves that it cuts, from 0 to 1.

        It is told by the rows of two slabs as wide as such leaves, one below them and one above, of the whole table:
        where all leaves along a face begin at one coast, their neighbours do.
        """
        found = part.along[axis]
        steep = np.zeros(found.below.shape[1])
        if self._moments.lattice.n_axes >= MANY_COLUMNS:
            return steep
        weights = part.weights * part.without(axis)
        is_cut = (found.below > 0) & (found.below < 1)
        for face in np.flatnonzero((weights @ is_cut) > 0):
            cut = is_cut[:, face]
            length = float(weights[cut] @ self.density.boxes.length[cut, axis]) / float(weights[cut].sum())
            at = found.faces[:, [face]] + length * np.array([-1.5, -0.5, 0.5, 1.5])
            below = weights @ axis_shares(self.density, axis, Ends(at[:, :2], at[:, 2:], has_null=False)).below
            floor = math.sqrt(float(self._variance[cut].sum()))
            change = math.log((below[3] - below[2] + floor) / (below[1] - below[0] + floor))
            steep[face] = min(change**2 / _STEEP, 1.0)
        return steep

    def _bent(self, part: Part, axis: int, inside: Floats) -> float:
        """Variance of a sum of values where they are not linear in what was measured: leaves of several pieces."""
        pieces = self._moments.lattice.axes[axis].pieces
        if pieces is None:
            return 0.0
        is_bent = self.density.boxes.length[:, axis] > pieces.piece_length
        g = part.weights * part.share * np.sqrt(inside) * is_bent
        return float(self.scatter.together[axis] * g.sum() ** 2 + self.scatter.alone[axis] * (g @ g))

    def _shifted(self, part: Part, axis: int, at: Floats, inside: Floats, residual: Floats) -> float:
        """Variance of a sum of values because rows of cut leaves that are in a region have another mean than expected.

        Along the column itself this is the variance in the part, less what the mean of the whole leaf tells of it by
        regression; along others all of it. It scatters `_UNTOLD` times as much as rows do between two sides of a face.
        """
        n = len(part.weights)
        middle, spread = self._means(self.density, axis, Part(part.weights, np.ones(n), {}))
        own = part.along[axis].share if axis in part.along else np.ones(n)
        others = part.without(axis)
        along = own * (inside + (1 - own) * residual**2)
        told = np.minimum((own * (inside + residual * (at - middle))) ** 2 / np.maximum(spread, _NONE), along)
        g = part.weights * np.sqrt(others**2 * (along - told) + others * (1 - others) * own * inside)
        axes = [axis, *part.along]
        together, alone = (float(numbers[axes].max()) for numbers in (self.scatter.together, self.scatter.alone))
        return _UNTOLD * (together * float(g.sum()) ** 2 + alone * float(g @ g))

    def _means(self, density: LeafDensity, axis: int, part: Part) -> tuple[Floats, Floats]:
        """Of every leaf: the mean of a column over its rows in a region, and their variance."""
        lattice = self._moments.lattice
        along = lattice.axes[axis]
        boxes = density.boxes
        half = boxes.length[:, axis] / 2
        mean, spread, slope = (part[:, axis] for part in (density.means, density.spread, density.slopes))
        shift = 0.0 if along.kind == "real" else int(along.low) - 0.5
        at = boxes.low[:, axis] + half * (1 + mean) + shift
        inside = half**2 * exponential_variances(slope) * spread**2
        n = 0 if axis not in part.along else part.along[axis].below.shape[1] // 2
        low = part.along[axis].below[:, 0] if n else np.zeros(len(at))
        high = part.along[axis].below[:, -1] if n else np.ones(len(at))
        by_parts = (low > 0) | (high < 1) if along.pieces is None else np.ones(len(at), dtype=np.bool_)
        by_parts &= (part.share > 0) & (density.weights > 0)
        chosen = np.flatnonzero(by_parts)
        if not len(chosen):
            return at, inside
        steps = (np.arange(_STEPS) + 0.5) / _STEPS
        chance = np.minimum(low[chosen, None] + (high - low)[chosen, None] * steps, _NEARLY_ALL)
        u = np.log1p(chance * np.expm1(2 * slope)[chosen, None]) / slope[chosen, None] - 1
        place = boxes.low[chosen, axis, None] + half[chosen, None] * (
            1 + (mean * (1 - spread))[chosen, None] + spread[chosen, None] * u
        )
        piles = None if density.piles is None else density.piles.along(axis)
        x = to_values(np.ascontiguousarray(place.reshape(1, -1)), Lattice((along,)), piles).reshape(place.shape) + shift
        at[chosen], inside[chosen] = x.mean(axis=1), x.var(axis=1)
        return at, inside

    def _inverse(self, axis: int, shares: list[float], part: Part, grid: Floats) -> list[float]:
        """Where the distribution of a column over a region reaches shares: of columns in steps, the first step."""
        grid = self._in_steps(axis, grid)
        return [self._reaches(axis, share * part.rows, part, grid) for share in shares]

    def _reaches(self, axis: int, wanted: float, part: Part, grid: Floats) -> float:
        """The first value with so many rows at or below it, by looking ever closer between two values of a grid."""
        is_finest = False
        while True:
            picks = np.unique(np.linspace(0, len(grid) - 1, min(len(grid), _POINTS)).astype(np.int64))
            rows = self._rows_below(axis, grid[picks], part)
            place = int(np.searchsorted(rows, wanted - 1e-9))
            if place in (0, len(picks)):
                return float(grid[0 if place == 0 else -1])
            first, last = picks[place - 1], picks[place]
            if last - first > 1:
                grid = grid[first : last + 1]
                continue
            low, high = float(grid[first]), float(grid[last])
            if is_finest:
                before, after = float(rows[place - 1]), float(rows[place])
                return low + (high - low) * (wanted - before) / (after - before)
            grid = self._in_steps(axis, np.linspace(low, high, _POINTS // 2))
            if self._is_stepped(axis):
                if len(grid) <= 2:
                    return high
            else:
                is_finest = True

    def _is_stepped(self, axis: int) -> bool:
        column = self._schema[self._moments.lattice.axes[axis].name]
        return column.is_whole or column.spacing is not None

    def _in_steps(self, axis: int, values: Floats) -> Floats:
        """Values as the column has them, each once; leaf edges of a column in steps are a rounding error off."""
        if not self._is_stepped(axis):
            return values
        column = self._schema[self._moments.lattice.axes[axis].name]
        return np.unique([float(at_or_below(column, value + _NEAR)) for value in values])

    def _rows_below(self, axis: int, values: Floats, part: Part) -> Floats:
        """How many rows of a region have at most these values of a column (n_values,)."""
        lattice, schema = self._moments.lattice, self._schema
        column = schema[lattice.axes[axis].name]
        least = universe(column)[0]
        tops = [(least, at_or_below(column, value)) for value in values]
        ends = ends_of(axis, stretches_of(axis, tops, schema, lattice), lattice, self.density)
        up_to = axis_shares(self.density, axis, ends).below[:, len(tops) :]
        others = part.weights * part.without(axis) * (1 - self.density.boxes.null_share[:, axis])
        if axis not in part.along:
            return np.asarray(others @ up_to)
        below = part.along[axis].below
        n = below.shape[1] // 2
        total = np.zeros(len(values))
        for k in range(n):
            total += others @ np.clip(up_to - below[:, [k]], 0, np.maximum(below[:, [n + k]] - below[:, [k]], 0))
        return total


def refits_of(
    release: NoisyMoments,
    density: LeafDensity,
    is_measured: NDArray[np.bool_],
    refit: Callable[[NoisyMoments], LeafDensity],
    n_refits: int = N_REFITS,
) -> list[LeafDensity]:
    """Densities fitted anew to what this one would have measured, with fresh noise."""
    rng = generator_of(release.codes, release.depths, str(release.rate), "refits")
    quantum = release.quantum
    unlifted = density.means if density.piles is None else density.piles.unmoved(density.means)
    expected = np.column_stack([density.weights, np.where(is_measured, density.weights[:, None] * unlifted, 0.0)])
    found = []
    for _ in range(n_refits):
        noise = draw_noise(is_measured, release, 1, rng).reshape(expected.shape)
        steps = np.rint((expected + noise) * quantum).astype(np.int64)
        found.append(refit(replace(release, noisy_steps=steps)))
    return found
