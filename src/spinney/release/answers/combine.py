"""One estimate with an interval from an analysis that was run on each of several draws of a release.

With q_m the estimates of M draws, u_m their naive variances, b the variance of the q_m between draws and u their mean:

    of the table         T = (1 + 1/M) b                           t with M - 1 degrees of freedom
    of the population    T = (1 + 1/M) b + u n_drawn / n_rows      t with (M - 1) (T / ((1 + 1/M) b))^2

The estimate is the mean of the q_m. Why this rule, and none of those for multiple imputation: `combine.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.answers.answer import TRUTHS, Statement, Truth
from spinney.release.answers.gathered import Gathered, aligned, gather
from spinney.release.answers.question import check_level
from spinney.release.answers.standing import UNKNOWN, Standing, standing_of
from spinney.release.answers.students import t_quantile
from spinney.release.frames import check_frame_kind
from spinney.shown import as_given

if TYPE_CHECKING:
    from spinney.release.model import Release

Floats = NDArray[np.float64]

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
            from spinney.extras import load_optional

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
