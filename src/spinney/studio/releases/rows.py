"""Rows to take away: what a form asks for, checked before anything is drawn, and how many parts it is drawn in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.errors import SpinneyError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.options import parse_balance, parse_where
from spinney.release.entries import MOST_ROWS
from spinney.release.model import Release
from spinney.studio.releases.loaded import loaded, takes_conditions

FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
# Rows that are drawn at once: more are drawn in parts, one after the other, so that memory stays as it is.
PART_ROWS = 250_000
_LARGEST_SEED = 2**63


def checked_draw(path: str, digest: str, given: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """What is to be drawn, and what is wrong with it by field; `given` are `rows`, `seed`, `where` and `balance`."""
    release, asked = loaded(path, digest), dict(given)
    faults: dict[str, str] = {}
    n_rows = _whole(asked.get("rows", ""), "rows", MOST_ROWS, faults)
    seed = _whole(asked.get("seed", ""), "seed", _LARGEST_SEED - 1, faults)
    if n_rows is None and "rows" not in faults:
        n_rows = _usual(release, faults)
    options = _options(release, asked, faults)
    if not faults and isinstance(release, ForestRelease) and options:
        _check_together(release, options, faults)
    return {
        "faults": faults,
        "rows": n_rows,
        "seed": seed,
        "where": asked.get("where", "").strip(),
        "balance": asked.get("balance", "").strip(),
        "parts": parts_of_rows(n_rows or 0),
        "is_people": isinstance(release, PeopleRelease),
        "is_several": isinstance(release, PeopleRelease) and release.shape.persons is not None,
    }


def parts_of_rows(n_rows: int) -> int:
    """In how many parts so many rows are drawn."""
    return max(-(-n_rows // PART_ROWS), 1)


def drawing_options(release: Release, where: str, balance: str) -> dict[str, Any]:
    """Conditions and shares as `sample` takes them."""
    options: dict[str, Any] = {}
    if where:
        options["where"] = parse_where([where], release.asked_schema, what="where")
    if balance:
        options["balance"] = parse_balance(_lines(balance), release.schema, what="shares")
    return options


def _lines(balance: str) -> list[str]:
    return [line.strip() for line in balance.splitlines() if line.strip()]


def _options(release: Release, asked: Mapping[str, str], faults: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("where", "balance"):
        text = asked.get(name, "").strip()
        if not text:
            continue
        if name == "where" and not takes_conditions(release):
            faults[name] = "Rows can be drawn under a condition from forests and persons; this release is neither."
        elif name == "balance" and not isinstance(release, ForestRelease):
            faults[name] = "Shares can be chosen of forests only; this release is none."
        else:
            try:
                found |= drawing_options(release, text if name == "where" else "", text if name == "balance" else "")
            except SpinneyError as err:
                faults[name] = str(err)
    return found


def _check_together(release: ForestRelease, options: Mapping[str, Any], faults: dict[str, str]) -> None:
    try:
        release.conditioned(options.get("where"), options.get("balance"))
    except SpinneyError as err:
        faults["where" if "where" in options else "balance"] = str(err)


def _usual(release: Release, faults: dict[str, str]) -> int | None:
    """As many as the table had, where that is public, else a noisy number."""
    if isinstance(release, PeopleRelease):
        return None if release.card.n_rows is None else int(release.card.n_rows)
    try:
        return release._default_rows()
    except SpinneyError as err:
        faults["rows"] = str(err)
        return None


def _whole(text: str, name: str, most: int, faults: dict[str, str]) -> int | None:
    """A whole number of a field, such as 10000, 1_000_000 or 1e6; None where it is empty."""
    plain = text.strip().replace(",", "").replace("_", "").replace(" ", "")
    if not plain:
        return None
    try:
        number = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 25 else _scientific(plain)
    except (ValueError, OverflowError):
        faults[name] = "This is not a whole number; write one such as 10000 or 1e6."
        return None
    if not 0 <= number <= most:
        faults[name] = f"This is not between 0 and {most:,}."
        return None
    return number


def _scientific(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError
    return int(number)
