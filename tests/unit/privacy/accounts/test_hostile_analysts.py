"""An analyst who wants to stop others, or to take their releases: what a server and a file do not let them do.

On a server the analyst has a client of their own, so entries are sent as they are (`raw`); in a file entries are
proposed to the rules. Whatever was tried, the others open the ledger and charge it.
"""

from __future__ import annotations

import json
from fractions import Fraction
from secrets import token_hex

import psycopg
import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy.accounts import postgres as postgres_module
from spinney.privacy.accounts.chain import BOUNDS, GRAIN, KINDS, counted
from spinney.privacy.accounts.verifying import find_release, verify_ledger
from spinney.privacy.budget import parse_fraction
from spinney.privacy.mechanisms import (
    _EVENTS,
    _PARTS,
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    Field,
    GaussianTables,
    GaussianVector,
    LeafMoments,
    NotPrivate,
    PartitionSelection,
    Selection,
    Selections,
    SplitDecisions,
    TreeShapes,
    UnsafeEntropy,
    WeightedTables,
    event_to_dict,
    fields_of,
)
from support.command_line import spinney

DIGEST = "ab" * 32
REFUSED = (psycopg.Error, ParameterError, BudgetError)


def counts(epsilon, note="counts") -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note=note)


def raw(place, user, kind, said):
    """Send an entry as it is: to the server by a client of one's own, or to the rules of a file."""
    if place.server is None:
        ledger = place.open(user, population=said.get("population", "people"))
        ledger._store.append(ledger._state, [(kind, said)])
        return
    with psycopg.connect(place.address_of(user), autocommit=True) as connection:
        query = "SELECT * FROM spinney_ledger.analyst_append(%s, %s::json, %s, %s)"
        connection.execute(query, (kind, json.dumps(said, ensure_ascii=False), "0", said.get("key") or token_hex(16)))


def charge_of(epsilon, population="people", fit=None, **changes):
    event = event_to_dict(counts("1/2")) | {"epsilon": str(epsilon)}
    return {
        "key": token_hex(16), "fit": fit or token_hex(16), "population": population, "unit": "replace-one",
        "epsilon": str(epsilon), "delta": "0", "events": json.dumps([event]),
    } | changes  # fmt: skip


def brand_of(fit=None, population="people", events='[{"event": "NotPrivate", "note": "n"}]'):
    return {"key": token_hex(16), "fit": fit or token_hex(16), "population": population, "events": events}


@pytest.fixture
def team(place):
    place.create(limit=10, delta="1e-3", population="people")
    return place


def goes_on(place):
    """Everybody opens the ledger, charges it, and finds it in order."""
    before = place.open("ann").spent
    place.open("ann").charge(counts("1/10"))
    assert place.open("bob").spent == before + Fraction(1, 10)
    assert verify_ledger(place.address).checks


# ------------------------------------------------------------------------------------- what nobody could read again


def test_numbers_that_grow_are_not_stored(postgres):
    """1e131000 is short as it is sent and long as it is kept: a ledger with it would open for nobody."""
    postgres.create(limit=10, population="people")
    grown = ",".join(["1e131000"] * 10)
    for kind, events in (
        ("brand", f'[{{"event": "NotPrivate", "note": "n", "x": [{grown}]}}]'),
        ("brand", '[{"event": "NotPrivate", "note": 1e131000}]'),
        ("charge", json.dumps([event_to_dict(counts("1/2"))]).replace('"sensitivity": 2', '"sensitivity": 1e131000')),
    ):
        said = charge_of("1/2", events=events) if kind == "charge" else brand_of(events=events)
        with pytest.raises(psycopg.Error):
            raw(postgres, "bob", kind, said)
    with pytest.raises(psycopg.Error):
        raw(postgres, "bob", "charge", charge_of("1/2") | {"request": 10**300})
    goes_on(postgres)


