"""Answers about columns that are fixed parts of others, put together from answers about modelled columns. PUBLIC.

Values of a related column are told by two: a row has a value of its own in a set, or the code of a ratio and a base
that leads into the set. These alternatives are disjoint, and each is a question that a forest answers. Their intervals
hold all at once (each may fail with an equal share of what all may fail with), so the ends of a count are sums of their
ends, and a sum is as strong as its weakest part.

    count, proportion    sums, and ratios of sums
    mean                 means of the alternatives, weighted by as many rows as each may have
    quantile             where the interval of the share below crosses it; indicative
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spinney.columns import Number
from spinney.errors import ParameterError
from spinney.forest.release.related import Asked, alternatives, boxes_of, joined_conditions
from spinney.release.answers.answer import STATEMENTS, Answer, Statement
from spinney.release.answers.question import Question, allowed
from spinney.schema.rules.base import ValueSet, universe
from spinney.schema.rules.related import ends_in_steps, numbers_at, spacing_of
from spinney.schema.schema import Schema

IN_PARTS = "values of a column with ratios are told by two columns: the answer is put together from"
_NO_ROWS = "hardly any rows with a value meet the conditions, or none; ask for a count"

# Answers one question about modelled columns at a level.
Ask = Callable[[Question, float], Answer]


class _Sum(NamedTuple):
    """A number, the ends of its interval, and how strong it is."""

    estimate: float
    low: float
    high: float
    statement: Statement


def answer_in_parts(question: Question, level: float, schema: Schema, ask: Ask) -> Answer | None:
    """The answer to a question about values of related columns; None where it is about none.

    Args:
        question: what is asked.
        level: that of the interval.
        schema: the release's.
        ask: answers questions about modelled columns.
    """
    if question.column in schema._related:
        kind = _mean if question.kind == "mean" else _quantile
        return kind(question, level, schema, ask)
    where, given = alternatives(question.where, schema), alternatives(question.given, schema)
    if len(where) == 1 and len(given) == 1:
        return None
    if question.kind == "mean":
        return _mean(question, level, schema, ask)
    if question.kind == "quantile":
        raise ParameterError(
            f"{question.asked}: a condition on values of a column with ratios is one on two columns, under which there "
            "are counts, proportions and means; ask for one of these"
        )
    if len(given) == 1:
        found = _sum([replace(question, where=one, given=given[0]) for one in where], level, ask, question)
    else:
        met = [replace(question, kind="count", where=joined_conditions(a, b), given={}) for a in where for b in given]
        among = [replace(question, kind="count", where=b, given={}) for b in given]
        half = (1 + level) / 2
        found = _over(_sum(met, half, ask, question), _sum(among, half, ask, question))
    if question.kind == "proportion":
        found = found._replace(low=max(found.low, 0.0), high=min(found.high, 1.0))
    return _answered(question, found, len(where) * len(given))


def _answered(question: Question, found: _Sum, n_parts: int) -> Answer:
    ends = (found.low, found.high) if math.isfinite(found.low) and math.isfinite(found.high) else None
    statement: Statement = found.statement if ends is not None else "not supported"
    return question.answered(found.estimate, ends, statement, f"{IN_PARTS} {n_parts} disjoint ones")


def _sum(parts: Sequence[Question], level: float, ask: Ask, whole: Question) -> _Sum:
    """The sum of disjoint counts or shares, whose intervals hold all at once. Parts that cannot be are empty."""
    each = 1 - (1 - level) / len(parts)
    found = [answer for answer in (_asked(part, each, ask, whole) for part in parts) if answer is not None]
    if not found:
        raise ParameterError(f"{whole.asked}: no row of this release can meet these conditions; ask for others")
    lows = [math.nan if one.low is None else one.low for one in found]
    highs = [math.nan if one.high is None else one.high for one in found]
    return _Sum(sum(one.estimate for one in found), sum(lows), sum(highs), _weakest(found))


def _asked(part: Question, level: float, ask: Ask, whole: Question) -> Answer | None:
    """One part's answer; None where no row can be in it. A part that has no certified answer is told of the whole."""
    try:
        return ask(part, level)
    except ParameterError as err:
        if "is never" in str(err):
            return None
        if whole.statement == "certified":
            raise ParameterError(
                f"{whole.asked}: {IN_PARTS} several, of which one cannot be certified; leave out "
                "statement=, or name the column and its base in workload= of the next fit"
            ) from None
        raise


def _weakest(answers: Sequence[Answer]) -> Statement:
    return max((one.statement for one in answers), key=STATEMENTS.index)


def _over(met: _Sum, among: _Sum) -> _Sum:
    """A ratio of sums; nothing where there may be no rows below the line."""
    if among.estimate <= 0:
        return _Sum(math.nan, math.nan, math.nan, "not supported")
    weakest = max(met.statement, among.statement, key=STATEMENTS.index)
    high = met.high / among.low if among.low > 0 else math.inf
    return _Sum(met.estimate / among.estimate, met.low / among.high, high, weakest)


# ------------------------------------------------------------------------------------------------------- mean, quantile


def _value_boxes(question: Question, schema: Schema, most: Any = math.inf) -> list[dict[str, Any]]:
    """The conditions of a question as disjoint ones in which a related column has a value: of its own, or a ratio's.

    `most` is the largest value that it may have.
    """
    name = question.column
    assert name is not None
    column = schema[name]
    values = ValueSet((universe(column),))
    if name in question.where:
        values = allowed(name, column, question.where[name])
    values = ValueSet(tuple((low, min(high, most)) for low, high in values.ranges if low <= most))
    others = alternatives({other: asked for other, asked in question.where.items() if other != name}, schema)
    boxes = list(boxes_of(name, question.where.get(name), schema._related[name], values, schema))
    return [joined_conditions(one, box) for one in others for box in boxes]


