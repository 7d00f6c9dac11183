"""Workers as processes of their own: one that dies is noticed, and the ledger says whether it had been paid."""

import json
import os
import signal
import time

import pytest

import spinney as sp
from spinney.progress import begin, is_watched, listening, progress, waiting
from spinney_studio.jobs import Traces, Workers, paid
from support.studios import SIX_COLUMNS, client_of, make_studio, six_columns, spent_draft, text_of


@pytest.fixture
def studio(tmp_path):
    six_columns(tmp_path)
    return make_studio(tmp_path, workers=Workers())


def until(condition, *, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it takes too long")


def test_a_worker_that_dies_after_the_charge_is_told_as_interrupted_and_charged(tmp_path, studio):
    """Killed in the middle, server and worker: a studio that is started anew says so, and no half release is there."""
    key = spent_draft(studio.workspace)
    studio.jobs.start(key)
    until(lambda: sp.Ledger.open(tmp_path / "big.ledger").charges)
    assert studio.jobs.get(key)["state"] == "running"
    fresh = make_studio(tmp_path, workers=Workers())  # as after a restart: it did not start the worker
    assert fresh.jobs.get(key)["state"] == "running"
    process = studio.workspace.job(key)["process"]
    os.kill(process, signal.SIGKILL)
    until(lambda: not studio.jobs.workers.is_alive(f"fit {key}"))
    assert fresh.jobs.get(key)["state"] == "interrupted"
    said = text_of(client_of(fresh).get(f"/jobs/{key}"))
    assert "was interrupted" in said
    assert "It was charged" in said
    assert "Epsilon 1" in said
    assert fresh.workspace.releases() == []
    assert sp.Ledger.open(tmp_path / "big.ledger").spent == 1


def test_a_draft_is_spent_once_also_by_two_requests_at_the_same_moment(studio):
    """Both have seen the draft before either was spent; the second gets the job of the first, of the same revision."""
    key = spent_draft(studio.workspace)
    job = studio.workspace.job(key)
    record, is_new = studio.workspace.spend_draft(key, 1, {"state": "queued"})
    assert (record, is_new) == (job, False)
    assert studio.workspace.jobs() == [job]


def test_a_job_that_nobody_began_is_told_as_not_charged(tmp_path, studio):
    """The server died between the record and the start of the worker; a worker that comes late does nothing."""
    from spinney_studio.jobs import fit

    key = spent_draft(studio.workspace)
    assert studio.jobs.get(key)["state"] == "interrupted"
    assert paid(studio.workspace, studio.workspace.job(key)).is_charged is False
    fit(studio.workspace, key)
    assert studio.workspace.job(key)["state"] == "interrupted"
    assert sp.Ledger.open(tmp_path / "big.ledger").spent == 0


def test_a_job_that_was_charged_before_is_not_fitted_again(tmp_path, studio):
    """Even if its record is set back: the ledger knows the key of the job."""
    from spinney_studio.jobs import fit

    (tmp_path / "big.csv").write_text("a,b\n" + "1,2\n" * 500)
    key = spent_draft(studio.workspace, options={}, schema=SIX_COLUMNS.partition("[columns.c]")[0])
    fit(studio.workspace, key)
    assert studio.workspace.job(key)["state"] == "done"
    spent = sp.Ledger.open(tmp_path / "big.ledger").spent
    studio.workspace.change_job(key, state="queued", release="second")
    fit(studio.workspace, key)
    job = studio.workspace.job(key)
    assert job["state"] == "failed"
    assert "charged for this job before" in job["error"]
    assert sp.Ledger.open(tmp_path / "big.ledger").spent == spent == 1


def test_a_worker_that_was_asked_to_stop_before_the_charge_charges_nothing(tmp_path, studio):
    key = spent_draft(studio.workspace)
    Traces(studio.workspace.jobs_folder, key).ask_to_stop()
    studio.jobs.start(key)
    until(lambda: studio.jobs.get(key)["state"] not in ("queued", "running"))
    job = studio.workspace.job(key)
    assert job["state"] == "cancelled"
    assert paid(studio.workspace, job).is_charged is bool(sp.Ledger.open(tmp_path / "big.ledger").spent)
    until(lambda: not studio.jobs.workers.is_alive(f"fit {key}"))


def test_listeners_hear_of_progress_and_nothing_is_drawn(capfd):
    """Of a bar inside of a line both are told, and the outer one again when the inner one has ended."""
    heard = []
    assert not is_watched()
    with listening(lambda *told: heard.append(told)):
        assert is_watched()
        with waiting("outer"):
            for _step in progress(range(3), "inner", unit="step"):
                time.sleep(0.11)
        bar = begin("by hand", total=2)
        bar.close()
    assert not is_watched()
    assert heard[0] == ("outer", 0, None)
    assert heard[1] == ("inner", 0, 3)
    assert ("inner", 2, 3) in heard
    assert heard[-2:] == [("outer", 0, None), ("by hand", 0, 2)]
    assert capfd.readouterr() == ("", "")


def test_progress_is_left_for_the_server(tmp_path):
    traces = Traces(tmp_path, "0" * 32)
    traces.tell("counting", 0, 10)
    traces.tell("counting", 3, 10)  # too soon after the first
    assert traces.told() == {"title": "counting", "done": 0, "total": 10}
    traces.tell("counting", 10, 10)
    assert traces.told()["done"] == 10
    assert json.loads((tmp_path / f"{'0' * 32}.progress").read_text())["title"] == "counting"
    traces.clear()
    assert traces.told()["title"] == "starting"


def test_code_beside_a_table_is_not_run(tmp_path, monkeypatch):
    """A folder with tables may hold modules that are named like ones that a worker needs."""
    (tmp_path / "json.py").write_text("open('was_run', 'w').close()")
    monkeypatch.chdir(tmp_path)
    workers = Workers()
    workers.start("look", {})
    end = time.monotonic() + 30
    while workers.is_alive("look") and time.monotonic() < end:
        time.sleep(0.05)
    assert not workers.is_alive("look")
    assert not (tmp_path / "was_run").exists()