def test_texts_are_as_long_as_they_are_kept(postgres):
    """The length counts after a text was brought into its form, which has more spaces than the one that was sent."""
    postgres.create(limit=10, population="people")
    event = event_to_dict(counts("1/1000"))
    many = json.dumps([event | {"note": "]" * 3_780}] * 256, separators=(",", ":"))
    assert len(many) < 1_000_000 < len(json.dumps(json.loads(many)))
    fits = json.dumps([event | {"note": "\\" * 1_800}] * 256, separators=(",", ":"))
    raw(postgres, "bob", "charge", charge_of("256/1000", events=fits))  # twice as long in the entry, read by everybody
    for longer in (many, json.dumps([event | {"note": "\U0001f600" * 65_000}] * 5, ensure_ascii=False)):
        with pytest.raises(psycopg.Error, match="longer than 1000000 bytes"):
            raw(postgres, "bob", "charge", charge_of("256/1000", events=longer))
    goes_on(postgres)


EXAMPLES = [
    DiscreteLaplaceCounts(Fraction(1, 3), 2, "n", stage="bounds", times=3, column="a \"b\" \\ é"),
    LeafMoments(Fraction(1, 3), 2, "n", stage="leaves"),
    SplitDecisions(Fraction(1, 3), "privtree", Fraction(1, 7), 12, "n", stage="trees", times=2, decay=2**60),
    DiscreteGaussianVector(Fraction(1, 3), Fraction(1, 10**6), Fraction(4), Fraction(100), "n"),
    Selection(Fraction(1, 3), "n", stage="prior", times=4),
    PartitionSelection(Fraction(1, 3), Fraction(1, 10**6), "n", stage="values", column="c"),
    ComposedRelease(
        Fraction(1, 3), Fraction(1, 10**6),
        (
            GaussianTables(Fraction(400), 2, "n", stage="pairs"), TreeShapes(Fraction(1, 9), 5, 3, 2, "n"),
            Selections(Fraction(1, 8), 2, "n", stage="row selection"), GaussianVector(Fraction(1, 8), "n"),
            WeightedTables(Fraction(1, 8), 3, "n", stage="row tables"),
        ), "n",
    ),
]  # fmt: skip


def test_a_server_takes_every_event_that_we_have(postgres):
    """What we write, with every field said or left out, comes back as it was; the kinds and their stages are ours."""
    postgres.create(limit=100, delta="1e-3", population="people", unit="replace-one-person")
    hand = postgres.open("ann").start()
    hand._record(*EXAMPLES)
    hand.brand(UnsafeEntropy("n"))
    hand.brand(NotPrivate("n"))
    assert postgres.open("bob").events == (*EXAMPLES, UnsafeEntropy("n"), NotPrivate("n"))
    assert {type(event) for event in postgres.open("bob").events} == set(_EVENTS.values())


def test_a_server_holds_the_tables_that_python_checks_by(postgres):
    """Every kind of entry, event and part, with its writers and each of its fields; and every bound."""
    postgres.create(limit=1)
    held = {name: set(writers) for name, writers in of_server(postgres, "SELECT name, writers FROM {}kinds")}
    assert held == {name: set(kind.writers) for name, kind in KINDS.items()} | {key: set() for key in _EVENTS | _PARTS}
    ours = {name: kind.fields for name, kind in KINDS.items()}
    ours |= {name: fields_of(kind) for name, kind in (_EVENTS | _PARTS).items()}
    names = "thing, name, kind, (low).n, (low).d, (high).n, (high).d, ends, pattern, is_needed, otherwise"
    for thing, name, kind, n, d, most, per, ends, pattern, is_needed, otherwise in of_server(
        postgres, f"SELECT {names} FROM {{}}fields"
    ):
        low = None if n is None else Fraction(int(n), int(d))
        high = None if most is None else Fraction(int(most), int(per))
        found = Field(
            kind=kind, low=low, high=high, ends=ends, pattern=pattern, is_needed=is_needed, otherwise=otherwise
        )
        assert ours[thing].get(name) == found, (thing, name)
        ours[thing] = {left: field for left, field in ours[thing].items() if left != name}
    assert not any(ours.values())
    assert {name: int(value) for name, value in of_server(postgres, "SELECT name, value FROM {}bounds")} == BOUNDS


