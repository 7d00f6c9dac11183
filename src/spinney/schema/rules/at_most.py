"""One column is never larger than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import KINDS
from spinney.errors import SchemaError
from spinney.schema.rules.base import Columns, Rule, check_name

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AtMost(Rule):
    """`column` is never larger than `other`: `AtMost("start", "end")`. A null in either satisfies it.

    Both are numbers, or both dates, both datetimes or both times.

    Args:
        column: the name of the column that is never larger.
        other: the name of the column that is never smaller.
    """

    type_name: ClassVar[str] = "at-most"

    column: str
    other: str

    def __post_init__(self) -> None:
        check_pair(self, self.column, self.other)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column, self.other

    def check(self, columns: Columns) -> None:
        column, other = (columns[name] for name in self.columns)
        for name, kind in zip(self.columns, (column, other), strict=True):
            if kind.compared_as is None:
                raise SchemaError(f"AtMost: column {name!r} is of type {kind.type_name}, whose values have no size")
        if column.compared_as != other.compared_as:
            sizes = dict.fromkeys(kind.compared_as for kind in KINDS if kind.compared_as is not None)
            raise SchemaError(
                f"AtMost: {self.column!r} is of type {column.type_name} and {self.other!r} of type {other.type_name}; "
                f"compare {', '.join(f'{size} with {size}' for size in sizes)}"
            )
        zones = [getattr(kind, "timezone", None) for kind in (column, other)]
        if zones.count(None) == 1:
            raise SchemaError(f"AtMost: one of {self.column!r} and {self.other!r} has a time zone; give both one")

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:  # noqa: ARG002
        import numpy as np

        smaller, larger = rows[self.column], rows[self.other]
        return np.asarray((smaller <= larger) | np.isnan(smaller) | np.isnan(larger))

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type_name, "column": self.column, "other": self.other}


def check_pair(rule: Rule, column: Any, other: Any) -> None:
    """Raise a SchemaError unless these are the names of two columns."""
    for name in (column, other):
        check_name(rule, name)
    if column == other:
        raise SchemaError(f"{type(rule).__name__}: {column!r} is named twice; a rule is about two columns")
