"""Whether a ledger holds the charges of a release: its events, one after the other, as a fit records them.

A ledger in a database names the release that came of a charge by its digest. Elsewhere, and where the fit ended before
its release was recorded, it says what was charged and not for which file, so that two releases of equal charges cannot
be told apart: the run that is found may be that of another release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.errors import FileError
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.verifying import find_release
from spinney.privacy.events import Brand, Event
from spinney.privacy.ledger import Ledger
from spinney.release.model import Release
from spinney.release.storage import digest


@dataclass(frozen=True, slots=True)
class FoundCharge:
    """Where the charges of a release stand in a ledger: the number of the first, counted from 1, and how often."""

    first: int
    n_events: int
    n_runs: int  # how many runs of the same charges there are; one of them is that of the release
    by_digest: bool = False  # whether the ledger names the release itself
    said: str = ""  # then: who charged what, and when


def find_charge(ledger: Ledger, release: Release) -> FoundCharge | None:
    """The charges of a release in a ledger; None where it does not hold them, or is of another unit.

    Raises:
        FileError: the ledger names the release, and was charged for it something else than its card lists.
    """
    if isinstance(ledger, SharedLedger) and release.card.events:
        named = find_release(ledger, digest(release), release.card.events)
        if named is not None:
            if not named.agrees:
                raise FileError(f"the ledger names this release, and other charges than its card lists: {named}")
            return FoundCharge(named.charges[0].number, len(release.card.events), 1, by_digest=True, said=str(named))
    if ledger.unit.value != release.card.unit:
        return None
    wanted, held = release.card.events, _unclaimed(ledger)
    if not wanted:
        return None
    places = _places(held, wanted)
    if not places:
        return None
    return FoundCharge(places[0] + 1, len(wanted), _n_apart(places, len(wanted)))


def _unclaimed(ledger: Ledger) -> tuple[Event, ...]:
    """The events that may be those of a release that is not named: of no other release, and of no failed fit."""
    if not isinstance(ledger, SharedLedger):
        return ledger.events
    free = [charge for charge in ledger.charges if charge.release is None and charge.error is None]
    claimed = [event for charge in ledger.charges if charge not in free for event in charge.events or ()]
    brands = [event for event in ledger.events if isinstance(event, Brand)]
    return (*brands, *(event for charge in free for event in charge.events or ())) if claimed else ledger.events


def _places(held: Sequence[Event], wanted: Sequence[Event]) -> list[int]:
    """Where the wanted events begin, all of them in order; others may have charged in between."""
    n = len(wanted)
    runs = [place for place in range(len(held) - n + 1) if tuple(held[place : place + n]) == tuple(wanted)]
    if runs:
        return runs
    at, first = 0, None
    for place, event in enumerate(held):
        if at < n and event == wanted[at]:
            first = place if first is None else first
            at += 1
    return [first] if at == n and first is not None else []


def _n_apart(places: Sequence[int], length: int) -> int:
    """How many of the runs share no event."""
    n, end = 0, -1
    for place in places:
        if place >= end:
            n, end = n + 1, place + length
    return n
