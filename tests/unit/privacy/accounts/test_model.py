"""A ledger against a model of it: whatever is asked of both, in whatever order, both say the same.

The model is a few sums in exact fractions, written without a look at the rules' code. A server is asked without our own
rules in front of it. `SPINNEY_MODEL_RUNS=20` draws twenty times as many examples.
"""

from __future__ import annotations

import os
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import spinney as sp
from spinney.errors import BudgetError, ParameterError, SpinneyError
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import DiscreteGaussianVector, DiscreteLaplaceCounts

AMOUNTS = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1, 7), Fraction(1, 10**9), Fraction(1)])
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3 * 10**6)])
ANALYSTS, KEEPERS = st.sampled_from(["ann", "bob"]), st.sampled_from(["kim", "kay"])
POPULATIONS = st.sampled_from(["one", "two"])
TABLES = st.sampled_from([None, "a", "b"])


def charge_of(epsilon: Fraction, delta: Fraction):
    if not delta:
        return DiscreteLaplaceCounts(epsilon, 2, "n")
    return DiscreteGaussianVector(epsilon, delta, Fraction(1), Fraction(100), "n")


class LedgerModel(RuleBasedStateMachine):
    """Two populations, two analysts, two keepers; `place` says how a ledger is opened by a user."""

    place = None

    @initialize()
    def begin(self):
        self.address_of = self.place()
        SharedLedger.create_at(
            self.address_of("owner"),
            limit=2, delta="1e-5", unit="replace-one", population="one", approval=False,
        )  # fmt: skip
        self.hand("kim", "one").add_population("two", limit=1, delta="1e-6")
        self.limits = {"one": [Fraction(2), Fraction(1, 10**5)], "two": [Fraction(1), Fraction(1, 10**6)]}
        self.spent = {"one": [Fraction(0), Fraction(0)], "two": [Fraction(0), Fraction(0)]}
        self.approval = {"one": False, "two": False}
        self.tables: dict[str, str] = {}
        self.bound: set[str] = set()
        self.requests: dict[int, dict] = {}
        self.heads: list[str] = []

    def hand(self, user, population, **details):
        ledger = sp.Ledger.open(self.address_of(user), population=population, **details)
        if not str(ledger.address).startswith("postgresql"):
            ledger._store.user = lambda: user
        return ledger

    def attempted(self, is_allowed, action):
        """Do what the model allows, and be refused what it does not."""
        try:
            result = action()
        except (BudgetError, ParameterError):
            assert not is_allowed
            return None
        assert is_allowed
        return result

    def fits(self, population, epsilon, delta):
        spent, limits = self.spent[population], self.limits[population]
        return spent[0] + epsilon <= limits[0] and spent[1] + delta <= limits[1]

    def owns(self, table, population):
        return table is None or self.tables.get(table, population) == population

    @rule(user=ANALYSTS, population=POPULATIONS, table=TABLES, epsilon=AMOUNTS, delta=DELTAS, n=st.integers(1, 3))
    def charge(self, user, population, table, epsilon, delta, n):
        ledger = self.hand(user, population, table=table)
        allowed = self.fits(population, n * epsilon, n * delta) and self.owns(table, population)
        allowed = allowed and not self.approval[population]
        self.attempted(allowed, lambda: ledger.charge(*[charge_of(epsilon, delta)] * n))
        if allowed:
            self.paid(population, table, n * epsilon, n * delta)

    def paid(self, population, table, epsilon, delta):
        self.spent[population][0] += epsilon
        self.spent[population][1] += delta
        if table is not None:
            self.tables.setdefault(table, population)

    @rule(user=KEEPERS, population=POPULATIONS, table=st.sampled_from(["a", "b"]))
    def bind(self, user, population, table):
        """What a keeper says of a table overrides what a charge said."""
        allowed = table not in self.bound or self.tables[table] == population
        self.attempted(allowed, lambda: self.hand(user, population).bind(table))
        if allowed:
            self.tables[table] = population
            self.bound.add(table)

    @rule(user=ANALYSTS, population=POPULATIONS, table=TABLES, epsilon=AMOUNTS, delta=DELTAS)
    def ask(self, user, population, table, epsilon, delta):
        ledger = self.hand(user, population)
        number = self.attempted(
            self.owns(table, population), lambda: ledger.request(epsilon, delta, purpose="p", table=table)
        )
        if number is not None:
            self.requests[number] = {
                "user": user, "population": population, "table": table, "epsilon": epsilon, "delta": delta,
                "state": "pending",
            }  # fmt: skip

    @rule(user=KEEPERS, approves=st.booleans(), which=st.integers(0, 4))
    def decide(self, user, approves, which):
        number = self.which(which)
        known = self.requests.get(number)
        ledger = self.hand(user, "one")
        action = (lambda: ledger.approve(number)) if approves else (lambda: ledger.deny(number, why="w"))
        allowed = known is not None and known["state"] == "pending"
        self.attempted(allowed, action)
        if allowed:
            known["state"] = "approved" if approves else "denied"

    def which(self, place):
        numbers = list(self.requests)
        return numbers[place] if place < len(numbers) else 2

    @rule(user=ANALYSTS, which=st.integers(0, 4), table=TABLES, epsilon=AMOUNTS, delta=DELTAS)
    def charge_by_request(self, user, which, table, epsilon, delta):
        number = self.which(which)
        known = self.requests.get(number)
        population = "one" if known is None else known["population"]
        ledger = self.hand(user, population, table=table, request=number)
        allowed = (
            known is not None
            and known["state"] == "approved"
            and known["user"] == user
            and known["table"] in (None, table)
            and epsilon <= known["epsilon"]
            and delta <= known["delta"]
            and self.fits(population, epsilon, delta)
            and self.owns(table, population)
        )
        self.attempted(allowed, lambda: ledger.charge(charge_of(epsilon, delta)))
        if allowed:
            known["state"] = "used"
            self.paid(population, table, epsilon, delta)

    @rule(user=KEEPERS, population=POPULATIONS, limit=AMOUNTS, delta=DELTAS)
    def set_limits(self, user, population, limit, delta):
        self.hand(user, population).set_limits(limit, delta, why="w")
        self.limits[population] = [limit, delta]

    @rule(user=KEEPERS, population=POPULATIONS, approval=st.booleans())
    def set_policy(self, user, population, approval):
        self.hand(user, population).set_policy(approval=approval, why="w")
        self.approval[population] = approval

    @invariant()
    def both_say_the_same(self):
        if not hasattr(self, "spent"):
            return
        for population, (epsilon, delta) in self.spent.items():
            ledger = self.hand("ann", population)
            assert (ledger.spent, ledger.spent_delta) == (epsilon, delta)
            assert [ledger.limit, ledger.delta_limit] == self.limits[population]
        known = {r.number: r.state for p in self.spent for r in self.hand("ann", p).requests}
        assert known == {number: each["state"] for number, each in self.requests.items()}
        self.heads.append(ledger.head)

    def teardown(self):
        if getattr(self, "heads", None):
            for head in {self.heads[0], self.heads[-1]}:
                assert verify_ledger(self.address_of("owner"), head=head).checks


