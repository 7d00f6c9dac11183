"""Answers to questions in the language of `spinney ask`, as a page shows them, and questions put together by a form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, decimals, shown_label, shown_level, shown_number
from spinney.release.answers.grammar import parse_question
from spinney.release.answers.put import answers_to
from spinney.report.page import MEANINGS
from spinney.studio.releases.described import quoted
from spinney.studio.releases.loaded import loaded

KINDS = {
    "count": "how many rows",
    "proportion": "which share of the rows",
    "mean": "the mean of a column",
    "median": "the median of a column",
    "quantile": "a quantile of a column",
}
_OF_COLUMN = ("mean", "median", "quantile")


def built_question(given: Mapping[str, str]) -> str:
    """The question that a form puts together; a ParameterError says which of its fields is missing.

    Args:
        given: `kind`, `column`, `share`, `by`, `cells` and `where`, as far as they were filled in.
    """
    kind, column, by, where = (given.get(name, "").strip() for name in ("kind", "column", "by", "where"))
    if kind not in KINDS:
        raise ParameterError(f"kind: choose one of {', '.join(KINDS)}")
    text = kind
    if kind in _OF_COLUMN:
        if not column:
            raise ParameterError("column: choose the column whose " + kind + " is wanted")
        share = f", {given.get('share', '').strip() or '0.5'}" if kind == "quantile" else ""
        text += f"({quoted(column)}{share})"
    if by and kind == "proportion":
        raise ParameterError("by: a share takes no groups; ask for the number of rows by them instead")
    if by:
        cells = given.get("cells", "").strip()
        text += f" by {quoted(by)}" + (f" ({cells.strip('()')})" if cells else "")
    if kind == "proportion" and not where:
        raise ParameterError("where: a share needs a condition, such as age in 30..40")
    return text + (f" where {where}" if where else "")


@lru_cache(maxsize=128)
def answered(
    path: str,
    digest: str,
    text: str,
    level: float,
    population: bool = False,
    certified: bool = False,
    simultaneous: bool = False,
) -> dict[str, Any]:
    """What a release says to a question; a ParameterError points at what is wrong with it."""
    release = loaded(path, digest)
    question = parse_question(text, release.asked_schema)
    options = {
        "level": level,
        "of": "population" if population else "table",
        "statement": "certified" if certified else "auto",
        "force": False,
    }
    found = answers_to(release, question, options, simultaneous=simultaneous)
    by: list[str] = []
    cells: list[tuple[tuple[str, ...], Answer]] = []
    held = False
    if isinstance(found, Answer):
        cells.append(((), found))
    else:
        by, held = list(found.by), found.simultaneous
        cells += [(tuple(map(shown_label, label)), one) for label, one in zip(found.labels, found, strict=True)]
    reasons = list(dict.fromkeys(answer.why for _, answer in cells))
    kinds = list(dict.fromkeys(answer.statement for _, answer in cells))
    return {
        "question": question.text,
        "by": by,
        "level": shown_level(level),
        "simultaneous": held,
        "of": options["of"],
        "reasons": reasons,
        "statements": [{"name": kind, "means": MEANINGS[kind]} for kind in kinds],
        "cells": [_cell(label, answer, reasons) for label, answer in cells],
    }


def _cell(label: tuple[str, ...], answer: Answer, reasons: list[str]) -> dict[str, Any]:
    estimate, low, high = shown_number(answer.estimate), None, None
    if answer.low is not None and answer.high is not None:
        digits = decimals(answer.low, answer.high)
        estimate, low, high = (shown_number(number, digits) for number in (answer.estimate, answer.low, answer.high))
    return {
        "label": list(label),
        "estimate": float(answer.estimate),
        "low": answer.low,
        "high": answer.high,
        "shown": estimate,
        "shown_low": low,
        "shown_high": high,
        "statement": answer.statement,
        "reason": reasons.index(answer.why) + 1,
    }
