"""Frames in: one view of pandas, polars, pyarrow and numpy tables, checked against a schema.

Opening a table compares names and types only. Values are looked at column by column when cells are counted;
whatever is wrong with them is reported by column name and kind of mistake, never by value, and conversion
errors of other libraries are not passed on because their messages quote the data. Identifiers are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Date, Datetime, Identifier, Integer, Real
from spinney.columns.physical import Physical
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.redacted import redacted
from spinney.schema.table import Schema, as_schema
from spinney.tables.described import check_names, fits, misfit
from spinney.tables.objects import LARGEST_INTEGER, NOT_A_BOOLEAN, NOT_LISTED
from spinney.tables.strings import is_string, parse_strings, read_objects

FrameKind = Literal["pandas", "polars", "pyarrow", "numpy"]


class Table:
    """A frame whose columns and types fit a schema. Its rows have not been looked at."""

    def __init__(self, kind: FrameKind, n_rows: int, schema: Schema, column: Callable[[str], Any]) -> None:
        self.kind = kind
        self.n_rows = n_rows
        self.schema = schema
        self._column = column

    def __repr__(self) -> str:
        return f"Table({self.kind}, sensitive)"

    def with_schema(self, schema: Schema) -> Table:
        """The same rows under a schema of the same names and types, with other bounds."""
        return Table(self.kind, self.n_rows, schema, self._column)

    def raw(self, name: str) -> Any:
        """The values of one column as the table holds them: a series, an arrow array or a numpy array."""
        return self._column(name)

    def unplaced(self) -> Table:
        """The same rows, where a fault of one is not told by its line."""
        return self

    def physical(self, name: str) -> Physical:
        """The values of one column as numbers, or an InputError that names the column."""
        column = self.schema[name]
        if isinstance(column, Identifier):
            raise SchemaError(f"column {name!r} is an identifier, whose values are never read; leave it out")
        at, kind = f"column {name!r}", column.type_name
        with redacted(
            lambda _: InputError(f"{at}: some value cannot be read as {kind}; clean the column or change its type"),
            at=at,
        ):
            if isinstance(column, Real):
                return Physical(_floats(self._column(name)))
            return _CONVERT[type(column)](self._column(name), column)


def open_table(frame: Any, schema: Schema) -> Table:
    """The frame as a `Table`, after checking that it has exactly the schema's columns, with fitting types."""
    schema = as_schema(schema)
    if isinstance(frame, np.ndarray):
        return _open_array(frame, schema)
    with redacted(
        lambda err: InputError(
            f"the {type(frame).__name__} cannot be opened as a table ({type(err).__name__}); "
            "convert it to a plain pandas, polars or pyarrow table"
        )
    ):
        return _open_frame(frame, schema)


