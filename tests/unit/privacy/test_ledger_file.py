"""An account in a file: charged on disk before anything is touched, shared between processes, never over its limit."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney import files
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy.mechanisms import DiscreteGaussianVector, DiscreteLaplaceCounts, NotPrivate
from spinney.tables.engines import memory
from spinney.tree import kdtree, moments
from support.command_line import spinney, write_people
from support.old_ledgers import write_version_1


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


def sums(epsilon, delta) -> DiscreteGaussianVector:
    return DiscreteGaussianVector(Fraction(epsilon), Fraction(delta), Fraction(4), Fraction(100), note="sums")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def test_an_account_outlives_the_process(path):
    """What was charged and branded is there when the file is opened again."""
    first = sp.Ledger.create(path, limit="0.3", unit="add-remove")
    first.charge(counts("0.1"))
    first.brand(NotPrivate(note="bounds"))
    again = sp.Ledger.open(path)
    assert again.events == first.events
    assert (again.limit, again.spent, again.remaining) == (Fraction(3, 10), Fraction(1, 10), Fraction(1, 5))
    assert again.unit == "add-remove"


def test_delta_and_its_limit_outlive_the_process(path):
    """The limit on delta is in the file, and all who hold the account share it."""
    one = sp.Ledger.create(path, limit=3, delta="1e-6")
    one.charge(sums(1, "6e-7"))
    again = sp.Ledger.open(path)
    assert (again.events, again.delta_limit, again.spent_delta) == (one.events, Fraction(1, 10**6), Fraction(6, 10**7))
    again.charge(sums(1, "3e-7"))
    with pytest.raises(BudgetError, match="9e-07 of 1e-06 is spent"):
        one.charge(sums(1, "2e-7"))
    assert sp.Ledger.open(path).remaining_delta == Fraction(1, 10**7)


def test_files_from_before_delta_are_pure(path):
    """An account without the entry opens, refuses delta, and takes pure charges as before."""
    write_version_1(path, limit="1", events=[counts("0.25")])
    described = json.loads(path.read_text())
    del described["delta"]
    path.write_text(json.dumps(described))
    account = sp.Ledger.open(path)
    assert (account.spent, account.delta_limit) == (Fraction(1, 4), 0)
    with pytest.raises(BudgetError, match="delta="):
        account.charge(sums("0.25", "1e-9"))
    account.charge(counts("0.25"))
    assert sp.Ledger.open(path).spent == Fraction(1, 2)


def test_old_files_without_any_limit_still_only_count(path):
    """No limit and no entry: both are counted, neither is held."""
    path.write_text(
        '{"format": "spinney-ledger", "format_version": 1, "unit": "replace-one", "limit": null, "events": []}'
    )
    account = sp.Ledger.open(path)
    account.charge(sums(1, "0.9"))
    assert (account.delta_limit, sp.Ledger.open(path).spent_delta) == (None, Fraction(9, 10))


def test_a_charge_beyond_the_limit_is_refused_by_whoever_asks(path):
    """Two holders of one account see each other's charges, also those made after both had opened it."""
    one, other = sp.Ledger.create(path, limit=1), sp.Ledger.open(path)
    one.charge(counts("0.7"))
    with pytest.raises(BudgetError, match=r"0\.7 of 1 is spent"):
        other.charge(counts("0.4"))
    other.charge(counts("0.3"))
    with pytest.raises(BudgetError):
        one.charge(counts("0.001"))
    assert sp.Ledger.open(path).spent == 1


def test_processes_take_turns(path):
    """Charges of several processes at once are all recorded, and not one too many."""
    sp.Ledger.create(path, limit=2)
    program = f"""
from fractions import Fraction
import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
ledger = sp.Ledger.open({str(path)!r})
for _ in range(20):
    try:
        ledger.charge(DiscreteLaplaceCounts(Fraction(1, 20), 2, "counts"))
    except sp.SpinneyError:
        pass
"""
    children = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    account = sp.Ledger.open(path)
    assert account.spent == 2
    assert len(account.events) == 40


