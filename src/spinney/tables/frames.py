"""Tables in memory: one view of pandas, polars, pyarrow and numpy, checked against a schema. SENSITIVE.

    names     names of a table compared with those of a schema
    types     whether a type of the table can be meant by a kind of column
    frames    `Table`: values column by column, as numbers

Opening a table compares names and types only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from spinney.columns import KINDS, Category, Column
from spinney.columns.reading import Physical, group_of, is_string, native, one_array, parse_strings, read_objects
from spinney.errors import InputError, SchemaError, raise_alone, redacted
from spinney.schema.schema import Schema, as_schema
from spinney.text import closest, listed

# ---------------------------------------------------------------------------------------------------------------- names
# What names and types alone say of a table, compared with a schema. No value is looked at.
#
# Messages name columns and kinds of types. The parameters of a type stay out: an Enum lists the values of its
# column, a struct has fields that were keys of somebody's record, and a column of another library prints what
# it likes.


# Likely pairs of names that a message spells out.
_MOST_PAIRS = 3


def check_names(names: Sequence[Any], schema: Schema, *, index: Collection[Any] = ()) -> None:
    """Raise a SchemaError that names all columns of the one side that the other lacks, and which were likely meant.

    `index` holds the names of a pandas index, which is not a column.
    """
    _refuse_other_labels(names)
    extra = [name for name in names if name not in schema]
    lacking = [name for name in schema if name not in set(names)]
    if not extra and not lacking:
        return
    pairs = {name: meant for name in extra if (meant := closest(name, lacking)) is not None}
    if extra and len(extra) == len(names) and lacking and not pairs:
        raise SchemaError(
            f"the table has none of the schema's columns, {listed(lacking)}; name its columns as the schema does. Its "
            "own names are not shown here: in a CSV that was read without a header row they are values of a person "
            "(pandas: read_csv(..., header=None, names=[...]))"
        )
    told = []
    if extra:
        told.append(f"{_columns(extra)} in the table but not in the schema")
    if lacking:
        told.append(f"{_columns(lacking)} in the schema but not in the table")
    raise SchemaError(f"{', and '.join(told)}; {_remedy_of_names(extra, lacking, pairs, index)}")


def _refuse_other_labels(names: Sequence[Any]) -> None:
    """Refuse numbers, dates and tuples for names, as pandas has them: a pivot makes names of values."""
    kinds = {type(name).__name__ for name in names if not isinstance(name, str)}
    if "tuple" in kinds:
        raise SchemaError(
            "the table has column names of several levels; make them strings, for example "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if kinds:
        raise SchemaError(
            f"the table has column names of type {', '.join(sorted(kinds))}, and a schema has strings; name the "
            "columns, for example frame.columns = list(schema)"
        )


def _columns(names: Sequence[str]) -> str:
    return f"column {listed(names)} is" if len(names) == 1 else f"columns {listed(names)} are"


def _remedy_of_names(
    extra: Sequence[str], lacking: Sequence[str], pairs: dict[str, str], index: Collection[Any]
) -> str:
    for name in lacking:
        if name in index:
            return f"{name!r} is the index of the table, not a column: pass frame.reset_index()"
    for name in extra:
        if name.startswith("Unnamed: "):  # what pandas calls a column without a name
            return f"{name!r} is an index that was written into a CSV: read that with index_col=0, or drop the column"
    if pairs:
        meant = ", ".join(f"{right!r} by {wrong!r}" for wrong, right in list(pairs.items())[:_MOST_PAIRS])
        return f"did you mean {meant}? Give both the same names, capitals and spaces included"
    if extra and lacking:
        return "give both the same names, capitals and spaces included"
    if extra:
        it = _it(extra)
        return f'describe {it}, leave {it} out with sp.Ignore() (type = "ignore"), or drop {it}'
    return f"add {_it(lacking)} or take {_it(lacking)} out of the schema"


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


# ---------------------------------------------------------------------------------------------------------------- types


def fits(dtype: Any, column: Column) -> bool:
    """Whether values of this dtype can be meant by this column type, without looking at them."""
    group = group_of(dtype)
    # Strings are parsed, each by itself; columns of nulls alone are settled when their values are converted.
    return group in ("string", "unknown") or group in column._accepts


def misfit(name: str, dtype: Any, column: Column) -> SchemaError:
    """The error for a column whose type cannot be meant."""
    return type_error(name, kind_of(dtype), column, _remedy_of_types(dtype, column))


def type_error(name: str, kind: str, column: Column, remedy: str) -> SchemaError:
    """The error for a column of some kind, with what to do about it."""
    return SchemaError(
        f"column {name!r} has type {kind} in the table, which does not fit {column.type_name} ({column!r}); {remedy}"
    )


def kind_of(dtype: Any) -> str:
    """The name of a type without its parameters, except whether it has a time zone."""
    name = dtype.__name__ if isinstance(dtype, type) else type(dtype).__name__
    if isinstance(dtype, nw.Datetime):
        return f"{name} without a time zone" if dtype.time_zone is None else f"{name} with a time zone"
    return name


def _remedy_of_types(dtype: Any, column: Column) -> str:
    group = group_of(dtype)
    remedy = column._remedy(group)
    if remedy is not None:
        return remedy
    for kind in KINDS:
        if group in kind._describes:
            return f"describe it as {kind.__name__}, or convert the column"
    return "there is no column type for it: convert it to numbers or strings, or describe it as Ignore or Identifier"


# --------------------------------------------------------------------------------------------------------------- frames
# One view of pandas, polars, pyarrow and numpy tables, checked against a schema.
#
# Opening a table compares names and types only. Values are looked at column by column when cells are counted;
# an error names the column and the kind of mistake, never the value, and conversion errors of other libraries
# are not passed on because their messages quote the data. Of identifiers, and of columns that are ignored, no
# value is looked at.


FrameKind = Literal["pandas", "polars", "pyarrow", "numpy"]
_KINDS: dict[nw.Implementation, FrameKind] = {
    nw.Implementation.PANDAS: "pandas",
    nw.Implementation.POLARS: "polars",
    nw.Implementation.PYARROW: "pyarrow",
}


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
        if not column._also_reads:
            return self.stored(name)
        return column._combined(self.stored(name), {other: self.stored(other) for other in column._also_reads})

    def stored(self, name: str) -> Physical:
        """The same of what the table holds under that name; of a residual the total, of a difference the later date."""
        column = self.schema[name]
        at, kind = f"column {name!r}", column.type_name
        if not column.is_read:
            raise SchemaError(f"column {name!r} is of type {kind}, whose values are never read; leave it out")
        with redacted(
            lambda _: InputError(f"{at}: some value cannot be read as {kind}; clean the column or change its type"),
            at=at,
        ):
            return column._read(self._column(name))

    def keys(self, name: str) -> Any:
        """The strings or whole numbers of a category as an Arrow array, before they are looked up in its list."""
        column = self.schema[name]
        assert isinstance(column, Category)
        at = f"column {name!r}"
        with redacted(lambda _: InputError(f"{at}: some value cannot be read; clean the column"), at=at):
            return column._keys(self._column(name))


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
        if not column.is_read and not column._fits_array:
            raise SchemaError(f"column {name!r}: a numeric array cannot hold strings; leave the prefix out")
        if not column._fits_array:
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
    if wrapped.implementation not in _KINDS:
        raise InputError(f"tables of {wrapped.implementation} are not supported; convert to pandas, polars or pyarrow")
    kind = _KINDS[wrapped.implementation]
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
