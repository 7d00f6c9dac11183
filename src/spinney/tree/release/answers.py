"""Answers of a tree: certified by the noisy numbers of its leaves, or calibrated by its density. PUBLIC.

Where a question leaves the choice open, it is made by the question, the shape of the tree and the law of the
noise, and never by the noisy numbers themselves: an interval that was chosen because it came out short would
not hold as often as it says.

    starts of bars    where bars of a column begin: at the edges of leaves
    answers           the dispatcher: which statement a question gets, and its answer
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from spinney.columns import Boolean, Integer, Real
from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Trust, Verdict
from spinney.release.answers.question import Question
from spinney.schema.rules.base import ValueSet, universe
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyMoments
from spinney.tree.release import evidence
from spinney.tree.release.calibrate import Calibrator, Estimate, population_counts, refits_of
from spinney.tree.release.density import LeafDensity
from spinney.tree.release.evidence import (
    Bracket,
    Certifier,
    Floats,
    Interval,
    LeafValues,
    Leaves,
    Region,
    SimulatedNoise,
    ValueLines,
    at_or_below,
    axis_of,
    bracket,
    joined,
    leaf_values,
    leaves_of,
    parts_of,
    quantile_tests,
    region_of,
)

# ------------------------------------------------------------------------------------------------------- starts of bars
# Where a tree cut a column: the values at which its leaves begin, so that bars cut as few leaves as can be.


def spread_starts(least: Floats, most: int) -> list[float]:
    """Where at most so many ranges begin that hold about as many beginnings of leaves each. By geometry alone."""
    begins = np.sort(least[np.isfinite(least)])
    if not len(begins):
        return []
    places = np.linspace(0, len(begins), most + 1)[1:-1].astype(np.int64)
    return [float(start) for start in np.unique(begins[places]) if start > begins[0]]


# -------------------------------------------------------------------------------------------------------------- answers


_CERTIFIED = "holds whatever the rows are, over the noise of the release"
_CALIBRATED = "noise, rows' own luck and their placement inside leaves, by the release's own numbers"
_FINER = (
    "the rows are few beside noise, or a small part of the leaves that the question cuts, where the density only "
    "guesses; ask for statement='certified', for a larger region, or fit fewer columns together"
)
_NO_ROWS = (
    "noise alone may have put these rows there, and a mean of no rows is none; ask for a larger region, or for "
    "statement='certified'"
)
_ONE_VALUE = "rows there have one value and no other, by the conditions and the schema"
_ALL_ROWS = "all rows meet the conditions, by the schema"
# A region that cuts leaves is certified unasked where that costs less than this many times the calibrated width.
_WORTH = 2.0
# What leaves' rows are taken to scatter by before a release says so; only where a choice may not look at its numbers.
_USUAL_SCATTER = 0.1
# From so many columns on clusters are finer than leaves.
_MANY_COLUMNS = 4
# Less of the doubt than this may come from where rows lie in leaves before an answer is called rough.
_SOME = 0.05
# Values of a column that a certified quantile is looked for at.
_POINTS = 48


class TreeAnswers:
    """Answers of one release. What depends on it alone is prepared when it is first needed, and kept."""

    def __init__(
        self,
        moments: NoisyMoments,
        schema: Schema,
        n_rows: int | None,
        planned_rows: int,
        density: Callable[[], LeafDensity],
        refit: Callable[[NoisyMoments], LeafDensity],
    ) -> None:
        self._moments = moments
        self._schema = schema
        self._n_rows = n_rows
        self._planned_rows = planned_rows  # by which an answer is chosen: nothing that the leaves' noise has a say in
        self._density = density
        self._refit = refit
        self._places = {axis.name: place for place, axis in enumerate(moments.lattice.axes)}
        self._values: dict[int, LeafValues] = {}

    @cached_property
    def _leaves(self) -> Leaves:
        return leaves_of(self._moments)

    @cached_property
    def _certifier(self) -> Certifier:
        return Certifier(self._moments, SimulatedNoise(self._moments, self._leaves.is_measured), self._n_rows)

    @cached_property
    def _calibrator(self) -> Calibrator:
        density = self._density()
        refits = refits_of(self._moments, density, self._leaves.is_measured, self._refit)
        return Calibrator(self._moments, self._schema, self._leaves, density, refits)

    # ------------------------------------------------------------------------------------------------ answers

    def answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        """Answers in the order of the questions."""
        asked = [self._read(question) for question in questions]  # all are checked before any is answered
        if simultaneous and questions and all(question.kind == "count" for question in questions):
            wants = [
                self._is_certified(question, region) for question, (region, _) in zip(questions, asked, strict=True)
            ]
            if all(wants) and questions[0].of == "table":
                return self._all_counts(questions, [region for region, _ in asked])
        level = 1 - (1 - questions[0].level) / len(questions) if simultaneous and questions else None
        return [
            self._one(question, region, given, question.level if level is None else level)
            for question, (region, given) in zip(questions, asked, strict=True)
        ]

    def trust(self, columns: tuple[str, ...]) -> Trust:
        """Verdicts on columns: what can be said of answers about them."""
        for name in columns:
            axis_of(name, self._schema, self._places, "columns")
        n_axes = self._moments.lattice.n_axes
        together, alone = self._calibrator.scatter.together, self._calibrator.scatter.alone
        counted = "all columns were counted together, so every region of them is held, missed or cut by leaves"
        rough = f"; with {n_axes} columns intervals of regions that cut many leaves are rough"
        why = counted + (rough if n_axes >= _MANY_COLUMNS else "")
        instead = "ask for statement='certified' where an interval must hold" if n_axes >= _MANY_COLUMNS else ""
        verdicts = [Verdict((name,), "calibrated", why, instead) for name in columns]
        verdicts += [
            Verdict((one, other), "calibrated", why, instead)
            for place, one in enumerate(columns)
            for other in columns[place + 1 :]
        ]
        regression = Verdict(
            columns,
            "calibrated" if len(columns) <= 2 else "indicative",
            "counts, shares, means and quantiles of regions have intervals; a regression of rows drawn from the tree "
            "has none of its own",
            "ask for counts and means, which may also be certified",
        )
        measures = {f"scatter of rows along {name}": float((together + alone)[self._places[name]]) for name in columns}
        return Trust(columns, tuple(verdicts), regression, measures)

    def bar_starts(self, name: str, most: int) -> list[float]:
        """Where at most so many ranges of a column begin that cut as few leaves as can be, as physical numbers."""
        axis = axis_of(name, self._schema, self._places, "columns")
        return spread_starts(self._leaf_values(axis).least, most)

    # ---------------------------------------------------------------------------------------------- one answer

    def _read(self, question: Question) -> tuple[Region, Region]:
        """The region of a question, and the one that it is a share of."""
        lattice = self._moments.lattice
        region, given = (
            region_of(conditions, self._schema, lattice) for conditions in (question.where, question.given)
        )
        if question.column is not None:
            axis = axis_of(question.column, self._schema, self._places, question.kind)
            column = self._schema[question.column]
            taken = (Integer, Real, Boolean) if question.kind == "mean" else (Integer, Real)
            if not isinstance(column, taken):
                raise ParameterError(
                    f"{question.kind}: column {question.column!r} is of type {column.type_name}; it takes columns of "
                    "numbers. Count the rows of its values or ranges with table(by=...) instead"
                )
            if column.nullable:
                values = ValueSet((universe(column),))
                region = joined(region, {axis: values})
                if region[axis].is_empty:
                    raise ParameterError(
                        f"where: column {question.column!r} is asked to be null, and nulls have no {question.kind}"
                    )
        return region, given

    def _one(self, question: Question, region: Region, given: Region, level: float) -> Answer:
        answers = {"count": self._count, "proportion": self._proportion, "mean": self._mean, "quantile": self._quantile}
        return answers[question.kind](question, region, given, level)

    def _count(self, question: Question, region: Region, given: Region, level: float) -> Answer:
        del given
        most = math.inf if self._n_rows is None else float(self._n_rows)
        if not self._is_certified(question, region):
            estimate = self._calibrator.count(region, of_population=question.of == "population")
            if self._calibrator.is_finer(region):
                return self._finer(question, estimate, estimate.interval(level, (0.0, most)))
            low, high = estimate.interval(level, (0.0, most))
            noise = self._noise_reach(region, level)
            if estimate.value <= 2 * noise:  # all of them may be noise that densities cannot have below 0
                low, high = 0.0, min(max(high, noise), most)
            return self._calibrated(question, estimate, (low, high))
        found = self._bracket(region)
        if not region and self._n_rows is not None and question.of == "table":
            why = "this number is exact: the unit of the release takes it to be public"
            return _made(question, most, (most, most), "certified", why)
        if question.of == "population":
            beta = 1 - level
            (interval,) = evidence.counts(self._certifier, [found], 1 - beta / 2)
            total = self._n_rows
            if total is None:
                raise self._not_certified(question, "the number of rows is private, and is a sample's own")
            ends = population_counts(interval, total, beta / 2)
        else:
            (ends,) = evidence.counts(self._certifier, [found], level)
        return self._certified(question, self._calibrator_value(region), ends, found)

    def _all_counts(self, questions: Sequence[Question], regions: list[Region]) -> list[Answer]:
        """Certified counts that hold at once: one rank for all of them."""
        brackets = [self._bracket(region) for region in regions]
        ends = evidence.counts(self._certifier, brackets, questions[0].level, simultaneous=True)
        return [
            self._certified(question, self._calibrator_value(region), interval, found, more=", for all cells at once")
            for question, region, interval, found in zip(questions, regions, ends, brackets, strict=True)
        ]

    def _proportion(self, question: Question, region: Region, given: Region, level: float) -> Answer:
        if joined(region, given) == given:
            return _made(question, 1.0, (1.0, 1.0), "certified", _ALL_ROWS)
        if not self._is_certified(question, joined(region, given)):
            estimate = self._calibrator.share(region, given, of_population=question.of == "population")
            if self._calibrator.is_finer(joined(region, given)):
                return self._finer(question, estimate, estimate.interval(level, (0.0, 1.0)))
            return self._calibrated(question, estimate, estimate.interval(level, (0.0, 1.0)))
        if not given and self._n_rows is not None:
            counted = self._count(replace(question, kind="count", statement="certified"), region, {}, level)
            ends = Interval(*(float(end or 0.0) / self._n_rows for end in (counted.low, counted.high)))
            return _made(question, counted.estimate / self._n_rows, ends, "certified", counted.why)
        if question.of == "population":
            raise self._not_certified(question, "it is a share of a number of rows that is not public")
        part, whole = self._bracket(joined(region, given)), self._bracket(given)
        ends = evidence.share(self._certifier, part, whole, level)
        value = self._calibrator.share(region, given, of_population=False).value
        return self._certified(question, value, ends, part)

    def _mean(self, question: Question, region: Region, given: Region, level: float) -> Answer:
        del given
        axis = self._places[str(question.column)]
        values = self._leaf_values(axis)
        found = self._bracket(region)
        lines = self._lines(axis, values, region, found)
        if not len(found.upper.leaves) or not (lines.largest >= lines.least).any():
            raise ParameterError(f"where: no row can be meant by {question.asked!r}; ask for others")
        ends = float(lines.least.min()), float(lines.largest.max())
        estimate = self._calibrator.mean(axis, region, of_population=question.of == "population")
        estimate = estimate._replace(value=min(max(estimate.value, ends[0]), ends[1]))
        is_certified = self._is_certified(question, region)
        if not is_certified and max(estimate.rows, 1.0) <= self._noise_reach(region, level):
            return self._finer(question, estimate, ends, _NO_ROWS)
        if ends[0] == ends[1]:
            return _made(question, ends[0], ends, "certified", _ONE_VALUE)
        if not is_certified:
            return self._calibrated(question, estimate, estimate.interval(level, ends))
        if question.of == "population":
            raise self._not_certified(question, "a mean of a sample has no bound that holds whatever the population is")
        interval = evidence.mean(self._certifier, found, lines, axis, level)
        return self._certified(question, estimate.value, interval, found)

    def _quantile(self, question: Question, region: Region, given: Region, level: float) -> Answer:
        del given
        axis, at = self._places[str(question.column)], float(question.at or 0.5)
        values, found = self._leaf_values(axis), self._bracket(region)
        lines = self._lines(axis, values, region, found)
        if not len(found.upper.leaves):
            raise ParameterError(f"where: no row can be meant by {question.asked!r}; ask for others")
        ends = float(lines.least.min()), float(lines.largest.max())
        grid = np.unique(np.concatenate([lines.least, lines.largest, ends]))
        value, low, high, doubt = self._calibrator.quantile(
            axis, at, region, grid, level, of_population=question.of == "population"
        )
        is_certified = self._is_certified(question, region, splits=True)
        if not is_certified and max(doubt.rows, 1.0) <= self._noise_reach(region, level):
            return self._finer(question, doubt._replace(value=value), ends, _NO_ROWS)
        if ends[0] == ends[1]:
            return _made(question, ends[0], ends, "certified", _ONE_VALUE)
        if not is_certified:
            span = max(min(low, value), ends[0]), min(max(high, value), ends[1])
            tail, n_beyond = self._calibrator.tail(axis, value, at, region), min(at, 1 - at) * doubt.rows
            doubt = doubt._replace(value=value)
            if self._calibrator.is_finer(tail) or n_beyond <= 2 * self._noise_reach(tail, level):
                return self._finer(question, doubt, span)
            return self._calibrated(question, doubt, span)
        if question.of == "population":
            raise self._not_certified(question, "a quantile of a sample is certified of the table alone")
        column = self._schema[str(question.column)]
        if len(grid) > _POINTS:
            grid = grid[np.unique(np.linspace(0, len(grid) - 1, _POINTS).astype(np.int64))]
        grid = np.unique([float(at_or_below(column, value)) for value in grid])
        tests = quantile_tests(
            self._certifier, self._leaves, self._moments, self._schema, axis, at, region, found, level
        )
        interval = evidence.quantile(*tests, grid, ends, level)
        return self._certified(question, value, interval, found)

    # ------------------------------------------------------------------------------------------------- inside

    def _bracket(self, region: Region) -> Bracket:
        return bracket(self._leaves, parts_of(self._leaves, region, self._schema, self._moments))

    def _leaf_values(self, axis: int) -> LeafValues:
        if axis not in self._values:
            self._values[axis] = leaf_values(self._leaves, axis, self._moments.lattice.axes[axis])
        return self._values[axis]

    def _lines(self, axis: int, values: LeafValues, region: Region, found: Bracket) -> ValueLines:
        """Bounds on a column's values in the leaves of a region, cut to what its condition allows."""
        lines = ValueLines(*(part[found.upper.leaves] for part in values))
        if axis not in region or not region[axis].ranges:
            return lines
        low, high = float(region[axis].ranges[0][0]), float(region[axis].ranges[-1][1])
        return lines._replace(least=np.clip(lines.least, low, high), largest=np.clip(lines.largest, low, high))

    def _is_certified(self, question: Question, region: Region, *, splits: bool = False) -> bool:
        """Whether a question gets a certified answer: as it was asked, or by geometry and the law of noise."""
        if question.statement != "auto":
            return question.statement == "certified"
        if question.of == "population" or splits:
            return False
        if not region and self._n_rows is not None:
            return True
        found = self._bracket(region)
        n_cut = len(found.upper.leaves) - found.n_inside
        if question.kind in ("mean", "quantile") or question.given:
            return n_cut == 0 and question.kind != "quantile"
        typical = self._planned_rows / len(self._leaves)
        gap = typical * float((found.upper.of_count - found.lower.of_count).sum())
        noise = max(self._certifier.scale(found.lower), self._certifier.scale(found.upper))
        spread = typical / 4 * n_cut + _USUAL_SCATTER * (typical / 2) ** 2 * n_cut
        return 2 * 1.96 * noise + gap <= _WORTH * 2 * 1.96 * math.sqrt(noise**2 + spread)

    def _calibrator_value(self, region: Region) -> float:
        return self._calibrator.value(region)

    def _certified(
        self, question: Question, value: float, ends: tuple[float, float], found: Bracket, more: str = ""
    ) -> Answer:
        n_cut = len(found.upper.leaves) - found.n_inside
        cut = (
            ""
            if not n_cut
            else f"; {n_cut:,} of {len(found.upper.leaves):,} leaves are cut, whose rows may lie anywhere"
        )
        sample = ", and of the sample, its rows being independent" if question.of == "population" else ""
        return _made(question, min(max(value, ends[0]), ends[1]), ends, "certified", _CERTIFIED + sample + more + cut)

    def _calibrated(self, question: Question, estimate: Estimate, ends: tuple[float, float]) -> Answer:
        why = _CALIBRATED + (", and the sample" if question.of == "population" else "")
        if self._moments.lattice.n_axes >= _MANY_COLUMNS and estimate.placement > _SOME * estimate.variance:
            why += f"; rough, for leaves of {self._moments.lattice.n_axes} columns are coarser than where rows lie"
        return _made(question, estimate.value, ends, "calibrated", why)

    def _noise_reach(self, region: Region, level: float) -> float:
        """How many rows noise alone may put into the leaves that a region touches."""
        found = self._bracket(region).upper
        return NormalDist().inv_cdf((1 + level) / 2) * self._certifier.scale(found)

    def _finer(self, question: Question, estimate: Estimate, ends: tuple[float, float], why: str = _FINER) -> Answer:
        """An answer about a region that is finer than leaves, or hardly holds rows: no interval unless it is forced."""
        value, of = estimate.value, question.of
        if not question.force:
            return Answer(value, None, None, question.level, "not supported", why, of, question.asked)
        return _made(question, value, ends, "not supported", f"forced: {why}")

    def _not_certified(self, question: Question, why: str) -> ParameterError:
        return ParameterError(
            f"statement='certified' cannot be had for {question.asked!r} of the population: {why}; ask for "
            "statement='calibrated', or of='table'"
        )


def _made(question: Question, value: float, ends: tuple[float, float], statement: str, why: str) -> Answer:
    low, high = ends
    return Answer(value, low, high, question.level, statement, why, question.of, question.asked)  # type: ignore[arg-type]
