"""Pages of a ledger: what is spent and left, who charged what, requests to approve or deny, and whether it is whole.

What changes a ledger is a form with a token, after a page that says what will be on record. Who may approve is decided
by the ledger itself: it refuses whoever asked.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from spinney.errors import ParameterError, SpinneyError
from spinney.privacy.accounts.places import is_address
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.privacy.budget import parse_delta, parse_epsilon
from spinney.privacy.ledger import Ledger, decimal
from spinney.studio.errors import PageError
from spinney.studio.ledgers.known import KnownLedger
from spinney.studio.ledgers.shown import ledger_shown, request_shown, spent_picture
from spinney.studio.pages import Call, Pages
from spinney.studio.view_parts import picture, whole

pages = Pages(nav=("Ledgers", "/ledgers"))

_FIELDS = ("epsilon", "delta", "purpose", "table")
_LARGEST = 10**6


@pages.get("/ledgers")
def listed(call: Call) -> Response:
    """All ledgers that are known, and a form to open another; a place that is named is opened."""
    place = call.query.get("place")
    if not place:
        return _opener(call)
    try:
        return call.redirect(f"/ledgers/{call.studio.ledgers.open(place).key}")
    except (PageError, SpinneyError) as err:
        return _opener(call, fault=str(err))


@pages.post("/ledgers")
def opened(call: Call) -> Response:
    """Open a ledger by its path or its address, which is never shown again as it was typed."""
    text = call.text("place")
    try:
        known = call.studio.ledgers.open(text)
        ledger_shown(known.place, None)
    except (PageError, SpinneyError) as err:
        return _opener(call, fault=str(err))
    return call.redirect(f"/ledgers/{known.key}")


def _opener(call: Call, *, fault: str = "") -> Response:
    found = []
    for known in call.studio.ledgers.all():
        if is_address(known.place):  # a server that does not answer would hold the page up
            found.append({"known": known, "populations": [], "problem": ""})
            continue
        try:
            shown = ledger_shown(known.place, None)
            found.append({"known": known, "populations": shown["populations"], "problem": ""})
        except SpinneyError as err:
            found.append({"known": known, "populations": [], "problem": str(err)})
    return call.page("ledgers.html", title="Ledgers", status=400 if fault else 200, ledgers=found, fault=fault)


@pages.get("/ledgers/{key}")
def show(call: Call) -> Response:
    """One ledger, with one of its populations in full."""
    return _page(call, call.studio.ledgers.by_key(call.path["key"]))


def _page(
    call: Call, known: KnownLedger, *, given: dict[str, str] | None = None, faults: dict[str, str] | None = None
) -> Response:
    population = (given or {}).get("population") or call.query.get("population") or None
    found = ledger_shown(known.place, population)
    return call.page(
        "ledger.html",
        title=f"Ledger {known.shown}",
        status=400 if faults else 200,
        known=known,
        found=found,
        given={name: (given or {}).get(name, "") for name in _FIELDS},
        faults=faults or {},
        drawn=f"/ledgers/{known.key}/spent.svg?head={found['head']}",
        releases=_releases(call),
    )


def _releases(call: Call) -> dict[str, str]:
    """Releases of the workspace by their digests, so that a charge leads to what came of it."""
    found = {}
    for one in call.workspace.releases():
        try:
            opened = call.studio.shelf.by_key(one.name)
        except SpinneyError:
            continue
        found[opened.digest] = one.name
    return found


@pages.get("/ledgers/{key}/spent.svg")
def spent(call: Call) -> Response:
    """What is spent of every limit, drawn."""
    known = call.studio.ledgers.by_key(call.path["key"])
    populations = ledger_shown(known.place, None)["populations"]
    drawn = tuple((one["name"], one["spent"], one["limit"], one["share"]) for one in populations)
    return picture(call, spent_picture, drawn)


@pages.get("/ledgers/{key}/verify")
def verify(call: Call) -> Response:
    """Whether a ledger is what it was, by a head that was written down if one is given."""
    known = call.studio.ledgers.by_key(call.path["key"])
    head, found, problem, fault = call.query.get("head", "").strip(), None, "", ""
    try:
        found = verify_ledger(known.place, head=head or None)
    except ParameterError as err:
        fault = str(err)
    except SpinneyError as err:
        problem = str(err)
    status = 400 if fault else 200
    return call.page(
        "ledger_verify.html", title="Verify", status=status, known=known, head=head, found=found, problem=problem,
        fault=fault,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- requests


@pages.post("/ledgers/{key}/requests")
def ask(call: Call) -> Response:
    """Ask for budget: first a page that says what will be on record, then, confirmed, the entry."""
    known = call.studio.ledgers.by_key(call.path["key"])
    given = {name: call.text(name) for name in (*_FIELDS, "population")}
    faults, epsilon, delta = _checked(given)
    if faults:
        return _page(call, known, given=given, faults=faults)
    found = ledger_shown(known.place, given["population"] or None)
    if call.text("confirmed") != "yes":
        said = {"epsilon": decimal(epsilon), "delta": decimal(delta)}
        return call.page(
            "ledger_ask.html", title="Confirm the request", known=known, found=found, given=given, said=said
        )
    account = Ledger.open(known.place, population=found["it"]["name"])
    try:
        number = account.request(epsilon, delta, purpose=given["purpose"], table=given["table"] or None)
    except ParameterError as err:
        return _page(call, known, given=given, faults={"purpose": str(err)})
    return call.redirect(f"/ledgers/{known.key}/requests/{number}")


def _checked(given: dict[str, str]) -> tuple[dict[str, str], Any, Any]:
    faults: dict[str, str] = {}
    amounts: list[Any] = []
    for name, text, parse in (
        ("epsilon", given["epsilon"], parse_epsilon),
        ("delta", given["delta"] or "0", parse_delta),
    ):
        try:
            amounts.append(parse(text))
        except ParameterError as err:
            faults[name] = str(err)
            amounts.append(0)
    if not given["purpose"]:
        faults["purpose"] = "Say what the release is for; it stays on record."
    return faults, *amounts


@pages.get("/ledgers/{key}/requests/{number}")
def one_request(call: Call) -> Response:
    """One request, with what can be decided about it."""
    return _request_page(call)


def _request_page(call: Call, *, fault: str = "", why: str = "") -> Response:
    known = call.studio.ledgers.by_key(call.path["key"])
    number = whole(call.path["number"], "the number of a request", _LARGEST)
    request = request_shown(known.place, number)
    return call.page(
        "ledger_request.html", title=f"Request {number}", status=400 if fault else 200, known=known, request=request,
        fault=fault, why=why,
    )  # fmt: skip


@pages.post("/ledgers/{key}/requests/{number}/approve")
def approve(call: Call) -> Response:
    """Approve somebody else's request."""
    return _decided(call, is_approval=True)


@pages.post("/ledgers/{key}/requests/{number}/deny")
def deny(call: Call) -> Response:
    """Deny a request, with a reason."""
    return _decided(call, is_approval=False)


def _decided(call: Call, *, is_approval: bool) -> Response:
    known = call.studio.ledgers.by_key(call.path["key"])
    number = whole(call.path["number"], "the number of a request", _LARGEST)
    request = request_shown(known.place, number)
    why = call.text("why")
    if call.text("confirmed") != "yes":
        return _request_page(call, fault="Tick the box to confirm; nothing was written.", why=why)
    account = Ledger.open(known.place, population=request["it"]["name"])
    try:
        if is_approval:
            account.approve(number)
        else:
            account.deny(number, why=why)
    except SpinneyError as err:
        return _request_page(call, fault=str(err), why=why)
    return call.redirect(f"/ledgers/{known.key}/requests/{number}")
