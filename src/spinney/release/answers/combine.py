"""Analyses on several draws of a release, combined into estimates with intervals. PUBLIC.

    of the table         T = (1 + 1/M) b                           t with M - 1 degrees of freedom
    of the population    T = (1 + 1/M) b + u n_drawn / n_rows      t with (M - 1) (T / ((1 + 1/M) b))^2

with b the variance of the estimates of M draws and u the mean of their naive variances. Proof:
combine.proof.md.

    results of draws    numbers of all draws in one table, and back to the form that they came in
    combine             the rule
    analyse             a function or an estimator run on draws
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.machine import load_optional
from spinney.release.answers.answer import TRUTHS, UNKNOWN, Standing, Statement, Truth, checked_columns, standing_of
from spinney.release.answers.question import check_level
from spinney.release.answers.ranks import t_quantile
from spinney.release.card import check_frame_kind
from spinney.release.release import Release
from spinney.text import as_given, brief

# ----------------------------------------------------------------------------------------------------- results of draws
# What an analysis gave on each of several draws, gathered into one table of numbers, and the way back.
#
# Estimates may be numbers, vectors, mappings from names to numbers, pandas series, or a pandas or polars frame with a
# row a draw. What comes out of `combine` has the form of what went in.


Floats = NDArray[np.float64]
Form = Literal["number", "vector", "mapping", "pandas", "polars"]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Numbers of all draws, with the form that they came in."""

    numbers: Floats  # (n_draws, n_numbers)
    names: tuple[Any, ...] | None  # of the numbers, where they have any
    form: Form

    def back(self, values: Floats) -> Any:
        """One number for each name, in the form that a draw's numbers had."""
        if self.form == "number":
            return float(values[0])
        if self.form == "vector":
            return np.asarray(values)
        assert self.names is not None
        if self.form == "mapping":
            return {name: float(value) for name, value in zip(self.names, values, strict=True)}
        if self.form == "pandas":
            pandas = load_optional("pandas", "a result in pandas")
            return pandas.Series(values, index=pandas.Index(self.names))
        polars = load_optional("polars", "a result in polars")
        return polars.DataFrame({name: [float(value)] for name, value in zip(self.names, values, strict=True)})


def gather(given: Any, argument: str) -> Gathered:
    """The numbers of all draws; a ParameterError that names the draw where they are not numbers, or not all alike."""
    library = _library(given)
    if library is not None:
        return _of_frame(given, library, argument)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, (Sequence, np.ndarray)):
        raise ParameterError(
            f"{argument} is a {type(given).__name__}; give one entry for each draw: a list of numbers, of vectors, of "
            "mappings or of pandas series, an array with a row a draw, or a pandas or polars frame with a row a draw"
        )
    if not len(given):
        raise ParameterError(f"{argument} is empty; give one entry for each draw")
    first = given[0]
    if isinstance(first, Mapping) or _is_series(first):
        return _of_named(given, argument)
    if np.ndim(first) == 0:
        return Gathered(_lines([[one] for one in given], argument), None, "number")
    return Gathered(_lines(given, argument), None, "vector")


def aligned(given: Any, to: Gathered, argument: str) -> Floats:
    """Numbers of the same draws in the order of the names of others (n_draws, n_numbers)."""
    found = gather(given, argument)
    numbers = found.numbers
    if found.names is not None and to.names is not None:
        if set(found.names) != set(to.names):
            raise ParameterError(f"{argument} has other names than the estimates; give one for each estimate")
        numbers = numbers[:, [found.names.index(name) for name in to.names]]
    if numbers.shape != to.numbers.shape:
        (n_draws, n_numbers), (n_wanted, n_each) = numbers.shape, to.numbers.shape
        raise ParameterError(
            f"{argument} has {n_numbers} numbers for each of {n_draws} draws, and estimates {n_each} for each of "
            f"{n_wanted}; give one for each estimate"
        )
    return numbers


def _of_named(given: Any, argument: str) -> Gathered:
    names = tuple(given[0].keys())
    lines = []
    for draw, one in enumerate(given, 1):
        if not (isinstance(one, Mapping) or _is_series(one)) or set(one.keys()) != set(names):
            raise ParameterError(
                f"{argument}: draw {draw} does not have the names of draw 1; an analysis gives the same coefficients "
                "on every draw, those of a value that a draw does not hold too"
            )
        lines.append([one[name] for name in names])
    return Gathered(_lines(lines, argument), names, "pandas" if _is_series(given[0]) else "mapping")


