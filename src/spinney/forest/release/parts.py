"""Parts: what a question asks of each variable of a forest, leaf by leaf, whatever the leaves weigh. PUBLIC.

A condition leaves a share of every leaf, between 0 and 1. Leaves are given equal weights and a state each before
they are cut, so that what is left of a state is what is left of a leaf: the same code reads conditions here and in
`sample(where=)`, with derived columns and places, and a leaf of weight 0 is cut like any other. Shares are those of
rows as they are drawn, by size in long leaves; which leaves a condition touches, and which are whole, is geometry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Bounded, Column, Number, Real, exact
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel, Floats, graded_leaves, length_within
from spinney.forest.release.conditions import Restriction, asked_of_modelled, condition, part_starts
from spinney.forest.release.places import PlaceModel
from spinney.forest.release.related import Asked
from spinney.grid.axes import column_axis
from spinney.release.answers.question import allowed, plain
from spinney.schema.rules.base import Number as RuleNumber
from spinney.schema.rules.base import ValueSet
from spinney.text import did_you_mean

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# A leaf that is no wider than this part of its numbers may hold one number alone, in single precision.
_NARROW = 2.0**-20
# Of a step: edges of leaves are decimals in floats.
_NEAR = 1e-6
# Also of a step: edges of leaves lie half a step from values, or at the column's bounds.
_ASIDE = 0.25
# Leaves begin where their cells do, just below round numbers.
_AT_THE_EDGE = 1e-4
# Leaves side by side that are less alike than this hold piles, and one of them may be all that a leaf has: the interval
# reaches over it.
_UNEVEN, _PILED = 0.03, 0.35
# A leaf of more values than this may hold them at some of them only, such as full hours.
_LONG = 100

Leaves = ColumnModel | PlaceModel
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of a column in what is left of its leaves (n_leaves,); 0 where nothing is."""

    low: Floats  # the least that a row can have
    high: Floats  # the largest
    mean: Floats  # of rows as they are drawn
    square: Floats  # mean of squares
    spacing: Fraction | None = None  # how far values are apart; None where they are dense

    @property
    def step(self) -> float:
        return float(self.spacing or 0)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What is left of a variable's leaves under conditions, and the values there, where the question is about them."""

    leaves: Leaves
    share: Floats  # (n_leaves,): how many of a leaf's rows meet the conditions, as rows are drawn
    touches: Flags  # (n_leaves,): whether any value of a leaf does
    is_whole: Flags  # (n_leaves,): whether all values of a leaf do, to the resolution of the column's cells
    values: Values | None = None
    is_pile: Flags | None = None  # (n_leaves,): cut leaves whose rows may all be one value, and on one side
    at_edge: Floats | None = None  # (n_leaves,): of leaves at whose edge a range ends, how far rows may be there
    taken: Floats | None = None  # (n_leaves,): of leaves that conditions cut, how much of their length is left


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A column's leaves, those that rows are drawn from, which are parts of them, and the column."""

    leaves: ColumnModel
    finer: ColumnModel
    leaf: NDArray[np.int64]  # (n_finer,): which leaf each is a part of
    column: Column

    def averaged(self, numbers: Floats) -> Floats:
        """Numbers of finer leaves averaged over the rows of each leaf; by length where they weigh nothing."""
        reach = np.maximum(self.finer.length, self.finer.length == 0)
        weights = np.where(self.leaves.weights[self.leaf] > 0, self.finer.weights, reach)
        sums = np.bincount(self.leaf, weights=weights, minlength=len(self.leaves.low))
        found = np.bincount(self.leaf, weights=weights * numbers, minlength=len(sums))
        return np.divide(found, sums, out=np.zeros_like(found), where=sums > 0)


def valued(parts: Mapping[int, Part]) -> tuple[int, Part, Values]:
    """The variable whose values are asked for, what is left of its leaves, and the values there."""
    return next((variable, part, part.values) for variable, part in parts.items() if part.values is not None)


