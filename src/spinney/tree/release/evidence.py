"""Certified intervals of a tree: they hold over the noise of the release, whatever the rows are. PUBLIC.

An indicator is bounded by functions that are linear in what leaves measured; their noise is bounded by its law.
All choices are made by geometry, never by a noisy count. Proofs: release/answers/ranks.proof.md and
reach.proof.md.

    regions                 the rows that conditions allow, in cells and in places
    leaves                  which leaves a region holds, misses or cuts
    bounds                  linear functions below and above "the row is in the region"
    simulated noise         the law of the noise, and copies of it
    certified intervals     counts, shares, means and quantiles by inverting tests
    quantiles               bounds on rows at or below many values at once
    values inside leaves    lines between which the values of a column lie inside a leaf
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, exact, whole_range
from spinney.errors import ParameterError
from spinney.grid.codes import deinterleave
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import piece_table, place_table, to_places
from spinney.release.answers.certify import (
    Between,
    NoisySum,
    SumByCopies,
    SumByLaw,
    candidates,
    counts_between,
    quantile_between,
    ratio_between,
)
from spinney.release.answers.question import allowed
from spinney.release.answers.ranks import USUAL_DRAWS, generator_of, least_draws, product
from spinney.release.answers.reach import Law, NoiseSum, Reals
from spinney.release.verify import eulerian
from spinney.schema.rules.base import Number, ValueSet, after, before, universe
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.release.density import coordinate_variance

# -------------------------------------------------------------------------------------------------------------- regions
# Regions: the rows that conditions allow, in the cells of a tree and in places along the axes.
#
# Which cell a value lies in is a monotone function of the value (`lattice`), and so is its place, so a range of
# values is a range of cells but for the cells of its two ends, which may hold rows on either side. A range therefore
# becomes two: the cells whose rows are all in it, and those that may hold a row of it. Whole numbers decide this, no
# float rounding.


Integers = NDArray[np.int64]

Region = dict[int, ValueSet]  # of each axis with a condition, the values that it allows


def region_of(conditions: Mapping[str, Any], schema: Schema, lattice: Lattice) -> Region:
    """What conditions by column say about the axes; a ParameterError where a column is not one of the tree's.

    A condition that all values of a column meet says nothing, and is left out.
    """
    places = {axis.name: place for place, axis in enumerate(lattice.axes)}
    region = {
        axis_of(name, schema, places, "where"): allowed(name, schema[name], wanted)
        for name, wanted in conditions.items()
    }
    return {axis: values for axis, values in region.items() if not values.has_all(schema[lattice.axes[axis].name])}


def axis_of(name: str, schema: Schema, places: Mapping[str, int], argument: str) -> int:
    """The axis of a column; a ParameterError where rows have it by a rule, and nothing was counted of it."""
    if name not in places:
        raise ParameterError(
            f"{argument}: column {name!r} is of type {schema[name].type_name} and was not counted: it is computed or "
            "made afresh when rows are drawn; ask about the columns that it follows from"
        )
    return places[name]


def joined(one: Region, other: Region) -> Region:
    """The rows in both regions."""
    return one | other | {axis: one[axis] & other[axis] for axis in one.keys() & other.keys()}


@dataclass(frozen=True, slots=True)
class Spans:
    """Ranges of values as ranges of cells and of places, both ends included: those surely inside, those that may be."""

    cells_in: Integers  # (n_ranges, 2)
    cells_may: Integers
    places_in: Integers
    places_may: Integers
    has_null: bool


def spans(axis: Axis, column: Column, values: ValueSet) -> Spans:
    """Where ranges of values lie along an axis."""
    found = [_span(axis, column, *ends) for ends in values.ranges]
    tables = [np.array([row[i] for row in found], dtype=np.int64).reshape(-1, 2) for i in range(4)]
    return Spans(tables[0], tables[1], tables[2], tables[3], values.has_null)


def raw_ends(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """A range of values in steps as all that rounds to them, of columns that are whole underneath."""
    if not column.is_whole:
        return low, high
    half = column.step // 2 if isinstance(column, Bounded) else 0
    return low - half, high + column.step - 1 - half


def _span(axis: Axis, column: Column, low: Number, high: Number) -> list[tuple[int, int]]:
    least, most = universe(column)
    below, above = neighbours(column, low, high)
    low, high = raw_ends(column, low, high)
    first, last = cell_of(axis, low), cell_of(axis, high)
    found: list[tuple[int, int]] = []
    for place in (lambda cell: cell, lambda cell: place_of(axis, cell)):
        a, b = place(first), place(last)
        is_open_below = below < least or place(cell_of(axis, below)) < a
        is_open_above = above > most or place(cell_of(axis, above)) > b
        found += [(a if is_open_below else a + 1, b if is_open_above else b - 1), (a, b)]
    return found


def at_or_below(column: Column, number: float) -> Number:
    """The largest value of a column, in its steps, that is not above a number; not below its first."""
    least = universe(column)[0]
    if column.is_whole:
        found: Number = math.floor(number)
        found = int(column._aligned(found, up=False)) if isinstance(column, Bounded) else found
    elif isinstance(column, Bounded) and column.spacing is not None:
        found = float(column._aligned(exact(float(number)), up=False))
    else:
        found = float(number)
    return max(found, least)


def neighbours(column: Column, low: Number, high: Number) -> tuple[Number, Number]:
    """The values next to a range, outside."""
    if column.is_whole:
        (least, most), step = whole_range(column), column.step
        down, up = int(low) - step, int(high) + step
        return max(down, least - 1), min(up, most + 1)
    if column.spacing is not None:
        return float(exact(float(low)) - column.spacing), float(exact(float(high)) + column.spacing)
    return before(float(low)), after(float(high))


def cell_of(axis: Axis, number: Number) -> int:
    """The cell of a physical number, by the same arithmetic as rows are counted with."""
    if axis.kind == "real":
        first, last = (axis.first, axis.last) if axis.pieces is None else (0, axis.n_fine - 1)
        fine = math.floor(min(max((float(number) - axis.origin) * axis.scale, float(first)), float(last)))
    else:
        fine = (min(max(int(number), int(axis.low)), int(axis.high)) - int(axis.low)) // axis.step
    if axis.pieces is None:
        return fine
    table = piece_table(axis.pieces)
    piece = int(np.searchsorted(table.starts, fine, side="right")) - 1
    start, width, gain = int(table.starts[piece]), int(table.widths[piece]), int(table.gains[piece])
    return int(table.slots[piece]) + (2 * (fine - start) + 1) * gain // (2 * width)


def place_of(axis: Axis, cell: int) -> int:
    """The place of a cell, in which offsets are measured."""
    if axis.pieces is None:
        return cell
    return int(to_places(axis.pieces, np.array([cell]), np.array([1]))[0][0])


# --------------------------------------------------------------------------------------------------------------- leaves
# Leaves: what the shape of a tree says about its leaves, and which of them a region holds, misses or cuts.
#
# Everything here follows from the shape and from the question, and from no noisy count: what a certified interval is
# made of may not be chosen by looking at the noise that it bounds.


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """Per leaf and axis: its first and last cell that a value can have, whether null is in it, and its places."""

    first: Integers  # (n_leaves, n_axes)
    last: Integers
    has_values: Flags
    has_null: Flags
    place: Integers  # the first place
    size: Integers  # how many
    is_measured: Flags
    quantum: int

    def __len__(self) -> int:
        return len(self.first)

    def some(self, chosen: Integers) -> Leaves:
        """These leaves only, in this order."""
        return Leaves(
            first=self.first[chosen],
            last=self.last[chosen],
            has_values=self.has_values[chosen],
            has_null=self.has_null[chosen],
            place=self.place[chosen],
            size=self.size[chosen],
            is_measured=self.is_measured[chosen],
            quantum=self.quantum,
        )

    def offset(self, leaves: Integers, axis: int, places: Integers) -> Floats:
        """The offset from the leaf's centre, in half-edges, that a row at a place was counted with."""
        scale = self.quantum / self.size[leaves, axis]
        steps = np.rint(scale * (2 * (places - self.place[leaves, axis]) + 1)) - self.quantum
        return np.asarray(np.clip(steps, -self.quantum, self.quantum) / self.quantum)


