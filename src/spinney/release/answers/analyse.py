"""`analyse`: a function or an estimator of one's own, run on draws of a release, with intervals.

Rows are drawn several times, each time from a model that was fitted to numbers with noise drawn anew, so that what the
analysis gives varies as the noise of the release lets it vary; `combine` makes intervals of that. Unless one counted
table holds the columns, the analysis is *not supported*, and there are no intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.release.answers.combine import Combined, check_draws, combine
from spinney.release.answers.question import check_level
from spinney.release.answers.standing import checked_columns
from spinney.release.model import Release
from spinney.shown import as_given, brief

DRAWS = 20


def analyse(
    release: Any,
    analysis: Any,
    *,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    draws: int = DRAWS,
    n_rows: int | None = None,
    of: str = "table",
    level: float = 0.95,
    scale: str = "identity",
    where: Mapping[str, Any] | None = None,
    seed: int | None = None,
    frame: str | None = None,
    force: bool = False,
) -> Combined:
    """Coefficients with intervals, from an analysis that is run on several draws of a release. Costs no epsilon.

    Args:
        release: a release, or a fitted synthesizer.
        analysis: a function of a table that gives a number, a vector, a mapping from names to numbers, a pair
            `(estimates, variances)` of any of these, or a fitted model of statsmodels or scikit-learn; or a
            scikit-learn estimator that is not fitted, with `target`.
        columns: the columns that the analysis looks at; it is given no others. They decide what kind of statement the
            intervals are. By default all columns.
        target: of a scikit-learn estimator, the column that it predicts from the other `columns`.
        draws: how many tables are drawn, at least 5; 50 for a publication.
        n_rows: how many rows each of them has; by default as many as the private table.
        of: "table" or "population", as for `combine`, which needs variances.
        level: the probability with which intervals are to hold.
        scale: "identity" or "logit", as for `combine`.
        where: conditions that all rows meet, as for `sample`.
        seed: repeats the same draws.
        frame: "pandas", "polars", "pyarrow" or "numpy": the kind of table that the analysis gets; by default the kind
            that was fitted.
        force: give intervals even where the release does not support any; they are a guess.

    Raises:
        ParameterError: an option is out of range, or the analysis raised an error on one of the draws, which is named.
        MissingExtraError: the analysis needs a library that is not installed.
    """
    release = _release(release)
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)):
        raise ParameterError(f"draws={as_given(draws)} is not a number of draws")
    check_draws(int(draws), "the analysis would run on")
    check_level(level)
    names = checked_columns(release, columns)
    if target is not None:
        names = list(dict.fromkeys([*names, *checked_columns(release, [target])]))
    run, kind = _runner(analysis, names, target, frame)
    if n_rows is None:
        n_rows = release._default_rows()
    options: dict[str, Any] = {} if where is None else {"where": where}
    tables = release.sample(n_rows, draws=int(draws), seed=seed, frame=kind, **options)
    estimates, variances = _on_all(run, tables, None if columns is None else names)
    return combine(
        estimates,
        variances,
        of=of,
        n_drawn=n_rows,
        level=level,
        scale=scale,
        release=release,
        columns=[*names, *(where or {})],  # which rows are drawn hangs on conditions
        force=force,
    )


def _release(given: Any) -> Release:
    found = getattr(given, "release_", given)
    if not isinstance(found, Release):
        raise ParameterError(f"release is a {type(given).__name__}; give what sp.load returns, or a fitted synthesizer")
    return found


Run = Callable[[Any], Any]


def _runner(analysis: Any, names: list[str], target: str | None, frame: str | None) -> tuple[Run, str | None]:
    """What is done to each table, and the kind of table that it needs."""
    if hasattr(analysis, "fit") and hasattr(analysis, "get_params"):
        clone = load_optional("sklearn.base", "an analysis given as an estimator").clone
        if target is None:
            raise ParameterError("target is missing; name the column that the estimator predicts: target='...'")
        features = [name for name in names if name != target]
        return (lambda table: clone(analysis).fit(table[features], table[target])), frame or "pandas"
    if not callable(analysis):
        raise ParameterError(
            f"analysis is a {type(analysis).__name__}; give a function of a table, or an estimator of scikit-learn"
        )
    if target is not None:
        raise ParameterError("target is for estimators of scikit-learn; a function knows its own")
    return analysis, frame


def _on_all(run: Run, tables: Any, names: list[str] | None) -> tuple[list[Any], list[Any] | None]:
    """What the analysis gives on every table, and the variances that it states, if it does."""
    estimates, variances = [], []
    for draw, table in enumerate(tables, 1):
        try:
            found = run(table if names is None else _only(table, names))
        except Exception as err:
            raise ParameterError(
                f"the analysis raised {type(err).__name__} on draw {draw} of {len(tables)}: {brief(str(err))}; rows "
                "differ from draw to draw, and a rare value may be missing from one"
            ) from err
        estimate, variance = _parts(found)
        estimates.append(estimate)
        if variance is not None:
            variances.append(variance)
    if variances and len(variances) != len(estimates):
        raise ParameterError("the analysis states variances on some draws and not on others; state them on all or none")
    return estimates, variances or None


def _only(table: Any, names: list[str]) -> Any:
    """The table with some columns only; arrays have them in the order of the schema, and stay whole."""
    if isinstance(table, np.ndarray):
        raise ParameterError("columns cannot be taken out of an array; leave columns out, or ask for frame='pandas'")
    return table.select(names) if hasattr(table, "select") else table[names]


def _parts(found: Any) -> tuple[Any, Any]:
    """Estimates and variances of whatever an analysis gave."""
    if isinstance(found, tuple) and len(found) == 2:
        return found
    if hasattr(found, "params") and hasattr(found, "bse"):  # a result of statsmodels
        return found.params, found.bse**2
    if hasattr(found, "coef_"):
        return _coefficients(found), None
    return found, None


def _coefficients(model: Any) -> dict[str, float]:
    """Intercept and coefficients of a fitted model of scikit-learn, by name."""
    lines = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    names = [str(name) for name in getattr(model, "feature_names_in_", range(lines.shape[1]))]
    intercepts = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), len(lines))
    classes = [""] if len(lines) == 1 else [f"{kind}: " for kind in getattr(model, "classes_", range(len(lines)))]
    return {
        f"{label}{name}": float(value)
        for label, intercept, line in zip(classes, intercepts, lines, strict=True)
        for name, value in zip(["Intercept", *names], [intercept, *line], strict=True)
    }
