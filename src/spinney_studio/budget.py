"""The budget of a draft: the form, what it would buy, what would be charged, and the confirmation that spends.

Looking at these pages spends nothing. A draft is spent once, by a confirmation that names everything it
charges, however often its form is sent. All faults of a form are shown at once, each beside its field.

    budget form    unit, epsilon, purpose, ledger: read, checked, and offered
    budget pages   the form, its plan, and progress
    confirmation   what would be charged, to whom, and what would remain
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

from starlette.responses import Response

from spinney.errors import SpinneyError
from spinney.privacy.accounts.shared import SharedLedger, is_address, store_at
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import decimal
from spinney.schema.schema import Schema
from spinney_studio.pages import Call, Pages, revision_of, told_until
from spinney_studio.workspace import (
    LEDGER_ENDING,
    OutdatedError,
    PageError,
    Workspace,
    checked_name,
    read_draft,
    tidy_name,
)

# ---------------------------------------------------------------------------------------------------------- budget form
# What is to be spent, as a form: who counts, how much, for what, and which ledger pays; all faults at once.


FIELDS = (
    "unit", "rows", "epsilon", "delta", "quality", "target", "utility_share",
    "ledger", "place", "population", "new_name", "new_limit", "new_delta", "new_population",
    "ledger_table", "purpose", "request", "release",
)  # fmt: skip
DEFAULTS = {"unit": "replace-one", "epsilon": "1", "new_limit": "2", "new_delta": "1e-5", "new_population": "default"}
NONE, NEW, OTHER = "none", "new", "other"
# Where a plan is refused, the field that its message is about.
_PARAMETERS = ("epsilon", "delta", "utility_share", "target", "quality", "unit", "rows")


@dataclass(slots=True)
class Budget:
    """What a form says, as far as it can be read, and what is wrong with it by field."""

    given: dict[str, str]
    faults: dict[str, str] = field(default_factory=dict)
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rows: int | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of the synthesizer
    release: str = ""
    ledger: SharedLedger | None = None  # one that is there
    place: str = ""  # where it is

    @property
    def asked(self) -> dict[str, Any]:
        """What a plan is asked: the epsilon of the form between a quarter and four times as much."""
        assert self.epsilon is not None
        near = [decimal(self.epsilon / 4), decimal(self.epsilon), decimal(self.epsilon * 4)]
        return {"epsilon": near[1], "epsilons": near, "rows": self.rows, "options": self.options}

    @property
    def job_options(self) -> dict[str, Any]:
        """The options of the fit: those of the plan, and a number of rows that was stated for a private number."""
        assumed = "assumed_persons" if self.given.get("of_persons") else "assumed_rows"
        is_private = self.options.get("unit") == Unit.ADD_REMOVE.value
        return self.options | ({assumed: self.rows} if is_private and self.rows else {})


def read_budget(
    workspace: Workspace,
    given: dict[str, str],
    schema: Schema,
    *,
    counted: int | None,
    name: str,
    first_ledger: str | None = None,
) -> Budget:
    """The form, read; `counted` is the number of rows, or of persons, that the check has found."""
    said = Budget({key: given.get(key, DEFAULTS.get(key, "")) for key in FIELDS})
    said.given["of_persons"] = "yes" if schema.person is not None else ""
    said.epsilon = _read_field(said, "epsilon", parse_epsilon)
    if said.given["delta"]:
        said.delta = _read_field(said, "delta", parse_delta)
    _read_rows(said, counted)
    for key in ("delta", "quality", "target", "utility_share", "unit"):
        if said.given[key] and key not in said.faults:
            said.options[key] = said.given[key]
    _read_ledger(workspace, said, schema, offered_places(workspace, first_ledger))
    said.release = _read_field(said, "release", checked_name) if said.given["release"] else tidy_name(name)
    return said


def _read_field(said: Budget, name: str, reader: Any) -> Any:
    try:
        return reader(said.given[name])
    except SpinneyError as err:
        said.faults[name] = str(err)
        return None


def _read_rows(said: Budget, counted: int | None) -> None:
    """How many rows a plan is for: the public number of the file, or what is stated where that is private."""
    is_public = said.given["unit"] != Unit.ADD_REMOVE.value
    text = said.given["rows"].replace(",", "").replace(" ", "").replace("_", "")
    if is_public:
        said.rows = counted
        if counted is None:
            said.faults["rows"] = "The rows of the table were not counted; check the table again."
        return
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:13]) < 10**12:
        said.faults["rows"] = (
            "With add-remove the number is private, so it is not taken from the file: state a public guess, "
            "a whole number such as 20000."
        )
        return
    said.rows = int(text)


def _read_ledger(workspace: Workspace, said: Budget, schema: Schema, offered: list[str]) -> None:
    chosen = said.given["ledger"]
    if not chosen:
        said.faults["ledger"] = "Choose a ledger, make a new one, or say that none is charged."
        return
    if said.given["request"] and not (said.given["request"].isascii() and said.given["request"].isdigit()):
        said.faults["request"] = "The number of a request is a whole number, such as 12."
        return
    if chosen == NONE:
        return
    if chosen == NEW:
        _check_new(workspace, said)
        return
    try:
        said.place, population = ledger_place(workspace, said.given, offered)
        said.ledger = Ledger.open(
            said.place,
            population=population or None,
            table=said.given["ledger_table"] or None,
            purpose=said.given["purpose"] or None,
            request=int(said.given["request"]) if said.given["request"] else None,
        )
    except SpinneyError as err:
        said.faults["place" if chosen == OTHER else "ledger"] = str(err)
        return
    if said.epsilon is not None:
        require(said, schema, said.delta or Fraction(0))


def require(said: Budget, schema: Schema, delta: Fraction) -> None:
    """Put into the faults what the ledger says against a charge."""
    assert said.ledger is not None
    assert said.epsilon is not None
    try:
        unit = Unit.parse(said.given["unit"])
        said.ledger.require(said.epsilon, unit=unit.of_persons if schema.person is not None else unit, delta=delta)
    except SpinneyError as err:
        said.faults["ledger"] = str(err)


def ledger_place(workspace: Workspace, given: dict[str, str], offered: list[str]) -> tuple[str, str]:
    """The ledger that a form names, and its population; paths lie in the opened folder or were offered."""
    if given["ledger"] != OTHER:
        try:
            place, population = json.loads(given["ledger"])
        except (ValueError, TypeError):
            raise PageError("Choose one of the ledgers.") from None
        if place not in offered:
            raise PageError("Choose one of the ledgers.")
        return str(place), str(population)
    place = given["place"]
    if not place:
        raise PageError("Name a ledger: postgresql://host/name, or a file below the opened folder.")
    if not is_address(place):
        place = str(workspace.root.inside(place))
        if not Path(place).is_file():
            raise PageError(f"There is no ledger {given['place']!r} below the opened folder.")
    return place, given["population"]


def _check_new(workspace: Workspace, said: Budget) -> None:
    limit = _read_field(said, "new_limit", lambda text: parse_epsilon(text, "limit"))
    _read_field(said, "new_delta", lambda text: parse_delta(text or "0"))
    if said.given["new_name"]:
        _read_field(said, "new_name", checked_name)
    if not said.faults.get("new_name") and new_ledger_path(workspace, said.given).exists():
        said.faults["new_name"] = "A ledger of this name is in the workspace; choose another name, or that ledger."
    if limit is not None and said.epsilon is not None and limit < said.epsilon:
        said.faults["new_limit"] = "The limit is smaller than epsilon, so the ledger would refuse this release."


def new_ledger_path(workspace: Workspace, given: dict[str, str]) -> Path:
    """Where a new ledger is put."""
    return workspace.ledgers_folder / f"{given['new_name'] or 'people'}{LEDGER_ENDING}"


def create_ledger(workspace: Workspace, said: Budget, schema: Schema) -> str:
    """Make the new ledger of a form; what the form says once that ledger is chosen."""
    path, unit = new_ledger_path(workspace, said.given), Unit.parse(said.given["unit"])
    made = Ledger.create(
        str(path),
        limit=said.given["new_limit"],
        delta=said.given["new_delta"] or "0",
        unit=unit.of_persons if schema.person is not None else unit,
        population=said.given["new_population"] or "default",
    )
    return choice_of(str(path), made.population)


def choice_of(place: str, population: str) -> str:
    """A ledger and a population as the form names them."""
    return json.dumps([place, population])


def has_password(place: str) -> bool:
    """Whether an address holds a password, as far as that can be told: it would be kept in the workspace."""
    return is_address(place) and re.search(r"//[^@]*:[^@]*@|password\s*=", place, re.IGNORECASE) is not None


def offered_places(workspace: Workspace, first: str | None) -> list[str]:
    """Where the ledgers are that a form offers: the one the studio was started with, and those of the workspace."""
    return list(dict.fromkeys([*([first] if first else []), *workspace.ledgers()]))


def offered_ledgers(workspace: Workspace, first: str | None) -> list[dict[str, Any]]:
    """Ledgers to choose from, a line for each population, with what is left of its budget."""
    found = []
    for place in offered_places(workspace, first):
        try:
            ledger = SharedLedger(store_at(place))
            populations = ledger.populations
        except (SpinneyError, OSError):
            continue
        for one in populations:
            room = one.room
            left = None if room.limit is None else decimal(room.limit - room.spent)
            found.append(
                {
                    "choice": choice_of(place, one.name),
                    "place": ledger.address,
                    "population": one.name,
                    "left": left,
                    "limit": None if room.limit is None else decimal(room.limit),
                    "delta_left": decimal((room.delta_limit or Fraction(0)) - room.spent_delta),
                    "unit": room.unit.value,
                    "needs_approval": one.approval,
                }
            )
    return found


def plan_fault(message: str) -> str:
    """The field that a refused plan is about."""
    return next((name for name in _PARAMETERS if name in message), "epsilon")


# --------------------------------------------------------------------------------------------------------- budget pages
# The budget: what is requested, what it would buy, and the way on to the confirmation.


budget_pages = Pages()

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


@budget_pages.get("/drafts/{key}/budget")
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
        columns=[name for name, column in schema.items() if column._is_drawn and column.is_read],
        ledgers=offered_ledgers(call.workspace, call.studio.ledger),
        plan=plan,
        is_of_now=plan["state"] == "done" and not said.faults and draft.get("asked") == said.asked,
        release=said.release,
        outdated=outdated,
        odds=[(epsilon, 1 / (1 + exp(-float(epsilon)))) for epsilon in _KNOWN],
    )


def _target(name: str) -> str:
    return "ledger-first" if name == "ledger" else name


@budget_pages.post("/drafts/{key}/budget")
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


@budget_pages.get("/drafts/{key}/plan/events")
async def events(call: Call) -> Response:
    """How far the plan is, as it goes on."""
    draft = call.workspace.draft(call.path["key"])
    return told_until(call.request, lambda: call.studio.jobs.look("plan", draft), {"running"})


# --------------------------------------------------------------------------------------------------------- confirmation
# What would be charged, and the one request that spends a draft.


@budget_pages.get("/drafts/{key}/confirm")
def confirm(call: Call) -> Response:
    """What would be charged, to whom, and what would remain; nothing is spent by looking at it."""
    charge = _charge(call)
    if isinstance(charge, Response):
        return charge
    return call.page("confirm.html", title=f"Confirm {charge['draft']['name']}", **charge)


def _charge(call: Call) -> dict[str, Any] | Response:
    """Everything that a confirmation names; the page to go to where something is not right, or a job was started."""
    draft = call.workspace.draft(call.path["key"])
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
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
        "draft": draft,
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


@budget_pages.post("/drafts/{key}/spend")
def spend(call: Call) -> Response:
    """Spend a draft, once: however often the form is sent, there is one job."""
    charge = _charge(call)
    if isinstance(charge, Response):
        return charge
    said: Budget = charge["said"]
    draft: dict[str, Any] = charge["draft"]
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
