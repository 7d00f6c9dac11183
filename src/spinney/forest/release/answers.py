"""Answers of a forest: each question gets the strongest statement that can be made. PUBLIC.

Geometry, and numbers that are independent of the noise of the counts in question, decide which statement is
made; so does where bars are cut. Choosing the narrower of two intervals after looking would break the promise
of both.

    answers         certified from counts, calibrated from the model, or refused with a remedy
    cuts of bars    where counting cut the columns
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.columns import Bounded, Date, Datetime, Listed
from spinney.errors import ParameterError
from spinney.forest.release import by_draws
from spinney.forest.release.calibrate import (
    LOST,
    MOST_ADDED,
    REMEDY,
    Calibrated,
    added_to_mean,
    calibrated,
    calibrated_quantile,
    hidden,
    noise_quantile,
    rows_by_leaf,
)
from spinney.forest.release.certify import (
    Counted,
    certified_count,
    certified_counts,
    certified_mean,
    certified_quantile,
    certified_ratio,
    counted_for,
    leaves_counted,
)
from spinney.forest.release.columns import ColumnModel, stands_alone
from spinney.forest.release.conditions import followed_to, follows_from_lag
from spinney.forest.release.measured import MeasuredColumn
from spinney.forest.release.misfit import N_REDRAWN, Factor, Factors, Laws, Misfit, Ratio
from spinney.forest.release.parts import Flags, Part, parts_of, valued
from spinney.forest.release.related import without_codes
from spinney.forest.release.related_answers import answer_in_parts, is_in_parts
from spinney.forest.release.verdicts import Standing, Verdicts
from spinney.release.answers.answer import Answer, Trust, Verdict
from spinney.release.answers.ask import CERTIFIED, EXACT, NOTHING_CERTAIN, ONE_VALUE, Answering
from spinney.release.answers.certify import Between
from spinney.release.answers.question import Question
from spinney.release.answers.ranks import t_quantile
from spinney.text import listed

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# -------------------------------------------------------------------------------------------------------------- answers


# A certified interval of several columns is preferred while it is no wider than this many times that of a sample.
_WIDEST = 1.7
# Means of fewer than this share of the rows hang on where in states they lie.
_FEW = 0.05
# A question about less than this part of a leaf, and nothing else, may be about all of its rows, or none.
_PART_OF_LEAF = 0.25
# Leaves of up to so many days may have all of their rows on one of them; a day in microseconds.
_LONGEST_DAYS, _DAY_MICROSECONDS = 14, 86_400_000_000.0
# Quantiles with fewer rows beyond them than this many standard deviations of noise hang on leaves that noise made.
_HIDDEN = 5.0
# The part of what an interval may miss that goes to certified counts of its conditions, to which it is cut.
_MISSED_BY_MARGINALS = 0.05
CUT = ", with conditions that cut leaves, whose rows may lie anywhere inside"
NO_ROWS = "the model has no rows with a value that meet the conditions; ask for a count"
FEW_ROWS = "noise alone may have put the rows there that meet the conditions, and a mean or quantile of no rows is none"
INSIDE = (
    "the columns were counted together in states that are ranges of values, and where in these rows with such "
    "conditions lie is the model's guess"
)
REMEDY_INSIDE = "ask for counts, or for statement='certified'"
BEYOND = "hardly more rows lie beyond the quantile than noise"
# An answer about several columns is inside of what was counted if states that conditions take whole have less than this
# part of the rows that are asked about, by what columns say alone.
_MOSTLY = 0.5
INSIDE_COUNTED = (
    "the conditions cut all, or most, of the leaves and states that were counted, and where in these rows lie is the "
    "model's guess"
)
ANYWHERE = "what was not measured may move it to any value that the conditions allow, so that an interval says nothing"
REMEDY_INSIDE_APART = "ask for wider ranges or a count, or name the columns in workload="
REMEDY_INSIDE_COUNTED = "ask for wider ranges, ask for statement='certified', or name the columns in workload="


class _Asked(NamedTuple):
    """What is left of variables under all conditions and under those of `given`, and the counts that hold them."""

    parts: Mapping[int, Part]
    given: Mapping[int, Part]
    counted: Counted | None


class ForestAnswers(Answering[_Asked]):
    """Answers of one forest."""

    def __init__(self, release: ForestRelease) -> None:
        self._release = release
        self._counted: dict[tuple[int, ...], Counted | None] = {}

    def _strongest(self, question: Question, level: float) -> Answer:
        if self._is_of_lags(question):
            return self._of_rows(question, level)
        related = self._release.schema._related
        found = answer_in_parts(question, level, self._release.schema, super()._strongest) if related else None
        return super()._strongest(question, level) if found is None else found

    # ------------------------------------------------------------------------------------------ what is shared

    @cached_property
    def _refusal(self) -> str | None:
        """Why no models can be redrawn; None where they can."""
        if self._release.measured is None:
            return "the file does not hold its noisy counts"
        try:
            self._release.redrawn(N_REDRAWN)
        except ParameterError as problem:
            return str(problem)
        return None

    @cached_property
    def laws(self) -> Laws:
        return Laws(self._release) if self._refusal is None else Laws(self._release, n_redrawn=0)

    @cached_property
    def misfit(self) -> Misfit | None:
        return None if self._release.products is None else Misfit(self._release, self.laws)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self._release, self.laws, self.misfit, self._refusal)

    def counted(self, variables: tuple[int, ...]) -> Counted | None:
        """The noisy counts that hold these variables, with the noise that was simulated for them."""
        if variables not in self._counted:
            found = counted_for(self._release, variables)
            same = next((one for one in self._counted.values() if one and found and one.noisy is found.noisy), found)
            self._counted[variables] = same
        return self._counted[variables]

    def trust(self, columns: Sequence[str]) -> Trust:
        """Verdicts on columns that the schema has."""
        found = self.verdicts.trust(columns, [self._number(name) for name in columns])
        computed = {name for name in columns if follows_from_lag(name, self._release.schema)}

        def of_rows(verdict: Verdict) -> Verdict:
            if computed.isdisjoint(verdict.columns) or verdict.statement == "not supported":
                return verdict
            return Verdict(verdict.columns, "indicative", by_draws.WHY, by_draws.INSTEAD)

        return replace(found, verdicts=tuple(map(of_rows, found.verdicts)), together=of_rows(found.together))

    @cached_property
    def _drawn_answers(self) -> by_draws.DrawnAnswers:
        return by_draws.DrawnAnswers(self._release, n_redrawn=0 if self._refusal else N_REDRAWN)

    def _of_rows(self, question: Question, level: float) -> Answer:
        """The answer of drawn rows, where a column is another one and a difference."""
        if question.statement == "certified":
            raise ParameterError(f"{question.asked}: nothing can be certified, because {by_draws.WHY}")
        n_rows = self._release.card.n_rows
        total = float(self._release.noisy_total if n_rows is None else n_rows)
        found = self._drawn_answers.answer(question, level, refusal=self._refusal, total=total)
        standing = self.verdicts.of(
            [self._number(name) for name in followed_to(question.columns, self._release.schema)]
        )
        if standing.statement != "not supported" or found.statement == "not supported":
            return found
        ends = None if found.low is None or found.high is None else (found.low, found.high)
        return question.answered(found.estimate, ends, "not supported", standing.reason)

    def _is_of_lags(self, question: Question) -> bool:
        return any(follows_from_lag(name, self._release.schema) for name in question.columns)

    def _number(self, name: str) -> int:
        return variable_of(self._release, name)

    def _certified_at_once(self, questions: Sequence[Question]) -> list[Answer] | None:
        """Certified counts of boxes of one table, with one rank for all; None where some are anything else."""
        tables, every = set(), []
        if is_in_parts([question.where for question in questions], self._release.schema):
            return None
        for question in questions:
            if self._is_of_lags(question):
                return None
            is_count = question.kind == "count" or (question.kind == "proportion" and not question.given)
            if not is_count or question.of != "table" or question.statement == "calibrated":
                return None
            parts = parts_of(self._release, question.where)
            counted = self.counted(tuple(sorted(parts)))
            if counted is None or (question.kind == "proportion" and counted.total is None):
                return None
            parts = self._parts_counted(question, counted)
            if counted.is_cut(parts) or not (question.statement == "certified" or self._is_worth_it(counted, parts)):
                return None
            tables.add(counted)
            every.append(parts)
        if len(tables) != 1:
            return None
        (counted,) = tables
        found = certified_counts(counted, every, questions[0].level)
        why = f"{self._certified_words}, in all cells at once"
        return [
            question.answered(one.estimate, one.ends, "certified", why)
            for question, counts in zip(questions, found, strict=True)
            for one in [counts if question.kind == "count" else counts.over(counted.total)]
        ]

    def _read(self, question: Question) -> _Asked:
        if question.statement == "certified" and question.of == "population":
            raise ParameterError(
                "statement='certified' is about the rows of the table, and a population is not certain; ask "
                "of='table', or statement='calibrated'"
            )
        parts = parts_of(self._release, {**question.where, **question.given}, values=question.column)
        given = parts_of(self._release, question.given) if question.given else {}
        given = {variable: part for variable, part in given.items() if variable in parts}  # the others say nothing
        return _Asked(parts, given, self.counted(tuple(sorted(parts))) if parts else None)

    def _known(self, question: Question, asked: _Asked, level: float) -> Answer | None:
        """The number of all rows."""
        if asked.parts:
            return None
        n_rows = self._release.card.n_rows
        if n_rows is not None:
            return question.answered(n_rows, (n_rows, n_rows), "certified", EXACT)
        reach = t_quantile(level, math.inf) * math.sqrt(self._total_variance)
        total = float(self._release.noisy_total)
        why = "the number of rows is private and was estimated from noisy counts"
        return question.answered(total, (max(0.0, total - reach), total + reach), "calibrated", why)

    def share_of(self, where: Mapping[str, Any]) -> float:
        """The share of rows that meet conditions, as rows are drawn: by the released model alone."""
        parts = parts_of(self._release, where)
        return max(self._drawn(Question("proportion"), parts, {}), 0.0) if parts else 1.0

    def _drawn(self, question: Question, parts: Mapping[int, Part], given: Mapping[int, Part]) -> float:
        """A count or a share as rows are drawn: by the released model alone."""
        ratio, laws = ratio_of(question, parts, given), self._released_laws
        above, below = (float(laws.means(one)[0]) + laws.tilted(one)[0] for one in (ratio.above, ratio.below))
        share = above / max(below, 1 / laws.total)
        return share * laws.total if question.kind == "count" else share

    @cached_property
    def _released_laws(self) -> Laws:
        return Laws(self._release, n_redrawn=0)

    @property
    def _certified_words(self) -> str:
        """What certified intervals hold for: rows that break a rule were counted as if they did not."""
        return CERTIFIED if not self._release.schema.rules else f"{CERTIFIED}, as long as they obey the schema's rules"

    @cached_property
    def _total_variance(self) -> float:
        """The variance of the noise on the number of rows; 0 where it is public."""
        measured = self._release.measured
        if self._release.card.n_rows is not None or measured is None:
            return 0.0
        precise = [1 / column.sum[1] for column in measured.columns if column is not None and column.kind != "place"]
        return 1 / sum(precise) if precise else 0.0

    # ---------------------------------------------------------------------------------------------- certified

    def _certified(self, question: Question, asked: _Asked, level: float) -> Answer | None:
        if question.of != "table":
            return None
        parts, given, counted = asked
        of_rows = question.kind in ("count", "proportion")
        is_wanted = question.statement == "certified" or (of_rows and self._is_inside(parts))
        found = self._bounds(question if given else replace(question, given={}), counted, level, is_wanted=is_wanted)
        if found is None:
            return None
        if found.is_cut and of_rows:
            found = found.around(self._drawn(question, parts, given))  # as rows have it, not halfway between the ends
        why = f"{self._certified_words}{CUT if found.is_cut else ''}"
        return question.answered(found.estimate, found.ends, "certified", why)

    def _bounds(self, question: Question, counted: Counted | None, level: float, *, is_wanted: bool) -> Between | None:
        """A certified interval, where there is one; unasked, where geometry says that it is worth having."""
        if counted is None or (not is_wanted and question.kind not in ("count", "proportion")):
            return None
        if question.given and not is_wanted:
            return None
        parts = self._parts_counted(question, counted)
        if question.kind == "mean":
            return certified_mean(counted, parts, level)
        if question.kind == "quantile":
            assert question.at is not None
            return certified_quantile(counted, parts, question.at, level)
        if question.kind == "proportion" and (question.given or counted.total is None):
            given = self._parts_counted(replace(question, where={}, column=None), counted) if question.given else {}
            given = {variable: part for variable, part in given.items() if variable in parts}
            return certified_ratio(counted, parts, given, level)
        if not is_wanted and not self._is_worth_it(counted, parts):
            return None
        found = certified_count(counted, parts, level)
        if question.kind == "count":
            return found
        return found.over(counted.total)

    def _parts_counted(self, question: Question, counted: Counted) -> dict[int, Part]:
        """What a question asks of variables, leaf by leaf as these were counted."""
        finer = leaves_counted(self._release) if counted.by_leaf else {}
        where = {**question.where, **question.given}
        return parts_of(self._release, where, values=question.column, leaves=finer)

    def _is_worth_it(self, counted: Counted, parts: Mapping[int, Part]) -> bool:
        """Whether boxes are whole and their noise is little: by geometry, the rows that were planned for, and shares.

        None of these follows from the counts that the interval is made of: of one column a half stands for the share,
        of several what their one-way counts say. A noisy total of all counts would, and choose by the noise.
        """
        if counted.is_cut(parts):
            return False
        n_inside = float(counted.bounds(parts)[0].sum())
        share_outside = 1.0 if counted.total is None else 1 - n_inside / counted.n_boxes
        share = 0.5
        if not counted.by_leaf:
            weights = [(part.leaves.weights, part.share) for part in parts.values()]
            share = math.prod(float(line @ left) / max(float(line.sum()), 1e-300) for line, left in weights)
        noise = counted.noise.std * math.sqrt(n_inside * share_outside)
        return noise <= _WIDEST * math.sqrt(max((self._release.card.planned_rows or 0) * share * (1 - share), 1.0))

    def _is_inside(self, parts: Mapping[int, Part]) -> bool:
        """Whether much of what is asked lies inside of leaves, or of states of several columns, that conditions cut.

        There the model guesses: a day of the week in leaves of weeks, an hour in states of two hours. It is decided by
        geometry, and for several columns by what each says alone; neither follows from counts of their table.
        """
        if len(parts) == 1:
            (part,) = parts.values()
            is_whole, leaves = part.touches & (part.is_whole | (part.share >= 1)), part.leaves
            if not isinstance(leaves, ColumnModel) or not is_whole.any():
                return bool(part.touches.any() and not is_whole.any())
            is_cut = part.touches & ~is_whole & ~leaves.is_null
            return float(leaves.length[is_whole].sum()) < float((leaves.length * part.share)[is_cut].sum())
        whole = every = 1.0
        for part in parts.values():
            leaves = part.leaves
            is_cut = np.bincount(leaves.states, ~part.is_whole, leaves.n_states) > 0
            whole *= float(leaves.weights[~is_cut[leaves.states]].sum())
            every *= float(leaves.weights @ part.share)
        return whole < _MOSTLY * every

    def _no_certificate(self, question: Question, asked: _Asked) -> ParameterError:
        variables = tuple(sorted(asked.parts))
        if asked.counted is not None:
            return ParameterError(f"{question.asked}: {NOTHING_CERTAIN}")
        standing = self.verdicts.of(variables, asked.parts)
        if len(variables) < 2 or self._release.measured is None:
            return ParameterError(f"{question.asked}: nothing can be certified, because {standing.why}")
        names = listed([self._release.variables[number] for number in variables])
        remedy = standing.instead or "leave out statement=, or name the columns in workload= of the next fit"
        return ParameterError(
            f"{question.asked}: no counted table holds {names} together, so nothing can be certified; {remedy}"
        )

    # ---------------------------------------------------------------------------------------------- the model

    def _modelled(self, question: Question, asked: _Asked, level: float) -> Answer:
        parts, given, counted = asked
        standing = self._standing(question, parts, counted)
        is_population = question.of == "population"
        if question.kind in ("mean", "quantile"):
            if not any((part.touches & (part.leaves.weights > 0)).any() for part in parts.values() if part.values):
                return question.answered(math.nan, None, "not supported", NO_ROWS)
            standing = self._of_values(question, parts, counted, standing)
            if any(self._is_noise(variable, part, level) for variable, part in parts.items()):
                standing = Standing("not supported", FEW_ROWS, REMEDY_INSIDE)
        if question.kind == "quantile":
            assert question.at is not None
            about = (self.laws, self.misfit, parts, question.at, counted, self._column_of(parts))
            found, low, high = calibrated_quantile(*about, level=level, of_population=is_population)
            low, high = self._within_certified(question, (low, found, high), counted, level)
        else:
            ratio = ratio_of(question, parts, given)
            one = calibrated(self.laws, self.misfit, ratio, counted, of_population=is_population)
            if question.kind == "mean":
                found, low, high, is_far = self._mean_ends(one, parts, level)
                if is_far and standing.statement == "calibrated":
                    standing = Standing("indicative", LOST, REMEDY)
            else:
                found, low, high = self._ends(question, one, parts, given, level)
                low, high = self._within_marginals(question, (low, found, high), parts, given, level)
        if question.column is not None and standing.statement != "not supported":
            _, part, values = valued(parts)
            least, most = values.low[part.touches].min(), values.high[part.touches].max()
            if least == most:
                return question.answered(least, (least, least), "certified", ONE_VALUE)
            if standing.statement == "indicative" and len(parts) > 1 and low <= least and most <= high:
                standing = Standing("not supported", ANYWHERE, standing.instead)
        return question.answered(found, (low, high), standing.statement, standing.reason)

    def _standing(self, question: Question, parts: Mapping[int, Part], counted: Counted | None) -> Standing:
        """What can be said at best; models are redrawn for it, which a certified answer does not need."""
        standing = self.verdicts.of(tuple(sorted(parts)), parts)
        # Counts of columns apart have room for what lies inside of states; values would have that of their whole range.
        has_room = counted is None and question.kind in ("count", "proportion")
        if standing.statement == "not supported" or len(parts) < 2 or has_room or not self._is_inside(parts):
            return standing
        remedy = REMEDY_INSIDE_APART if counted is None else REMEDY_INSIDE_COUNTED
        return Standing("not supported", INSIDE_COUNTED, remedy)

    def _is_noise(self, variable: int, part: Part, level: float) -> bool:
        """Whether a condition on one variable leaves no more rows than noise alone may have put there."""
        is_held = part.touches & (part.leaves.weights > 0)
        if (is_held & ~part.is_whole).sum() == 0 and is_held.sum() == (part.leaves.weights > 0).sum():
            return False  # all values: no condition
        rows = self.laws.total * float(self.laws.means({variable: Factor(replace(part, values=None))})[0])
        noise = self.laws.noise_std(variable) * math.sqrt(is_held.sum())
        return rows <= t_quantile(level, math.inf) * noise

    def _of_values(
        self, question: Question, parts: Mapping[int, Part], counted: Counted | None, standing: Standing
    ) -> Standing:
        """The standing of a mean or a quantile: weaker than that of counts where it hangs on places inside states."""
        if standing.statement != "calibrated":
            return standing
        if len(parts) > 1 and counted is None:
            return Standing("indicative", f"{standing.why}; values hang on more than such sums see", standing.instead)
        plain = {variable: Factor(replace(part, values=None)) for variable, part in parts.items()}
        share = float(self.laws.means(plain)[0])
        if len(parts) > 1 and (question.kind == "quantile" or share < _FEW):
            return Standing("indicative", INSIDE, REMEDY_INSIDE)
        if question.kind == "quantile" and question.at is not None and self._release.measured is not None:
            column = self._release.measured.columns[next(iter(parts))]
            beyond = min(question.at, 1 - question.at) * share * self.laws.total
            if column is not None and beyond < _HIDDEN * column.noise.std:
                return Standing("indicative", BEYOND, REMEDY)
        return standing

    def _column_of(self, parts: Mapping[int, Part]) -> MeasuredColumn | None:
        """The column whose values are asked for, as it was counted."""
        return None if self._release.measured is None else self._release.measured.columns[valued(parts)[0]]

    def _mean_ends(
        self, found: Calibrated, parts: Mapping[int, Part], level: float
    ) -> tuple[float, float, float, bool]:
        """A mean, the ends of its interval within the values asked about, and whether they hang on rows far out."""
        variable, part, values = valued(parts)
        reach = found.half_width(level)
        below = above = reach
        column = self._column_of(parts)
        if column is not None:
            rows = self.laws.total * np.maximum(part.share * rows_by_leaf(self.laws, parts, variable), 0.0)
            is_loose = self._may_hold_one_value(variable, part)
            below, above = added_to_mean(part, column, rows, found.estimate, reach, level, is_loose=is_loose)
            if part.at_edge is not None:  # rows of a leaf may all have the one value that the condition leaves out
                left_out = np.where(part.at_edge > 0, rows, 0.0) @ (values.mean - found.estimate)
                below += max(float(left_out), 0.0) / max(float(rows.sum()), 1.0)
                above += max(-float(left_out), 0.0) / max(float(rows.sum()), 1.0)
        least, most = values.low[part.touches].min(), values.high[part.touches].max()
        low, high = np.clip([found.estimate - below, found.estimate + above], least, most)
        is_far = max(below, above) > (1 + MOST_ADDED) * reach
        return found.estimate, min(float(low), found.estimate), max(float(high), found.estimate), is_far

    def _ends(
        self, question: Question, found: Calibrated, parts: Mapping[int, Part], given: Mapping[int, Part], level: float
    ) -> tuple[float, float, float]:
        """The estimate of a count or a share and the ends of its interval, in rows for counts."""
        total = self.laws.total
        share = min(max(found.estimate, 0.0), 1.0)
        if question.kind == "proportion":
            among = {variable: Factor(part) for variable, part in given.items()}
            total = max(total * float(self.laws.means(among)[0]), 1.0)
            scale = total
        else:
            noise = {"total": share**2 * self._total_variance / total**2} if self._total_variance else {}
            found, scale = replace(found, variances={**found.variances, **noise}), 1.0
        rows, reach = share * total, total * found.half_width(level)
        outside = {variable: replace(part, touches=~part.is_whole) for variable, part in parts.items()}
        below = self._room(total - rows, reach, outside, level) if len(parts) == 1 else reach
        above = self._room(rows, reach, parts, level)
        for variable, part in parts.items():
            is_cut = part.touches & ~part.is_whole
            is_loose = self._may_hold_one_value(variable, part) & is_cut
            if is_cut.sum() == part.touches.sum() == 1 and part.share[is_cut] < _PART_OF_LEAF:
                is_loose = is_cut  # one of many values may be all that a leaf holds
            if is_loose.any():
                cut = self.laws.total * np.maximum(rows_by_leaf(self.laws, parts, variable), 0.0)[is_loose]
                held = part.share[is_loose]
                std = t_quantile(level, math.inf) * self.laws.noise_std(variable)
                below = float(cut @ held) + math.hypot(below, std * float(np.linalg.norm(held)))
                above = float(cut @ (1 - held)) + math.hypot(above, std * float(np.linalg.norm(1 - held)))
        return rows / scale, max(0.0, rows - below) / scale, min(rows + above, total) / scale

    def _within_marginals(
        self,
        question: Question,
        ends: tuple[float, float, float],
        parts: Mapping[int, Part],
        given: Mapping[int, Part],
        level: float,
    ) -> tuple[float, float]:
        """The ends of an interval, cut to what certified counts of the single conditions allow.

        As many rows meet all conditions as meet the rarest at most, and as many as the others leave over at least.
        Each condition's count is taken with so high a level that all of them seldom cut off a true answer.
        """
        low, estimate, high = ends
        if len(parts) < 2 or question.of != "table":
            return low, high
        total = math.inf if self._release.card.n_rows is None else float(self._release.card.n_rows)
        each = 1 - (1 - level) * _MISSED_BY_MARGINALS / (len(parts) + len(given))
        fewest, most = _all_at_once([self._certified_alone(question, variable, each) for variable in parts], total)
        if question.kind == "proportion":
            least, largest = total, total
            if given:
                below = replace(question, where={})
                least, largest = _all_at_once(
                    [self._certified_alone(below, variable, each) for variable in given], total
                )
            if not 1 <= least < math.inf:
                return low, high
            fewest, most = fewest / largest, most / least
        return min(max(low, fewest), estimate), max(min(high, most), estimate)

    def _within_certified(
        self, question: Question, ends: tuple[float, float, float], counted: Counted | None, level: float
    ) -> tuple[float, float]:
        """The ends of a quantile's interval, cut to the certified one, unless nothing but one value is left."""
        low, estimate, high = ends
        if question.of != "table" or counted is None or not counted.by_leaf:
            return low, high
        known = self._bounds(question, counted, 1 - (1 - level) * _MISSED_BY_MARGINALS, is_wanted=True)
        if known is None:
            return low, high
        nearer = min(max(low, known.low), estimate), max(min(high, known.high), estimate)
        return nearer if nearer[0] < nearer[1] else (low, high)

    def _certified_alone(self, question: Question, variable: int, level: float) -> tuple[float, float] | None:
        """How many rows meet what is asked of one variable, for certain; None where it was not counted by itself."""
        counted = self.counted((variable,))
        if counted is None:
            return None
        part = self._parts_counted(replace(question, column=None), counted).get(variable)
        if part is None:
            return None
        found = certified_count(counted, {variable: part}, level)
        return found.low, found.high

    def _may_hold_one_value(self, variable: int, part: Part) -> Flags:
        """The leaves of a variable whose rows may all have one value: a code, or a day of the week."""
        if not isinstance(part.leaves, ColumnModel):
            return np.zeros(len(part.share), dtype=np.bool_)
        column = self._release.schema._as_drawn[self._release.variables[variable]]
        found = stands_alone(part.leaves, column)
        if isinstance(column, Date | Datetime):
            day = 1.0 if isinstance(column, Date) else _DAY_MICROSECONDS
            found = found | (part.leaves.length <= _LONGEST_DAYS * day)
        return found

    def _room(self, rows: float, reach: float, parts: Mapping[int, Part], level: float) -> float:
        """How many rows more than the model has may be there, by its reach and leaves that it takes for empty."""
        measured = self._release.measured
        pairs = [] if measured is None else [(measured.columns[variable], part) for variable, part in parts.items()]
        counted = [(column, part) for column, part in pairs if column is not None]
        if not counted:
            return reach
        every = [hidden(part, one).most(reach, noise_quantile(one.noise, level)) for one, part in counted]
        # Where hardly any row is left, rows that one column lost may be all there are; else other columns hold them.
        added = max(every) if rows <= max(every) else min(every)
        least = min((one.noise for one, _ in counted), key=lambda noise: noise.std)
        few = noise_quantile(least, level) * least.std if rows <= 2 * least.std else 0.0
        return max(added, few)