TEXTS = ["", " ", "x", "x" * 200, "x" * 201, "x" * 2_001, "é\n", "a" * 32, "A" * 32, "a" * 64, "1:" + "a" * 64, "0:1"]
NUMBERS = ["0", "1", "1/2", "4/2", "1/0", "-1/2", "1048576", "1048577", "1/1073741824", "1/1073741825", "32", "33"]
NUMBERS += [
    "1024",
    "1025",
    "1/68719476736",
    "1/68719476737",
    "1/" + "9" * 700,
    "1/" + "9" * 2_000,
    "NaN",
    " 1",
    "1/2\n",
]
WORDS = ["rows", "row tables", "pairs", "privtree", "paper", "replace-one", "add-remove-person", "rows|pairs", "Rows"]
OTHERS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    256,
    257,
    4_096,
    4_097,
    2**16,
    2**16 + 1,
    10**6,
    10**6 + 1,
    2**40,
    2**60,
    2**60 + 1,
]
OTHERS += [10**400, 1.0, 0.5, [], [1], [1] * 257, {}]


def test_python_and_a_server_agree_on_every_field(postgres):
    """Whatever value a field is given: both take it, or both refuse it."""
    postgres.create(limit=1)
    query = "SELECT spinney_ledger.check_value(%s::json, f) FROM spinney_ledger.fields f WHERE (thing, name) = (%s, %s)"
    things = {name: kind.fields for name, kind in KINDS.items()}
    things |= {name: fields_of(kind) for name, kind in (_EVENTS | _PARTS).items()}
    cases = {field: (thing, name) for thing, fields in things.items() for name, field in fields.items()}
    with psycopg.connect(postgres.server.url(), autocommit=True) as connection:
        connection.execute("SET search_path = spinney_ledger, pg_temp")
        for field, (thing, name) in cases.items():
            for value in (*TEXTS, *NUMBERS, *WORDS, *OTHERS):
                try:
                    connection.execute(query, (json.dumps(value), thing, name))
                    is_taken = True
                except psycopg.Error:
                    is_taken = False
                assert takes(field, value, name) == is_taken, (thing, name, value)


def takes(field, value, name):
    """Whether Python takes a value; exact numbers are written with whole numerators and denominators."""
    if field.kind == "exact" and value is not None:
        if not isinstance(value, str) or not value.replace("/", "", 1).isdecimal():
            return False
        try:
            value = parse_fraction(value, name)
        except ParameterError:
            return False
    try:
        field(value, name)
    except (ParameterError, BudgetError):
        return False
    return True


def of_server(place, query):
    return place.server.execute(query.format("spinney_ledger."))


# -------------------------------------------------------------------------------------------- what costs nothing


def test_requests_that_nobody_decided_on_are_bounded(team, monkeypatch):
    most = 100 if team.server else 5
    monkeypatch.setitem(BOUNDS, "pending requests", most)
    asked = {"population": "people", "table": None, "epsilon": "1/4", "delta": "0", "purpose": "p"}
    ledger = team.open("bob")
    ledger._store.append(ledger._state, [("request", asked)] * most)
    with pytest.raises(REFUSED, match=f"{most} requests"):
        raw(team, "bob", "request", asked)
    team.open("kim").deny(team.open("bob").requests[0].number, why="w")
    raw(team, "bob", "request", asked)
    team.open("ann").request("1/4", purpose="p")
    goes_on(team)


def test_brands_that_nobody_paid_for_are_bounded(team, monkeypatch):
    most, many = (100, 64) if team.server else (5, 5)
    monkeypatch.setitem(BOUNDS, "unpaid fits", most)
    monkeypatch.setitem(BOUNDS, "brands of a fit", many)
    ledger = team.open("bob")
    fit = token_hex(16)
    ledger._store.append(ledger._state, [("brand", brand_of(fit)) for _ in range(many)])
    with pytest.raises(REFUSED, match=f"{many} brands"):
        raw(team, "bob", "brand", brand_of(fit))
    ledger._store.append(ledger._state, [("brand", brand_of()) for _ in range(most - 1)])
    with pytest.raises(REFUSED, match=f"{most} brands of fits that charged nothing"):
        raw(team, "bob", "brand", brand_of())
    team.open("ann").brand(NotPrivate("mine"))
    goes_on(team)


