"""Columns whose names suggest that they say whose row it is, or by what a person's rows are sorted.

Nothing but names is looked at, and nothing is decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# fmt: off
_WORDS = frozenset(
    {
        "account", "card", "client", "contact", "customer", "device", "driver", "email", "employee", "guid",
        "household", "id", "identifier", "key", "member", "participant", "passenger", "patient", "person",
        "player", "respondent", "student", "subject", "subscriber", "user", "uuid", "worker",
    }
)
# Of these, the ones that may as well name rows or things.
_OF_ANYTHING = frozenset({"guid", "id", "identifier", "key", "uuid"})
_TIMES = frozenset(
    {
        "date", "datetime", "day", "hour", "minute", "month", "period", "position", "quarter", "rank", "round",
        "season", "second", "sequence", "step", "time", "timestamp", "visit", "wave", "week", "when", "year",
    }
)
# fmt: on
# A word of a name: letters that follow each other, a new word beginning with each capital after a small letter.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def suggested_keys(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as customer, patient or id: "customerID", "card_no".

    Those that say no more than that they are keys, such as "row_id", come last.
    """
    found = [name for name in names if not _WORDS.isdisjoint(_words(name))]
    return sorted(found, key=lambda name: (_WORDS - _OF_ANYTHING).isdisjoint(_words(name)))


def suggested_orders(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as day, year or visit: "yearID", "days"."""
    return [name for name in names if not _TIMES.isdisjoint(_words(name))]


def _words(name: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(name)}
    return words | {word.removesuffix("s") for word in words}
