"""All rows of a table as numbers in memory, with the keys of their persons: what a table of persons is gathered from.

Every column is kept as the numbers that `Column.read` makes of it, in the fewest bytes that hold them, so rows mean the
same whatever they came from. `arrow` hands some rows out again as an Arrow column that reads back as those numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Date
from spinney.columns.key import Key, key_array
from spinney.columns.physical import Physical
from spinney.counting.cells import missing
from spinney.errors import InputError
from spinney.redacted import redacted
from spinney.schema.residual import parts_first
from spinney.schema.table import Schema
from spinney.tables.frames import Table

_INT32 = np.iinfo(np.int32)


class HeldRows:
    """The rows of a table, column by column. SENSITIVE.

    Args:
        schema: the columns that are read, with a `Key` among them where rows have one.
        n_rows: how many rows will be filled in.
    """

    def __init__(self, schema: Schema, n_rows: int) -> None:
        self.schema, self.n_rows = schema, n_rows
        self._key = next((name for name, column in schema.items() if isinstance(column, Key)), None)
        self._names = [name for name in parts_first(schema) if name != self._key]
        self._values: dict[str, NDArray[Any]] = {}
        self._is_null: dict[str, NDArray[np.bool_]] = {}
        self._keys: list[tuple[int, Any]] = []  # where some rows begin, which may be none, and their keys

    def __repr__(self) -> str:
        return "HeldRows(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("HeldRows is sensitive and is never written to a file")

    @property
    def names(self) -> list[str]:
        """The columns, without the key."""
        return list(self._names)

    def fill_from(self, start: int, table: Table) -> None:
        """Fill in the rows of a table, of which there are `start` before; an InputError names a column at fault."""
        for name in self._names:
            self.fill(name, start, table.physical(name))
        if self._key is not None:
            self.fill_keys(start, lambda: table.raw(self._key))

    def fill(self, name: str, start: int, physical: Physical) -> None:
        """Fill in a column of some rows. Threads may do so at once, each for rows of its own."""
        column, values, is_null = self.schema[name], physical.values, physical.is_null
        if values.dtype.kind == "f":
            is_null = ~np.isfinite(values)
            values = np.where(is_null, np.nan, values) if is_null.any() else values
        if not column.nullable and is_null is not None and is_null.any():
            raise missing(name)
        dtype = _dtype(column)
        if dtype == np.int32 and isinstance(column, Date):
            values = np.clip(values, _INT32.min, _INT32.max)  # no calendar reaches so far
        if start == 0 and len(values) == self.n_rows:
            self._values[name] = values.astype(dtype, copy=False)
        else:
            self._array(self._values, name, dtype)[start : start + len(values)] = values
        if column.nullable and dtype.kind != "f" and is_null is not None:
            self._array(self._is_null, name, np.dtype(np.bool_))[start : start + len(values)] = is_null

    def fill_keys(self, start: int, read: Any) -> None:
        """Fill in the keys of some rows; `read` gives them as the table has them."""
        assert self._key is not None
        at = f"column {self._key!r}"
        with redacted(lambda _: InputError(f"{at}: some key cannot be read; convert the column"), at=at):
            self._keys.append((start, key_array(read())))

    def _array(self, arrays: dict[str, NDArray[Any]], name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        return arrays.setdefault(name, np.zeros(self.n_rows, dtype)) if name not in arrays else arrays[name]

    # ------------------------------------------------------------------------------------------------- handing out

    def keys(self) -> Any:
        """All keys, as a chunked Arrow array of one type; an InputError where some are missing or types differ."""
        keys, n_missing = self.keys_and_missing()
        if n_missing:
            raise InputError(
                f"column {self._key!r} holds missing keys, and every row must say whose it is; drop these rows or give "
                "them a key"
            )
        return keys

    def keys_and_missing(self) -> tuple[Any, int]:
        """The keys that are there, and how many are missing; an InputError where types differ."""
        assert self._key is not None
        every = [array for _, array in sorted(self._keys, key=lambda pair: (pair[0], len(pair[1])))]
        n_missing = sum(array.null_count for array in every)
        arrays = [array.drop_null() for array in every]
        arrays = [array for array in arrays if len(array)] or arrays[:1]
        kinds = list(dict.fromkeys(array.type for array in arrays))
        if len(kinds) > 1:
            raise InputError(f"column {self._key!r} holds keys of several types; convert the column to one type")
        return pa.chunked_array(arrays, kinds[0] if kinds else pa.int64()), n_missing

    def numbers(self, name: str) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The numbers of a column, and which of them are null, if any are."""
        values = self._values.get(name)
        return np.zeros(0, _dtype(self.schema[name])) if values is None else values, self._is_null.get(name)

    def arrow(self, names: Sequence[str], chosen: NDArray[np.int64]) -> pa.Table:
        """Some rows of some columns, which are then forgotten here: the table never is there three times."""
        columns: dict[str, Any] = {}
        for name in names:
            values, is_null = self.numbers(name)
            mask = None if is_null is None else is_null[chosen]
            columns[name] = _arrow(self.schema[name], values[chosen], mask)
            self._values.pop(name, None)
            self._is_null.pop(name, None)
        return pa.table(columns)


def _dtype(column: Column) -> np.dtype[Any]:
    """The numbers that a column is kept in."""
    if not column.is_whole:
        return np.dtype(np.float64)
    if isinstance(column, Boolean):
        return np.dtype(np.int8)
    if isinstance(column, Category):
        return np.min_scalar_type(-len(column.listed))
    return np.dtype(np.int32 if isinstance(column, Date) else np.int64)


def _arrow(column: Column, values: NDArray[Any], mask: NDArray[np.bool_] | None) -> Any:
    """Numbers as an Arrow column of the type that the column is read from."""
    if not column.is_whole:
        return pa.array(values)
    if isinstance(column, Boolean):
        return pa.array(values.astype(np.bool_), mask=mask)
    if isinstance(column, Category):
        if not column.is_text:
            return pa.array(np.array(column.listed, dtype=np.int64)[values], mask=mask)
        return pa.DictionaryArray.from_arrays(pa.array(values, mask=mask), pa.array(column.listed, pa.string()))
    return pa.array(values, mask=mask).view(column.arrow_type)
