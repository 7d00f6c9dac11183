"""Distances between a real and a synthetic table of any kind, column by column or jointly. NOT PRIVATE.

Both tables are read under one schema (`reading.py`). Total variation needs bins and takes one to three columns
together; the other distances are exact, without bins, and take one column. The last part holds the same
distances of columns that are already read, for `compare` and for reports.

    marginals        total variation of one to three columns, in bins
    ordered          Kolmogorov-Smirnov, Wasserstein, common values and zeros, by column
    single columns   the same distances of two columns that are already read, and their moments
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.columns import Column, Integer, Real, whole_range
from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.machine import each
from spinney.metrics.reading import Binned, Cutter, Floats, Scale, Side, Tables, check_scale, in_categories
from spinney.schema.schema import SchemaLike
from spinney.text import brief

# ------------------------------------------------------------------------------------------------------------ marginals
# Marginal distances between a real and a synthetic table of any kind, one to three columns at a time. NOT
# PRIVATE.
#
# Both tables are read under one schema and cut into bins (`reading.py`): by the quantiles of the real table, so
# that columns whose mass lies in a small part of their bounds are seen, or into equal parts of the bounds. The
# total variation of k columns is half the sum, over the joint bins, of the absolute differences of the shares
# of rows.


Key = TypeVar("Key", str, tuple[str, ...])
Codes = NDArray[np.integer[Any]]  # (n,)

DEFAULT_BINS = 16
# Joint bins that are counted in an array of that length; more are sorted.
_COUNTED = 1 << 22


def total_variation(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    ways: int = 1,
    bins: int | Mapping[str, int] = DEFAULT_BINS,
    scale: Scale = "quantiles",
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[tuple[str, ...], float]:
    """Total variation distances of all choices of `ways` columns (1, 2 or 3), by their names. Not private.

    Lower is better, 0 to 1. Keys are tuples, in the order of the schema: `found["age", "ill"]` of two columns together,
    and `found["age",]` of one. For one number see `METRICS["total_variation_2"]`, the mean over all choices.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        ways: how many columns are looked at together.
        bins: bins per column that is not of categories, for all or by name.
        scale: "quantiles", bins of equal shares of the real rows, with values that pile up as bins of their own;
            "range", bins of equal width between the bounds, which see nothing inside one of them.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    check_ways(ways, len(tables.schema))
    cutter = Cutter(tables, bins, scale)
    return variations(tables, tables.by_column(lambda name, _, sides: cutter.cut(name, sides)), ways)


def variations(tables: Tables, cells: Mapping[str, Binned], ways: int) -> dict[tuple[str, ...], float]:
    """The total variation of every choice of columns that are in bins already."""
    chosen = list(combinations(cells, ways))
    small = {name: _Small(one) for name, one in cells.items()}

    def distance(names: tuple[str, ...]) -> float:
        return _variation([small[name] for name in names], tables.weights)

    found = each(distance, chosen, title="comparing columns", unit="table")
    return dict(zip(chosen, found, strict=True))


def variation_of(cells: Binned, tables: Tables) -> float:
    """The total variation of one column in bins."""
    return _variation([_Small(cells)], tables.weights)


def mean_of(distances: Mapping[Key, float]) -> float:
    """The mean over columns, or over choices of columns."""
    return float(np.mean(list(distances.values())))


def check_ways(ways: Any, n_columns: int) -> None:
    """Raise unless so many columns can be looked at together."""
    if isinstance(ways, bool) or ways not in (1, 2, 3):
        raise ParameterError(f"ways={ways!r} is not 1, 2 or 3")
    if ways > n_columns:
        raise ParameterError(f"ways={ways} columns cannot be chosen from {n_columns}")


class _Small:
    """Bins in the smallest whole numbers that hold them: less memory to walk through for every choice of columns."""

    def __init__(self, cells: Binned) -> None:
        kind = next((kind for kind in (np.uint8, np.uint16) if cells.size <= np.iinfo(kind).max + 1), np.int64)
        self.sides: tuple[Codes, Codes] = cells.real.astype(kind), cells.synthetic.astype(kind)
        self.size = cells.size


def _variation(columns: Sequence[_Small], weights: tuple[Floats | None, ...]) -> float:
    """Half the sum of |P - Q| over joint bins."""
    sides: list[Codes] = list(columns[0].sides)
    size = columns[0].size
    for column in columns[1:]:
        if size * column.size > _COUNTED:
            sides, size = _renumbered(sides)
        if size * column.size <= _COUNTED:
            sides = [_joined(first, second, column.size) for first, second in zip(sides, column.sides, strict=True)]
        else:
            sides = [
                first.astype(np.int64) * column.size + second for first, second in zip(sides, column.sides, strict=True)
            ]
        size *= column.size
    if size > _COUNTED:
        sides, size = _renumbered(sides)
    shares = [_shares(cells, weight, size) for cells, weight in zip(sides, weights, strict=True)]
    return min(1.0, float(np.abs(shares[0] - shares[1]).sum()) / 2)


