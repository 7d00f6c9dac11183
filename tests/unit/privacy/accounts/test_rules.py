"""The rules of a ledger, in a file and on a server: limits, populations, tables, requests, what came of a charge."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy.accounts.verifying import find_release, verify_ledger
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import DiscreteGaussianVector, DiscreteLaplaceCounts, NotPrivate

DIGEST, OTHER = "ab" * 32, "cd" * 32


def counts(epsilon, note="counts") -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note=note)


def sums(epsilon, delta) -> DiscreteGaussianVector:
    return DiscreteGaussianVector(Fraction(epsilon), Fraction(delta), Fraction(4), Fraction(100), note="sums")


def test_a_charge_says_who_when_and_what_for(place):
    """User, time, purpose, table and events are on record, and the head changes with every entry."""
    place.create(delta="1e-6")
    ledger = place.open("ann", table="visits", purpose="annual report é")
    before = ledger.head
    ledger.charge(counts("1/3"), sums("0.25", "1e-7"))
    (charge,) = place.open("bob").charges
    assert (charge.user, charge.table, charge.purpose) == ("ann", "visits", "annual report é")
    assert (charge.epsilon, charge.delta) == (Fraction(7, 12), Fraction(1, 10**7))
    assert charge.events == (counts("1/3"), sums("0.25", "1e-7")) == ledger.events
    assert charge.time.startswith("20")
    assert charge.time.endswith("Z")
    assert ledger.head != before
    assert ledger.head.startswith("3:")
    assert verify_ledger(place.address, head=before).head == ledger.head


def test_limits_hold_exactly(place):
    """Three thirds fit into one, in exact fractions, and nothing more does, however small."""
    place.create(limit=1)
    ann, bob = place.open("ann"), place.open("bob")
    for ledger in (ann, bob, ann):
        ledger.charge(counts("1/3"))
    assert (ann.spent, bob.remaining) == (1, 0)
    with pytest.raises(BudgetError, match="1 of 1 is spent"):
        bob.charge(counts(Fraction(1, 10**200)))
    with pytest.raises(BudgetError, match="does not fit"):
        bob.charge(sums(Fraction(1, 10**6), "1e-9"))
    assert len(place.open("ann").charges) == 3


def test_charges_of_another_unit_are_refused(place):
    place.create(unit="replace-one-person")
    with pytest.raises(ParameterError, match="unit="):
        place.open("ann").require(Fraction(1), unit=Unit.REPLACE_ONE)


def test_a_copy_is_another_hand(place):
    """Copies and pickles charge the same account."""
    place.create(limit=1)
    ledger = place.open("ann")
    if place.server is None:
        del ledger._store.user
    for copied in (copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
        copied(ledger).charge(counts("1/4"))
    assert ledger.spent == Fraction(3, 4)


def test_limits_are_changed_by_an_entry_that_says_who_and_why(place):
    """Raised, what is left grows; lowered below what is spent, nothing more is granted."""
    keeper = place.create(limit=1)
    ann = place.open("ann")
    ann.charge(counts(1))
    keeper.set_limits("1.5", why="the board agreed")
    ann.charge(counts("0.5"))
    keeper.set_limits("0.5", why="a complaint")
    assert ann.is_overdrawn
    with pytest.raises(BudgetError):
        ann.charge(counts("1/100"))
    changed = [entry for entry in ann.entries if entry.kind == "limit"]
    assert [(entry.user, entry.fields["epsilon"], entry.fields["why"]) for entry in changed] == [
        ("kim", "3/2", "the board agreed"),
        ("kim", "1/2", "a complaint"),
    ]
    for wrong in (0, -1, "nan", "inf", 2**30):
        with pytest.raises(ParameterError):
            keeper.set_limits(wrong, why="n")
    with pytest.raises(ParameterError, match="why"):
        keeper.set_limits(3, why="")


# ------------------------------------------------------------------------------------------ populations and tables


def test_populations_have_budgets_of_their_own(place):
    """Each has its unit and limits; where there are several, the one that is charged has to be named."""
    place.create(limit=1, population="patients").add_population("staff", limit="0.5", unit="add-remove")
    with pytest.raises(ParameterError, match=r"several populations.*'patients', 'staff'"):
        place.open("ann")
    with pytest.raises(ParameterError, match="'nobody' is not one of this ledger"):
        place.open("ann", population="nobody")
    patients, staff = place.open("ann", population="patients"), place.open("ann", population="staff")
    patients.charge(counts(1))
    staff.charge(counts("0.5"))
    assert (patients.spent, staff.spent, staff.unit) == (1, Fraction(1, 2), Unit.ADD_REMOVE)
    with pytest.raises(BudgetError):
        staff.charge(counts("0.1"))
    with pytest.raises(ParameterError, match="exists already"):
        place.open("kim", population="staff").add_population("staff", limit=9)


def test_an_opened_ledger_keeps_its_population(place, monkeypatch):
    """What is added later, or named by the machine later, does not change whom it charges."""
    keeper = place.create(limit=1, population="patients")
    ledger = place.open("ann")
    keeper.add_population("staff", limit=5)
    monkeypatch.setenv("SPINNEY_POPULATION", "staff")
    ledger.charge(counts("1/2"))
    assert (ledger.population, ledger.spent) == ("patients", Fraction(1, 2))


def test_the_machine_may_name_the_population(place, monkeypatch):
    place.create(limit=1, population="patients").add_population("staff", limit="0.5")
    monkeypatch.setenv("SPINNEY_POPULATION", "staff")
    assert place.open("ann").limit == Fraction(1, 2)
    assert place.open("ann", population="patients").limit == 1


def test_a_table_belongs_to_one_population(place):
    """After its first charge, or once it is bound, no other population pays for it."""
    keeper = place.create(population="patients")
    keeper.add_population("others", limit=5)
    keeper.bind("wards")
    place.open("ann", population="patients", table="visits").charge(counts("0.1"))
    with pytest.raises(ParameterError, match="two budgets"):
        place.open("kim", population="others").bind("wards")
    for table in ("visits", "wards"):
        with pytest.raises(ParameterError, match="two budgets"):
            place.open("ann", population="others", table=table).charge(counts("0.1"))
        with pytest.raises(ParameterError, match="two budgets"):
            place.open("ann", population="others").request("0.1", purpose="p", table=table)
    assert place.open("ann", population="others").spent == 0


def test_the_same_schema_in_another_population_has_to_be_bound_in_so_many_words(place):
    """The same people by another name would have two budgets; other people of one schema are bound by a keeper."""
    place.create(population="patients").add_population("others", limit=5)
    place.open("ann", population="patients", table="visits").start(schema=DIGEST).charge(counts("0.1"))
    other = place.open("ann", population="others", table="visits again").start(schema=DIGEST)
    with pytest.raises(ParameterError, match="same schema"):
        other.charge(counts("0.1"))
    with pytest.raises(ParameterError, match="same schema"):
        place.open("ann", population="others").start(schema=DIGEST).charge(counts("0.1"))
    place.open("kim", population="others").bind("visits again", schema=DIGEST)
    other.charge(counts("0.1"))
    with pytest.raises(ParameterError, match="another schema"):
        place.open("ann", population="others", table="visits again").start(schema=OTHER).charge(counts("0.1"))


# ---------------------------------------------------------------------------------------------------------- requests


def test_a_population_that_wants_approval_gets_it(place):
    """Without a request, with one that is pending, denied, another's, too small, of another table or used: refused."""
    place.create(limit=2, approval=True)
    ann = place.open("ann")
    with pytest.raises(BudgetError, match="need an approved request"):
        ann.charge(counts("0.1"))
    wanted = ann.request("0.5", purpose="report", table="visits")

    def paid(number, user="ann", table="visits"):
        return place.open(user, request=number, table=table)

    with pytest.raises(BudgetError, match="pending"):
        paid(wanted).charge(counts("0.1"))
    place.open("kim").approve(wanted)
    for refused, amount, why in (
        (paid(wanted, user="bob"), "0.5", "was made by 'ann'"),
        (paid(wanted, table="wards"), "0.5", "for the table 'visits'"),
        (paid(wanted), "0.6", "is asked of it"),
        (paid(99), "0.5", "is not one of the population"),
    ):
        with pytest.raises(BudgetError, match=why):
            refused.charge(counts(amount))
    assert ann.spent == 0
    hand = paid(wanted).start()
    hand.charge(counts("0.2"))
    hand.charge(counts("0.3"))  # of the same release
    with pytest.raises(BudgetError, match="is asked of it"):
        hand.charge(counts("0.1"))
    with pytest.raises(BudgetError, match="has paid for a release already"):
        paid(wanted).charge(counts("0.1"))
    assert [request.state for request in ann.requests] == ["used"]
    denied = ann.request("0.1", purpose="more")
    place.open("kim").deny(denied, why="enough")
    with pytest.raises(BudgetError, match="denied"):
        place.open("ann", request=denied).charge(counts("0.1"))
    assert ann.spent == Fraction(1, 2)
    assert verify_ledger(place.address).checks


