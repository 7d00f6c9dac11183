"""Asking: the questions that every release takes, as methods and from text. PUBLIC.

A release answers from released numbers alone, so asking costs no epsilon, however often. These methods check
and label; each kind of release computes.

    question methods       `count`, `proportion`, `mean`, `quantile`, `table`, and `trust` beforehand
    statements             which statement a question gets, and its answer
    questions from text    a question that was read from text, passed to the method that answers it
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Answers
from spinney.release.answers.question import Question, cells, check_column, checked
from spinney.schema.schema import Schema
from spinney.text import as_given

if TYPE_CHECKING:
    from spinney.release.answers.answer import Trust
    from spinney.release.answers.bars import ErrorBars
    from spinney.release.answers.grammar import ParsedQuestion
    from spinney.release.card import Card
    from spinney.release.release import Release


# ----------------------------------------------------------------------------------------------------- question methods
# The questions that every release takes: `count`, `proportion`, `mean`, `quantile`, `table`, and `trust`
# beforehand.
#
# A release answers from released numbers alone, so asking costs no epsilon, however often. These methods check
# the arguments, make `Question`s of them and label the answers; a kind of release answers by `_answer`.


_ALL_ROWS: Mapping[str, Any] = {}


class Asking(ABC):
    """What can be asked of a release. Every answer says what kind of statement it is."""

    if TYPE_CHECKING:

        @property
        def card(self) -> Card: ...

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @abstractmethod
    def _contents(self) -> str: ...

    @property
    def asked_schema(self) -> Schema:
        """The columns that questions and conditions may name, as callers know them."""
        return self.schema

    def count(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        of: str = "table",
        statement: str = "auto",
        force: bool = False,
    ) -> Answer:
        """How many rows of the private table meet a condition, with an interval. Costs no epsilon.

        Args:
            where: what columns are to be: a value, a range (low, high) with both ends included, a list of values, or
                None for null; all rows without it.
            level: the probability that the interval holds with.
            of: "table", or "population" where the rows are a sample of one: the interval then holds for the expected
                number of rows in a sample of this size.
            statement: "certified" or "calibrated"; "auto" gives the certified interval where, by the geometry of what
                was counted, it can be expected to be less than twice as wide.
            force: whether an interval is given where the release does not support one.

        Raises:
            ParameterError: a column or an option is unknown, a condition is empty or can never hold, or this release
                cannot answer as asked.
        """
        return self._answer_one(Question("count", **_options(where, level, of, statement, force)))

    def proportion(
        self,
        where: Mapping[str, Any],
        *,
        given: Mapping[str, Any] | None = None,
        level: float = 0.95,
        of: str = "table",
        statement: str = "auto",
        force: bool = False,
    ) -> Answer:
        """Which share of the rows meets a condition, among all rows or among those that meet another.

        Args:
            where: what columns are to be, as `count` takes it.
            given: conditions on other columns; the share is one of the rows that meet them.
            level: the probability that the interval holds with.
            of: "table", or "population" where the rows are a sample of one.
            statement: "certified", "calibrated" or "auto", as in `count`.
            force: whether an interval is given where the release does not support one.

        Raises:
            ParameterError: as in `count`.
        """
        question = Question("proportion", given=given or _ALL_ROWS, **_options(where, level, of, statement, force))
        if not question.where:
            raise ParameterError("where: a proportion needs a condition: proportion({'column': value})")
        return self._answer_one(question)

    def mean(
        self,
        column: str,
        *,
        where: Mapping[str, Any] | None = None,
        by: Any = None,
        level: float = 0.95,
        of: str = "table",
        statement: str = "auto",
        force: bool = False,
        simultaneous: bool = False,
    ) -> Answer | Answers:
        """The mean of a column over the rows that meet a condition; nulls are left out. With `by`, one for each cell.

        Args:
            column: a column of numbers, or of booleans, whose mean is the share that is true.
            where: what columns are to be, as `count` takes it.
            by: columns whose values make the cells of a table, as `table` takes them.
            level: the probability that an interval holds with.
            of: "table", or "population" where the rows are a sample of one.
            statement: "certified", "calibrated" or "auto", as in `count`.
            force: whether an interval is given where the release does not support one.
            simultaneous: whether all intervals of a table hold at once with this probability.

        Raises:
            ParameterError: as in `count`, or the column has no mean.
        """
        question = Question("mean", column=column, **_options(where, level, of, statement, force))
        return self._answer_one(question) if by is None else self._by(question, by, simultaneous=simultaneous)

    def quantile(
        self,
        column: str,
        at: float = 0.5,
        *,
        where: Mapping[str, Any] | None = None,
        by: Any = None,
        level: float = 0.95,
        of: str = "table",
        statement: str = "auto",
        force: bool = False,
        simultaneous: bool = False,
    ) -> Answer | Answers:
        """The value that a share of the rows lies at or below, by default the median; nulls are left out.

        Args:
            column: a column of numbers.
            at: the share of rows, between 0 and 1.
            where: what columns are to be, as `count` takes it.
            by: columns whose values make the cells of a table, as `table` takes them.
            level: the probability that an interval holds with.
            of: "table", or "population" where the rows are a sample of one.
            statement: "certified", "calibrated" or "auto", as in `count`.
            force: whether an interval is given where the release does not support one.
            simultaneous: whether all intervals of a table hold at once with this probability.

        Raises:
            ParameterError: as in `count`, or the column has no order.
        """
        question = Question("quantile", column=column, at=at, **_options(where, level, of, statement, force))
        return self._answer_one(question) if by is None else self._by(question, by, simultaneous=simultaneous)

    def table(
        self,
        by: Any,
        *,
        where: Mapping[str, Any] | None = None,
        simultaneous: bool = False,
        level: float = 0.95,
        of: str = "table",
        statement: str = "auto",
        force: bool = False,
    ) -> Answers:
        """How many rows there are in every cell of a table of some columns, each with an interval.

        Args:
            by: a column, several, or a mapping of columns to lists of values and ranges: {"age": [(17, 29), (30,
                90)]}. Columns of numbers with many values need ranges.
            where: what other columns are to be, as `count` takes it.
            simultaneous: whether all intervals hold at once with this probability; by default each by itself.
            level: the probability that an interval holds with.
            of: "table", or "population" where the rows are a sample of one.
            statement: "certified", "calibrated" or "auto", as in `count`.
            force: whether an interval is given where the release does not support one.

        Raises:
            ParameterError: as in `count`, or the table has no cells or too many.
        """
        return self._by(
            Question("count", **_options(where, level, of, statement, force)), by, simultaneous=simultaneous
        )

    def trust(self, columns: Sequence[str]) -> Trust:
        """What an analysis of these columns can expect: a verdict for each, for each pair and for all together.

        Args:
            columns: the columns of the analysis.

        Raises:
            ParameterError: a column is unknown, or this kind of release gives no verdicts.
        """
        if not isinstance(columns, (str, list, tuple, set, frozenset)):
            raise ParameterError(
                f"columns is a {type(columns).__name__}; name the columns of the analysis in a list: ['age', 'sex']"
            )
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if not wanted:
            raise ParameterError("columns is empty; name the columns of the analysis")
        for name in wanted:
            check_column(name, self.asked_schema, "columns")
        return self._trust(tuple(dict.fromkeys(wanted)))

    def error_bars(self, columns: Sequence[str] | None = None, *, level: float = 0.95, pairs: bool = True) -> ErrorBars:
        """How far every released column may be off, bar by bar, and every pair. Costs no epsilon.

        A column's bars are its values, or ranges that were cut as the column was counted; where they are certified, all
        of them hold at once. Of a pair it says how far a cell of a table of three by three parts may be off. A release
        that gives no answers says so in `refusal`.

        Args:
            columns: the columns, and the pairs among them; by default all columns, and figures of up to 120 pairs,
                those that were counted together first.
            level: the probability that an interval holds with.
            pairs: whether pairs are looked at too; a forest fits 20 models for those that were not counted together.

        Raises:
            ParameterError: a column is unknown, or the level is not between 0 and 1.
        """
        from spinney.release.answers.bars import error_bars

        if not isinstance(pairs, bool):
            raise ParameterError(f"pairs={as_given(pairs)} is not True or False")
        return error_bars(cast("Release", self), columns, level=level, pairs=pairs)

    # ------------------------------------------------------------------------------- what a kind says of itself

    def _bar_starts(self, name: str, most: int, *, together: bool) -> list[Any] | None:
        """Physical numbers at which counting cut a column, at most so many; with `together`, in tables of several.

        None where a kind knows no better than ranges of equal length.
        """
        del name, most, together
        return None

    def _value_groups(self, name: str) -> list[list[Any]] | None:
        """Values of a list by what they were counted as in tables of several columns; None where each is by itself."""
        del name
        return None

    def _holds_pair(self, pair: tuple[str, str]) -> bool:
        """Whether two columns were counted together."""
        return cast("Release", self)._counts_together(pair)

    def _counts_whole(self, by: Mapping[str, list[Any]]) -> bool:
        """Whether all cells of a table of several columns are made of whole boxes that were counted."""
        del by
        return False

    def _answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        """Answers to checked questions, in their order; a ParameterError where this kind of release gives none."""
        del questions, simultaneous
        raise self._no_answers()

    def _trust(self, columns: tuple[str, ...]) -> Trust:
        """Verdicts on known columns, each named once."""
        del columns
        raise self._no_answers()

    def _no_answers(self) -> ParameterError:
        return ParameterError(
            f"a release of {self._contents()} does not hold what error bars follow from; fit with "
            "sp.ForestSynthesizer or sp.KDTreeSynthesizer, or ask rows of sample() without them"
        )

    # -------------------------------------------------------------------------------------------------- inside

    def _answer_one(self, question: Question) -> Answer:
        return self._answer([checked(question, self.asked_schema)])[0]

    def _by(self, question: Question, by: Any, *, simultaneous: bool) -> Answers:
        if not isinstance(simultaneous, bool):
            raise ParameterError(f"simultaneous={as_given(simultaneous)} is not True or False")
        question = checked(question, self.asked_schema)
        names, labels = cells(by, self.asked_schema, where=question.where)
        questions = [
            replace(question, where={**question.where, **dict(zip(names, label, strict=True))}) for label in labels
        ]
        answers = self._answer(questions, simultaneous=simultaneous)
        return Answers(names, labels, answers, frame=self.card.frame, simultaneous=simultaneous)


def _options(where: Any, level: Any, of: Any, statement: Any, force: Any) -> dict[str, Any]:
    """What all questions take; conditions that are left out are none."""
    return {
        "where": _ALL_ROWS if where is None else where,
        "level": level,
        "of": of,
        "statement": statement,
        "force": force,
    }


# ----------------------------------------------------------------------------------------------------------- statements
# From a question to a statement: certified, by the model, or none.
#
# Which statement a question gets is decided by the question, by geometry and by the law of the noise, never by the
# noise of the counts in question: an interval that was chosen because it came out short would not hold as often as it
# says. A kind of release says what a question asks of its leaves, and has the numbers.


AskedT = TypeVar("AskedT")

CERTIFIED = "holds whatever the rows are, over the noise of the release"
EXACT = "this number is exact: the unit of the release takes it to be public"
NOTHING_CERTAIN = "noise leaves no certified interval that says anything; ask for statement='calibrated'"
ONE_VALUE = "rows there have one value and no other, by the conditions and the schema"


class Answering(ABC, Generic[AskedT]):
    """Answers of one release. What depends on the release alone is prepared when it is first needed, and kept."""

    def answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        """Answers in the order of the questions; with `simultaneous`, all intervals hold at once."""
        if not simultaneous or len(questions) < 2:
            return [self._strongest(question, question.level) for question in questions]
        found = self._certified_at_once(questions)
        if found is not None:
            return found
        # Each interval may fail with an equal share of what all may fail with.
        return [self._strongest(question, 1 - (1 - question.level) / len(questions)) for question in questions]

    def _strongest(self, question: Question, level: float) -> Answer:
        """The strongest statement that can be made; `level` is that of the interval."""
        asked = self._read(question)
        found = self._known(question, asked, level)
        if found is None and question.statement != "calibrated":
            found = self._certified(question, asked, level)
        if found is None and question.statement == "certified":
            raise self._no_certificate(question, asked)
        return self._modelled(question, asked, level) if found is None else found

    @abstractmethod
    def trust(self, columns: Sequence[str]) -> Trust:
        """What can be said of columns that the schema has."""

    @abstractmethod
    def _read(self, question: Question) -> AskedT:
        """What a question asks of leaves; a ParameterError where it cannot be asked."""

    @abstractmethod
    def _known(self, question: Question, asked: AskedT, level: float) -> Answer | None:
        """The answer that follows from the question and public numbers of rows alone, if one does."""

    @abstractmethod
    def _certified(self, question: Question, asked: AskedT, level: float) -> Answer | None:
        """The certified answer, where it was asked for or is worth having; None where there is none."""

    @abstractmethod
    def _certified_at_once(self, questions: Sequence[Question]) -> list[Answer] | None:
        """Certified counts that hold all at once; None where some are anything else."""

    @abstractmethod
    def _no_certificate(self, question: Question, asked: AskedT) -> ParameterError:
        """Why there is no certified answer."""

    @abstractmethod
    def _modelled(self, question: Question, asked: AskedT, level: float) -> Answer:
        """The answer of the released model."""


# -------------------------------------------------------------------------------------------------- questions from text
# A question that was read, passed to the method of `Asking` that answers it, with all its options.


def answers_to(
    release: Release, question: ParsedQuestion, options: Mapping[str, Any], *, simultaneous: bool
) -> Answer | Answers:
    """One answer, or those of a table or of a regression.

    Args:
        release: what is asked.
        question: what `parse_question` read.
        options: `level`, `of`, `statement` and `force`, as the methods of a release take them.
        simultaneous: whether all intervals of a table hold at once.

    Raises:
        ParameterError: the release cannot answer as asked.
    """
    options = dict(options)
    if question.formula is not None:
        return _coefficients(release, question.formula, options, simultaneous=simultaneous)
    where = question.where or None
    if question.by:
        options |= {"simultaneous": simultaneous}
    if question.kind == "table":
        return release.table(dict(question.by), where=where, **options)
    if question.kind == "count":
        return release.count(where, **options)
    if question.kind == "proportion":
        return release.proportion(question.where, given=question.given, **options)
    assert question.column is not None
    by = dict(question.by) or None
    if question.kind == "mean":
        return release.mean(question.column, where=where, by=by, **options)
    assert question.at is not None
    return release.quantile(question.column, question.at, where=where, by=by, **options)


def _coefficients(release: Release, formula: str, options: Mapping[str, Any], *, simultaneous: bool) -> Answers:
    """The coefficients of a regression that was named before the fit."""
    if options["statement"] == "certified" or options["force"] or simultaneous:
        raise ParameterError(
            "a regression takes none of `certified`, `force` and `simultaneous`: its intervals are calibrated, one by "
            "one; leave them out, or raise `level`"
        )
    ask = getattr(release, "regression", None)
    if ask is None:
        raise ParameterError(
            "a tree or a grid measures no regressions; fit a forest with --analysis and the formula, or run the "
            "analysis on draws"
        )
    found = ask(formula, level=options["level"], of=options["of"])
    return Answers(["coefficient"], [(name,) for name in found], list(found.values()))