def _of_frame(given: Any, library: Literal["pandas", "polars"], argument: str) -> Gathered:
    """A frame has a row for each draw; a series is one number for each."""
    if np.ndim(given) == 1:
        if len(given) and (isinstance(given.to_list()[0], Mapping) or _is_series(given.to_list()[0])):
            return gather(given.to_list(), argument)
        return Gathered(_lines([[one] for one in given.to_list()], argument), None, "number")
    rows = given.to_numpy() if library == "pandas" else given.rows()
    if not len(rows):
        raise ParameterError(f"{argument} is empty; give one entry for each draw")
    return Gathered(_lines(rows, argument), tuple(given.columns), library)


def _lines(given: Any, argument: str) -> Floats:
    """Rows of equal length, finite everywhere."""
    n_first = len(given[0])
    if not n_first:
        raise ParameterError(f"{argument}: draw 1 has no numbers; an analysis gives at least one, such as a mean")
    lines = []
    for draw, one in enumerate(given, 1):
        try:
            line = np.asarray(one, dtype=np.float64)
        except OverflowError as err:
            raise ParameterError(
                f"{argument}: draw {draw} has a number that is larger than a float can be; give it in other units, or "
                "its logarithm"
            ) from err
        except (TypeError, ValueError) as err:
            raise ParameterError(f"{argument}: what draw {draw} has is not a number") from err
        if line.ndim != 1 or len(line) != n_first:
            raise ParameterError(f"{argument}: draw {draw} does not have as many numbers as draw 1, {n_first}")
        if not np.isfinite(line).all():
            raise ParameterError(
                f"{argument}: draw {draw} has a number that is missing or infinite; an average over draws that left "
                "it out would be wrong"
            )
        lines.append(line)
    return np.stack(lines)


def _library(given: Any) -> Literal["pandas", "polars"] | None:
    """Whose table or series it is; a library that nobody imported made none."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(given, (pandas.DataFrame, pandas.Series)):
        return "pandas"
    if polars is not None and isinstance(given, (polars.DataFrame, polars.Series)):
        return "polars"
    return None


def _is_series(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.Series)


# -------------------------------------------------------------------------------------------------------------- combine
# One estimate with an interval from an analysis that was run on each of several draws of a release.
#
# With q_m the estimates of M draws, u_m their naive variances, b the variance of the q_m between draws and u
# their mean:
#
#     of the table         T = (1 + 1/M) b                           t with M - 1 degrees of freedom
#     of the population    T = (1 + 1/M) b + u n_drawn / n_rows      t with (M - 1) (T / ((1 + 1/M) b))^2
#
# The estimate is the mean of the q_m. Why this rule, and none of those for multiple imputation:
# `combine.proof.md`.


FEWEST_DRAWS = 5
# Names that a message lists.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """Estimates with intervals, each in the form of what was combined: a number, a vector, a mapping, a series.

    Without an interval, where the release does not support one, std_error, low and high are None.
    """

    estimate: Any
    std_error: Any
    low: Any
    high: Any
    level: float
    statement: Statement
    why: str
    of: Truth
    n_draws: int
    names: tuple[str, ...]  # of the coefficients; empty for one number
    _estimates: Floats
    _ends: tuple[Floats, Floats, Floats] | None  # standard errors, lower and upper ends; None without intervals

    @property
    def has_interval(self) -> bool:
        return self._ends is not None

    def __str__(self) -> str:
        labels = self.names or ("",)
        width = max(map(len, labels))
        lines = [
            f"{label:<{width}}  {estimate:,.6g}".strip()
            if low is None
            else f"{label:<{width}}  {estimate:,.6g}   {low:,.6g} to {high:,.6g}".strip()
            for label, estimate, _, low, high in zip(labels, *self._columns(), strict=True)
        ]
        kind = f"{self.level:.6g} intervals" if self.has_interval else "estimates without intervals"
        return "\n".join([*lines, f"({kind} of the {self.of}, {self.statement}: {self.why})"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready data."""
        estimates, errors, lows, highs = self._columns()
        return {
            "names": list(self.names),
            "estimate": estimates,
            "std_error": errors,
            "low": lows,
            "high": highs,
            "level": self.level,
            "statement": self.statement,
            "why": self.why,
            "of": self.of,
            "draws": self.n_draws,
        }

    def to_frame(self, kind: str = "pandas") -> Any:
        """A table with a row for each coefficient: name, estimate, std_error, low, high; null without intervals.

        Args:
            kind: "pandas", "polars", "pyarrow" or "numpy".
        """
        check_frame_kind(kind)
        names = ("name", "estimate", "std_error", "low", "high")
        labels = list(self.names or ("estimate",))
        if kind == "numpy":
            return np.array(self._columns(), dtype=np.float64).T
        import pyarrow as pa

        arrays = (pa.array(labels), *(pa.array(numbers, pa.float64()) for numbers in self._columns()))
        table = pa.table(dict(zip(names, arrays, strict=True)))
        if kind == "pyarrow":
            return table
        if kind == "polars":
            from spinney.machine import load_optional

            return load_optional("polars", "frame='polars'").from_arrow(table)
        return table.to_pandas()

    def _columns(self) -> list[list[Any]]:
        """Estimates, standard errors, lower and upper ends, None where there are no intervals."""
        nothing = [None] * len(self._estimates)
        ends = [nothing] * 3 if self._ends is None else [column.tolist() for column in self._ends]
        return [self._estimates.tolist(), *ends]


