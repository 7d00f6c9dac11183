"""The questions that every kind of rule answers: which columns it is about, whether they fit, which rows obey it.

A rule is a statement of the holder, like a bound: it costs nothing, and it is never checked against the private table.
A `Derivation` says what one column is computed from; it is not modelled, and not read. All other rules say which values
may stand in one row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import Column
from spinney.columns.characters import check_characters
from spinney.errors import SchemaError
from spinney.schema.rules.values import ValueSet
from spinney.shown import brief

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

Columns = Mapping[str, Column]
# A row obeys a clause where the value of any of its columns is in that column's set.
Clause = dict[str, ValueSet]


class Rule(ABC):
    """A statement about the columns of every row."""

    __slots__ = ()

    type_name: ClassVar[str]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule is about, each once."""

    @abstractmethod
    def check(self, columns: Columns) -> None:
        """Raise a SchemaError unless columns of these types can be related in this way."""

    @abstractmethod
    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        """For each row, whether the rule holds (n_rows,).

        Args:
            rows: physical numbers by column, NaN for null: whole numbers, days, microseconds; 0 or 1 for a Boolean, the
                place in the list for a Category.
            schema: the columns' types.
        """

    def clauses(self, columns: Columns) -> list[Clause]:  # noqa: ARG002  # for rules that are made of them
        """The rule as clauses that every row obeys; none where it compares values or computes them."""
        return []

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data for TOML and JSON."""


class Derivation(Rule):
    """A rule that says how one column follows from others."""

    __slots__ = ()

    column: str

    @property
    @abstractmethod
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.sources)

    @property
    def modelled(self) -> Column | None:
        """What is modelled in place of the column; None where it follows from the others alone."""
        return None

    @abstractmethod
    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        """The column's values in synthetic rows.

        Args:
            arrays: the values of the other columns.
            columns: their types.
            drawn: what was drawn of what is modelled in its place.
        """

    @abstractmethod
    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        """The values of the one source with which the column is one of `wanted`; SchemaError where that is no set."""


def check_name(rule: Rule, name: Any) -> None:
    """Raise a SchemaError unless this can be the name of a column."""
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{type(rule).__name__}: {brief(name)} is not the name of a column")
    check_characters([name], f"{type(rule).__name__}: ")
