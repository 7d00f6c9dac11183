"""Whether a ledger is what it was: its chain, its rules, its sums, and the last head that was written down.

    total cost      what all charges of a population cost together
    verifying       every entry, every rule, every charge
    one release     the charges that paid for one release

A chain that is whole shows that nobody edited one entry without the others. Whoever can write the database can
write all of it anew, and then only a head that was kept elsewhere can tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from spinney.errors import FileError, SpinneyError
from spinney.privacy.accounts.chain import Entry, events_of, parse_head
from spinney.privacy.accounts.postgres import PostgresStore
from spinney.privacy.accounts.rules import (
    ChargeOnRecord,
    Fit,
    State,
    brand_warning,
    brands_of,
    charges_of,
    events_on_record,
)
from spinney.privacy.accounts.shared import SharedLedger, store_at
from spinney.privacy.accounts.sqlite import SqliteStore, first_bytes
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import (
    LARGEST_TIMES,
    Charge,
    ComposedRelease,
    Event,
    GaussianVector,
    Part,
    total_delta,
    total_epsilon,
)
from spinney.progress import waiting

# ----------------------------------------------------------------------------------------------------------- total cost
# What all charges of a population cost together: by addition, and by their loss distributions composed as one.
#
# The sum is what limits are held to: it is a bound even where a charge was chosen in view of earlier releases
# (composition.proof.md, filters). The composed figure is smaller where many Gaussian releases were made. It is
# a bound where the parts of all releases were settled before the first of them, and is shown for information:
# nothing is refused or granted by it.


MOST_PARTS = 128
_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Together:
    """(epsilon, delta) of several composed releases taken as one, and of everything else by addition.

    `epsilon` is None where working it out would take too long; the sum of all charges holds all the same.
    """

    epsilon: Fraction | None
    delta: Fraction
    n_composed: int


def composed_together(events: Iterable[Event], unit: Unit) -> Together | None:
    """What events cost together; None where that is no less than their sum."""
    from spinney.privacy.composition import LARGEST_WORK, composing_work

    events = tuple(events)
    composed = [event for event in events if isinstance(event, ComposedRelease)]
    if len(composed) < 2:
        return None
    parts = _merged(part for event in composed for part in event.parts)
    if len(parts) > MOST_PARTS or composing_work(parts, unit) > LARGEST_WORK:
        return Together(None, total_delta(events), len(composed))
    epsilon = _least_epsilon(parts, total_epsilon(composed), total_delta(composed), unit)
    if epsilon is None:
        return None
    others = total_epsilon(events) - total_epsilon(composed)
    return Together(epsilon + others, total_delta(events), len(composed))


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Parts of one law as one part with more repetitions: they compose alike, and faster."""
    times: dict[Part, int] = defaultdict(int)
    for part in parts:
        # A vector is one by its kind: repeated ones stay apart.
        alone = part if isinstance(part, GaussianVector) else replace(part, times=1, note="", stage=None)
        times[replace(alone, note="", stage=None)] += part.times
    merged: list[Part] = []
    for part, n in times.items():
        if isinstance(part, GaussianVector):
            merged += [part] * n
            continue
        merged += [replace(part, times=min(n - taken, LARGEST_TIMES)) for taken in range(0, n, LARGEST_TIMES)]
    return merged


def _least_epsilon(parts: list[Part], most: Fraction, delta: Fraction, unit: Unit) -> Fraction | None:
    """The smallest epsilon of a fine grid at which the parts together are certainly within delta."""
    from spinney.privacy.composition import composed_delta, composed_deltas

    grid = float(most) * np.arange(1, _STEPS + 1, dtype=np.float64) / _STEPS
    within = np.flatnonzero(composed_deltas(parts, grid, unit) <= float(delta))
    for place in within[:3]:
        epsilon = most * int(place + 1) / _STEPS
        if epsilon < most and composed_delta(parts, epsilon, unit) <= delta:
            return epsilon
    return None


# ------------------------------------------------------------------------------------------------------------ verifying


@dataclass(frozen=True, slots=True)
class LedgerVerification:
    """What was looked at, and what a reader should know besides."""

    head: str
    checks: tuple[str, ...]
    remarks: tuple[str, ...]


