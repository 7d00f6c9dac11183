"""Where leaves begin and end, in a column's own values: numbers, dates, timestamps, the values of a list."""

from __future__ import annotations

from typing import Any

from spinney.columns import Column
from spinney.forest.release.column_model import ColumnModel


def leaf_ends(model: ColumnModel, column: Column) -> list[tuple[Any, Any]]:
    """For every leaf its lowest and its highest value, (None, None) for null. The high end of reals is not in it."""
    ends = column.leaf_ends(model.low, model.length)
    return [(None, None) if is_null else end for end, is_null in zip(ends, model.is_null.tolist(), strict=True)]
