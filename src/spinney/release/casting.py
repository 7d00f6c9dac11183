"""Synthetic rows in other column types: an Arrow table cast column by column, for Arrow, pandas, polars and numpy.

That the values fit was checked before (`like`). What a type cannot hold as finely is rounded: reals to the nearest
float or decimal, datetimes and times down to the unit. Categoricals get the categories of the schema, in its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spinney.dtypes import ColumnType
from spinney.extras import load_optional

Types = Mapping[str, ColumnType]
Lists = Mapping[str, pa.Array | None]  # of each column all values, where the schema lists them

# How many units of Arrow's times a second has.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Precision that holds every 64-bit integer.
_WHOLE_DIGITS = 19


def units_per_second(kind: Any) -> Fraction:
    """Of a type of dates, datetimes or times of day, how many of its units a second has."""
    return Fraction(1, 86_400) if pa.types.is_date32(kind) else Fraction(UNITS[kind.unit])


def to_arrow(table: pa.Table, types: Types, lists: Lists) -> pa.Table:
    """The rows as an Arrow table; whether a field may be null is taken over, other notes on fields are not."""
    arrays = [_encoded(_column(table, name), types[name].arrow, lists[name]) for name in types]
    fields = [pa.field(name, column.arrow, nullable=column.holds_nulls) for name, column in types.items()]
    return pa.table(arrays, schema=pa.schema(fields))


def to_pandas(table: pa.Table, types: Types, lists: Lists) -> Any:
    """The rows as a pandas table."""
    pandas = load_optional("pandas", "a pandas table")

    def series(name: str) -> Any:
        values, dtype, arrow = _column(table, name), types[name].native, types[name].arrow
        if isinstance(dtype, pandas.CategoricalDtype):
            held = np.dtype(object) if dtype.categories is None else dtype.categories.dtype
            codes, categories = _codes(
                values, values.type if held == np.dtype(object) else arrow.value_type, lists[name]
            )
            index = pandas.Index(_pandas_values(pandas, categories, held), dtype=held)
            kind = pandas.CategoricalDtype(index, ordered=dtype.ordered)
            return pandas.Series(pandas.Categorical.from_codes(codes.fill_null(-1).to_numpy(), dtype=kind))
        if types[name].is_object:
            return pandas.Series(values.to_pylist(), dtype=object)
        return pandas.Series(_pandas_values(pandas, _encoded(values, arrow, lists[name]), dtype))

    return pandas.DataFrame({name: series(name) for name in types})


def to_polars(table: pa.Table, types: Types, lists: Lists) -> Any:
    """The rows as a polars table.

    Categoricals come back as Enums. A Categorical keeps its strings in a list that it shares with all others in the
    process, those of the private table included.
    """
    polars = load_optional("polars", "a polars table")

    def series(name: str) -> Any:
        values, dtype, arrow = _column(table, name), types[name].native, types[name].arrow
        if pa.types.is_dictionary(arrow):
            categories = _cast(lists[name], pa.string()).to_pylist()
            return polars.Series(name, _cast(values, pa.string())).cast(polars.Enum(categories))
        return polars.Series(name, _cast(values, arrow)).cast(dtype)

    return polars.DataFrame([series(name) for name in types])


def to_numpy(table: pa.Table, dtype: Any) -> Any:
    """The rows as an array (n_rows, n_columns) of one type; NaN is null."""
    array = np.empty((table.num_rows, table.num_columns), dtype=dtype)
    for place, name in enumerate(table.column_names):
        array[:, place] = _cast(_column(table, name), pa.from_numpy_dtype(dtype)).to_numpy(zero_copy_only=False)
    return array


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _pandas_values(pandas: Any, values: pa.Array, dtype: Any) -> Any:
    """Values that were cast to the Arrow name of a dtype, as pandas keeps them under that dtype."""
    if isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return dtype.__from_arrow__(pa.chunked_array([values]))
    if np.dtype(dtype).kind == "O":
        return np.array(values.to_pylist(), dtype=object)
    return values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)


# --------------------------------------------------------------------------------------------------------- values


def _codes(values: pa.Array, kind: Any, listed: pa.Array | None) -> tuple[pa.Array, pa.Array]:
    """The place of each value in the list, null for null, and the list itself, both of one type."""
    categories = _cast(listed, kind)
    return pc.index_in(_cast(values, kind), value_set=categories), categories


def _encoded(values: pa.Array, kind: Any, listed: pa.Array | None) -> pa.Array:
    """The values in a type, which may be a dictionary of all that the schema lists."""
    if not pa.types.is_dictionary(kind):
        return _cast(values, kind)
    codes, categories = _codes(values, kind.value_type, listed)
    return pa.DictionaryArray.from_arrays(codes.cast(kind.index_type), categories, ordered=kind.ordered)


def _cast(values: Any, kind: Any) -> pa.Array:
    """The values in a type without categories."""
    types, made = pa.types, values.type
    if made == kind:
        return values
    if types.is_float16(kind) or (types.is_floating(made) and types.is_floating(kind)):
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return pa.array(numbers.astype(kind.to_pandas_dtype()), mask=is_null if is_null.any() else None)
    if types.is_decimal(kind) and not types.is_floating(made):
        wide = min(_WHOLE_DIGITS + max(kind.scale, 0), 76)
        return values.cast(pa.int64()).cast(pa.decimal256(wide, max(kind.scale, 0))).cast(kind)
    if types.is_timestamp(made) and types.is_timestamp(kind) and UNITS[kind.unit] < UNITS[made.unit]:
        return _coarser(values, kind)
    if types.is_time(made) and types.is_time(kind) and UNITS[kind.unit] < UNITS[made.unit]:
        return _coarser(values, kind)
    return values.cast(kind)


def _coarser(values: pa.Array, kind: Any) -> pa.Array:
    """Datetimes or times of day, rounded down to the unit of a type."""
    steps = UNITS[values.type.unit] // UNITS[kind.unit]
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy() // steps
    whole = pa.array(numbers, mask=is_null if is_null.any() else None)
    return (whole.cast(pa.int32()) if kind.bit_width == 32 else whole).cast(kind)
