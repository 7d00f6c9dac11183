"""Where leaves begin and end, in a column's own values: numbers, days, moments, the values of a list."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.columns import Boolean, Bounded, Category, Column, Integer, Real
from spinney.forest.release.column_model import ColumnModel
from spinney.release.frames import nearest_multiples
from spinney.schema.lattice import integer_bounds


def leaf_ends(model: ColumnModel, column: Column) -> list[tuple[Any, Any]]:
    """For every leaf its lowest and its highest value, (None, None) for null. The high end of reals is not in it."""
    ends = _reals(model, column) if isinstance(column, Real) else _wholes(model, column)
    return [(None, None) if is_null else end for end, is_null in zip(ends, model.is_null.tolist(), strict=True)]


def _reals(model: ColumnModel, column: Real) -> list[tuple[Any, Any]]:
    low = np.clip(model.low, column.low, column.high)
    high = np.clip(model.low + model.length, column.low, column.high)
    if column.multiple_of is not None:
        # Cells lie around multiples, and so do leaves: a quarter of a step leads inside.
        low = nearest_multiples(model.low + column.multiple_of / 4, column)
        high = nearest_multiples(model.low + model.length - column.multiple_of / 4, column)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _wholes(model: ColumnModel, column: Column) -> list[tuple[Any, Any]]:
    first = model.low.astype(np.int64)
    last = first + np.maximum(model.length.astype(np.int64), 1) - 1
    if isinstance(column, (Category, Boolean)):
        values: tuple[Any, ...] = column.values if isinstance(column, Category) else (False, True)
        return [(values[a], values[b]) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    assert isinstance(column, Bounded)
    lowest, highest = integer_bounds(column)
    first, last = np.minimum(first + lowest, highest), np.minimum(last + lowest, highest)
    if isinstance(column, Integer) and column.multiple_of is not None:
        first, last = nearest_multiples(first, column), nearest_multiples(last, column)
    return [(column.logical(a), column.logical(b)) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