def _mean(question: Question, level: float, schema: Schema, ask: Ask) -> Answer:
    """The mean of the alternatives' means, each a ratio times that of the base, or that of the column's own values."""
    assert question.column is not None
    name, column = question.column, schema[question.column]
    if not isinstance(column, Number):
        raise ParameterError(f"{question.asked}: under conditions on values of a column with ratios numbers have means")
    rule = schema._related.get(name)
    ratios, slack = {}, 0.0
    if rule is not None:
        slack = float(spacing_of(column)) / 2
        ratios = {code.ranges[0]: ratio for code, ratio in zip(rule.code_sets(schema), rule.ratios, strict=True)}
    boxes = alternatives(question.where, schema) if rule is None else _value_boxes(question, schema)
    each = 1 - (1 - level) / (2 * len(boxes))
    counts, means = [], []
    for box in boxes:
        rows = _asked(replace(question, kind="count", column=None, where=box), each, ask, question)
        if rows is None or rows.low is None or rows.high is None or rows.high <= 0:
            continue
        ratio = None if rule is None else ratios.get(_own(box[name]).ranges[0])
        about = name if rule is None or ratio is None else rule.base
        known = _asked(replace(question, column=about, where=box), each, ask, question)
        factor, half = (1.0, 0.0) if ratio is None else (float(ratio), slack)
        least, most = float(column.low), float(column.high)
        middle = (least + most) / 2 if known is None or math.isnan(known.estimate) else factor * known.estimate
        if known is not None and known.low is not None and known.high is not None:
            least, most = max(least, factor * known.low - half), min(most, factor * known.high + half)
        counts.append(rows)
        means.append((middle, least, most, "certified" if known is None else known.statement))
    total = sum(rows.estimate for rows in counts)
    if not counts or total <= 0 or sum(rows.low or 0.0 for rows in counts) <= 0:
        return question.answered(math.nan, None, "not supported", _NO_ROWS)
    estimate = sum(rows.estimate * middle for rows, (middle, *_) in zip(counts, means, strict=True)) / total
    spans = [(max(rows.low or 0.0, 0.0), rows.high or 0.0) for rows in counts]
    low = _least_mean(spans, [mean[1] for mean in means])
    high = -_least_mean(spans, [-mean[2] for mean in means])
    held = [mean[3] for mean in means if mean[3] != "not supported"]  # others may lie anywhere in the bounds
    statement = max([_weakest(counts), *held], key=STATEMENTS.index)
    return _answered(question, _Sum(estimate, min(low, estimate), max(high, estimate), statement), len(boxes))


def _own(asked: Any) -> ValueSet:
    """What a box says of the column itself."""
    found: ValueSet = asked.allowed if isinstance(asked, Asked) else asked.conditions[-1].allowed
    return found


def _least_mean(spans: Sequence[tuple[float, float]], values: Sequence[float]) -> float:
    """The least weighted mean of values whose weights lie in spans: many of the small ones, few of the large."""
    order = np.argsort(values)
    low, high, value = (np.array(every)[order] for every in (*zip(*spans, strict=True), values))
    weights = np.concatenate([[low], np.where(np.tri(len(value), dtype=bool), high, low)])
    sums = weights.sum(axis=1)
    return float(((weights @ value)[sums > 0] / sums[sums > 0]).min())


# Halvings of a range of values at the most.
_HALVINGS = 60


def _quantile(question: Question, level: float, schema: Schema, ask: Ask) -> Answer:
    """The value below which a share of the rows lies, and those at which the interval of that share leaves it."""
    assert question.column is not None
    assert question.at is not None
    name, at = question.column, question.at
    column = schema[name]
    assert isinstance(column, Number)
    rule = schema._related[name]
    if question.statement == "certified":
        raise ParameterError(
            f"{question.asked}: {IN_PARTS} several, so no quantile is certified; leave out statement=, or ask for "
            "counts"
        )
    asked = replace(question, kind="count", column=None, at=None)
    half = (1 + level) / 2
    among = _sum([replace(asked, where=box) for box in _value_boxes(question, schema)], half, ask, question)
    if not among.low > 0:
        return question.answered(math.nan, None, "not supported", _NO_ROWS)

    def value_at(steps: int) -> Any:
        return numbers_at(column, np.array([steps], dtype=np.int64)).tolist()[0]

    def below(steps: int) -> _Sum:
        parts = [replace(asked, where=box) for box in _value_boxes(question, schema, value_at(steps))]
        return _over(_sum(parts, half, ask, question), among) if parts else _Sum(0.0, 0.0, 0.0, "certified")

    def first(reaches: Callable[[_Sum], bool]) -> float:
        """The first value at which the share below reaches something."""
        low, high = ends_in_steps(column)
        for _ in range(_HALVINGS):
            if low >= high:
                break
            middle = (low + high) // 2
            low, high = (low, middle) if reaches(below(middle)) else (middle + 1, high)
        return float(value_at(low))

    found = first(lambda share: share.estimate >= at)
    ends = first(lambda share: share.high >= at), first(lambda share: share.low >= at)
    answer = _Sum(found, min(ends[0], found), max(ends[1], found), "indicative")
    return _answered(question, answer, 1 + len(rule.ratios))


def is_in_parts(conditions: Sequence[Mapping[str, Any]], schema: Schema) -> bool:
    """Whether some of these conditions are about values of related columns."""
    return any(len(alternatives(one, schema)) > 1 for one in conditions)
