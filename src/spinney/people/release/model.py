"""PeopleRelease: a forest of persons, and a field for each table of their rows. PUBLIC.

questions about persons    answers of the forest of persons; questions about rows are refused
the release                the release: draws of persons with their rows, keys, members of the file
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column, Identifier, whole_range
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.machine import total_memory
from spinney.people.release.file import MEMBERS, people_from_members, people_members
from spinney.people.release.rows import ReleasedRows, column_name, count_name, first_name, relative_columns
from spinney.progress import waiting
from spinney.release.answers.question import check_column
from spinney.release.card import MOST_ROWS, Card, check_frame_kind
from spinney.release.frames import to_frame
from spinney.release.parts import Part
from spinney.release.release import BYTES_A_VALUE, Members, Release, explains_options, row_generator
from spinney.schema.linked import PeopleShape
from spinney.schema.schema import Schema
from spinney.text import as_given, did_you_mean_column

if TYPE_CHECKING:
    from spinney.people.release.explain import PeopleExplanation
    from spinney.release.answers.answer import Answer, Answers, Trust
    from spinney.release.answers.bars import ErrorBars
    from spinney.release.answers.question import Question


# ---------------------------------------------------------------------------------------------- questions about persons
# Questions about persons: how many there are, means of their columns, how many rows they have, with error bars.
#
# The forest of persons answers. Callers name columns by table, "customers.age", and the number of a person's rows
# "transactions.#". Of rows there are no error bars: what a release says of them rests on a field that was fitted to
# many tables at once. Questions about them are refused, with what to do instead.


class AskingPersons(Release):
    """What can be asked of a release of persons."""

    shape: PeopleShape
    persons: ForestRelease

    @cached_property
    def askable(self) -> dict[str, str]:
        """Columns that questions and conditions may be on: the name that callers know, and that of the forest."""
        counts = {count_name(rows.name): count_name(rows.name) for rows in self.shape.rows}
        if self.shape.persons is None:
            return counts
        read = [name for name, column in self.shape.persons.items() if column.is_read]
        return {column_name(self.shape.persons_name, name): name for name in read} | counts

    @cached_property
    def asked_schema(self) -> Schema:
        """The columns that questions may name: those of persons, and those of rows, which are refused by name."""
        found: dict[str, Column] = {name: self.persons.schema[column] for name, column in self.askable.items()}
        return Schema(found | {name: column for name, column in self._of_rows.items() if name not in found})

    @cached_property
    def _of_rows(self) -> dict[str, Column]:
        return {
            column_name(rows.name, name): column
            for rows in self.shape.rows
            for name, column in rows.schema.items()
            if name != rows.key
        }

    def refuse_rows(self, names: Iterable[Any], argument: str) -> None:
        """Raise where a column is one of rows, with what to do instead."""
        for name in names:
            if isinstance(name, str) and name in self._of_rows and name not in self.askable:
                counts = " or ".join(repr(count_name(rows.name)) for rows in self.shape.rows)
                raise ParameterError(
                    f"{argument}: {name!r} is a column of rows, and a release of persons answers about persons, by "
                    f"their columns and by {counts}, the number of their rows; work it out from rows of sample(), "
                    "which have no error bars"
                )

    def error_bars(self, columns: Sequence[str] | None = None, *, level: float = 0.95, pairs: bool = True) -> ErrorBars:
        """How far every column of persons may be off, bar by bar, and every pair. Costs no epsilon.

        Args:
            columns: columns of persons, such as ["customers.age", "transactions.#"], and the pairs among them; by
                default all of them. The bars name them as the forest of persons does, without their table.
            level: the probability that an interval holds with.
            pairs: whether pairs are looked at too.

        Raises:
            ParameterError: a column is unknown or one of rows, or the level is not between 0 and 1.
        """
        if columns is None:
            wanted = list(self.askable.values())
        else:
            listed = [columns] if isinstance(columns, str) else list(columns)
            self._check_names(listed, "columns")
            wanted = [self.askable[name] for name in listed]
        return replace(self.persons.error_bars(wanted, level=level, pairs=pairs), who="persons")

    def regression(self, *formula: Any, **options: Any) -> NoReturn:
        """A release of persons has no regressions."""
        del formula, options
        raise ParameterError(
            "a release of persons holds no sums of regressions, and nothing in it says how far a regression of rows of "
            "sample() is off, in sign or in size; measure regressions on a table with one row for each person, named "
            "in analyses="
        )

    def _check_names(self, names: Iterable[Any], argument: str) -> None:
        for name in names:
            self.refuse_rows([name], argument)
            if name not in self.askable:
                check_column(name, Schema({known: self.asked_schema[known] for known in self.askable}), argument)

    def _answer_one(self, question: Question) -> Answer:
        self._refuse_asked(question)
        return super()._answer_one(question)

    def _by(self, question: Question, by: Any, *, simultaneous: bool) -> Answers:
        self._refuse_asked(question)
        if isinstance(by, (str, Mapping, list, tuple)):
            self._check_names([by] if isinstance(by, str) else by, "by")
        return super()._by(question, by, simultaneous=simultaneous)

    def _refuse_asked(self, question: Question) -> None:
        self._check_names([] if question.column is None else [question.column], "column")
        for argument, conditions in (("where", question.where), ("given", question.given)):
            if not isinstance(conditions, Mapping):
                raise ParameterError(
                    f"{argument}={as_given(conditions)} is not a mapping of columns to what they are to be; write "
                    f"{argument}={{'column': value}}"
                )
            self._check_names(conditions, argument)

    def _answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        of_forest = [self._of_forest(question) for question in questions]
        answers = self.persons._answer(of_forest, simultaneous=simultaneous)
        return [replace(answer, asked=question.asked) for answer, question in zip(answers, questions, strict=True)]

    def _of_forest(self, question: Question) -> Question:
        """The question by the names of the forest."""
        where, given = (
            {self.askable[name]: it for name, it in part.items()} for part in (question.where, question.given)
        )
        column = None if question.column is None else self.askable[question.column]
        return replace(question, column=column, where=where, given=given)

    def _trust(self, columns: tuple[str, ...]) -> Trust:
        self._check_names(columns, "columns")
        return self.persons._trust(tuple(self.askable[name] for name in columns))


# ---------------------------------------------------------------------------------------------------------- the release
# A release of persons and their rows: a forest of persons, and for each table of rows a field given persons.
#
# Persons are drawn first, with the number of their rows; then rows, each given its person and the rows before
# it. Keys are made afresh: persons are numbered, and rows bear the number of theirs.


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
            columns = {column: drawn.get(column, of_column) for column, of_column in schema._as_drawn.items()}
        return to_frame(positions, schema, kind, drawn=columns, given=given)

    def _keys(self, schema: Schema, key: str, numbers: NDArray[np.int64]) -> pa.Array:
        """The keys of the persons with these numbers, as their own table has them."""
        owner = schema[key]
        if self.shape.persons is not None and self.shape.key is not None:
            owner = self.shape.persons[self.shape.key]
        assert isinstance(owner, Identifier)
        n_persons = int(numbers.max(initial=-1)) + 1
        every = owner._part_to_arrow(np.zeros(n_persons), first=0, n_rows=n_persons)
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
        from spinney.people.release.file import verify_people

        return verify_people(self)

    def verify_model(self) -> list[str]:
        from spinney.people.release.file import check_spread_of_rows

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
