"""Names of rows and people: never read, made afresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from spinney.columns.base import Column, show
from spinney.errors import SchemaError
from spinney.shown import brief

_DIGITS, _MOST_DIGITS = 6, 18


@dataclass(frozen=True, slots=True)
class Identifier(Column):
    """Names a row or a person: a customer number, an e-mail address. Its values are never read; they are made afresh.

    Synthetic rows are numbered 1, 2, 3, ...; with a `prefix` they get texts, the number padded to `digits` or more.

    >>> Identifier(prefix="C-")  # C-000001, C-000002, ...
    Identifier(prefix='C-')
    """

    type_name: ClassVar[str] = "identifier"

    prefix: str | None = field(default=None, kw_only=True)
    digits: int = field(default=_DIGITS, kw_only=True)

    def __post_init__(self) -> None:
        if self.nullable is not False:
            raise SchemaError(
                f"Identifier: nullable={brief(self.nullable)} has no meaning here; every row gets an identifier"
            )
        if self.bits is not None:
            raise SchemaError(f"Identifier: bits={brief(self.bits)} has no meaning here; identifiers are not learnt")
        if self.prefix is not None and not isinstance(self.prefix, str):
            raise SchemaError(f"Identifier: prefix={brief(self.prefix)} is not a text such as 'C-'")
        if type(self.digits) is not int or not 1 <= self.digits <= _MOST_DIGITS:
            raise SchemaError(f"Identifier: digits={brief(self.digits)} is not a whole number in 1..{_MOST_DIGITS}")
        if self.prefix is None and self.digits != _DIGITS:
            raise SchemaError(f"Identifier: digits={self.digits} pads texts; give a prefix too, or leave it out")

    @property
    def is_text(self) -> bool:
        return self.prefix is not None

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.prefix is not None:
            described["prefix"] = self.prefix
        if self.digits != _DIGITS:
            described["digits"] = self.digits
        return described

    def __repr__(self) -> str:
        return show(self)
