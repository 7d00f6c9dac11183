"""Columns of tables as Arrow arrays, and Arrow arrays as numbers: what several kinds of columns read alike.

A fault is told by its kind, never by the value; conversion errors of other libraries are replaced by whoever reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns.physical import Physical
from spinney.errors import InputError

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