def test_a_brand_is_a_note(team):
    """Long brands are refused, in bytes: one that costs nothing does not bloat what everybody reads."""
    for note in ("n" * 4_000, "\U0001f600" * 1_000):
        events = json.dumps([{"event": "NotPrivate", "note": note}], ensure_ascii=False)
        with pytest.raises(REFUSED, match="a brand is longer than 4,000 bytes"):
            raw(team, "bob", "brand", brand_of(events=events))
    raw(team, "bob", "brand", brand_of(events=json.dumps([{"event": "NotPrivate", "note": "n" * 3_900}])))
    goes_on(team)


def composed(*parts, delta="1/1000000"):
    event = ComposedRelease(Fraction(1, 1000), Fraction(delta), parts, "forest")
    return charge_of("1/1000", delta=delta, events=json.dumps([event_to_dict(event)]))


def test_composed_charges_are_what_everybody_can_work_out(team):
    """A delta that composition never promises would fail `verify` for good; thousands of levels would take hours."""
    part = GaussianVector(Fraction(1, 2**30), "x")
    with pytest.raises(REFUSED, match="below 1e-10"):
        raw(team, "bob", "charge", composed(part, delta="1/10000000001"))
    raw(team, "bob", "charge", composed(part, delta="1/10000000000"))
    tree = TreeShapes(Fraction(1, 2**20), 2**20, 512, 1, "x")
    for parts in ((tree, tree, tree), (part,) * 65):
        with pytest.raises(REFUSED, match=r"more than 64 parts, .* more than 1,024 levels"):
            raw(team, "bob", "charge", composed(*parts))
    raw(team, "bob", "charge", composed(tree, tree))
    goes_on(team)


def test_nobody_fills_a_server_alone(postgres):
    """What an analyst may write is a tenth of a ledger; the others go on, and what was begun can end."""
    postgres.create(limit=10, population="people")
    hand = postgres.open("bob").start()
    hand.charge(counts("1/10"))
    raw(postgres, "bob", "charge", charge_of("1/10") | {"purpose": "x" * 2000, "table": "y" * 200})
    long = json.dumps([event_to_dict(counts("1/10", "\U0001f600" * 10_000))])
    raw(postgres, "bob", "charge", charge_of("1/10", events=long))
    raw(postgres, "bob", "brand", brand_of())
    assert postgres.server.execute("SELECT n, n_free FROM spinney_ledger.writers") == [(1 + 1 + 11 + 1, 1)]
    postgres.server.execute("UPDATE spinney_ledger.writers SET n_free = 5000")
    asked = {"population": "people", "table": None, "epsilon": "1/4", "delta": "0", "purpose": "p"}
    for kind, said in (("brand", brand_of()), ("request", asked)):
        with pytest.raises(psycopg.Error, match="at most 5,000 requests and brands"):
            raw(postgres, "bob", kind, said)
    raw(postgres, "bob", "charge", charge_of("1/10"))
    postgres.server.execute("UPDATE spinney_ledger.writers SET n = 100000")
    with pytest.raises(psycopg.Error, match="at most 100,000"):
        raw(postgres, "bob", "charge", charge_of("1/1000000"))
    hand.record_release(DIGEST)
    goes_on(postgres)


# -------------------------------------------------------------------------------------------------- others' releases


def test_only_who_charged_a_fit_brands_it_and_only_before_it_ends(team):
    hand = team.open("ann").start()
    hand.charge(counts("1/10"))
    with pytest.raises(REFUSED, match="one user"):
        raw(team, "bob", "brand", brand_of(hand._fit))
    hand.brand(NotPrivate("mine"))
    hand.record_release(DIGEST)
    for user in ("ann", "bob"):
        with pytest.raises(REFUSED):
            raw(team, user, "brand", brand_of(hand._fit))
    assert find_release(team.address, DIGEST, (counts("1/10"), NotPrivate("mine"))).agrees


