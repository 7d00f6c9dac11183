"""Values of tables as numbers: what kinds of columns read alike, from Arrow, objects, strings and expressions.

    type groups            types of a table, as far as kinds of columns tell them apart
    numbers                one column as an array and a mask
    Arrow values           Arrow arrays as numbers
    expressions            the same numbers for engines whose rows stay where they are
    Python objects         value by value
    Spark columns          what several kinds read alike
    positions and steps    positions along an axis as physical numbers, rounded to `multiple_of`
    strings in memory      read as in a CSV, each by itself
    CSV texts              each distinct text once
    table types            names and types of pandas, polars and pyarrow tables, without a look at values

The cell of a row depends on that row alone: nothing is inferred from the rows around it. Arrays and expressions
use doubles and 64-bit integers in the same operations, so that engines agree to the last bit
(engines.proof.md).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from spinney.columns.base import Column, Spelling
from spinney.columns.bounded import Bounded, exact, whole_range
from spinney.errors import InputError, raise_alone, redacted

# ---------------------------------------------------------------------------------------------------------- type groups
# The types of a table's columns, told apart as far as kinds of columns care.


Group = Literal["float", "whole", "boolean", "string", "date", "datetime", "zoned datetime", "time", "unknown", "other"]


def group_of(dtype: Any) -> Group:
    """The group of a narwhals dtype. "whole" holds integers and decimals; columns of nulls alone may be "unknown"."""
    if dtype.is_numeric():
        return "float" if dtype.is_float() else "whole"
    if isinstance(dtype, nw.Boolean):
        return "boolean"
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return "string"
    if isinstance(dtype, nw.Date):
        return "date"
    if isinstance(dtype, nw.Datetime):
        return "datetime" if dtype.time_zone is None else "zoned datetime"
    if isinstance(dtype, nw.Time):
        return "time"
    return "unknown" if isinstance(dtype, nw.Unknown) else "other"


# -------------------------------------------------------------------------------------------------------------- numbers
# The values of a column as numbers, which is what every kind of column makes of what it reads.


@dataclass(frozen=True, slots=True)
class Physical:
    """One column as numbers: reals as floats with NaN for null, everything else as int64 with a null mask."""

    values: NDArray[Any]
    is_null: NDArray[np.bool_] | None = None

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which rows have no value: null, NaN or infinite."""
        return np.asarray(~np.isfinite(self.values)) if self.is_null is None else np.asarray(self.is_null)


# --------------------------------------------------------------------------------------------------------- Arrow values
# Columns of tables as Arrow arrays, and Arrow arrays as numbers: what several kinds of columns read alike.
#
# An error names the kind of fault, never the value; the caller replaces conversion errors of other libraries.


# Whole numbers beyond this are moved to it, which is outside all bounds that a schema may state.
LARGEST_INTEGER = 2**62
# What stands for values of a stored list that are missing, or that the schema does not list.
MISSING_CODE, UNLISTED_CODE = -1, -2
NOT_WHOLE = "some value is not a whole number; use Real for this column"

_COARSE = {"s": 10**6, "ms": 1000}  # microseconds of the units that reach further than microseconds do
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