def leaves_of(moments: NoisyMoments) -> Leaves:
    """The leaves of a release."""
    first, size = deinterleave(moments.codes, moments.depths, moments.lattice)
    place, n_places, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    last = first + size - 1
    has_values, has_null = np.ones(first.shape, dtype=np.bool_), np.zeros(first.shape, dtype=np.bool_)
    for index, axis in enumerate(moments.lattice.axes):
        has_null[:, index] = (first[:, index] <= axis.null_cell) & (last[:, index] >= axis.null_cell)
        first[:, index] = np.maximum(first[:, index], axis.first)
        last[:, index] = np.minimum(last[:, index], axis.last)
        has_values[:, index] = first[:, index] <= last[:, index]
        if axis.pieces is not None:  # of the cells of a point only the first holds rows
            table = piece_table(axis.pieces)
            piece = table.among(np.maximum(last[:, index], 0))
            at_point = has_values[:, index] & table.is_point[piece]
            last[at_point, index] = np.maximum(table.slots[piece], first[:, index])[at_point]
    return Leaves(first, last, has_values, has_null, place, n_places, is_measured, moments.quantum)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """How a region and the leaves lie: which leaves are inside and which are cut; all others are outside."""

    inside: Integers  # leaves
    cut: Integers
    along: dict[int, AxisParts]  # of each axis with a condition, of the cut leaves


@dataclass(frozen=True, slots=True, eq=False)
class AxisParts:
    """Along one axis, of leaves: whether all of a leaf meets the condition, and where along it rows do."""

    is_whole: Flags  # (n_leaves,)
    low_in: Integers  # places; low_in > high_in where none is surely inside
    high_in: Integers
    low_may: Integers
    high_may: Integers


