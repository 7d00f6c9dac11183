"""Rules about values that may stand together in a row, and about the first and last rows of a person.

at most       one column is never larger than another
empty when    one column is null exactly when another says so
implies       conditions on columns imply conditions on other columns
positions     a person's first row, and rows that nothing follows
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from spinney.columns import KINDS, Column, Integer
from spinney.columns.base import check_characters
from spinney.errors import SchemaError
from spinney.machine import lazily
from spinney.schema.plain import column_from_dict
from spinney.schema.rules.base import (
    Clause,
    Columns,
    Condition,
    Rule,
    ValueSet,
    check_name,
    described,
    parse_condition,
    places_in_list,
    shown,
    universe,
    value_set,
)
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    (np,) = lazily("numpy")


# -------------------------------------------------------------------------------------------------------------- at most
# One column is never larger than another.


@dataclass(frozen=True, slots=True, repr=False)
class AtMost(Rule):
    """`column` is never larger than `other`: `AtMost("start", "end")`. A null in either satisfies it.

    Both are numbers, or both dates, both datetimes or both times. Of the latter a forest models the difference in place
    of the larger column, which is computed in rows.

    Args:
        column: the name of the column that is never larger.
        other: the name of the column that is never smaller.
        difference: between which numbers the difference lies, such as `Integer(0, 3650)`: in days for dates, in seconds
            for datetimes and times. By default it is whatever the bounds of both columns allow.
    """

    type_name: ClassVar[str] = "at-most"

    column: str
    other: str
    difference: Integer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_pair(self, self.column, self.other)
        if isinstance(self.difference, Mapping):
            object.__setattr__(self, "difference", column_from_dict("difference", self.difference))
        if self.difference is not None and not isinstance(self.difference, Integer):
            raise SchemaError(
                f"AtMost: difference={brief(self.difference)} is not a range of whole numbers such as "
                "sp.Integer(0, 365): days between dates, seconds between datetimes or times"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column, self.other

    def check(self, columns: Columns) -> None:
        column, other = (columns[name] for name in self.columns)
        for name, kind in zip(self.columns, (column, other), strict=True):
            if kind._compared_as is None:
                raise SchemaError(f"AtMost: column {name!r} is of type {kind.type_name}, whose values have no size")
        if column._compared_as != other._compared_as:
            sizes = dict.fromkeys(kind._compared_as for kind in KINDS if kind._compared_as is not None)
            raise SchemaError(
                f"AtMost: {self.column!r} is of type {column.type_name} and {self.other!r} of type {other.type_name}; "
                f"compare {', '.join(f'{size} with {size}' for size in sizes)}"
            )
        zones = [getattr(kind, "timezone", None) for kind in (column, other)]
        if zones.count(None) == 1:
            raise SchemaError(f"AtMost: one of {self.column!r} and {self.other!r} has a time zone; give both one")

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:  # noqa: ARG002
        smaller, larger = rows[self.column], rows[self.other]
        return np.asarray((smaller <= larger) | np.isnan(smaller) | np.isnan(larger))

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"type": self.type_name, "column": self.column, "other": self.other}
        return described if self.difference is None else described | {"difference": self.difference.to_dict()}

    def __repr__(self) -> str:
        stated = "" if self.difference is None else f", difference={self.difference!r}"
        return f"AtMost(column={self.column!r}, other={self.other!r}{stated})"


def check_pair(rule: Rule, column: Any, other: Any) -> None:
    """Raise a SchemaError unless these are the names of two columns."""
    for name in (column, other):
        check_name(rule, name)
    if column == other:
        raise SchemaError(f"{type(rule).__name__}: {column!r} is named twice; a rule is about two columns")


# ----------------------------------------------------------------------------------------------------------- empty when
# One column is null exactly when another says so.


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
        _check_listed(self, self.other, other, self.values)
        if len(self.values) == len(other.listed) and not other.nullable:
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
        is_said = self.says(schema[self.other]).holds(rows[self.other])
        return np.asarray(np.isnan(rows[self.column]) == is_said)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"type": self.type_name, "column": self.column, "other": self.other}
        return described if self.values is None else described | {"values": list(self.values)}

    def __repr__(self) -> str:
        listed = "" if self.values is None else f", values={list(self.values)!r}"
        return f"EmptyWhen(column={self.column!r}, other={self.other!r}{listed})"


def _check_listed(rule: Rule, name: str, column: Column, values: Iterable[Any]) -> None:
    """Raise a SchemaError unless these are values of a column whose values can be listed."""
    kind, listed, known = type(rule).__name__, column.listed, places_in_list(column)
    if not listed:
        raise SchemaError(
            f"{kind}: column {name!r} is of type {column.type_name}; values can be listed of a category or a boolean"
        )
    for value in values:
        if (type(value), value) not in known:
            hint = "; use True or False" if listed == (False, True) else did_you_mean(value, listed)
            raise SchemaError(f"{kind}: {brief(value)} is not a value of column {name!r}{hint}")


# -------------------------------------------------------------------------------------------------------------- implies
# What some columns say implies what others may say.


Conditions = tuple[tuple[str, Condition], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Implies(Rule):
    """Where `when` holds in a row, `then` does too: `Implies({"age": (0, 14)}, {"marital": ["never", None]})`.

    Both are conditions by column: a value, a range `(low, high)` with both ends, of which one may be None, a list of
    these, or None for null. In a forest, combinations that are excluded get no noise and no rows.

    Args:
        when: conditions by column; several are joined by "and".
        then: what holds then, by column; all of it does.
    """

    type_name: ClassVar[str] = "implies"

    when: Any  # kept as Conditions
    then: Any

    def __post_init__(self) -> None:
        for side in ("when", "then"):
            given = getattr(self, side)
            if not isinstance(given, Mapping) or not given:
                raise SchemaError(
                    f"Implies: {side}={brief(given)} is not a mapping from columns to conditions such as "
                    "{'age': (0, 14)}"
                )
            for name in given:
                check_name(self, name)
            conditions = [(name, parse_condition(c, f"Implies: column {name!r}")) for name, c in given.items()]
            # By name: a TOML file does not keep the order of a table.
            object.__setattr__(self, side, tuple(sorted(conditions, key=lambda pair: pair[0])))
        both = [name for name, _ in self.then if name in dict(self.when)]
        if both:
            raise SchemaError(f"Implies: column {both[0]!r} is in when and in then; a rule relates different columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in (*self.when, *self.then))

    def check(self, columns: Columns) -> None:
        for name, allowed in {**self._sets(self.when, columns), **self._sets(self.then, columns)}.items():
            if allowed.has_all(columns[name]):
                raise SchemaError(f"Implies: the condition on column {name!r} allows all of its values; leave it out")

    def _sets(self, conditions: Conditions, columns: Columns) -> dict[str, ValueSet]:
        return {name: value_set(columns[name], stated, f"Implies: column {name!r}") for name, stated in conditions}

    def clauses(self, columns: Columns) -> list[Clause]:
        unless = {name: stated.outside(columns[name]) for name, stated in self._sets(self.when, columns).items()}
        return [unless | {name: stated} for name, stated in self._sets(self.then, columns).items()]

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        inside = {name: np.clip(rows[name], *universe(schema[name])) for name in self.columns}  # as they are counted
        met = [stated.holds(inside[name]) for name, stated in self._sets(self.when, schema).items()]
        kept = [stated.holds(inside[name]) for name, stated in self._sets(self.then, schema).items()]
        return np.asarray(~np.logical_and.reduce(met) | np.logical_and.reduce(kept))

    def to_dict(self) -> dict[str, Any]:
        sides: dict[str, Conditions] = {"when": self.when, "then": self.then}
        return {"type": self.type_name} | {
            side: {name: described(stated) for name, stated in conditions} for side, conditions in sides.items()
        }

    def __repr__(self) -> str:
        when, then = ({name: shown(stated) for name, stated in side} for side in (self.when, self.then))
        return f"Implies({when!r}, {then!r})"


# ------------------------------------------------------------------------------------------------------------ positions
# Rules about where a row may stand among the rows of its person: first, or last.
#
# They relate rows to each other, so one row can neither obey nor break them, and no table of a single row's
# columns says anything about them. Only a model of persons draws by them; everything else refuses them or
# passes them over.


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
        _check_listed(self, self.column, columns[self.column], self.values)

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
