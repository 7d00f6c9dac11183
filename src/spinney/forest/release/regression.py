"""Linear regressions from noisy sums of products, with intervals that know the noise.

With S and s the noisy sums of products of the predictors with each other and with the response, least squares solves
r(b) = s - S b = 0. At the true coefficients r is noise alone, linear in the noise of the sums, so that its law is known
exactly; a coefficient belongs to the interval where the r that it needs is not too far for that law:

    |c'b - value|^2 <= z^2 c'S^-1 W S^-1 c,      W the law of r at the coefficients that `value` leaves likeliest.

For one number and one predictor this is Fieller's interval, exact however noisy the divisor; with little noise it is
the usual one. For the population W also has the sampling variance of least squares. Where the sums hardly stand out of
their noise, S is lifted to what does, and what that leaves open is added to W; a coefficient that hangs on it is not
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
from spinney.forest.release.moments_fit import NoisyMoments
from spinney.forest.release.regressors import SCALE, Block
from spinney.release.answers.answer import Answer, Statement, Truth
from spinney.release.frames import check_frame_kind

Floats = NDArray[np.float64]

# A direction of the predictors stands out of the noise from this many times its size on: one of values, whose
# coefficients have a size that can be told, and one that is partly of numbers, where lifting would shift the others.
_VALUES_STAND_OUT, _NUMBERS_STAND_OUT = 3.0, 1.0
_NUMBER_PART = 0.25
# Rows of one value that does not stand out have a mean about so many standard deviations of the response away, squared.
_VALUE_OPEN = 4.0
# A coefficient whose variance is open by more than these parts, by numbers and by values that do not stand out, hangs
# on them: a number that is lifted leaves the others what it explains.
_MOST_OPEN = (0.3, 0.5)
# An interval that is this many times as wide as it seemed to be at first, or more, has no end.
_ENDLESS = 8.0
_TURNS = 40


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
    formula: Formula, block: Block, moments: NoisyMoments, *, level: float, of: Truth, n_rows: int, frame: str
) -> Regression:
    """The regression with all its intervals."""
    places, response, coefficients = _slots(formula, block, moments)
    fit = _Fit(block, moments, places, response, n_rows=n_rows, is_sample=of == "population")
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    answers = {}
    for coefficient in coefficients:
        estimate, ends = fit.interval(coefficient.weights, quantile)
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
            "a number is narrow in its bounds; take a larger epsilon, narrower bounds or fewer values"
        )
    sampling = "" if of == "table" else ", and as least squares states the error of sampling"
    return (
        "calibrated",
        f"named before the fit: from sums that were measured, with the exact law of their noise{sampling}",
    )


class _Fit:
    """Least squares on noisy sums, and intervals of what follows from its coefficients."""

    def __init__(
        self,
        block: Block,
        moments: NoisyMoments,
        places: list[int],
        response: int,
        *,
        n_rows: int,
        is_sample: bool,
    ) -> None:
        self._moments, self._places, self._response = moments, np.array(places), response
        matrix = moments.matrix
        products, cross = matrix[np.ix_(places, places)], matrix[places, response]
        spread = matrix[response, response] - matrix[0, response] ** 2 / matrix[0, 0]
        spread = max(spread, math.sqrt(moments.noise))  # of what the response counts, around its mean
        numbers = [start for start, column in zip(block.starts, block.columns, strict=True) if column.is_number]
        is_number = np.isin(moments.kept[places], numbers)
        self._lift, self._of_numbers, self._of_values = self._lifted(
            products, spread, _VALUE_OPEN * spread / matrix[0, 0], is_number
        )
        self._inverse = np.linalg.inv(products + self._lift)
        self._estimate = self._inverse @ cross
        left = matrix[response, response] - 2 * self._estimate @ cross + self._estimate @ products @ self._estimate
        residual = max(left / max(n_rows - len(places), 1), 1e-6 * spread / n_rows)
        self._sampling = residual * (products + self._lift) if is_sample else None

    def interval(self, weights: Floats, quantile: float) -> tuple[float, tuple[float, float] | None]:
        """An estimate with its two ends; None where there are none."""
        direction = self._inverse @ weights
        estimate, (first, hangs, along) = float(weights @ self._estimate), self._spread(self._estimate, direction)
        if hangs > first:
            return estimate, None
        ends = []
        for sign in (-1.0, 1.0):
            half, is_settled = quantile * math.sqrt(first), False
            step = along
            for _ in range(_TURNS):
                spread, _, step_along = self._spread(self._estimate + sign * half * step, direction)
                moved = quantile * math.sqrt(spread)
                is_settled, half, step = abs(moved - half) <= 1e-6 * moved, moved, step_along
                if is_settled or half > _ENDLESS * quantile * math.sqrt(first):
                    break
            if not is_settled:
                return estimate, None
            ends.append(estimate + sign * half)
        return estimate, (ends[0], ends[1])

    def _lifted(
        self, products: Floats, spread: float, of_values: float, is_number: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """What is added to products so that every direction stands out of its noise, and what numbers and values leave
        open there.

        A direction whose sum of squares is l explains l times its squared coefficient, which is at most the spread of
        the response; an l that is smaller than its own noise is not told from it. That bounds coefficients of numbers;
        those of values are as open as `of_values` says.
        """
        values, vectors = np.linalg.eigh(products)
        noise = np.zeros(len(values))
        for place, vector in enumerate(vectors.T):
            whole = np.zeros(len(self._moments.kept))
            whole[self._places] = vector
            gradient = self._moments.through(whole, whole)
            noise[place] = math.sqrt(gradient @ self._moments.law @ gradient)
        by_numbers = (vectors[is_number] ** 2).sum(axis=0)
        least = np.where(by_numbers < _NUMBER_PART, _VALUES_STAND_OUT, _NUMBERS_STAND_OUT)
        added = np.maximum(least * noise - values, 0.0)
        numbers_open = (added > 0) * by_numbers * spread / np.maximum(values, noise + 1e-300)
        values_open = (added > 0) * (1 - by_numbers) * of_values
        lift, *left_open = ((vectors * parts) @ vectors.T for parts in (added, numbers_open, values_open))
        return lift, left_open[0], left_open[1]

    def _spread(self, coefficients: Floats, direction: Floats) -> tuple[float, float, Floats]:
        """The variance of an estimate at these coefficients, how large it must be for what lifting leaves open to be a
        small part of it, and how all coefficients move when it moves by one.
        """
        moments = self._moments
        columns, rows = np.zeros(len(moments.kept)), np.zeros(len(moments.kept))
        columns[self._places], columns[self._response] = -coefficients, 1.0
        rows[self._places] = direction
        free = moments.law @ moments.through(rows, columns)
        noise = moments.moved(free, columns)[self._places]
        lifted = self._lift @ direction
        hidden = [self._lift @ (left_open @ lifted) for left_open in (self._of_numbers, self._of_values)]
        total = noise + hidden[0] + hidden[1]
        if self._sampling is not None:
            total = total + self._sampling @ direction
        variance = float(direction @ total)
        hangs = max(float(direction @ part) / share for part, share in zip(hidden, _MOST_OPEN, strict=True))
        return variance, hangs, self._inverse @ total / max(variance, 1e-300)


def _slots(formula: Formula, block: Block, moments: NoisyMoments) -> tuple[list[int], int, list[Coefficient]]:
    """Where predictors and response stand in the matrix, and coefficients in the units of the columns."""
    at = {int(slot): place for place, slot in enumerate(moments.kept)}
    column_of = dict(zip(block.names, zip(block.starts, block.columns, strict=True), strict=True))
    start, response = column_of[formula.response]
    offset, unit = response.line if response.is_number else (0.0, 1 / SCALE)
    places, named, centre, values = [0], [("Intercept", unit * SCALE)], [0.0], []
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
            named.append((f"{name}[{str(label).lower() if isinstance(label, bool) else label}]", unit * SCALE))
            centre.append(0.0)
    scales = np.array([scale for _, scale in named])
    weights = [scale * line for scale, line in zip(scales, np.eye(len(places)), strict=True)]
    # Numbers count from the middle of their bounds: at 0 of all of them, the intercept is another one.
    weights[0] = weights[0] + scales * np.array(centre)
    # The mean of a value's rows lies within the bounds of the response, and so does that of the others.
    span = 2 * response.weight * unit if response.is_number else 1.0
    widest = np.where(np.isin(places, values), span, math.inf)
    coefficients = [
        Coefficient(name, line, widest=float(most))
        for (name, _), line, most in zip(named, weights, widest, strict=True)
    ]
    coefficients[0] = Coefficient("Intercept", weights[0], offset)
    return places, at[start + (0 if response.is_number else 1)], coefficients