def test_a_release_is_of_who_recorded_it(team):
    """A digest that somebody else recorded is not another's; the same user may make the same release twice."""
    other = team.open("bob").start()
    other.charge(counts("1/1000"))
    hand = team.open("ann").start()
    hand.charge(counts("1/10"))
    hand.record_release(DIGEST)
    with pytest.raises(REFUSED, match="on record as"):
        raw(team, "bob", "released", {"fit": other._fit, "release": DIGEST})
    with pytest.raises(ParameterError, match="on record as 'ann'"):
        other.record_release(DIGEST)
    again = team.open("ann").start()
    again.charge(counts("1/5"))
    again.record_release(DIGEST)
    for epsilon in ("1/10", "1/5"):
        found = find_release(team.address, DIGEST, (counts(epsilon),))
        assert found.agrees
        assert {charge.user for charge in found.charges} == {"ann"}


def test_a_brand_may_come_before_the_charges_of_a_request(place):
    """A fit that begins with a brand takes its request with its first charge."""
    place.create(limit=1, approval=True)
    number = place.open("ann").request("1/2", purpose="p")
    place.open("kim").approve(number)
    hand = place.open("ann", request=number).start()
    hand.brand(NotPrivate("bounds"))
    hand.charge(counts("1/4"))
    hand.charge(counts("1/4"))
    hand.record_release(DIGEST)
    assert [charge.request for charge in place.open("bob").charges] == [number, number]


# ----------------------------------------------------------------------------------------------- tables and sums


def test_a_keeper_takes_a_table_back_that_a_charge_bound(team):
    """A charge of next to nothing binds a name and a schema to the wrong population; a keeper's word is stronger."""
    team.open("kim").add_population("others", limit=1)
    raw(team, "bob", "charge", charge_of("1/1000000000", "others", table="visits", schema=DIGEST))
    hand = team.open("ann", population="people", table="visits").start(schema=DIGEST)
    with pytest.raises(ParameterError, match="two budgets"):
        hand.charge(counts("1/10"))
    team.open("kim", population="people").bind("visits", schema=DIGEST)
    hand.charge(counts("1/10"))
    with pytest.raises(REFUSED):
        raw(team, "bob", "charge", charge_of("1/1000000000", "others", table="visits"))
    with pytest.raises(REFUSED, match="same schema"):
        raw(team, "bob", "charge", charge_of("1/1000000000", "others", schema=DIGEST))
    with pytest.raises(ParameterError, match="two budgets"):
        team.open("kim", population="others").bind("visits")  # what a keeper bound stays
    team.open("ann", population="people").start(schema=DIGEST).charge(counts("1/10"))


def test_long_denominators_do_not_stop_others(team):
    """Odd amounts are exact in their own fit, and counted up to a multiple that all sums have in common."""
    exact = Fraction(0)
    for power in (779, 778, 777, 776, 775, 774):
        for odd in (1, 3, 7, 9):
            amount = Fraction(1, 10**power - odd)
            raw(team, "bob", "charge", charge_of(amount))
            exact += amount
    ledger = team.open("ann")
    assert exact <= ledger.spent <= exact + Fraction(24, GRAIN)
    assert GRAIN % ledger.spent.denominator == 0
    for epsilon in ("1/7", "1/10", "1/2", "1"):
        before = ledger.spent
        ledger.charge(counts(epsilon))
        assert ledger.spent == before + Fraction(epsilon)
    assert verify_ledger(team.address).checks