def parts_of(
    release: ForestRelease,
    where: Mapping[str, Any],
    *,
    values: str | None = None,
    leaves: Mapping[str, ColumnModel] | None = None,
) -> dict[int, Part]:
    """What a question asks of variables, by their numbers; ParameterErrors as `sample(where=)` raises them.

    Args:
        release: a forest.
        where: conditions by column.
        values: a column whose values are asked for, of rows in which it is not null.
        leaves: other leaves than the release's of some columns.
    """
    _check_known(release, where)
    schema = release.schema._as_drawn
    numbers = {name: number for number, name in enumerate(release.variables)}
    labels = {name: label for label, place in release.places.items() for name in place.names}
    starts = part_starts(release.schema) if where else {}
    asked = asked_of_modelled(where, release.schema)
    parts: dict[int, Part] = {}
    of_places: dict[str, dict[str, list[Any]]] = {}
    for name, several in asked.items():
        if name in labels:
            of_places.setdefault(labels[name], {})[name] = several
            continue
        drawn = _drawn(release, name, schema[name], leaves or {})
        number = numbers[name]
        for wanted in several:
            cut = _with_edges(_cut(name, drawn, wanted, starts.get(name, ())), drawn.column, wanted, release, number)
            parts[number] = cut if number not in parts else _both(parts[number], cut)
    for label, conditions in of_places.items():
        parts[numbers[label]] = _cut_place(release.places[label], schema, conditions)
    for name in asked:
        # A condition that all values meet says nothing, and makes no table of more columns necessary.
        if name in labels or name == values or len(parts) <= (values is None):
            continue
        if all(_values_of(name, schema[name], wanted).has_all(schema[name]) for wanted in asked[name]):
            del parts[numbers[name]]
    if values is not None:
        _check_has_values(values, release)
        drawn = _drawn(release, values, schema[values], leaves or {})
        part = parts.get(numbers[values]) or _all_of(drawn.leaves)
        parts[numbers[values]] = _with_values(part, drawn, asked.get(values, []))
    return parts


def _values_of(name: str, column: Column, wanted: Any) -> ValueSet:
    return wanted.allowed if isinstance(wanted, Asked) else allowed(name, column, wanted)


def _check_known(release: ForestRelease, where: Mapping[str, Any]) -> None:
    for name in where:
        if name not in release.schema or not release.schema[name].is_read:
            known = [column for column, kind in release.schema.items() if kind.is_read]
            raise ParameterError(f"where: {name!r} is not a column that the model knows{did_you_mean(name, known)}")


def _check_has_values(name: str, release: ForestRelease) -> None:
    column = release.schema[name]
    if not isinstance(column, (Number, Boolean)):
        raise ParameterError(
            f"column {name!r} is of type {column.type_name}, and means and quantiles are those of numbers; ask for "
            "count() or proportion()"
        )
    if name not in release.columns:
        is_place = any(name in place.names for place in release.places.values())
        why = "is part of a place" if is_place else "is computed from other columns"
        raise ParameterError(
            f"column {name!r} {why}, and a forest has means and quantiles of columns by themselves only; ask for "
            f"count() or proportion() with ranges of {name!r}"
        )


def _drawn(release: ForestRelease, name: str, column: Column, others: Mapping[str, ColumnModel]) -> _Drawn:
    if name not in others:
        return _Drawn(release.columns[name], *release.finer_leaves[name], column)
    leaves = others[name]
    finer, leaf = graded_leaves(leaves, column) if release.is_graded else (leaves, np.arange(len(leaves.low)))
    return _Drawn(leaves, finer, leaf, column)


def _all_of(leaves: ColumnModel) -> Part:
    every = np.ones(len(leaves.low), dtype=np.bool_)
    return Part(leaves, np.ones(len(leaves.low)), every, every)


def _unit(leaves: ColumnModel) -> ColumnModel:
    """The leaves with equal weights, each a state of its own."""
    n_leaves = len(leaves.low)
    return replace(leaves, weights=np.ones(n_leaves), states=np.arange(n_leaves, dtype=np.int32), n_states=n_leaves)


