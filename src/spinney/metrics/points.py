"""Weighted sets of points and the Gaussian kernel: what the kernel metrics read, checked once.

A set is n points in d dimensions with weights. Points come as an array, a nested list or a table of numeric columns;
of two tables the second is read in the column order of the first. Weights add up to 1, the paper's convention;
`rkhs_distance` alone takes any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.errors import InputError, ParameterError, raise_alone
from spinney.redacted import redacted
from spinney.suggest import listed

Floats = NDArray[np.float64]

# Weights divided by their sum miss 1 by rounding only.
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedSet:
    """Points with weights, which may be negative where two sets are subtracted."""

    points: Floats  # (n, d)
    weights: Floats  # (n,)

    def __len__(self) -> int:
        return int(self.weights.size)

    def __sub__(self, other: WeightedSet) -> WeightedSet:
        """The signed set whose kernel density is the difference of the two."""
        return WeightedSet(np.concatenate([self.points, other.points]), np.concatenate([self.weights, -other.weights]))

    @property
    def n_axes(self) -> int:
        return int(self.points.shape[1])


def read_set(
    points: Any,
    weights: ArrayLike | None,
    argument: str,
    *,
    are_shares: bool = True,
    weights_argument: str | None = None,
) -> WeightedSet:
    """The points with equal weights 1/n or the given ones; `are_shares` asks for weights >= 0 that add up to 1."""
    values = read_points(points, argument)
    if not len(values):
        raise InputError(f"{argument} has no points; pass at least one")
    if weights is None:
        return WeightedSet(values, np.full(len(values), 1 / len(values)))
    name = weights_argument or f"{argument}_weights"
    return WeightedSet(values, (read_shares if are_shares else _read_weights)(weights, len(values), name))


def read_pair(
    first: Any, second: Any, names: tuple[str, str], weights: tuple[Any, Any], *, are_shares: bool = True
) -> tuple[WeightedSet, WeightedSet]:
    """Two sets in the same space."""
    one = read_set(first, weights[0], names[0], are_shares=are_shares)
    two = read_set(_in_order_of(first, second, names), weights[1], names[1], are_shares=are_shares)
    if one.n_axes != two.n_axes:
        raise InputError(
            f"{names[1]} has {two.n_axes} columns where {names[0]} has {one.n_axes}; both must lie in the same space"
        )
    return one, two


def read_points(points: Any, argument: str) -> Floats:
    """An (n, d) array of finite floats; one dimension may come flat."""
    with redacted(lambda _: InputError(f"{argument} does not hold numbers alone; pass numeric columns")):
        values = np.asarray(points if _columns(points) is None else nw.from_native(points, eager_only=True).to_numpy())
        values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{argument} has shape {values.shape}; pass one row per point and one column per dimension")
    if not np.isfinite(values).all():
        raise InputError(f"{argument} holds a missing or non-finite value; clean it first")
    return values


def read_shares(weights: ArrayLike, n_points: int, argument: str) -> Floats:
    """Weights >= 0 that add up to 1."""
    values = _read_weights(weights, n_points, argument)
    if (values < 0).any():
        raise InputError(f"{argument} holds a negative weight; weights are shares of the whole")
    total = math.fsum(values)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InputError(f"{argument} adds up to {total:g}, not to 1; divide by the sum")
    return values


def read_gamma(bandwidth: float | None, gamma: float | None) -> float:
    """The gamma of exp(-gamma ||x-y||^2), given as such or by the bandwidth sigma as 1/(2 sigma^2)."""
    if (bandwidth is None) == (gamma is None):
        raise ParameterError("give either bandwidth (sigma) or gamma = 1/(2 sigma^2), and not both")
    name, value = ("bandwidth", bandwidth) if gamma is None else ("gamma", gamma)
    try:
        number = float(value)  # type: ignore[arg-type]  # checked right here
    except (TypeError, ValueError):
        raise_alone(ParameterError(f"{name}={value!r} is not a number"))
    if not 0 < number < math.inf:
        raise ParameterError(f"{name}={value!r} is not a positive finite number")
    if gamma is not None:
        return number
    # Squares of floats this far out leave the range of floats.
    if not 1e-150 < number < 1e150:
        raise ParameterError(f"bandwidth={value!r} is outside 1e-150..1e150; scale the points")
    return 1 / (2 * number * number)


def _columns(points: Any) -> list[str] | None:
    """Names of the columns of a table; None for anything else."""
    if isinstance(points, (np.ndarray, list, tuple)):
        return None
    try:
        return list(nw.from_native(points, eager_only=True).columns)
    except TypeError:
        return None
    except nw.exceptions.DuplicateError:
        raise_alone(InputError("a table has two columns of the same name; rename one"))


def _in_order_of(first: Any, second: Any, names: tuple[str, str]) -> Any:
    """The second table with its columns in the order of the first; anything else as it is."""
    one, two = _columns(first), _columns(second)
    if one is None or two is None or one == two:
        return second
    if set(one) != set(two):
        raise InputError(
            f"{names[1]} has columns {listed(two)} where {names[0]} has {listed(one)}; select the same columns of both"
        )
    return nw.from_native(second, eager_only=True).select(one).to_native()


def _read_weights(weights: ArrayLike, n_points: int, argument: str) -> Floats:
    with redacted(lambda _: InputError(f"{argument} does not hold numbers alone")):
        values = np.ascontiguousarray(weights, dtype=np.float64)
    if values.shape != (n_points,):
        raise InputError(f"{argument} has shape {values.shape} for {n_points} points; give one weight per point")
    if not np.isfinite(values).all():
        raise InputError(f"{argument} holds a missing or non-finite value")
    return values
