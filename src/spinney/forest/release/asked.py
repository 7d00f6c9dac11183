"""What was asked of a column: in Python's own types, or, of a derived one, as values of its source."""

from __future__ import annotations

from typing import Any, NamedTuple

from spinney.release.answers.conditions import plain, range_asked
from spinney.schema.rules.values import ValueSet

__all__ = ["Asked", "plain", "range_asked"]


class Asked(NamedTuple):
    """What was asked of a derived column, and the values of its source that lead to it."""

    name: str
    wanted: Any
    allowed: ValueSet
