"""Bounds that the schema leaves open: estimated privately, or taken from the data under a name that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spinney.columns import Bounded
from spinney.errors import InputError, SchemaError, raise_alone
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Charge, Ledger
from spinney.redacted import redacted
from spinney.schema.table import Schema
from spinney.tables.source import Source
from spinney.tree.bounds import ladder_lattice, release_bounds, widest_bounds
from spinney.tree.plan import grid_plan


def with_widest_bounds(schema: Schema) -> Schema:
    """The schema with generous public bounds where bounds are still to be found."""
    awaiting = {
        name: column for name, column in schema.items() if isinstance(column, Bounded) and not column.has_bounds
    }
    return schema.with_bounds({name: widest_bounds(column) for name, column in awaiting.items()})


def find_bounds(table: Source, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> dict[str, tuple[Any, Any]]:
    """Bounds of all columns that await some: paid-for ones, and those read off the data."""
    schema = table.schema
    found: dict[str, tuple[Any, Any]] = {}
    for name in schema.columns_awaiting_bounds("from-data-not-private"):
        found[name] = _data_derived_bounds(table, name)
    paid_for = schema.columns_awaiting_bounds("private")
    columns = {name: column for name in paid_for if isinstance(column := schema[name], Bounded)}
    ladders = [ladder_lattice(name, column) for name, column in columns.items()]
    # All columns in one pass where reading is dear.
    for (name, column), counts in zip(columns.items(), table.count_columns(ladders), strict=True):
        found[name] = release_bounds(counts, column, epsilon=epsilon / len(paid_for), ledger=ledger, entropy=entropy)
    return found


def bounds_charges(schema: Schema, epsilon: Fraction, unit: Unit) -> tuple[Charge, ...]:
    """What finding all private bounds is charged as, column by column."""
    names = schema.columns_awaiting_bounds("private")
    plans = [grid_plan(unit=unit, depth=0, epsilon=epsilon / len(names), threshold=1) for _ in names]
    return tuple(charge for name, plan in zip(names, plans, strict=True) for charge in plan.charges(name))


def _data_derived_bounds(table: Source, name: str) -> tuple[Any, Any]:
    """The column's own extremes. Not private; the caller has branded the ledger."""
    column = table.schema[name]
    assert isinstance(column, Bounded)
    low, high = table.true_extremes(name)
    # What does not fit is not quoted: it is the smallest or the largest value of the table.
    with redacted(lambda _: _beyond(name, column)):
        ends = column.from_extremes(low, high)
        try:
            column.with_bounds(*ends)
        except SchemaError:
            raise_alone(_beyond(name, column))
        return ends


def _beyond(name: str, column: Bounded) -> InputError:
    return InputError(f"column {name!r} goes beyond {column.reach}; state its bounds")
