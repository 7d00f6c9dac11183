"""Whose rows they are: what a schema, or a link between two tables, states about the rows of one person.

    sp.Schema({...}, person="card", most_rows=200, order="day")

All of it is public and stated by the data owner, like a bound. `most_rows` limits memory and synthetic counts;
it sets no noise, because a person's rows share one weight, so a generous number costs nearly nothing.

    names of keys    columns whose names suggest a key of persons or an order of rows
    persons          `PersonRows`: the key, the most rows, the order, the role, and their checks
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from spinney.columns import Bounded, Category, Column, Identifier, Real, whole_range
from spinney.columns.base import LARGEST_WHOLE, check_characters
from spinney.errors import SchemaError
from spinney.schema.rules import Derivation, NeverAfter, PositionRule, Related, Rule
from spinney.text import brief, did_you_mean

# -------------------------------------------------------------------------------------------------------- names of keys
# Columns whose names suggest that they say whose row it is, or by what a person's rows are sorted.
#
# Nothing but names is looked at, and nothing is decided.


# fmt: off
_WORDS = frozenset(
    {
        "account", "card", "client", "contact", "customer", "device", "driver", "email", "employee", "guid",
        "household", "id", "identifier", "key", "member", "participant", "passenger", "patient", "person",
        "player", "respondent", "student", "subject", "subscriber", "user", "uuid", "worker",
    }
)
# Of these, the ones that may as well name rows or things.
_OF_ANYTHING = frozenset({"guid", "id", "identifier", "key", "uuid"})
_TIMES = frozenset(
    {
        "date", "datetime", "day", "hour", "minute", "month", "period", "position", "quarter", "rank", "round",
        "season", "second", "sequence", "step", "time", "timestamp", "visit", "wave", "week", "when", "year",
    }
)
# fmt: on
# Words of names that say that a column numbers rows.
_ROW_WORDS = frozenset({"idx", "index", "obs", "observation", "row", "rowid", "rowname", "rownum", "rownumber"})
# What stands before or after "id" in words that are written as one.
_BEFORE_ID = frozenset({"case", "cust", "h", "hh", "n", "p", "pers", "pt", "subj", "u", *(_WORDS - _OF_ANYTHING)})
_AFTER_ID = frozenset({"code", "no", "nr", "num", "number"})
# A word of a name: letters that follow each other, a new word beginning with each capital after a small letter.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def suggested_keys(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as customer, patient or id: "customerID", "card_no", "idcode".

    Those that say no more than that they are keys, such as "id", come last; those of row numbers are left out.
    """
    found = [name for name in names if any(map(_is_key, _words(name))) and _ROW_WORDS.isdisjoint(_words(name))]
    return sorted(found, key=lambda name: not names_persons(name))


def names_persons(name: str) -> bool:
    """Whether a name speaks of persons or things that may have several rows: "customerID", "pid"; "id" does not."""
    words = _words(name)
    return any(word in _BEFORE_ID and len(word) > 2 for word in words) or any(
        word.endswith("id") and word.removesuffix("id") in _BEFORE_ID for word in words
    )


def _is_key(word: str) -> bool:
    return (
        word in _WORDS
        or (word.endswith("id") and word.removesuffix("id") in _BEFORE_ID)
        or (word.startswith("id") and word.removeprefix("id") in _AFTER_ID)
    )


