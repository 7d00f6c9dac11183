"""Answers of a tree: certified by the noisy numbers of its leaves, or calibrated by its density. PUBLIC.

Where a question leaves the choice open, it is made by the question, the shape of the tree and the law of the
noise, and never by the noisy numbers themselves: an interval that was chosen because it came out short would
not hold as often as it says.

    starts of bars    where bars of a column begin: at the edges of leaves
    answers           certified by what leaves measured, or by the density
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney.columns import Boolean, Integer, Real
from spinney.errors import ParameterError
from spinney.release.answers.answer import Answer, Trust, Verdict
from spinney.release.answers.ask import CERTIFIED, EXACT, NOTHING_CERTAIN, ONE_VALUE, Answering
from spinney.release.answers.certify import Between, population_counts
from spinney.release.answers.question import Question
from spinney.schema.rules.base import ValueSet, universe
from spinney.tree.bins import NoisyMoments
from spinney.tree.release import certify
from spinney.tree.release.calibrate import Calibrator, Estimate, refits_of
from spinney.tree.release.certify import Certifier, SimulatedNoise
from spinney.tree.release.density import LeafDensity
from spinney.tree.release.regions import (
    Bracket,
    Floats,
    LeafValues,
    Leaves,
    Region,
    axis_of,
    bracket,
    joined,
    leaf_values,
    leaves_of,
    parts_of,
    region_of,
)

if TYPE_CHECKING:
    from spinney.tree.release.moments import MomentsRelease

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


_CALIBRATED = "noise, rows' own luck and their placement inside leaves, by the release's own numbers"
_FINER = (
    "the rows are few beside noise, or a small part of the leaves that the question cuts, where the density only "
    "guesses; ask for statement='certified', for a larger region, or fit fewer columns together"
)
_NO_ROWS = (
    "noise alone may have put these rows there, and a mean of no rows is none; ask for a larger region, or for "
    "statement='certified'"
)
_ALL_ROWS = "all rows meet the conditions, by the schema"
# A region that cuts leaves is certified unasked where that costs less than this many times the calibrated width.
_WORTH = 2.0
# What leaves' rows are taken to scatter by before a release says so; only where a choice may not look at its numbers.
_USUAL_SCATTER = 0.1
# Of the misses that a level allows, the part that a cut by a certified interval may add.
_MISSED_BY_CERTIFIED = 0.05
# Higher levels take many draws of noise, which cells of a table that hold at once are not worth.
_HIGHEST_CUT = 0.998
# From so many columns on clusters are finer than leaves.
_MANY_COLUMNS = 4
# Less of the doubt than this may come from where rows lie in leaves before an answer is called rough.
_SOME = 0.05


class _Asked(NamedTuple):
    """The region of a question, and the one that it is a share of."""

    region: Region
    given: Region


class TreeAnswers(Answering[_Asked]):
    """Answers of one tree."""

    def __init__(self, release: MomentsRelease) -> None:
        self._release = release
        self._moments, self._schema = release.moments, release.schema
        self._n_rows = release.card.n_rows
        self._places = {axis.name: place for place, axis in enumerate(release.moments.lattice.axes)}
        self._values: dict[int, LeafValues] = {}

    @cached_property
    def _leaves(self) -> Leaves:
        return leaves_of(self._moments)

    @cached_property
    def _certifier(self) -> Certifier:
        return Certifier(self._moments, SimulatedNoise(self._moments, self._leaves.is_measured), self._n_rows)

    @cached_property
    def _calibrator(self) -> Calibrator:
        def refit(moments: NoisyMoments) -> LeafDensity:
            return self._release._fitted(moments, self._release.card.row_count)

        density = self._release.density
        refits = refits_of(self._moments, density, self._leaves.is_measured, refit)
        return Calibrator(self._moments, self._schema, self._leaves, density, refits)

    def trust(self, columns: Sequence[str]) -> Trust:
        columns = tuple(columns)
        for name in columns:
            axis_of(name, self._schema, self._places, "columns")
        n_axes = self._moments.lattice.n_axes
        together, alone = self._calibrator.scatter.together, self._calibrator.scatter.alone
        counted = "all columns were counted together, so every region of them is held, missed or cut by leaves"
        rough = f"; with {n_axes} columns intervals of regions that cut many leaves are rough"
        why = counted + (rough if n_axes >= _MANY_COLUMNS else "")
        instead = "ask for statement='certified' where an interval must hold" if n_axes >= _MANY_COLUMNS else ""
        asked = [*((name,) for name in columns), *combinations(columns, 2)]
        verdicts = [Verdict(names, "calibrated", why, instead) for names in asked]
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

    def _read(self, question: Question) -> _Asked:
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
        return _Asked(region, given)

    def _known(self, question: Question, asked: _Asked, level: float) -> Answer | None:
        del level
        if question.kind == "proportion" and joined(*asked) == asked.given:
            return question.answered(1.0, (1.0, 1.0), "certified", _ALL_ROWS)
        is_all_rows = question.kind == "count" and not asked.region and self._n_rows is not None
        if is_all_rows and question.of == "table" and question.statement != "calibrated":
            n_rows = float(self._n_rows or 0)
            return question.answered(n_rows, (n_rows, n_rows), "certified", EXACT)
        return None

    # ---------------------------------------------------------------------------------------------- certified

    def _certified(self, question: Question, asked: _Asked, level: float) -> Answer | None:
        region = joined(*asked)
        if not self._is_certified(question, region):
            return None
        if question.kind in ("mean", "quantile"):
            return self._certified_value(question, region, level)
        found = self._bracket(region)
        if question.kind == "count" or (not asked.given and self._n_rows is not None):
            counted = self._counted(question, found, level).around(self._calibrator.value(region))
            return self._said(question, counted if question.kind == "count" else counted.over(self._n_rows), found)
        if question.of == "population":
            raise self._of_table_only(question, "it is a share of a number of rows that is not public")
        ends = certify.share(self._certifier, found, self._bracket(asked.given), level)
        value = self._calibrator.share(asked.region, asked.given, of_population=False).value
        return None if ends is None else self._said(question, ends.around(value), found)

    def _counted(self, question: Question, found: Bracket, level: float) -> Between:
        """How many rows lie in a region, or are expected there of a population."""
        if question.of == "table":
            return certify.counts(self._certifier, [found], level)[0]
        if self._n_rows is None:
            raise self._of_table_only(question, "the number of rows is private, and is a sample's own")
        beta = 1 - level
        counted = certify.counts(self._certifier, [found], 1 - beta / 2)[0]
        return population_counts(counted, self._n_rows, beta / 2)

    def _certified_value(self, question: Question, region: Region, level: float) -> Answer | None:
        """A certified mean or quantile."""
        axis, found, lines, ends = self._held(question, region)
        if ends[0] == ends[1]:
            return question.answered(ends[0], ends, "certified", ONE_VALUE)
        if question.of == "population":
            raise self._of_table_only(question, "means and quantiles of a sample are certified of the table alone")
        if question.kind == "mean":
            value = self._calibrator.mean(axis, region, of_population=False).value
            interval = certify.mean(self._certifier, found, lines, axis, level)
        else:
            at = float(question.at or 0.5)
            value = self._calibrator.quantile(axis, at, region, _grid(lines), level, of_population=False)[0]
            tree = self._certifier, self._leaves, self._moments, self._schema
            interval = certify.quantile(*tree, axis, at, region, found, lines, level)
        return None if interval is None else self._said(question, interval.around(value), found)

    def _certified_at_once(self, questions: Sequence[Question]) -> list[Answer] | None:
        if questions[0].of != "table" or any(question.kind != "count" for question in questions):
            return None
        regions = [self._read(question).region for question in questions]
        if not all(map(self._is_certified, questions, regions)):
            return None
        brackets = [self._bracket(region) for region in regions]
        ends = certify.counts(self._certifier, brackets, questions[0].level, simultaneous=True)
        return [
            self._said(question, one.around(self._calibrator.value(region)), found, more=", for all cells at once")
            for question, region, one, found in zip(questions, regions, ends, brackets, strict=True)
        ]

    def _is_certified(self, question: Question, region: Region) -> bool:
        """Whether a question gets a certified answer: as it was asked, or by geometry and the law of noise."""
        if question.statement != "auto":
            return question.statement == "certified"
        if question.of == "population" or question.kind == "quantile":
            return False
        if not region and self._n_rows is not None:
            return True
        found = self._bracket(region)
        if question.kind == "mean" or question.given:
            return found.n_cut == 0
        # The number of rows that was planned for: nothing that the leaves' noise has a say in.
        typical = (self._release.card.planned_rows or 0) / len(self._leaves)
        gap = typical * float((found.upper.of_count - found.lower.of_count).sum())
        noise = max(self._certifier.scale(found.lower), self._certifier.scale(found.upper))
        spread = typical / 4 * found.n_cut + _USUAL_SCATTER * (typical / 2) ** 2 * found.n_cut
        return 2 * 1.96 * noise + gap <= _WORTH * 2 * 1.96 * math.sqrt(noise**2 + spread)

    def _said(self, question: Question, between: Between, found: Bracket, more: str = "") -> Answer:
        cut = (
            f"; {found.n_cut:,} of {len(found.upper.leaves):,} leaves are cut, whose rows may lie anywhere"
            if found.n_cut
            else ""
        )
        sample = ", and of the sample, its rows being independent" if question.of == "population" else ""
        why = CERTIFIED + sample + more + cut
        return question.answered(between.estimate, between.ends, "certified", why)

    def _no_certificate(self, question: Question, asked: _Asked) -> ParameterError:
        del asked
        return ParameterError(f"{question.asked}: {NOTHING_CERTAIN}")

    def _of_table_only(self, question: Question, why: str) -> ParameterError:
        return ParameterError(
            f"statement='certified' cannot be had for {question.asked!r} of the population: {why}; ask for "
            "statement='calibrated', or of='table'"
        )

    # ------------------------------------------------------------------------------------------- by the density

    def _modelled(self, question: Question, asked: _Asked, level: float) -> Answer:
        region, is_population = joined(*asked), question.of == "population"
        if question.kind in ("mean", "quantile"):
            return self._modelled_value(question, region, level)
        most = math.inf if self._n_rows is None else float(self._n_rows)
        if question.kind == "count":
            estimate = self._calibrator.count(region, of_population=is_population)
        else:
            estimate, most = self._calibrator.share(asked.region, asked.given, of_population=is_population), 1.0
        low, high = estimate.interval(level, (0.0, most))
        if self._calibrator.is_finer(region):
            return question.answered(estimate.value, (low, high), "not supported", _FINER)
        if question.kind == "count":
            noise = self._noise_reach(region, level)
            if estimate.value <= 2 * noise:  # all of them may be noise that densities cannot have below 0
                low, high = 0.0, min(max(high, noise), most)
        return self._calibrated(question, estimate, self._cut(question, asked, level, (low, high)))

    def _modelled_value(self, question: Question, region: Region, level: float) -> Answer:
        """A mean or a quantile by the density."""
        (axis, _, lines, ends), is_population = self._held(question, region), question.of == "population"
        at = float(question.at or 0.5)
        if question.kind == "mean":
            estimate = self._calibrator.mean(axis, region, of_population=is_population)
            estimate = estimate._replace(value=min(max(estimate.value, ends[0]), ends[1]))
            span = estimate.interval(level, ends)
        else:
            value, low, high, doubt = self._calibrator.quantile(
                axis, at, region, _grid(lines), level, of_population=is_population
            )
            estimate = doubt._replace(value=value)
            span = max(min(low, value), ends[0]), min(max(high, value), ends[1])
        if max(estimate.rows, 1.0) <= self._noise_reach(region, level):
            return question.answered(estimate.value, ends, "not supported", _NO_ROWS)
        if ends[0] == ends[1]:
            return question.answered(ends[0], ends, "certified", ONE_VALUE)
        if question.kind == "quantile":
            tail, n_beyond = self._calibrator.tail(axis, estimate.value, at, region), min(at, 1 - at) * estimate.rows
            if self._calibrator.is_finer(tail) or n_beyond <= 2 * self._noise_reach(tail, level):
                return question.answered(estimate.value, span, "not supported", _FINER)
        if question.kind == "mean":
            span = self._cut(question, _Asked(region, {}), level, span)
        return self._calibrated(question, estimate, span)

    def _calibrated(self, question: Question, estimate: Estimate, ends: tuple[float, float]) -> Answer:
        why = _CALIBRATED + (", and the sample" if question.of == "population" else "")
        if self._moments.lattice.n_axes >= _MANY_COLUMNS and estimate.placement > _SOME * estimate.variance:
            why += f"; rough, for leaves of {self._moments.lattice.n_axes} columns are coarser than where rows lie"
        return question.answered(estimate.value, ends, "calibrated", why)

    def _cut(self, question: Question, asked: _Asked, level: float, ends: tuple[float, float]) -> tuple[float, float]:
        """An interval without what a certified one of a much higher level leaves out."""
        higher = 1 - (1 - level) * _MISSED_BY_CERTIFIED
        if question.of == "population" or higher > _HIGHEST_CUT:
            return ends
        held = self._certified(replace(question, statement="certified"), asked, higher)
        if held is None or held.low is None or held.high is None:
            return ends
        low, high = max(ends[0], held.low), min(ends[1], held.high)
        return (low, high) if low < high else ends

    def _noise_reach(self, region: Region, level: float) -> float:
        """How many rows noise alone may put into the leaves that a region touches."""
        return NormalDist().inv_cdf((1 + level) / 2) * self._certifier.scale(self._bracket(region).upper)

    # ------------------------------------------------------------------------------------------------- inside

    def _bracket(self, region: Region) -> Bracket:
        return bracket(self._leaves, parts_of(self._leaves, region, self._schema, self._moments))

    def _leaf_values(self, axis: int) -> LeafValues:
        if axis not in self._values:
            self._values[axis] = leaf_values(self._leaves, axis, self._moments.lattice.axes[axis])
        return self._values[axis]

    def _held(self, question: Question, region: Region) -> tuple[int, Bracket, LeafValues, tuple[float, float]]:
        """The axis of a column whose values are asked for, and their bounds in the leaves of a region and at all."""
        axis, found = self._places[str(question.column)], self._bracket(region)
        lines = LeafValues(*(part[found.upper.leaves] for part in self._leaf_values(axis)))
        if axis in region and region[axis].ranges:  # cut to what the condition on the column allows
            low, high = float(region[axis].ranges[0][0]), float(region[axis].ranges[-1][1])
            lines = lines._replace(least=np.clip(lines.least, low, high), largest=np.clip(lines.largest, low, high))
        if not len(found.upper.leaves) or not (lines.largest >= lines.least).any():
            raise ParameterError(f"where: no row can be meant by {question.asked!r}; ask for others")
        return axis, found, lines, (float(lines.least.min()), float(lines.largest.max()))


def _grid(lines: LeafValues) -> Floats:
    """The values at which leaves begin and end."""
    return np.unique(np.concatenate([lines.least, lines.largest]))
