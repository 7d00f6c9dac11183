"""Rules between columns: public knowledge about which values may stand in one row.

    sp.Schema({...}, rules=[sp.AtMost("start", "end"), sp.EmptyWhen("end", "status", ["open", "new"])])

A rule is a statement of the holder, like a bound: it costs nothing, and it is never checked against the private table.
Every synthetic row obeys all rules. Rules of a kind may not run in circles, so that columns can be put in order: the
smaller before the larger, the column that says so before the one that is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import KINDS, Bounded, Column
from spinney.errors import SchemaError
from spinney.shown import brief
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """A statement about two columns of every row."""

    type_name: ClassVar[str]

    column: str
    other: str

    def __post_init__(self) -> None:
        for name in (self.column, self.other):
            if not isinstance(name, str) or not name:
                raise SchemaError(f"{type(self).__name__}: {brief(name)} is not the name of a column")
        if self.column == self.other:
            raise SchemaError(f"{type(self).__name__}: {self.column!r} is named twice; a rule is about two columns")

    @property
    def columns(self) -> tuple[str, str]:
        """The two columns that the rule is about."""
        return self.column, self.other

    @abstractmethod
    def check(self, column: Column, other: Column) -> None:
        """Raise a SchemaError unless columns of these types can be related in this way."""

    @abstractmethod
    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Mapping[str, Column]) -> NDArray[Any]:
        """For each row, whether the rule holds (n_rows,).

        Args:
            rows: physical numbers by column, NaN for null: whole numbers, days, microseconds; 0 or 1 for a Boolean, the
                place in the list for a Category.
            schema: the columns' types.
        """

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain data for TOML and JSON."""
        return {"type": self.type_name, "column": self.column, "other": self.other}


@dataclass(frozen=True, slots=True)
class AtMost(Rule):
    """`column` is never larger than `other`: `AtMost("start", "end")`. A null in either satisfies it.

    Both are numbers, or both dates, both datetimes or both times.

    Args:
        column: the name of the column that is never larger.
        other: the name of the column that is never smaller.
    """

    type_name: ClassVar[str] = "at-most"

    def check(self, column: Column, other: Column) -> None:
        for name, kind in zip(self.columns, (column, other), strict=True):
            if kind.compared_as is None:
                raise SchemaError(f"AtMost: column {name!r} is of type {kind.type_name}, whose values have no size")
        if column.compared_as != other.compared_as:
            sizes = dict.fromkeys(kind.compared_as for kind in KINDS if kind.compared_as is not None)
            raise SchemaError(
                f"AtMost: {self.column!r} is of type {column.type_name} and {self.other!r} of type {other.type_name}; "
                f"compare {', '.join(f'{size} with {size}' for size in sizes)}"
            )
        zones = [getattr(kind, "timezone", None) for kind in (column, other)]
        if zones.count(None) == 1:
            raise SchemaError(f"AtMost: one of {self.column!r} and {self.other!r} has a time zone; give both one")

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Mapping[str, Column]) -> NDArray[Any]:  # noqa: ARG002
        import numpy as np

        smaller, larger = rows[self.column], rows[self.other]
        return np.asarray((smaller <= larger) | np.isnan(smaller) | np.isnan(larger))


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

    values: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        Rule.__post_init__(self)
        if self.values is None:
            return
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise SchemaError(f"EmptyWhen: values={brief(self.values)} is not a list such as ['open', 'new']")
        values = tuple(self.values)
        if not values:
            raise SchemaError("EmptyWhen: values is empty; list the values, or leave it out to mean null")
        if len({(type(value), value) for value in values if type(value) in (str, int, bool)}) != len(values):
            raise SchemaError("EmptyWhen: values must be strings, whole numbers or booleans, each listed once")
        object.__setattr__(self, "values", values)

    def check(self, column: Column, other: Column) -> None:
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
        for value in self.values:
            if not any(value == known and type(value) is type(known) for known in possible):
                hint = "; use True or False" if possible == (False, True) else did_you_mean(value, possible)
                raise SchemaError(f"EmptyWhen: {brief(value)} is not a value of column {self.other!r}{hint}")
        if len(self.values) == len(possible) and not other.nullable:
            raise SchemaError(f"EmptyWhen: column {self.column!r} would always be empty; leave it out")

    def places(self, other: Column) -> tuple[int, ...]:
        """The listed values as physical numbers of `other`: places in the list, 0 or 1."""
        return tuple(other.listed.index(value) for value in self.values or ())

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Mapping[str, Column]) -> NDArray[Any]:
        import numpy as np

        said = rows[self.other]
        is_said = np.isnan(said) if self.values is None else np.isin(said, self.places(schema[self.other]))
        return np.asarray(np.isnan(rows[self.column]) == is_said)

    def to_dict(self) -> dict[str, Any]:
        described = Rule.to_dict(self)
        return described if self.values is None else described | {"values": list(self.values)}

    def __repr__(self) -> str:
        listed = "" if self.values is None else f", values={list(self.values)!r}"
        return f"EmptyWhen(column={self.column!r}, other={self.other!r}{listed})"


RULE_TYPES: dict[str, type[Rule]] = {kind.type_name: kind for kind in (AtMost, EmptyWhen)}


