"""Columns whose values are never read: what they have in common is that most questions are never asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from spinney.columns.base import AxisKind, Column
from spinney.errors import SchemaError
from spinney.shown import brief


@dataclass(frozen=True, slots=True)
class Unread(Column):
    """A column of any type in the table, of which nothing but its name is looked at."""

    axis_kind: ClassVar[AxisKind] = "category"
    is_read: ClassVar[bool] = False
    why_never_null: ClassVar[str]  # why `nullable` has no meaning

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.nullable is not False:
            raise SchemaError(f"{kind}: nullable={brief(self.nullable)} has no meaning here; {self.why_never_null}")
        if self.bits is not None:
            raise SchemaError(f"{kind}: bits={brief(self.bits)} has no meaning here; the values are not learnt")

    @property
    def csv_type(self) -> Any:
        import pyarrow as pa

        return pa.binary()  # nothing is made of it, so nothing can be wrong with it

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SchemaError(f"a column of type {self.type_name} is never read, counted or drawn; leave it out")

    accepts = arrow_type = spelling_remedy = property(_refuse)
    converter = from_strings = cause = read = reading = from_spark = _refuse
    whole_range = leaf_ends = from_option = drawn_range = set_ticks = _refuse
