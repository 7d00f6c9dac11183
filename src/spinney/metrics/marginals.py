"""Marginal distances between a real and a synthetic table of any kind, one to three columns at a time. NOT PRIVATE.

Both tables are read under one schema and cut into bins (`bins.py`): by the quantiles of the real table, so that columns
whose mass lies in a small part of their bounds are seen, or into equal parts of the bounds. The total variation of k
columns is half the sum, over the joint bins, of the absolute differences of the shares of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.metrics.bins import Binned, Cutter, Scale
from spinney.metrics.points import Floats
from spinney.metrics.reading import Tables
from spinney.parallel import each
from spinney.schema.table import SchemaLike

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
