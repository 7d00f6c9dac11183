"""The residual of a sum as a column that is computed while a table is read: the total less its parts.

It stands in the place of the total in the schema that a table is read by. In memory and in batches it is computed of
the columns that were read (`combined`), by engines that answer queries it is an expression (`tables.engines.queries`):
the same subtractions of floats in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from spinney.columns import Column, Real
from spinney.schema.rules.sums import Sum

if TYPE_CHECKING:
    from spinney.columns.physical import Physical


@dataclass(frozen=True, slots=True, repr=False)
class Residual(Real):
    """The total of a `Sum` less its parts."""

    of: Sum | None = field(default=None, kw_only=True)
    parts: tuple[tuple[str, Column], ...] = field(default=(), kw_only=True)

    @property
    def also_reads(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    def combined(self, total: Physical, parts: Mapping[str, Physical]) -> Physical:
        """The residual of rows whose total and parts are these. SENSITIVE."""
        import numpy as np

        from spinney.columns.physical import Physical

        def floats(found: Physical) -> Any:
            values = np.asarray(found.values, dtype=np.float64)
            return values if found.is_null is None else np.where(found.is_null, np.nan, values)

        assert self.of is not None
        numbers = {name: floats(part) for name, part in parts.items()}
        return Physical(np.asarray(self.of.difference(floats(total), numbers)))


def parts_first(columns: Mapping[str, Column]) -> list[str]:
    """The columns that are read, the parts of a sum before its residual: a fault of theirs is told as theirs."""
    read = [name for name, column in columns.items() if column.is_read]
    ordered = dict.fromkeys(other for name in read for other in (*columns[name].also_reads, name))
    return [name for name in ordered if columns[name].is_read]


def residual_column(rule: Sum, columns: Mapping[str, Column]) -> Residual:
    """What is read in the place of a total."""
    assert rule.residual is not None
    stated = {field.name: getattr(rule.residual, field.name) for field in fields(rule.residual)}
    parts = tuple((name, columns[name]) for name in rule.sources)
    return Residual(**stated, of=rule, parts=parts)
