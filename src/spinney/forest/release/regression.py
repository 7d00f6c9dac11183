"""Linear regressions from noisy sums of products: coefficients in the units of the columns, with intervals.

What an interval is, `least_squares` says. A coefficient whose sums do not stand out of their noise has none: it is not
supported. Everything here sees released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.formula import Formula
from spinney.forest.release.least_squares import LeastSquares
from spinney.forest.release.moments_fit import NoisyMoments
from spinney.forest.release.regressor_weights import Spread
from spinney.forest.release.regressors import Block
from spinney.release.answers.answer import Answer, Statement, Truth
from spinney.release.frames import check_frame_kind

Floats = NDArray[np.float64]

# How large a coefficient may well be: so many times as large as makes its number explain all of the response, or so
# many standard deviations of the response for a value.
_OPEN = 2.0


class Regression(Mapping[str, Answer]):
    """The coefficients of a linear regression by name, each with an interval and what kind of statement it is."""

    def __init__(self, formula: Formula, answers: Mapping[str, Answer], *, n_rows: int, frame: str) -> None:
        self.formula = formula.text
        self.n_rows = n_rows  # that the regression is over, where they are counted with noise about
        self._answers, self._frame = dict(answers), frame

    def __getitem__(self, name: str) -> Answer:
        return self._answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        return f"Regression({self.formula!r}, {len(self)} coefficients)"

    def __str__(self) -> str:
        widest = max(map(len, self))
        return "\n".join([self.formula, *(f"{name:<{widest}}   {answer}" for name, answer in self.items())])

    def to_dict(self) -> dict[str, Any]:
        """The coefficients as plain data for JSON."""
        return {name: answer.to_dict() for name, answer in self.items()}

    def to_frame(self, kind: str | None = None) -> Any:
        """A table with a row for each coefficient: name, estimate, low, high, statement, why.

        Args:
            kind: "pandas", "polars" or "pyarrow"; by default the kind that was fitted.
        """
        from spinney.release.answers.answer import Answers

        wanted = self._frame if kind is None else check_frame_kind(kind)
        return Answers(["name"], [(name,) for name in self], list(self.values()), frame=wanted).to_frame(kind)


@dataclass(frozen=True, slots=True, eq=False)
class Coefficient:
    """A number that follows from scaled coefficients b: constant + weights'b."""

    name: str
    weights: Floats
    constant: float = 0.0
    widest: float = math.inf  # an interval that is longer says nothing


def regress(
    formula: Formula,
    block: Block,
    moments: NoisyMoments,
    spreads: Mapping[str, Spread],
    *,
    level: float,
    of: Truth,
    n_rows: int,
    frame: str,
) -> Regression:
    """The regression with all its intervals; `spreads` are those of its numbers, as released before."""
    places, response, coefficients = _slots(formula, block, moments)
    open_to, squares = _known_before(formula, block, spreads, n_rows)
    fit = LeastSquares(
        moments,
        places,
        response,
        open_to=open_to,
        squares=squares,
        quantile=NormalDist().inv_cdf((1 + level) / 2),
        n_sampled=n_rows if of == "population" else None,
    )
    answers = {}
    for coefficient in coefficients:
        estimate, ends = fit.estimate(coefficient.weights), fit.interval(coefficient.weights)
        if ends is not None and ends[1] - ends[0] > coefficient.widest:
            ends = None
        low, high = (None, None) if ends is None else (ends[0] + coefficient.constant, ends[1] + coefficient.constant)
        asked = f"{coefficient.name} in {formula.text}"
        statement, why = _says(has_interval=ends is not None, of=of)
        answers[coefficient.name] = Answer(estimate + coefficient.constant, low, high, level, statement, why, of, asked)
    return Regression(formula, answers, n_rows=n_rows, frame=frame)


def _says(*, has_interval: bool, of: Truth) -> tuple[Statement, str]:
    if not has_interval:
        return "not supported", (
            "the sums that this coefficient follows from do not stand out of their noise: few rows have this value, or "
            "the first one of the list, which it is compared with, or a number is narrow in its bounds; take narrower "
            "bounds, fewer values, a frequent value first, or a larger epsilon or analyses_share"
        )
    sampling = "" if of == "table" else ", and as least squares states the error of sampling"
    return (
        "calibrated",
        f"named before the fit: from sums that were measured, with the exact law of their noise{sampling}",
    )


def _known_before(formula: Formula, block: Block, spreads: Mapping[str, Spread], n_rows: int) -> tuple[Floats, Floats]:
    """How large each scaled coefficient may well be, and the sum of squares of its predictor around the mean.

    Nothing is known of the intercept, nor of how many rows have a value.
    """
    column_of = dict(zip(block.names, block.columns, strict=True))
    spread = spreads[formula.response].deviation if formula.response in spreads else 0.5
    open_to, squares = [math.inf], [math.inf]
    for name in formula.predictors:
        if column_of[name].is_number:
            open_to.append(_OPEN * spread / spreads[name].deviation)
            squares.append(n_rows * spreads[name].deviation ** 2)
        else:
            n_values = column_of[name].n_slots - 1
            open_to += [_OPEN * spread] * n_values
            squares += [math.inf] * n_values
    return np.array(open_to), np.array(squares)


def _slots(formula: Formula, block: Block, moments: NoisyMoments) -> tuple[list[int], int, list[Coefficient]]:
    """Where predictors and response stand in the matrix, and coefficients in the units of the columns."""
    at = {int(slot): place for place, slot in enumerate(moments.kept)}
    column_of = dict(zip(block.names, zip(block.starts, block.columns, strict=True), strict=True))
    start, response = column_of[formula.response]
    offset, unit = response.line if response.is_number else (0.0, 1.0)
    places, named, centre, values = [0], [("Intercept", unit)], [0.0], []
    for name in formula.predictors:
        first, column = column_of[name]
        if column.is_number:
            middle, length = column.line
            places.append(at[first])
            named.append((name, unit / length))
            centre.append(-middle)
            continue
        for place, label in enumerate(column.labels[1:], 1):
            places.append(at[first + place])
            values.append(places[-1])
            named.append((f"{name}[{str(label).lower() if isinstance(label, bool) else label}]", unit))
            centre.append(0.0)
    scales = np.array([scale for _, scale in named])
    weights = [scale * line for scale, line in zip(scales, np.eye(len(places)), strict=True)]
    # Numbers count from the middle of their bounds: at 0 of all of them, the intercept is another one.
    weights[0] = weights[0] + scales * np.array(centre)
    # The mean of a value's rows lies within the bounds of the response, and so does that of the others.
    span = 2 * unit if response.is_number else 1.0
    widest = np.where(np.isin(places, values), span, math.inf)
    coefficients = [
        Coefficient(name, line, widest=float(most))
        for (name, _), line, most in zip(named, weights, widest, strict=True)
    ]
    coefficients[0] = Coefficient("Intercept", weights[0], offset)
    return places, at[start + (0 if response.is_number else 1)], coefficients