def _all_at_once(alone: Sequence[tuple[float, float] | None], total: float) -> tuple[float, float]:
    """How many rows may meet some conditions at once, of which so many meet each; None says nothing."""
    lows, highs = zip(*((0.0, math.inf) if one is None else one for one in alone), strict=True)
    others = 0.0 if len(alone) == 1 else (len(alone) - 1) * total
    return max(sum(lows) - others, 0.0), min(highs)


def ratio_of(question: Question, parts: Mapping[int, Part], given: Mapping[int, Part]) -> Ratio:
    """A question as a ratio of means of products."""
    every: Factors = {variable: Factor(replace(part, values=None)) for variable, part in parts.items()}
    if question.kind == "mean":
        with_values = {variable: Factor(part, shift=0.0) for variable, part in parts.items() if part.values is not None}
        return Ratio({**every, **with_values}, every)
    return Ratio(every, {variable: Factor(part) for variable, part in given.items()})


def variable_of(release: ForestRelease, name: str) -> int:
    """The variable that a column belongs to: itself, its place, or what it is computed from."""
    names = release.variables
    derived = {rule.column: rule for rule in release.schema._derivations}
    while name in derived and name not in names:
        name = derived[name].sources[0]
    label = next((label for label, place in release.places.items() if name in place.names), name)
    if label not in names:
        raise ParameterError(f"columns: {name!r} is not read by the model, so nothing can be said of it")
    return names.index(label)


