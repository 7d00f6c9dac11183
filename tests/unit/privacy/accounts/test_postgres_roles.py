"""An analyst with a database client of their own: what they may not do, the server itself refuses."""

from __future__ import annotations

import json
from fractions import Fraction

import psycopg
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import DiscreteGaussianVector, DiscreteLaplaceCounts, event_to_dict

KEY = "0123456789abcdef" * 2


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


def event(**changes):
    return event_to_dict(counts("1/2")) | changes


def vector():
    return {"part": "GaussianVector", "mean_squared": "1/8", "note": "sums", "stage": None}


def composed(**changes):
    return {"event": "ComposedRelease", "epsilon": "1/2", "delta": "0", "parts": [vector()], "note": "n"} | changes


def charge_fields(events=None, **changes):
    listed = json.dumps([event()] if events is None else events)
    return {"key": KEY, "fit": KEY, "population": "default", "unit": "replace-one", "events": listed} | changes


@pytest.fixture
def ledger(postgres):
    postgres.create(limit=1)
    return postgres


def call(place, user, function, kind, fields, key=KEY):
    with psycopg.connect(place.address_of(user), autocommit=True) as connection:
        query = f"SELECT * FROM spinney_ledger.{function}(%s, %s::json, %s, %s)"
        return connection.execute(query, (kind, json.dumps(fields), "0", key)).fetchone()