@waiting("verifying the ledger")
def verify_ledger(place: str | Path, *, head: str | None = None) -> LedgerVerification:
    """Read a ledger from its first entry to its last; a FileError says what is wrong with it.

    Args:
        place: the path of the ledger, or its address.
        head: what `spinney ledger head` or a fit printed at some time; without it a ledger that was rewritten as a
            whole, cut off or replaced by an older copy looks as good as any.
    """
    wanted = None if head is None else parse_head(head)
    store, state = store_at(place), State()
    store.read(state)
    if isinstance(store, SqliteStore) and first_bytes(store.path)[:1] != b"S":
        if wanted is not None:
            raise FileError(f"{store.shown} is of version 1, which has no head: it was restored from an old copy")
        remarks = [*_remarks(state), _OLD]
        return LedgerVerification(state.head, ("every number is possible",), tuple(remarks))
    checks = [
        f"{state.number:,} entries, each with the hash of the one before",
        "every entry keeps to the rules: limits, requests, approvals, tables",
    ]
    remarks = _remarks(state)
    faults, n_charges = _faults_of_charges(state, remarks), sum(entry.kind == "charge" for entry in state.entries)
    if not faults:
        checks.append(f"{n_charges:,} charges cost what their events cost, and composed ones no less than their parts")
    if isinstance(store, PostgresStore):
        _check_sums(store, state)
        checks.append("the sums and limits that the server keeps are those of the entries")
    if wanted is None:
        remarks.append(
            "no head was given, so a ledger that was rewritten as a whole, cut off or replaced by an older copy would "
            "look the same: say --head with the last one that anyone wrote down"
        )
    else:
        _check_head(state, wanted, store.shown)
        checks.append("the head that was written down is one of its entries")
    if faults:
        listed = "".join(f"\n  {fault}" for fault in faults)
        raise FileError(
            f"{store.shown} is a Spinney ledger with inconsistent contents: {len(faults):,} of {n_charges:,} charges "
            f"are not what they say:{listed}\nEverything else is in order: {'; '.join(checks)}"
        )
    return LedgerVerification(state.head, tuple(checks), tuple(remarks))


_OLD = (
    "a ledger of version 1 has no chain: anybody who could write the file could change it; the next charge gives it one"
)


def head_of(place: str | Path) -> str:
    """The number and the hash of the last entry of a ledger; a FileError where it is of version 1 and has none."""
    store, state = store_at(place), State()
    store.read(state)
    if isinstance(store, SqliteStore) and first_bytes(store.path)[:1] != b"S":
        raise FileError(f"{store.shown} is of version 1, which has no head; the next charge gives it one")
    return state.head


def _check_head(state: State, wanted: tuple[int | None, str], where: str) -> None:
    number, written = wanted
    if any(entry.hash == written and number in (None, entry.number) for entry in state.entries):
        return
    if number is not None and number > state.number:
        raise FileError(
            f"{where} has {state.number:,} entries, and the head that was written down is of entry {number:,}: its "
            "tail was cut off, or it is an older copy"
        )
    which = "no entry has" if number is None else f"entry {number:,} does not have"
    raise FileError(
        f"{where}: {which} the hash that was written down: an entry up to there was edited, removed or put in another "
        "place, its tail was cut off, or another ledger was put in its place"
    )


def _remarks(state: State) -> list[str]:
    warning = brand_warning(brands_of(state))
    remarks = [] if warning is None else [warning]
    late = [entry for before, entry in zip(state.entries, state.entries[1:], strict=False) if entry.time < before.time]
    if late:
        remarks.append(
            f"the clock ran backwards before entry {late[0].number:,}; the order of entries is that of their numbers"
        )
    remarks += [
        f"the population {population.name!r} has spent more than its limits allow"
        for population in state.populations.values()
        if population.room.is_overdrawn
    ]
    remarks += [
        f"the population {population.name!r} is closed: it was moved to {population.moved_to}"
        for population in state.populations.values()
        if population.moved_to is not None
    ]
    closed = {entry.fields["population"] for entry in state.entries if entry.kind == "closed"}
    remarks += [
        f"the population {name!r} was closed, and opened again here by a later limit: it may have two budgets"
        for name in sorted(closed)
        if state.populations[name].moved_to is None
    ]
    raised = Counter(entry.fields["population"] for entry in state.entries if entry.kind == "limit")
    remarks += [f"the limits of the population {name!r} were changed {n} times" for name, n in raised.items()]
    remarks += [
        f"entry {entry.number:,}, {entry.user} at {entry.time[:19]}Z: charges to the population "
        f"{entry.fields['population']!r} need {'approval' if entry.fields['approval'] else 'no approval any more'}: "
        f"{entry.fields['why']}"
        for entry in state.entries
        if entry.kind == "policy"
    ]
    imported = sum(entry.kind == "charge" and entry.fields.get("imported") is True for entry in state.entries)
    if imported:
        remarks.append(
            f"{imported:,} charges were imported: who made them before, and when, is not known here, and they were not "
            "held to limits and approvals"
        )
    return remarks