def _cut(name: str, drawn: _Drawn, wanted: Any, starts: Sequence[RuleNumber]) -> Part:
    leaves, column = drawn.leaves, drawn.column
    unit = _cells(_unit(leaves), column)
    cut = condition(name, column, unit, wanted, starts=starts)
    if isinstance(column, Real) and _is_one_real(column, wanted):
        # One number of a range without steps: only a leaf of that number alone says how many rows have it, about.
        one = plain(wanted)
        is_point = leaves.points_at(float(column.physical(one[0] if isinstance(one, tuple) else one)))
        return Part(leaves, is_point.astype(np.float64), (cut.left > 0) | is_point, np.zeros_like(is_point))
    touches, is_whole = cut.left > 0, cut.left >= 1.0
    finer = condition(name, column, _cells(_unit(drawn.finer), column), wanted, starts=starts).left
    share = drawn.averaged(np.clip(finer, 0.0, 1.0))
    if not isinstance(column, Real):
        return Part(leaves, np.where(is_whole, 1.0, share), touches, is_whole, taken=np.clip(cut.left, 0.0, 1.0))
    values = _values_of(name, column, wanted)
    if values.ranges and column.spacing is not None and column_axis(name, column).unit == column.spacing:
        touches, is_whole = _in_steps(unit, column, values)
        share = np.where(is_whole, 1.0, np.where(touches, share, 0.0))
        return Part(leaves, share, touches, is_whole, taken=np.clip(cut.left, 0.0, 1.0))
    # Shares of real ranges are rounded: a leaf is whole if both its ends are, to the float.
    is_whole = np.where(leaves.is_null, is_whole, _keeps_ends(unit, cut))
    ends = _ends_asked(column, wanted)
    # The last leaf holds its upper end, which ranges leave out that end just before it.
    top = float(column.physical(column.high))
    if ends is not None and ends[1] < top:
        is_whole = is_whole & (leaves.is_null | (leaves.low + leaves.length < np.nextafter(top, -np.inf)))
    # A leaf of one number is a cell around it. Where a condition ends at the number itself, so does the cell.
    is_end = (leaves.length == 0) & ~leaves.is_null & np.isin(leaves.low, ends or ())
    touches, is_whole = touches | is_end, is_whole | is_end
    is_pile = (leaves.length <= _NARROW * np.abs(leaves.low)) & touches & ~is_whole & ~leaves.is_null
    share = np.where(is_whole, 1.0, np.where(is_pile, 0.5, share))
    is_decided, holds = _decided(leaves, ends)
    is_decided &= touches & ~is_whole
    taken, is_pile = np.clip(cut.left, 0.0, 1.0), is_pile & ~is_decided
    return Part(leaves, np.where(is_decided, holds, share), touches, is_whole, is_pile=is_pile, taken=taken)


def _ends_asked(column: Real, wanted: Any) -> tuple[float, float] | None:
    """The ends of a range that was asked for, infinite where it has none; None where no range was."""
    wanted = None if isinstance(wanted, Asked) else plain(wanted)
    if not isinstance(wanted, tuple):
        return None
    low, high = (None if end is None else float(column.physical(end)) for end in wanted)
    return -np.inf if low is None else low, np.inf if high is None else high


def _with_edges(part: Part, column: Column, wanted: Any, release: ForestRelease, number: int) -> Part:
    """The part with leaves at whose lower edge a range ends: of a column in steps that nobody stated, all may be there.

    How much of them is told by leaves that lie side by side and are as long: where values are dense they hold much the
    same, where they come in steps one may hold all and the other nothing.
    """
    leaves = part.leaves
    measured = None if release.measured is None else release.measured.columns[number]
    if measured is None or not isinstance(column, Bounded) or not isinstance(leaves, ColumnModel):
        return part
    if isinstance(column, Real) and column.spacing is None:
        is_cut = part.touches & ((part.share < _AT_THE_EDGE) | (part.share > 1 - _AT_THE_EDGE))
        # The largest value that a range takes, and the largest below it that it leaves.
        low, high = _ends_asked(column, wanted) or (np.inf, np.inf)
        is_edge = (is_cut | np.isin(leaves.low, [high, np.nextafter(low, -np.inf)])) & (leaves.length > 0)
    else:
        # A range may take a value or two of a leaf, or all but these.
        left = part.share if part.taken is None else part.taken
        taken = np.minimum(left, 1.0 - left) * leaves.length
        is_edge = part.touches & (taken < 1.5 * column.step) & (leaves.length > _LONG * column.step)
    is_edge &= ~part.is_whole & ~leaves.is_null
    if not is_edge.any():
        return part
    weights, length = leaves.weights, leaves.length
    alike = np.flatnonzero((np.abs(length[1:] - length[:-1]) <= _NEAR * length[1:]) & (length[1:] > 0))
    both, gap = weights[alike] + weights[alike + 1], weights[alike] - weights[alike + 1]
    explained = 2 * measured.noise.std**2 + both  # noise, and the luck of rows
    uneven = float((gap**2 - explained).sum()) / max(float((both**2 - explained).sum()), 1e-9) if len(alike) else 1.0
    doubt = min(max(uneven, 0.0), 1.0) if uneven < _UNEVEN else max(min(uneven, 1.0), _PILED)
    # The first and the last value of a column may be codes, whatever leaves beside each other hold.
    end = leaves.low + leaves.length
    is_last = (leaves.low <= leaves.low[~leaves.is_null].min()) | (end >= end[~leaves.is_null].max())
    return replace(part, at_edge=np.where(is_edge, np.where(is_last, 1.0, doubt), 0.0))


