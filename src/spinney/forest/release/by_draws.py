"""Answers about columns that are another one and a difference, from rows that are drawn. PUBLIC.

Such a column was not counted by itself, so nothing about it is certified: counts, shares, means and quantiles are those
of drawn rows, and intervals those of rows of redrawn models, to which the luck of the draws is added, made wider. What
states are too coarse to show is not measured, so they are called indicative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.columns import Floats
from spinney.release.answers.answer import Answer
from spinney.release.answers.question import Question, allowed
from spinney.release.answers.ranks import t_quantile
from spinney.release.frames import numbers_of
from spinney.schema.schema import Schema

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# Rows of the released model, and of each redrawn one.
_N_ROWS, _N_REDRAWN_ROWS = 100_000, 40_000
# Conditions that are kept with the rows that meet them.
_MOST_KEPT = 1_000
_SEED = 0x1A6
# Intervals are so many times as wide as redrawn models say, for what states are too coarse to show.
_SAFETY = 1.5
WHY = (
    "the column is computed from another one and a difference, so it was not counted by itself; the answer is that of "
    "drawn rows, with the noise of the release"
)
INSTEAD = "name the column in workload= of the next fit, and it is counted by itself"
NO_ROWS = "no drawn row with a value meets the conditions; ask for a count"


class DrawnAnswers:
    """Answers from rows of one forest and of models that might have been released."""

    def __init__(self, release: ForestRelease, *, n_redrawn: int) -> None:
        self._release = release
        self._n_redrawn = n_redrawn
        self._met: dict[tuple[int, str, str], NDArray[np.bool_]] = {}

    @cached_property
    def _tables(self) -> list[Floats]:
        """Positions of rows (n_columns, n_rows): of the release, then of redrawn models."""
        release, rng = self._release, np.random.default_rng(_SEED)
        tables = [release.drawn(_N_ROWS, rng)[1]]
        redrawn = release.redrawn(self._n_redrawn) if self._n_redrawn else ()
        return tables + [release._as_redrawn(one).drawn(_N_REDRAWN_ROWS, rng)[1] for one in redrawn]

    @cached_property
    def _known(self) -> list[dict[str, Floats]]:
        return [{} for _ in self._tables]

    def _values(self, table: int, names: tuple[str, ...]) -> Mapping[str, Floats]:
        """The physical numbers of columns in rows of a table."""
        known, schema = self._known[table], self._release.schema
        missing = [name for name in names if name not in known]
        if missing:
            known.update(numbers_of(missing, self._tables[table], schema=schema, drawn=schema._as_drawn))
        return known

    def answer(self, question: Question, level: float, *, refusal: str | None, total: float) -> Answer:
        """The answer of drawn rows; `refusal` says why no models can be redrawn, `total` how many rows there are."""
        found = [self._statistic(question, table, total) for table in range(len(self._tables))]
        if any(math.isnan(one) for one, _ in found[:1]):
            return question.answered(math.nan, None, "not supported", NO_ROWS)
        estimate, luck = found[0]
        others = np.array([one for one, _ in found[1:] if not math.isnan(one)])
        if refusal is not None or len(others) < 2:
            return question.answered(estimate, None, "not supported", refusal or NO_ROWS)
        # The spread of redrawn statistics has the luck of their own draws in it.
        variance = float(np.mean((others - estimate) ** 2)) + luck
        if question.of == "population":
            variance += luck * _N_ROWS / max(total, 1.0)
        reach = _SAFETY * t_quantile(level, len(others) - 1) * math.sqrt(variance)
        low, high = estimate - reach, estimate + reach
        if question.kind in ("count", "proportion"):
            low, high = max(low, 0.0), min(high, total if question.kind == "count" else 1.0)
        return question.answered(estimate, (low, high), "indicative", f"{WHY}; {INSTEAD}")

    def _statistic(self, question: Question, table: int, total: float) -> tuple[float, float]:
        """What rows of a table say, and the variance that their luck gives it."""
        names = question.columns
        values = self._values(table, names)
        n_rows = self._tables[table].shape[1]
        is_met, is_given = (self._meets(table, each, values, n_rows) for each in (question.where, question.given))
        if question.kind in ("count", "proportion"):
            among = max(int(is_given.sum()), 1)
            share = float((is_met & is_given).sum()) / among
            luck = max(share * (1 - share), 1 / among) / among
            return (share * total, luck * total**2) if question.kind == "count" else (share, luck)
        assert question.column is not None
        numbers = values[question.column][is_met]
        numbers = numbers[~np.isnan(numbers)]
        if not len(numbers):
            return math.nan, math.nan
        if question.kind == "mean":
            return float(numbers.mean()), float(numbers.var()) / len(numbers)
        assert question.at is not None
        numbers, reach = np.sort(numbers), math.sqrt(question.at * (1 - question.at) / len(numbers))
        ends = np.clip([question.at - reach, question.at + reach], 0, 1)
        low, middle, high = np.quantile(numbers, [ends[0], question.at, ends[1]])
        return float(middle), float(high - low) ** 2 / 4

    def _meets(
        self, table: int, where: Mapping[str, object], values: Mapping[str, Floats], n_rows: int
    ) -> NDArray[np.bool_]:
        """Which rows of a table meet conditions."""
        schema: Schema = self._release.schema
        is_met = np.ones(n_rows, dtype=np.bool_)
        for name, wanted in where.items():
            condition = (table, name, repr(wanted))  # which cells of a table share
            if condition not in self._met:
                if len(self._met) > _MOST_KEPT:
                    self._met.clear()
                self._met[condition] = allowed(name, schema[name], wanted).holds(values[name])
            is_met &= self._met[condition]
        return is_met