def combine(
    estimates: Any,
    variances: Any = None,
    *,
    of: str = "table",
    n_rows: int | None = None,
    n_drawn: int | None = None,
    level: float = 0.95,
    scale: str = "identity",
    release: Release | None = None,
    columns: Sequence[str] | None = None,
    force: bool = False,
) -> Combined:
    """One estimate with an interval from the same analysis of each of several draws.

    >>> import spinney as sp
    >>> combined = sp.combine([4.1, 4.4, 3.9, 4.2, 4.4], force=True)
    >>> f"{combined.estimate:.2f}, {combined.low:.2f} to {combined.high:.2f}, {combined.statement}"
    '4.20, 3.55 to 4.85, not supported'

    Args:
        estimates: what the analysis gave on each draw of `sample(n, draws=...)`: a list of numbers, of vectors or of
            mappings, an array with a row a draw, or a pandas or polars frame with a row a draw. All are of one release.
        variances: the square of the standard error that the analysis states for each estimate, in the same form. They
            are needed for of="population" only.
        of: "table" for what the analysis would give on the private table, "population" for what its rows were sampled
            from.
        n_rows: how many rows the private table has. By default that of `release`, else as many as were drawn.
        n_drawn: how many rows each draw has, by default `n_rows`.
        level: the probability with which intervals are to hold.
        scale: "identity", or "logit" for statistics between 0 and 1 such as an AUC, which are then combined as
            log-odds.
        release: the release that was drawn from. With `columns` it says what kind of statement the intervals are.
        columns: the columns that the analysis looks at; by default all of them.
        force: give an interval even where the release does not support one; it is a guess. So it is without `release`,
            where nothing says whether the columns were counted together.

    Raises:
        ParameterError: there are fewer than five draws, an estimate is missing, or variances are needed and not given.
    """
    level = check_level(level)
    if of not in TRUTHS:
        raise ParameterError(f"of={as_given(of)} is not 'table' or 'population'")
    if columns is not None and release is None:
        raise ParameterError("columns says what an analysis of a release looks at; give release=... too")
    found = gather(estimates, "estimates")
    check_draws(len(found.numbers), "estimates are of")
    naive = None if variances is None else aligned(variances, found, "variances")
    if naive is not None and (naive < 0).any():
        draw = int(np.flatnonzero((naive < 0).any(axis=1))[0]) + 1
        raise ParameterError(f"variances: draw {draw} has a negative one; give squares of standard errors")
    standing = UNKNOWN if release is None else standing_of(release, columns)
    share = None
    if of == "population":
        if naive is None:
            raise ParameterError(
                "of='population' needs variances, the squares of the standard errors that the analysis states on each "
                "draw; give them, or ask for of='table'"
            )
        share = _share_drawn(n_rows, n_drawn, release)
    return combined(found, naive, share, level=level, scale=scale, standing=standing, force=force)