def _decided(leaves: ColumnModel, ends: tuple[float, float] | None) -> tuple[Flags, Flags]:
    """Which leaves of one number a range takes or leaves as a whole, and which of them it takes.

    An end beside the number, by more than one float and less than single precision tells apart, decides nothing.
    """
    if ends is None:
        return np.zeros(len(leaves.low), dtype=np.bool_), np.zeros(len(leaves.low), dtype=np.bool_)
    is_one, number = (leaves.length == 0) & ~leaves.is_null, leaves.low
    for end in ends:
        away = np.abs(number - end)
        is_one = is_one & ((away <= np.spacing(np.abs(number))) | (away > _NARROW * np.abs(number)))
    return is_one, (number >= ends[0]) & (number <= ends[1])


def _cells(leaves: ColumnModel, column: Column) -> ColumnModel:
    """The leaves with real ones of one number as the cells that they stand for: rows beside the number are in them."""
    return leaves.filling_gaps(shortest=0.0) if isinstance(column, Real) else leaves


def _in_steps(cells: ColumnModel, column: Real, values: ValueSet) -> tuple[Flags, Flags]:
    """Which leaves hold some values of a range, and which no others, where a cell holds one value.

    Edges of leaves lie between values, and are rounded: values are told apart by their numbers in steps.
    """
    step, (least, most) = float(column.spacing or 1), column._first_and_last()
    first = np.maximum(np.ceil(cells.low / step - _ASIDE), round(least / step))
    last = np.minimum(np.floor((cells.low + cells.length) / step + _ASIDE), round(most / step))
    begin, end = max(exact(values.ranges[0][0]), least), min(exact(values.ranges[-1][1]), most)
    low, high = (round(column._aligned(number, up=up) / step) for number, up in ((begin, True), (end, False)))
    is_value = ~cells.is_null
    return is_value & (first <= high) & (last >= low), is_value & (first >= low) & (last <= high)


def _is_one_real(column: Real, wanted: Any) -> bool:
    if column.multiple_of is not None or isinstance(wanted, Asked):
        return False
    wanted = plain(wanted)
    return wanted is not None and (not isinstance(wanted, tuple) or wanted[0] == wanted[1])


def _keeps_ends(before: ColumnModel, cut: Restriction) -> Flags:
    """Which leaves begin and end where they did."""
    kept, after = np.zeros(len(before.low), dtype=np.bool_), cut.model
    here = np.flatnonzero(after.weights > 0)
    at = after.states[here]
    length = np.where(before.length > 0, length_within(before.low, before.low + before.length), 0.0)
    kept[at] = (after.low[here] == before.low[at]) & (after.length[here] == length[at])
    return kept


def _both(one: Part, other: Part) -> Part:
    """Two conditions on a column; of a leaf that both cut, at different ends, what overlaps is left."""
    overlap = np.clip(one.share + other.share - 1.0, 0.0, 1.0)
    share = np.where(one.is_whole, other.share, np.where(other.is_whole, one.share, overlap))
    piles = [part.is_pile for part in (one, other) if part.is_pile is not None]
    is_pile = np.logical_or.reduce(piles) if piles else None
    edges = [part.at_edge for part in (one, other) if part.at_edge is not None]
    at_edge = np.maximum.reduce(edges) if edges else None
    touches, is_whole = one.touches & other.touches, one.is_whole & other.is_whole
    return Part(one.leaves, share, touches, is_whole, is_pile=is_pile, at_edge=at_edge)


