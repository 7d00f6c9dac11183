"""Answers as `spinney ask` prints them: a table for people, plain data for programs, and a table for files.

    mean(income) by region where age in 30..40
      region   estimate        95 % interval   statement
      North      41,210   40,180 to 42,240     certified [1]
      South      38,050                   -    not supported [2]

      [1] ...

What a statement rests on is told once, below the table, however many cells share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.release.answers.answer import Answer, Answers, decimals, shown_label, shown_level, shown_number
from spinney.shown import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.release.answers.grammar import ParsedQuestion


class Asked(NamedTuple):
    """A question, and what a release says: one answer, those of a table's cells, or None where it gives none."""

    question: ParsedQuestion
    answers: Answer | Answers | None
    refusal: str = ""  # why there is none

    @property
    def by(self) -> list[str]:
        """What the cells of a table stand for: columns, or the coefficients of a regression."""
        return list(self.answers.by if isinstance(self.answers, Answers) else self.question.by)

    @property
    def cells(self) -> list[tuple[tuple[str, ...], Answer]]:
        """Every answer with the values that its cell stands for."""
        if self.answers is None:
            return []
        if isinstance(self.answers, Answer):
            return [((), self.answers)]
        labels = [tuple(map(shown_label, label)) for label in self.answers.labels]
        return list(zip(labels, self.answers, strict=True))


def shown(asked: Sequence[Asked], bought: Answer | None = None) -> str:
    """All answers for people, one block a question; what was bought beside what the release says."""
    return "\n\n".join(_block(one, bought) for one in asked)


def described(asked: Sequence[Asked], bought: Answer | None = None) -> dict[str, Any]:
    """All answers as plain data for JSON."""
    answers = [{"question": one.question.text} | _described(one) for one in asked]
    return {"answers": answers} | ({} if bought is None else {"bought": bought.to_dict() | {"digest": bought.digest}})


def answer_table(asked: Sequence[Asked], bought: Answer | None = None, *, is_text: bool = False) -> pa.Table:
    """All answers as a table, a line each: question, source, the columns of `by`, then the fields of the answer.

    With `is_text` what is not printable is escaped, since text may end on a terminal.
    """
    import pyarrow as pa

    groups = list(dict.fromkeys(name for one in asked for name in one.by))
    lines = [
        {"question": one.question.text, "source": "release"} | dict(zip(one.by, label, strict=True)) | _fields(answer)
        for one in asked
        for label, answer in one.cells
    ]
    if bought is not None:
        lines.append({"question": asked[0].question.text, "source": "bought"} | _fields(bought))
    text, number = pa.string(), pa.float64()
    kinds = {"question": text, "source": text} | dict.fromkeys(groups, text)
    kinds |= dict.fromkeys(("estimate", "low", "high", "level"), number) | dict.fromkeys(
        ("of", "statement", "why"), text
    )
    if is_text:
        lines = [
            {name: printable(value) if isinstance(value, str) else value for name, value in line.items()}
            for line in lines
        ]
    columns = {name: pa.array([line.get(name) for line in lines], kind) for name, kind in kinds.items()}
    return pa.table({printable(name) if is_text else name: column for name, column in columns.items()})


def _fields(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.to_dict().items() if name != "asked"}


def _described(one: Asked) -> dict[str, Any]:
    answers = one.answers
    if answers is None:
        return {"answer": None, "refusal": one.refusal}
    if isinstance(answers, Answer):
        return {"answer": answers.to_dict()}
    return {"by": list(answers.by), "simultaneous": answers.simultaneous, "cells": answers.to_dict()}


# --------------------------------------------------------------------------------------------------- for people


def _block(one: Asked, bought: Answer | None) -> str:
    cells = one.cells
    heads = one.by
    if bought is not None:
        heads = ["source"]
        cells = [*((("release",), answer) for _, answer in cells), (("bought",), bought)]
    notes: dict[str, int] = {}
    whose = " of the population" if cells[0][1].of == "population" else ""
    held = " at once" if isinstance(one.answers, Answers) and one.answers.simultaneous else ""
    rows = [[*heads, "estimate", f"{shown_level(cells[0][1].level)} interval{held}{whose}", "statement"]]
    for label, answer in cells:
        number = notes.setdefault(answer.why, len(notes) + 1)
        rows.append([*label, *_numbers(answer), f"{answer.statement} [{number}]"])
    lines = _aligned(rows, n_left=len(heads))
    lines += ["", *(f"[{number}] {why}" for why, number in notes.items())]
    lines += [f"the release gives no answer: {one.refusal}"] if one.refusal else []
    return "\n".join([one.question.text, *(f"  {line}".rstrip() for line in lines)])


def _numbers(answer: Answer) -> list[str]:
    if answer.low is None or answer.high is None:
        return [shown_number(answer.estimate), "none"]
    digits = decimals(answer.low, answer.high)
    estimate, low, high = (shown_number(number, digits) for number in (answer.estimate, answer.low, answer.high))
    return [estimate, f"{low} to {high}"]


def _aligned(rows: list[list[str]], *, n_left: int) -> list[str]:
    """Columns of equal width, those of labels and the last to the left, numbers to the right; all of it printable."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "   ".join(
            f"{cell:<{width}}" if place < n_left or place == last else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