def parts_of(leaves: Leaves, region: Region, schema: Schema, moments: NoisyMoments) -> Parts:
    """Which leaves a region holds and which it cuts."""
    is_possible = np.ones(len(leaves), dtype=np.bool_)
    is_inside = np.ones(len(leaves), dtype=np.bool_)
    found: dict[int, AxisParts] = {}
    for index, values in region.items():
        axis = moments.lattice.axes[index]
        span = spans(axis, schema[axis.name], values)
        overlaps, parts = _along(leaves, index, span)
        found[index] = parts
        is_possible &= overlaps
        is_inside &= parts.is_whole
    cut = np.flatnonzero(is_possible & ~is_inside)
    along = {
        index: AxisParts(*(getattr(parts, name)[cut] for name in AxisParts.__slots__)) for index, parts in found.items()
    }
    return Parts(np.flatnonzero(is_possible & is_inside), cut, along)


def _along(leaves: Leaves, index: int, span: Spans) -> tuple[Flags, AxisParts]:
    """Whether leaves may hold rows that meet a condition along an axis, and where."""
    first, last, has_values = (getattr(leaves, name)[:, index] for name in ("first", "last", "has_values"))
    has_null = leaves.has_null[:, index]
    n = len(leaves)
    n_touching = np.zeros(n, dtype=np.int64)
    covers = np.zeros(n, dtype=np.bool_)
    low_may, high_may = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    low_in, high_in = np.full(n, 0), np.full(n, -1)
    for k in range(len(span.cells_may)):
        touches = has_values & (span.cells_may[k, 0] <= last) & (span.cells_may[k, 1] >= first)
        covers |= has_values & (span.cells_in[k, 0] <= first) & (span.cells_in[k, 1] >= last)
        n_touching += touches
        low_may = np.where(touches, np.minimum(low_may, span.places_may[k, 0]), low_may)
        high_may = np.where(touches, np.maximum(high_may, span.places_may[k, 1]), high_may)
        low_in = np.where(touches, span.places_in[k, 0], low_in)
        high_in = np.where(touches, span.places_in[k, 1], high_in)
    several = n_touching > 1
    low_in[several], high_in[several] = 0, -1
    is_whole = np.where(has_values, covers, True) & (~has_null | span.has_null)
    overlaps = (n_touching > 0) | (has_null & span.has_null)
    return overlaps, AxisParts(is_whole, low_in, high_in, low_may, high_may)