# --------------------------------------------------------------------------------------------------------- cuts of bars
# Where counting cut the columns of a forest: leaves of one column, states in tables of several.
#
# The column's tree decided which leaves were counted, and the column's own counts decided its states, both
# before the noise of the counts that a bar is made of was drawn. Bars hold about as many leaves each, so they
# are short where rows are many.


def bar_starts(release: ForestRelease, name: str, most: int, *, together: bool) -> list[Any] | None:
    """Where at most so many ranges of a column begin, as physical numbers; None of computed columns."""
    column = release.schema[name]
    place = next((place for place in release.places.values() if name in place.names), None)
    if place is not None and isinstance(column, Bounded):
        index = place.names.index(name)
        held = ~place.is_null[:, index]
        ends = column._leaf_ends(place.low[held, index], place.length[held, index])
        return _spread(sorted({column.physical(start) for start, _ in ends})[1:], most)
    if name not in release.columns or not isinstance(column, Bounded):
        return None
    rule = release.schema._related.get(name)
    if rule is None and column != release.schema._as_drawn[name]:
        return None
    model, number = release.columns[name], release.variables.index(name)
    if rule is not None:
        model = without_codes(model, rule, release.schema)
    measured = None if release.measured is None else release.measured.columns[number]
    group = model.states.astype(np.int64)
    if not together:
        group = np.arange(len(group)) if measured is None else measured.leaf.astype(np.int64)
    values = np.flatnonzero(~model.is_null)
    group, has_length = group[values], model.length[values] > 0
    # A cut is where no group goes on beyond it, and not beside a pile, which stands for a cell around its number.
    last_seen = np.maximum.accumulate(_last_of(group))
    is_apart = last_seen[:-1] <= np.arange(len(group) - 1)
    cuts = 1 + np.flatnonzero(is_apart & has_length[:-1] & has_length[1:])
    starts = column._leaf_ends(model.low[values[cuts]], model.length[values[cuts]])
    return _spread([column.physical(start) for start, _ in starts], most)


