"""Conditions on columns that are derived, as conditions on the columns that they are derived from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from spinney.columns import Bounded, Column, Listed
from spinney.errors import ParameterError, SchemaError, raise_alone
from spinney.forest.release.asked import Asked, plain, range_asked
from spinney.schema.column_axis import column_axis
from spinney.schema.parting import partings
from spinney.schema.rules import clauses_of
from spinney.schema.rules.values import Number, ValueSet, universe
from spinney.schema.table import Schema


def asked_of_modelled(where: Mapping[str, Any], schema: Schema) -> dict[str, list[Any]]:
    """Conditions by modelled column, in the order in which they were asked."""
    derived = {rule.column for rule in schema.derivations}
    found: dict[str, list[Any]] = {}
    for name, wanted in where.items():
        if name not in derived:
            found.setdefault(name, []).append(wanted)
            continue
        source, allowed = of_modelled(name, _wanted_set(name, schema[name], wanted), schema, argument="where")
        found.setdefault(source, []).append(Asked(name, wanted, allowed))
    return found


def of_modelled(name: str, allowed: ValueSet, schema: Schema, *, argument: str) -> tuple[str, ValueSet]:
    """The modelled column that a derived one follows from, and its values that lead to some of the derived one's."""
    derived = {rule.column: rule for rule in schema.derivations}
    while name in derived:
        rule = derived[name]
        try:
            allowed = rule.preimage(allowed, schema)
        except SchemaError as err:
            raise_alone(ParameterError(f"{argument}: {err}"))
        name = rule.sources[0]
    return name, allowed


def part_starts(schema: Schema) -> dict[str, Sequence[Number]]:
    """Where parts of columns begin that rules tell apart, by modelled column."""
    clauses = clauses_of(schema.rules, schema)
    named = {name: schema[name] for clause in clauses for name in clause}
    axes = {name: column_axis(name, column, in_rules=True) for name, column in named.items()}
    return {name: parting.starts[1:] for name, parting in partings(clauses, schema, axes).items()}


def _wanted_set(name: str, column: Column, wanted: Any) -> ValueSet:
    """The values of a derived column that were asked for."""
    wanted = plain(wanted)
    if wanted is None:
        return ValueSet(has_null=True)
    if isinstance(column, Listed):
        several = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        places = sorted({column.place_of(value, name=name, argument="where") for value in several})
        return ValueSet(tuple((place, place) for place in places))
    assert isinstance(column, Bounded)
    if isinstance(wanted, tuple):
        (low, high), (lowest, highest) = range_asked(name, column, wanted), universe(column)
        low, high = max(low, lowest), min(high, highest)
        return ValueSet(((low, high),)) if low <= high else ValueSet()
    found = ValueSet()
    for value in wanted if isinstance(wanted, list) else [wanted]:
        number = column.wanted(value, name)
        found |= ValueSet() if math.isnan(number) else ValueSet(((number, number),))
    return found
