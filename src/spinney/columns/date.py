"""Calendar days: whole days since 1970-01-01 underneath."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

from spinney.columns.base import Bounded, show
from spinney.errors import SchemaError
from spinney.shown import brief

_EPOCH_DAY = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Date(Bounded):
    """A calendar day between two days, both included: `Date("2020-01-01", "2020-12-31")`."""

    type_name: ClassVar[str] = "date"

    def parse(self, value: Any, name: str) -> date:
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value)
            except ValueError:
                raise SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31") from None
        if isinstance(value, datetime) or not isinstance(value, date):
            raise SchemaError(f"Date: {name}={brief(value)} is not a day like 2020-01-31")
        return value

    def physical(self, value: Any) -> int:
        return int((value - _EPOCH_DAY).days)

    def logical(self, number: Any) -> date:
        return _EPOCH_DAY + timedelta(days=int(number))

    def __repr__(self) -> str:
        return show(self)
