"""Copies of an account: of one in memory a statement, of one in a file another hand; and locks in one order."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, SpinneyError
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, NotPrivate

# A rival system that ran in this process before may have left threads behind, of which JAX warns at a fork.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda thing: pickle.loads(pickle.dumps(thing))}
each_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
each_start = pytest.mark.parametrize("method", ["fork", "spawn"])
REMEDY = r"can be read but not charged.*sp\.Ledger\.create\(path, limit=\.\.\.\)"


def counts(epsilon) -> DiscreteLaplaceCounts:
    return DiscreteLaplaceCounts(Fraction(epsilon), sensitivity=2, note="counts")


def spend(ledger, times, each, answers) -> None:
    """What a worker does: charge as often as it is let, and report how often that was."""
    n_taken, error = 0, ""
    for _ in range(times):
        try:
            ledger.charge(counts(each))
            n_taken += 1
        except SpinneyError as err:
            error = f"{type(err).__name__}: {err}"
    answers.put((n_taken, error))


# How many processes, and how often each tries to charge. One that is spawned takes a second to start.
AT_WORK = {"fork": (4, 5), "spawn": (2, 10)}


def workers(method, ledger, *, each="0.1"):
    """What processes report that each got a ledger and tried to charge it."""
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    n, times = AT_WORK[method]
    processes = [context.Process(target=spend, args=(ledger, times, each, answers)) for _ in range(n)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    return found


# ------------------------------------------------------------------------------------------------ in memory


@each_copy
def test_a_copy_is_a_statement(copied):
    """Everything can be read off a copy, and nothing can be charged, asked of or branded on it."""
    ledger = sp.Ledger(limit=1, unit="add-remove")
    ledger.charge(counts("0.25"))
    statement = copied(ledger)
    assert statement.events == ledger.events
    assert (statement.spent, statement.remaining, statement.unit) == (Fraction(1, 4), Fraction(3, 4), "add-remove")
    assert "spent 1/4 of 1" in repr(statement)
    assert "cannot be charged" in repr(statement)
    assert not statement.is_open
    for ask in (
        lambda: statement.charge(counts("0.1")),
        lambda: statement.require(Fraction(1, 10), unit=Unit.ADD_REMOVE),
        lambda: statement.brand(NotPrivate(note="n")),
    ):
        with pytest.raises(BudgetError, match=REMEDY):
            ask()
    ledger.charge(counts("0.25"))
    assert len(statement.events) == 1
    assert ledger.is_open
    assert ledger.spent == Fraction(1, 2)


@each_copy
def test_a_fit_on_a_copy_is_refused_before_a_row_is_read(copied, square):
    """Neither the copy nor the account is charged, also where the copy is of books inside an account."""
    ledger = sp.Ledger(limit=2)
    for account in (ledger, sp.Ledger(limit=1, parent=ledger)):
        with pytest.raises(BudgetError, match=REMEDY):
            sp.KDTreeSynthesizer("0.5").fit(*square, ledger=copied(account))
    assert ledger.events == ()
    inner = copied(sp.Ledger(limit=1, parent=ledger))
    with pytest.raises(BudgetError, match=REMEDY):
        inner.charge(counts("0.1"))
    assert ledger.events == ()


@each_copy
def test_models_can_be_copied(copied, square):
    """A fitted model travels; its ledger is a statement of what was spent, its release is whole."""
    model = sp.KDTreeSynthesizer("0.5").fit(*square)
    other = copied(model)
    assert other.ledger_.spent == model.ledger_.spent == Fraction(1, 2)
    assert np.array_equal(other.sample(10, seed=1), model.sample(10, seed=1))
    from sklearn.base import clone  # here, so that processes that are spawned need not import it

    fresh = clone(other).fit(*square)  # a new fit has an account of its own
    assert fresh.ledger_.is_open


@each_start
def test_processes_cannot_charge_an_account_in_memory(method):
    """Workers with one limit spend nothing, and each is told what to do; the maker's account is as it was."""
    ledger = sp.Ledger(limit=1)
    found = workers(method, ledger)
    assert [n_taken for n_taken, _ in found] == [0] * AT_WORK[method][0]
    assert all("BudgetError" in error and "sp.Ledger.create(path" in error for _, error in found)
    assert ledger.events == ()
    ledger.charge(counts(1))


