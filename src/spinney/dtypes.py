"""The types of a table's columns, told from its names and dtypes alone: no value is looked at.

Types are named as Arrow names them, whichever library the table is of. A categorical is a dictionary type: of what its
values are, and not which. Lists of categories are values of a private table, so they stay where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.errors import InputError
from spinney.redacted import redacted

_INDEX = pa.int32()


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of one column: as Arrow names it, null where it has no name for it, and as its own library does."""

    arrow: pa.DataType
    native: Any
    holds_nulls: bool = True

    @property
    def is_object(self) -> bool:
        """Whether it is pandas' type for any Python objects, which says nothing; strings are assumed."""
        return isinstance(self.native, np.dtype) and self.native.kind == "O"


@dataclass(frozen=True, slots=True)
class TableTypes:
    """The library that a table is of ("pandas", "polars" or "pyarrow"), and the types of its columns by name."""

    kind: str
    columns: Mapping[str, ColumnType]

    def to_arrow(self) -> pa.Schema:
        """Names and types as an Arrow schema."""
        return pa.schema([(name, column.arrow) for name, column in self.columns.items()])


def types_of(table: Any) -> TableTypes | None:
    """The types of a pandas, polars or pyarrow table, or of what stands for them; None for anything else.

    A pandas table has `dtypes`; a polars frame, eager or lazy, and whatever pyarrow makes of tables have a schema.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None:
        if isinstance(table, pandas.DataFrame):
            return _pandas_types(table.dtypes)
        if isinstance(table, pandas.Series) and table.dtype == object and all(map(_is_pandas_dtype, table)):
            return _pandas_types(table)
    if polars is not None:
        if isinstance(table, (polars.DataFrame, polars.LazyFrame)):
            with redacted(_unplanned):  # what a lazy frame reads from may be quoted
                table = table.collect_schema()
        if isinstance(table, polars.Schema):
            return TableTypes("polars", {name: ColumnType(_of_polars(dtype), dtype) for name, dtype in table.items()})
    schema = table if isinstance(table, pa.Schema) else getattr(table, "schema", None)
    if isinstance(schema, pa.Schema):
        _refuse_repeats(schema.names)
        return TableTypes(
            "pyarrow", {field.name: ColumnType(field.type, field.type, field.nullable) for field in schema}
        )
    return None


def type_name(kind: Any) -> str:
    """A type in words, without what it lists: an Enum names values, a struct has keys of somebody's record."""
    if pa.types.is_dictionary(kind):
        return f"categorical of {type_name(kind.value_type)}"
    if pa.types.is_null(kind):
        return "unknown"
    return "nested" if pa.types.is_nested(kind) else str(kind)


def _unplanned(err: BaseException) -> InputError:
    return InputError(
        f"the column types of the polars frame could not be told: polars raised {type(err).__name__}; see whether "
        "frame.collect_schema() works"
    )


# --------------------------------------------------------------------------------------------------------- pandas


def _pandas_types(dtypes: Any) -> TableTypes:
    _refuse_repeats(dtypes.index)
    return TableTypes("pandas", {name: _of_pandas(dtype) for name, dtype in dtypes.items()})


def _is_pandas_dtype(value: Any) -> bool:
    return isinstance(value, (np.dtype, sys.modules["pandas"].api.extensions.ExtensionDtype))


def _of_pandas(dtype: Any) -> ColumnType:
    pandas = sys.modules["pandas"]
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return ColumnType(pa.string(), dtype)
        return ColumnType(_of_numpy(dtype), dtype, holds_nulls=dtype.kind in "fMm")
    if isinstance(dtype, pandas.CategoricalDtype):
        values = pa.string() if dtype.categories is None else _of_pandas(dtype.categories.dtype).arrow
        return ColumnType(pa.dictionary(_INDEX, values, bool(dtype.ordered)), dtype)
    if isinstance(dtype, pandas.ArrowDtype):
        return ColumnType(dtype.pyarrow_dtype, dtype)
    if isinstance(dtype, pandas.StringDtype):
        return ColumnType(pa.large_string(), dtype)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return ColumnType(pa.timestamp(dtype.unit, pa.lib.tzinfo_to_string(dtype.tz)), dtype)
    masked = getattr(dtype, "numpy_dtype", None)  # Int64, Float32, boolean
    return ColumnType(_of_numpy(masked) if isinstance(masked, np.dtype) else pa.null(), dtype)


def _of_numpy(dtype: np.dtype[Any]) -> pa.DataType:
    try:
        return pa.from_numpy_dtype(dtype)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.null()


# --------------------------------------------------------------------------------------------------------- polars


def _of_polars(dtype: Any) -> pa.DataType:
    polars = sys.modules["polars"]
    base = dtype.base_type()
    if base in (polars.Enum, polars.Categorical):
        return pa.dictionary(_INDEX, pa.large_string(), base is polars.Enum)
    if base is polars.Object:
        return pa.null()
    try:
        return polars.Series([], dtype=dtype).to_arrow().type
    except (pa.ArrowException, polars.exceptions.PolarsError):  # 128 bits and decimals too long for either library
        return pa.int64() if dtype.is_integer() else pa.null()


def _refuse_repeats(names: Iterable[Any]) -> None:
    listed = list(names)
    if len(set(listed)) != len(listed):
        raise InputError("the table has two columns of the same name; rename one")
