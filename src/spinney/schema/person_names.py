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
# Words of names that say that a column numbers rows.
_ROW_WORDS = frozenset({"idx", "index", "obs", "observation", "row", "rowid", "rowname", "rownum", "rownumber"})
# What stands before or after "id" in words that are written as one.
_BEFORE_ID = frozenset({"case", "cust", "h", "hh", "n", "p", "pers", "pt", "subj", "u", *(_WORDS - _OF_ANYTHING)})
_AFTER_ID = frozenset({"code", "no", "nr", "num", "number"})
# A word of a name: letters that follow each other, a new word beginning with each capital after a small letter.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def suggested_keys(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as customer, patient or id: "customerID", "card_no", "idcode".

    Those that say no more than that they are keys, such as "id", come last; those of row numbers are left out.
    """
    found = [name for name in names if any(map(_is_key, _words(name))) and _ROW_WORDS.isdisjoint(_words(name))]
    return sorted(found, key=lambda name: not names_persons(name))


def names_persons(name: str) -> bool:
    """Whether a name speaks of persons or things that may have several rows: "customerID", "pid"; "id" does not."""
    words = _words(name)
    return any(word in _BEFORE_ID and len(word) > 2 for word in words) or any(
        word.endswith("id") and word.removesuffix("id") in _BEFORE_ID for word in words
    )


def _is_key(word: str) -> bool:
    return (
        word in _WORDS
        or (word.endswith("id") and word.removesuffix("id") in _BEFORE_ID)
        or (word.startswith("id") and word.removeprefix("id") in _AFTER_ID)
    )


def suggested_orders(names: Iterable[str]) -> list[str]:
    """Those of the names that have a word such as day, year or visit: "yearID", "days"."""
    return [name for name in names if not _TIMES.isdisjoint(_words(name))]


def _words(name: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(name)}
    return words | {word.removesuffix("s") for word in words}
