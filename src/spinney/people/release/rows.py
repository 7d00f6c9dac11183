"""What was released of one table of rows: leaves of its columns, a field over their states, and how rows come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Real, whole_range
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.graded import graded_leaves
from spinney.forest.release.rules import Zeros, feasible, possible_states, resample_above
from spinney.graph.field import Field, FieldClique
from spinney.people.release.evidence import Layout, layout, person_of_rows
from spinney.people.release.relative import learnt_schema, relative_columns
from spinney.people.release.sample_rows import draw_rows
from spinney.schema.column_axis import column_axes
from spinney.schema.parting import partings
from spinney.schema.people import RowsShape
from spinney.schema.rules import AtMost, Rule, clauses_of
from spinney.schema.table import Schema


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """A table of rows as it left the mechanism."""

    clique: FieldClique
    labels: NDArray[np.int32] | None  # the box of every cell, in the table's shape; None: every cell is one
    noisy: NDArray[np.int64]  # in units


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """One table of rows. Columns are as they are learnt: relative ones are differences."""

    shape: RowsShape
    columns: dict[str, ColumnModel]
    layout: Layout
    field: Field
    tables: tuple[MeasuredRows, ...]
    correlations: Floats  # of two rows of a person, by column
    total: float  # persons with rows, a noisy number

    @cached_property
    def schema(self) -> Schema:
        """The columns as they are learnt."""
        return learnt_schema(self.shape)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the field, in order."""
        return list(self.schema.modelled)

    @property
    def sorted_by(self) -> int | None:
        """The column that ascends within a person, where it is drawn like the others."""
        column = sorted_column(self.shape)
        return None if column is None else self.names.index(column)

    @cached_property
    def _drawn_from(self) -> dict[str, ColumnModel]:
        drawn = self.schema.as_drawn
        return {name: graded_leaves(model, drawn[name])[0] for name, model in self.columns.items()}

    @cached_property
    def _possible(self) -> Zeros:
        """Which states of a row's columns can meet, by the rules between them."""
        schema, rules = self.schema, self.schema.rules
        parted = partings(clauses_of(rules, schema), schema, column_axes(schema))
        return possible_states(rules, schema, self.columns, parted)

    def draw(
        self,
        persons: NDArray[np.int32],
        starts: NDArray[np.int64],
        firsts: dict[str, Floats],
        rng: np.random.Generator,
    ) -> Floats:
        """Positions of all rows (n_columns, n_rows), along the columns of the shape's schema.

        Args:
            persons: states of the persons' variables.
            starts: where every person's rows begin, and the number of all rows.
            firsts: positions of the first values of relative columns, by person.
            rng: draws the rows.
        """
        own = draw_rows(self.field, self.layout, persons, starts, rng, sorted_by=self.sorted_by, zeros=self._possible)
        states = {name: own[place] for place, name in enumerate(self.names)}
        schema, columns = self.schema.as_drawn, dict(self._drawn_from)
        rules = self.schema.rules
        for name, cut in feasible(rules, schema, columns, asked={}, nulls=[]).items():
            schema[name], columns[name] = cut.column, cut.model
        places = {name: columns[name].draw(states[name], rng) for name in self.names}
        resample_above(places, states, rules, schema, columns, rng)
        person = person_of_rows(starts)
        if self.sorted_by is not None:
            name = self.names[self.sorted_by]
            places[name] = places[name][np.lexsort([places[name], person])]
            _make_room(places, rules, schema, name)
        stated = self.shape.schema
        for name in relative_columns(self.shape):
            steps = self.shape.steps and name == self.shape.order
            places[name] = _absolute(
                places[name], firsts[name][person], starts, stated[name], schema[name], steps=steps
            )
        nothing = np.zeros(int(starts[-1]))
        return np.stack([places.get(name, nothing) for name in stated])


def row_layout(shape: RowsShape, own_sizes: Sequence[int], person_sizes: Sequence[int]) -> Layout:
    """What rows of a table may depend on, by the numbers of states of its columns and of its persons' variables."""
    names = list(learnt_schema(shape).modelled)
    sorted_by = sorted_column(shape)
    return layout(
        person_sizes,
        own_sizes,
        has_order=shape.order is not None,
        role=None if shape.role is None else names.index(shape.role),
        unrelated=() if sorted_by is None else (names.index(sorted_by),),
    )


def sorted_column(shape: RowsShape) -> str | None:
    """The column that ascends within a person, where it is drawn like the others."""
    return None if shape.steps else shape.order


def _make_room(places: dict[str, Floats], rules: Sequence[Rule], schema: Mapping[str, Column], name: str) -> None:
    """Move columns that a rule wants below or above a sorted one to it, where sorting took it past them."""
    for is_below, bound in ((True, np.minimum), (False, np.maximum)):
        moved = [name]
        for at in moved:
            ends = [rule.columns if is_below else rule.columns[::-1] for rule in rules if isinstance(rule, AtMost)]
            for other in (one for one, end in ends if end == at and one not in moved):
                limit = places[at] + _origin(schema[at]) - _origin(schema[other])
                places[other] = np.where(np.isnan(limit), places[other], bound(places[other], limit))
                moved.append(other)


def _origin(column: Column) -> int:
    """The number that positions count from."""
    return whole_range(column)[0] if column.is_whole else 0


def _absolute(
    differences: Floats, first: Floats, starts: NDArray[np.int64], column: Column, learnt: Column, *, steps: bool
) -> Floats:
    """Positions of values of which the first is given and later ones by differences, within the column's bounds.

    A history that would run past the upper bound begins earlier, as far as there is room, and keeps its steps.
    """
    n_rows = np.diff(starts)
    begin = starts[:-1][n_rows > 0]
    assert isinstance(column, Bounded)
    by = differences
    if not isinstance(column, Real):
        # Positions are of all that rounds to a multiple: a step of none, in fifties, is not one of minus ten.
        by = learnt.step * np.floor((np.floor(by) + whole_range(learnt)[0] + learnt.step // 2) / learnt.step)
    by = np.where(np.isnan(by), 0.0, by)
    by[begin] = 0.0
    if steps:
        summed = np.cumsum(by)
        by = summed - np.repeat(summed[begin], n_rows[n_rows > 0])
    low, high = (float(column.low), float(column.high)) if isinstance(column, Real) else _position_range(column)
    values = first + by if isinstance(column, Real) else np.floor(first) + by
    if steps:
        last = starts[1:][n_rows > 0] - 1
        values -= np.repeat(np.maximum(values[last] - high, 0.0), n_rows[n_rows > 0])
    return np.asarray(np.clip(values, low, high))


def _position_range(column: Column) -> tuple[float, float]:
    """The first and last position of a column of whole numbers."""
    low, high = whole_range(column)
    return 0.0, float(high - low)
