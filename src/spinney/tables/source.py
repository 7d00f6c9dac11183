"""Source: a private table as a synthesizer sees it, whatever engine holds its rows. SENSITIVE.

    batches      a table that comes a few rows at a time
    held rows    all rows of a table as numbers in memory, with the keys of their persons
    source       the questions that every engine answers

Whatever holds the rows (memory, files, DuckDB, Spark), a mechanism asks the same few questions and gets answers
equal to the last bit: cells follow from the lattice's formulas alone (engines.proof.md). Nothing here knows
about privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Date
from spinney.columns.identifier import Key, key_array
from spinney.columns.reading import Physical
from spinney.counting.counter import ValueCounts
from spinney.counting.counts import CellCounts, ColumnCounts, missing
from spinney.counting.spill import default_memory_limit
from spinney.counting.states import AnyCut, StateRows, StateTables
from spinney.errors import InputError, redacted
from spinney.grid.lattice import Lattice
from spinney.grid.ruler import RootedRuler
from spinney.schema.rules import Rule
from spinney.schema.schema import Schema, parts_first
from spinney.tables.frames import FrameKind, Table, open_table
from spinney.tables.tally import Tallies
from spinney.text import NeverPickled, Sensitive

# -------------------------------------------------------------------------------------------------------------- batches
# A table that comes a few rows at a time, each batch a small table in memory.


class Batch(NamedTuple):
    """Some rows of a table: how many there are, and how a thread gets at them."""

    n_rows: int
    read: Callable[[], Table]

    def __repr__(self) -> str:
        return "Batch(sensitive)"


# For some columns of a schema: all rows, in the same order every time.
Batches = Callable[[Schema], Generator[Batch]]


def prefetch(frames: Iterable[Any], schema: Schema) -> Iterator[Batch]:
    """Frames as batches, each read before it is asked for."""
    for frame in frames:
        if len(frame):
            yield ready(open_table(frame, schema))


def ready(table: Table) -> Batch:
    """A batch that was read before."""
    return Batch(table.n_rows, lambda: table)


# ------------------------------------------------------------------------------------------------------------ held rows
# All rows of a table as numbers in memory, with the keys of their persons: what a table of persons is gathered from.
#
# Every column is kept as the numbers that `Column.read` makes of it, in the fewest bytes that hold them, so rows mean
# the same whatever they came from. `arrow` hands some rows out again as an Arrow column that reads back as those
# numbers.


_INT32 = np.iinfo(np.int32)


class HeldRows(NeverPickled):
    """The rows of a table, column by column. SENSITIVE.

    Args:
        schema: the columns that are read, with a `Key` among them where rows have one.
        n_rows: how many rows will be filled in.
    """

    def __init__(self, schema: Schema, n_rows: int) -> None:
        self.schema, self.n_rows = schema, n_rows
        self._key = next((name for name, column in schema.items() if isinstance(column, Key)), None)
        self.names = [name for name in parts_first(schema) if name != self._key]
        self._values: dict[str, NDArray[Any]] = {}
        self._is_null: dict[str, NDArray[np.bool_]] = {}
        self._keys: list[tuple[int, Any]] = []  # where some rows begin, which may be none, and their keys

    def fill_from(self, start: int, table: Table) -> None:
        """Fill in the rows of a table, of which there are `start` before; an InputError names a column at fault."""
        for name in self.names:
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
    return pa.array(values, mask=mask).view(column._arrow_type)


# --------------------------------------------------------------------------------------------------------------- source
# A private table as a synthesizer sees it. An engine stands behind it, and all that engines do is count.


class Source(Sensitive, ABC):
    """A table whose columns and types fit a schema. Its rows have not been looked at."""

    kind: FrameKind  # the kind of frame that synthetic rows come back in
    schema: Schema
    _memory_limit: int | None = None
    _spill_folder: str | None = None

    @property
    def memory_limit(self) -> int:
        """Bytes that counted cells may take before they go to disk, where they were not in memory to begin with."""
        return default_memory_limit() if self._memory_limit is None else self._memory_limit

    @property
    def spill_folder(self) -> str | None:
        """Where they go then; None is the folder for temporary files."""
        return self._spill_folder

    def limited(self, *, memory_limit: int | None = None, spill_folder: str | None = None) -> Self:
        """The same table, counted within a limit of memory, with cells beyond it in a folder of one's choice.

        Args:
            memory_limit: in bytes; None is what `SPINNEY_MEMORY_LIMIT` says.
            spill_folder: None is the folder for temporary files.
        """
        source = copy(self)
        source._memory_limit, source._spill_folder = memory_limit, spill_folder
        return source

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are. Public only where the unit of privacy says so."""

    @abstractmethod
    def with_schema(self, schema: Schema) -> Self:
        """The same rows under a schema of the same names and types, or fewer of them, with other bounds."""

    @abstractmethod
    def check_values(self) -> None:
        """Raise an InputError that names the first column with values that cannot be counted."""

    @abstractmethod
    def tally(self, names: Sequence[str], rules: Sequence[Rule]) -> Tallies:
        """What is the matter with the values of some columns, all of it counted. SENSITIVE: for the holder alone.

        Raises an InputError where the table cannot be read at all, or some of these columns cannot be read out of it.
        """

    @abstractmethod
    def count_cells(self, lattice: Lattice) -> CellCounts:
        """True counts of every occupied cell. SENSITIVE."""

    @abstractmethod
    def count_columns(self, lattices: Sequence[Lattice]) -> Iterator[CellCounts]:
        """True counts on several lattices, one after the other; read in one go where reading is dear. SENSITIVE."""

    def count_ruled(
        self,
        lattices: Sequence[Lattice],
        rulers: Sequence[RootedRuler | None],  # noqa: ARG002  # cells answer for all cuts
    ) -> Iterator[ColumnCounts]:
        """The same, where those with a ruler are asked along it alone; the others are `CellCounts`. SENSITIVE."""
        return self.count_columns(lattices)

    @abstractmethod
    def count_values(self, name: str) -> ValueCounts:
        """How many rows have each value of a category, whatever its list says. SENSITIVE, and so are the values."""

    @abstractmethod
    def state_rows(self, cuts: Sequence[AnyCut]) -> StateRows:
        """The states of all rows under public cuts. SENSITIVE."""

    @abstractmethod
    def held_rows(self) -> HeldRows:
        """All rows in memory: every column that is read, as numbers, and the keys. SENSITIVE.

        Raises an InputError that names the first column with values that cannot be read.
        """

    def state_tables(self, cuts: Sequence[AnyCut], *, is_asked_again: bool = False) -> StateTables:  # noqa: ARG002
        """Tables of the states of all rows under public cuts, counted where the rows are. SENSITIVE.

        `is_asked_again`: whether more is going to be asked than is prepared at first. Whoever asks closes them.
        """
        return self.state_rows(cuts)

    def sum_states(self, cuts: Sequence[AnyCut], sums: Callable[[StateRows], NDArray[np.int64]]) -> NDArray[np.int64]:
        """What `sums` gives for the states of all rows, where it adds up over parts of them. SENSITIVE."""
        return sums(self.state_rows(cuts))

    def check_tables(self, n_columns: int, n_cells: int) -> None:  # held rows need no room for tables
        """Raise a ParameterError where tables of so many cells, of a table of so many columns, cannot be counted."""

    @abstractmethod
    def true_extremes(self, name: str) -> tuple[float, float]:
        """Smallest and largest physical value of a column. SENSITIVE: whoever calls this has branded the ledger."""


def table_changed() -> InputError:
    """The error for a table that gave other rows when it was read again; counts of two tables prove nothing."""
    return InputError(
        "the table changed while it was read; each time it is read it must give the same rows: read it when nothing "
        "writes to it, or pass a copy (cache a Spark data frame, or write it out)"
    )


def no_bounds(name: str) -> InputError:
    """The error for a column whose bounds were to be read off the data, and that holds no number."""
    return InputError(f"column {name!r} holds no finite value, so it has no bounds; state them in the schema")
