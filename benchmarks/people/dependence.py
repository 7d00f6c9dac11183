"""What rows of one person have in common, what follows what, and what must never be. NOT PRIVATE.

The intra-class correlation is that of a one-way analysis of variance over all rows that hold a value, persons with one
row included:

    (between - within) / (between + (n0 - 1) within),   n0 = (N - sum of n_p^2 / N) / (persons - 1)

with the mean squares between and within persons. Transitions are pairs of a row and the one before of the same person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.forest.scores import Cells
from benchmarks.people.tables import KEY, People, PeopleTable

Numbers = NDArray[np.float64]
Persons = NDArray[np.int64]  # (n_rows,) the number of each row's person


def intraclass(values: Numbers, person: Persons) -> float:
    """The share of a column's variance that lies between persons; NaN where no person has two values."""
    is_there = np.isfinite(values)
    values, number = values[is_there], np.unique(person[is_there], return_inverse=True)[1]
    n_rows, n_persons = len(values), int(number.max(initial=-1)) + 1
    if n_persons < 2 or n_rows <= n_persons:
        return float("nan")
    counts = np.bincount(number)
    means = np.bincount(number, values) / counts
    within = float(((values - means[number]) ** 2).sum()) / (n_rows - n_persons)
    between = float((counts * (means - values.mean()) ** 2).sum()) / (n_persons - 1)
    mean_count = (n_rows - float((counts.astype(np.float64) ** 2).sum()) / n_rows) / (n_persons - 1)
    whole = between + (mean_count - 1) * within
    return (between - within) / whole if whole > 0 else 0.0


def transitions(cells: Cells, person: Persons) -> Cells:
    """Cells of the rows before, then those of the rows: (2 n_columns, n_pairs). Rows of a person stand together."""
    follows = np.flatnonzero(person[1:] == person[:-1])
    return np.concatenate([cells[:, follows], cells[:, follows + 1]])


@dataclass(frozen=True, slots=True)
class Breaches:
    """What must never be: all are numbers of rows or persons, and 0 is right."""

    orphans: int = 0  # rows without a person
    bad_counts: int = 0  # persons that are there twice, are too many or too few, or have more rows than allowed
    out_of_order: int = 0  # rows whose order column is below that of the row before
    after_end: int = 0  # rows after a value that nothing may follow
    nulls: int = 0  # rows that lack a value which they must have; other figures leave them out
    bad_first: int = 0  # persons whose first row is not what it must be, or a later row is


def whole(rows: pl.DataFrame, table: PeopleTable) -> pl.DataFrame:
    """The rows that have all values which they must have."""
    return rows.drop_nulls([name for name, column in table.row_columns.items() if not column.nullable])


def breaches(people: People, table: PeopleTable, n_persons: int | None) -> Breaches:
    """Everything that is broken about keys, counts, order and absorbing states. `n_persons` were asked for."""
    rows = people.rows
    before = pl.col(KEY) == pl.col(KEY).shift(1)
    found: dict[str, Any] = {"out_of_order": rows.filter(before & (pl.col(table.order).diff() < 0)).height}
    found["nulls"] = rows.height - whole(rows, table).height
    counts = rows.group_by(KEY).len()
    keys = people.keys()
    n_wrong = 0 if n_persons is None else abs(len(keys) - n_persons)
    repeated = len(keys) - keys.n_unique() + keys.null_count()
    found["bad_counts"] = n_wrong + repeated + counts.filter(pl.col("len") > table.most).height
    if people.persons is not None:
        found["orphans"] = rows.join(people.persons, on=KEY, how="anti").height
    if table.ends is not None:
        column, values = table.ends
        ended = pl.col(column).cast(pl.String).is_in([str(value) for value in values]).fill_null(value=False)
        found["after_end"] = rows.filter(before & ended.shift(1)).height
    if table.first is not None:
        column, values = table.first
        is_one = pl.col(column).cast(pl.String).is_in([str(value) for value in values])
        found["bad_first"] = rows.filter(is_one == before.fill_null(value=False)).height
    return Breaches(**found)
