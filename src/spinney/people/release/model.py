"""A release of persons and their rows: a forest of persons, and for each table of rows a field given persons.

Persons are drawn first, with the number of their rows; then rows, each given its person and the rows before it. Keys
are made afresh: persons are numbered, and rows bear the number of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.cgroups import total_memory
from spinney.columns import Column, Identifier, whole_range
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.asking import AskingPersons
from spinney.people.release.names import count_name, first_name
from spinney.people.release.people_file import MEMBERS, people_from_members, people_members
from spinney.people.release.relative import relative_columns
from spinney.people.release.rows import ReleasedRows
from spinney.progress import waiting
from spinney.release.card import Card
from spinney.release.entries import MOST_ROWS
from spinney.release.frames import check_frame_kind, to_frame
from spinney.release.model import BYTES_A_VALUE, Members
from spinney.release.options import explains_options
from spinney.release.parts import Part
from spinney.release.seeds import row_generator
from spinney.schema.people import PeopleShape
from spinney.schema.table import Schema
from spinney.shown import as_given
from spinney.suggest import did_you_mean_column

if TYPE_CHECKING:
    from spinney.people.release.explain import PeopleExplanation


class PeopleRelease(AskingPersons):
    """Persons with their rows. `persons` is the forest of persons, which answers questions about them."""

    kind = "people"
    protects_persons = True
    member_names = (*ForestRelease.member_names, *MEMBERS)

    def __init__(
        self,
        card: Card,
        *,
        shape: PeopleShape,
        persons: ForestRelease,
        rows: tuple[ReleasedRows, ...],
        frames: Mapping[str, str],
        row_variance: Fraction | None = None,
    ) -> None:
        super().__init__(card)
        self.row_variance = row_variance  # of the noise on tables of rows, in units; None in files from before
        self.shape, self.persons, self.rows = shape, persons, rows
        self.frames = dict(frames)  # the kind of frame of every table, by its name

    @cached_property
    def card(self) -> Card:
        """The guarantee, the charges and the plan, with all tables as they were stated."""
        return replace(super().card, people=self.shape)

    # ------------------------------------------------------------------------------------------------- drawing

    @explains_options
    @waiting("drawing persons")
    def sample(  # type: ignore[override]  # persons are asked for, not rows
        self,
        persons: int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
    ) -> Any:
        """Synthetic persons with all their rows. Costs no epsilon, however often.

        Args:
            persons: how many persons, not rows: `sample(1000)` draws a thousand persons with all their rows. By default
                as many as the private tables had where that is public, else a noisy number.
            where: conditions that every person meets, by table and column, such as {"customers.region": "west"}:
                a value, a range `(low, high)` with both ends (None: no end), a list of values, or None for null. The
                number of rows of a table is "transactions.#", or "#" where there is one table.
            seed: repeats the same persons and rows.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted, table by table.

        Returns:
            One table where the rows of persons were one table; otherwise a dictionary of tables by name, in which every
            row has its person.

        Raises:
            ParameterError: an option is unknown or out of range, or no person can meet the conditions.
        """
        if frame is not None:
            check_frame_kind(frame)
        n_persons = self._default_rows() if persons is None else persons
        if isinstance(n_persons, bool) or not isinstance(n_persons, (int, np.integer)) or n_persons < 0:
            raise ParameterError(f"persons={as_given(persons)} is not a whole number of persons")
        n_persons = int(n_persons)
        _check_memory(n_persons, n_persons * len(self.persons.schema))
        prepared = self.persons.conditioned(self._asked(where), None)
        rng = row_generator(seed, self.stream)
        states, positions = self.persons.drawn(n_persons, rng, prepared=prepared)
        places = dict(zip(self.persons.schema, positions, strict=True))
        tables: dict[str, Any] = {}
        numbers = np.arange(n_persons)
        if self.shape.persons is not None and self.shape.persons_name is not None:
            stated, name = self.shape.persons, self.shape.persons_name
            drawn = np.stack([places.get(column, np.zeros(n_persons)) for column in stated])
            tables[name] = self._frame(drawn, stated, name, frame, drawn=prepared.schema)
        for rows in self.rows:
            name = rows.shape.name
            starts = self.row_starts(rows, places, prepared.schema)
            _check_memory(n_persons, int(starts[-1]) * len(rows.shape.schema))
            firsts = {column: places[first_name(name, column)] for column in relative_columns(rows.shape)}
            drawn, schema = rows.draw(states, starts, firsts, rng), rows.shape.schema
            keys = self._keys(schema, rows.shape.key, np.repeat(numbers, np.diff(starts)))
            tables[name] = self._frame(drawn, schema, name, frame, given={rows.shape.key: keys})
        return tables[""] if self.shape.persons is None else tables

    def row_starts(
        self, rows: ReleasedRows, places: Mapping[str, NDArray[np.float64]], drawn: Mapping[str, Column]
    ) -> NDArray[np.int64]:
        """Where the rows of every person begin, and the number of all rows, by positions along columns as drawn."""
        count = count_name(rows.shape.name)
        least = whole_range(drawn[count])[0]  # under conditions positions count from another bound
        n_rows = np.clip(least + np.floor(places[count]), 0, rows.shape.most).astype(np.int64)
        return np.concatenate([[0], np.cumsum(n_rows)]).astype(np.int64)

    def _frame(
        self,
        positions: NDArray[np.float64],
        schema: Schema,
        name: str,
        frame: str | None,
        *,
        drawn: Mapping[str, Column] | None = None,
        given: Mapping[str, pa.Array] | None = None,
    ) -> Any:
        """A table of these positions, some of whose columns are given."""
        kind = self.frames[name] if frame is None else frame
        columns = None
        if drawn is not None:
            columns = {column: drawn.get(column, of_column) for column, of_column in schema.as_drawn.items()}
        return to_frame(positions, schema, kind, drawn=columns, given=given)

    def _keys(self, schema: Schema, key: str, numbers: NDArray[np.int64]) -> pa.Array:
        """The keys of the persons with these numbers, as their own table has them."""
        owner = schema[key]
        if self.shape.persons is not None and self.shape.key is not None:
            owner = self.shape.persons[self.shape.key]
        assert isinstance(owner, Identifier)
        n_persons = int(numbers.max(initial=-1)) + 1
        every = owner.part_to_arrow(np.zeros(n_persons), first=0, n_rows=n_persons)
        return every.take(pa.array(numbers))

    def _asked(self, where: Mapping[str, Any] | None) -> dict[str, Any]:
        """Conditions by columns of the forest of persons."""
        if where is None:
            return {}
        if not isinstance(where, Mapping):
            raise ParameterError("where is not a mapping from columns to what is wanted of them")
        for name in where:
            if isinstance(name, str) and name in self._of_rows and name not in self.askable:
                raise ParameterError(
                    f"where: {name!r} is a column of rows, and conditions are on persons; draw persons and keep those "
                    "whose rows meet it"
                )
            if name not in self.askable:
                raise ParameterError(
                    f"where: {as_given(name)} is not a column of persons{did_you_mean_column(name, self.askable)}"
                )
        return {self.askable[name]: wanted for name, wanted in where.items()}

    def explain(self, *, error_bars: bool = False) -> PeopleExplanation:
        """What was measured of persons and of their rows, and how the budget was spent. Costs no epsilon.

        Args:
            error_bars: whether to show how far columns of persons may be off, too.
        """
        from spinney.people.release.explain import explain_people

        return explain_people(self, error_bars=error_bars)

    def weighted_points(self, *, frame: str | None = None) -> NoReturn:  # noqa: ARG002  # there are none
        """A release of persons has no points; use `sample`.

        Args:
            frame: the kind of a table that there is none of.
        """
        raise ParameterError("a release of persons has no weighted points; use sample() instead")

    def _draw(self, n_rows: int, rng: np.random.Generator, *, part: Part | None = None) -> NDArray[np.float64]:
        return self.persons._draw(n_rows, rng, part=part)

    def _noisy_total(self) -> int:
        return self.persons.noisy_total

    def _require_contents(self) -> None:
        """Persons can always be drawn."""

    # ------------------------------------------------------------------------------------------------- files

    def verify_contents(self) -> list[str]:
        from spinney.people.release.verification import verify_people

        return verify_people(self)

    def verify_model(self) -> list[str]:
        from spinney.people.release.verification import check_spread_of_rows

        return [*self.persons.verify_model(), *check_spread_of_rows(self)]

    def unverified(self) -> list[tuple[str, str]]:
        found = self.persons.unverified()
        if self.row_variance is None:
            found.append(("the noise of tables of rows", "files of that version state it on the card alone"))
        why = "it was fitted by drawn persons; leaves of columns of rows are there without their counts"
        return [*found, ("that the model of rows follows from their tables", why)]

    def to_members(self) -> tuple[dict[str, Any], Members]:
        return people_members(self)

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        return cls(card, **people_from_members(card, described, members))


def _check_memory(n_persons: int, n_values: int) -> None:
    """Raise a ParameterError where the memory of this machine would not hold so many values while they are drawn."""
    memory, needed = total_memory(), BYTES_A_VALUE * n_values
    if n_persons > MOST_ROWS or (memory is not None and needed > memory):
        has = "" if memory is None else f", of which this machine or container has {memory / 2**30:,.1f}"
        raise ParameterError(
            f"persons={as_given(n_persons)}: persons and all their rows are drawn in memory, and so many take about "
            f"{needed / 2**30:,.1f} GiB{has}; ask for fewer persons at a time"
        )