def _renumbered(sides: list[Codes]) -> tuple[list[Codes], int]:
    """Joint bins numbered by what occurs: no more than rows, so that products stay far from the end of int64."""
    found, codes = np.unique(np.concatenate(sides), return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64, copy=False)
    return [codes[: len(sides[0])], codes[len(sides[0]) :]], max(1, len(found))


def _shares(cells: Codes, weights: Floats | None, size: int) -> Floats:
    if weights is None:
        return np.asarray(_counted(cells, size) / len(cells), dtype=np.float64)
    return np.asarray(np.bincount(cells, weights=weights, minlength=size), dtype=np.float64)


@compiled
def _joined(first: Any, second: Any, size: int) -> Any:
    """Codes of two columns together, which stay below 2^22."""
    codes = np.empty(len(first), np.int32)
    for row in range(len(first)):
        codes[row] = np.int32(first[row]) * np.int32(size) + np.int32(second[row])
    return codes


@compiled
def _counted(cells: Any, size: int) -> Any:
    counts = np.zeros(size, np.int64)
    for cell in cells:
        counts[cell] += 1
    return counts


# -------------------------------------------------------------------------------------------------------------- ordered
# Distances of single columns along their order, and what becomes of values at which rows pile up. NOT PRIVATE.
#
# All are exact, without bins. `ks_distance` is the largest difference of the two distribution functions, in
# which a null is smaller than every value. `wasserstein` moves rows along the column: by default it counts how
# many real rows a row is moved past, so that every part of a skewed column counts by the rows in it. Categories
# have no order: theirs is the total variation. `common_values_kept` and `zeros_off` look at single values,
# which no distance of distributions sees well.


N_COMMON = 10
# The commonest values are looked at where they hold at least so much of the real rows.
LEAST_COMMON = 0.1