def _cut_place(place: PlaceModel, schema: Mapping[str, Column], conditions: Mapping[str, list[Any]]) -> Part:
    n_regions = len(place.states)
    near = [schema[name] for name in place.names]
    unit = replace(place, weights=np.ones(n_regions), states=np.arange(n_regions, dtype=np.int32), n_states=n_regions)
    share = np.ones(n_regions)
    for name, several in conditions.items():
        for wanted in several:
            index = place.names.index(name)
            near[index], unit, left = unit.restricted(index, near, wanted)
            share = share * np.clip(left, 0.0, 1.0)
            unit = replace(unit, weights=np.where(share > 0, 1.0, 0.0))
    return Part(place, share, share > 0, share >= 1.0)


def _with_values(part: Part, drawn: _Drawn, conditions: Sequence[Any]) -> Part:
    """The part with the values of its leaves, nulls left out."""
    leaves, column = drawn.leaves, drawn.column
    low, high = _ends(leaves, column)
    finer_low, finer_high = _ends(drawn.finer, column)
    for condition_on in conditions:
        wanted = condition_on if isinstance(condition_on, Asked) else plain(condition_on)
        if wanted is None or isinstance(wanted, list) or not isinstance(column, Bounded):
            continue
        least: float | None
        most: float | None
        if isinstance(wanted, Asked):
            if len(wanted.allowed.ranges) != 1:
                continue
            least, most = (float(end) for end in wanted.allowed.ranges[0])
        else:
            ends = wanted if isinstance(wanted, tuple) else (wanted, wanted)
            least, most = (None if end is None else float(column.physical(end)) for end in ends)
        low, high = np.clip(low, least, most), np.clip(high, least, most)
        finer_low, finer_high = np.clip(finer_low, least, most), np.clip(finer_high, least, most)
    middle, width = (finer_low + finer_high) / 2, finer_high - finer_low
    # Where a condition cuts, what a finer leaf has left of its rows goes with what it has left of its length.
    whole_low, whole_high = _ends(drawn.finer, column)
    left = np.divide(width, whole_high - whole_low, out=np.ones_like(width), where=whole_high > whole_low)
    rows = drawn.averaged(left)
    mean, square = drawn.averaged(left * middle), drawn.averaged(left * (middle**2 + width**2 / 12))
    mean, square = (np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0) for sums in (mean, square))
    is_value = ~leaves.is_null
    mean = np.where(is_value, np.clip(mean, low, high), 0.0)
    square = np.where(is_value, np.maximum(square, mean**2), 0.0)
    values = Values(low, high, mean, square, column.spacing)
    share, touches = np.where(is_value, part.share, 0.0), part.touches & is_value
    return Part(leaves, share, touches, part.is_whole & is_value, values, part.is_pile, part.at_edge)


def _ends(leaves: ColumnModel, column: Column) -> tuple[Floats, Floats]:
    """The least and the largest value of each leaf, as a table shows them."""
    if not isinstance(column, Bounded):
        return leaves.low, leaves.low
    if isinstance(column, Real) and column.spacing is not None:
        return _ends_in_steps(leaves, column, float(column.spacing))
    last = np.maximum(leaves.length - 1.0, 0.0) if column.is_whole else leaves.length
    return column._to_floats(leaves.low), column._to_floats(leaves.low + last)


def _ends_in_steps(leaves: ColumnModel, column: Real, step: float) -> tuple[Floats, Floats]:
    """The first and the last step inside each leaf, or the nearest one where a leaf lies between two."""
    top = float(column.physical(column.high))
    end = leaves.low + leaves.length
    first = np.ceil(leaves.low / step - _NEAR)
    last = np.floor(np.where(end >= top, top / step + _NEAR, end / step - _NEAR))
    nearest = np.rint((leaves.low + leaves.length / 2) / step)
    first, last = (np.where(first > last, nearest, at) for at in (first, last))
    return column._to_floats(first * step), column._to_floats(last * step)