def combined(
    found: Gathered,
    naive: Floats | None,
    share: float | None,
    *,
    level: float,
    scale: str,
    standing: Standing,
    force: bool,
) -> Combined:
    """The rules on numbers that were checked; `share` is n_drawn / n_rows for the population, None for the table."""
    to, back, slope = _scale(scale)
    moved, n_draws = to(found.numbers), len(found.numbers)
    estimate = moved.mean(axis=0)
    between = (1 + 1 / n_draws) * standing.widening**2 * moved.var(axis=0, ddof=1)
    variance, freedom = between, np.full(len(between), float(n_draws - 1))
    if share is not None:
        assert naive is not None
        variance = between + (naive * slope(found.numbers) ** 2).mean(axis=0) * share
        ratio = np.divide(variance, between, out=np.full(len(between), np.inf), where=between > 0)
        freedom = (n_draws - 1) * ratio**2
    half = np.array([t_quantile(level, one) for one in freedom]) * np.sqrt(variance)
    centre = back(estimate)
    ends = None
    why = standing.why
    if standing.statement != "not supported" or force:
        ends = (np.sqrt(variance) / slope(centre), back(estimate - half), back(estimate + half))
        why = f"forced: {why}" if standing.statement == "not supported" else why
    std_error, low, high = (None, None, None) if ends is None else map(found.back, ends)
    of: Truth = "table" if share is None else "population"
    return Combined(
        estimate=found.back(centre),
        std_error=std_error,
        low=low,
        high=high,
        level=level,
        statement=standing.statement,
        why=why + _without_spread(found, moved),
        of=of,
        n_draws=n_draws,
        names=_names(found),
        _estimates=centre,
        _ends=ends,
    )


def _without_spread(found: Gathered, moved: Floats) -> str:
    """What to say of estimates that are the same on every draw, whose intervals say nothing of noise."""
    is_constant = (moved == moved[0]).all(axis=0)
    if not is_constant.any():
        return ""
    names = [name for name, same in zip(_names(found), is_constant, strict=False) if same][:_MOST_NAMED]
    of = f"the estimate of {', '.join(names)}" if names else "the estimate"
    return f"; {of} is the same on every draw, a spread of zero that says nothing of how far it may be off"


def check_draws(n_draws: int, what: str) -> None:
    """Refuse fewer draws than a spread can be estimated from."""
    if n_draws < FEWEST_DRAWS:
        raise ParameterError(
            f"{what} {n_draws} draws, and the spread between draws needs {FEWEST_DRAWS} at least; take 20, or 50 for "
            "a publication: release.sample(n, draws=20)"
        )


def _share_drawn(n_rows: Any, n_drawn: Any, release: Release | None) -> float:
    """n_drawn / n_rows: naive variances are those of a table of n_drawn rows, and the private one has n_rows."""
    for name, value in (("n_rows", n_rows), ("n_drawn", n_drawn)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            raise ParameterError(f"{name}={as_given(value)} is not a number of rows")
    if n_rows is None and release is not None:
        n_rows = release._default_rows()
    if n_rows is None and n_drawn is not None:
        raise ParameterError("n_drawn is given without n_rows; give the number of rows of the private table too")
    return 1.0 if n_rows is None or n_drawn is None else n_drawn / n_rows


def _names(found: Gathered) -> tuple[str, ...]:
    if found.names is not None:
        return tuple(map(str, found.names))
    return () if found.form == "number" else tuple(str(place) for place in range(found.numbers.shape[1]))


def _scale(scale: str) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """To a scale on which estimates are about normal, back, and its slope."""
    if scale == "identity":
        return (lambda x: x), (lambda x: x), np.ones_like
    if scale == "logit":
        return _logit, (lambda x: 1 / (1 + np.exp(-x))), (lambda x: 1 / (x * (1 - x)))
    raise ParameterError(f"scale={as_given(scale)} is not 'identity' or 'logit'")


def _logit(numbers: Floats) -> Floats:
    if not ((numbers > 0) & (numbers < 1)).all():
        draw = int(np.flatnonzero(~((numbers > 0) & (numbers < 1)).all(axis=1))[0]) + 1
        raise ParameterError(
            f"scale='logit' is for estimates between 0 and 1, and draw {draw} has another; leave it out"
        )
    return np.asarray(np.log(numbers / (1 - numbers)))


# -------------------------------------------------------------------------------------------------------------- analyse
# `analyse`: a function or an estimator of one's own, run on draws of a release, with intervals.
#
# Rows are drawn several times, each time from a model that was fitted to numbers with noise drawn anew, so that what
# the analysis gives varies as the noise of the release lets it vary; `combine` makes intervals of that. Unless one
# counted table holds the columns, the analysis is *not supported*, and there are no intervals.


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
