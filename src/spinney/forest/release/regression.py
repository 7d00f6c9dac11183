"""Linear regressions from noisy sums of products: coefficients with intervals. PUBLIC.

The regressions are named before the fit; least squares then needs released sums alone. A coefficient whose sums
do not stand out of their noise has no interval: it is not supported.

    fit of moments       one consistent matrix of products, and the law of its noise
    least squares        coefficients, and intervals of what follows from them
    regression           coefficients by name, each with an interval and its statement
    named regressions    regressions found among the released sums, and compared with the charges
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.forest.release.analyses import STANDS_OUT, Floats, Spread, spreads_of
from spinney.forest.release.formula import (
    Block,
    Formula,
    parse_formula,
)
from spinney.release.answers.answer import TRUTHS, Answer, Statement, Truth
from spinney.release.answers.question import check_level
from spinney.release.card import check_frame_kind
from spinney.text import brief

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# ------------------------------------------------------------------------------------------------------- fit of moments
# Moments of a block from its noisy sums: one consistent matrix of products, and the law of the noise in it.
#
# Numbers count from -1 to 1 here, values and the constant 1. Sums repeat each other: the values of a category add up
# to the constant. Weighted least squares under that makes one matrix of them, over the constant, the numbers and all
# values but the first, and takes noise out. Its entries q have the noise (B'PB)^-1 where the measured sums are B q
# and a known part, and P has the inverse variances of their noise.


Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """A symmetric matrix of sums of products over kept slots, and where each free number q stands in it.

    With triples (number, row, column): matrix[row, column] += q[number], and what is known.
    """

    kept: Whole  # the slots of the block that the matrix is over, ascending
    matrix: Floats  # (n_kept, n_kept)
    number: Whole
    row: Whole
    column: Whole
    law: Floats  # (n_free, n_free): the covariance of the free numbers

    @property
    def n_free(self) -> int:
        return len(self.law)

    def gradients(self, columns: Floats) -> Floats:
        """The gradients in all free numbers of the product of the matrix with a vector (n_kept, n_free)."""
        places = self.row * self.n_free + self.number
        found = np.bincount(places, weights=columns[self.column], minlength=len(self.kept) * self.n_free)
        return np.asarray(found, dtype=np.float64).reshape(len(self.kept), self.n_free)


def fit_moments(block: Block, sums: Whole, *, variance: float, n_rows: int | None) -> NoisyMoments:
    """The matrix of a block; `n_rows` is public where the block does not count rows."""
    firsts = {start for start, column in zip(block.starts, block.columns, strict=True) if not column.is_number}
    kept = [slot for slot in range(block.n_slots) if slot not in firsts]
    free: dict[tuple[int, int], int] = {}
    for entry in block.entries:
        if entry.first not in firsts and entry.second not in firsts:
            free[entry.first, entry.second] = len(free)
    counted, known = np.zeros((len(block.entries), len(free))), np.zeros(len(block.entries))
    for place, entry in enumerate(block.entries):
        for sign_i, i in _spelt(entry.first, firsts, block):
            for sign_j, j in _spelt(entry.second, firsts, block):
                pair = (min(i, j), max(i, j))
                if pair in free:
                    counted[place, free[pair]] += sign_i * sign_j
                else:  # the number of rows, which is public
                    known[place] += sign_i * sign_j * (n_rows or 0)
    units = np.array([float(block.weights[entry.first] * block.weights[entry.second]) for entry in block.entries])
    precise = counted * (units**2 / variance)[:, None]
    law = np.asarray(np.linalg.inv(counted.T @ precise), dtype=np.float64)
    found = law @ (precise.T @ (sums.astype(np.float64) / units - known))
    numbers, rows, columns = _places(block, free, kept)
    matrix = np.zeros((len(kept), len(kept)))
    np.add.at(matrix, (rows, columns), found[numbers])
    if (0, 0) not in free:
        matrix[0, 0] = float(n_rows or 0)
    return NoisyMoments(np.array(kept), matrix, numbers, rows, columns, law)


def _spelt(slot: int, firsts: set[int], block: Block) -> list[tuple[int, int]]:
    """A slot as a sum of kept ones, with signs: the first value of a column is the constant less its other values."""
    if slot not in firsts:
        return [(1, slot)]
    n_values = block.columns[block.owner[slot]].n_slots
    return [(1, 0), *((-1, other) for other in range(slot + 1, slot + n_values))]


def _places(block: Block, free: dict[tuple[int, int], int], kept: list[int]) -> tuple[Whole, Whole, Whole]:
    """Where in the matrix each free number stands; the square of a value is the value."""
    at = {slot: place for place, slot in enumerate(kept)}
    triples = []
    for (i, j), number in free.items():
        triples.append((number, at[i], at[j]))
        if i != j:
            triples.append((number, at[j], at[i]))
        if i == 0 and j > 0 and not block.columns[block.owner[j]].is_number:
            triples.append((number, at[j], at[j]))
    numbers, rows, columns = np.array(triples, dtype=np.int64).T
    return numbers, rows, columns


# -------------------------------------------------------------------------------------------------------- least squares
# Least squares on noisy sums of products, and intervals of what follows from its coefficients.
#
# With S and s the noisy sums of products of the predictors with each other and with the response, r(b) = s - S b is
# noise alone at the true coefficients: linear in the noise of the sums, so that its law V(b) is known exactly, and
# quadratic in b. The coefficients b and their covariance C settle at
#
#     C = (S' W^-1 S + P)^-1,      b = C S' W^-1 s,      W = V(b) + sum_kl C_kl V_kl,
#
# V_kl the part of V that goes with b_k b_l: the mean law of the noise over coefficients as uncertain as they are, and
# not the law at the estimate alone. With little noise that gives the usual interval. P holds what is known of
# coefficients before: a predictor explains no more than a few times the spread of the response. Where the sum of
# squares of a number does not stand out of its noise, its equation and those of values that do not are left out,
# since noise would answer them, and P alone speaks of its coefficient, so that the others can be told. A coefficient
# that hangs on P, or on a value or a number that does not stand out, has no interval.


# A coefficient of which more than this part of the variance is due to what is known before hangs on that.
_MOST_KNOWN = 0.25
# So does one that goes together with the coefficient of a predictor that does not stand out, by a squared correlation
# of more than this.
_MOST_HIDDEN = 0.25
_TURNS, _SETTLED = 200, 1e-4


class LeastSquares:
    """A regression: `places` of the predictors and of the response in the matrix of moments.

    `open_to` says how large each coefficient may well be, and `squares` what the sum of squares of its predictor around
    the mean is by what was released before, infinite where nothing is known, as of values; `quantile` is that of the
    normal law for the level of the intervals; `n_sampled` is the number of rows where they are a sample of a
    population, and None where they are all that is asked about.
    """

    def __init__(
        self,
        moments: NoisyMoments,
        places: list[int],
        response: int,
        *,
        open_to: Floats,
        squares: Floats,
        quantile: float,
        n_sampled: int | None,
    ) -> None:
        self._moments, self._places, self._response = moments, np.array(places), response
        self._known, self._quantile = np.diag(open_to**-2), quantile
        matrix = moments.matrix
        self._products, self._cross = matrix[np.ix_(places, places)], matrix[places, response]
        hides = [place > 0 and self._hides(place, most) for place, most in zip(places, squares, strict=True)]
        self._hidden = np.flatnonzero(hides)
        has_hidden_number = bool((hides & np.isfinite(squares)).any())
        self._told = np.flatnonzero(~(np.array(hides) & has_hidden_number))
        self._laws = self._laws_of_products()
        self._estimate, self._covariance = self._settled(np.zeros_like(self._products))
        if n_sampled is not None:
            b = self._estimate
            left = float(matrix[response, response] - 2 * b @ self._cross + b @ self._products @ b)
            values, vectors = np.linalg.eigh(self._products)
            sampling = max(left, 0.0) / n_sampled * (vectors * np.maximum(values, 0.0)) @ vectors.T
            _, self._covariance = self._settled(sampling)

    def estimate(self, weights: Floats) -> float:
        """A number that follows from the coefficients."""
        return float(weights @ self._estimate)

    def interval(self, weights: Floats) -> tuple[float, float] | None:
        """The two ends for a number that follows from the coefficients; None where it is not told from noise."""
        along = self._covariance @ weights
        variance = float(weights @ along)
        if float(along @ self._known @ along) > _MOST_KNOWN * variance:
            return None
        hidden = along[self._hidden] ** 2 / np.diag(self._covariance)[self._hidden]
        if hidden.max(initial=0.0) > _MOST_HIDDEN * variance:
            return None
        half = self._quantile * math.sqrt(variance)
        return self.estimate(weights) - half, self.estimate(weights) + half

    def _hides(self, place: int, most: float) -> bool:
        """Whether the sum of squares of a predictor around its mean is not told from its noise.

        `most` bounds it by a number of other noise: the sum's own noise may lift it above what it is told by.
        """
        matrix = self._moments.matrix
        around = np.zeros(len(matrix))
        around[place], around[0] = 1.0, -matrix[0, place] / matrix[0, 0]
        gradient = around @ self._moments.gradients(around)
        noise = math.sqrt(float(gradient @ self._moments.law @ gradient))
        return min(float(around @ matrix @ around), most) <= STANDS_OUT * noise

    def _laws_of_products(self) -> Floats:
        """How the noise of rows' products with columns goes together: (rows, columns, rows, columns)."""
        moments, columns = self._moments, [*self._places, self._response]
        each = [moments.gradients(np.eye(len(moments.kept))[column])[self._places] for column in columns]
        gradients = np.stack(each, axis=1).reshape(-1, moments.n_free)
        n_rows, n_columns = len(self._places), len(columns)
        laws = gradients @ moments.law @ gradients.T
        return np.asarray(laws.reshape(n_rows, n_columns, n_rows, n_columns), dtype=np.float64)

    def _settled(self, sampling: Floats) -> tuple[Floats, Floats]:
        """Coefficients and their covariance, from one to the other."""
        n, products = len(self._places), self._products[self._told]
        b: Floats = np.zeros(n)
        covariance: Floats = np.zeros((n, n))
        for _ in range(_TURNS):
            columns = np.append(-b, 1.0)
            together = np.outer(columns, columns)
            together[:n, :n] += covariance
            law = np.einsum("kl,rksl->rs", together, self._laws) + sampling
            informed = products.T @ np.linalg.inv(law[np.ix_(self._told, self._told)])
            moved = np.asarray(np.linalg.inv(informed @ products + self._known), dtype=np.float64)
            b = moved @ (informed @ self._cross[self._told])
            before, covariance = np.diag(covariance), moved
            if np.abs(np.diag(moved) - before).max(initial=0.0) <= _SETTLED * np.diag(moved).max():
                break
        return b, covariance


