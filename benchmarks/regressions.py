"""Regressions that are named before the fit: how often their intervals hold, and how wide they are.

Every release is a fit of its own, with noise from the system. The private table is a bootstrap sample of the file, so
that the file is the population. Widths are in standard errors that least squares states on the private table, which is
1 for a table without noise.

    python -m benchmarks.regressions --data FOLDER [--only adult,...] [--releases 20] [--epsilon 1]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest.tables import BenchTable, check_folder, load
from spinney.columns import Category

FORMULAS = {
    "adult": [
        "hours-per-week ~ age + sex + education",
        "hours-per-week ~ age + education-num + sex + income + marital-status",
    ],
    "bank_additional": ["age ~ job + marital + duration", "duration ~ age + campaign + contact + y"],
    "credit_default_uci": ["LIMIT_BAL ~ AGE + SEX + EDUCATION + MARRIAGE", "PAY_0 ~ PAY_2 + AGE + SEX"],
    "diamonds": ["price ~ carat + cut + color", "depth ~ table + cut"],
    "california_housing": ["median_house_value ~ median_income + housing_median_age + ocean_proximity"],
    "census_income": ["age ~ education + sex + race"],
}
Floats = NDArray[np.float64]


def least_squares(frame: pl.DataFrame, schema: sp.Schema, formula: str) -> dict[str, tuple[float, float]]:
    """The coefficients on a table as it is, with the standard errors that least squares states."""
    response, _, rest = formula.partition("~")
    lines, names = [np.ones(frame.height)], ["Intercept"]
    for name in (term.strip() for term in rest.split("+")):
        column = schema[name]
        if not isinstance(column, Category):
            lines.append(frame[name].to_numpy().astype(np.float64))
            names.append(name)
            continue
        values = frame[name] if frame[name].dtype.is_integer() else frame[name].cast(pl.String)
        lines += [(values == value).to_numpy().astype(np.float64) for value in column.listed[1:]]
        names += [f"{name}[{value}]" for value in column.listed[1:]]
    predictors, explained = np.stack(lines, axis=1), frame[response.strip()].to_numpy().astype(np.float64)
    coefficients = np.linalg.lstsq(predictors, explained, rcond=None)[0]
    residual = explained - predictors @ coefficients
    law = np.linalg.pinv(predictors.T @ predictors) * (residual @ residual / (len(explained) - len(lines)))
    return {
        name: (float(value), float(np.sqrt(law[place, place])))
        for place, (name, value) in enumerate(zip(names, coefficients, strict=True))
    }


def measure(table: BenchTable, formulas: list[str], *, n_releases: int, epsilon: str) -> None:
    """Print, for both truths, how often intervals hold and how wide they are."""
    held: dict[str, list[bool]] = {"table": [], "population": []}
    widths: dict[str, list[float]] = {"table": [], "population": []}
    n_unsupported = 0
    population = {formula: least_squares(table.frame, table.schema, formula) for formula in formulas}
    for number in range(n_releases):
        private = table.frame.sample(table.frame.height, with_replacement=True, seed=number)
        release = sp.ForestSynthesizer(epsilon, analyses=formulas).fit(private, table.schema).release_
        for formula in formulas:
            of_table = least_squares(private, table.schema, formula)
            for of, truths in (("table", of_table), ("population", population[formula])):
                for name, answer in release.regression(formula, of=of).items():
                    if answer.low is None or answer.high is None:
                        n_unsupported += of == "table"
                        continue
                    held[of].append(answer.low <= truths[name][0] <= answer.high)
                    error = of_table[name][1]
                    widths[of].append((answer.high - answer.low) / (2 * 1.96 * error) if error > 0 else np.nan)
    for of, of_all in held.items():
        print(
            f"{table.name}, epsilon {epsilon}, {of}: {np.mean(of_all):.3f} of {len(of_all)} intervals hold, "
            f"{np.nanmedian(widths[of]):.1f} standard errors wide; {n_unsupported} coefficients not supported",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(FORMULAS))
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--epsilon", default="1")
    given = parser.parse_args()
    names = given.only.split(",")
    check_folder(given.data, names)
    for name in names:
        for epsilon in given.epsilon.split(","):
            measure(load(name, given.data), FORMULAS[name], n_releases=given.releases, epsilon=epsilon)


if __name__ == "__main__":
    main()
