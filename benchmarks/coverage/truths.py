"""The true answers, of a table and of its population, and the widths that a table without noise would give."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.coverage.questions import Asked, Where
from spinney.columns import Bounded, Category, Column
from spinney.columns.number import Number


class Truth(NamedTuple):
    """A true answer, and the standard error of one that samples the population as the table does."""

    value: float
    error: float


def truth(asked: Asked, frame: pl.DataFrame, schema: sp.Schema, *, n_rows: int) -> Truth:
    """What is true of a frame; counts are of a table of `n_rows` rows."""
    here = frame.filter(_meets(asked.where, schema)) if asked.where else frame
    if asked.statistic == "count":
        share = here.height / frame.height
        return Truth(share * n_rows, math.sqrt(n_rows * share * (1 - share)))
    assert asked.column is not None
    values = _numbers(here[asked.column], schema[asked.column])
    n_values = max(1.0, len(values) * n_rows / frame.height)
    if asked.statistic == "mean":
        return Truth(float(values.mean()), float(values.std()) / math.sqrt(n_values))
    spread = math.sqrt(asked.at * (1 - asked.at) / n_values)
    found = np.quantile(values, np.clip(asked.at + np.array([-spread, 0, spread]), 0, 1), method="inverted_cdf")
    return Truth(float(found[1]), float(found[2] - found[0]) / 2)


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
            lines.append(_numbers(rows[name], column))
            names.append(name)
    predictors, explained = np.stack(lines, axis=1), _numbers(rows[response], schema[response])
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


def _meets(where: Where, schema: sp.Schema) -> pl.Expr:
    """Whether rows meet all conditions; values outside the bounds count as the nearer bound."""
    meets = pl.lit(True)
    for name, wanted in where.items():
        if isinstance(schema[name], Bounded):
            low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
            meets &= _clipped(name, schema[name]).is_between(low, high)
        else:
            meets &= pl.col(name).is_in(wanted if isinstance(wanted, list) else [wanted])
    return meets.fill_null(False)


def _clipped(name: str, column: Column) -> pl.Expr:
    return pl.col(name).cast(pl.Float64).clip(column.low, column.high) if isinstance(column, Number) else pl.col(name)


def _numbers(values: pl.Series, column: Column) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    assert isinstance(column, Number)
    numbers = values.drop_nulls().cast(pl.Float64).to_numpy()
    return np.clip(numbers, float(column.low), float(column.high))
