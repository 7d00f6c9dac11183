"""Bounds that the schema leaves open: paid for out of epsilon, or read off the data under a name that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spinney.engines.frames import Table
from spinney.engines.memory import count_cells, true_extremes
from spinney.partition.bounds import ladder_lattice, release_bounds, widest_bounds
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.schema.columns import Bounded, Real
from spinney.schema.table import Schema


def with_widest_bounds(schema: Schema) -> Schema:
    """The schema with generous public bounds where bounds are still to be found."""
    awaiting = {
        name: column for name, column in schema.items() if isinstance(column, Bounded) and not column.has_bounds
    }
    return schema.with_bounds({name: widest_bounds(column) for name, column in awaiting.items()})


def find_bounds(table: Table, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> Schema:
    """The table's schema with all bounds filled in: stated ones, paid-for ones, and those read off the data."""
    schema = table.schema
    found: dict[str, tuple[Any, Any]] = {}
    for name in schema.columns_awaiting_bounds("from-data-not-private"):
        found[name] = _data_derived_bounds(table, name)
    paid_for = schema.columns_awaiting_bounds("private")
    for name in paid_for:
        column = schema[name]
        assert isinstance(column, Bounded)
        counts = count_cells(table, ladder_lattice(name, column))
        found[name] = release_bounds(counts, column, epsilon=epsilon / len(paid_for), ledger=ledger, entropy=entropy)
    return schema.with_bounds(found)


def _data_derived_bounds(table: Table, name: str) -> tuple[Any, Any]:
    """The column's own extremes. Not private; the caller has branded the ledger."""
    column = table.schema[name]
    assert isinstance(column, Bounded)
    low, high = true_extremes(table, name)
    if isinstance(column, Real) and low == high:
        low, high = low - 0.5, high + 0.5
    return column.logical(low), column.logical(high)
