"""Answers as a notebook shows them: an estimate, its interval, and what kind of statement that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer, Answers


def answer_fragment(answer: Answer) -> str | None:
    """A piece of HTML for one answer; None without jinja2."""
    return fragment(answer.asked or "Answer", {"answer": str(answer)})


def answers_fragment(answers: Answers, labels: Sequence[str]) -> str | None:
    """A piece of HTML for the cells of a table; None without jinja2."""
    rows = [[label, str(answer)] for label, answer in zip(labels, answers, strict=True)]
    facts = {"cells": f"{len(rows):,}", "intervals": "all hold at once" if answers.simultaneous else "each by itself"}
    by = ", ".join(answers.by)
    return fragment(f"Answers by {by}", facts, tables=[Lines("cells", (by, "answer"), rows)])
