"""Frames out: drawn positions become typed columns in the kind of table that came in. PUBLIC.

casting                          an Arrow table in other column types, for Arrow, pandas, polars and numpy
frames                           positions along the axes to values, in the kind of table that came in
column types of a given table    the column types of a given table, checked before a row is drawn
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Identifier, Real, exact
from spinney.columns.bounded import whole_range
from spinney.columns.reading import ColumnType, TableTypes, type_name, types_of
from spinney.errors import InputError, ParameterError, raise_alone, redacted
from spinney.machine import load_optional
from spinney.release.card import check_frame_kind
from spinney.release.parts import Part
from spinney.schema.schema import Schema
from spinney.text import did_you_mean

# -------------------------------------------------------------------------------------------------------------- casting
# Synthetic rows in other column types: an Arrow table cast column by column, for Arrow, pandas, polars and numpy.
#
# That the values fit was checked before (`like`). What a type cannot hold as finely is rounded: reals to the nearest
# float or decimal, datetimes and times down to the unit. Categoricals get the categories of the schema, in its order.


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


# --------------------------------------------------------------------------------------------------------------- values


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


# --------------------------------------------------------------------------------------------------------------- frames
# Frames out: positions along the axes become typed columns in the kind of table that came in.


Columns = Mapping[str, Column]


def to_frame(
    positions: NDArray[np.float64],
    schema: Schema,
    kind: str,
    *,
    drawn: Columns | None = None,
    part: Part | None = None,
    given: Mapping[str, pa.Array] | None = None,
) -> Any:
    """Rows given by positions as a table of the given kind; NaN is null.

    Columns with `multiple_of` move to the nearest multiple. Identifiers are numbered, whatever their positions. Columns
    that rules compute are computed of the others.

    Args:
        positions: of all columns, or of those that are modelled (n_axes, n_rows).
        schema: the columns of the table.
        kind: one of `FRAME_KINDS`.
        drawn: the columns that positions count from, by name, where these are not the schema's own.
        part: which rows of a larger sample these are, where they are not all.
        given: the values of some columns, by name, in place of what is drawn.
    """
    columns = schema._as_drawn if drawn is None else drawn
    if kind == "numpy" and not schema._derivations and not given and (part is None or not schema._identifiers):
        return _to_array(positions, columns)
    library = None
    if kind not in ("pyarrow", "numpy"):
        library = load_optional(kind, f"frame={kind!r}", otherwise="ask for frame='pyarrow'")
    table = pa.table({**_arrays(positions, schema, columns, part), **(given or {})})
    if kind == "numpy":
        return _computed_array(table, schema)
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


def _arrays(
    positions: NDArray[np.float64],
    schema: Schema,
    columns: Columns,
    part: Part | None,
    *,
    only: Collection[str] | None = None,
) -> dict[str, pa.Array]:
    """The values of all columns, or of some, those that are computed after those that they follow from."""
    needed = set(schema if only is None else only)
    for rule in reversed(schema._derivations):
        needed |= set(rule.sources) if rule.column in needed else set()
    rules = {rule.column: rule for rule in schema._derivations if rule.column in needed}
    is_whole = len(positions) == len(schema)
    given = list(schema) if is_whole else list(schema._modelled)
    first, n_rows = (0, positions.shape[1]) if part is None else (part.first, part.n_rows)
    drawn = {
        name: columns[name]._part_to_arrow(positions[place], first=first, n_rows=n_rows)
        for place, name in enumerate(given)
        if name in needed and (name not in rules or rules[name].modelled_of(schema) is not None)
    }
    arrays = {name: array for name, array in drawn.items() if name not in rules}
    for name, rule in rules.items():
        arrays[name] = rule.compute(arrays, schema, drawn.get(name))
    return {name: arrays[name] for name in schema if name in needed}


def numbers_of(
    names: Sequence[str], positions: NDArray[np.float64], *, schema: Schema, drawn: Columns
) -> dict[str, NDArray[np.float64]]:
    """The physical numbers of some columns in rows that were drawn along all columns; NaN is null."""
    arrays, found = _arrays(positions, schema, drawn, None, only=names), {}
    for name in names:
        physical = schema[name]._read(arrays[name])
        values = np.asarray(physical.values, dtype=np.float64)
        found[name] = values if physical.is_null is None else np.where(physical.is_null, np.nan, values)
    return found


def _computed_array(table: pa.Table, schema: Schema) -> NDArray[np.float64]:
    """A table with computed columns as floats (n_rows, n_columns), NaN for null."""
    for column in schema.values():
        _check_array(column)
    floats = [table[name].cast(pa.float64()).to_numpy() for name in schema]
    return np.stack([np.asarray(column, dtype=np.float64) for column in floats], axis=1)


def positions_of(values: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Positions of rows given by numbers (n_columns, n_rows): reals as they are, whole numbers above the low bound.

    Categories are given by their place in the list. What lies outside the bounds is moved to the nearer one.
    """
    numbers = np.asarray(values, dtype=np.float64)
    return np.stack([column._to_positions(numbers[index]) for index, column in enumerate(schema.values())])


