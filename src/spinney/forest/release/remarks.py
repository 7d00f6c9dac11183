"""What a forest's leaves say about the schema: rows that pile up at a bound, and columns of too few cells."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.columns import Bounded
from spinney.forest.release.column_model import ColumnModel
from spinney.release.remarks import Ranges, of_one_range, of_piles
from spinney.schema.table import Schema


def forest_remarks(columns: Mapping[str, ColumnModel], schema: Schema, structure: str) -> list[str]:
    """Remarks on all columns; none where nothing was measured, which the card says."""
    if structure == "uniform":
        return []
    remarks: list[str] = []
    for name, model in columns.items():
        column = schema[name]
        if not isinstance(column, Bounded):
            continue
        held = ~model.is_null & (model.weights > 0)
        ranges = Ranges(model.low[held], model.length[held], model.weights[held])
        remarks += of_piles(name, column, ranges)
        if column.bits is not None:  # otherwise the leaves are as short as the budget allows
            remarks += of_one_range(name, column, ranges, "raise or leave out its bits")
    return remarks
