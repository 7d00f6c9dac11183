"""Questions about persons: how many there are, means of their columns, how many rows they have, with error bars.

The forest of persons answers. Callers name columns by table, "customers.age", and the number of a person's rows
"transactions.#". Of rows there are no error bars: what a release says of them rests on a field that was fitted to many
tables at once. Questions about them are refused, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.names import count_name
from spinney.release.answers.question import check_column
from spinney.release.model import Release
from spinney.schema.people import PeopleShape
from spinney.schema.table import Schema
from spinney.shown import as_given

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer, Answers
    from spinney.release.answers.bars import ErrorBars
    from spinney.release.answers.question import Question
    from spinney.release.answers.trust import Trust


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
        return {named(self.shape.persons_name, name): name for name in read} | counts

    @cached_property
    def asked_schema(self) -> Schema:
        """The columns that questions may name: those of persons, and those of rows, which are refused by name."""
        found: dict[str, Column] = {name: self.persons.schema[column] for name, column in self.askable.items()}
        return Schema(found | {name: column for name, column in self._of_rows.items() if name not in found})

    @cached_property
    def _of_rows(self) -> dict[str, Column]:
        return {
            named(rows.name, name): column
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

    def _one(self, question: Question) -> Answer:
        self._refuse_asked(question)
        return super()._one(question)

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


def named(table: str | None, column: str) -> str:
    """What callers call a column."""
    return f"{table}.{column}" if table else column
