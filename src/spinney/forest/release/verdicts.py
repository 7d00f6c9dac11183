"""Verdicts: what can be said of columns of a forest together, and the words for it. PUBLIC.

certified, calibrated    one column, or columns that share a counted table
calibrated               two columns whose sums of products were released and are near the model, where these
                         see nearly all of what is asked: conditions that keep to the groups that were summed
indicative               two columns of which they see less, and more columns than two, in no one table
not supported            pairs of which nothing was measured, or whose products are far from the model
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.misfit import MOST_SPREAD, NEARLY_ALL, Factor, Laws, Misfit
from spinney.forest.release.parts import Part
from spinney.release.answers.answer import Statement, Trust, Verdict
from spinney.text import listed

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


ONE_COLUMN = "the column was counted by itself, and noise and the places of rows inside its leaves are in the interval"
TOGETHER = "the columns were counted together; noise, and what states are too coarse to show, are in the interval"
_NOTHING = 1e-9  # a weight that keeps an average of leaves without rows defined
OLD_FILE = "the file was saved by an earlier version of Spinney and does not hold its noisy counts; fit anew"


@dataclass(frozen=True, slots=True)
class Standing:
    """What can be said of some variables together at best, why, and what to do instead."""

    statement: Statement
    why: str
    instead: str = ""
    can_certify: bool = False

    @property
    def reason(self) -> str:
        return f"{self.why}; {self.instead}" if self.instead else self.why


class Verdicts:
    """What a release can say of its variables."""

    def __init__(self, release: ForestRelease, laws: Laws, misfit: Misfit | None, refusal: str | None) -> None:
        self._release = release
        self._laws = laws
        self._misfit = misfit
        self._refusal = refusal  # why no models can be redrawn
        self._names = release.variables

    def of(self, variables: Sequence[int], parts: Mapping[int, Part] | None = None) -> Standing:
        """The standing of variables that a question is about: of conditions on them, or of every condition."""
        release, several = self._release, tuple(sorted(set(variables)))
        measured = release.measured
        names = [self._names[variable] for variable in several]
        if measured is None:
            return Standing("not supported", OLD_FILE)
        unknown = [name for name, at in zip(names, several, strict=True) if measured.columns[at] is None]
        if unknown:
            return Standing(
                "not supported",
                f"nothing was measured of {listed(unknown)}",
                "fit with a larger epsilon, or with fewer columns",
            )
        in_table = len(several) < 2 or bool(measured.tables_of(several))
        if self._refusal is not None:
            return Standing("not supported", self._refusal, can_certify=in_table)
        if in_table:
            return Standing("calibrated", ONE_COLUMN if len(several) < 2 else TOGETHER, can_certify=True)
        apart = [pair for pair in combinations(several, 2) if not self._laws.are_together(*pair)]
        return self._apart(apart, parts) if len(several) == 2 else self._many(names, apart)

    def _apart(self, apart: Sequence[tuple[int, int]], parts: Mapping[int, Part] | None = None) -> Standing:
        """Of pairs that share no counted table."""
        shown = _pairs([(self._names[i], self._names[j]) for i, j in apart])
        stated = _workload(self._names, apart)
        remedy = f"name them in the call (workload=[{stated}]), use quality='high', or a larger epsilon"
        misfit = self._misfit
        if misfit is None or any(pair not in misfit for pair in apart):
            return Standing(
                "not supported",
                f"{shown} were not counted together, and nothing says how far they depend on each other",
                remedy,
            )
        noise = f"± {2 * misfit.error:.3f}"
        if misfit.spread > MOST_SPREAD:
            worst = max(apart, key=misfit.gap)
            first, second = (self._names[variable] for variable in worst)
            return Standing(
                "not supported",
                f"{shown} were not counted together, and pairs of this table depend on each other more than the model "
                f"says: before it is corrected, mean products are off by {misfit.spread:.2f} on average, those of "
                f"{first} and {second} by up to {misfit.gap(worst):.2f} {noise}",
                remedy,
            )
        corrected = f"{shown} were not counted together; noisy sums of products ({noise}) correct the model"
        seen = [self._seen(misfit, pair, parts) for pair in apart]
        if all(share is not None and share >= NEARLY_ALL for share in seen):
            return Standing(
                "calibrated",
                f"{corrected} and see all groups of values that are asked about; what noise hides of these, and how "
                "far they are from the corrected model, is in the interval",
            )
        part = "not all" if None in seen else _percent(min(share for share in seen if share is not None))
        asked = "questions about these columns depend" if parts is None else "this question depends"
        return Standing(
            "indicative",
            f"{corrected}, and see {part} of what {asked} on; nothing measured the rest, "
            "which the interval takes to be as strong as what the release shows elsewhere",
            remedy,
        )

    def _seen(self, misfit: Misfit, pair: tuple[int, int], parts: Mapping[int, Part] | None) -> float | None:
        """The share of a question that sums of products see; of any question, 1 where they see all, or None."""
        if parts is None:
            coarse = self._release._is_coarse([self._names[variable] for variable in pair])
            return 1.0 if not coarse and all(map(misfit.is_fine, pair)) else None
        first, second = (_asked_of(parts[variable]) for variable in pair)
        return misfit.seen(pair, first, second)

    def _many(self, names: Sequence[str], apart: Sequence[tuple[int, int]]) -> Standing:
        """Of three and more columns that no one table holds."""
        standing = self._apart(apart) if apart else None
        if standing is not None and standing.statement == "not supported":
            return standing
        return Standing(
            "indicative",
            f"{listed(names)} are in no one counted table: what more than two of them do together is the model's "
            "guess, and intervals of such answers have been wrong in trials; read sign and size, and test nothing",
            f"name the columns in the call (workload=[({', '.join(map(repr, names))})]), or a regression (analyses=)",
        )

    def trust(self, columns: Sequence[str], numbers: Sequence[int]) -> Trust:
        """Verdicts on columns, pairs and all together. Columns of one place are one variable."""
        verdicts = [self._verdict((name,), (at,)) for name, at in zip(columns, numbers, strict=True)]
        both = list(zip(columns, numbers, strict=True))
        verdicts += [
            self._verdict((one, other), (first, second)) for (one, first), (other, second) in combinations(both, 2)
        ]
        measures = {}
        if self._misfit is not None:
            measures = {
                "noise of a mean product": self._misfit.error,
                "mean products off the model": self._misfit.spread,
                "left after correction": self._misfit.left,
            }
        return Trust(tuple(columns), tuple(verdicts), self._verdict(tuple(columns), tuple(numbers)), measures)

    def _verdict(self, columns: tuple[str, ...], numbers: tuple[int, ...]) -> Verdict:
        standing = self.of(numbers)
        statement, why = standing.statement, standing.why
        if standing.can_certify and len(set(numbers)) == 1 and statement == "calibrated":
            statement = "certified"
            why = (
                "counts of whole leaves hold whatever the rows are; means, quantiles and parts of leaves are calibrated"
            )
        return Verdict(columns, statement, why, standing.instead)


def _asked_of(part: Part) -> Factor:
    """What a question asks of a variable: its values, or whether a condition holds."""
    if part.values is None:
        return Factor(part)
    return Factor(part, shift=float(np.average(part.values.mean, weights=part.leaves.weights + _NOTHING)))


def _percent(share: float) -> str:
    """A share rounded down, as none may grow by rounding."""
    return f"{math.floor(100 * share)} %" if share >= 0.01 else "less than 1 %"


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    shown = [f"{one} and {other}" for one, other in pairs[:3]]
    return "; ".join(shown) + (f" and {len(pairs) - 3} other pairs" if len(pairs) > 3 else "")


def _workload(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"({names[i]!r}, {names[j]!r})" for i, j in pairs[:3])
    return shown + (", ..." if len(pairs) > 3 else "")