def value_groups(release: ForestRelease, name: str) -> list[list[Any]] | None:
    """The values of a list that share a state, states in the order of their first values."""
    column = release.schema[name]
    if name not in release.columns or not isinstance(column, Listed):
        return None
    single = release.columns[name].by_value()
    groups: dict[int, list[Any]] = {}
    for at, state, is_null in zip(single.low, single.states, single.is_null, strict=True):
        if not is_null:
            groups.setdefault(int(state), []).append(column.listed[int(at)])
    return list(groups.values())


def counts_whole(release: ForestRelease, answering: ForestAnswers, by: Mapping[str, Sequence[Any]]) -> bool:
    """Whether every cell of a table of several columns is made of whole boxes of the table that counted them."""
    for cell in product(*by.values()):
        if is_in_parts([dict(zip(by, cell, strict=True))], release.schema):
            return False
        parts = parts_of(release, dict(zip(by, cell, strict=True)))
        counted = answering.counted(tuple(sorted(parts)))
        if counted is None or counted.is_cut(parts):
            return False
    return True


def _spread(starts: list[Any], most: int) -> list[Any]:
    """Fewer than so many of the starts, in their order, about as many left out between any two."""
    if len(starts) < most:
        return starts
    return [starts[round(len(starts) * place / most)] for place in range(1, most)]


def _last_of(group: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of every entry, the last place at which its group occurs."""
    last = {int(label): at for at, label in enumerate(group)}
    return np.array([last[int(label)] for label in group], dtype=np.int64)