@pytest.mark.parametrize(("mechanism", "name"), [(moments, "grow_leaves"), (kdtree, "_grow")], ids=["moments", "bins"])
def test_the_charge_is_on_disk_before_counts_are_read(path, square, monkeypatch, mechanism, name):
    """When growth begins, another process could already read the whole charge."""
    ledger = sp.Ledger.create(path, limit=1)
    grow, seen = getattr(mechanism, name), []

    def spy(*arguments):
        seen.append(sp.Ledger.open(path).spent)
        return grow(*arguments)

    monkeypatch.setattr(mechanism, name, spy)
    sp.KDTreeSynthesizer("0.4", moments=mechanism is moments).fit(*square, ledger=ledger)
    assert seen == [Fraction(2, 5)]


@pytest.mark.parametrize("target", [None, "x"])
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_the_charge_for_a_forest_is_on_disk_before_counts_are_read(path, square, monkeypatch, delta, target):
    """Every time cells are counted for a forest, another process could already read what pays for it."""
    ledger, seen = sp.Ledger.create(path, limit=1, delta="1e-6"), []
    count_cells = memory.count_cells

    def spy(*arguments):
        seen.append(sp.Ledger.open(path).spent)
        return count_cells(*arguments)

    monkeypatch.setattr(memory, "count_cells", spy)
    points = np.column_stack([square[0][:, 0] > 0.3, square[0][:, 1]])
    schema = sp.Schema({"x": sp.Boolean(), "y": sp.Real(0, 1)})
    model = sp.ForestSynthesizer("0.4", delta, target=target).fit(points, schema, ledger=ledger)
    assert seen == ([Fraction(2, 5)] * 2 if target is None else [Fraction(2, 125), Fraction(2, 5)])
    assert float(sp.Ledger.open(path).spent_delta) == float(delta)
    assert sp.Ledger.open(path).events == model.card_.events


def test_a_card_shows_its_own_release_only(path, square):
    """The account holds all releases, opened again too; each card holds one."""
    ledger = sp.Ledger.create(path, limit="1.4")
    first = sp.KDTreeSynthesizer("0.4").fit(*square, ledger=ledger)
    second = sp.GridSynthesizer("0.6").fit(*square, ledger=ledger)
    third = sp.KDTreeSynthesizer("0.4", moments=False).fit(*square, ledger=ledger)
    cards = [model.card_ for model in (first, second, third)]
    assert [card.epsilon for card in cards] == [Fraction(2, 5), Fraction(3, 5), Fraction(2, 5)]
    assert ledger.remaining == 0
    assert sp.Ledger.open(path).events == tuple(event for card in cards for event in card.events)


def test_another_way_to_the_file_is_the_same_account(path, tmp_path, monkeypatch):
    """A link, or a relative path and another working folder, leads to one account with one limit."""
    sp.Ledger.create(path, limit=1)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.ledger"
    link.symlink_to(path)
    sp.Ledger.open(link).charge(counts("0.6"))
    assert link.is_symlink()
    monkeypatch.chdir(tmp_path)
    relative = sp.Ledger.open(path.name)
    monkeypatch.chdir(tmp_path / "elsewhere")
    relative.charge(counts("0.4"))
    with pytest.raises(BudgetError):
        sp.Ledger.open(path).charge(counts("0.1"))
    assert sp.Ledger.open(path).spent == 1


def test_an_exhausted_account_is_told_before_the_table_is_read(tmp_path, path):
    """With nothing left, a table that cannot be read is not even opened."""
    table, schema = write_people(tmp_path, table="x,age,colour\n1,2,SECRET\n")
    sp.Ledger.create(path, limit="0.5")
    out = tmp_path / "r.spinney"
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--ledger", path)
    assert run.status == 1
    assert "does not fit" in run.err


def test_a_file_that_exists_is_left_alone(path):
    """Opening a new account never wipes an old one."""
    sp.Ledger.create(path, limit=1).charge(counts("0.5"))
    with pytest.raises(FileError, match="exists"):
        sp.Ledger.create(path, limit=5)
    assert sp.Ledger.open(path).spent == Fraction(1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "damaged"),
        ("[1, 2]", "is not a Spinney ledger"),
        ('{"format": "spinney-ledger", "format_version": 2}', "upgrade"),
        ('{"format": "spinney-ledger", "format_version": 1, "unit": "people"}', "inconsistent"),
        (
            '{"format": "spinney-ledger", "format_version": 1, "unit": "replace-one", "limit": "1", '
            '"events": [{"event": "Refund", "epsilon": "-1"}]}',
            "inconsistent",
        ),
        (
            '{"format": "spinney-ledger", "format_version": 1, "unit": "replace-one", "limit": "1", "delta": "2", '
            '"events": []}',
            "inconsistent",
        ),
    ],
)
def test_files_that_are_no_ledgers_are_refused(path, text, message):
    """Damaged, foreign and newer files are named and nothing is charged."""
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        sp.Ledger.open(path)
    with pytest.raises(FileError, match="there is no ledger"):
        sp.Ledger.open(path.with_name("absent"))


