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

# A direction of the predictors stands out of the noise from this many times its size on.
_STANDS_OUT = 3.0
# What is not known of such a direction: its part of the response has up to this many of its standard deviations.
_OPEN = 2.0
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


def regress(
    formula: Formula, block: Block, moments: NoisyMoments, *, level: float, of: Truth, n_rows: int, frame: str
) -> Regression:
    """The regression with all its intervals."""
    places, response, coefficients = _slots(formula, block, moments)
    fit = _Fit(moments, places, response, n_rows=n_rows, is_sample=of == "population")
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    answers = {}
    for coefficient in coefficients:
        estimate, ends = fit.interval(coefficient.weights, quantile)
        low, high = (None, None) if ends is None else (ends[0] + coefficient.constant, ends[1] + coefficient.constant)
        asked = f"{coefficient.name} in {formula.text}"
        statement, why = _says(has_interval=ends is not None, of=of)
        answers[coefficient.name] = Answer(estimate + coefficient.constant, low, high, level, statement, why, of, asked)
    return Regression(formula, answers, n_rows=n_rows, frame=frame)


def _says(*, has_interval: bool, of: Truth) -> tuple[Statement, str]:
    if not has_interval:
        return "not supported", (
            "the sums that this coefficient follows from do not stand out of their noise: few rows have this value, or "
            "the predictors tell nearly the same; take a larger epsilon, or fewer values"
        )
    sampling = "" if of == "table" else ", and as least squares states the error of sampling"
    return (
        "calibrated",
        f"named before the fit: from sums that were measured, with the exact law of their noise{sampling}",
    )


class _Fit:
    """Least squares on noisy sums, and intervals of what follows from its coefficients."""

    def __init__(
        self, moments: NoisyMoments, places: list[int], response: int, *, n_rows: int, is_sample: bool
    ) -> None:
        self._moments, self._places, self._response = moments, np.array(places), response
        matrix = moments.matrix
        products, cross = matrix[np.ix_(places, places)], matrix[places, response]
        self._lift, open_part = self._lifted(products)
        self._inverse = np.linalg.inv(products + self._lift)
        self._estimate = self._inverse @ cross
        spread = matrix[response, response] - matrix[0, response] ** 2 / matrix[0, 0]
        spread = max(spread, math.sqrt(moments.noise)) / max(n_rows, 1)  # the variance of what the response counts
        # Coefficients of what does not stand out are taken to be no larger than would explain all of the response.
        self._open = _OPEN**2 * spread / SCALE**2 * open_part
        left = matrix[response, response] - 2 * self._estimate @ cross + self._estimate @ products @ self._estimate
        residual = max(left / max(n_rows - len(places), 1), 1e-6 * spread)
        self._sampling = residual * (products + self._lift) if is_sample else None

    def interval(self, weights: Floats, quantile: float) -> tuple[float, tuple[float, float] | None]:
        """An estimate with its two ends; None where there are none."""
        direction = self._inverse @ weights
        estimate, (first, of_lift, along) = float(weights @ self._estimate), self._spread(self._estimate, direction)
        if of_lift > first / 2:
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

    def _lifted(self, products: Floats) -> tuple[Floats, Floats]:
        """What is added to products so that every direction stands out of its noise, and where it is added."""
        values, vectors = np.linalg.eigh(products)
        least = np.zeros(len(values))
        for place, vector in enumerate(vectors.T):
            whole = np.zeros(len(self._moments.kept))
            whole[self._places] = vector
            gradient = self._moments.through(whole, whole)
            least[place] = _STANDS_OUT * math.sqrt(gradient @ self._moments.law @ gradient)
        added = np.maximum(least - values, 0.0)
        lifted = vectors[:, added > 0]
        return (vectors * added) @ vectors.T, lifted @ lifted.T

    def _spread(self, coefficients: Floats, direction: Floats) -> tuple[float, float, Floats]:
        """The variance of an estimate at these coefficients, the part of it that lifting adds, and how all
        coefficients move when it moves by one.
        """
        moments = self._moments
        columns, rows = np.zeros(len(moments.kept)), np.zeros(len(moments.kept))
        columns[self._places], columns[self._response] = -coefficients, 1.0
        rows[self._places] = direction
        free = moments.law @ moments.through(rows, columns)
        noise = moments.moved(free, columns)[self._places]
        lifted = self._lift @ (self._open @ (self._lift @ direction))
        total = noise + lifted
        if self._sampling is not None:
            total = total + self._sampling @ direction
        variance = float(direction @ total)
        return variance, float(direction @ lifted), self._inverse @ total / max(variance, 1e-300)


def _slots(formula: Formula, block: Block, moments: NoisyMoments) -> tuple[list[int], int, list[Coefficient]]:
    """Where predictors and response stand in the matrix, and coefficients in the units of the columns."""
    at = {int(slot): place for place, slot in enumerate(moments.kept)}
    column_of = dict(zip(block.names, zip(block.starts, block.columns, strict=True), strict=True))
    start, response = column_of[formula.response]
    offset, unit = response.line if response.is_number else (0.0, 1 / SCALE)
    places, named, centre = [0], [("Intercept", unit * SCALE)], [0.0]
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
            named.append((f"{name}[{str(label).lower() if isinstance(label, bool) else label}]", unit * SCALE))
            centre.append(0.0)
    scales = np.array([scale for _, scale in named])
    weights = [scale * line for scale, line in zip(scales, np.eye(len(places)), strict=True)]
    # Numbers count from the middle of their bounds: at 0 of all of them, the intercept is another one.
    weights[0] = weights[0] + scales * np.array(centre)
    coefficients = [Coefficient(name, line) for (name, _), line in zip(named, weights, strict=True)]
    coefficients[0] = Coefficient("Intercept", weights[0], offset)
    return places, at[start + (0 if response.is_number else 1)], coefficients
