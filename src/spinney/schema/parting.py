"""Where rules part a column: ranges of cells whose values all rules treat alike, and where values of each may lie.

Every set of values that a clause names ends somewhere. Between two such ends all values are in the same sets, which is
the *label* of a part. Ends are public, so a tree may be cut there before it looks at rows; values of different labels
never share a state, and what is drawn stays within its part to the last float. A cell that holds the end of a range
goes with the side whose end is written shorter: somebody stated 15.0, and 14.999999999999998 follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, exact, whole_range
from spinney.columns.steps import numbers_rounding_to
from spinney.errors import SchemaError
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import Axis
from spinney.schema.ruler import Cells
from spinney.schema.rules import Clause
from spinney.schema.rules.values import Number, ValueSet, after, before, universe

Floats = NDArray[np.float64]

# Of steps of floats, a part ends this much before the middle between two multiples, which may be rounded either way.
_SHY = 2.0**-20


@dataclass(frozen=True, slots=True, eq=False)
class Parting:
    """A column in parts, in ascending order. Null is apart from all of them."""

    starts: tuple[Number, ...]  # (n_parts,): the least physical number of each
    first: Cells  # (n_parts,): the first cell of each
    labels: NDArray[np.int64]  # (n_parts,): parts of equal labels are in the same sets
    begins: Floats  # (n_parts,): no place of a part is below this
    stops: Floats  # (n_parts,): nor at or above this
    sets: tuple[ValueSet, ...]  # those that clauses name
    is_in: NDArray[np.bool_]  # (n_sets, n_labels): whether values of a label are in a set
    possible: NDArray[np.bool_]  # (n_labels + 1,): whether a row can have a value of a label, or null; all, unless told

    @property
    def n_labels(self) -> int:
        return int(self.is_in.shape[1])

    def labels_of(self, first: Cells) -> NDArray[np.int64]:
        """The labels of ranges that begin at these cells."""
        return self.labels[self._part_of_cells(first)]

    def labels_at(self, places: Floats) -> NDArray[np.int64]:
        """The labels of ranges that begin at these places, as `fenced` left them."""
        return self.labels[np.searchsorted(self.begins[1:], places, side="right")]

    def fenced(self, first: Cells, low: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Where ranges of cells lie, within the bounds of their parts."""
        part = self._part_of_cells(first)
        stop = low + length
        begins = np.clip(low, self.begins[part], np.maximum(self.begins[part], np.nextafter(self.stops[part], -np.inf)))
        stops = np.minimum(np.maximum(stop, begins), self.stops[part])
        lengths = np.where(length > 0, np.maximum(stops - begins, 0.0), 0.0)
        is_long = begins + lengths > self.stops[part]  # sums of floats are rounded, here downwards
        return begins, np.where(is_long, np.nextafter(lengths, 0.0), lengths)

    def in_words(self, part: int, column: Column) -> str:
        """The values of a part."""
        low, high = self.starts[part], universe(column)[1]
        if part + 1 < len(self.starts):
            high = before(self.starts[part + 1])
        if isinstance(column, Bounded):
            if column.is_whole or column.spacing is not None:
                high = column.aligned(high if column.is_whole else exact(high), up=False)
            low, high = column.logical(low), column.logical(high)
            return str(low) if low == high else f"{low}..{high}"
        return ", ".join(repr(value) for value in column.listed[int(low) : int(high) + 1])

    def _part_of_cells(self, first: Cells) -> NDArray[np.int64]:
        return np.maximum(np.searchsorted(self.first, first, side="right") - 1, 0)


def partings(
    clauses: Sequence[Clause], schema: Mapping[str, Column], axes: Mapping[str, ColumnAxis]
) -> dict[str, Parting]:
    """The parts of every column that a clause is about."""
    sets: dict[str, dict[ValueSet, None]] = {}
    for clause in clauses:
        for name, allowed in clause.items():
            sets.setdefault(name, {})[allowed] = None
    return {name: _parting(name, schema[name], axes[name], tuple(named)) for name, named in sets.items()}


def _parting(name: str, column: Column, cells: ColumnAxis, sets: tuple[ValueSet, ...]) -> Parting:
    least, most = universe(column)
    starts = {low for one in sets for low, _ in one.ranges}
    starts |= {after(high) for one in sets for _, high in one.ranges if high < most}
    starts = {least, *(_in_steps(start, column) for start in starts)}
    parts: list[tuple[Number, tuple[bool, ...]]] = []  # where each begins, and its label
    for start in sorted(starts):
        label = tuple(start in one for one in sets)
        if not parts or parts[-1][1] != label:
            parts.append((start, label))
    numbers = {label: place for place, label in enumerate(dict.fromkeys(label for _, label in parts))}
    first = np.array([cells.axis.first, *(_first_cell(start, column, cells) for start, _ in parts[1:])], dtype=np.int64)
    if (np.diff(first) <= 0).any() or first[-1] > cells.axis.last:
        raise SchemaError(
            f"column {name!r}: rules tell values apart that lie in one cell of it; leave out its bits, or state ends "
            "of ranges that are further apart"
        )
    ends = [fence(column, start) for start, _ in parts[1:]]
    return Parting(
        tuple(start for start, _ in parts),
        first,
        np.array([numbers[label] for _, label in parts], dtype=np.int64),
        np.array([-np.inf, *(begin for _, begin in ends)]),
        np.array([*(stop for stop, _ in ends), np.inf]),
        sets,
        np.array(list(numbers), dtype=np.bool_).reshape(len(numbers), len(sets)).T,
        np.ones(len(numbers) + 1, dtype=np.bool_),
    )


def _in_steps(start: Number, column: Column) -> Number:
    """The least value of a column that is not below a number."""
    if not isinstance(column, Bounded):
        return start
    if column.is_whole:
        return int(column.aligned(start, up=True))
    return start if column.spacing is None else float(column.aligned(exact(start), up=True))


def _first_cell(start: Number, column: Column, cells: ColumnAxis) -> int:
    """The first cell of a part that begins at a number."""
    axis = cells.axis
    if not isinstance(start, float):
        return -(-int(fence(column, start)[1]) // axis.step)
    last = math.nextafter(start, -math.inf)
    if column.spacing is not None or len(repr(start)) <= len(repr(last)):
        cell = _real_cell(start, axis)
        cell -= cells.slack(cell)
    else:
        cell = _real_cell(last, axis)
        cell += cells.slack(cell) + 1
    return min(max(cell, axis.first), axis.last + 1)


def _real_cell(number: float, axis: Axis) -> int:
    return math.floor(min(max((number - axis.origin) * axis.scale, axis.first), axis.last))


def fence(column: Column, start: Number) -> tuple[float, float]:
    """Where places end that are before a number, and where those from it on begin."""
    if not isinstance(column, Bounded):
        return float(start), float(start)
    if column.is_whole:
        begin, _ = numbers_rounding_to(start, start, column) if column.step > 1 else (start, start)
        place = float(begin - whole_range(column)[0])
        return place, place
    if column.spacing is None:
        return float(start), float(start)
    step, number = column.spacing, exact(start)
    shy = float(step) * (0.5 - _SHY)
    return float(number - step) + shy, float(number) - shy