# --------------------------------------------------------------------------------------------------------------- bounds
# Linear bounds: functions of what a leaf measured that lie below and above "the row is in the region".
#
# A row adds (1, u) to its leaf, u its offsets along the measured axes. For every leaf a lower and an upper function,
# linear in (1, u), are chosen by geometry alone, so that for every row
#
#     lower(u)  <=  1[row in the region]  <=  upper(u)
#
# Summed over rows they are linear in the true counts and sums, which were released with noise of a known law. Inside
# a leaf that the region cuts along one axis at the offset t, where rows below are in it, the upper function is 1, or
# the line that is 1 at t and 0 at the last offset of the leaf, whichever is lower at the centre; the lower one is 0,
# or the line that is 1 at the first offset and 0 at the first one past t. Across several cuts an upper function of
# one of them will do, and what the lower ones lack adds up.


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear function of the counts and sums of some leaves: a coefficient of each."""

    leaves: Integers  # (n,), ascending or not, each once
    of_count: Floats  # (n,)
    of_sums: Floats  # (n, n_axes)

    def times(self, factors: Floats | float) -> Linear:
        """The function with the part of each leaf multiplied by a factor of its own."""
        by_leaf = np.broadcast_to(np.asarray(factors, dtype=np.float64), self.leaves.shape)
        return Linear(self.leaves, self.of_count * by_leaf, self.of_sums * by_leaf[:, None])

    def restricted(self, chosen: NDArray[np.bool_]) -> Linear:
        """The part of some of its leaves."""
        return Linear(self.leaves[chosen], self.of_count[chosen], self.of_sums[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """A lower and an upper function of the same leaves: first those inside, then those that are cut."""

    lower: Linear
    upper: Linear
    n_inside: int

    @property
    def n_cut(self) -> int:
        return len(self.upper.leaves) - self.n_inside


def bracket(leaves: Leaves, parts: Parts) -> Bracket:
    """Bounds on how many rows lie in a region."""
    n_axes = leaves.first.shape[1]
    both = np.concatenate([parts.inside, parts.cut])
    n_inside, n_cut = len(parts.inside), len(parts.cut)
    upper = np.zeros((n_cut, 1 + n_axes))
    upper[:, 0] = 1.0
    lack = np.zeros((n_cut, 1 + n_axes))
    for axis, part in parts.along.items():
        _cut_along(leaves, parts.cut, axis, part, upper, lack)
    lower = -lack
    lower[:, 0] += 1.0
    lower[lower[:, 0] <= 0] = 0.0
    ones = np.zeros((n_inside, 1 + n_axes))
    ones[:, 0] = 1.0
    below, above = np.concatenate([ones, lower]), np.concatenate([ones, upper])
    return Bracket(Linear(both, below[:, 0], below[:, 1:]), Linear(both, above[:, 0], above[:, 1:]), n_inside)


def _cut_along(leaves: Leaves, cut: Integers, axis: int, part: AxisParts, upper: Floats, lack: Floats) -> None:
    """Take the cuts along one axis into account: a better upper function, and what the lower one lacks."""
    is_measured = leaves.is_measured[cut, axis]
    lack[~part.is_whole & ~is_measured, 0] += 1.0
    chosen = np.flatnonzero(~part.is_whole & is_measured)
    here = cut[chosen]
    begin = leaves.place[here, axis]
    end = begin + leaves.size[here, axis] - 1
    first, last = leaves.offset(here, axis, begin), leaves.offset(here, axis, end)
    low_in, high_in = part.low_in[chosen], part.high_in[chosen]
    low_may, high_may = part.low_may[chosen], part.high_may[chosen]
    none = (low_in > high_in) | (high_in < begin) | (low_in > end)
    lack[chosen[none], 0] += 1.0
    # Rows past the high end: none may be counted above it, and all past the last sure place may be missing.
    for is_cut, at, missing, far, sign in (
        (high_may < end, high_may, high_in + 1, (first, last), 1.0),
        (low_may > begin, low_may, low_in - 1, (last, first), -1.0),
    ):
        near_end, far_end = far
        place = leaves.offset(here, axis, np.clip(at, begin, end))
        better = is_cut & (sign * place < 0)
        slope = 1 / np.where(better, far_end - place, 1.0)
        value = far_end * slope  # at the centre
        better &= value < upper[chosen, 0]
        rows = chosen[better]
        upper[rows] = 0.0
        upper[rows, 0], upper[rows, 1 + axis] = value[better], -slope[better]
        lost = ~none & ((missing <= end) if sign > 0 else (missing >= begin))
        past = leaves.offset(here, axis, np.clip(missing, begin, end))
        helps = lost & (sign * past > 0)
        lack[chosen[lost & ~helps], 0] += 1.0
        steep = 1 / np.where(helps, past - near_end, 1.0)
        lack[chosen[helps], 0] -= (near_end * steep)[helps]
        lack[chosen[helps], 1 + axis] += steep[helps]


# ------------------------------------------------------------------------------------------------------ simulated noise
# The noise of leaf moments: the law of a count's, and copies of all of it for certified ranks and calibrated refits.
#
#     P(Z = z) proportional to a^max |z_i|,  a = exp(-rate):  uniform on the cube {-R..R}^k,  R = start + k+1 geometrics
#
# as `privacy.noise.supnorm` has it, here in floats: nothing private is ever added to these draws. The generator is
# seeded by the shape of the tree, which was decided before leaf noise was drawn and by other noise.


# Numbers that are kept at most: 160 MB of them.
_MOST_NUMBERS = 4e7
_FEWEST_DRAWS = 499
# Numbers that are drawn at once.
_BLOCK = 1 << 20


# Where numbers are this close to 0, in standard deviations, characteristic functions are taken from their moments.
_NEAR = 1e-2
# More than what rounding takes from the logarithm of a moment.
_ROUNDING = 1e-10
# A reach beyond so many of its usual parts never occurs.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The law of the noise on one number of a leaf that has so many, in steps: what `reach` needs of it.

    P(R = r) ~ n^k a^r with n = 2r + 1, and a number uniform in -R..R has E exp(i t Z) = sin(n t / 2) / (n sin(t / 2)).
    Sums of n^p z^r are rational functions of z, with the Eulerian numbers of type B.
    """

    rate: float
    n_numbers: int

    @property
    def std(self) -> float:
        return math.sqrt(_even_moments(self)[0])

    @property
    def pole(self) -> float:
        return self.rate

    def characteristic(self, at: Reals) -> Reals:
        """E exp(i t Z) at numbers t."""
        second, fourth = _even_moments(self)
        apart = at - 2 * math.pi * np.rint(at / (2 * math.pi))
        is_near = np.abs(apart) * self.std < _NEAR
        half = np.where(is_near, 1.0, apart / 2)
        far = self._summed(np.exp(2j * half), np.exp(1j * half)).imag / np.sin(half)
        return np.where(is_near, 1 - second * apart**2 / 2 + fourth * apart**4 / 24, far)

    def log_moments(self, at: Reals) -> Reals:
        """An upper bound on log E exp(s Z) at numbers s below the pole."""
        half = np.asarray(at, dtype=np.float64) / 2
        found = (self._summed(np.exp(2 * half), np.exp(half)) - self._summed(np.exp(-2 * half), np.exp(-half))) / 2
        return np.asarray(np.log(np.maximum(found / np.sinh(half), 1.0)) + _ROUNDING)

    def _summed(self, squared: NDArray[Any], root: NDArray[Any]) -> NDArray[Any]:
        """Sum over r of P(R = r) / n times root^n, where squared = root^2."""
        k, a = self.n_numbers, math.exp(-self.rate)
        whole = np.polynomial.polynomial.polyval(a, eulerian(k)) / (1 - a) ** (k + 1)
        return np.asarray(
            root * np.polynomial.polynomial.polyval(a * squared, eulerian(k - 1)) / (1 - a * squared) ** k / whole
        )


@lru_cache
def _even_moments(law: CountNoise) -> tuple[float, float]:
    """E Z^2 and E Z^4, summed over the reach."""
    r = np.arange(math.ceil((law.n_numbers + _LONGEST) / law.rate) + 2, dtype=np.float64)
    logs = law.n_numbers * np.log(2 * r + 1) - law.rate * r
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    return float(chances @ (r * (r + 1) / 3)), float(chances @ (r * (r + 1) * (3 * r**2 + 3 * r - 1) / 15))