def test_joblib_workers_cannot_either(square):
    """The way scikit-learn hands work to processes is no way round."""
    from joblib import Parallel, delayed

    def fit(ledger):
        try:
            sp.KDTreeSynthesizer("0.5").fit(*square, ledger=ledger)
        except BudgetError:
            return "refused"
        return "spent"

    ledger = sp.Ledger(limit=1)
    assert Parallel(n_jobs=2, backend="loky")(delayed(fit)(ledger) for _ in range(2)) == ["refused"] * 2
    assert Parallel(n_jobs=2, backend="threading")(delayed(fit)(ledger) for _ in range(3)).count("spent") == 2


# ------------------------------------------------------------------------------------------------ in a file


@each_start
def test_processes_share_an_account_in_a_file(method, tmp_path):
    """Workers that were handed the object keep to one limit, and every charge is on record."""
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=1)
    ledger.charge(counts("0.1"))
    found = workers(method, ledger)
    assert sum(n_taken for n_taken, _ in found) == 9
    assert all("does not fit" in error for n_taken, error in found if n_taken < AT_WORK[method][1])
    again = sp.Ledger.open(ledger.path)
    assert (again.spent, len(again.events)) == (1, 10)
    with pytest.raises(BudgetError, match="1 of 1 is spent"):
        ledger.charge(counts("0.1"))


def test_books_inside_an_account_in_a_file_are_no_way_round(tmp_path):
    """The books of one fit belong to the process that opened them, whatever their parent is."""
    account = sp.Ledger.create(tmp_path / "people.ledger", limit=1)
    found = workers("fork", sp.Ledger(limit=1, parent=account))
    assert [n_taken for n_taken, _ in found] == [0] * 4
    assert sp.Ledger.open(account.path).events == ()


@each_copy
def test_copies_of_an_account_in_a_file_are_one_account(copied, tmp_path):
    """A copy charges the file, sees what others charged, and can be unpickled where the file is not."""
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=1)
    other = copied(ledger)
    other.charge(counts("0.6"))
    with pytest.raises(BudgetError, match=r"0\.6 of 1 is spent"):
        ledger.charge(counts("0.6"))
    kept = pickle.dumps(ledger)
    ledger.path.unlink()
    assert pickle.loads(kept).spent == Fraction(3, 5)
    with pytest.raises(FileError, match="there is no ledger"):
        pickle.loads(kept).charge(counts("0.1"))


