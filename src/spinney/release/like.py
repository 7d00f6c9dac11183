"""`like=`: synthetic rows with the column types of a given table, int8 and float32 and categoricals.

Types are all that is taken. The categories of a pandas Categorical or a polars Enum are values of the private table, so
the rows get those of the schema. What the schema allows and a type cannot hold is refused before a row is drawn: by
bounds and lists, so the answer does not depend on the draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.columns import Boolean, Category, Column, Identifier, Real, exact
from spinney.columns.bounded import whole_range
from spinney.dtypes import ColumnType, TableTypes, type_name, types_of
from spinney.errors import InputError, ParameterError, raise_alone
from spinney.redacted import redacted
from spinney.release.casting import UNITS, to_arrow, to_numpy, to_pandas, to_polars, units_per_second
from spinney.release.frames import check_frame_kind, to_frame
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean

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
