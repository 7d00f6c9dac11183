"""What an analysis gave on each of several draws, gathered into one table of numbers, and the way back.

Estimates may be numbers, vectors, mappings from names to numbers, pandas series, or a pandas or polars frame with a row
a draw. What comes out of `combine` has the form of what went in.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.extras import load_optional

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