def is_string(kind: pa.DataType) -> bool:
    """Whether an arrow type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def one_array(series: Any, *, decode: bool = True) -> Any:
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


def only(kinds: tuple[Callable[[Any], bool], ...], array: Any) -> Any:
    """The array if it holds these kinds of values or nulls alone. Arrow would parse text and take times for numbers."""
    if array.null_count == len(array):
        return pa.nulls(len(array))
    if not any(is_kind(array.type) for is_kind in kinds):
        raise InputError("the values are not of the type that the schema states; convert them or change the type")
    return array


def native(values: NDArray[Any]) -> NDArray[Any]:
    """The numbers in a width and byte order that arrow and the compiled loops know; no copy where they are."""
    if values.dtype.kind == "f" and values.dtype not in (np.float32, np.float64):
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def floats(series: Any) -> NDArray[Any]:
    """Real values without a copy where the table already holds floats of 32 or 64 bits."""
    if isinstance(series, np.ndarray) or (not isinstance(series, pa.Array) and series.dtype.is_float()):
        values = series if isinstance(series, np.ndarray) else native(_numpy(series))
        if values.dtype.kind in "fiub":
            return values if values.dtype.kind == "f" else values.astype(np.float64)
    array = only(_NUMBERS, one_array(series))
    if pa.types.is_decimal(array.type):
        # By their digits, to the nearest float, as everybody else reads them; arrow's own conversion rounds twice.
        array = array.cast(pa.string())
    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _numpy(series: Any) -> NDArray[Any]:
    """A series as an array. Arrow copies columns in pieces, even where there is one piece."""
    array = series.to_native()
    if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1 and not array.null_count:
        return np.asarray(array.chunk(0).to_numpy(zero_copy_only=False))
    return np.asarray(series.to_numpy())


def with_mask(array: Any) -> Physical:
    """An integer arrow array as int64 and a mask."""
    is_null = None
    if array.null_count:
        is_null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        array = array.fill_null(0)
    return Physical(np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False), is_null)


def looked_up(indices: Any, numbers: Any) -> Physical | None:
    """Places in a stored list as what its values mean; None where a place of a value without a meaning occurs.

    Args:
        indices: of all rows, an arrow array of whole numbers; null where a row is missing.
        numbers: for every value of the list what it means, MISSING_CODE or UNLISTED_CODE.
    """
    places = indices.fill_null(0) if indices.null_count else indices
    is_null = np.asarray(indices.is_null().to_numpy(zero_copy_only=False)) if indices.null_count else None
    meaning = np.asarray(numbers.to_numpy(zero_copy_only=False))
    if not len(meaning):  # all rows are missing, and place 0 stands for them
        meaning = np.array([MISSING_CODE], dtype=np.int64)
    raw = np.asarray(places.to_numpy(zero_copy_only=False))
    found = meaning[raw.view(f"u{raw.itemsize}")]  # a place below 0 is one beyond the end
    if meaning.min() < 0:
        is_missing = found == MISSING_CODE
        is_null = is_missing if is_null is None else is_null | is_missing
        if (~is_null & (found == UNLISTED_CODE)).any():
            return None
        found = np.maximum(found, 0)
    return Physical(found, is_null if is_null is None or is_null.any() else None)


def whole_numbers(series: Any) -> Any:
    """Integers, or floats that hold whole numbers, as an arrow array of int64."""
    array = only(_NUMBERS, one_array(series))
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
        array = pc.if_else(pc.is_finite(array), array, pa.scalar(None, array.type))
        clipped = pc.max_element_wise(
            pc.min_element_wise(array, float(LARGEST_INTEGER), skip_nulls=False),
            float(-LARGEST_INTEGER),
            skip_nulls=False,
        )
        if not pc.all(pc.equal(clipped, pc.floor(clipped))).as_py() and clipped.null_count < len(clipped):
            raise InputError(NOT_WHOLE)
        return clipped.cast(pa.int64())
    if pa.types.is_uint64(array.type):
        array = pc.min_element_wise(array, pa.scalar(LARGEST_INTEGER, pa.uint64()), skip_nulls=False)
    return array.cast(pa.int64())


def strings_of(series: Any) -> Any:
    """Strings, or nulls alone, as an arrow array of strings."""
    array = one_array(series)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return only((is_string,), array).cast(pa.string())


def within_calendar(timestamps: Any) -> Any:
    """Timestamps of a coarse unit, moved to where microseconds reach: a cast would turn what is beyond around."""
    kind = timestamps.type
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else "us"
    if unit not in _COARSE:
        return timestamps
    most = LARGEST_INTEGER // _COARSE[unit]
    numbers = timestamps.cast(pa.int64())
    numbers = pc.max_element_wise(pc.min_element_wise(numbers, most, skip_nulls=False), -most, skip_nulls=False)
    return numbers.cast(kind)


# ---------------------------------------------------------------------------------------------------------- expressions
# Values as expressions, for engines whose rows stay where they are: numbers, and what is missing or wrong.
#
# They use doubles and 64-bit integers in the same operations as the Arrow values above, so that engines agree
# to the last bit. No expression fails, whatever a row holds: an engine's own errors would quote the value. What
# cannot be read is marked instead, and counted. Days and moments are expected as whole numbers; each engine has
# its own way of getting them.


# Beyond this a whole number may not be a double, and is refused where a real is meant, as arrow refuses it.
_WHOLE_DOUBLES = 2**53


@dataclass(frozen=True, slots=True)
class Reading:
    """One column as three expressions, none of which is ever null."""

    number: nw.Expr  # float64 for reals, int64 for the rest; meaningless where one of the others holds
    is_missing: nw.Expr  # null, NaN or infinite
    is_wrong: nw.Expr  # there is a value, but none that the schema allows


def real_expression(value: nw.Expr, dtype: Any) -> Reading:
    """Numbers as doubles."""
    number = value.cast(nw.Float64)
    if not dtype.is_integer():
        is_number = number.is_finite().fill_null(False)
        return Reading(nw.when(is_number).then(number).otherwise(0.0), ~is_number, nw.lit(False))
    is_far = ((value > _WHOLE_DOUBLES) | (value < -_WHOLE_DOUBLES)).fill_null(False)
    return Reading(number.fill_null(0.0), value.is_null(), is_far)


def whole_expression(value: nw.Expr, dtype: Any) -> Reading:
    """Integers, truth values, and floats or decimals that hold whole numbers; decimals hold 64 bits at most."""
    if isinstance(dtype, nw.Decimal):
        number = value.floor().cast(nw.Int64).fill_null(0)
        return Reading(number, value.is_null(), (value.floor() != value).fill_null(False))
    if not dtype.is_float():
        within = value.clip(upper_bound=LARGEST_INTEGER) if dtype == nw.UInt64 else value
        return Reading(within.cast(nw.Int64).fill_null(0), value.is_null(), nw.lit(False))
    wide = value.cast(nw.Float64)
    is_number = wide.is_finite().fill_null(False)
    near = nw.when(is_number).then(wide).otherwise(0.0).clip(-float(LARGEST_INTEGER), float(LARGEST_INTEGER))
    return Reading(near.floor().cast(nw.Int64), ~is_number, near.floor().cast(nw.Float64) != near)


# ------------------------------------------------------------------------------------------------------- Python objects
# Columns of Python objects, value by value.
#
# Libraries infer one type for a whole column of objects, so that the spelling of one row decides how all the others
# are read: a single `Decimal("0.900000")` changes the digits of everybody's decimals. A row's cell must depend on
# that row alone. So every value is converted by itself, to the type that the schema states.


def convert_objects(values: Iterable[Any], column: Column) -> pa.Array:
    """The values as an arrow array of the column's physical type; missing ones are null."""
    convert = column._converter()
    return pa.array([None if _is_missing(value) else convert(value) for value in values], type=column._object_type)