def check(place, n_examples, n_steps):
    """Run the machine. Failures are not made smaller, which would take minutes: their steps are few anyway."""
    machine = type("Checked", (LedgerModel,), {"place": staticmethod(place)})
    limits = settings(
        max_examples=n_examples * int(os.environ.get("SPINNEY_MODEL_RUNS", "1")),
        stateful_step_count=n_steps,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


def test_a_ledger_in_a_file_is_what_the_model_says(tmp_path):
    def place():
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "people.ledger"
        return lambda user: str(path)

    check(place, 6, 16)


def test_a_ledger_on_a_server_is_what_the_model_says(server, monkeypatch):
    monkeypatch.setattr("spinney.privacy.accounts.postgres.rehearsed", lambda *_: None)

    def place():
        server.execute("DROP SCHEMA IF EXISTS spinney_ledger CASCADE")
        return lambda user: server.url(user=user)

    check(place, 4, 12)


@pytest.mark.parametrize("sabotage", ["limits", "requests"])
def test_the_model_would_notice(tmp_path, monkeypatch, sabotage):
    """A ledger that forgets a rule does not pass."""
    if sabotage == "limits":
        monkeypatch.setattr("spinney.privacy.ledger.Room.check", lambda *_: None)
    else:
        monkeypatch.setattr("spinney.privacy.accounts.rules.check_request", lambda *_: None)

    def place():
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "people.ledger"
        return lambda user: str(path)

    with pytest.raises((AssertionError, SpinneyError)):
        check(place, 20, 16)
