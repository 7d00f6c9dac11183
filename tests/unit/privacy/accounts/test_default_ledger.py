"""The ledger of a machine, what a fit leaves on record, and the verbs of `spinney ledger`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, LedgerWarning, ParameterError
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.release.file import digest
from support.command_line import spinney, write_people


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=2, delta="1e-5", population="patients")
    return path


@pytest.fixture
def machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPINNEY_LEDGER", str(path))
    return path


def test_every_fit_charges_the_ledger_of_the_machine(machine, square):
    """By every door, where none is named; `ledger=False` is none in so many words, and another ledger is another."""
    sp.KDTreeSynthesizer("0.25").fit(*square)
    sp.synthesize(*square, epsilon="0.25", n_rows=5)
    release = sp.GridSynthesizer("0.25", bins=2).fit(*square, ledger=None).release_
    sp.buy_answer(release, "count where x > 0.5", square[0], epsilon="0.25")
    assert sp.Ledger.open(machine).spent == 1
    own = sp.Ledger(limit=1)
    sp.KDTreeSynthesizer("0.5").fit(*square, ledger=own)
    fitted = sp.KDTreeSynthesizer("0.5").fit(*square, ledger=False)
    assert (own.spent, fitted.ledger_.spent) == (Fraction(1, 2), Fraction(1, 2))
    assert sp.Ledger.open(machine).spent == 1
    with pytest.raises(BudgetError):
        sp.KDTreeSynthesizer(2).fit(*square)
    with pytest.raises(ParameterError, match="ledger is missing"):
        sp.buy_answer(release, "count", square[0], epsilon="0.1", ledger=False)
    with pytest.raises(ParameterError, match="ledger is a int"):
        sp.KDTreeSynthesizer(1).fit(*square, ledger=0)


def test_persons_charge_it_too(tmp_path, monkeypatch):
    path = tmp_path / "persons.ledger"
    sp.Ledger.create(path, limit=20, delta="1e-5", unit="replace-one-person")
    monkeypatch.setenv("SPINNEY_LEDGER", str(path))
    table = {"who": np.arange(300) % 100, "x": np.random.default_rng(0).random(300)}
    import pyarrow as pa

    schema = sp.Schema({"who": sp.Identifier(), "x": sp.Real(0, 1)}, person="who", most_rows=5)
    model = sp.LinkedSynthesizer("9").fit(pa.table(table), schema)
    (charge,) = sp.Ledger.open(path).charges
    assert charge.release == digest(model.release_)


def test_a_fit_that_fails_is_on_record_as_one(path, square, monkeypatch):
    """The charge stays, and the kind of error stands beside it, without a word of what it said."""

    def fail(*_, **__):
        raise ValueError("SECRET")

    monkeypatch.setattr("spinney.tree.moments.grow_leaves", fail)
    with pytest.raises(sp.SpinneyError, match="was charged to"):
        sp.KDTreeSynthesizer("0.5").fit(*square, ledger=path)
    ledger = sp.Ledger.open(path)
    assert {(charge.error, charge.release) for charge in ledger.charges} == {("ValueError", None)}
    assert ledger.spent == Fraction(1, 2)
    assert b"SECRET" not in path.read_bytes()
    assert "failed: ValueError" in spinney("ledger", path).out


def test_a_release_outlives_a_ledger_that_went_away(path, square, monkeypatch):
    """What was paid for is not lost because its digest could not be recorded: a warning says so."""

    def gone(*_):
        raise sp.SpinneyError("the server is away")

    monkeypatch.setattr(SharedLedger, "record_release", gone)
    model = sp.KDTreeSynthesizer("0.5")
    with pytest.warns(LedgerWarning, match="the server is away"):
        model.fit(*square, ledger=path)
    assert len(model.sample(5)) == 5


def test_the_command_line_keeps_to_the_machine(machine, tmp_path):
    """fit charges it with what was said, prints the head, and can be told to charge none."""
    table, schema = write_people(tmp_path)
    common = ["fit", table, "--schema", schema, "--epsilon", "0.5", "--method", "tree"]
    run = spinney(*common, "--out", tmp_path / "1.spinney", "--purpose", "a map", "--table", "people", "--json")
    assert run.json["ledger"]["head"] == sp.Ledger.open(machine).head
    (charge, *_) = sp.Ledger.open(machine).charges
    assert (charge.purpose, charge.table) == ("a map", "people")
    assert charge.release == digest(sp.load(tmp_path / "1.spinney"))
    shown = spinney("ledger", "show", machine).out
    assert "a map" in shown
    assert charge.release[:12] in shown
    assert spinney(*common, "--out", tmp_path / "2.spinney", "--no-ledger").status == 0
    assert sp.Ledger.open(machine).spent == Fraction(1, 2)
    for wrong in (["--no-ledger", "--ledger", machine], ["--no-ledger", "--purpose", "p"], ["--population", "nobody"]):
        assert spinney(*common, "--out", tmp_path / "3.spinney", *wrong).status == 2
    assert not (tmp_path / "3.spinney").exists()


def test_the_verbs_of_a_team(tmp_path, monkeypatch):
    """create, request, approve, fit --request, raise, policy, population, bind: by two users of one file."""
    path = tmp_path / "team.ledger"
    table, schema = write_people(tmp_path)

    def work_as(user):
        monkeypatch.setattr(SqliteStore, "user", lambda _store: user)

    def by(user, *arguments):
        work_as(user)
        return spinney("ledger", *arguments)

    assert by("kim", "create", path, "--limit", "1", "--population", "patients", "--approval").status == 0
    fit = ["fit", table, "--schema", schema, "--epsilon", "0.5", "--method", "tree", "--ledger", path]
    work_as("ann")
    refused = spinney(*fit, "--out", tmp_path / "r.spinney")
    assert refused.status == 1
    assert "approved request" in refused.err
    asked = by("ann", "request", path, "--epsilon", "0.5", "--purpose", "report", "--json")
    number = asked.json["request"]
    assert by("ann", "approve", path, number).status == 2
    approved = by("kim", "approve", path, number).out.splitlines()
    assert approved == [f"request {number} is approved", f"head {sp.Ledger.open(path).head}"]
    assert by("kim", "deny", path, number, "--why", "late").status == 2
    work_as("ann")
    assert spinney(*fit, "--out", tmp_path / "r.spinney", "--request", number).status == 0
    assert spinney(*fit, "--out", tmp_path / "s.spinney", "--request", number).status == 1
    assert by("kim", "requests", path, "--json").json["requests"][0]["state"] == "used"
    assert "report" in by("kim", "requests", path).out
    assert by("kim", "raise", path, "--limit", "3", "--why", "agreed").status == 0
    assert by("kim", "raise", path, "--why", "nothing").status == 2
    assert by("kim", "policy", path, "--no-approval", "--why", "small team").status == 0
    assert by("kim", "population", path, "staff", "--limit", "1").status == 0
    assert by("kim", "bind", path, "people", "--population", "patients", "--schema", schema).status == 0
    assert [each["population"] for each in by("ann", path, "--json").json["overview"]] == ["patients", "staff"]
    shown = by("ann", "show", path, "--population", "patients", "--json").json
    assert (shown["limit"], shown["spent"], shown["approval"]) == ("3", "1/2", False)
    head = by("ann", "head", path).out.strip()
    assert by("ann", "verify", path, "--head", head, "--json").json["head"] == head


def test_made_up_tables_charge_nobody(machine, tmp_path):
    """The demonstration is about nobody."""
    assert spinney("demo", "--out", tmp_path / "demo").status == 0
    assert sp.Ledger.open(machine).spent == 0
