"""Source: a private table as a synthesizer sees it. An engine stands behind it, and all that engines do is count.

Whatever holds the rows (memory, files, DuckDB, Spark), a mechanism asks the same few questions and gets answers equal
to the last bit: cells follow from the lattice's formulas alone. Nothing here knows about privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts, ColumnCounts
from spinney.counting.spill import default_memory_limit
from spinney.counting.state_tables import StateTables
from spinney.counting.states import AnyCut, StateRows
from spinney.counting.values import ValueCounts
from spinney.errors import InputError
from spinney.schema.lattice import Lattice
from spinney.schema.ruler import RootedRuler
from spinney.schema.rules import Rule
from spinney.schema.table import Schema
from spinney.tables.frames import FrameKind
from spinney.tables.held import HeldRows
from spinney.tables.tally import Tallies


class Source(ABC):
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

    def check_tables(self, n_columns: int, n_cells: int) -> None:  # noqa: B027  # held rows need no room for tables
        """Raise a ParameterError where tables of so many cells, of a table of so many columns, cannot be counted."""

    @abstractmethod
    def true_extremes(self, name: str) -> tuple[float, float]:
        """Smallest and largest physical value of a column. SENSITIVE: whoever calls this has branded the ledger."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sensitive)"


def table_changed() -> InputError:
    """The error for a table that gave other rows when it was read again; counts of two tables prove nothing."""
    return InputError(
        "the table changed while it was read; each time it is read it must give the same rows: read it when nothing "
        "writes to it, or pass a copy (cache a Spark data frame, or write it out)"
    )


def no_bounds(name: str) -> InputError:
    """The error for a column whose bounds were to be read off the data, and that holds no number."""
    return InputError(f"column {name!r} holds no finite value, so it has no bounds; state them in the schema")
