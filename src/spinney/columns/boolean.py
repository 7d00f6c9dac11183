"""True or false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spinney.columns.base import Column, show


@dataclass(frozen=True, slots=True)
class Boolean(Column):
    """True or false."""

    type_name: ClassVar[str] = "boolean"

    def __repr__(self) -> str:
        return show(self)