def test_requests_are_decided_once_and_by_somebody_else(place):
    place.create(approval=True)
    own = None
    if place.server is None:
        own = place.open("kim").request("0.1", purpose="p")
        with pytest.raises(ParameterError, match="somebody else has to approve"):
            place.open("kim").approve(own)
    number = place.open("ann").request("0.1", purpose="p")
    place.open("kim").approve(number)
    for decide in (place.open("kay").approve, lambda n: place.open("kay").deny(n, why="w")):
        with pytest.raises(ParameterError):
            decide(number)
        with pytest.raises(ParameterError):
            decide(2)  # an entry that is no request


def test_the_policy_can_change(place):
    keeper = place.create()
    place.open("ann").charge(counts("0.1"))
    keeper.set_policy(approval=True, why="two pairs of eyes")
    with pytest.raises(BudgetError, match="approved request"):
        place.open("ann").charge(counts("0.1"))
    keeper.set_policy(approval=False, why="too slow")
    place.open("ann").charge(counts("0.1"))


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "inf", "1e300", True])
def test_requests_of_no_budget_are_refused(place, epsilon):
    place.create()
    with pytest.raises(ParameterError):
        place.open("ann").request(epsilon, purpose="p")
    for text in ("", " ", "x" * 3000, "\0", "\ud800", None, 5):
        with pytest.raises(ParameterError, match="purpose"):
            place.open("ann").request("0.1", purpose=text)