STATEMENTS = [
    "INSERT INTO spinney_ledger.entries VALUES (9, '{}', 'x')",
    "UPDATE spinney_ledger.entries SET content = '{}'",
    "DELETE FROM spinney_ledger.entries",
    "TRUNCATE spinney_ledger.entries",
    "UPDATE spinney_ledger.populations SET epsilon_spent = ROW(0, 1)::spinney_ledger.fraction",
    "UPDATE spinney_ledger.populations SET epsilon_limit = ROW(99, 1)::spinney_ledger.fraction",
    "UPDATE spinney_ledger.head SET number = 1",
    "DELETE FROM spinney_ledger.keys",
    "SELECT * FROM spinney_ledger.keys",
    "UPDATE spinney_ledger.requests SET state = 'approved'",
    "DROP TABLE spinney_ledger.entries",
    "DROP SCHEMA spinney_ledger CASCADE",
    "ALTER TABLE spinney_ledger.entries DISABLE TRIGGER ALL",
    "DROP TRIGGER entries_are_not_changed ON spinney_ledger.entries",
    "CREATE OR REPLACE FUNCTION spinney_ledger.is_at_most(a spinney_ledger.fraction, b spinney_ledger.fraction) "
    "RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE TABLE spinney_ledger.mine (x int)",
    "SET SESSION AUTHORIZATION kim",
    "SET ROLE spinney_keeper_postgres",
    "SET ROLE owner",
    "GRANT spinney_keeper_postgres TO ann",
    "SELECT spinney_ledger.append('limit', '{}', '0', 'x', true)",
    "SELECT spinney_ledger.take_decision('limit', '{}')",
    "SELECT spinney_ledger.take_charge('{}')",
    "SELECT * FROM spinney_ledger.entries FOR UPDATE",
    "CREATE FUNCTION spinney_ledger.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "BEGIN; LOCK TABLE spinney_ledger.entries IN EXCLUSIVE MODE",
    "COPY spinney_ledger.entries FROM PROGRAM 'true'",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_analyst_can_neither_alter_nor_delete(one_for_all, statement):
    """Nor become somebody else, nor call what the server calls for itself."""
    before = one_for_all.open("ann").head
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        one_for_all.server.execute(statement, user="ann", database=one_for_all.database)
    assert one_for_all.open("ann").head == before


def test_one_function_each_is_what_users_may_call(one_for_all):
    """Everything else is called by these two, in a search path that nobody else can put anything into."""

    def asked(query):
        return one_for_all.server.execute(query, database=one_for_all.database)

    functions = "FROM pg_proc p WHERE p.pronamespace = 'spinney_ledger'::regnamespace"
    for user, own in (("ann", "analyst_append"), ("kim", "keeper_append"), ("stranger", None)):
        callable_ = asked(f"SELECT p.proname {functions} AND has_function_privilege('{user}', p.oid, 'execute')")
        assert callable_ == ([] if own is None else [(own,)])
    raised = asked(f"SELECT p.proname, p.proconfig {functions} AND p.prosecdef ORDER BY 1")
    path = ["search_path=spinney_ledger, pg_temp"]
    assert raised == [("analyst_append", path), ("keeper_append", path)]
    assert asked(f"SELECT p.proconfig {functions} AND p.proname = 'append'") == [(path,)]
    for user in ("ann", "kim", "stranger"):
        assert asked(f"SELECT has_schema_privilege('{user}', 'spinney_ledger', 'create')") == [(False,)]


@pytest.mark.parametrize("kind", ["population", "limit", "policy", "table", "approval", "denial", "opened", None])
def test_what_keepers_write_is_not_for_analysts(ledger, kind):
    number = ledger.open("ann").request("1/4", purpose="p")
    fields = {"request": number, "population": "default", "epsilon": "9", "delta": "0", "why": "w", "approval": False}
    for function in ("analyst_append", "keeper_append"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            call(ledger, "ann", function, kind, fields | {"unit": "replace-one", "table": "t"})
    assert ledger.open("ann").limit == 1


def test_users_times_and_hashes_are_the_servers(ledger):
    """What an analyst says about them is not taken."""
    forged = {
        "user": "kim",
        "time": "1999-01-01T00:00:00.000000Z",
        "number": 99,
        "hash": "0" * 64,
        "previous": "0" * 64,
    }
    call(ledger, "ann", "analyst_append", "charge", charge_fields(**forged, imported=True, epsilon="0", delta="0"))
    (charge,) = ledger.open("bob").charges
    entry = ledger.open("bob").entries[-1]
    assert (charge.user, entry.number, charge.epsilon) == ("ann", 3, Fraction(1, 2))
    assert entry.time > "2026"
    assert entry.fields["imported"] is False
    assert verify_ledger(ledger.address).checks


def test_the_limit_is_the_servers(ledger):
    """A charge over the limit, or of an import that lets limits aside, is refused whatever the client claims."""
    with pytest.raises(psycopg.Error, match="does not fit"):
        call(ledger, "ann", "analyst_append", "charge", charge_fields([event(epsilon="3/2")], imported=True))
    composed = event_to_dict(DiscreteGaussianVector(Fraction(1, 2), Fraction(1, 10), Fraction(1), Fraction(9), "n"))
    with pytest.raises(psycopg.Error, match="delta=1/10 does not fit"):
        call(ledger, "ann", "analyst_append", "charge", charge_fields([composed]))
    with pytest.raises(psycopg.Error, match="does not fit"):
        call(ledger, "ann", "analyst_append", "charge", charge_fields([event(epsilon="1/2")] * 3))
    assert ledger.open("ann").spent == 0


EVENTS = {
    "a refund": [event(epsilon="-1/2")],
    "nothing": [event(epsilon="0")],
    "a number": [event(epsilon=0.5)],
    "null": [event(epsilon=None)],
    "NaN": [event(epsilon="NaN")],
    "infinity": [event(epsilon="Infinity")],
    "a float": [event(epsilon="0.5")],
    "an exponent": [event(epsilon="1e-3")],
    "spaces": [event(epsilon=" 1/2")],
    "a line break": [event(epsilon="1/2\n")],
    "a division by zero": [event(epsilon="1/0")],
    "too much": [event(epsilon="1048577")],
    "too many digits": [event(epsilon="1/" + "9" * 900)],
    "a delta where none belongs": [event(delta="1/9")],
    "no delta where one belongs": [event() | {"event": "ComposedRelease"}],
    "a delta of one": [event() | {"event": "ComposedRelease", "delta": "1"}],
    "an unknown kind": [event() | {"event": "Refund"}],
    "a brand": [{"event": "NotPrivate", "note": "n"}],
    "a charge and a brand": [event(), {"event": "NotPrivate", "note": "n"}],
    "none": [],
    "no list": {"event": "DiscreteLaplaceCounts"},
    "a list of texts": ["x"],
    "a list of lists": [[event()]],
    "too many": [event(epsilon="1/1000000")] * 300,
    "an unknown field": [event(deep=[[[[[]]]]])],
    "a missing field": [{name: value for name, value in event().items() if name != "stage"}],
    "a note that is none": [event(note=5)],
    "an endless note": [event(note="x" * 70_000)],
    "a sensitivity below one": [event(sensitivity=-5)],
    "a sensitivity that is none": [event(sensitivity=1.5)],
    "a number that grows": [event(sensitivity=10**400)],
    "a stage of another kind": [event(stage="row tables")],
    "parts that are none": [composed(parts=[])],
    "parts of no kind": [composed(parts=[{"part": "Refund", "note": "n"}])],
    "a part that is too small": [composed(parts=[{**vector(), "mean_squared": "1/99999999999999"}])],
    "a part with more to it": [composed(parts=[{**vector(), "x": 1}])],
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_charges_that_cost_nothing_sensible_are_refused(one_for_all, events):
    with pytest.raises(psycopg.Error):
        call(one_for_all, "ann", "analyst_append", "charge", charge_fields(events))
    assert len(one_for_all.open("ann").charges) == 1


FIELDS = {
    "another unit": {"unit": "add-remove"},
    "no unit": {"unit": None},
    "no population": {"population": "nobody"},
    "no key": {"key": None},
    "another key": {"key": "f" * 32},
    "a short fit": {"fit": "abc"},
    "a purpose that is none": {"purpose": 5},
    "an endless purpose": {"purpose": "x" * 3000},
    "an endless table": {"table": "x" * 300},
    "a schema that is none": {"schema": "x" * 64},
    "a request that is none": {"request": "2"},
    "a request of nobody": {"request": 2},
    "events that are none": {"events": "["},
    "events of no text": {"events": [event()]},
}


@pytest.mark.parametrize("changes", FIELDS.values(), ids=FIELDS)
def test_fields_that_no_spinney_wrote_are_refused(one_for_all, changes):
    with pytest.raises(psycopg.Error):
        call(one_for_all, "ann", "analyst_append", "charge", charge_fields() | changes)
    assert len(one_for_all.open("ann").charges) == 1


def test_keepers_do_not_approve_their_own_requests(ledger):
    """A keeper who is an analyst too needs another keeper."""
    ledger.server.execute("GRANT spinney_analyst_postgres TO kay")
    try:
        number = ledger.open("kay").request("1/4", purpose="p")
        with pytest.raises(sp.SpinneyError, match="somebody else has to approve"):
            ledger.open("kay").approve(number)
        ledger.open("kim").approve(number)
    finally:
        ledger.server.execute("REVOKE spinney_analyst_postgres FROM kay")


def test_strangers_see_nothing(ledger):
    with pytest.raises(FileError, match="spinney_analyst"):
        ledger.open("stranger")
    with pytest.raises(FileError, match="spinney_analyst"):
        ledger.open("kim").charge(counts("1/4"))  # a keeper is no analyst


def test_not_even_the_owner_changes_entries_by_mistake(ledger):
    for statement in STATEMENTS[1:4]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="neither changed nor removed"):
            ledger.server.execute(statement)


def test_sums_that_were_changed_beside_the_ledger_are_noticed(ledger):
    """The owner can change what follows from the entries, and `verify` tells."""
    ledger.open("ann").charge(counts("1/2"))
    for change in (
        "epsilon_spent = ROW(0, 1)::spinney_ledger.fraction",
        "epsilon_limit = ROW(9, 1)::spinney_ledger.fraction",
        "approval = true",
    ):
        ledger.server.execute("BEGIN; " + "UPDATE spinney_ledger.populations SET " + change + "; COMMIT")
        with pytest.raises(FileError, match="beside the ledger"):
            verify_ledger(ledger.address)
        ledger.server.execute(
            "UPDATE spinney_ledger.populations SET epsilon_spent = ROW(1, 2)::spinney_ledger.fraction, "
            "epsilon_limit = ROW(1, 1)::spinney_ledger.fraction, approval = false"
        )
        assert verify_ledger(ledger.address).checks


def test_passwords_are_not_shown(ledger):
    address = ledger.address_of("ann").replace("ann@", "ann:SECRET@")
    opened = sp.Ledger.open(address)
    assert "SECRET" not in f"{opened!r} {opened.address} {vars(opened._store).keys()}"
    with pytest.raises(sp.SpinneyError) as caught:
        opened.charge(counts(5))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(FileError) as caught:
        sp.Ledger.open("postgresql://ann:SECRET@127.0.0.1:1/none")
    assert "SECRET" not in str(caught.value)
