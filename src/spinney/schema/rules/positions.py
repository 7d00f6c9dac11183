"""Rules about where a row may stand among the rows of its person: first, or last.

They relate rows to each other, so one row can neither obey nor break them, and no table of a single row's columns says
anything about them. Only a model of persons draws by them; everything else refuses them or passes them over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from spinney.columns import Column
from spinney.columns.characters import check_characters
from spinney.errors import SchemaError
from spinney.schema.rules.base import Columns, Rule, check_name
from spinney.schema.rules.values import ValueSet, places_in_list
from spinney.shown import brief
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PositionRule(Rule):
    """A statement about the order of a person's rows: in which positions values of a column may stand."""

    column: str
    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]

    def __post_init__(self) -> None:
        kind = type(self).__name__
        check_name(self, self.column)
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise SchemaError(f"{kind}: values={brief(self.values)} is not a list such as ['head']")
        values = tuple(self.values)
        if not values:
            raise SchemaError(f"{kind}: values is empty; list at least one value of column {self.column!r}")
        if len({(type(value), value) for value in values if type(value) in (str, int, bool)}) != len(values):
            raise SchemaError(f"{kind}: values must be strings, whole numbers or booleans, each listed once")
        check_characters(values, f"{kind}: ")
        object.__setattr__(self, "values", values)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, columns: Columns) -> None:
        kind, column = type(self).__name__, columns[self.column]
        if not column.listed:
            raise SchemaError(
                f"{kind}: column {self.column!r} is of type {column.type_name}; values can be listed of a category or "
                "a boolean"
            )
        known = places_in_list(column)
        for value in self.values:
            if (type(value), value) not in known:
                hint = "; use True or False" if column.listed == (False, True) else did_you_mean(value, column.listed)
                raise SchemaError(f"{kind}: {brief(value)} is not a value of column {self.column!r}{hint}")

    def says(self, column: Column) -> ValueSet:
        """The values that the rule is about, as physical numbers."""
        places = sorted(places_in_list(column)[type(value), value] for value in self.values)
        return ValueSet.of((place, place) for place in places)

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NoReturn:  # noqa: ARG002
        raise AssertionError(f"{self!r} is about positions; of single rows it says nothing")

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type_name, "column": self.column, "values": list(self.values)}


@dataclass(frozen=True, slots=True, repr=False)
class First(PositionRule):
    """A person's first row has one of these values: `First("relation", ["head"], only=True)`.

    Of rows that are equal in the order, and of all rows where there is no order, one with such a value comes first.

    Args:
        column: the name of a category or a boolean.
        values: the values of which the first row has one.
        only: whether no later row has one of them.
    """

    type_name: ClassVar[str] = "first"

    only: bool = False

    def __post_init__(self) -> None:
        PositionRule.__post_init__(self)
        if not isinstance(self.only, bool):
            raise SchemaError(f"First: only={brief(self.only)} is not true or false")

    def check(self, columns: Columns) -> None:
        PositionRule.check(self, columns)
        column = columns[self.column]
        if len(self.values) == len(column.listed) and (self.only or not column.nullable):
            raise SchemaError(
                f"First: all values of column {self.column!r} are listed; leave out those that come later"
            )

    def to_dict(self) -> dict[str, Any]:
        described = PositionRule.to_dict(self)
        return described | {"only": True} if self.only else described

    def __repr__(self) -> str:
        return f"First({self.column!r}, {list(self.values)!r}{', only=True' if self.only else ''})"


@dataclass(frozen=True, slots=True, repr=False)
class NeverAfter(PositionRule):
    """No row of a person follows one with such a value: `NeverAfter("event", ["death"])`.

    Rows that are equal in the order are sorted so that such a row comes last.

    Args:
        column: the name of a category or a boolean.
        values: the values after which no row comes.
    """

    type_name: ClassVar[str] = "never-after"

    def __repr__(self) -> str:
        return f"NeverAfter({self.column!r}, {list(self.values)!r})"
