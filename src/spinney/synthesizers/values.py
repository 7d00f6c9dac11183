"""Lists of values that the schema leaves to be found, privately and for a share of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from spinney.columns import Category
from spinney.counting.values import ValueCounts
from spinney.errors import ParameterError
from spinney.forest.found_values import check_rows, release_values
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.schema.table import Schema
from spinney.tables.source import Source


def check_private_values(schema: Schema, n_rows: int, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
    """Refuse a budget that finds nothing, before anything is spent; `epsilon` and `delta` are for all lists."""
    private = schema.columns_awaiting_values
    for name in private:
        if not delta:
            raise ParameterError(
                f'column {name!r}: values="private" needs a delta, and delta is 0; leave delta out, or list the values'
            )
        check_rows(name, n_rows, epsilon=epsilon / len(private), delta=delta / len(private), unit=unit)


def with_few_values(schema: Schema) -> Schema:
    """The schema with a public stand-in for every list that is still to be found: a plan is tried on it."""
    return schema.with_values({name: [_stand_in(schema[name])] for name in schema.columns_awaiting_values})


def count_private_values(table: Source) -> dict[str, ValueCounts]:
    """How many rows have each value, of all columns whose list is to be found. SENSITIVE, and so are the values."""
    return {name: table.count_values(name) for name in table.schema.columns_awaiting_values}


def find_values(
    counts: Mapping[str, ValueCounts],
    schema: Schema,
    *,
    epsilon: Fraction,
    delta: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> dict[str, Any]:
    """The private lists of the columns that were counted; the budget is shared evenly by them."""
    private = schema.columns_awaiting_values
    found: dict[str, tuple[Any, ...]] = {}
    for name in private:
        column = schema[name]
        assert isinstance(column, Category)
        found[name] = release_values(
            counts[name],
            name,
            column,
            epsilon=epsilon / len(private),
            delta=delta / len(private),
            ledger=ledger,
            entropy=entropy,
        )
    return found


def without_values(lists: Mapping[str, Any], schema: Schema) -> list[str]:
    """What to warn of, once the release is kept: columns of whose values none was found."""
    return [
        f"column {name!r}: no value was common enough to be found, so all rows count as "
        f"{getattr(schema[name], 'other', None)!r}; its part of the budget is spent: list the values, or raise "
        "values_share"
        for name, found in lists.items()
        if not found
    ]


def _stand_in(column: Any) -> Any:
    return f"not {column.other}" if column.is_text else column.other - 1 if column.other > 0 else column.other + 1
