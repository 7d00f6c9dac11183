"""A workload as people state it: lists of columns whose tables are to be measured, checked by name and by kind.

It is read once, since a list may be changed by whoever else holds it. What is no column is not quoted: whole columns
or rows of a private table may have been given by mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spinney.errors import ParameterError
from spinney.schema.table import Schema
from spinney.shown import as_given
from spinney.suggest import did_you_mean, listed

_MOST_COLUMNS = 5
_EXAMPLE = 'a list of tables such as [("age", "sex", "region"), ("income",)]'

_ORDINALS = ("first", "second", "third", "fourth", "fifth")

StatedTables = tuple[tuple[str, ...], ...]


def read_once(workload: Any) -> Any:
    """The workload as tuples that nobody can change; what is no list of lists stays, to be refused."""
    if not _is_list(workload):
        return workload
    return tuple(tuple(table) if _is_list(table) else table for table in workload)


def checked_workload(workload: Any, schema: Schema) -> StatedTables:
    """The stated tables, each as names of columns; a ParameterError where one cannot be measured."""
    if workload is None:
        return ()
    if not _is_list(workload):
        raise ParameterError(f"workload={as_given(workload)} is not {_EXAMPLE}")
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for number, table in enumerate(workload, 1):
        names = _names(table, number, schema)
        if frozenset(names) in found:
            raise ParameterError(f"workload: the table of {_listed(names)} is stated twice; state it once")
        found[frozenset(names)] = names
    return tuple(found.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _names(table: Any, number: int, schema: Schema) -> tuple[str, ...]:
    if isinstance(table, str):
        remedy = f"write ({table!r},)" if table in schema else f"a workload is {_EXAMPLE}"
        raise ParameterError(f"workload: table {number} is text, and a table is a list of columns; {remedy}")
    if not _is_list(table):
        kind = type(table).__name__
        raise ParameterError(f"workload: table {number} is a {kind}, not a list of columns; a workload is {_EXAMPLE}")
    names = tuple(table)
    if not 1 <= len(names) <= _MOST_COLUMNS:
        raise ParameterError(f"workload: a table of {len(names)} columns was stated; one has 1 to {_MOST_COLUMNS}")
    for place, name in zip(_ORDINALS, names, strict=False):
        if not isinstance(name, str) or name not in schema:
            hint = did_you_mean(name, schema) or f"; its columns are {listed(schema)}"
            raise ParameterError(f"workload: the {place} name of table {number} is not a column of the schema{hint}")
        if names.count(name) > 1:
            raise ParameterError(f"workload: column {name!r} is twice in the table of {_listed(names)}")
        _check_column(name, schema)
    return names


def _check_column(name: str, schema: Schema) -> None:
    """Refuse columns that have no states of their own."""
    if not schema[name].is_read:
        raise ParameterError(f"workload: column {name!r} is an identifier, which is never read; leave it out")
    for rule in schema.derivations:
        if rule.column == name:
            sources = " or ".join(map(repr, rule.sources))
            raise ParameterError(f"workload: column {name!r} is computed from others; state {sources} instead")
    for place in schema.places:
        if name in place.columns:
            raise ParameterError(
                f"workload: column {name!r} is part of the place {place.label!r}, which is measured as a whole; leave "
                "it out, or take the place out of the schema"
            )
    if name in schema.columns_awaiting_values:
        raise ParameterError(
            f'workload: column {name!r} has values="private", so how large its table is cannot be known before '
            "budget is spent; list its values, or leave it out"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
