"""Numbers that stand twice in a release file, compared; what every kind of release checks its contents with."""

from __future__ import annotations

from typing import Any

from spinney.privacy.budget import parse_epsilon
from spinney.privacy.events import DiscreteLaplaceCounts
from spinney.release.card import Card
from spinney.shown import brief


class ContradictionError(ValueError):
    """Two recordings of a number in a file are not the same, or an event is not true in itself."""


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContradictionError(otherwise)


def same(found: Any, stated: Any, what: str) -> None:
    check(type(found) is type(stated) and found == stated, f"{what} is {brief(stated)} here and {brief(found)} there")


def near(found: float, stated: Any, what: str, *, slack: float) -> None:
    is_near = isinstance(stated, (int, float)) and not isinstance(stated, bool) and abs(found - stated) <= slack
    check(is_near, f"{what} is {brief(stated)} in the plan and {found:.6g} by the events")


def bounds_of_a_column(event: DiscreteLaplaceCounts, card: Card) -> None:
    """A charge beside those of what was released is one for the bounds of a column, once."""
    check(event.stage == "bounds", f"a charge is for {event.stage}, which this kind of release does not have")
    check(event.column in card.schema, f"bounds were paid for of {brief(event.column)}, which is not a column")
    same(event.times, 1, "the number of tables that bounds were paid for with")


def spent_whole(card: Card) -> None:
    """Trees, grids and forests spend what the call gave them, to the last fraction: a charge that is gone is missed."""
    if "epsilon" in card.parameters:
        same(card.epsilon, parse_epsilon(card.parameters["epsilon"]), "the epsilon of the call")