def suggested_orders(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as day, year or visit: "yearID", "days"."""
    return [name for name in names if not _TIMES.isdisjoint(_words(name))]


def _words(name: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(name)}
    return words | {word.removesuffix("s") for word in words}


# -------------------------------------------------------------------------------------------------------------- persons


# A position within a person's rows takes two bytes.
MOST_ROWS = 65_535
# Sums of differences between reals that lie further apart may leave the range of floats, and their squares do.
_FARTHEST = 1e150
_ALWAYS = ("column", "most_rows")
_ENTRIES = ("column", "most_rows", "order", "steps", "role", "differences")
# What a link calls the same.
_OTHERWISE = {"most": "most_rows", "child": "column"}


@dataclass(frozen=True, slots=True)
class PersonRows:
    """How the rows of a table belong to persons."""

    column: str  # the key: equal on all rows of a person
    most_rows: int  # of one person
    order: str | None = None  # the column by which a person's rows are sorted; None: in no order
    steps: bool = False  # whether each row is a step after the one before, as in a panel
    role: str | None = None  # the category that says what a row is within its person, such as a relation
    differences: tuple[str, ...] = ()  # columns that are modelled by how far they are from the person's first row

    def check(self, columns: Mapping[str, Column], rules: Iterable[Rule], about: str, most: str = "most_rows") -> None:
        """Raise a SchemaError, which begins with `about`, unless this can be stated about these columns.

        `most` is what the limit of rows is called where it was stated.
        """
        key = _found(self.column, columns, about)
        if not isinstance(key, Identifier):
            raise SchemaError(
                f"{about}: column {self.column!r} is of type {key.type_name}; declare the column that says whose row "
                f'it is as sp.Identifier(), whose values are never released (in a file: type = "identifier")'
            )
        if self.most_rows is None:
            raise SchemaError(
                f"{about}: {most} is missing; state the most rows that are kept of one person, a round public number "
                f"such as {most}=200; a larger one adds no noise"
            )
        if type(self.most_rows) is not int or not 1 <= self.most_rows <= MOST_ROWS:
            raise SchemaError(f"{about}: {most}={brief(self.most_rows)} is not a whole number in 1..{MOST_ROWS}")
        if not isinstance(self.steps, bool):
            raise SchemaError(f"{about}: steps={brief(self.steps)} is not true or false")
        if self.steps and self.order is None:
            raise SchemaError(f"{about}: steps=True needs order=..., the column in which each row is a step")
        computed = {rule.column for rule in rules if isinstance(rule, Derivation)}
        self._check_order(columns, computed, about)
        self._check_role(columns, computed, about)
        self._check_differences(columns, computed, about)
        self._check_reach(columns, about)
        for rule in rules:
            refuse_ratios(rule)
            if isinstance(rule, NeverAfter) and self.order is None:
                raise SchemaError(f"{about}: {rule!r} needs order=..., the column that says which rows come after")

    def _check_order(self, columns: Mapping[str, Column], computed: set[str], about: str) -> None:
        if self.order is None:
            return
        order = _modelled(self.order, columns, computed, about, "order")
        if order._compared_as is None:
            raise SchemaError(
                f"{about}: order={self.order!r} is of type {order.type_name}, whose values have no order; name a "
                "column of numbers, dates or times"
            )
        if order.nullable:
            raise SchemaError(
                f"{about}: order={self.order!r} may be null, and rows without a place have no order; name a column "
                "that is never null, or drop these rows"
            )

    def _check_reach(self, columns: Mapping[str, Column], about: str) -> None:
        """Refuse columns in steps and differences whose values lie so far apart that sums of differences go wrong."""
        for name in (*((self.order,) if self.steps and self.order else ()), *self.differences):
            column = columns[name]
            if not isinstance(column, Bounded) or column.bounds != "stated":
                continue
            low, high = (float(column.low), float(column.high)) if isinstance(column, Real) else whole_range(column)
            if high - low > (_FARTHEST if isinstance(column, Real) else LARGEST_WHOLE):
                how = "steps" if name == self.order and self.steps else "differences"
                raise SchemaError(
                    f"{about}: {how}: column {name!r} reaches from {brief(column.low)} to {brief(column.high)}, too "
                    "far for differences between its values; state bounds that are closer to each other"
                )

    def _check_role(self, columns: Mapping[str, Column], computed: set[str], about: str) -> None:
        if self.role is None:
            return
        role = _modelled(self.role, columns, computed, about, "role")
        if not isinstance(role, Category):
            raise SchemaError(
                f"{about}: role={self.role!r} is of type {role.type_name}; name a category, such as a person's "
                "relation to the head of the household"
            )

    def _check_differences(self, columns: Mapping[str, Column], computed: set[str], about: str) -> None:
        for name in self.differences:
            column = _modelled(name, columns, computed, about, "differences")
            if column._compared_as is None:
                raise SchemaError(
                    f"{about}: differences: column {name!r} is of type {column.type_name}, whose values have no "
                    "difference; name columns of numbers, dates or times"
                )
            if column.nullable:
                raise SchemaError(
                    f"{about}: differences: column {name!r} may be null, and a missing value has no difference; name "
                    "columns that are never null"
                )
            if self.differences.count(name) > 1:
                raise SchemaError(f"{about}: differences: column {name!r} is named twice; name it once")
            if self.steps and name == self.order:
                raise SchemaError(f"{about}: differences: column {name!r} is in steps already; leave it out")

    @property
    def never_null(self) -> dict[str, str]:
        """Columns that cannot be nullable, and why: for errors about missing values in them."""
        found = dict.fromkeys(self.differences, "it is learnt by differences, which a missing value has none of")
        return found if self.order is None else {self.order: "rows without a place have no order", **found}

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data; what is at its default is left out."""
        stated = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        described = {name: value for name, value in stated.items() if name in _ALWAYS or value}
        return described | ({"differences": list(self.differences)} if self.differences else {})

    def shown(self, *, most: str = "most_rows") -> str:
        """All but the column, as the options of a call."""
        described = self.to_dict()
        del described["column"]
        return ", ".join(f"{most if name == 'most_rows' else name}={value!r}" for name, value in described.items())


def person_rows(
    person: str, most_rows: Any, order: Any, steps: Any, role: Any, differences: Any, *, about: str
) -> PersonRows:
    """What was stated, as far as it can be told without the columns."""
    for name, value in (("order", order), ("role", role)):
        if value is not None and (not isinstance(value, str) or not value):
            raise SchemaError(f"{about}: {name}={brief(value)} is not the name of a column")
    if isinstance(differences, (str, bytes)) or not isinstance(differences, Iterable):
        raise SchemaError(f"{about}: differences={brief(differences)} is not a list of columns such as ['age']")
    named = tuple(differences)
    for name in named:
        if not isinstance(name, str) or not name:
            raise SchemaError(f"{about}: differences: {brief(name)} is not the name of a column")
    check_characters([person, order, role, *named], f"{about}: ")
    return PersonRows(person, most_rows, order, steps, role, named)


def stated_person(
    person: Any, most_rows: Any, order: Any, steps: Any, role: Any, differences: Any
) -> PersonRows | None:
    """What the options of a schema say; None where its rows belong to nobody."""
    if person is not None:
        if not isinstance(person, str) or not person:
            raise SchemaError(f"person={brief(person)} is not the name of a column")
        return person_rows(person, most_rows, order, steps, role, differences, about=f"person={person!r}")
    given = {"most_rows": most_rows, "order": order, "steps": steps or None, "role": role}
    given["differences"] = differences or None
    for name, value in given.items():
        if value is not None:
            raise SchemaError(
                f"{name}={brief(value)} is about the rows of a person; name the column of persons too, with person=..."
            )
    return None


def options_from_dict(entry: Any) -> dict[str, Any]:
    """The options of a schema that a [person] table states."""
    if not isinstance(entry, Mapping) or "column" not in entry:
        raise SchemaError('[person] needs the column that says whose row it is, for example column = "customer"')
    for name in sorted(set(entry) - set(_ENTRIES)):
        raise SchemaError(
            f"[person] has no entry {name!r}; it takes {', '.join(_ENTRIES)}"
            f"{did_you_mean(_OTHERWISE.get(name, name), _ENTRIES)}"
        )
    options = dict(entry)
    return {"person": options.pop("column"), **options}


def key_in(described: Mapping[str, Any]) -> str | None:
    """The column that says whose row it is in the plain data of a schema; None where no [person] table names one."""
    person = described.get("person")
    column = person.get("column") if isinstance(person, Mapping) else None
    return column if isinstance(column, str) else None


def position_rules(rules: Iterable[Rule]) -> tuple[PositionRule, ...]:
    """The rules about a row's position among the rows of its person."""
    return tuple(rule for rule in rules if isinstance(rule, PositionRule))


def _found(name: str, columns: Mapping[str, Column], about: str) -> Column:
    if name not in columns:
        raise SchemaError(f"{about}: column {name!r} is not in the schema{did_you_mean(name, columns)}")
    return columns[name]


def refuse_ratios(rule: Rule) -> None:
    """Raise a SchemaError where a rule is kept in tables of which every row is a person only."""
    if isinstance(rule, Related):
        raise SchemaError(
            f"{rule!r}: ratios are kept in a single table, of one row for each person; leave the rule out"
        )


def _modelled(name: str, columns: Mapping[str, Column], computed: set[str], about: str, option: str) -> Column:
    """A column of which there is something to learn."""
    column = _found(name, columns, f"{about}: {option}")
    if not column.is_read:
        raise SchemaError(
            f"{about}: {option}: column {name!r} is of type {column.type_name}, whose values are never read; name "
            "another column"
        )
    if name in computed:
        raise SchemaError(f"{about}: {option}: column {name!r} is computed from others; name one of these")
    return column
