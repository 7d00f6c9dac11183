"""Positions along an axis as physical numbers, and numbers in steps: what `multiple_of` rounds to, and from where."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns.base import Column
from spinney.columns.bounded import Bounded, exact, whole_range

_WHOLE_FLOATS = 2**53

Floats = NDArray[np.float64]
Wholes = NDArray[np.int64]


def nearest_multiples(values: NDArray[Any], column: Bounded) -> NDArray[Any]:
    """Each value moved to the nearest multiple of `multiple_of` inside the bounds; NaN stays, as does every multiple.

    Whole numbers in, whole numbers out. Decimals come out as written: 12.34, not 12.340000000000002.
    """
    first, last = column.first_and_last()
    inside: NDArray[Any] = np.clip(values, first, last)
    if column.is_whole:
        return np.asarray((inside - column.phase + column.step // 2) // column.step * column.step + column.phase)
    ratio = column.spacing
    if ratio is None:
        return inside
    step = float(ratio)
    with np.errstate(over="ignore"):  # steps too fine for floats: every float is a multiple
        steps = np.rint(inside / step)
    largest = max(-exact(first), exact(last)) * ratio.denominator
    if max(largest, Fraction(ratio.denominator)) > _WHOLE_FLOATS:
        multiples: NDArray[Any] = np.clip(np.where(np.isfinite(steps), steps * step, inside), first, last)
        return multiples
    # A division of whole numbers that floats hold rounds once, to the float nearest to the decimal. Adding 0 unsigns 0.
    return np.asarray(steps * float(ratio.numerator) / float(ratio.denominator) + 0.0)


def numbers_rounding_to(low: float, high: float, column: Bounded) -> tuple[float, float]:
    """The least and the largest number that `nearest_multiples` moves into low..high; the wrong way round if none."""
    step = column.spacing
    assert step is not None
    first, last = column.aligned(exact(low), up=True), column.aligned(exact(high), up=False)
    if column.is_whole:
        half = column.step // 2
        return int(first) - half, int(last) + column.step - 1 - half
    return float(first - step / 2), float(np.nextafter(float(last + step / 2), -np.inf))


def whole_steps(positions: Floats, n_values: int) -> tuple[Wholes, NDArray[np.bool_] | None]:
    """Whole steps above the first value, and which are null."""
    is_null = np.isnan(positions)
    steps = np.floor(np.where(is_null, 0, positions)).astype(np.int64)
    return np.minimum(steps, n_values - 1), is_null if is_null.any() else None


def whole_array(positions: Floats, column: Column) -> Any:
    """Positions as an Arrow array of physical numbers, in steps where the column has them."""
    import pyarrow as pa

    low, high = whole_range(column)
    steps, is_null = whole_steps(positions, high - low + 1)
    values = low + steps
    if isinstance(column, Bounded) and column.step > 1:
        values = nearest_multiples(values, column)
    return pa.array(values, mask=is_null)


def whole_positions(numbers: Floats, column: Column) -> Floats:
    """Positions of numbers that are whole underneath: counted from the first, moved into the range."""
    low, high = whole_range(column)
    return np.asarray(np.clip(np.rint(numbers), low, high) - low)


def whole_ends(low: Floats, length: Floats, column: Column) -> list[tuple[int, int]]:
    """The first and last physical number of stretches of positions."""
    first = low.astype(np.int64)
    last = first + np.maximum(length.astype(np.int64), 1) - 1
    lowest, highest = whole_range(column)
    first, last = np.minimum(first + lowest, highest), np.minimum(last + lowest, highest)
    if isinstance(column, Bounded) and column.step > 1:
        first, last = nearest_multiples(first, column), nearest_multiples(last, column)
    return list(zip(first.tolist(), last.tolist(), strict=True))