class SimulatedNoise:
    """Copies of the noise on all leaves, drawn when they are first needed and kept."""

    def __init__(self, moments: NoisyMoments, is_measured: NDArray[np.bool_]) -> None:
        self._moments = moments
        self._is_measured = is_measured
        self._kept: dict[int, NDArray[np.float32]] = {}
        self._totals: dict[int, NDArray[np.float32]] = {}

    @cached_property
    def variance(self) -> Reals:
        """Of the noise on a leaf's count, and on each of its sums, in rows (n_leaves,)."""
        rate = float(self._moments.rate) * self._moments.quantum
        return np.asarray(coordinate_variance(self._is_measured.sum(axis=1) + 1, rate))

    def of_counts(self, coefficients: Reals) -> NoiseSum:
        """The law of a sum over the counts of all leaves, in rows; a coefficient each."""
        n_numbers = self._is_measured.sum(axis=1) + 1
        rate, steps = float(self._moments.rate), coefficients / self._moments.quantum
        parts: list[tuple[Law, Reals]] = [
            (CountNoise(rate, int(n)), steps[n_numbers == n]) for n in np.unique(n_numbers)
        ]
        return NoiseSum(parts)

    def n_draws(self, level: float) -> int:
        """How many copies a level is ranked among: by memory, and no fewer than the level needs."""
        n_numbers = self._is_measured.shape[0] * (1 + self._is_measured.shape[1])
        least = least_draws(level)
        wanted = max(least, int(min(USUAL_DRAWS, max(_FEWEST_DRAWS, _MOST_NUMBERS / n_numbers))))
        if wanted * n_numbers > 4 * _MOST_NUMBERS:
            if least * n_numbers > 4 * _MOST_NUMBERS:
                raise ParameterError(
                    f"statement='certified' redraws the noise of all {len(self._is_measured):,} leaves {least:,} times "
                    f"for level={level:g}, more than memory is kept for; ask for a lower level, or for "
                    "statement='calibrated'"
                )
            wanted = least
        return wanted

    def copies(self, level: float) -> NDArray[np.float32]:
        """Noise in rows (n_leaves * (1 + n_axes), n_draws): of a leaf its count, then its sums."""
        n_draws = self.n_draws(level)
        if n_draws not in self._kept:
            moments = self._moments
            rng = generator_of(moments.codes, moments.depths, str(moments.rate), "ranks", n_draws)
            self._kept[n_draws] = draw_noise(self._is_measured, moments, n_draws, rng)
        return self._kept[n_draws]

    def totals(self, level: float) -> NDArray[np.float32]:
        """The noise on the sum of all counts (n_draws,)."""
        copies = self.copies(level)
        n_draws = copies.shape[1]
        if n_draws not in self._totals:
            counts = copies[:: 1 + self._is_measured.shape[1]]
            self._totals[n_draws] = counts.sum(axis=0, dtype=np.float64).astype(np.float32)
        return self._totals[n_draws]


