"""Old ledgers must still open: one of every version, with the sums, entries and head that they had.

`v1-people.ledger` was written by a Spinney that kept ledgers as JSON, `v2-people.ledger` by the first that kept
databases. They stay as they are: files like them are out in the world.
"""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import spinney as sp
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import ComposedRelease, DiscreteLaplaceCounts, NotPrivate

FOLDER = Path(__file__).parent
HEAD = "15:3b715e7c353a5fafa44975fae17fb41bbac749c7e0feb142140f98680deb9ef9"


def test_a_ledger_of_version_1_is_what_it_was(tmp_path):
    """It opens, and goes on as a database with the same charges."""
    path = tmp_path / "people.ledger"
    shutil.copy(FOLDER / "v1-people.ledger", path)
    ledger = sp.Ledger.open(path)
    assert (ledger.limit, ledger.spent, ledger.spent_delta) == (Fraction(5, 2), Fraction(4, 3), Fraction(1, 10**6))
    assert [type(event) for event in ledger.events] == [DiscreteLaplaceCounts, NotPrivate, ComposedRelease]
    before = ledger.events
    ledger.charge(DiscreteLaplaceCounts(Fraction(1, 2), 2, "counts"))
    assert sp.Ledger.open(path).events[:3] == before
    assert sp.Ledger.open(path).spent == Fraction(11, 6)
    assert verify_ledger(path).checks


def test_a_ledger_of_version_2_is_what_it_was(tmp_path):
    """Every kind of entry, by the same head."""
    path = tmp_path / "people.ledger"
    shutil.copy(FOLDER / "v2-people.ledger", path)
    assert verify_ledger(path, head=HEAD).head == HEAD
    ledger = sp.Ledger.open(path, population="patients")
    assert (ledger.limit, ledger.spent, ledger.needs_approval) == (3, Fraction(10, 21), True)
    assert [(charge.table, charge.release, charge.error) for charge in ledger.charges] == [
        ("visits", "cd" * 32, None),
        ("visits", None, "MemoryError"),
    ]
    assert [request.state for request in ledger.requests] == ["denied", "approved"]
    kinds = {entry.kind for entry in ledger.entries}
    assert kinds >= {"opened", "population", "limit", "policy", "table", "request", "denial", "charge", "brand"}
