"""The true answers, of a table and of its population, and the widths that a table without noise would give.

A table is coded once, every column an array of numbers, and every condition is looked at once.
"""

from __future__ import annotations

import datetime
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.coverage.tables import is_listed
from spinney.columns import Category, Column

if TYPE_CHECKING:
    from benchmarks.coverage.questions import Question

Floats = NDArray[np.float64]
DAY_ZERO = datetime.date(1970, 1, 1)


class Truth(NamedTuple):
    """A true answer, and the standard error of one that samples the population as the table does."""

    value: float
    error: float


class Truths:
    """What is true of a frame; counts are of a table of `n_rows` rows."""

    def __init__(self, frame: pl.DataFrame, schema: sp.Schema, *, n_rows: int | None = None) -> None:
        self._schema, self.height = schema, frame.height
        self._n_rows = frame.height if n_rows is None else n_rows
        self.columns = {name: coded(frame[name], column) for name, column in schema.items()}
        self._meets: dict[tuple[str, str], NDArray[np.bool_]] = {}

    def of(self, question: Question) -> Truth:
        """The true answer; a mean or a quantile of no rows is not a number."""
        here = self._rows(question.where)
        scale = self._n_rows / self.height
        if question.statistic == "count":
            share = float(here.mean())
            return Truth(share * self._n_rows, math.sqrt(self._n_rows * share * (1 - share)))
        if question.statistic == "proportion":
            given = self._rows(question.given)
            n_given = max(1.0, float(given.sum()) * scale)
            share = float((here & given).sum()) / max(1, int(given.sum()))
            return Truth(share, math.sqrt(share * (1 - share) / n_given))
        assert question.column is not None
        values = self.columns[question.column][here]
        values = values[~np.isnan(values)]
        n_values = len(values) * scale
        if not len(values):
            return Truth(math.nan, 0.0)
        if question.statistic == "mean":
            return Truth(float(values.mean()), float(values.std()) / math.sqrt(n_values))
        spread = math.sqrt(question.at * (1 - question.at) / n_values)
        points = np.clip(question.at + np.array([-spread, 0, spread]), 0, 1)
        found = np.quantile(values, points, method="inverted_cdf")
        return Truth(float(found[1]), float(found[2] - found[0]) / 2)

    def _rows(self, where: dict[str, Any]) -> NDArray[np.bool_]:
        meets = np.ones(self.height, dtype=bool)
        for name, wanted in where.items():
            key = (name, repr(wanted))
            if key not in self._meets:
                self._meets[key] = self._meet(name, wanted)
            meets &= self._meets[key]
        return meets

    def _meet(self, name: str, wanted: Any) -> NDArray[np.bool_]:
        column, values = self._schema[name], self.columns[name]
        if is_listed(column):
            return values == _code(column, wanted)
        low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
        low, high = end_of(low), end_of(high)
        # Steps such as 0.1 have no exact floats.
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        return (values >= low - slack) & (values <= high + slack)


def coded(values: pl.Series, column: Column) -> Floats:
    """A column as numbers, null as no number: values outside the bounds at the bound, of categories their places."""
    if is_listed(column):
        codes = {value: _code(column, value) for value in values.unique().to_list()}
        return np.array([codes[value] for value in values.to_list()], dtype=np.float64)
    if isinstance(column, sp.Date):
        return values.cast(pl.Date).to_physical().cast(pl.Float64).fill_null(math.nan).to_numpy()
    numbers = values.cast(pl.Float64).fill_null(math.nan).to_numpy()
    assert isinstance(column, sp.Real | sp.Integer)
    return np.clip(numbers, float(column.low), float(column.high))


def end_of(bound: Any) -> float:
    """An end of a range as a number; of dates, days."""
    if isinstance(bound, str):
        bound = datetime.date.fromisoformat(bound)
    return float((bound - DAY_ZERO).days) if isinstance(bound, datetime.date) else float(bound)


def _code(column: Column, value: Any) -> float:
    if value is None:
        return math.nan
    return float(value) if isinstance(column, sp.Boolean) else float(list(getattr(column, "listed", ())).index(value))


def interval_width(error: float, level: float) -> float:
    """Of the usual interval with a standard error."""
    return 2 * NormalDist().inv_cdf((1 + level) / 2) * error


def columns_of(formula: str) -> list[str]:
    """The response and then the predictors."""
    response, _, terms = formula.partition("~")
    return [response.strip(), *(term.strip() for term in terms.split("+"))]


def least_squares(formula: str, frame: pl.DataFrame, schema: sp.Schema) -> dict[str, Truth]:
    """Coefficients by name, and the standard errors that least squares states; rows with nulls are left out."""
    response, *terms = columns_of(formula)
    rows = frame.drop_nulls([response, *terms])
    lines, names = [np.ones(rows.height)], ["Intercept"]
    for name in terms:
        column = schema[name]
        if isinstance(column, Category):
            lines += [(rows[name] == value).to_numpy().astype(np.float64) for value in column.listed[1:]]
            names += [f"{name}[{value}]" for value in column.listed[1:]]
        else:
            lines.append(coded(rows[name], column))
            names.append(name)
    predictors, explained = np.stack(lines, axis=1), coded(rows[response], schema[response])
    scale = np.sqrt((predictors**2).mean(axis=0)) + (predictors == 0).all(axis=0)
    predictors = predictors / scale
    inverse = np.linalg.pinv(predictors.T @ predictors, hermitian=True)
    coefficients = inverse @ (predictors.T @ explained)
    residual = explained - predictors @ coefficients
    spread = inverse * (residual @ residual / (rows.height - len(lines))) / np.outer(scale, scale)
    coefficients = coefficients / scale
    return {
        name: Truth(float(value), math.sqrt(max(0.0, float(spread[place, place]))))
        for place, (name, value) in enumerate(zip(names, coefficients, strict=True))
    }