def test_a_fork_in_the_middle_of_a_charge_leaves_no_lock_behind(tmp_path):
    """Children that are forked while other threads charge can charge, and so can the parent after them."""
    program = f"""
import os, threading, time
from fractions import Fraction
import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
ledger = sp.Ledger.create({str(tmp_path / "people.ledger")!r}, limit=1000)
charge = lambda: ledger.charge(DiscreteLaplaceCounts(Fraction(1), 2, "c"))
stop = threading.Event()
def work():
    while not stop.is_set():
        charge()
        time.sleep(0.02)
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        charge()
        os._exit(0)
    children.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 6)
stop.set()
[thread.join() for thread in threads]
charge()
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.stdout.strip(), ended.returncode) == ("True", 0), ended.stderr


# ------------------------------------------------------------------------------------------------ one order of locks


def test_direct_charges_and_fits_do_not_wait_for_each_other_forever(tmp_path, square):
    """Charges on the file, charges through books, brands and questions, by many threads and names of one file."""
    path = tmp_path / "people.ledger"
    account = sp.Ledger.create(path, limit=1000)
    (tmp_path / "link").symlink_to(path)
    accounts = [account, sp.Ledger.open(path), sp.Ledger.open(tmp_path / "link"), sp.Ledger.open(os.path.relpath(path))]
    n, failures = 6, []

    def work(ledger, how):
        try:
            for _ in range(n):
                if how == "fit":
                    sp.GridSynthesizer("0.5", bins=2).fit(*square, ledger=ledger)
                elif how == "books":
                    books = sp.Ledger(limit=1, parent=ledger)
                    books.require(Fraction(1, 2), unit=Unit.REPLACE_ONE)
                    books.charge(counts("0.5"))
                    books.brand(NotPrivate(note="n"))
                else:
                    ledger.charge(counts("0.5"))
                    ledger.require(Fraction(1, 2), unit=Unit.REPLACE_ONE)
        except Exception as err:
            failures.append(err)

    threads = [
        threading.Thread(target=work, args=(ledger, how), daemon=True)
        for ledger in accounts
        for how in ("direct", "books", "fit")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert failures == []
    assert sp.Ledger.open(path).spent == Fraction(n * len(threads), 2)


# ------------------------------------------------------------------------------------------------ permissions


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o660])
def test_charges_keep_the_permissions_of_the_file(tmp_path, mode):
    """A ledger that only its owner may read stays so."""
    path = tmp_path / "people.ledger"
    ledger = sp.Ledger.create(path, limit=1)
    path.chmod(mode)
    ledger.charge(counts("0.1"))
    ledger.brand(NotPrivate(note="n"))
    assert mode_of(path) == mode
    assert [file.name for file in tmp_path.iterdir()] == ["people.ledger"]


def test_what_is_overwritten_keeps_its_permissions(tmp_path, square):
    """Releases and schemas too, through a link as well; new files follow the umask."""
    model = sp.GridSynthesizer(1, bins=2).fit(*square)
    for name, write in (
        ("r.spinney", lambda path: model.save(path, overwrite=True)),
        ("s.toml", lambda path: square[1].to_file(path, overwrite=True)),
    ):
        path, link = tmp_path / name, tmp_path / f"link of {name}"
        before = os.umask(0o027)
        try:
            write(path)
        finally:
            os.umask(before)
        assert mode_of(path) == 0o640
        path.chmod(0o600)
        link.symlink_to(path)
        write(link)
        assert mode_of(path) == 0o600
        write(path)
        assert mode_of(path) == 0o600


def test_a_group_that_cannot_be_kept_gets_nothing_in_exchange(tmp_path, square, monkeypatch):
    """Where the group of the old file is out of reach, the rights of that group go to no other."""
    path = tmp_path / "s.toml"
    square[1].to_file(path)
    path.chmod(0o664)
    stat_of = os.stat

    def other_group(place, *arguments, **options):
        found = stat_of(place, *arguments, **options)
        if Path(place) != path:
            return found
        return os.stat_result((*found[:5], found.st_gid + 1, *found[6:]))

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("spinney.files.os.stat", other_group)
    monkeypatch.setattr("spinney.files.os.chown", refuse)
    square[1].to_file(path, overwrite=True)
    monkeypatch.undo()
    assert mode_of(path) == 0o604


def test_pickled_models_hold_a_statement_of_their_ledger(tmp_path):
    """Neither the right to charge it, nor where it is, which may be an address with a password."""
    rows = np.random.default_rng(0).random((300, 2))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    place = tmp_path / "secret-place.ledger"
    sp.Ledger.create(place, limit=2)
    kept = pickle.dumps(sp.KDTreeSynthesizer(1).fit(rows, schema, ledger=place))
    assert b"secret-place" not in kept
    statement = pickle.loads(kept).ledger_
    assert (statement.spent, statement.limit, statement.is_open) == (1, 2, False)
    with pytest.raises(BudgetError, match="can be read but not charged"):
        statement.charge(counts("0.1"))
