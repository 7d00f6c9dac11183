"""From a question to a statement: certified, by the model, or none. PUBLIC.

Which statement a question gets is decided by the question, by geometry and by the law of the noise, never by the noise
of the counts in question: an interval that was chosen because it came out short would not hold as often as it says.
A kind of release says what a question asks of its leaves, and has the numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Trust
from spinney.release.answers.question import Question

AskedT = TypeVar("AskedT")

EXACT = "this number is exact: the unit of the release takes it to be public"
NOTHING_CERTAIN = "noise leaves no certified interval that says anything; ask for statement='calibrated'"
ONE_VALUE = "rows there have one value and no other, by the conditions and the schema"


class Answering(ABC, Generic[AskedT]):
    """Answers of one release. What depends on the release alone is prepared when it is first needed, and kept."""

    def answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        """Answers in the order of the questions; with `simultaneous`, all intervals hold at once."""
        if not simultaneous or len(questions) < 2:
            return [self._one(question, question.level) for question in questions]
        found = self._certified_at_once(questions)
        if found is not None:
            return found
        # Each interval may fail with an equal share of what all may fail with.
        return [self._one(question, 1 - (1 - question.level) / len(questions)) for question in questions]

    def _one(self, question: Question, level: float) -> Answer:
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