def _to_array(positions: NDArray[np.float64], columns: Columns) -> NDArray[np.float64]:
    """All columns as floats (n_rows, n_axes), which is what a numeric array held on the way in."""
    array = positions
    for index, column in enumerate(columns.values()):
        _check_array(column)
        array[index] = column._to_floats(array[index])
    return array.T


def _check_array(column: Column) -> None:
    if not column._fits_array:
        raise ParameterError(f"frame='numpy' cannot hold a column of type {column.type_name}; ask for 'pyarrow'")


# ---------------------------------------------------------------------------------------- column types of a given table
# `like=`: synthetic rows with the column types of a given table, int8 and float32 and categoricals.
#
# Types are all that is taken. The categories of a pandas Categorical or a polars Enum are values of the private
# table, so the rows get those of the schema. What the schema allows and a type cannot hold is refused before a row is
# drawn: by bounds and lists, so the answer does not depend on the draw.


_TAKEN = "a pandas, polars or pyarrow table, its dtypes or schema, or a numpy array"
# The largest whole number up to which floats of so many bits hold every one.
_WHOLE_FLOATS = {16: 2**11, 32: 2**24, 64: 2**53}
_LARGEST_FLOATS = {16: float(np.finfo(np.float16).max), 32: float(np.finfo(np.float32).max), 64: np.inf}
_DIGITS = "give it more digits before the point"
_WHAT = {
    pa.types.is_boolean: ("booleans", "a boolean, integer or string type"),
    pa.types.is_integer: ("whole numbers", "an integer, float or string type"),
    pa.types.is_floating: ("real numbers", "a float or string type"),
    pa.types.is_string: ("strings", "a string type, or a categorical where the schema lists the values"),
    pa.types.is_date: ("dates", "a date type, or a datetime without a time zone"),
    pa.types.is_timestamp: ("datetimes", "a datetime type"),
    pa.types.is_time: ("times of day", "a time or string type"),
}


@dataclass(frozen=True, slots=True)
class Like:
    """Types for the columns of a schema. `check` before drawing, `convert` afterwards."""

    kind: str  # of table
    schema: Schema
    types: Mapping[str, ColumnType]

    def in_words(self) -> dict[str, Any]:
        """Kind and types, without the categories of any."""
        types = {name: [type_name(of.arrow), of.holds_nulls, of.is_object] for name, of in self.types.items()}
        return {"kind": self.kind, "types": types}

    def check(self, n_rows: int) -> None:
        """Raise a ParameterError that names the first column of which a type cannot hold what the schema allows."""
        empty = to_frame(np.empty((len(self.schema), 0)), self.schema, "pyarrow")
        for name, column in self.schema.items():
            wanted = self.types[name]
            if column.nullable and not wanted.holds_nulls:
                raise ParameterError(
                    f"like gives column {name!r} the type {type_name(wanted.arrow)}, which holds no nulls, and by the "
                    f"schema there may be nulls; {_with_nulls(self.kind, wanted.arrow)}"
                )
            if wanted.is_object:
                continue
            given = f"like gives column {name!r} the type {type_name(wanted.arrow)}"
            problem = _Fit(column, empty.schema.field(name).type, n_rows).problem(wanted.arrow)
            if problem is not None:
                raise ParameterError(f"{given}, {problem}")
            # Which casts a library lacks it says only when asked for one, and is asked with no rows.
            refusal = ParameterError(f"{given}, to which {self.kind} cannot convert the rows; give it another type")
            with redacted(partial(_instead, refusal)):
                Like(self.kind, self.schema, {name: wanted}).convert(empty.select([name]))

    def convert(self, table: pa.Table) -> Any:
        """Rows that were drawn, an Arrow table with the schema's columns, in these types."""
        if self.kind == "numpy":
            return to_numpy(table, next(iter(self.types.values())).native)
        lists = {name: _listed(self.schema[name]) for name in self.types}
        make = {"pandas": to_pandas, "polars": to_polars, "pyarrow": to_arrow}[self.kind]
        return make(table, self.types, lists)


