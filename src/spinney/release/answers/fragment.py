"""Answers as a notebook shows them: an estimate, its interval, and what kind of statement that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.release.answers.answer import decimals, shown_level, shown_number

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer, Answers

_NONE = "no interval"


def answer_fragment(answer: Answer) -> str | None:
    """A piece of HTML for one answer; None without jinja2."""
    estimate, interval = _numbers(answer)
    facts = {
        "estimate": estimate,
        f"{shown_level(answer.level)} interval": interval,
        "statement": f"{answer.statement}: {answer.why}",
        "about": "the table" if answer.of == "table" else "the population that its rows are a sample of",
    }
    return fragment(answer.asked or "Answer", facts)


def answers_fragment(answers: Answers, labels: Sequence[str]) -> str | None:
    """A piece of HTML for the cells of a table; None without jinja2."""
    rows = [[label, *_numbers(answer), answer.statement] for label, answer in zip(labels, answers, strict=True)]
    facts = {
        "cells": f"{len(rows):,}",
        "intervals": "all hold at once" if answers.simultaneous else "each by itself",
        "because": "; ".join(dict.fromkeys(f"{answer.statement}: {answer.why}" for answer in answers)),
    }
    by = ", ".join(answers.by)
    level = f"{shown_level(answers[0].level)} interval" if rows else "interval"
    return fragment(
        f"Answers by {by}", facts, tables=[Lines("cells", (by, "estimate", level, "statement"), rows, is_open=True)]
    )


def _numbers(answer: Answer) -> tuple[str, str]:
    """The estimate and the interval, with as many digits as the interval deserves."""
    if answer.low is None or answer.high is None:
        return shown_number(answer.estimate), _NONE
    digits = decimals(answer.low, answer.high)
    estimate, low, high = (shown_number(number, digits) for number in (answer.estimate, answer.low, answer.high))
    return estimate, f"{low} to {high}"
