"""Columns that are in the table and shall not be in the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spinney.columns.base import show
from spinney.columns.unread import Unread


@dataclass(frozen=True, slots=True)
class Ignore(Unread):
    """A column that is left out: its values are never read, and synthetic rows do not have it.

    >>> Ignore()
    Ignore()

    Args:
        nullable: always False: whether values are missing is not looked at.
        bits: always None: the values are not learnt.
    """

    type_name: ClassVar[str] = "ignore"
    is_drawn: ClassVar[bool] = False
    spark_cast: ClassVar[str] = "which a column that is ignored does not need"
    why_never_null: ClassVar[str] = "the values are not looked at"

    @property
    def fits_array(self) -> bool:
        return True

    @classmethod
    def template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        """No type says that a column is of no interest."""
        del kind, bounds
        return None

    def __repr__(self) -> str:
        return show(self)

    to_positions = to_arrow = Unread._refuse