# ----------------------------------------------------------------------------------------------------------- regression
# Coefficients in the units of the columns. The section on least squares says what an interval is. A coefficient
# whose sums do not stand out of their noise has none: it is not supported.


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


# ---------------------------------------------------------------------------------------------------- named regressions
# Regressions that were named before the fit: found among what was released, and compared with what was charged.


def named_regression(release: ForestRelease, text: str, *, level: float, of: str) -> Regression:
    """A regression from the sums that were measured for it; a ParameterError where they were not."""
    level, schema = check_level(level), release.schema
    if of not in TRUTHS:
        raise ParameterError(f"of={brief(of)} is not one of {', '.join(map(repr, TRUTHS))}")
    formula = parse_formula(text, schema, argument="formula")
    named = release.analyses
    place = None
    if named is not None:
        place = named.block_of(formula.columns, [name for name in formula.columns if schema[name].nullable])
    if named is None or place is None:
        stated = release.card.parameters.get("analyses") or []
        if stated and named is None:
            raise ParameterError(
                "the analyses of the call were not measured: the table has too few rows for the budget to measure "
                "anything; fit with a larger epsilon"
            )
        there = f"those named are {', '.join(map(repr, stated))}" if stated else "none was named"
        raise ParameterError(
            f"formula: {brief(text)} was not named before the fit, and {there}; fit again with analyses=[{brief(text)}]"
            ", or run it on draws with sp.analyse, which has intervals only where one counted table holds the columns"
        )
    block, n_public = named.blocks[place], release.card.n_rows
    moments = fit_moments(block, named.sums[place], variance=float(named.variance), n_rows=n_public)
    n_rows = max(1, round(float(moments.matrix[0, 0])))
    truth = next(one for one in TRUTHS if one == of)
    spreads = spreads_of(block, release.columns)
    return regress(formula, block, moments, spreads, level=level, of=truth, n_rows=n_rows, frame=release.card.frame)