def _is_missing(value: Any) -> bool:
    """None, NaN in any spelling, and the missing values of pandas, none of which equals itself."""
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, InvalidOperation):
        return True  # pandas.NA and signalling NaNs refuse to be compared


def real(value: Any) -> float:
    """A number as a float."""
    if not isinstance(value, (Real, Decimal)):
        raise InputError("some value is not a number")
    return float(value)


def whole(value: Any) -> int | None:
    """A number that is whole as an integer, and None for infinity."""
    if not isinstance(value, (Real, Decimal)):
        raise InputError("some value is not a number")
    exact: Any = value
    if exact in (math.inf, -math.inf):
        return None
    # Clamped by comparison alone: arithmetic on Decimal("1e999999999") overflows, and its digits would fill memory.
    if not -LARGEST_INTEGER < exact < LARGEST_INTEGER:
        return LARGEST_INTEGER if exact > 0 else -LARGEST_INTEGER
    number: int = math.floor(exact)
    if number != exact:
        raise InputError(NOT_WHOLE)
    return number


# -------------------------------------------------------------------------------------------------------- Spark columns
# Spark columns as numbers, booleans and strings, where several kinds of columns read them alike.


# Whole numbers of so many digits have 64 bits at most.
_SAFE_DIGITS = 18


def plain(value: Any, kind: Any) -> Any:
    """What Spark holds, with decimals as whole numbers and strings without a collation."""
    name = kind.typeName()
    if name == "decimal":
        return _whole_decimal(value, kind)
    # Texts may come with a collation, under which different texts are equal.
    return value.cast("string") if name in ("string", "char", "varchar") else value


def _whole_decimal(value: Any, kind: Any) -> Any:
    """A decimal as one that surely holds all whole numbers of 64 bits; anything else becomes a half, to be refused."""
    functions = functions_of(value)
    is_whole = value % 1 == 0
    if kind.precision - kind.scale > _SAFE_DIGITS:
        is_whole = is_whole & value.between(-(2**63), 2**63 - 1)
    half = functions.lit(0.5).cast("decimal(20,1)")
    return functions.when(value.isNull() | is_whole, value.cast("decimal(20,1)")).otherwise(half)


