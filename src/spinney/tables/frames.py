"""Frames in: one view of pandas, polars, pyarrow and numpy tables, checked against a schema.

Opening a table compares names and types only. Values are looked at column by column when cells are counted;
whatever is wrong with them is reported by column name and kind of mistake, never by value, and conversion
errors of other libraries are not passed on because their messages quote the data. Of identifiers, and of columns that
are ignored, no value is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from spinney.columns import Category, Column
from spinney.columns.arrow import is_string, native, one_array
from spinney.columns.physical import Physical
from spinney.columns.strings import parse_strings, read_objects
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.redacted import redacted
from spinney.schema.residual import Residual
from spinney.schema.table import Schema, as_schema
from spinney.tables.described import check_names, fits, misfit

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
        """The same rows under a schema of the same names and types, or fewer of them, with other bounds."""
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
        if not isinstance(column, Residual):
            return self.stored(name)
        parts = {part: self.physical(part) for part in column.also_reads}
        return column.combined(self.stored(name), parts)

    def stored(self, name: str) -> Physical:
        """The same of what the table holds under that name; of a residual, the total."""
        column = self.schema[name]
        at, kind = f"column {name!r}", column.type_name
        if not column.is_read:
            raise SchemaError(f"column {name!r} is of type {kind}, whose values are never read; leave it out")
        with redacted(
            lambda _: InputError(f"{at}: some value cannot be read as {kind}; clean the column or change its type"),
            at=at,
        ):
            return column.read(self._column(name))

    def keys(self, name: str) -> Any:
        """The strings or whole numbers of a category as an Arrow array, before they are looked up in its list."""
        column = self.schema[name]
        assert isinstance(column, Category)
        at = f"column {name!r}"
        with redacted(lambda _: InputError(f"{at}: some value cannot be read; clean the column"), at=at):
            return column.keys(self._column(name))


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
        if not column.is_read and not column.fits_array:
            raise SchemaError(f"column {name!r}: a numeric array cannot hold strings; leave the prefix out")
        if not column.fits_array:
            raise SchemaError(f"column {name!r} is of type {column.type_name}, which a numeric array cannot hold")
    return Table("numpy", len(array), schema, lambda name: native(array[:, position[name]]))


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
        if not column.is_read:  # of any type: nothing will look at it
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
        array = one_array(series)
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