def read_like(like: Any, schema: Schema, *, frame: str | None) -> Like:
    """The types that `like` gives to the columns of a schema; a ParameterError where it does not say them."""
    if frame is not None:
        check_frame_kind(frame)
    if isinstance(like, (np.ndarray, np.dtype)):
        found = _array_types(like, schema)
    else:
        try:
            types = types_of(like)
        except InputError as err:
            raise_alone(ParameterError(f"like: {err}"))
        if types is None:
            raise ParameterError(f"like is a {type(like).__name__}, which has no column types; pass {_TAKEN}")
        found = types
    if frame not in (None, found.kind):
        raise ParameterError(
            f"frame={frame!r} contradicts like, whose types are those of {found.kind}; leave one of the two out"
        )
    missing = [name for name in schema if name not in found.columns]
    if missing:
        others = [name for name in found.columns if isinstance(name, str) and name not in schema]
        raise ParameterError(
            f"like has no column {missing[0]!r}, which the rows will have; pass the table with all columns of the "
            f"schema{did_you_mean(missing[0], others)}"
        )
    return Like(found.kind, schema, {name: found.columns[name] for name in schema})


def _array_types(like: Any, schema: Schema) -> TableTypes:
    dtype = like if isinstance(like, np.dtype) else like.dtype
    if isinstance(like, np.ndarray) and (like.shape[1:] or (1,)) != (len(schema),):
        raise ParameterError(f"like is an array of shape {like.shape}, and the rows will have {len(schema)} columns")
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise ParameterError("like is an array that is not of numbers of up to 64 bits; pass a table for other types")
    dtype = dtype.newbyteorder("=")
    column = ColumnType(pa.from_numpy_dtype(dtype), dtype, holds_nulls=dtype.kind == "f")
    return TableTypes("numpy", dict.fromkeys(schema, column))


def _listed(column: Column) -> pa.Array | None:
    """All values of a column whose schema lists them."""
    if isinstance(column, Category):
        return pa.array(column.listed)
    return pa.array([False, True]) if isinstance(column, Boolean) else None


def _instead(refusal: ParameterError, err: BaseException) -> ParameterError:  # noqa: ARG001 - as `redacted` calls it
    return refusal


def _with_nulls(kind: str, wanted: Any) -> str:
    if kind == "pandas":
        return f"give it a type that does, such as {'boolean' if pa.types.is_boolean(wanted) else 'Int64'!r}"
    return "give it a float type" if kind == "numpy" else "make the field nullable"