@pytest.mark.parametrize("content", [b"{", b"SQLite format 3\0" + b"\0" * 5000, b""])
def test_a_damaged_account_stops_the_next_charge(path, square, content):
    """An account that was spoilt after it was opened is not written over."""
    ledger = sp.Ledger.create(path, limit=1)
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        sp.KDTreeSynthesizer("0.4").fit(*square, ledger=ledger)
    assert path.read_bytes() == content


def test_one_fit_spends_no_more_than_its_epsilon(square):
    """A fit keeps its own books with its own limit inside a larger account."""
    ledger = sp.Ledger(limit=10)
    books = sp.Ledger(limit=1, parent=ledger)
    with pytest.raises(BudgetError):
        books.charge(counts(2))
    assert ledger.events == ()
    with pytest.raises(ParameterError, match="unit"):
        sp.KDTreeSynthesizer(1, unit="add-remove").fit(*square, ledger=ledger)


def test_the_command_line_keeps_the_account(tmp_path, path):
    """`spinney ledger` opens and shows an account; `fit --ledger` charges it and stops at its limit."""
    table, schema = write_people(tmp_path)
    assert spinney("ledger", path, "--limit", "1.5", "--unit", "add-remove").status == 0
    common = ["fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--ledger", path]
    assert spinney(*common, "--out", tmp_path / "one.spinney").status == 0
    refused = spinney(*common, "--out", tmp_path / "two.spinney")
    assert refused.status == 1
    assert "1 of 1.5 is spent" in refused.err
    assert not (tmp_path / "two.spinney").exists()
    shown = spinney("ledger", path)
    assert "spent 1 of 1.5, 0.5 left, unit add-remove" in shown.out
    assert "leaf counts and means" in shown.out
    assert spinney("ledger", path, "--json").json["remaining"] == "1/2"
    assert sp.load(tmp_path / "one.spinney").card.unit == "add-remove"


def test_the_command_line_shows_delta_where_there_is_one(path):
    """`--delta` opens an approximate account; a pure one is shown without a word about delta."""
    opened = spinney("ledger", path, "--limit", "2", "--delta", "1e-6")
    assert opened.out.splitlines()[:2] == ["spent 0 of 2, 2 left, unit replace-one", "delta 0 of 1e-06, 1e-06 left"]
    assert "opened with limit 2, delta 1e-06" in opened.out.splitlines()[4]
    assert opened.out.splitlines()[5:] == [f"head {sp.Ledger.open(path).head}"]
    sp.Ledger.open(path).charge(sums("0.5", "5e-7"))
    shown = spinney("ledger", path).out
    assert "delta 5e-07 of 1e-06, 5e-07 left" in shown
    assert "(0.5, 5e-07)  sums" in shown
    described = spinney("ledger", path, "--json").json
    assert (described["delta"], described["spent_delta"], described["remaining_delta"]) == (
        "1/1000000",
        "1/2000000",
        "1/2000000",
    )
    pure = path.with_name("pure.ledger")
    assert "delta" not in spinney("ledger", pure, "--limit", "2").out
    assert spinney("ledger", pure, "--json").json["delta"] == "0"


def test_an_account_without_a_limit_shows_its_delta(path):
    """What only counts shows what it counted."""
    sp.Ledger.create(path, limit=None).charge(sums("0.5", "5e-7"))
    assert "delta 5e-07, no limit" in spinney("ledger", path).out
    assert spinney("ledger", path, "--json").json["remaining_delta"] is None


def test_an_account_without_a_limit_is_shown(path):
    """The library may keep an account that only counts; the command shows it."""
    sp.Ledger.create(path, limit=None).charge(counts("0.25"))
    assert "spent 0.25, no limit, unit replace-one" in spinney("ledger", path).out
    assert spinney("ledger", path, "--json").json["remaining"] is None


