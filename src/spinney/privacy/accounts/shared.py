"""A ledger in a database: `Ledger`, with others at the same account. What it knows is `kept`; here it is written.

`start` gives a hand for one release. Its charges carry one key, a request pays for one such release, and what came of
the charges is recorded under the same key: the digest of the release, or that the fit failed.
"""

from __future__ import annotations

import json
from copy import copy
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Any

from spinney.errors import BudgetError, ParameterError
from spinney.privacy import guard
from spinney.privacy.accounts.chain import FORMAT_VERSION, Entry
from spinney.privacy.accounts.charging import check_charge
from spinney.privacy.accounts.fields import LONGEST_NAME, Charged, clean_text
from spinney.privacy.accounts.importing import move
from spinney.privacy.accounts.kept import KeptLedger
from spinney.privacy.accounts.places import Store, store_at
from spinney.privacy.accounts.records import ChargeOnRecord
from spinney.privacy.accounts.state import State
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.events import Charge, Event, event_to_dict, total_delta, total_epsilon
from spinney.privacy.ledger import parse_limits
from spinney.privacy.turns import turn
from spinney.shown import brief


class SharedLedger(KeptLedger):
    """A `Ledger` in a database, with one population of it to charge; see `Ledger.create` and `Ledger.open`."""

    # After `take_over`: tables of the population that belong to another one here, and were left there.
    tables_elsewhere: tuple[str, ...] = ()

    def __init__(
        self,
        store: Store,
        *,
        population: str | None = None,
        table: str | None = None,
        purpose: str | None = None,
        request: int | None = None,
    ) -> None:
        super().__init__(store, population=population)
        self._table = None if table is None else clean_text(table, "table", LONGEST_NAME)
        self._purpose = None if purpose is None else clean_text(purpose, "purpose")
        self._request = None if request is None else int(guard.whole(1, 10**6)(request, "request"))
        self._schema: str | None = None
        self._fit: str | None = None
        self._key: str | None = None

    @classmethod
    def create_at(
        cls, place: str | Path, *, limit: Any, delta: Any, unit: Unit | str, population: str, approval: bool
    ) -> SharedLedger:
        store = store_at(place)
        opened = {"ledger": token_hex(16), "format_version": FORMAT_VERSION, "imported": None}
        described = _population(population, limit, delta, unit, approval=approval)
        store.create([("opened", opened), ("population", described)])
        return cls.open_at(place, population=population)

    @classmethod
    def open_at(cls, place: str | Path, **details: Any) -> SharedLedger:
        ledger = cls(store_at(place), **details)
        ledger._read()
        ledger._named = ledger._population().name  # which has to be there, and stays the one that is charged
        return ledger

    # ------------------------------------------------------------------------------------------------------- charging

    def start(self, *, schema: str | None = None) -> SharedLedger:
        hand = copy(self)
        hand._fit, hand._schema = self._key or token_hex(16), schema
        return hand

    def under(self, key: str) -> SharedLedger:
        """A hand for one release whose charges carry a key that the caller has chosen, and so can find them again."""
        hand = copy(self)
        hand._key = clean_text(key, "key", LONGEST_NAME)
        return hand

    def paid_under(self, key: str) -> tuple[ChargeOnRecord, ...]:
        """The charges that carry a key; none where nothing was charged under it."""
        fit = self._read().fits.get(key)
        numbers = set() if fit is None else {entry.number for entry in fit.charges}
        return tuple(charge for charge in self.charges if charge.number in numbers)

    def paid(self) -> tuple[ChargeOnRecord, ...]:
        return () if self._fit is None else self.paid_under(self._fit)

    def require(self, epsilon: Fraction, *, unit: Unit, delta: Fraction = Fraction(0)) -> None:
        epsilon, delta = guard.fraction(epsilon, "epsilon"), guard.fraction(delta, "delta")
        if epsilon < 0 or delta < 0:
            raise ParameterError(f"epsilon={brief(epsilon)} and delta={brief(delta)} must not be negative")
        with turn():
            state = self._present()
            name, where = self._population().name, (self._table, self._schema)
            charged = Charged(name, Unit.parse(unit), epsilon, delta, *where, self._purpose)
            fit = self._fit or ""
            user = self._store.user() if self._request is not None or fit in state.fits else ""
            check_charge(state, charged, fit=fit, user=user, request=self._request)

    def charge(self, *charges: Charge) -> None:
        self._check_charges(charges)
        with turn():
            if self._state.is_provisional:  # a charge that is refused leaves a file of version 1 as it is
                self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
            try:
                self._record(*charges)  # which checks all that `require` does, where nobody can come in between
            except (BudgetError, ParameterError):
                self.require(total_epsilon(charges), unit=self.unit, delta=total_delta(charges))
                raise

    def _present(self) -> State:
        """What is on record, of a ledger that is there: nothing is charged from memory."""
        self._store.read(self._state)
        return self._state

    def _record(self, *events: Event) -> None:
        if not events:
            return
        if not self._state.number:
            self._present()
        fit, key = self._fit or token_hex(16), token_hex(16)
        listed = json.dumps([event_to_dict(event) for event in events], ensure_ascii=False)
        fields: dict[str, Any] = {"key": key, "fit": fit, "population": self._population().name}
        if not all(isinstance(event, Charge) for event in events):
            self._append("brand", {**fields, "events": listed})
            return
        self._append(
            "charge",
            {
                **fields,
                "unit": self._population().room.unit.value,
                "table": self._table,
                "schema": self._schema,
                "purpose": self._stated_purpose(),
                "request": self._request,
                "imported": False,
                "epsilon": str(total_epsilon(events)),
                "delta": str(total_delta(events)),
                "events": listed,
            },
        )

    def _stated_purpose(self) -> str | None:
        """What the charges are for: what was said, or else what was asked for."""
        request = self._state.requests.get(self._request or 0)
        return request.purpose if self._purpose is None and request is not None else self._purpose

    def _append(self, kind: str, fields: dict[str, Any]) -> Entry:
        with turn():
            return self._store.append(self._state, [(kind, fields)])[-1]

    def _was_charged(self) -> bool:
        begun = self._present().fits.get(self._fit or "")
        return begun is not None and bool(begun.charges)

    def record_release(self, digest: str) -> None:
        if self._was_charged():
            self._append("released", {"fit": self._fit, "release": digest})

    def record_failure(self, error: str) -> None:
        if self._was_charged():
            self._append("failed", {"fit": self._fit, "error": error})

    # --------------------------------------------------------------------------------------------- what keepers do

    def add_population(
        self, name: str, *, limit: Any, delta: Any = 0, unit: Unit | str = Unit.REPLACE_ONE, approval: bool = False
    ) -> SharedLedger:
        """Another population, with limits of its own; a hand that charges it."""
        self._append("population", _population(name, limit, delta, unit, approval=approval))
        hand = copy(self)
        hand._named = name
        return hand

    def set_limits(self, limit: Any = None, delta: Any = None, *, why: str) -> None:
        """Raise or lower the limits of this population; one that is left out stays. Who and why is on record."""
        room = self._room()
        epsilon = room.limit if limit is None else parse_epsilon(limit, "limit")
        allowed = room.delta_limit if delta is None else parse_delta(delta)
        if epsilon is None:
            raise ParameterError("this population only counts; give a limit of epsilon")
        fields = {"population": self.population, "epsilon": str(epsilon), "delta": str(allowed or 0)}
        self._append("limit", {**fields, "why": clean_text(why, "why")})

    def set_policy(self, *, approval: bool, why: str) -> None:
        """Whether charges to this population need an approved request from now on."""
        fields = {"population": self.population, "approval": bool(approval)}
        self._append("policy", {**fields, "why": clean_text(why, "why")})

    def bind(self, table: str, *, schema: str | None = None) -> None:
        """Bind a table to this population, by its name and the digest of its schema (`digests.schema_digest`)."""
        fields = {"population": self.population, "table": clean_text(table, "table", LONGEST_NAME), "schema": schema}
        self._append("table", fields)

    def approve(self, request: int) -> None:
        """Approve somebody else's request."""
        self._append("approval", {"request": request})

    def deny(self, request: int, *, why: str) -> None:
        """Deny a request."""
        self._append("denial", {"request": request, "why": clean_text(why, "why")})

    def request(self, epsilon: Any, delta: Any = 0, *, purpose: str, table: str | None = None) -> int:
        """Ask for a budget; the number that `approve` and a fit name."""
        fields = {
            "population": self.population,
            "table": self._table if table is None else clean_text(table, "table", LONGEST_NAME),
            "epsilon": str(parse_epsilon(epsilon)),
            "delta": str(parse_delta(delta)),
            "purpose": clean_text(purpose, "purpose"),
        }
        return self._append("request", fields).number

    def take_over(self, place: str | Path, *, population: str | None = None, source: str | None = None) -> SharedLedger:
        """Close a population of another ledger, and take it over with all that it spent; a hand on it here.

        Where this was interrupted, doing it again finishes it: until then the budget is in neither ledger.

        Args:
            place: the path or the address of the other ledger, which stays as it is, closed.
            population: what the population is called here; by default as there.
            source: which population of the other ledger it is; by default the only one.
        """
        with turn():
            moved = move(store_at(place), self._store, self._state, source=source, name=population)
        hand = copy(self)
        hand._named, hand.tables_elsewhere = moved.population, moved.tables_elsewhere
        return hand


def _population(name: str, limit: Any, delta: Any, unit: Unit | str, *, approval: bool) -> dict[str, Any]:
    epsilon, allowed = parse_limits(limit, delta)
    return {
        "population": clean_text(name, "population", LONGEST_NAME),
        "unit": Unit.parse(unit).value,
        "epsilon": None if epsilon is None else str(epsilon),
        "delta": None if allowed is None else str(allowed),
        "approval": bool(approval),
        "imported": None,
    }
