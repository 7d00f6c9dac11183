"""Figures of synthetic persons and rows against real ones: what a release is worth. NOT PRIVATE.

Total variation is half the sum of absolute differences of shares, in 32 equal bins between the real extremes; values
beyond fall into the outer bins, nulls into a bin of their own, categories stand as they are. A figure of several
columns or pairs is their mean. Rows that a rival drew have no persons, and so no figures that need them.

    child_tv1, child_tv2   one column of the rows, and all pairs
    parent_child           a column of persons with one of their rows, all pairs
    parent_tv1, parent_most, parent_tv2   one column of persons, the worst of them, and pairs
    parent_count           a column of persons with their number of rows
    count, count_bins      the number of rows a person: every number a bin of its own, and in bins as other columns are
    icc                    absolute error of the intra-class correlation, over columns of numbers, nulls counted as 0:
                           levels and gaps together, as it was measured before
    icc_values             the same with nulls left out
    transition             (row before, row) of a column
    auc                    of the label from aggregates of the rows (labels.py)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest.scores import Cells, Marginals
from benchmarks.people.dependence import Breaches, Persons, breaches, intraclass, transitions, whole
from benchmarks.people.households import Households, household_figures
from benchmarks.people.labels import area
from benchmarks.people.tables import KEY, People, PeopleTable
from benchmarks.tables.joint import Columns, choices, mean_variation, variation
from spinney.columns import Boolean, Category

COUNT = "#"


@dataclass(frozen=True, slots=True)
class Figures:
    """Smaller is better, but for the AUC; none where there are no persons, or no columns of theirs."""

    child_tv1: float
    child_tv2: float
    parent_child: float | None = None
    parent_tv1: float | None = None
    parent_most: float | None = None
    parent_tv2: float | None = None
    parent_count: float | None = None
    count: float | None = None
    count_bins: float | None = None
    icc: float | None = None
    icc_values: float | None = None
    transition: float | None = None
    auc: float | None = None
    broken: Breaches | None = None
    members: Households | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Yardstick:
    """The fitted persons of a table, to hold others against, and those who were held out."""

    def __init__(self, table: PeopleTable, fitted: People, held_out: People) -> None:
        self.table, self.held_out = table, held_out
        self.fitted = in_order(fitted, table.order)
        self._rows = _Cells(self.fitted.rows, table.rows_schema)
        self._numbers = _numbers(table.rows_schema)
        self._counts = row_counts(self.fitted)
        schema = table.persons_schema
        self._persons: _Cells | None = None
        if schema is not None:
            counted = sp.Schema({**schema, COUNT: sp.Integer(0, 1 << 20)})
            self._persons = _Cells(_counted(self.fitted, self._counts), counted)
        self._row_person = numbered(self.fitted)

    def figures_of_people(self, people: People, *, n_persons: int | None = None) -> Figures:
        """Of persons with their rows, which stand in the order in which they were made."""
        drawn = People(people.persons, people.rows.sort(KEY, maintain_order=True))
        people = People(people.persons, whole(drawn.rows, self.table))
        cells, person = self._rows.cells_of(people.rows), numbered(people)
        counts = row_counts(people)
        close = self._rows.distances(cells)
        table = self.table
        return Figures(
            child_tv1=close.tv1,
            child_tv2=close.tv2,
            **self._of_persons(people, cells, person, counts),
            count=_total_variation(self._counts, counts),
            icc=self._icc_error(people, person, null=0.0),
            icc_values=self._icc_error(people, person, null=float("nan")),
            transition=self._transition(cells, person),
            auc=area(people, self.held_out, table) if table.target is not None else None,
            broken=breaches(drawn, table, n_persons),
            members=household_figures(people.rows) if table.name == "homes" else None,
        )

    def figures_of_rows(self, rows: pl.DataFrame) -> Figures:
        """Of rows without persons, each with the columns of its person."""
        cells = self._rows.cells_of(rows)
        close = self._rows.distances(cells)
        joint = None
        if self._persons is not None:
            # The number of rows is unknown here and in no pair.
            theirs = self._persons.cells_of(rows.with_columns(pl.lit(0).alias(COUNT)))
            joint = self._parent_child(theirs, cells)
        return Figures(child_tv1=close.tv1, child_tv2=close.tv2, parent_child=joint)

    def intraclass(self, *, null: float = 0.0) -> float:
        """The mean intra-class correlation of the real rows."""
        return float(np.nanmean([_icc(self.fitted, self._row_person, name, null) for name in self._numbers]))

    def _of_persons(
        self, people: People, cells: Cells, person: Persons, counts: NDArray[np.int64]
    ) -> dict[str, float | None]:
        if self._persons is None:
            return {}
        ours, theirs = self._persons.cells, self._persons.cells_of(_counted(people, counts))
        last, sizes = len(self._persons.sizes) - 1, self._persons.sizes
        ones = [variation(ours, theirs, sizes, (i,)) for i in range(last)]
        return {
            "parent_tv1": float(np.mean(ones)),
            "parent_most": max(ones),
            "count_bins": variation(ours, theirs, sizes, (last,)),
            "parent_tv2": mean_variation(ours, theirs, sizes, choices(last, 2)),
            "parent_count": mean_variation(ours, theirs, sizes, [(i, last) for i in range(last)]),
            "parent_child": self._parent_child(theirs[:, person], cells),
        }

    def _parent_child(self, persons: Cells, rows: Cells) -> float:
        """Columns of persons, joined to rows, with columns of rows."""
        assert self._persons is not None
        n_persons, n_rows = len(self._persons.sizes), len(self._rows.sizes)
        chosen: list[Columns] = [(i, n_persons + j) for i, j in product(range(n_persons - 1), range(n_rows))]
        real = np.concatenate([self._persons.cells[:, self._row_person], self._rows.cells])
        found = mean_variation(real, np.concatenate([persons, rows]), [*self._persons.sizes, *self._rows.sizes], chosen)
        assert found is not None
        return found

    def _transition(self, cells: Cells, person: Persons) -> float | None:
        ours, theirs = transitions(self._rows.cells, self._row_person), transitions(cells, person)
        if not ours.shape[1]:
            return None
        n, sizes = len(self._rows.sizes), self._rows.sizes * 2
        return mean_variation(ours, theirs, sizes, [(i, n + i) for i in range(n)]) if theirs.shape[1] else 1.0

    def _icc_error(self, people: People, person: Persons, *, null: float) -> float | None:
        errors = [
            abs(_icc(people, person, name, null) - _icc(self.fitted, self._row_person, name, null))
            for name in self._numbers
        ]
        held = [error for error in errors if np.isfinite(error)]
        return float(np.mean(held)) if held else None


class _Cells(Marginals):
    """The marginals of a table that has more columns than the schema, such as a key."""

    def __init__(self, real: pl.DataFrame, schema: sp.Schema) -> None:
        super().__init__(real.select(list(schema)), schema, cut="equal")
        self._names = list(schema)

    def cells_of(self, rows: pl.DataFrame) -> Cells:
        return super().cells_of(rows.select(self._names))


def in_order(people: People, order: str) -> People:
    """Rows by person and order."""
    return People(people.persons, people.rows.sort(KEY, order, maintain_order=True))


def numbered(people: People) -> Persons:
    """The number of each row's person, in the order of `people.keys()`. Every row has one."""
    keys = people.keys().to_frame(KEY).with_row_index("number").unique(KEY, keep="first", maintain_order=True)
    found = people.rows.select(KEY).join(keys, on=KEY, how="left", maintain_order="left")["number"]
    return found.fill_null(0).cast(pl.Int64).to_numpy()


def row_counts(people: People) -> NDArray[np.int64]:
    """The number of rows of every person, 0 included."""
    return np.bincount(numbered(people), minlength=len(people.keys())).astype(np.int64)


def _icc(people: People, person: Persons, name: str, null: float) -> float:
    return intraclass(people.rows[name].cast(pl.Float64).fill_null(null).to_numpy(), person)


def _counted(people: People, counts: NDArray[np.int64]) -> pl.DataFrame:
    assert people.persons is not None
    return people.persons.with_columns(pl.Series(COUNT, counts))


def _total_variation(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    size = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    first, second = ours[None].astype(np.uint16), theirs[None].astype(np.uint16)
    return variation(first, second, [size], (0,))


def _numbers(schema: sp.Schema) -> list[str]:
    return [name for name, column in schema.items() if not isinstance(column, (Boolean, Category))]