def test_an_output_that_cannot_be_written_costs_nothing(tmp_path, path, monkeypatch):
    """A read-only disk, which permissions do not show, is noticed before the account is charged."""
    table, schema = write_people(tmp_path)
    sp.Ledger.create(path, limit=2)

    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files.tempfile, "TemporaryFile", refuse)
    out = tmp_path / "r.spinney"
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--ledger", path)
    assert run.status == 2
    assert "Read-only" in run.err
    assert sp.Ledger.open(path).spent == 0


def test_charges_are_recorded_together_or_not_at_all(path):
    """A release that costs several charges never leaves half of them behind."""
    ledger = sp.Ledger.create(path, limit=1)
    with pytest.raises(BudgetError):
        ledger.charge(counts("0.6"), counts("0.6"))
    assert ledger.events == ()
    ledger.charge(counts("0.6"), counts("0.4"))
    assert sp.Ledger.open(path).spent == 1


def test_an_empty_release_is_told(tmp_path):
    """A release without bins is written, with a warning that sampling from it will fail."""
    table, schema = write_people(tmp_path)
    out = tmp_path / "r.spinney"
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--threshold", 10**9)
    assert run.status == 0
    assert "the release is empty" in run.err
    assert spinney("sample", out, "--rows", 5, "--out", "-").status == 2


def test_a_wrong_call_of_the_verb_is_told(tmp_path, path):
    """An account is opened once, and --unit belongs to opening."""
    assert spinney("ledger", path).status == 1
    assert spinney("ledger", path, "--limit", "0").status == 2
    assert spinney("ledger", path, "--limit", "1").status == 0
    before = path.read_bytes()
    assert spinney("ledger", path, "--limit", "2").status == 2
    assert spinney("ledger", path, "--unit", "add-remove").status == 2
    assert spinney("ledger", path, "--delta", "1e-6").status == 2
    assert spinney("ledger", path.with_name("other"), "--limit", "1", "--delta", "1").status == 2
    assert not path.with_name("other").exists()
    assert path.read_bytes() == before


def test_an_open_account_shows_what_others_charged(tmp_path):
    """Two hands on one file agree on what is spent, before either charges again."""
    path = tmp_path / "a.ledger"
    one = sp.Ledger.create(path, limit=2)
    other = sp.Ledger.open(path)
    other.charge(counts("0.5"))
    assert one.spent == other.spent == Fraction(1, 2)
    assert one.remaining == Fraction(3, 2)
    assert "spent 1/2 of 2" in repr(one)


def test_a_fit_takes_the_path_of_a_ledger(tmp_path, square):
    path = tmp_path / "a.ledger"
    sp.Ledger.create(path, limit=2)
    model = sp.KDTreeSynthesizer("0.5").fit(*square, ledger=path)
    assert sp.Ledger.open(path).spent == model.ledger_.spent == Fraction(1, 2)


def test_an_account_by_two_names_is_refused(tmp_path):
    """The journal of a charge has the name of the file, so that somebody at another name would not see it."""
    path = tmp_path / "a.ledger"
    account = sp.Ledger.create(path, limit=1)
    os.link(path, tmp_path / "b.ledger")
    with pytest.raises(FileError, match="hard link"):
        sp.Ledger.open(tmp_path / "b.ledger")
    with pytest.raises(FileError, match="hard link"):
        account.charge(counts("0.5"))


def test_a_read_only_account_is_no_mistake_of_ours(tmp_path):
    path = tmp_path / "a.ledger"
    account = sp.Ledger.create(path, limit=1)
    path.chmod(0o400)
    try:
        account.charge(counts("0.5"))
    except FileError:
        return
    assert sp.Ledger.open(path).spent == Fraction(1, 2), "the owner of the folder may replace the file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are of POSIX")
def test_pipes_are_neither_accounts_nor_releases_nor_tables(tmp_path, square):
    """They would be waited for without end."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for opened in (sp.Ledger.open, sp.load, lambda path: sp.KDTreeSynthesizer(1).fit(path, square[1])):
        with pytest.raises(FileError, match=r"is not a file|is a pipe"):
            opened(pipe)
