"""Whether a ledger holds the charges of a release: its events, one after the other, as a fit records them.

A ledger in a database names the release that came of a charge by its digest. Elsewhere, and where the fit ended before
its release was recorded, it says what was charged and not for which file, so that two releases of equal charges cannot
be told apart: the run that is found may be that of another release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spinney.errors import FileError
from spinney.privacy.accounts.places import default_population, store_at
from spinney.privacy.accounts.records import events_of
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.verifying import all_charges, find_release
from spinney.privacy.events import Event
from spinney.privacy.ledger import Ledger
from spinney.release.model import Release
from spinney.release.storage import digest


@dataclass(frozen=True, slots=True)
class FoundCharge:
    """Where the charges of a release stand in a ledger: the numbers of their entries, and how often."""

    entries: tuple[int, ...]  # as `spinney ledger show` numbers them; in memory, events counted from 1
    n_events: int
    n_runs: int  # how many runs of the same charges there are; one of them is that of the release
    by_digest: bool = False  # whether the ledger names the release itself
    said: str = ""  # then: who charged what, and when
    population: str | None = None  # that paid, in a database

    @property
    def first(self) -> int:
        """The number of the first entry."""
        return self.entries[0]


def find_charge(ledger: Ledger, release: Release) -> FoundCharge | None:
    """The charges of a release in a ledger, in any of its populations; None where none of its unit holds them.

    Raises:
        FileError: the ledger names the release, and was charged for it something else than its card lists.
    """
    wanted = release.card.events
    if not wanted:
        return None
    if isinstance(ledger, SharedLedger):
        named = find_release(ledger, digest(release), wanted)
        if named is not None:
            if not named.agrees:
                raise FileError(f"the ledger names this release, and other charges than its card lists: {named}")
            numbers = tuple(charge.number for charge in named.charges)
            paid_by = named.charges[0].population
            return FoundCharge(numbers, len(wanted), 1, by_digest=True, said=str(named), population=paid_by)
    found: FoundCharge | None = None
    for population, held in _held(ledger, release.card.unit):
        runs = _runs([event for _number, event in held], wanted)
        if not runs:
            continue
        n_runs = _n_apart([run[0] for run in runs], len(wanted))
        if found is not None:
            found = replace(found, n_runs=found.n_runs + n_runs)
            continue
        numbers = tuple(dict.fromkeys(held[place][0] for place in runs[0]))
        found = FoundCharge(numbers, len(wanted), n_runs, population=population)
    return found


def open_for(place: str | Path, release: Release) -> SharedLedger:
    """A ledger, with the population that paid for a release, where it holds several.

    Raises:
        FileError: it holds several, and none of them holds the charges of the release.
    """
    ledger = SharedLedger(store_at(place))
    if len(ledger.populations) > 1:
        found = find_charge(ledger, release)
        if found is not None:
            return Ledger.open(place, population=found.population)
        if default_population() is None:
            raise FileError(
                f"the ledger {ledger.address!r} has {len(ledger.populations)} populations, and none of them holds the "
                "charges of this release; name one with SPINNEY_POPULATION"
            )
    return Ledger.open(place)


def _held(ledger: Ledger, unit: str) -> list[tuple[str | None, list[tuple[int, Event]]]]:
    """The events of every population that is of a unit, each with the number of its entry.

    Those that the ledger has for another release, or for a fit that failed, are none that this one may claim.
    """
    if not isinstance(ledger, SharedLedger):
        return [(None, list(enumerate(ledger.events, start=1)))] if ledger.unit.value == unit else []
    ended = {charge.number for charge in all_charges(ledger) if charge.release is not None or charge.error is not None}
    return [
        (
            population.name,
            [
                (entry.number, event)
                for entry in ledger.entries
                if entry.kind in ("charge", "brand") and entry.fields["population"] == population.name
                if entry.number not in ended
                for event in events_of(entry) or ()
            ],
        )
        for population in ledger.populations
        if population.room.unit.value == unit
    ]


def _runs(held: Sequence[Event], wanted: Sequence[Event]) -> list[list[int]]:
    """Where the wanted events stand, all of them in order; others may have charged in between."""
    n = len(wanted)
    runs = [place for place in range(len(held) - n + 1) if tuple(held[place : place + n]) == tuple(wanted)]
    if runs:
        return [list(range(place, place + n)) for place in runs]
    places: list[int] = []
    for place, event in enumerate(held):
        if len(places) < n and event == wanted[len(places)]:
            places.append(place)
    return [places] if len(places) == n else []


def _n_apart(places: Sequence[int], length: int) -> int:
    """How many of the runs share no event."""
    n, end = 0, -1
    for place in places:
        if place >= end:
            n, end = n + 1, place + length
    return n
