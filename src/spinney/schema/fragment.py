"""A schema, or linked ones, as a notebook shows them: a table of columns, rules and places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment

if TYPE_CHECKING:
    from spinney.schema.table import Schema


def schema_fragment(schema: Schema) -> str | None:
    """A piece of HTML; None without jinja2."""
    kinds: dict[str, int] = {}
    for column in schema.values():
        kinds[column.type_name] = kinds.get(column.type_name, 0) + 1
    facts = {
        "columns": ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
        "rules": len(schema.rules) or None,
        "places": "; ".join(place.label for place in schema.places),
        "person": schema.person,
    }
    return fragment(
        f"Schema of {len(schema)} columns", facts, tables=[columns_of(schema, is_open=True), rules_of(schema)]
    )


def tables_fragment(tables: Mapping[str, Schema]) -> str | None:
    """A piece of HTML of linked tables; None without jinja2."""
    facts = {name: f"{len(schema)} columns" for name, schema in tables.items()}
    return fragment(
        f"{len(tables)} linked tables",
        facts,
        tables=[columns_of(schema, f"columns of {name}") for name, schema in tables.items()],
    )


def columns_of(schema: Schema, caption: str = "columns", *, is_open: bool = False) -> Lines:
    """The columns as a table."""
    return Lines(caption, ("column", "as stated"), [[name, repr(column)] for name, column in schema.items()], is_open)


def rules_of(schema: Schema) -> Lines:
    """The rules as a table."""
    return Lines("rules", ("rule",), [[repr(rule)] for rule in schema.rules])
