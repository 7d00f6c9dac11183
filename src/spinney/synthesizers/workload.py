"""A workload as people state it: lists of columns whose tables are to be measured, checked by name and by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spinney.errors import ParameterError
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean

_MOST_COLUMNS = 5
_EXAMPLE = 'a list of tables such as [("age", "sex", "region"), ("income",)]'

StatedTables = tuple[tuple[str, ...], ...]


def checked_workload(workload: Any, schema: Schema) -> StatedTables:
    """The stated tables, each as names of columns; a ParameterError where one cannot be measured."""
    if workload is None:
        return ()
    if isinstance(workload, str) or not isinstance(workload, Sequence):
        raise ParameterError(f"workload={workload!r} is not {_EXAMPLE}")
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for table in workload:
        names = _names(table, schema)
        if frozenset(names) in found:
            raise ParameterError(f"workload: the table of {_listed(names)} is stated twice; state it once")
        found[frozenset(names)] = names
    return tuple(found.values())


def _names(table: Any, schema: Schema) -> tuple[str, ...]:
    if isinstance(table, str):
        raise ParameterError(f"workload: {table!r} is text, and a table is a list of columns; write ({table!r},)")
    if not isinstance(table, Sequence):
        raise ParameterError(f"workload: {table!r} is not a list of columns; a workload is {_EXAMPLE}")
    names = tuple(table)
    if not 1 <= len(names) <= _MOST_COLUMNS:
        raise ParameterError(f"workload: a table of {len(names)} columns was stated; one has 1 to {_MOST_COLUMNS}")
    for name in names:
        if not isinstance(name, str) or name not in schema:
            raise ParameterError(f"workload: {name!r} is not a column of the schema{did_you_mean(name, schema)}")
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