def draw_noise(
    is_measured: NDArray[np.bool_], moments: NoisyMoments, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Simulated noise in rows (n_leaves * (1 + n_axes), n_draws); 0 where nothing was measured."""
    n_leaves, n_axes = is_measured.shape
    drawn = np.zeros((n_leaves, 1 + n_axes, n_draws), dtype=np.float32)
    n_measured = is_measured.sum(axis=1)
    for n in np.unique(n_measured):
        chosen = np.flatnonzero(n_measured == n)
        size = max(1, _BLOCK // (n_draws * (int(n) + 1)))
        for start in range(0, len(chosen), size):
            leaves = chosen[start : start + size]
            noise = sup_norm(float(moments.rate), int(n) + 1, (len(leaves), n_draws), rng) / moments.quantum
            drawn[leaves, 0] = noise[0]
            rows, axes = np.nonzero(is_measured[leaves])
            order = np.arange(len(rows)) % max(int(n), 1)
            drawn[leaves[rows], axes + 1] = noise[1 + order, rows]
    return drawn.reshape(n_leaves * (1 + n_axes), n_draws)


def sup_norm(rate: float, n_axes: int, shape: tuple[int, int], rng: np.random.Generator) -> Reals:
    """Vectors of sup-norm noise in steps (n_axes, *shape)."""
    weights = start_weights(rate, n_axes)
    reach = rng.choice(n_axes + 1, size=shape, p=weights).astype(np.float64)
    reach += rng.negative_binomial(n_axes + 1, -math.expm1(-rate), size=shape)
    wide = 2 * reach + 1
    return np.stack([np.floor(rng.random(shape) * wide) - reach for _ in range(n_axes)])


def start_weights(rate: float, n_axes: int) -> Reals:
    """P(start = j), proportional to b_j exp(-rate j) with the Eulerian numbers b_j of type B."""
    weights = np.array(eulerian(n_axes), dtype=np.float64) * np.exp(-rate * np.arange(n_axes + 1))
    return np.asarray(weights / weights.sum())


# -------------------------------------------------------------------------------------------------- certified intervals
# Certified intervals of a tree: they hold with the stated probability over the noise, whatever the rows are.
#
# Every answer is a test of linear functions (`bracket`). The noise of counts of leaves alone follows from its
# law (`reach`); with sums of offsets it is ranked among copies of itself (`ranks`). A count is one function
# below and one above. A mean, a share and a quantile are ratios: each is the set of values m that are not
# refuted by the sum over rows of a function of m, which at the true m is 0 (Fieller, Woodruff). Where the
# number of rows is public, the part of the noise that the known total explains is taken away. Proof:
# release/answers/ranks.proof.md.


# Values that a ratio is tested at at first, and values of a column that a quantile is looked for at.
_POINTS = 32
_MOST_VALUES = 48


class Certifier:
    """Measures linear functions of a release: their noisy value, and copies of their noise."""

    def __init__(self, moments: NoisyMoments, noise: SimulatedNoise, n_rows: int | None) -> None:
        self.n_rows = n_rows
        self.noise = noise
        self._moments = moments
        self._steps = moments.noisy_steps / moments.quantum
        self._n_axes = moments.lattice.n_axes
        self._excess = 0.0 if n_rows is None else float(self._steps[:, 0].sum()) - n_rows
        self._all_variance = float(noise.variance.sum())

    def measured(self, linear: Linear, level: float) -> tuple[float, Floats]:
        """The noisy value of a function, and copies of its noise (n_draws,)."""
        coefficients = np.column_stack([linear.of_count, linear.of_sums])
        which, place = np.nonzero(coefficients)
        rows = linear.leaves[which] * (1 + self._n_axes) + place
        copies = self.noise.copies(level)
        drawn = coefficients[which, place].astype(np.float32) @ copies[rows] if len(rows) else np.zeros(copies.shape[1])
        share = self._explained(linear)
        return self.value(linear), np.asarray(drawn, dtype=np.float64) - share * self.noise.totals(level)

    def measured_each(self, linear: Linear, level: float) -> tuple[Floats, NDArray[np.float32]]:
        """The part of every leaf of a function: noisy values (n,), and copies of their noise (n, n_draws)."""
        steps = self._steps[linear.leaves]
        value = linear.of_count * steps[:, 0] + (linear.of_sums * steps[:, 1:]).sum(axis=1)
        copies = self.noise.copies(level)
        drawn = np.zeros((len(linear.leaves), copies.shape[1]), dtype=np.float32)
        for place in range(1 + self._n_axes):
            factors = linear.of_count if place == 0 else linear.of_sums[:, place - 1]
            used = np.flatnonzero(factors)
            if len(used):
                rows = linear.leaves[used] * (1 + self._n_axes) + place
                drawn[used] += factors[used, None].astype(np.float32) * copies[rows]
        if self.n_rows is not None:
            shares = linear.of_count * self.noise.variance[linear.leaves] / self._all_variance
            value = value - shares * self._excess
            drawn -= shares[:, None].astype(np.float32) * self.noise.totals(level)
        return np.asarray(value), drawn

    def value(self, linear: Linear) -> float:
        """The noisy value of a function, less what the known total explains of its noise."""
        steps = self._steps[linear.leaves]
        value = float(linear.of_count @ steps[:, 0] + (linear.of_sums * steps[:, 1:]).sum())
        return value - self._explained(linear) * self._excess

    def by_law(self, linear: Linear) -> SumByLaw | None:
        """A function of counts alone, whose noise has a law with a short formula; None where sums are in it."""
        if linear.of_sums.any():
            return None
        coefficients = np.full(len(self._steps), -self._explained(linear))
        coefficients[linear.leaves] += linear.of_count
        return SumByLaw(self.value(linear), coefficients, self.noise.of_counts)

    def by_copies(self, linear: Linear, level: float) -> SumByCopies:
        """A function, whose noise is ranked among copies of itself."""
        value, copies = self.measured(linear, level)
        return SumByCopies(value, copies, self.scale(linear))

    def scale(self, linear: Linear) -> float:
        """The standard deviation of a function's noise, by its law."""
        variance = self.noise.variance[linear.leaves]
        share = self._explained(linear)
        spread = float((variance * (linear.of_count**2 + (linear.of_sums**2).sum(axis=1))).sum())
        return math.sqrt(max(spread - share**2 * self._all_variance, 0.0))

    def _explained(self, linear: Linear) -> float:
        """How much of the noise on the sum of all counts, which is known where the total is, a function has in it."""
        if self.n_rows is None:
            return 0.0
        return float(linear.of_count @ self.noise.variance[linear.leaves]) / self._all_variance


def counts(
    certifier: Certifier, brackets: Sequence[Bracket], level: float, *, simultaneous: bool = False
) -> list[Between]:
    """How many rows lie in regions: whole numbers, from 0 to all rows."""
    sides = [side for found in brackets for side in (found.lower, found.upper)]
    laws = [certifier.by_law(side) for side in sides]
    needs_copies = simultaneous and None in laws  # all are ranked together
    sums: list[NoisySum] = [
        certifier.by_copies(side, level) if law is None or needs_copies else law
        for side, law in zip(sides, laws, strict=True)
    ]
    pairs = list(zip(sums[::2], sums[1::2], strict=True))
    return counts_between(pairs, certifier.n_rows, level, at_once=simultaneous)


def share(certifier: Certifier, part: Bracket, whole: Bracket, level: float) -> Between | None:
    """The share p of rows in one region among those in another that holds it: sum of 1[part] - p 1[whole]."""
    grid = np.linspace(0.0, 1.0, _POINTS + 1)

    def bound(of_part: Linear, of_whole: Linear) -> list[SumByCopies]:
        (a, drawn_a), (b, drawn_b) = certifier.measured(of_part, level), certifier.measured(of_whole, level)
        return candidates(grid, a - grid * b, drawn_a - drawn_b * grid[:, None])

    return ratio_between(bound(part.lower, whole.upper), bound(part.upper, whole.lower), level)


def mean(certifier: Certifier, found: Bracket, lines: LeafValues, axis: int, level: float) -> Between | None:
    """The mean m of a column over a region: sum over its rows of (x - m).

    Rows of leaves inside have x by a line in their offset. Rows of a leaf that is cut may be in the region or not, so
    their part lies between min(0, least - m) and max(0, largest - m) times the upper bound on their number.
    """
    n = found.n_inside
    ends = float(lines.least.min()), float(lines.largest.max())
    inside, cut = found.upper.restricted(np.arange(len(found.upper.leaves)) < n), np.arange(n, len(lines.mid))
    of_cut = Linear(found.upper.leaves[cut], found.upper.of_count[cut], found.upper.of_sums[cut])
    cut_value, cut_noise = certifier.measured_each(of_cut, level)
    count, count_noise = certifier.measured(inside, level)
    base = np.linspace(*ends, _POINTS + 1)
    joints = np.unique(np.concatenate([lines.least[cut], lines.largest[cut], base]))
    if len(joints) > 4 * _POINTS:
        joints = np.unique(np.concatenate([joints[:: len(joints) // (3 * _POINTS)], base]))

    def bound(slack: Floats, corner: Floats, sign: float) -> list[SumByCopies]:
        sums = np.zeros_like(inside.of_sums)
        sums[:, axis] = lines.half[:n]
        whole, whole_noise = certifier.measured(Linear(inside.leaves, (lines.mid + slack)[:n], sums), level)
        weights = sign * np.maximum(sign * (corner[:, None] - joints), 0.0)  # (n_cut, n)
        noise = whole_noise - count_noise * joints[:, None] + product(weights.T.astype(np.float32), cut_noise)
        return candidates(joints, whole - joints * count + cut_value @ weights, noise)

    # Corners move outward to the grid, so that between its points all is linear in m.
    up = joints[np.minimum(np.searchsorted(joints, lines.largest[cut]), len(joints) - 1)]
    down = joints[np.maximum(np.searchsorted(joints, lines.least[cut], side="right") - 1, 0)]
    return ratio_between(bound(lines.below, down, -1.0), bound(lines.above, up, 1.0), level)


# ------------------------------------------------------------------------------------------------------------ quantiles
# Certified quantiles: bounds on how many rows of a region lie at or below values of a column, for many values at
# once.
#
# Leaves that lie wholly below a value are added up once, in the order of the values; only those that the value cuts
# are bounded anew for each. From this the share q of the bounds on all rows of the region is taken away.


def quantile(
    certifier: Certifier,
    leaves: Leaves,
    moments: NoisyMoments,
    schema: Schema,
    axis: int,
    at: float,
    region: Region,
    found: Bracket,
    lines: LeafValues,
    level: float,
) -> Between | None:
    """Where a share q of a region's rows ends: by sums of 1[x <= t] - q at values t of a column, which grow with t."""
    column = schema[moments.lattice.axes[axis].name]
    least = universe(column)[0]
    asked = leaves.some(found.upper.leaves)
    ends = float(lines.least.min()), float(lines.largest.max())
    grid = np.unique(np.concatenate([lines.least, lines.largest, ends]))
    if len(grid) > _MOST_VALUES:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, _MOST_VALUES).astype(np.int64))]
    grid = np.unique([float(at_or_below(column, value)) for value in grid])

    @cache
    def cuts(t: float) -> tuple[NDArray[np.int8], Bracket]:
        below = {axis: ValueSet(((least, at_or_below(column, t)),))}
        parts = parts_of(asked, below, schema, moments)
        state = np.zeros(len(asked), dtype=np.int8)
        state[parts.inside], state[parts.cut] = 2, 1
        chosen = found.upper.leaves[state == 1]
        both = parts_of_some(leaves, joined(region, below), schema, moments, chosen)
        return state, bracket(leaves, both)

    def bounds(side: str, whole: Linear, other: Linear) -> list[SumByCopies]:
        each, each_noise = certifier.measured_each(whole, level)
        all_rows, all_noise = certifier.measured(other, level)
        sums, before = [], np.zeros(len(each), dtype=np.bool_)
        so_far, so_far_noise = 0.0, np.zeros(len(all_noise))
        for top in grid.tolist():
            state, cut = cuts(top)
            fresh = (state == 2) & ~before
            before |= fresh
            so_far += float(each[fresh].sum())
            so_far_noise = so_far_noise + each_noise[fresh].sum(axis=0)
            part, part_noise = certifier.measured(getattr(cut, side), level)
            sums.append(SumByCopies(so_far + part - at * all_rows, so_far_noise + part_noise - at * all_noise))
        return sums

    below, until = bounds("lower", found.lower, found.upper), bounds("upper", found.upper, found.lower)
    stretch = quantile_between([None, *below], [*until, None], level)
    if stretch is None:
        return None
    low, high = [ends[0], *grid.tolist()][stretch[0]], [*grid.tolist(), ends[1]][stretch[1]]
    return Between(min(low, high), min(low, high), max(low, high), is_cut=True)


def parts_of_some(leaves: Leaves, region: Region, schema: Schema, moments: NoisyMoments, chosen: Integers) -> Parts:
    """How a region lies in some leaves only."""
    parts = parts_of(leaves.some(chosen), region, schema, moments)
    return Parts(chosen[parts.inside], chosen[parts.cut], parts.along)


# ------------------------------------------------------------------------------------------------- values inside leaves
# Values of a column inside leaves: lines in the offset of a row between which its value lies.
#
# Along an even axis a value is linear in the offset, up to the length of a cell. Along an axis with pieces it
# is linear inside each piece; the deviation of a leaf of several pieces from one line is computed at the ends
# of its pieces.


class Stretches(NamedTuple):
    """Along an axis, stretches of places in which fine cells lie evenly: where each begins, in both."""

    slots: Floats
    lengths: Floats
    starts: Floats
    widths: Floats
    begins: Floats  # the fine cell of the first value, which may be a point before `starts`


class LeafValues(NamedTuple):
    """Of every leaf: x lies in mid + half u + [below, above] and in [least, largest]; nothing of leaves of nulls."""

    mid: Floats
    half: Floats
    below: Floats
    above: Floats
    least: Floats
    largest: Floats


def leaf_values(leaves: Leaves, index: int, axis: Axis) -> LeafValues:
    """What the shape of the tree says about a column's values, leaf by leaf, in physical numbers."""
    n = len(leaves)
    stretches = _stretches(axis)
    begin, size = leaves.place[:, index], leaves.size[:, index]
    end = begin + size - 1
    least, largest = np.full(n, np.inf), np.full(n, -np.inf)
    ends: list[tuple[Integers, Integers, Floats, Floats]] = []  # leaf, place, and bounds on the values there
    first = np.maximum(np.searchsorted(stretches.slots, begin, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(stretches.slots, end, side="right") - 1, 0)
    every = np.arange(n)
    for k in range(len(stretches.slots)):
        here = every[(first <= k) & (last >= k)]
        if not len(here):
            continue
        slot, length = stretches.slots[k], stretches.lengths[k]
        p0, p1 = np.maximum(begin[here], slot), np.minimum(end[here], slot + length - 1)
        for place in (p0, p1):
            low, high = _values_at(axis, stretches, k, place)
            least[here], largest[here] = np.minimum(least[here], low), np.maximum(largest[here], high)
            ends.append((here, place.astype(np.int64), low, high))
    is_measured = leaves.is_measured[:, index]
    # An offset of 1 is the edge of a leaf, which of whole numbers lies half a value past the last one.
    half = np.where(is_measured, (largest - least + (axis.kind != "real")) / 2, 0.0)
    mid = (least + largest) / 2
    below, above = np.zeros(n), np.zeros(n)
    slack = np.where(leaves.quantum % size == 0, 0.0, half / (2 * leaves.quantum))  # where offsets are rounded
    for here, place, low, high in ends:
        line = mid[here] + half[here] * leaves.offset(here, index, place)
        below[here] = np.minimum(below[here], low - line - slack[here])
        above[here] = np.maximum(above[here], high - line + slack[here])
    return LeafValues(mid, half, below, above, least, largest)


def _stretches(axis: Axis) -> Stretches:
    if axis.pieces is None:
        n_cells = float(axis.last + 1)
        return Stretches(*(np.array([number]) for number in (0.0, n_cells, 0.0, n_cells, 0.0)))
    table = place_table(axis.pieces)
    begins = np.where((table.points >= 0) & ~table.is_whole, table.points, table.starts)
    parts = (table.slots, table.lengths, table.starts, table.widths, begins)
    return Stretches(*(np.asarray(part, dtype=np.float64) for part in parts))


def _values_at(axis: Axis, stretches: Stretches, k: int, places: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value of rows at places of one stretch."""
    inside = places - stretches.slots[k]
    each = stretches.widths[k] / stretches.lengths[k]
    if axis.pieces is None:
        fine, stop = inside, inside + 1.0
    else:
        # Behind a point every other place holds a cell; the middle of a fine cell says which cell it is in.
        fine = stretches.starts[k] + inside * each - 0.5
        stop = stretches.starts[k] + np.minimum(inside + 2.0, stretches.lengths[k]) * each + 0.5
        fine = np.where(inside == 0, stretches.begins[k], np.maximum(fine, stretches.starts[k]))
        stop = np.minimum(stop, stretches.starts[k] + stretches.widths[k])
    if axis.kind == "real":
        low, high = axis.origin + fine / axis.scale, axis.origin + stop / axis.scale
        return np.clip(low, axis.low, axis.high), np.clip(high, axis.low, axis.high)
    lowest, highest = int(axis.low), int(axis.high)
    low, high = lowest + np.floor(fine) * axis.step, lowest + np.ceil(stop) * axis.step - 1
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)
