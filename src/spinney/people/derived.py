"""What a person's rows are told by beside their own values: how many there are, first values, differences. SENSITIVE.

Everything here is a function of one person's rows (`release.relative` says of which columns there are differences).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Bounded, Real, whole_range
from spinney.people.release.names import count_name, first_name
from spinney.people.release.relative import learnt_schema, relative_columns
from spinney.schema.people import RowsShape
from spinney.tables.engines.memory import MemorySource, open_memory
from spinney.tables.people import GatheredRows

Starts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """The kept rows of one table as they are learnt, in the order of persons. SENSITIVE."""

    source: MemorySource
    starts: Starts
    one: MemorySource  # one random row of every person that has any

    @property
    def n_rows(self) -> NDArray[np.int64]:
        """How many rows every person has."""
        return np.diff(self.starts)

    def __repr__(self) -> str:
        return "HeldRows(sensitive)"


def held_rows(gathered: GatheredRows, rows: RowsShape) -> tuple[HeldRows, dict[str, Any]]:
    """The rows as they are learnt, and the columns of persons that `made_columns` names, as Arrow arrays."""
    table, starts = gathered.table, gathered.starts
    n_rows = np.diff(starts)
    made: dict[str, Any] = {count_name(rows.name): pa.array(n_rows)}
    has_rows = n_rows > 0
    first = starts[:-1][has_rows]
    as_stated = open_memory(table, rows.modelled)
    for name in relative_columns(rows):
        column = rows.modelled[name]
        assert isinstance(column, Bounded)
        at_first = pa.array(starts[:-1], mask=~has_rows)  # whoever has no rows has no first value
        made[first_name(rows.name, name)] = table[name].combine_chunks().take(at_first)
        values = _within(as_stated.table.physical(name).values, column)
        if name == rows.order and rows.steps:
            differences = np.diff(values, prepend=values[:1])
        else:
            differences = values - np.repeat(values[first], n_rows[has_rows])
        is_first = np.zeros(len(values), dtype=np.bool_)
        is_first[first] = True
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(differences, mask=is_first))
    schema = learnt_schema(rows).modelled
    every, one = open_memory(table, schema), open_memory(table.take(pa.array(gathered.one)), schema)
    return HeldRows(every, starts, one), made


def _within(values: NDArray[Any], column: Bounded) -> NDArray[Any]:
    """Values as they are counted: those outside of the bounds at the nearer one."""
    if isinstance(column, Real):
        return np.asarray(np.clip(values, float(column.low), float(column.high)))
    low, high = whole_range(column)
    return np.asarray(np.clip(values, low, high))
