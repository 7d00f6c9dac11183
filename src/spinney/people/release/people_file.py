"""A release of persons in a file. (Members beside those of the forest of persons.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spinney.release.card import Card

if TYPE_CHECKING:
    from spinney.people.release.model import PeopleRelease

MEMBERS = ("row_leaves.arrow", "row_fields.arrow", "row_tables.arrow")


def people_members(release: PeopleRelease) -> tuple[dict[str, Any], dict[str, bytes]]:
    raise NotImplementedError


def people_from_members(card: Card, described: Mapping[str, Any], members: Mapping[str, bytes]) -> dict[str, Any]:
    raise NotImplementedError
