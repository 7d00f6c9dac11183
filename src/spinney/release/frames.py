"""Frames out: positions along the axes become typed columns in the kind of table that came in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Date, Datetime, Identifier, Integer, Number, Real, exact
from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.schema.lattice import integer_bounds
from spinney.schema.table import Schema

_WHOLE_FLOATS = 2**53

FRAME_KINDS = ("pandas", "polars", "pyarrow", "numpy")


def check_frame_kind(kind: str) -> str:
    """The kind of frame, or an error that lists them."""
    if kind not in FRAME_KINDS:
        raise ParameterError(f"frame={kind!r} is not one of {', '.join(map(repr, FRAME_KINDS))}")
    return kind


def to_frame(positions: NDArray[np.float64], schema: Schema, kind: str) -> Any:
    """Rows given by positions (n_axes, n_rows) as a table of the given kind; NaN is null.

    Columns with `multiple_of` move to the nearest multiple. Identifiers are numbered, whatever their positions.
    """
    if kind == "numpy":
        return _to_array(positions, schema)
    library = None if kind == "pyarrow" else load_optional(kind, f"frame={kind!r}", otherwise="ask for frame='pyarrow'")
    table = pa.table({name: _arrow_column(positions[i], schema[name]) for i, name in enumerate(schema)})
    if library is None:
        return table
    if kind == "polars":
        return library.from_arrow(table)
    # By the schema, not by the rows drawn: a nullable column has the same dtype in every sample.
    nullable = {pa.int64(): library.Int64Dtype(), pa.bool_(): library.BooleanDtype()}
    return library.DataFrame(
        {
            name: table[name].to_pandas(types_mapper=nullable.get if column.nullable else None, date_as_object=False)
            for name, column in schema.items()
        }
    )


def positions_of(values: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Positions of rows given by numbers (n_columns, n_rows): reals as they are, whole numbers above the low bound.

    Categories are given by their place in the list. What lies outside the bounds is moved to the nearer one.
    """
    positions = np.array(values, dtype=np.float64)
    for index, column in enumerate(schema.values()):
        if isinstance(column, Identifier):
            continue
        if isinstance(column, Real):
            np.clip(positions[index], column.low, column.high, out=positions[index])
            continue
        low, high = (0, len(column.values) - 1) if isinstance(column, Category) else integer_bounds(column)
        positions[index] = np.clip(np.rint(positions[index]), low, high) - low
    return positions


def nearest_multiples(values: NDArray[Any], column: Number) -> NDArray[Any]:
    """Each value moved to the nearest multiple of `multiple_of` inside the bounds; NaN stays, as does every multiple.

    Whole numbers in, whole numbers out. Decimals come out as written: 12.34, not 12.340000000000002.
    """
    first, last = column.multiples
    step = column.multiple_of
    inside: NDArray[Any] = np.clip(values, first, last)
    if isinstance(column, Integer):
        return np.asarray((inside + step // 2) // step * step)
    ratio = exact(step)
    with np.errstate(over="ignore"):  # steps too fine for floats: every float is a multiple
        steps = np.rint(inside / step)
    largest = max(-exact(first), exact(last)) * ratio.denominator
    if max(largest, Fraction(ratio.denominator)) > _WHOLE_FLOATS:
        multiples: NDArray[Any] = np.clip(np.where(np.isfinite(steps), steps * step, inside), first, last)
        return multiples
    # A division of whole numbers that floats hold rounds once, to the float nearest to the decimal. Adding 0 unsigns 0.
    return np.asarray(steps * float(ratio.numerator) / float(ratio.denominator) + 0.0)


def numbers_rounding_to(low: float, high: float, column: Number) -> tuple[float, float]:
    """The least and the largest number that `nearest_multiples` moves into low..high; the wrong way round if none."""
    step = exact(column.multiple_of)
    first, last = -(-exact(low) // step) * step, exact(high) // step * step
    if isinstance(column, Integer):
        half = column.multiple_of // 2
        return int(first) - half, int(last) + column.multiple_of - 1 - half
    return float(first - step / 2), float(np.nextafter(float(last + step / 2), -np.inf))


def _identifiers(n_rows: int, column: Identifier) -> pa.Array:
    numbers = np.arange(1, n_rows + 1)
    if column.prefix is None:
        return pa.array(numbers)
    digits = max(column.digits, len(str(n_rows)))
    return pa.array([f"{column.prefix}{number:0{digits}}" for number in numbers.tolist()], pa.string())


def _values(positions: NDArray[np.float64], n_values: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Whole steps above the low bound, and which are null."""
    is_null = np.isnan(positions)
    steps = np.floor(np.where(is_null, 0, positions)).astype(np.int64)
    return np.minimum(steps, n_values - 1), is_null if is_null.any() else None


def _reals(positions: NDArray[np.float64], column: Real) -> NDArray[np.float64]:
    values = np.clip(positions, column.low, column.high)
    return values if column.multiple_of is None else nearest_multiples(values, column)


def _arrow_column(positions: NDArray[np.float64], column: Any) -> pa.Array:
    if isinstance(column, Identifier):
        return _identifiers(len(positions), column)
    if isinstance(column, Real):
        return pa.array(_reals(positions, column), mask=np.isnan(positions) if column.nullable else None)
    if isinstance(column, Category):
        steps, is_null = _values(positions, len(column.values))
        return pa.array(column.values).take(pa.array(steps, mask=is_null))
    low, high = integer_bounds(column)
    steps, is_null = _values(positions, high - low + 1)
    values = low + steps
    if isinstance(column, Integer) and column.multiple_of is not None:
        values = nearest_multiples(values, column)
    numbers = pa.array(values, mask=is_null)
    if isinstance(column, Boolean):
        return numbers.cast(pa.bool_())
    if isinstance(column, Date):
        return numbers.cast(pa.int32()).cast(pa.date32())
    if isinstance(column, Datetime):
        return numbers.cast(pa.timestamp("us", column.timezone))
    assert isinstance(column, Integer)
    return numbers


def _to_array(positions: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """All columns as floats (n_rows, n_axes), which is what a numeric array held on the way in."""
    array = positions
    for index, column in enumerate(schema.values()):
        if isinstance(column, Real):
            array[index] = _reals(array[index], column)
            continue
        if isinstance(column, (Date, Datetime)) or column.is_text:
            raise ParameterError(f"frame='numpy' cannot hold a column of type {column.type_name}; ask for 'pyarrow'")
        values = _arrow_column(array[index], column)
        array[index] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return array.T
