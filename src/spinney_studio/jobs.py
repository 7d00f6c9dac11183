"""Jobs: the files by which server and worker talk, the server's view of jobs, and the worker itself.

A fit must survive the server that started it, because what was charged is not thrown away. So a job runs in a
process of its own, shares only files with the server, and is charged under its key: the ledger can say later
whether it was paid for.

    progress files   how far a worker is, that it should stop, and that it still is there
    jobs             started once, looked up, cancelled, and settled where their worker has died
    worker           `python -m spinney_studio.jobs`, which reads what to do as JSON
    looking          check a table or plan a release; nothing is spent
    fitting          fit, save the release, and record the outcome
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, Literal

from filelock import FileLock, Timeout

from spinney.errors import SpinneyError, SpinneyWarning
from spinney.files import read_json, write_json
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import decimal
from spinney.progress import listening
from spinney.schema.schema import Schema
from spinney.text import clipped, printable
from spinney_studio.workspace import RELEASE_ENDING, Root, Workspace, now, opened, read_draft, write_private

# ------------------------------------------------------------------------------------------------------- progress files
# What a worker leaves on disk while it runs: how far it is, that it should stop, and that it still is there.
#
#     KEY.lock      held by the worker as long as it lives; whoever gets it knows that there is none
#     KEY.progress  the title, the steps that are done, and their number
#     KEY.cancel    somebody wants it to stop
#
# Server and worker share nothing else, so that either may be killed, and a server that was started anew finds a
# worker of the one before.


_EVERY = 0.25


class Traces:
    """The files of one worker, in the folder of its kind of work."""

    def __init__(self, folder: Path, key: str) -> None:
        self._progress = folder / f"{key}.progress"
        self._cancel = folder / f"{key}.cancel"
        self._lock = FileLock(folder / f"{key}.lock", mode=0o600)
        self._written = 0.0

    def take(self) -> bool:
        """Be the worker, or whoever knows that there is none; False where another is."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def give_back(self) -> None:
        """Be it no longer."""
        self._lock.release()

    def tell(self, title: str, done: int, total: int | None) -> None:
        """Leave word of how far the work is, though not of every step."""
        if time.monotonic() - self._written < _EVERY and done not in (0, total):
            return
        self._written = time.monotonic()
        partial = self._progress.with_suffix(".partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"title": title, "done": done, "total": total}, file)
        os.replace(partial, self._progress)

    def told(self) -> dict[str, Any]:
        """How far the work is."""
        try:
            found = read_json(self._progress.read_bytes())
        except (OSError, ValueError):
            return {"title": "starting", "done": 0, "total": None}
        return found if isinstance(found, dict) else {}

    def ask_to_stop(self) -> None:
        """Ask the worker to stop."""
        os.close(os.open(self._cancel, os.O_WRONLY | os.O_CREAT, 0o600))

    @property
    def should_stop(self) -> bool:
        """Whether somebody has asked the worker to stop."""
        return self._cancel.exists()

    def clear(self) -> None:
        """Remove what was left, before new work or after the old."""
        for path in (self._progress, self._cancel):
            path.unlink(missing_ok=True)


class Workers:
    """The workers that this server has started; those that have ended are taken leave of."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, spec: dict[str, Any]) -> None:
        """Start a worker that outlives the server: what was paid for is not thrown away."""
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "spinney_studio.jobs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert worker.stdin is not None
        with worker.stdin:
            worker.stdin.write(json.dumps(spec).encode())
        self._started[name] = worker

    def is_alive(self, name: str) -> bool:
        """Whether a worker that this server has started still runs."""
        worker = self._started.get(name)
        if worker is None:
            return False
        if worker.poll() is None:
            return True
        del self._started[name]
        return False


# ----------------------------------------------------------------------------------------------------------------- jobs
# Jobs as the server sees them: started once, looked at, cancelled, and settled where their worker has died.


UNFINISHED = ("queued", "running")


@dataclass(frozen=True, slots=True)
class Paid:
    """What a ledger says of a job."""

    is_charged: bool | None  # None where no ledger is charged, or where it cannot be asked
    sentence: str


class Jobs:
    """The jobs of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.workers = Workers()
        self.turn = RLock()  # held from a job's record to the start of its worker: nobody finds it without one

    # ----------------------------------------------------------------------------------------------------- releases

    def start(self, key: str) -> None:
        """Start the worker of a job that was just put on record."""
        self.workers.start(f"fit {key}", self._spec("fit", key))

    def get(self, key: str) -> dict[str, Any]:
        """A job as it stands; one whose worker has died is settled first."""
        job = self._workspace.job(key)
        if job["state"] not in UNFINISHED or self.workers.is_alive(f"fit {key}"):
            return job
        with self.turn:
            job = self._workspace.job(key)
            if job["state"] in UNFINISHED and not self.workers.is_alive(f"fit {key}"):
                return self._settled(key)
            return job

    def all(self) -> list[dict[str, Any]]:
        """All jobs, the last changed first."""
        return [self.get(job["key"]) for job in self._workspace.jobs()]

    def progress(self, key: str) -> dict[str, Any]:
        """How far the worker of a job is."""
        return Traces(self._workspace.jobs_folder, key).told()

    def is_stopping(self, key: str) -> bool:
        """Whether the worker of a job was asked to stop."""
        return Traces(self._workspace.jobs_folder, key).should_stop

    def cancel(self, key: str) -> None:
        """Ask the worker of a job to stop; one that saves its release does not."""
        if self.get(key)["state"] in UNFINISHED:
            Traces(self._workspace.jobs_folder, key).ask_to_stop()

    def _settled(self, key: str) -> dict[str, Any]:
        """The record of a job that nobody works on any more: done where its release is there, interrupted if not."""
        traces = Traces(self._workspace.jobs_folder, key)
        if not traces.take():
            return self._workspace.job(key)
        try:
            job = self._workspace.job(key)
            if job["state"] not in UNFINISHED:
                return job
            is_there = (self._workspace.releases_folder / f"{job['release']}{RELEASE_ENDING}").is_file()
            state = "done" if is_there else "cancelled" if traces.should_stop else "interrupted"
            traces.clear()
            return self._workspace.change_job(key, state=state)
        finally:
            traces.give_back()

    # -------------------------------------------------------------------------------------------------------- looks

    def start_look(self, kind: str, draft: dict[str, Any]) -> None:
        """Check the table of a draft, or plan its release, beside the server, unless that is being done."""
        name = f"{kind} {draft['key']}"
        if not self.workers.is_alive(name):
            more = {entry: draft[entry] for entry in LOOKS[kind]}
            self.workers.start(name, self._spec(kind, draft["key"]) | more | {"digest": digest_of(kind, draft)})

    def look(self, kind: str, draft: dict[str, Any]) -> dict[str, Any]:
        """What is known about a draft as it stands now.

        `state` is "none", "running" (with progress), "done" (with what was found) or "failed" (with an error).
        """
        key, folder = draft["key"], self._workspace.looks_folder
        if self.workers.is_alive(f"{kind} {key}"):
            return {"state": "running", **Traces(folder, f"{key}.{kind}").told()}
        try:
            found = read_json((folder / f"{key}.{kind}.json").read_bytes())
        except (OSError, ValueError):
            return {"state": "none"}
        if not isinstance(found, dict) or found.get("digest") != digest_of(kind, draft):
            return {"state": "none"}
        return {"state": "failed" if "error" in found else "done", **found}

    def _spec(self, task: str, key: str) -> dict[str, Any]:
        workspace = self._workspace
        return {"task": task, "key": key, "root": str(workspace.root.folder), "workspace": str(workspace.folder)}


# Kinds of looks, and what of a draft each of them is about.
LOOKS = {"check": ("table", "schema", "folder"), "plan": ("schema", "folder", "table", "asked")}


def digest_of(kind: str, draft: dict[str, Any]) -> str:
    """What a look is about: it holds for no other table, schema or budget."""
    return sha256(repr([draft.get(entry) for entry in LOOKS[kind]]).encode()).hexdigest()


def paid(workspace: Workspace, job: dict[str, Any]) -> Paid:
    """Whether a job was charged, as its ledger says."""
    said, is_lost = job["ledger"], job["state"] in ("failed", "cancelled", "interrupted")
    if said is None:
        spent = " If rows were counted before it ended, its epsilon is spent all the same." if is_lost else ""
        return Paid(None, f"No ledger was chosen, so no charge is on record anywhere.{spent}")
    try:
        charges = Ledger.open(said["place"], population=said["population"]).paid_under(job["key"])
    except SpinneyError as err:
        return Paid(None, f"The ledger cannot be asked whether it was charged: {err}")
    place = workspace.shown(said["address"])
    if not charges:
        yet = " yet" if job["state"] in UNFINISHED else ""
        return Paid(False, f"Nothing was charged{yet} to the ledger {place}.")
    epsilon = sum((charge.epsilon for charge in charges), Fraction(0))
    delta = sum((charge.delta for charge in charges), Fraction(0))
    was = f" and delta {decimal(delta)} were" if delta else " was"
    return Paid(True, f"Epsilon {decimal(epsilon)}{was} charged to the ledger {place}; that stays.")


# --------------------------------------------------------------------------------------------------------------- worker
# A worker: a process of its own that checks a table, or fits a release and keeps it, beside the server.
#
# It is told what to do as JSON through its standard input, and prints nothing, since what other libraries print may
# quote private values. Records in the workspace say what came of it. A release is charged under the key of its job,
# so that the ledger can tell later, whatever happened to the worker, whether the job was paid for.


_LOOKS_EVERY = 0.2
_PATIENCE = 8.0  # seconds that a loop may take to notice that it should stop


def main() -> None:
    """Do what standard input says."""
    run(read_json(sys.stdin.buffer.read()))


def run(spec: dict[str, Any]) -> None:
    """Do what was asked for."""
    workspace = Workspace(Root(spec["root"]), spec["workspace"])
    if spec["task"] == "fit":
        fit(workspace, spec["key"])
    else:
        look(workspace, spec)


# -------------------------------------------------------------------------------------------------------------- looking
# Looks at a draft: whether its table fits, and what its budget buys.


def look(workspace: Workspace, spec: dict[str, Any]) -> None:
    """Check a table or plan a release, and keep what was found; nothing is spent."""
    name = f"{spec['key']}.{spec['task']}"
    traces = Traces(workspace.looks_folder, name)
    if not traces.take():
        return
    traces.clear()
    found: dict[str, Any] = {"digest": spec["digest"]}
    try:
        with listening(traces.tell), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["found"] = {"check": _checked, "plan": _planned}[spec["task"]](workspace, spec)
    except Exception as err:
        found["error"] = told(err)
    write_private(workspace.looks_folder / f"{name}.json", write_json(found))
    traces.clear()
    traces.give_back()


def _checked(workspace: Workspace, spec: dict[str, Any]) -> dict[str, Any]:
    from spinney.synthesizers.check import check

    return check(opened(workspace, spec["table"]), _schema(workspace, spec)).to_dict()


def _planned(workspace: Workspace, spec: dict[str, Any]) -> dict[str, Any]:
    """The plan that was asked for, and what less and more epsilon would buy; no table is opened for it."""
    from spinney.planning.plan import plan
    from spinney.progress import progress

    asked, schema = spec["asked"], _schema(workspace, spec)
    plans: list[dict[str, Any]] = []
    for epsilon in progress(asked["epsilons"], "planning", unit="plan"):
        try:
            plans.append(plan(schema, asked["rows"], epsilon, **asked["options"]).to_dict())
        except SpinneyError as err:
            if epsilon == asked["epsilon"]:
                raise
            plans.append({"epsilon": epsilon, "refused": told(err)})
    return {"plans": plans, "chosen": asked["epsilons"].index(asked["epsilon"])}


# -------------------------------------------------------------------------------------------------------------- fitting
# The fit of a job: charged once under the key of the job, saved, and recorded.


def fit(workspace: Workspace, key: str) -> None:
    """Fit what a job asks for, unless somebody else does or has; then keep the release and say so."""
    traces = Traces(workspace.jobs_folder, key)
    if not traces.take():
        return
    try:
        if workspace.job(key)["state"] != "queued":
            return
        workspace.change_job(key, state="running", started=now(), process=os.getpid())
        traces.tell("starting", 0, None)
        workspace.change_job(key, **_outcome(workspace, key, traces), ended=now())
    finally:
        traces.clear()
        traces.give_back()


def _outcome(workspace: Workspace, key: str, traces: Traces) -> dict[str, Any]:
    """How a job ended, as its record says it."""
    cautions: list[str] = []
    try:
        with listening(traces.tell), _noted(cautions):
            _fit_and_keep(workspace, key, traces)
    except KeyboardInterrupt as err:
        notes = [clipped(printable(note)) for note in getattr(err, "__notes__", ())]  # what was charged before it
        return {"state": "cancelled", "cautions": [*notes, *cautions]}
    except Exception as err:
        return {"state": "failed", "error": told(err), "cautions": cautions}
    return {"state": "done", "cautions": cautions}


def _fit_and_keep(workspace: Workspace, key: str, traces: Traces) -> None:
    from spinney.synthesizers.method import choose, make
    from spinney.synthesizers.paying import kept, reserved

    job = workspace.job(key)
    schema = _schema(workspace, job)
    ledger = _ledger(job, key)
    out = workspace.releases_folder / f"{job['release']}.spinney"
    options = job["options"]
    with stopping(traces), reserved(out):
        choice = choose(schema, options)
        model: Any = make(choice.method, job["epsilon"], options)
        model.fit(opened(workspace, job["table"]), schema, ledger=ledger)
    # From here on the release is there, and nobody stops the worker any more: it was paid for.
    traces.tell("saving the release", 0, None)
    with kept(model, out, ledger or None):
        write_private(out.with_suffix(".json"), write_json(_origin(job, key, model.card_)))
        model.save(out)


def _ledger(job: dict[str, Any], key: str) -> SharedLedger | Literal[False]:
    """The ledger of a job, as a hand that charges under the job's key; False where none is charged."""
    said = job["ledger"]
    if said is None:
        return False
    ledger = Ledger.open(
        said["place"],
        population=said["population"],
        table=said["table"] or None,
        purpose=said["purpose"] or None,
        request=said["request"],
    ).under(key)
    if ledger.paid_under(key):
        raise SpinneyError("the ledger was charged for this job before; it is not fitted a second time")
    return ledger


def _origin(job: dict[str, Any], key: str, card: Any) -> dict[str, Any]:
    said = job["ledger"] or {}
    return {
        "job": key,
        "draft": key,
        "made": now(),
        "table": job["table"]["name"],
        "epsilon": decimal(card.epsilon),
        "rows": card.n_rows,
        "purpose": said.get("purpose"),
        "ledger": said.get("address"),
        "population": said.get("population"),
        "schema": job["schema"],
    }


@contextmanager
def stopping(traces: Traces) -> Iterator[None]:
    """Stop what is inside as soon as somebody asks for it; a loop that does not notice is stopped with its process."""
    is_over = Event()

    def look() -> None:
        while not is_over.wait(_LOOKS_EVERY):
            if traces.should_stop:
                interrupt_main()
                if not is_over.wait(_PATIENCE):
                    os._exit(130)
                return

    watcher = Thread(target=look, daemon=True, name="spinney studio stopping")
    watcher.start()
    is_done = False
    try:
        yield
        is_done = True
    finally:
        is_over.set()
        try:
            watcher.join()
        except KeyboardInterrupt:  # which came too late, where all is done
            if not is_done:
                raise


@contextmanager
def _noted(cautions: list[str]) -> Iterator[None]:
    """Keep what the library warns of; other warnings may quote anything, and go nowhere."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            cautions += [clipped(str(one.message)) for one in caught if issubclass(one.category, SpinneyWarning)]


def _schema(workspace: Workspace, spec: dict[str, Any]) -> Schema:
    reading = read_draft(workspace, spec)
    if reading.schema is None or reading.faults:
        raise SpinneyError("; ".join(reading.faults))
    return reading.schema


def told(err: BaseException) -> str:
    """What may be said of an error: our own message, and of any other its kind alone."""
    if isinstance(err, SpinneyError):
        return clipped(printable(str(err)))
    if isinstance(err, MemoryError):
        return "out of memory; use a machine with more memory"
    return (
        f"an unexpected {type(err).__name__}, which is a bug in Spinney; nothing else is told of it, because it might "
        "quote private values"
    )


if __name__ == "__main__":
    main()
