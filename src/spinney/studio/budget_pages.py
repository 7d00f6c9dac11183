"""The budget: what is asked for, what it would buy, what would be charged, and the confirmation that spends it."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

from starlette.responses import Response

from spinney.privacy.events import decimal
from spinney.schema.table import Schema
from spinney.studio.budget_form import (
    FIELDS,
    NEW,
    Budget,
    create_ledger,
    has_password,
    offered_ledgers,
    plan_fault,
    read_budget,
    require,
)
from spinney.studio.errors import OutdatedError, PageError
from spinney.studio.pages import Call, Pages, revision_of
from spinney.studio.stated import read_draft
from spinney.studio.streams import told_until

pages = Pages()

# Epsilons for which the page says what they mean: a guess is right with a chance of at most 1 / (1 + exp(-epsilon)).
_KNOWN = ("0.1", "0.5", "1", "2", "4")


def _ready(call: Call, draft: dict[str, Any]) -> tuple[Schema, dict[str, Any]] | None:
    """The schema of a draft and what the check of its table found; None where one of them is not right yet."""
    reading = read_draft(call.workspace, draft)
    found = call.studio.jobs.look("check", draft)
    if reading.schema is None or reading.faults or found["state"] != "done" or found["found"]["faults"]:
        return None
    return reading.schema, found["found"]


def _counted(schema: Schema, found: dict[str, Any]) -> int | None:
    number = found.get("persons") if schema.person is not None else found.get("rows")
    return int(number) if number else None


def _read(call: Call, draft: dict[str, Any], schema: Schema, found: dict[str, Any]) -> Budget:
    return read_budget(
        call.workspace,
        draft["budget"],
        schema,
        counted=_counted(schema, found),
        name=draft["name"],
        first_ledger=call.studio.ledger,
    )


@pages.get("/drafts/{key}/budget")
def show(call: Call) -> Response:
    """The form, and what the budget buys where that is known."""
    return _shown(call, call.workspace.draft(call.path["key"]))


def _shown(
    call: Call, draft: dict[str, Any], *, said: Budget | None = None, status: int = 200, outdated: str = ""
) -> Response:
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
    ready = _ready(call, draft)
    if ready is None:
        return call.redirect(f"/drafts/{draft['key']}/schema")
    schema, found = ready
    shows_faults = said is not None
    said = said or _read(call, draft, schema, found)
    plan = call.studio.jobs.look("plan", draft) if draft.get("asked") else {"state": "none"}
    faults = said.faults if shows_faults else {}
    if plan["state"] == "failed":
        faults = {plan_fault(plan["error"]): plan["error"], **faults}
    return call.page(
        "budget.html",
        title=f"Budget of {draft['name']}",
        status=status,
        draft=draft,
        given=said.given,
        fault_of=faults,
        faults=[{"message": message, "at": _target(name)} for name, message in faults.items()],
        counted=_counted(schema, found),
        who="person" if schema.person is not None else "row",
        columns=[name for name, column in schema.items() if column.is_drawn and column.is_read],
        ledgers=offered_ledgers(call.workspace, call.studio.ledger),
        plan=plan,
        is_of_now=plan["state"] == "done" and not said.faults and draft.get("asked") == said.asked,
        release=said.release,
        outdated=outdated,
        odds=[(epsilon, 1 / (1 + exp(-float(epsilon)))) for epsilon in _KNOWN],
    )


def _target(name: str) -> str:
    return "ledger-first" if name == "ledger" else name


@pages.post("/drafts/{key}/budget")
def save(call: Call) -> Response:
    """Keep the form; begin a plan, or go on to the confirmation."""
    draft = call.workspace.draft(call.path["key"])
    given = {name: call.text(name) for name in FIELDS}
    if has_password(given["place"]):
        raise PageError(
            "The address of the ledger holds a password, which would be kept in the workspace. Leave it out here, and "
            "keep it in PostgreSQL's password file (~/.pgpass) or in PGPASSWORD. Nothing of the form was kept."
        )
    try:
        draft = call.workspace.change_draft(draft["key"], revision_of(call), budget=given)
    except OutdatedError as err:
        return _shown(call, call.workspace.draft(draft["key"]), status=err.status, outdated=str(err))
    ready = _ready(call, draft)
    if ready is None:
        return call.redirect(f"/drafts/{draft['key']}/schema")
    schema, found = ready
    said = _read(call, draft, schema, found)
    if said.faults:
        return _shown(call, draft, said=said, status=400)
    if given["ledger"] == NEW:
        given["ledger"] = create_ledger(call.workspace, said, schema)
    if said.asked != draft.get("asked") or given != draft["budget"]:
        draft = call.workspace.change_draft(draft["key"], draft["revision"], asked=said.asked, budget=given)
    if call.studio.jobs.look("plan", draft)["state"] in ("none", "failed"):
        call.studio.jobs.start_look("plan", draft)
    return call.redirect(f"/drafts/{draft['key']}/budget")


@pages.get("/drafts/{key}/plan/events")
async def events(call: Call) -> Response:
    """How far the plan is, as it goes on."""
    draft = call.workspace.draft(call.path["key"])
    return told_until(call.request, lambda: call.studio.jobs.look("plan", draft), {"running"})


# ------------------------------------------------------------------------------------------------------ confirmation


@pages.get("/drafts/{key}/confirm")
def confirm(call: Call) -> Response:
    """What would be charged, to whom, and what would remain; nothing is spent by looking at it."""
    draft = call.workspace.draft(call.path["key"])
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
    charge = _charge(call, draft)
    if isinstance(charge, Response):
        return charge
    return call.page("confirm.html", title=f"Confirm {draft['name']}", draft=draft, **charge)


def _charge(call: Call, draft: dict[str, Any]) -> dict[str, Any] | Response:
    """Everything that a confirmation names; the page to go back to where something is not right."""
    ready = _ready(call, draft)
    if ready is None:
        return call.redirect(f"/drafts/{draft['key']}/schema")
    said = _read(call, draft, *ready)
    plan = call.studio.jobs.look("plan", draft)
    if not said.faults and (plan["state"] != "done" or draft.get("asked") != said.asked):
        return call.redirect(f"/drafts/{draft['key']}/budget")
    planned = plan["found"]["plans"][plan["found"]["chosen"]] if plan["state"] == "done" else {}
    delta = Fraction(planned.get("delta", "0"))
    if said.ledger is not None and not said.faults:
        require(said, ready[0], delta)
    if said.faults:
        return _shown(call, draft, said=said, status=400)
    assert said.epsilon is not None
    return {
        "said": said,
        "plan": planned,
        "epsilon": decimal(said.epsilon),
        "delta": decimal(delta) if delta else "",
        "account": _account(said, delta),
        "release": call.workspace.free_release_name(said.release),
        "rows": said.rows,
        "who": "person" if ready[0].person is not None else "row",
    }


def _account(said: Budget, delta: Fraction) -> dict[str, Any] | None:
    """The ledger before and after the charge; None where none is charged."""
    ledger = said.ledger
    if ledger is None or said.epsilon is None:
        return None
    limit, spent = ledger.limit, ledger.spent
    return {
        "place": ledger.address,
        "population": ledger.population,
        "unit": ledger.unit.value,
        "limit": None if limit is None else decimal(limit),
        "spent": decimal(spent),
        "after": None if limit is None else decimal(limit - spent - said.epsilon),
        "share": None if limit is None else float((spent + said.epsilon) / limit),
        "delta_after": decimal((ledger.delta_limit or Fraction(0)) - ledger.spent_delta - delta),
    }


@pages.post("/drafts/{key}/spend")
def spend(call: Call) -> Response:
    """Spend a draft, once: however often the form is sent, there is one job."""
    draft = call.workspace.draft(call.path["key"])
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
    charge = _charge(call, draft)
    if isinstance(charge, Response):
        return charge
    said: Budget = charge["said"]
    job = {
        "state": "queued",
        "name": charge["release"],
        "release": charge["release"],
        "table": draft["table"],
        "schema": draft["schema"],
        "folder": draft["folder"],
        "epsilon": charge["epsilon"],
        "delta": charge["delta"],
        "options": said.job_options,
        "ledger": None if said.ledger is None else _on_record(said),
    }
    with call.studio.jobs.turn:
        record, is_new = call.workspace.spend_draft(draft["key"], revision_of(call), job)
        if is_new:
            call.studio.jobs.start(record["key"])
    return call.redirect(f"/jobs/{record['key']}")


def _on_record(said: Budget) -> dict[str, Any]:
    ledger = said.ledger
    assert ledger is not None
    return {
        "place": said.place,
        "address": ledger.address,
        "population": ledger.population,
        "table": said.given["ledger_table"],
        "purpose": said.given["purpose"],
        "request": int(said.given["request"]) if said.given["request"] else None,
    }
