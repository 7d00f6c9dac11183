"""One column is null exactly when another says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import Column
from spinney.columns.characters import check_characters
from spinney.errors import SchemaError
from spinney.schema.rules.at_most import check_pair
from spinney.schema.rules.base import Clause, Columns, Rule
from spinney.schema.rules.values import ValueSet, places_in_list
from spinney.shown import brief
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmptyWhen(Rule):
    """`column` is null exactly when `other` has one of these values: `EmptyWhen("end", "status", ["open", "new"])`.

    Without values: exactly when `other` is null. With values, a null `other` has none of them, so `column` is there.

    Args:
        column: the name of the column that is null or not.
        other: the name of the column that decides it, a category or a boolean where values are listed.
        values: the values of `other` with which `column` is null; by default that is when `other` is null.
    """

    type_name: ClassVar[str] = "empty-when"

    column: str
    other: str
    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        check_pair(self, self.column, self.other)
        if self.values is None:
            return
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise SchemaError(f"EmptyWhen: values={brief(self.values)} is not a list such as ['open', 'new']")
        values = tuple(self.values)
        if not values:
            raise SchemaError("EmptyWhen: values is empty; list the values, or leave it out to mean null")
        if len({(type(value), value) for value in values if type(value) in (str, int, bool)}) != len(values):
            raise SchemaError("EmptyWhen: values must be strings, whole numbers or booleans, each listed once")
        check_characters(values, "EmptyWhen: ")
        object.__setattr__(self, "values", values)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column, self.other

    def check(self, columns: Columns) -> None:
        column, other = (columns[name] for name in self.columns)
        if not column.nullable:
            raise SchemaError(f"EmptyWhen: column {self.column!r} is never null; declare it nullable")
        if self.values is None:
            if not other.nullable:
                raise SchemaError(f"EmptyWhen: column {self.other!r} is never null; list values or make it nullable")
            return
        possible = other.listed
        if not possible:
            raise SchemaError(
                f"EmptyWhen: column {self.other!r} is of type {other.type_name}; "
                "values can be listed of a category or a boolean"
            )
        places = places_in_list(other)
        for value in self.values:
            if (type(value), value) not in places:
                hint = "; use True or False" if possible == (False, True) else did_you_mean(value, possible)
                raise SchemaError(f"EmptyWhen: {brief(value)} is not a value of column {self.other!r}{hint}")
        if len(self.values) == len(possible) and not other.nullable:
            raise SchemaError(f"EmptyWhen: column {self.column!r} would always be empty; leave it out")

    def says(self, other: Column) -> ValueSet:
        """The values of `other` with which `column` is null."""
        if self.values is None:
            return ValueSet(has_null=True)
        places = sorted(other.listed.index(value) for value in self.values)
        return ValueSet(tuple((place, place) for place in places))

    def clauses(self, columns: Columns) -> list[Clause]:
        says, null = self.says(columns[self.other]), ValueSet(has_null=True)
        return [
            {self.column: null, self.other: says.outside(columns[self.other])},
            {self.column: null.outside(columns[self.column]), self.other: says},
        ]

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        import numpy as np

        is_said = self.says(schema[self.other]).holds(rows[self.other])
        return np.asarray(np.isnan(rows[self.column]) == is_said)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"type": self.type_name, "column": self.column, "other": self.other}
        return described if self.values is None else described | {"values": list(self.values)}

    def __repr__(self) -> str:
        listed = "" if self.values is None else f", values={list(self.values)!r}"
        return f"EmptyWhen(column={self.column!r}, other={self.other!r}{listed})"