def test_what_one_fit_costs_is_rounded_up_once(place):
    """Shares of odd denominators that add up to the limit fit into it."""
    place.create(limit=1)
    hand = place.open("ann").start()
    for share in (Fraction(1, 101), Fraction(37, 103), 1 - Fraction(1, 101) - Fraction(37, 103)):
        hand.charge(counts(share))
        assert hand.spent >= sum(charge.epsilon for charge in hand.charges)
    assert hand.spent == 1
    with pytest.raises(REFUSED, match="does not fit"):
        raw(place, "bob", "charge", charge_of(Fraction(1, 10**700), "default"))


def test_usual_amounts_are_counted_as_they_are():
    for amount in ("0.1", "1e-9", "1e-40", "1/3", "1/7", "5/12", "1/29", "3/1024", "0.0123456789"):
        assert counted(Fraction(amount)) == Fraction(amount)
    for amount in (Fraction(1, 31), Fraction(1, 10**43), Fraction(10**50 + 1, 10**50)):
        assert amount < counted(amount) < amount + Fraction(1, GRAIN)


def test_a_population_that_moved_away_is_not_charged(team, tmp_path):
    """Not by a client of one's own either; a server's population moves to a file as a file's does to a server."""
    team.open("ann").charge(counts("1/10"))
    hand = sp.Ledger.create(tmp_path / "elsewhere.ledger", limit=1, population="x").take_over(team.address_of("kim"))
    assert (hand.population, hand.spent, hand.limit) == ("people", Fraction(1, 10), 10)
    with pytest.raises(REFUSED, match="closed here: it was moved to"):
        raw(team, "bob", "charge", charge_of("1/1000000000"))
    assert verify_ledger(team.address).checks


# ------------------------------------------------------------------------------------------------ lies and locks


def test_verify_lists_every_charge_that_is_not_what_it_says(team):
    """A composed charge whose parts cost more is named with its user, and so are all others."""
    for user in ("bob", "ann"):
        liar = ComposedRelease(Fraction(1, 1000), Fraction(1, 10**6), (GaussianVector(Fraction(100), "x"),), "lie")
        raw(team, user, "charge", charge_of("1/1000", delta="1/1000000", events=json.dumps([event_to_dict(liar)])))
        team.open("ann").charge(counts("1/10"))
    with pytest.raises(FileError, match=r"2 of 4 charges") as caught:
        verify_ledger(team.address, head=team.open("ann").head)
    said = str(caught.value)
    assert "entry 3, by bob at 20" in said
    assert "entry 5, by ann at 20" in said
    assert "the head that was written down is one of its entries" in said
    run = spinney("ledger", "verify", team.address)
    assert run.status == 1
    assert "entry 3, by bob" in run.err


def test_who_holds_the_lock_is_named(postgres, monkeypatch):
    """Somebody who forgets to end a transaction is cut off by the server, and named to those who wait."""
    postgres.create(limit=10, population="people")
    monkeypatch.setattr(postgres_module, "PATIENCE", 0.2)
    said = charge_of("1/10")
    with psycopg.connect(postgres.address_of("bob")) as other:
        other.execute(
            "SELECT * FROM spinney_ledger.analyst_append('charge', %s::json, '0', %s)",
            (json.dumps(said), said["key"]),
        )
        assert other.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("10s",)
        process = other.info.backend_pid
        with pytest.raises(FileError, match=rf"locked by bob, .*pg_terminate_backend\({process}\)"):
            postgres.open("ann").charge(counts("1/10"))
        other.rollback()
    goes_on(postgres)


def test_roles_are_those_of_one_database(postgres):
    """Who may charge one ledger of a server may not charge the others."""
    database = postgres.server.new_database()
    try:
        sp.Ledger.create(postgres.server.url(database), limit=1)
        with pytest.raises(FileError, match="spinney_analyst_DATABASE"):
            sp.Ledger.open(postgres.server.url(database, "ann"))
        postgres.server.execute(f"GRANT spinney_analyst_{database} TO ann")
        sp.Ledger.open(postgres.server.url(database, "ann")).charge(counts("1/10"))
    finally:
        postgres.server.execute(f"DROP DATABASE {database} WITH (FORCE)")
        postgres.server.execute(f"DROP ROLE spinney_analyst_{database}, spinney_keeper_{database}")
