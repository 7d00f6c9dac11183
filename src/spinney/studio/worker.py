"""A worker: a process of its own that checks a table, or fits a release and keeps it, beside the server.

It is told what to do as JSON through its standard input, and prints nothing, since what other libraries print may quote
private values. Records in the workspace say what came of it. A release is charged under the key of its job, so that the
ledger can tell later, whatever happened to the worker, whether the job was paid for.
"""

from __future__ import annotations

import os
import sys
import warnings
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Literal

from spinney.errors import LedgerWarning, PrivacyWarning, SchemaWarning, SpinneyError
from spinney.files import read_json, write_json
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.events import decimal
from spinney.privacy.ledger import Ledger
from spinney.progress import listening
from spinney.schema.table import Schema
from spinney.shown import clipped, printable
from spinney.studio.places import Root
from spinney.studio.records import now, write_private
from spinney.studio.running import Traces
from spinney.studio.stated import read_draft
from spinney.studio.tables import opened
from spinney.studio.workspace import Workspace

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


# ------------------------------------------------------------------------------------------------------------ looking


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
    from spinney.synthesizers.checking import check

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


# ------------------------------------------------------------------------------------------------------------ fitting


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
    from spinney.synthesizers.saving import kept, reserved

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
            ours = (PrivacyWarning, LedgerWarning, SchemaWarning)
            cautions += [clipped(str(one.message)) for one in caught if issubclass(one.category, ours)]


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