def _open_array(array: NDArray[Any], schema: Schema) -> Table:
    if isinstance(array, np.ma.MaskedArray):
        raise InputError("a masked array is not supported; fill it with NaN or pass a data frame")
    array = np.asarray(array)  # of a matrix, a column would have two dimensions
    if array.ndim == 1 and len(schema) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(schema):
        raise SchemaError(f"an array of shape {array.shape} does not have the schema's {len(schema)} columns")
    if array.dtype.kind not in "fiub":
        # Fields of a structured array may be anything, so that only the kind of the type is named.
        kind = array.dtype.type.__name__
        raise SchemaError(f"an array of dtype {kind} is not numeric; pass a data frame for other types")
    position = {name: index for index, name in enumerate(schema)}
    for name, column in schema.items():
        if isinstance(column, Identifier) and column.is_text:
            raise SchemaError(f"column {name!r}: a numeric array cannot hold texts; leave the prefix out")
        if isinstance(column, (Date, Datetime)) or column.is_text:
            raise SchemaError(f"column {name!r} is of type {column.type_name}, which a numeric array cannot hold")
    return Table("numpy", len(array), schema, lambda name: _native(array[:, position[name]]))


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """The numbers in a width and byte order that arrow and the compiled loops know; no copy where they are."""
    if values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64):
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _open_frame(frame: Any, schema: Schema) -> Table:
    try:
        wrapped = nw.from_native(frame, eager_only=True)
        names = list(wrapped.columns)
    except TypeError:
        raise_alone(
            InputError(
                f"a {type(frame).__name__} is not a table; pass a pandas, polars or pyarrow table or a numpy array"
            )
        )
    except nw.exceptions.DuplicateError:
        raise_alone(InputError("the table has two columns of the same name; rename one"))
    kind: FrameKind
    implementation = wrapped.implementation
    if implementation.is_pandas():
        kind = "pandas"
    elif implementation.is_polars():
        kind = "polars"
    elif implementation.is_pyarrow():
        kind = "pyarrow"
    else:
        raise InputError(f"tables of {implementation} are not supported; convert to pandas, polars or pyarrow")
    check_names(names, schema, index=getattr(getattr(frame, "index", None), "names", None) or ())
    opened: dict[str, tuple[Any, bool]] = {}  # small tables come by the thousand, so that nothing is looked up twice
    for name, column in schema.items():
        if isinstance(column, Identifier):  # of any type: nothing will look at it
            continue
        series = wrapped[name]
        dtype = series.dtype
        opened[name] = series, _is_object(frame, name, dtype, column)
        if not opened[name][1] and not fits(dtype, column):
            raise misfit(name, dtype, column)

    def values(name: str) -> Any:
        series, is_object = opened[name]
        if is_object:
            return read_objects(series.to_list(), schema[name])
        if schema[name].is_text or not isinstance(series.dtype, (nw.String, nw.Categorical, nw.Enum)):
            return series
        array = _arrow(series)
        return parse_strings(array, schema[name]) if is_string(array.type) else array

    return Table(kind, len(wrapped), schema, values)


def _is_object(frame: Any, name: str, dtype: Any, column: Column) -> bool:
    """Whether a column holds Python objects, of which each may be of its own type."""
    if isinstance(dtype, nw.Object):
        return True
    native = getattr(frame[name], "dtype", None)
    if isinstance(dtype, (nw.Categorical, nw.Enum)) and not column.is_text:  # numbers of one type, unless objects
        native = getattr(getattr(native, "categories", None), "dtype", None)
    return isinstance(native, np.dtype) and native == np.dtype(object)


# ------------------------------------------------------------------------------------------------- conversion


def _arrow(series: Any, *, decode: bool = True) -> Any:
    """A column as one arrow array, by default without a dictionary."""
    if isinstance(series, np.ndarray):
        return pa.array(series, from_pandas=True)
    array = series if isinstance(series, pa.Array) else series.to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (decode and pa.types.is_dictionary(array.type)):
        return array
    if pa.types.is_string_view(array.type.value_type):  # arrow takes nothing out of these
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array.dictionary_decode()


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


def _only(kinds: tuple[Callable[[Any], bool], ...], array: Any) -> Any:
    """The array if it holds these kinds of values or nulls alone. Arrow would parse text and take times for numbers."""
    if array.null_count == len(array):
        return pa.nulls(len(array))
    if not any(is_kind(array.type) for is_kind in kinds):
        raise InputError("the values are of another kind than the schema says; convert them or change the type")
    return array


def _floats(series: Any) -> NDArray[Any]:
    """Real values without a copy where the table already holds floats of 32 or 64 bits."""
    if isinstance(series, np.ndarray) or (not isinstance(series, pa.Array) and series.dtype.is_float()):
        values = series if isinstance(series, np.ndarray) else _native(_numpy(series))
        if values.dtype.kind in "fiub":
            return values if values.dtype.kind == "f" else values.astype(np.float64)
    array = _only(_NUMBERS, _arrow(series))
    if pa.types.is_decimal(array.type):
        # By their digits, to the nearest float, as everybody else reads them; arrow's own conversion rounds twice.
        array = array.cast(pa.string())
    floats = array.cast(pa.float64())
    return np.asarray(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


def _numpy(series: Any) -> NDArray[Any]:
    """A series as an array. Arrow copies columns in pieces, even where there is one piece."""
    array = series.to_native()
    if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1 and not array.null_count:
        return np.asarray(array.chunk(0).to_numpy(zero_copy_only=False))
    return np.asarray(series.to_numpy())


def _with_mask(array: Any) -> Physical:
    """An integer arrow array as int64 and a mask."""
    is_null = None
    if array.null_count:
        is_null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        array = array.fill_null(0)
    return Physical(np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False), is_null)


