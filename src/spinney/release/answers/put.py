"""A question that was read, put to a release: the method of `Asking` that answers it, with all its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Answers

if TYPE_CHECKING:
    from spinney.release.answers.grammar import ParsedQuestion
    from spinney.release.model import Release


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
            "a regression takes no --certified, --force or --simultaneous: its intervals are calibrated, one by one; "
            "leave them out, or raise --level"
        )
    ask = getattr(release, "regression", None)
    if ask is None:
        raise ParameterError(
            "a tree or a grid measures no regressions; fit a forest with --analysis and the formula, or run the "
            "analysis on draws"
        )
    found = ask(formula, level=options["level"], of=options["of"])
    return Answers(["coefficient"], [(name,) for name in found], list(found.values()))