def ks_distance(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[str, float]:
    """Kolmogorov-Smirnov distance of every column. Lower is better, 0 to 1. Not private.

    The largest difference between the shares of rows up to any value; of categories, the total variation.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    return tables.by_column(lambda _, column, sides: ks_of(tables, column, sides))


def wasserstein(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    scale: Scale = "quantiles",
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[str, float]:
    """Wasserstein-1 distance of every column. Lower is better, 0 to 1. Not private.

    Nulls: |difference of the shares of nulls| + (smaller share of values) * (distance of the values). Categories: the
    total variation, the same distance where any two values are 1 apart.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        scale: "quantiles", the mean share of real rows that a value is moved past, half of those it starts or ends at
            included (at most 1/2); "range", the mean way as a part of high - low, values moved into the bounds.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    check_scale(scale)
    return tables.by_column(lambda _, column, sides: transport_of(tables, column, sides, scale))


def common_values_kept(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    n_values: int = N_COMMON,
    least: float = LEAST_COMMON,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[str, float]:
    """How much of the commonest values of a column comes back at exactly these values. Higher is better. Not private.

    The sum of min(synthetic share, real share) over the commonest real values, divided by the sum of their real shares,
    0 to 1. Columns in which they hold less than `least` of the rows are left out, as there are no piles.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        n_values: how many of the commonest values are looked at.
        least: the share of the real rows that they have to hold.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    if isinstance(n_values, bool) or not isinstance(n_values, (int, np.integer)) or n_values < 1:
        raise ParameterError(f"n_values={brief(n_values)} is not a whole number of at least 1")
    if isinstance(least, bool) or not isinstance(least, (int, float, np.number)) or not 0 <= least <= 1:
        raise ParameterError(f"least={brief(least)} is not a share between 0 and 1")
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    found = tables.by_column(lambda _, __, sides: kept_of(sides, int(n_values), float(least)))
    return {name: share for name, share in found.items() if share is not None}


def zeros_off(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> dict[str, float]:
    """How far the share of exact zeros is off, of every column of numbers. Lower is better, 0 to 1. Not private.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    found = tables.by_column(lambda _, column, sides: zeros_of(column, sides))
    return {name: off for name, off in found.items() if off is not None}


# ------------------------------------------------------------------------------------------------------- single columns

Sides = tuple[Side, Side]


def ks_of(tables: Tables, column: Column, sides: Sides) -> float:
    """The largest difference of the distribution functions; both are constant between neighbouring values."""
    if column._axis_kind == "category":
        return variation_of(in_categories(column, *sides), tables)
    return min(1.0, _walk(*sides, is_by_rank=True)[0])


def transport_of(tables: Tables, column: Column, sides: Sides, scale: str = "quantiles") -> float:
    """The area between the distribution functions, over ranks in the real table or over the range."""
    if column._axis_kind == "category":
        return variation_of(in_categories(column, *sides), tables)
    if scale == "range":
        sides = _within(sides[0], column), _within(sides[1], column)
    real, synthetic = (side.distribution for side in sides)
    kept = 1 - real.null, 1 - synthetic.null
    apart = abs(real.null - synthetic.null)
    if min(kept) <= 0 or not len(real.values) or not len(synthetic.values):
        return min(1.0, apart)
    area = _walk(*sides, is_by_rank=scale == "quantiles")[1]
    return min(1.0, apart + min(kept) * area)


def kept_of(sides: Sides, n_values: int = N_COMMON, least: float = LEAST_COMMON) -> float | None:
    """The share of the commonest values that comes back exactly; None where they are no large part."""
    real, synthetic = (side.distribution for side in sides)
    common = np.argsort(-real.shares, kind="stable")[:n_values]
    held = real.shares[common]
    if not held.sum() or held.sum() < least:
        return None
    return min(1.0, float(np.minimum(synthetic.share_of(real.values[common]), held).sum() / held.sum()))


def zeros_of(column: Column, sides: Sides) -> float | None:
    """The difference of the shares of zeros, of numbers."""
    if not isinstance(column, (Real, Integer)):
        return None
    shares = [float(side.distribution.share_of(np.zeros(1))[0]) for side in sides]
    return abs(shares[0] - shares[1])


def moments_of(column: Column, sides: Sides) -> tuple[float | None, float | None]:
    """How far the mean of an ordered column is off, in real standard deviations, and the ratio of these deviations."""
    if column._axis_kind == "category":
        return None, None
    means, deviations = [], []
    for side in sides:
        there = ~side.is_null
        values = side.values[there].astype(np.float64)
        weights = None if side.weights is None else side.weights[there]
        if not len(values) or (weights is not None and not weights.sum()):
            return None, None
        means.append(float(np.average(values, weights=weights)))
        deviations.append(math.sqrt(float(np.average((values - means[-1]) ** 2, weights=weights))))
    if not deviations[0]:
        return None, None
    return (means[1] - means[0]) / deviations[0], deviations[1] / deviations[0]


def _walk(first: Side, second: Side, *, is_by_rank: bool) -> tuple[float, float]:
    real, synthetic = first.distribution, second.distribution
    worst, area = _walked(
        real.values,
        real.shares,
        synthetic.values,
        synthetic.shares,
        real.null - synthetic.null,
        max(1 - real.null, 1e-300),
        max(1 - synthetic.null, 1e-300),
        is_by_rank,
    )
    return float(worst), float(area)


def _within(side: Side, column: Column) -> Side:
    """Values as parts of the range, moved into the bounds."""
    low, high = (column.low, column.high) if isinstance(column, Real) else whole_range(column)
    values = (np.clip(side.values, low, high) - low).astype(np.float64) / max(high - low, 1e-300)
    return Side(values, side.is_null, side.weights)


@compiled
def _walked(x: Any, p: Any, y: Any, q: Any, apart: float, kept_x: float, kept_y: float, is_by_rank: bool) -> Any:
    """One walk up the values of both tables: the largest difference of shares, and the area between the two."""
    i, j = 0, 0
    up_to_x, up_to_y = 0.0, 0.0
    worst, area = abs(apart), 0.0
    before, ahead = 0.0, 0.0
    while i < len(x) or j < len(y):
        is_x = i < len(x) and (j == len(y) or x[i] <= y[j])
        is_y = j < len(y) and (i == len(x) or y[j] <= x[i])
        place = float(x[i]) if is_x else float(y[j])
        along = place
        if is_x:
            along = (up_to_x + p[i] / 2) / kept_x if is_by_rank else place
            up_to_x += p[i]
            i += 1
        elif is_by_rank:
            along = up_to_x / kept_x
        if is_y:
            up_to_y += q[j]
            j += 1
        if ahead > 0:
            area += ahead * (along - before)
        before, ahead = along, abs(up_to_x / kept_x - up_to_y / kept_y)
        worst = max(worst, abs(up_to_x - up_to_y + apart))
    return worst, area