# --------------------------------------------------------------------------------------------- what came of a charge


def test_a_release_is_found_by_its_digest(place):
    """The digest is a later entry that names the fit; what is not on record is not found."""
    place.create()
    hand = place.open("ann", purpose="report").start(schema=OTHER)
    hand.brand(NotPrivate(note="bounds"))
    hand.charge(counts("0.1"))
    hand.charge(counts("0.2"))
    assert find_release(place.address, DIGEST, ()) is None
    hand.record_release(DIGEST)
    events = (NotPrivate(note="bounds"), counts("0.1"), counts("0.2"))
    found = find_release(place.open("bob"), DIGEST, events)
    assert found is not None
    assert found.agrees
    assert [charge.epsilon for charge in found.charges] == [Fraction(1, 10), Fraction(1, 5)]
    assert "ann" in str(found)
    assert not find_release(place.address, DIGEST, events[1:]).agrees
    with pytest.raises(ParameterError, match="already"):
        hand.record_release(OTHER)
    with pytest.raises(ParameterError, match=r"ended already|end with it"):
        hand.charge(counts("0.1"))


def test_only_who_charged_says_what_came_of_it(place):
    place.create()
    hand = place.open("ann").start()
    hand.charge(counts("0.1"))
    forged = place.open("bob").start()
    forged._fit = hand._fit
    with pytest.raises(ParameterError, match=r"ann|no such fit"):
        forged.record_release(DIGEST)
    with pytest.raises(ParameterError, match="one user"):
        forged.charge(counts("0.1"))
    hand.record_failure("MemoryError")
    (charge,) = hand.charges
    assert (charge.release, charge.error) == (None, "MemoryError")
    assert hand.spent == Fraction(1, 10), "a charge whose fit failed stays a charge"


def test_the_same_charge_twice_is_one(place):
    """A replay of an entry with its key is refused, or is the entry that it was, but never a second charge."""
    place.create()
    ledger = place.open("ann")
    ledger.charge(counts("0.1"))
    fields = dict(ledger.entries[-1].fields)
    if place.server is None:
        with pytest.raises(ParameterError, match="on record already"):
            ledger._store.append(ledger._state, [("charge", fields)])
    else:
        with pytest.raises(ParameterError, match="on record already"):
            ledger._store.append(ledger._state, [("charge", fields | {"fit": "0" * 32})])
    assert place.open("ann").spent == Fraction(1, 10)


def test_a_fit_leaves_its_charge_and_its_release(place, square):
    """The whole way: schema, charge and digest are on record, and a fit that fails says so there."""
    place.create(limit=2)
    ledger = place.open("ann", table="points", purpose="a map")
    model = sp.KDTreeSynthesizer("0.5").fit(*square, ledger=ledger)
    from spinney.release.file import digest

    charges = ledger.charges
    assert {charge.release for charge in charges} == {digest(model.release_)}
    assert find_release(ledger, digest(model.release_), model.card_.events).agrees
    assert ledger.entries[-2].fields["schema"] is not None
    assert model.ledger_.head == ledger.head


def test_there_is_one_ledger_at_a_place(place):
    place.create()
    with pytest.raises(FileError, match=r"exists|has a ledger already"):
        place.create(limit=9)
