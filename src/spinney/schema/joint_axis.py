"""The lattice of a joint tree: columns that span decades or centuries have pieces, all others even cells.

Which columns these are follows from the schema. An ordered column without stated `bits` and of more than 256 values has
pieces if it is

    a whole number, or one in steps    with 0 among its values, or with bounds that differ by a factor of 20
    any other real                     with the same, if one bound is 100 or more away from 0, and ten times as far as
                                       the other: amounts, but neither scores nor coordinates
    a date, a datetime                 always

Times of day, categories, and columns with stated `bits` have even cells.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from spinney.columns import Bounded, Real
from spinney.schema.column_axis import column_axis
from spinney.schema.lattice import Axis, Lattice, tree_lattice
from spinney.schema.pieces import calendar_pieces, number_pieces, spans_decades
from spinney.schema.table import Schema

# Of an axis with pieces: fewer would not resolve what lies inside a piece.
_LEAST_BITS, _MOST_BITS = 15, 20
# Reals without steps whose bounds are nearer to 0, or about as far on both sides of it, are taken for measurements.
_LEAST_AMOUNT, _LOPSIDED = 100, 10
# As many values have a cell each, which is as good as any piece.
_FEW_VALUES = 256
# A tree of more columns does not get as far down as to the points of pieces, and pays for them all the same.
_MOST_COLUMNS_WITH_POINTS = 5


def joint_lattice(schema: Schema) -> Lattice:
    """The lattice of a tree over all columns at once.

    An axis with pieces has 60 / (number of columns) bits, between 15 and 20. Others are those of `tree_lattice`; among
    many columns of which some have pieces they have as many bits, for their bounds may be as generous.
    """
    bits = min(_MOST_BITS, max(_LEAST_BITS, 60 // len(schema)))
    has_points = len(schema) <= _MOST_COLUMNS_WITH_POINTS
    pieced = {
        name: axis
        for name, column in schema.items()
        if isinstance(column, Bounded) and (axis := _pieced_axis(name, column, bits, has_points)) is not None
    }
    even = tree_lattice(schema, least_bits=_LEAST_BITS) if pieced and not has_points else tree_lattice(schema)
    return Lattice(tuple(pieced.get(axis.name, axis) for axis in even.axes))


def columns_with_pieces(schema: Schema) -> list[str]:
    """The columns that have pieces in a joint tree, of a schema with all bounds."""
    return [axis.name for axis in joint_lattice(schema).axes if axis.pieces is not None]


@lru_cache(maxsize=1024)
def _pieced_axis(name: str, column: Bounded, bits: int, has_points: bool) -> Axis | None:
    """The axis of a column that has pieces."""
    found = column_axis(name, column)
    ruler = found.ruler
    if ruler is None or column.bits is not None or ruler.n_cells <= _FEW_VALUES:
        return None
    n_cells = 1 << bits
    if not column.spans_decades:
        if not ruler.landmarks:
            return None
        pieces = calendar_pieces(ruler, n_cells)
    elif found.unit is not None and spans_decades(ruler) and not _is_measured(column):
        pieces = number_pieces(ruler, n_cells, unit=found.unit, offset=found.offset, has_points=has_points)
    else:
        return None
    return replace(found.axis, bits=bits + column.nullable, first=0, last=n_cells - 1, pieces=pieces)


def _is_measured(column: Bounded) -> bool:
    """Whether a number looks like a score or a coordinate, which an even axis suits better, and not like an amount."""
    if not isinstance(column, Real) or column.spacing is not None:
        return False
    near, far = sorted((abs(column.low), abs(column.high)))
    return bool(far < _LEAST_AMOUNT or far < _LOPSIDED * near)
