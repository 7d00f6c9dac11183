"""Questions in words and what a release says to them: `Release.ask` and `spinney ask`. PUBLIC.

    mean(income) by region where age in 30..40
      region   estimate        95 % interval   statement
      North      41,210   40,180 to 42,240     certified [1]
      South      38,050                   -    not supported [2]

      [1] ...

What a statement rests on stands once, below the table, however many cells share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from spinney.documents import Document, Documented, Facts, Table
from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Answers, shown_label, shown_level
from spinney.release.answers.ask import answers_to
from spinney.release.answers.grammar import ParsedQuestion, parse_question
from spinney.release.answers.question import check_level
from spinney.text import aligned, as_given, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.release.release import Release


@dataclass(frozen=True, slots=True)
class Reply:
    """A question, and what the release says: one answer, those of a table's cells, or why it gives none.

    `question` is the text, `answer` an `Answer`, or `Answers` with one for each cell, or None, and `refusal` then says
    why.
    """

    parsed: ParsedQuestion
    answer: Answer | Answers | None
    refusal: str = ""

    @property
    def question(self) -> str:
        """The question as it was asked."""
        return self.parsed.text

    @property
    def by(self) -> list[str]:
        """What the cells of a table stand for: columns, or the coefficients of a regression."""
        return list(self.answer.by if isinstance(self.answer, Answers) else self.parsed.by)

    @property
    def cells(self) -> list[tuple[tuple[str, ...], Answer]]:
        """Every answer with the values that its cell stands for."""
        if self.answer is None:
            return []
        if isinstance(self.answer, Answer):
            return [((), self.answer)]
        labels = [tuple(map(shown_label, label)) for label in self.answer.labels]
        return list(zip(labels, self.answer, strict=True))

    def __str__(self) -> str:
        return self.as_text()

    def as_text(self, bought: Answer | None = None) -> str:
        """The table of the question as lines of text, an answer that was bought beside that of the release."""
        lines, notes = self._lines(bought)
        shown = aligned(lines, right=range(lines[0].index("estimate"), len(lines[0]) - 1), gap="   ")
        shown += ["", *(f"[{number}] {why}" for why, number in notes.items())]
        shown += [f"the release gives no answer: {self.refusal}"] if self.refusal else []
        return "\n".join([self.question, *(f"  {line}".rstrip() for line in shown)])

    def _lines(self, bought: Answer | None = None) -> tuple[list[list[str]], dict[str, int]]:
        """Heads and a line for each cell; and what the statements rest on, by the number that refers to it."""
        cells, heads = self.cells, self.by
        if bought is not None:
            heads = ["source"]
            cells = [*((("release",), answer) for _, answer in cells), (("bought",), bought)]
        first = cells[0][1]
        whose = " of the population" if first.of == "population" else ""
        held = " at once" if isinstance(self.answer, Answers) and self.answer.simultaneous else ""
        lines = [[*heads, "estimate", f"{shown_level(first.level)} interval{held}{whose}", "statement"]]
        notes: dict[str, int] = {}
        for label, answer in cells:
            number = notes.setdefault(answer.why, len(notes) + 1)
            lines.append([*label, *_numbers(answer), f"{answer.statement} [{number}]"])
        return lines, notes

    def to_dict(self) -> dict[str, Any]:
        """The question and what the release says, as plain data for JSON."""
        if self.answer is None:
            return {"question": self.question, "answer": None, "refusal": self.refusal}
        if isinstance(self.answer, Answer):
            return {"question": self.question, "answer": self.answer.to_dict()}
        table = {"by": list(self.answer.by), "simultaneous": self.answer.simultaneous}
        return {"question": self.question} | table | {"cells": self.answer.to_dict()}


@dataclass(frozen=True, slots=True)
class Replies(Documented, Sequence[Reply]):
    """What a release says to several questions, in their order. `print` shows it as `spinney ask` does."""

    replies: tuple[Reply, ...]
    refused: dict[str, str]  # questions that the release refuses, and why
    bought: Answer | None = None  # a second opinion on the only question, which was paid for

    @property
    def answer(self) -> Answer | Answers | None:
        """The answer to the only question; a ParameterError where there were several."""
        if len(self.replies) != 1 or self.refused:
            n_asked = len(self.replies) + len(self.refused)
            raise ParameterError(f"{n_asked} questions were asked; take the answer of one, as in replies[0].answer")
        return self.replies[0].answer

    def __len__(self) -> int:
        return len(self.replies)

    def __iter__(self) -> Iterator[Reply]:
        return iter(self.replies)

    @overload
    def __getitem__(self, index: int) -> Reply: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Reply]: ...

    def __getitem__(self, index: int | slice) -> Reply | Sequence[Reply]:
        return self.replies[index]

    def __str__(self) -> str:
        blocks = [reply.as_text(self.bought) for reply in self.replies]
        blocks += [f"{question}\n  refused: {why}" for question, why in self.refused.items()]
        return "\n\n".join(blocks)

    def document(self) -> Document:
        """The answers as notebooks show them, what their statements rest on, and what was refused."""
        tables = []
        for reply in self.replies:
            (heads, *rows), _ = reply._lines(self.bought)
            tables.append(Table(reply.question, heads, rows, is_open=True))
        whys = dict.fromkeys(answer.why for reply in self.replies for _, answer in reply.cells)
        notes = [(f"[{number}]", why) for number, why in enumerate(whys, start=1)] if len(self.replies) == 1 else []
        refused = [(f"refused: {text}", why) for text, why in self.refused.items()]
        return Document("Answers", [Facts([*notes, *refused]), *tables])

    def to_dict(self) -> dict[str, Any]:
        """All answers as plain data for JSON, as `spinney ask --json` prints them."""
        described: dict[str, Any] = {"answers": [reply.to_dict() for reply in self.replies]}
        if self.bought is not None:
            described["bought"] = self.bought.to_dict() | {"digest": self.bought.digest}
        return described | ({"refused": dict(self.refused)} if self.refused else {})

    def to_arrow(self, *, is_text: bool = False) -> pa.Table:
        """All answers as a table, a line each: question, source, the columns of `by`, then the fields of the answer.

        Args:
            is_text: whether what is not printable is escaped, since text may end on a terminal.
        """
        import pyarrow as pa

        groups = list(dict.fromkeys(name for reply in self.replies for name in reply.by))
        lines = [
            {"question": reply.question, "source": "release"}
            | dict(zip(reply.by, label, strict=True))
            | answer.to_dict()
            for reply in self.replies
            for label, answer in reply.cells
        ]
        if self.bought is not None:
            lines.append({"question": self.replies[0].question, "source": "bought"} | self.bought.to_dict())
        text, number = pa.string(), pa.float64()
        kinds = {"question": text, "source": text} | dict.fromkeys(groups, text)
        kinds |= dict.fromkeys(("estimate", "low", "high", "level"), number)
        kinds |= dict.fromkeys(("of", "statement", "why"), text)

        def safe(value: Any) -> Any:
            return printable(value) if is_text and isinstance(value, str) else value

        columns = {name: pa.array([safe(line.get(name)) for line in lines], kind) for name, kind in kinds.items()}
        return pa.table({safe(name): column for name, column in columns.items()})

    def with_bought(self, bought: Answer) -> Replies:
        """The same with an answer that was bought beside that of the release."""
        return replace(self, bought=bought)


def ask(
    release: Release,
    questions: Sequence[str],
    *,
    level: float = 0.95,
    of: str = "table",
    certified: bool = False,
    force: bool = False,
    simultaneous: bool = False,
    may_refuse: bool = False,
) -> Replies:
    """What a release says to questions in words; one may be refused among several, or with `may_refuse`.

    Raises:
        ParameterError: an option is wrong, or the only question is refused.
    """
    check_level(level)
    for name, flag in (("certified", certified), ("simultaneous", simultaneous)):
        if not isinstance(flag, bool):
            raise ParameterError(f"{name}={as_given(flag)} is not True or False")
    if not questions:
        raise ParameterError("there is no question; ask one, such as ask('count'), or ask('mean(age) by sex')")
    options = {"level": level, "of": of, "statement": "certified" if certified else "auto", "force": force}
    replies: list[Reply] = []
    refused: dict[str, str] = {}
    for text in questions:
        if not isinstance(text, str):
            raise ParameterError(
                f"a question is text, and {as_given(text)} is not; ask one after the other: ask('count', ...)"
            )
        try:
            question = parse_question(text, release.asked_schema)
            try:
                replies.append(Reply(question, answers_to(release, question, options, simultaneous=simultaneous)))
            except ParameterError as err:
                if not may_refuse:
                    raise
                replies.append(Reply(question, None, str(err)))
        except ParameterError as err:
            if len(questions) == 1:
                raise
            refused[text] = str(err)
    return Replies(tuple(replies), refused)


def _numbers(answer: Answer) -> tuple[str, str]:
    """The estimate and the interval, with as many digits as the interval deserves."""
    estimate, low, high = answer.numbers
    return estimate, "none" if low is None else f"{low} to {high}"