@dataclass(frozen=True, slots=True)
class _Fit:
    """What a column of the schema may hold, and the Arrow type in which it is made."""

    column: Column
    made: Any
    n_rows: int

    def problem(self, wanted: Any) -> str | None:
        """Why a type cannot hold the column, as the end of a sentence that names it; None where it can."""
        types = pa.types
        if types.is_dictionary(wanted):
            return self._list_problem(wanted)
        if is_string(wanted):
            return None
        if types.is_boolean(self.made) or types.is_integer(self.made):
            return self._whole_problem(wanted)
        if types.is_floating(self.made):
            return self._real_problem(wanted)
        if types.is_date(self.made) or types.is_timestamp(self.made):
            return self._time_problem(wanted)
        return None if types.is_time(self.made) and types.is_time(wanted) else self._misfit()

    def _misfit(self) -> str:
        what, fitting = next(words for is_kind, words in _WHAT.items() if is_kind(self.made))
        if pa.types.is_timestamp(self.made):
            zone = "without" if self.made.tz is None else "with"
            what, fitting = f"{what} {zone} a time zone", f"{fitting} {zone} one"
        return f"and the rows will have {what} there; give it {fitting}"

    def _list_problem(self, wanted: Any) -> str | None:
        listed = _listed(self.column)
        if listed is None:
            return "and the schema lists no categories of it; give it a type without categories"
        most = np.iinfo(wanted.index_type.to_pandas_dtype()).max
        if len(listed) - 1 > most:
            return f"whose numbers end at {most}, and the schema lists {len(listed)} values; give it wider indices"
        return self.problem(wanted.value_type)

    def _ends(self) -> tuple[int, int]:
        """The least and the largest whole number that stands for a value."""
        if isinstance(self.column, Identifier):
            return 1, self.n_rows
        if isinstance(self.column, Category):
            return min(map(int, self.column.listed)), max(map(int, self.column.listed))
        return whole_range(self.column)

    def _whole_problem(self, wanted: Any) -> str | None:
        low, high = self._ends()
        if pa.types.is_integer(wanted):
            reach = np.iinfo(wanted.to_pandas_dtype())
            return _outside(low, high, int(reach.min), int(reach.max), "give it a wider integer type")
        if pa.types.is_floating(wanted):
            most = _WHOLE_FLOATS[wanted.bit_width]
            return _outside(low, high, -most, most, "give it a wider type, or an integer type", "exactly ")
        if pa.types.is_decimal(wanted):
            if wanted.scale < 0:
                return f"which holds multiples of {10**-wanted.scale} alone; give it a scale of 0 or more"
            most = math.floor((10**wanted.precision - 1) / Fraction(10) ** wanted.scale)
            return _outside(low, high, -most, most, _DIGITS)
        if pa.types.is_boolean(wanted) and low >= 0 and high <= 1:
            return None
        return self._misfit()

    def _real_problem(self, wanted: Any) -> str | None:
        column = self.column
        assert isinstance(column, Real)
        low, high = exact(column.low), exact(column.high)
        if pa.types.is_floating(wanted):
            largest = _LARGEST_FLOATS[wanted.bit_width]
            if max(-column.low, column.high) <= largest:
                return None
            return _outside(column.low, column.high, -largest, largest, "give it a wider float type")
        if pa.types.is_decimal(wanted):
            most = (10**wanted.precision - 1) / Fraction(10) ** wanted.scale
            if max(-low, high) <= most:
                return None
            return _outside(column.low, column.high, -float(most), float(most), _DIGITS)
        if pa.types.is_integer(wanted) and column.multiple_of is not None and exact(column.multiple_of) % 1 == 0:
            reach = np.iinfo(wanted.to_pandas_dtype())
            return _outside(-(-low // 1), high // 1, int(reach.min), int(reach.max), "give it a wider integer type")
        return self._misfit()

    def _time_problem(self, wanted: Any) -> str | None:
        types, made = pa.types, self.made
        if types.is_date(wanted) and types.is_date(made):
            return None
        if not types.is_timestamp(wanted) or (wanted.tz is None) != (getattr(made, "tz", None) is None):
            return self._misfit()
        low, high = (end * UNITS[wanted.unit] // units_per_second(made) for end in whole_range(self.column))
        if low > -(2**63) and high < 2**63:
            return None
        return "which begins in 1677 and ends in 2262, and the schema allows more; give it a coarser unit than ns"


def is_string(kind: Any) -> bool:
    """Whether an Arrow type is one of its three for strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _outside(low: Any, high: Any, least: Any, most: Any, remedy: str, how: str = "") -> str | None:
    if least <= low and high <= most:
        return None
    return f"which holds {how}{least}..{most}, and the schema allows {low}..{high}; {remedy}"
