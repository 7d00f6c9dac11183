"""Did you mean ...? What a misspelt name was probably meant to be.

Names of columns, options and categories are public, so that a message may quote them.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Beyond so many, known names are cut short in a message.
_MOST_LISTED = 12
_LEAST_ALIKE = 0.7


def closest(wrong: object, known: Iterable[object]) -> str | None:
    """The known string that is spelt most like a wrong one, capitals, spaces and hyphens aside; None if none is."""
    if not isinstance(wrong, str):
        return None
    plain = {_plain(name): name for name in known if isinstance(name, str)}
    found = get_close_matches(_plain(wrong), plain, n=1, cutoff=_LEAST_ALIKE)
    return plain[found[0]] if found else None


def did_you_mean(wrong: object, known: Iterable[object]) -> str:
    """The end of a message: "; did you mean 'income'?", or nothing where no known name is close."""
    found = closest(wrong, known)
    return "" if found is None else f"; did you mean {found!r}?"


def listed(names: Iterable[object]) -> str:
    """Names in quotes, with an "and" before the last; the rest of a long list is counted."""
    quoted = [repr(name) for name in names]
    if len(quoted) > _MOST_LISTED:
        quoted = [*quoted[: _MOST_LISTED - 1], f"{len(quoted) - _MOST_LISTED + 1} more"]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def did_you_mean_column(name: object, known: Iterable[str]) -> str:
    """The same for columns that are called by their table, "customers.age": the table may have been left out."""
    columns = list(known)
    whole = [column for column in columns if isinstance(name, str) and column.partition(".")[2] == name]
    return f"; did you mean {whole[0]!r}?" if whole else did_you_mean(name, columns)
