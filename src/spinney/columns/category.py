"""One of a public list of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from spinney.columns.base import LARGEST_WHOLE, Column, show
from spinney.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Category(Column):
    """One of a public list of values, all text or all whole numbers. The order of the list is kept by the tree.

    >>> Category(["low", "middle", "high"])
    Category(values=('low', 'middle', 'high'))
    """

    type_name: ClassVar[str] = "category"

    values: tuple[str, ...] | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        if isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise SchemaError("Category: values must be a list such as ['red', 'green']")
        given: tuple[Any, ...] = tuple(self.values)
        values = tuple(value.item() if type(value).__module__ == "numpy" else value for value in given)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError(
                "Category: values must be all text or all whole numbers; use Boolean() for true and false, and "
                "nullable=True for missing values"
            )
        if any(type(v) is int and abs(v) > LARGEST_WHOLE for v in values):
            raise SchemaError("Category: values holds a number beyond ±2^61; write such numbers as text")
        if len(set(values)) != len(values):
            raise SchemaError("Category: values repeats a value; list each once")
        object.__setattr__(self, "values", values)

    @property
    def is_text(self) -> bool:
        return isinstance(self.values[0], str)

    def to_dict(self) -> dict[str, Any]:
        return Column.to_dict(self) | {"values": list(self.values)}

    def __repr__(self) -> str:
        return show(self)