def rule_from_dict(place: int, entry: Any) -> Rule:
    """Read what `to_dict` wrote, or one [[rules]] table of a TOML file, the `place`-th."""
    if not isinstance(entry, Mapping) or "type" not in entry:
        raise SchemaError(f'rule {place}: the entry needs a type, for example type = "at-most"')
    options = dict(entry)
    kind = RULE_TYPES.get(str(options.pop("type")))
    if kind is None:
        raise SchemaError(
            f"rule {place}: type {brief(entry['type'])} is not one of {', '.join(sorted(RULE_TYPES))}"
            f"{did_you_mean(entry['type'], RULE_TYPES)}"
        )
    known = {field.name for field in fields(kind)}
    for name in sorted(set(options) - known):
        raise SchemaError(
            f"rule {place}: {name!r} is not an option of type {kind.type_name!r}; it takes {', '.join(sorted(known))}"
            f"{did_you_mean(name, known)}"
        )
    for name in ("column", "other"):
        if name not in options:
            raise SchemaError(f"rule {place}: {name} is missing; a rule names two columns")
    try:
        return kind(**options)
    except SchemaError as err:
        raise SchemaError(f"rule {place}: {err}") from err


# ------------------------------------------------------------------------------------------------- all together


def check_rules(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless the rules are about these columns and some row can obey them all."""
    for rule in rules:
        kind = type(rule).__name__
        for name in rule.columns:
            if name not in columns:
                raise SchemaError(f"{kind}: column {name!r} is not in the schema{did_you_mean(name, columns)}")
            if not columns[name].is_read:
                unread = columns[name].type_name
                raise SchemaError(f"{kind}: column {name!r} is of type {unread}, which no rule can be about")
        rule.check(columns[rule.column], columns[rule.other])
        if rules.count(rule) > 1:
            raise SchemaError(f"{rule!r} is stated twice; state it once")
    empties = [rule for rule in rules if isinstance(rule, EmptyWhen)]
    for rule in empties:
        if sum(rule.column == another.column for another in empties) > 1:
            raise SchemaError(f"EmptyWhen: column {rule.column!r} has two rules that say when it is empty; keep one")
    in_order(rules, EmptyWhen)
    for name, least in least_values(rules, columns).items():
        column = columns[name]
        assert isinstance(column, Bounded)
        if column.has_bounds and least > column.ends()[1]:
            raise SchemaError(
                f"AtMost: column {name!r} has no value as large as the columns below it need; "
                f"raise its high={column.high} or lower theirs"
            )


def in_order(rules: Iterable[Rule], kind: type[Rule]) -> list[str]:
    """The columns of one kind of rule, each after those it depends on.

    For AtMost a column comes after all that are at most it; for EmptyWhen, after the one that says when it is empty.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for rule in rules:
        if isinstance(rule, kind):
            first, then = rule.columns if kind is AtMost else (rule.other, rule.column)
            sorter.add(then, first)
    try:
        return list(sorter.static_order())
    except CycleError as err:
        circle = " -> ".join(repr(name) for name in err.args[1])
        raise SchemaError(f"{kind.__name__}: the rules run in a circle, {circle}; leave one out") from None


def widened(columns: Mapping[str, Column], found: Iterable[str], rules: Sequence[Rule]) -> dict[str, Column]:
    """The columns, with bounds that were found (paid for, or read off the data) wide enough for rows to obey all rules.

    Noise may put the bounds of a start above those of its end. Stated bounds stay: they agree among themselves.
    """
    result: dict[str, Any] = dict(columns)
    names = [name for name in found if isinstance(columns[name], Bounded)]
    unfound = result | {name: replace(result[name], low=None, high=None, bounds="private") for name in names}
    for name, most in most_values(rules, unfound).items():
        if name in names and result[name].ends()[0] > most:
            result[name] = replace(result[name], low=result[name].logical(result[name].aligned(most, up=False)))
    for name, least in least_values(rules, result).items():
        if name in names and result[name].ends()[1] < least:
            result[name] = replace(result[name], high=result[name].logical(least))
    return result


def least_values(rules: Sequence[Rule], columns: Mapping[str, Any]) -> dict[str, Fraction]:
    """The least value (physical) that known bounds and the AtMost rules leave to a column, where there is a least.

    A row of least values obeys all AtMost rules: so they can be kept where each is within its column's bounds.
    """
    least: dict[str, Fraction] = {}
    for name in in_order(rules, AtMost):
        column = columns[name]
        floors = [least[rule.column] for rule in rules if _is_at_most(rule, name) and rule.column in least]
        floors += [column.ends()[0]] if column.has_bounds else []
        if floors:
            least[name] = column.aligned(max(floors), up=True)
    return least


def most_values(rules: Sequence[Rule], columns: Mapping[str, Any]) -> dict[str, Fraction]:
    """The same from above: the largest value that known bounds and the AtMost rules leave to a column."""
    most: dict[str, Fraction] = {}
    for name in reversed(in_order(rules, AtMost)):
        column = columns[name]
        above = [rule.other for rule in rules if isinstance(rule, AtMost) and rule.column == name]
        ceilings = [most[other] for other in above if other in most]
        ceilings += [column.ends()[1]] if column.has_bounds else []
        if ceilings:
            most[name] = column.aligned(min(ceilings), up=False)
    return most


def _is_at_most(rule: Rule, other: str) -> bool:
    return isinstance(rule, AtMost) and rule.other == other
