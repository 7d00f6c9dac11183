"""What a privacy officer sees of a ledger: who decided what and why, and that nobody gets around a limit by a slip."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError
from spinney.privacy.accounts.sqlite import SqliteStore
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.mechanisms import DiscreteGaussianVector, DiscreteLaplaceCounts, NotPrivate
from support.command_line import spinney, write_people


def counts(epsilon: str, note: str = "counts") -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note=note)


def test_no_environment_variable_makes_another_user(tmp_path, monkeypatch):
    """Names in the environment change neither who asked nor who approves."""
    pwd = pytest.importorskip("pwd")
    path = tmp_path / "s.ledger"
    ledger = sp.Ledger.create(path, limit=1, approval=True)
    number = ledger.request("0.5", purpose="p")
    for name in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        monkeypatch.setenv(name, "kim")
    run = spinney("ledger", "approve", path, number)
    assert run.status == 2
    assert "somebody else has to approve it" in run.err
    assert {entry.user for entry in sp.Ledger.open(path).entries} == {pwd.getpwuid(os.geteuid()).pw_name}


def test_a_user_without_a_name_is_a_number(tmp_path, monkeypatch):
    pytest.importorskip("pwd")
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_123)
    assert SqliteStore(tmp_path / "s.ledger").user() == "uid 4000123"


def test_who_is_over_the_limit_is_sent_to_those_who_raise_it(tmp_path: Path) -> None:
    """Nobody is told to open another ledger, which would be the way around the limit."""
    kept = sp.Ledger.create(tmp_path / "s.ledger", limit=1, delta="1e-6")
    vector = DiscreteGaussianVector(Fraction(1, 2), Fraction("1e-5"), Fraction(4), Fraction(100), note="sums")
    with pytest.raises(BudgetError, match=r"; ask for less, or have .*: spinney ledger raise LEDGER --limit \.\.\. "):
        kept.charge(counts("2"))
    with pytest.raises(BudgetError, match=r"; ask for less, or have .*: spinney ledger raise LEDGER --delta \.\.\. "):
        kept.charge(vector)
    with pytest.raises(BudgetError, match=r"; ask for less$"):
        sp.Ledger(limit=1).charge(counts("2"))
    with pytest.raises(BudgetError, match=r"; ask for less$"):
        sp.Ledger(limit=1, delta="1e-6").charge(vector)
    with pytest.raises(BudgetError, match=r"is pure.*spinney ledger raise LEDGER --delta"):
        sp.Ledger.create(tmp_path / "pure.ledger", limit=1).charge(vector)


def test_a_request_pays_for_the_purpose_that_was_approved(place):
    """Another purpose is refused, by the server too; where none is named, that of the request is on record."""
    place.create(limit=2, approval=True)
    number = place.open("ann").request("0.5", purpose="annual report")
    place.open("kim").approve(number)
    other = place.open("ann", request=number, purpose="marketing")
    with pytest.raises(BudgetError, match="is for the purpose 'annual report', and not for 'marketing'"):
        other.require(Fraction(1, 2), unit=other.unit)
    with pytest.raises(BudgetError, match="annual report"):
        other.charge(counts("0.5"))
    with pytest.raises(BudgetError, match="purpose"):
        other._record(counts("0.5"))  # what a client without any check of its own would send
    assert other.spent == 0
    place.open("ann", request=number).charge(counts("0.5"))
    (charge,) = place.open("kim").charges
    assert charge.purpose == "annual report"


def test_who_decided_what_and_why_is_shown(place):
    """Approvals, denials, limits and policies, with user, time and reason: in show, in JSON, by requests and verify."""
    keeper = place.create(limit=1, approval=True)
    first, second = (place.open("ann").request("0.5", purpose=purpose) for purpose in ("annual report", "a draft"))
    keeper.approve(first)
    place.open("kay").deny(second, why="too early")
    keeper.set_limits("3/2", why="the board agreed")
    place.open("kay").set_policy(approval=False, why="a small team")
    decided = keeper.decisions[1:]
    assert [(each.user, each.what, each.why) for each in decided] == [
        ("kim", f"approved request {first} by ann, epsilon 0.5 for annual report", None),
        ("kay", f"denied request {second} by ann, epsilon 0.5 for a draft", "too early"),
        ("kim", "limit 1.5 instead of limit 1", "the board agreed"),
        ("kay", "charges need no approval any more", "a small team"),
    ]
    assert keeper.decisions[0].what == "opened with limit 1, charges need approval"
    address = place.address_of("kim")
    shown, described = spinney("ledger", "show", address).out, spinney("ledger", "show", address, "--json").json
    for each, listed in zip(keeper.decisions, described["decisions"], strict=True):
        assert (listed["time"], listed["user"], listed["what"], listed["why"]) == (
            *(each.time, each.user, each.what, each.why),
        )
        (line,) = (line for line in shown.splitlines() if each.what in line and line.split()[0] == str(each.number))
        assert each.user in line
        assert (each.why or "-") in line
    requests = spinney("ledger", "requests", address).out.splitlines()
    assert "  kim  " in requests[1]
    assert "kay (too early)" in requests[2]
    (remark,) = (remark for remark in verify_ledger(address).remarks if "approval" in remark)
    assert "kay" in remark
    assert "no approval any more: a small team" in remark


def test_brands_are_said_first(tmp_path):
    path = tmp_path / "s.ledger"
    ledger = sp.Ledger.create(path, limit=1, population="patients")
    ledger.add_population("staff", limit=1)
    assert "NOT PRIVATE" not in spinney("ledger", path).out
    ledger.brand(NotPrivate("exact bounds"))
    for options in ([], ["--population", "patients"]):
        assert spinney("ledger", "show", path, *options).out.startswith("NOT PRIVATE: something was released without")
    assert "NOT PRIVATE" not in spinney("ledger", "show", path, "--population", "staff").out
    assert spinney("ledger", "show", path, "--json").json["brands"][0]["note"] == "exact bounds"
    assert verify_ledger(path).remarks[0].startswith("NOT PRIVATE")


def test_imported_charges_are_marked_and_the_old_ledger_is_closed(tmp_path, monkeypatch):
    """Who takes charges over is not who made them; what was taken over is closed rather than overdrawn."""
    monkeypatch.setattr(SqliteStore, "user", lambda _store: "ann")
    old, new = tmp_path / "old.ledger", tmp_path / "new.ledger"
    sp.Ledger.create(old, limit=1, population="patients").charge(counts("0.5"))
    sp.Ledger.create(new, limit=1, population="staff").charge(counts("0.25"))
    monkeypatch.setattr(SqliteStore, "user", lambda _store: "kim")
    assert spinney("ledger", "import", old, new).status == 0
    (charge,) = sp.Ledger.open(new, population="patients").charges
    assert (charge.user, charge.imported_by) == ("unknown", "kim")
    assert "unknown, imported by kim" in spinney("ledger", "show", new, "--population", "patients").out
    staff = spinney("ledger", "show", new, "--population", "staff", "--json").json["charges"][0]
    assert (staff["user"], staff["imported_by"]) == ("ann", None)
    assert any("1 charges were imported" in remark for remark in verify_ledger(new).remarks)
    shown = spinney("ledger", "show", old).out
    assert f"closed, moved to {new}" in shown
    assert "OVERDRAWN" not in shown
    remarks = " ".join(verify_ledger(old).remarks)
    assert "is closed: it was moved to" in remarks
    assert "more than its limits" not in remarks
    with pytest.raises(BudgetError, match="is closed here: it was moved to"):
        sp.Ledger.open(old).charge(counts("0.1"))


def test_several_populations_are_shown_together(tmp_path):
    path = tmp_path / "s.ledger"
    sp.Ledger.create(path, limit=1, population="patients").charge(counts("0.5"))
    sp.Ledger.open(path).add_population("staff", limit=2, delta="1e-6", approval=True)
    lines = spinney("ledger", "show", path).out.splitlines()
    assert lines[0] == "2 populations; show one with --population NAME"
    assert lines[2].split() == ["patients", "0.5", "1", "0", "0", "replace-one", "-"]
    assert lines[3].split()[:3] == ["staff", "0", "2"]
    assert "charges need approval" in lines[3]
    assert spinney("ledger", path).out.splitlines() == lines


def test_a_limit_for_a_ledger_that_exists_points_at_raise(tmp_path):
    path = tmp_path / "town.ledger"
    assert spinney("ledger", path, "--limit", "1").status == 0
    run = spinney("ledger", path, "--limit", "5")
    assert run.status == 2
    assert f"spinney ledger raise {path} --limit 5 --why" in " ".join(run.err.split())
    for wrong in (run, spinney("ledger", path, "--nonsense"), spinney("ledger", path, "--unit", "add-remove")):
        assert "account" not in wrong.err
    assert sp.Ledger.open(path).limit == 1


def test_a_request_for_more_than_is_left_is_warned_of(tmp_path):
    path = tmp_path / "s.ledger"
    sp.Ledger.create(path, limit=1).charge(counts("0.75"))
    assert not spinney("ledger", "request", path, "--epsilon", "0.25", "--purpose", "p").err
    run = spinney("ledger", "request", path, "--epsilon", "0.5", "--delta", "1e-6", "--purpose", "p")
    assert run.status == 0
    assert "asks for epsilon 0.5, and 0.25 is left" in run.err
    assert "asks for delta 1e-06, and 0 is left" in run.err


def test_a_json_ledger_of_another_version_says_that_later_ones_are_databases(tmp_path):
    path = tmp_path / "s.ledger"
    path.write_text('{"format": "spinney-ledger", "format_version": 2}')
    with pytest.raises(FileError, match="JSON ledgers end with version 1: later ones are databases"):
        sp.Ledger.open(path)


def test_a_release_is_found_in_a_ledger_of_several_populations(tmp_path):
    """`verify` and `report` look at all populations, and name every entry that paid for the release."""
    table, schema = write_people(tmp_path)
    path, out = tmp_path / "s.ledger", tmp_path / "r.spinney"
    sp.Ledger.create(path, limit=2, population="patients").add_population("staff", limit=3)
    fit = ("fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--ledger", path)
    assert spinney(*fit, "--population", "staff", "--out", out).status == 0
    paid = [charge.number for charge in sp.Ledger.open(path, population="staff").charges]
    run = spinney("verify", out, "--ledger", path, "--json")
    assert run.status == 0
    assert (run.json["ledger"]["entries"], run.json["ledger"]["population"]) == (paid, "staff")
    assert all(str(number) in " ".join(run.json["checks"]) for number in paid)
    described = spinney("report", out, "--ledger", path, "--json").json["account"]["ledger"]
    assert (described["limit"], described["has_this"]) == ("3", True)
    other = tmp_path / "other.ledger"
    sp.Ledger.create(other, limit=2, population="patients").add_population("staff", limit=3)
    for verb in ("verify", "report"):
        run = spinney(verb, out, "--ledger", other, "--json")
        assert run.status == 1
        assert "charges of this release" in run.err + run.out


def test_all_entries_of_a_release_are_named():
    """Two charges of one release are two entries, also where others charged in between."""
    from spinney.privacy.accounts.verifying import numbered
    from spinney.release.provenance import _runs

    first, second, other = counts("0.1"), counts("0.2"), counts("0.3")
    assert _runs([other, first, second, first, second], [first, second]) == [[1, 2], [3, 4]]
    assert _runs([first, other, second], [first, second]) == [[0, 2]]
    assert _runs([second, first], [first, second]) == []
    assert (numbered([3]), numbered([3, 5])) == ("entry 3", "entries 3, 5")