def functions_of(value: Any) -> Any:
    """Spark's functions, in the kind that a column or a frame is of."""
    if ".connect." in type(value).__module__:
        from pyspark.sql.connect import functions as remote

        return remote
    from pyspark.sql import functions

    return functions


# -------------------------------------------------------------------------------------------------- positions and steps
# Positions along an axis as physical numbers, and numbers in steps: what `multiple_of` rounds to, and from where.


_WHOLE_FLOATS = 2**53

Floats = NDArray[np.float64]
Wholes = NDArray[np.int64]


def nearest_multiples(values: NDArray[Any], column: Bounded) -> NDArray[Any]:
    """Each value moved to the nearest multiple of `multiple_of` inside the bounds; NaN stays, as does every multiple.

    Whole numbers in, whole numbers out. Decimals come out as written: 12.34, not 12.340000000000002.
    """
    first, last = column._first_and_last()
    inside: NDArray[Any] = np.clip(values, first, last)
    if column.is_whole:
        return np.asarray((inside - column._phase + column.step // 2) // column.step * column.step + column._phase)
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
    first, last = column._aligned(exact(low), up=True), column._aligned(exact(high), up=False)
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


# ---------------------------------------------------------------------------------------------------- strings in memory
# Strings in memory that stand for numbers, booleans, dates and timestamps, read as in a CSV, each value by itself.
#
# `pandas.read_csv` gives strings for dates, and for numbers too where a column is dirty. They are read by the
# spellings that a CSV file may have: ISO dates and timestamps, numbers with a decimal point, true and false. So are
# the spellings of "missing" (an empty string, NA, null, nan). Nothing is inferred from other rows. Strings of a
# category of strings are values as they are: there only a null is missing.


def parse_strings(array: Any, column: Column) -> Any:
    """Strings as arrow values of the type that the column has; raises an InputError where one cannot be read."""
    with redacted(lambda _: _unreadable(column)):
        try:
            return column._from_strings(array.cast(pa.string()))
        except InputError:
            raise_alone(_unreadable(column))


def read_objects(values: Iterable[Any], column: Column) -> Any:
    """Python objects as arrow values of the type that the column has, strings among them parsed."""
    present = list(values)
    is_spelt = [isinstance(value, str) for value in present]
    if column.is_text or not any(is_spelt):
        return convert_objects(present, column)
    others = [None if spelt else value for value, spelt in zip(present, is_spelt, strict=True)]
    # A subclass may have a __str__ of its own; what counts is the string that it is.
    strings = [str.__str__(value) for value, spelt in zip(present, is_spelt, strict=True) if spelt]
    parsed = parse_strings(pa.array(strings, pa.string()), column)
    return pc.replace_with_mask(convert_objects(others, column), pa.array(is_spelt), parsed)


def _unreadable(column: Column) -> InputError:
    return InputError(f"some string cannot be read as {column.type_name}; {column._spelling_remedy}")


# ------------------------------------------------------------------------------------------------------------ CSV texts
# Texts of a CSV as values, one by one.
#
# A CSV reader that falls back to another type for a whole column lets the spelling of one row change how all the
# others are read: a single "5.0" would round everybody's large integers. A row's cell must depend on that row alone.
# So columns whose values have more than one spelling are read as text and parsed here, the plain spellings by arrow,
# the rest in Python, each distinct text once. A decimal mark or a format of dates is stated for the whole column
# beforehand.


MISSING = tuple(pacsv.ConvertOptions().null_values)
TRUE, FALSE = pacsv.ConvertOptions().true_values, pacsv.ConvertOptions().false_values
NEVER = r"$^."
_WHOLE = r"^-?[0-9]{1,18}$"
_FIXED_WIDTH = {"Y": "([0-9]{4})", "m": "([0-9]{2})", "d": "([0-9]{2})"} | dict.fromkeys("HMS", "([0-9]{2})")


def without_missing(texts: Any, column: Column) -> Any:
    """The spellings of "missing" as nulls, except those that the schema lists as values or a text must not lack."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if column.is_text and not column.nullable:
        return array
    missing = [spelling for spelling in MISSING if spelling not in column.listed]
    return pc.if_else(among(array, missing), pa.scalar(None, pa.string()), array)


def among(strings: Any, spellings: list[str]) -> Any:
    """Which strings are spelt in one of these ways."""
    return pc.is_in(strings, value_set=pa.array(spellings, pa.string()))


def whole_texts(texts: Any, column: Column, spelling: Spelling) -> Any:
    """Whole numbers in any spelling: "5", " 5", "3.0"."""

    def parse(text: str) -> Decimal:
        if spelling.decimal == ",":
            text = text.replace(".", "?").replace(",", ".")
        return Decimal(text)

    array = without_missing(texts, column)
    is_plain = pc.fill_null(pc.match_substring_regex(array, _WHOLE), True)
    return parse_each(array, column, is_plain, _where(is_plain, array).cast(column._arrow_type), parse)


def dated_texts(texts: Any, column: Column, spelling: Spelling, pattern: str, *, n_characters: int | None) -> Any:
    """Days and moments, in ISO 8601 or the format that was stated. Arrow parses what has the pattern by itself.

    `n_characters` is how much of an ISO moment is meant.
    """
    date_format = spelling.date_format

    def parse(text: str) -> datetime:
        return datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)

    array = plain = without_missing(texts, column)
    if date_format is not None:
        own, order = _fixed_spelling(date_format)
        is_own = pc.match_substring_regex(array, own)
        plain = pc.if_else(is_own, pc.replace_substring_regex(array, own, order), pa.scalar(None, pa.string()))
        if n_characters is not None:
            plain = pc.utf8_slice_codeunits(plain, 0, n_characters)
        is_plain = pc.fill_null(pc.match_substring_regex(plain, pattern), False)
        is_plain = pc.or_(is_plain, array.is_null())
    else:
        is_plain = pc.fill_null(pc.match_substring_regex(array, pattern), True)
    return parse_each(array, column, is_plain, _where(is_plain, plain).cast(column._arrow_type), parse)


def _where(is_plain: Any, array: Any) -> Any:
    """Strings where they are plain, null elsewhere."""
    return pc.if_else(is_plain, array, pa.scalar(None, pa.string()))


def parse_each(array: Any, column: Column, is_plain: Any, values: Any, parse: Callable[[str], Any]) -> Any:
    """Values of the column's type: what arrow made of the plain spellings, the others by `parse`, each text once."""
    if pc.all(is_plain).as_py() or not len(array):
        return values
    is_other = pc.invert(is_plain)
    others = array.filter(is_other)
    distinct = others.unique()
    parsed = [_parsed(text, parse) for text in distinct.to_pylist()]
    parsed = convert_objects(parsed, column).cast(column._arrow_type)
    return pc.replace_with_mask(values, is_other, parsed.take(pc.index_in(others, value_set=distinct)))


def _parsed(text: str, parse: Callable[[str], Any]) -> Any:
    """Any other spelling of a whole number, a day or a moment: " 5", "3.0", "2020-01-31T12:00+01:00"."""
    try:
        return parse(text.strip())
    except (ValueError, InvalidOperation):
        raise_alone(InputError("some value has an unknown spelling"))


def _fixed_spelling(date_format: str) -> tuple[str, str]:
    """A pattern for texts in a format that has all digits in their places, and how to write them as ISO 8601.

    Formats that have more to them, and texts such as 1/2/2024, are left to Python.
    """
    parts = re.split(r"%(.)", date_format)
    literals, directives = parts[::2], parts[1::2]
    if sorted(directives) not in (sorted("Ymd"), sorted("YmdHM"), sorted("YmdHMS")):
        return NEVER, ""
    pattern = literals[0] and re.escape(literals[0])
    for directive, literal in zip(directives, literals[1:], strict=True):
        pattern += _FIXED_WIDTH[directive] + re.escape(literal)
    group = {directive: f"\\{index}" for index, directive in enumerate(directives, start=1)}
    clock = f"{group.get('H', '00')}:{group.get('M', '00')}:{group.get('S', '00')}"
    return f"^{pattern}$", f"{group['Y']}-{group['m']}-{group['d']}T{clock}"


# ---------------------------------------------------------------------------------------------------------- table types
# The types of a table's columns, from its names and dtypes alone: no value is looked at.
#
# Types are named as Arrow names them, whichever library the table is of. A categorical is a dictionary type
# that says of what type its values are, and not which they are: lists of categories are values of a private
# table.


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


# --------------------------------------------------------------------------------------------------------------- pandas


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


# --------------------------------------------------------------------------------------------------------------- polars


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