def _whole_numbers(series: Any) -> Any:
    """Integers, or floats that hold whole numbers, as an arrow array of int64."""
    array = _only(_NUMBERS, _arrow(series))
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
        array = pc.if_else(pc.is_finite(array), array, pa.scalar(None, array.type))
        clipped = pc.max_element_wise(
            pc.min_element_wise(array, float(LARGEST_INTEGER), skip_nulls=False),
            float(-LARGEST_INTEGER),
            skip_nulls=False,
        )
        if not pc.all(pc.equal(clipped, pc.floor(clipped))).as_py() and clipped.null_count < len(clipped):
            raise InputError("some value is not a whole number; use Real for this column")
        return clipped.cast(pa.int64())
    if pa.types.is_uint64(array.type):
        array = pc.min_element_wise(array, pa.scalar(LARGEST_INTEGER, pa.uint64()), skip_nulls=False)
    return array.cast(pa.int64())


def _integers(series: Any, _: Column) -> Physical:
    return _with_mask(_whole_numbers(series))


def _truth_values(series: Any, _: Column) -> Physical:
    array = _arrow(series)
    if pa.types.is_boolean(array.type):
        return _with_mask(array.cast(pa.int8()))
    numbers = _with_mask(_whole_numbers(series))
    if ((numbers.values != 0) & (numbers.values != 1)).any():
        raise InputError(NOT_A_BOOLEAN)
    return numbers


def _days(series: Any, _: Column) -> Physical:
    array = _only((pa.types.is_date, pa.types.is_timestamp), _arrow(series))
    if pa.types.is_timestamp(array.type):
        if array.type.tz is not None:
            raise InputError("the values have a time zone, so their day is not settled; convert them to days")
        array = pc.floor_temporal(array, unit="day")
    return _with_mask(array.cast(pa.date32(), safe=False).cast(pa.int32()))


def _microseconds(series: Any, column: Column) -> Physical:
    assert isinstance(column, Datetime)
    array = _only((pa.types.is_timestamp,), _arrow(series))
    if pa.types.is_timestamp(array.type) and (array.type.tz is None) != (column.timezone is None):
        raise InputError("the column and the schema do not agree on having a time zone")
    return _with_mask(array.cast(pa.timestamp("us", column.timezone), safe=False).cast(pa.int64()))


def _texts(series: Any) -> Any:
    array = _arrow(series)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return _only((is_string,), array).cast(pa.string())


def _positions(series: Any, column: Column) -> Physical:
    """Places in the schema's list. A column that was stored as a list of its own and places in that stays so."""
    assert isinstance(column, Category)
    stored = _arrow(series, decode=False)
    is_coded = column.is_text and pa.types.is_dictionary(stored.type)
    own = stored.dictionary if is_coded else stored
    values = _texts(own) if column.is_text else _whole_numbers(own)
    found, is_missing = pc.index_in(values, value_set=pa.array(column.values, type=values.type)), values.is_null()
    if is_coded:
        found = found.take(stored.indices)
        is_missing = pc.fill_null(is_missing.take(stored.indices), True)
    if found.null_count > (pc.sum(is_missing).as_py() or 0):
        raise InputError(NOT_LISTED)
    return _with_mask(found)


_CONVERT: dict[type[Column], Callable[[Any, Column], Physical]] = {
    Integer: _integers,
    Boolean: _truth_values,
    Date: _days,
    Datetime: _microseconds,
    Category: _positions,
}
