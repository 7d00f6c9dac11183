"""Names of what a model of persons has beside the columns that were stated.

    transactions.#          how many rows of a table a person has
    transactions.^day       the first value of a column, where later ones are told by differences
    transactions.~amount    a hidden level: what a person's rows have in common in a column

A flat table has no name, and its names begin with the mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from spinney.errors import SchemaError

_COUNT, _FIRST, _LEVEL = "#", "^", "~"


def count_name(table: str) -> str:
    """The number of rows that a person has of a table."""
    return _of(table, _COUNT)


def first_name(table: str, column: str) -> str:
    """The first value that a person has of a column."""
    return _of(table, f"{_FIRST}{column}")


def level_name(table: str, column: str) -> str:
    """The hidden level of a person in a column."""
    return _of(table, f"{_LEVEL}{column}")


def refuse_taken(stated: Iterable[str], made: Iterable[str]) -> None:
    """Raise a SchemaError where a stated column has a name that a model of persons gives itself."""
    taken = set(made)
    for name in stated:
        if name in taken:
            raise SchemaError(
                f"column {name!r} of the persons table has a name that Spinney gives to what it learns of persons' "
                "rows; rename the column"
            )


def _of(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name