def _faults_of_charges(state: State, remarks: list[str]) -> list[str]:
    """Charges whose amounts are not those of their events, or whose parts cost more: by entry and user, all of them."""
    faults, unread = [], 0
    for entry in state.entries:
        if entry.kind != "charge":
            continue
        events = events_of(entry)
        if events is None:
            unread += 1
            continue
        try:
            _check_charge(entry, events)
        except SpinneyError as err:
            faults.append(f"entry {entry.number}, by {entry.user} at {entry.time[:19]}Z: {err}")
    if unread:
        remarks.append(
            f"{unread:,} charges list events that this Spinney cannot read; their amounts count all the same"
        )
    return faults


def _check_charge(entry: Entry, events: tuple[Event, ...]) -> None:
    from spinney.privacy.composition import check_parts

    amounts = Fraction(entry.fields["epsilon"]), Fraction(entry.fields["delta"])
    if amounts != (total_epsilon(events), total_delta(events)) or not all(isinstance(e, Charge) for e in events):
        raise FileError("it does not cost what its events cost")
    for event in events:
        if isinstance(event, ComposedRelease):
            check_parts(event, Unit.parse(entry.fields["unit"]))


def _check_sums(store: PostgresStore, state: State) -> None:
    kept = store.sums()

    def plain(value: Fraction | None) -> tuple[str | None, str | None]:
        return (None, None) if value is None else (str(value.numerator), str(value.denominator))

    for name, population in state.populations.items():
        room = population.room
        wanted: tuple[Any, ...] = (room.unit.value, str(population.approval).lower(), population.moved_to)
        for amount in (room.limit, room.delta_limit, room.spent, room.spent_delta):
            wanted += plain(amount)
        if kept.get(name) != wanted:
            raise FileError(
                f"{store.shown}: the limits or sums that the server keeps for the population {name!r} are not those of "
                "the entries: somebody changed them beside the ledger"
            )
    if set(kept) != set(state.populations):
        raise FileError(f"{store.shown}: the server keeps populations that no entry made")


# ---------------------------------------------------------------------------------------------------------- one release


def numbered(numbers: Sequence[int]) -> str:
    """Entries by their numbers, as people write them."""
    return f"{'entry' if len(numbers) == 1 else 'entries'} {', '.join(map(str, numbers))}"


@dataclass(frozen=True, slots=True)
class FoundRelease:
    """The charges that paid for a release, and whether they are what its card says."""

    charges: tuple[ChargeOnRecord, ...]
    agrees: bool
    head: str

    def __str__(self) -> str:
        first = self.charges[0]
        cost = sum((charge.epsilon for charge in self.charges), Fraction(0))
        paid = f"epsilon={cost} charged by {first.user} at {first.time} to the population {first.population!r}"
        return f"{paid} ({numbered([charge.number for charge in self.charges])})" + (
            "" if self.agrees else ", for other events than its card lists"
        )


def find_release(ledger: SharedLedger | str | Path, digest: str, events: tuple[Event, ...]) -> FoundRelease | None:
    """The charges of a release, by its digest (`release.file.digest`); None where none is on record.

    Args:
        ledger: an opened ledger, or its path or address; all its populations are looked at.
        digest: the digest of the release.
        events: the events on its card, which should be those that were charged, in order.
    """
    if isinstance(ledger, SharedLedger):
        store, state = ledger._store, State()
    else:
        store, state = store_at(ledger), State()
    store.read(state)
    found = [_found(state, fit, events) for fit in state.fits.values() if fit.release == digest]
    # One user may record one release twice, where its noise came from a seed.
    return next((each for each in found if each.agrees), found[0] if found else None)


def _found(state: State, fit: Fit, events: tuple[Event, ...]) -> FoundRelease:
    listed = tuple(event for _number, event in events_on_record(state, fit=fit.key))
    return FoundRelease(charges_of([fit]), agrees=listed == tuple(events), head=state.head)
