"""Jobs as the server sees them: started once, looked at, cancelled, and settled where their worker has died."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from threading import RLock
from typing import Any

from spinney.errors import SpinneyError
from spinney.files import read_json
from spinney.privacy.events import decimal
from spinney.privacy.ledger import Ledger
from spinney.studio.running import Traces, Workers
from spinney.studio.workspace import RELEASE_ENDING, Workspace

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
