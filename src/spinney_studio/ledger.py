"""Pages of a ledger: what is spent and left, charges, requests to decide, and whether it is whole.

Whatever changes a ledger is a form with a token, after a page that says what will be on record. Who may approve
is decided by the ledger itself: it refuses whoever made the request. Pages name a ledger by a digest, because
its address may hold a password.

    known ledgers   files in the opened folder, and stated addresses
    records         what is on record in a ledger, as data for a page
    ledger pages    lists, one ledger, spending as a picture, verification
    requests        a request, and its approval or denial
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.responses import Response

from spinney.errors import ParameterError, SpinneyError
from spinney.privacy.accounts.shared import SharedLedger, default_place, is_address, store_at
from spinney.privacy.accounts.verifying import composed_together, verify_ledger
from spinney.privacy.budget import parse_delta, parse_epsilon
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import decimal, event_lines
from spinney.report.draw import BAR, STRONG, WARM, canvas, draw_shares, to_svg
from spinney.text import cut
from spinney_studio.drawings import picture, standalone, whole
from spinney_studio.pages import Call, Pages
from spinney_studio.workspace import MissingPageError, PageError, Workspace

# -------------------------------------------------------------------------------------------------------- known ledgers
# Ledgers that a studio knows: files in the opened folder, and addresses that were stated in the terminal or a form.
#
# An address may hold a password. It stays in memory: pages and their addresses name a ledger by a digest of where it
# is, and show it without its password.


_LENGTH = 24
_LONGEST_NAME = 2_000


@dataclass(frozen=True, slots=True)
class KnownLedger:
    """Where a ledger is, and what pages call it."""

    key: str
    place: str  # may hold a password
    shown: str  # never does


class KnownLedgers:
    """The ledgers of one studio."""

    def __init__(self, workspace: Workspace, stated: str | None) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._known: dict[str, KnownLedger] = {}
        for place in dict.fromkeys(place for place in (stated, default_place()) if place):
            self._add(place)

    def all(self) -> list[KnownLedger]:
        """Those that were stated or opened, then all ledger files in the folder and the workspace."""
        for path in self._workspace.ledgers():
            self._add(path)
        return list(self._known.values())

    def by_key(self, key: str) -> KnownLedger:
        """A ledger by the name that addresses of pages have for it."""
        found = next((one for one in self.all() if one.key == key), None)
        if found is None:
            raise MissingPageError("This ledger was not opened in this studio. Open it by its path or its address.")
        return found

    def open(self, text: str) -> KnownLedger:
        """A ledger by its path in the opened folder, or by its address; an error where it may not be opened."""
        text = text.strip()
        if not text or len(text) > _LONGEST_NAME:
            raise PageError("Name a ledger: a path in the opened folder, or an address, postgresql://host/name.")
        known = next((one for one in self.all() if text in (one.place, one.shown)), None)
        if known is not None:
            return known
        if is_address(text):
            return self._add(text)
        if "://" in text:
            raise ParameterError("Servers are given as postgresql://host/name; other addresses are not ledgers.")
        path = self._workspace.root.inside(text)
        if not path.is_file():
            raise PageError(f"There is no ledger at {text!r}. `spinney ledger create` makes one.")
        return self._add(str(path))

    def _add(self, place: str) -> KnownLedger:
        if not is_address(place):
            place = str(Path(place).resolve())
        key = sha256(place.encode()).hexdigest()[:_LENGTH]
        with self._lock:
            if key not in self._known:
                shown = store_at(place).address if is_address(place) else self._short(place)
                self._known[key] = KnownLedger(key, place, shown)
            return self._known[key]

    def _short(self, place: str) -> str:
        root = self._workspace.root
        return root.relative(Path(place)) if root.is_inside(Path(place)) else place


# -------------------------------------------------------------------------------------------------------------- records
# What is on record in a ledger, as a page shows it: what is spent and left, charges, requests, decisions, the head.


MOST_LISTED = 500
_LONGEST = 30


def ledger_shown(place: str, population: str | None) -> dict[str, Any]:
    """The whole ledger, and one of its populations in full: the one that is named, or the first."""
    every = [_population(one) for one in SharedLedger(store_at(place)).populations]
    names = [one["name"] for one in every]
    if population is not None and population not in names:
        raise ParameterError(f"the ledger has no population {population!r}; it has {', '.join(map(repr, names))}")
    account = Ledger.open(place, population=population or names[0])
    together = composed_together(account.events, account.unit)
    return {
        "populations": every,
        "it": next(one for one in every if one["name"] == account.population),
        "me": store_at(place).user(),
        "head": account.head,
        "together": None
        if together is None
        else {
            "epsilon": None if together.epsilon is None else decimal(together.epsilon),
            "n": together.n_composed,
        },
        "charges": [_charge(charge) for charge in reversed(account.charges[-MOST_LISTED:])],
        "n_charges": len(account.charges),
        "requests": [_request(request, account) for request in reversed(account.requests[-MOST_LISTED:])],
        "tables": [{"name": table.name, "is_bound": table.schema is not None} for table in account.tables],
        "decisions": [
            {"number": one.number, "time": _time(one.time), "user": one.user, "what": one.what, "why": one.why}
            for one in reversed(account.decisions[-MOST_LISTED:])
        ],
    }


def request_shown(place: str, number: int) -> dict[str, Any]:
    """One request, with the population that it is of; a ParameterError where there is none."""
    for population in SharedLedger(store_at(place)).populations:
        account = Ledger.open(place, population=population.name)
        for request in account.requests:
            if request.number == number:
                it = _population(population)
                return _request(request, account) | {"it": it, "me": store_at(place).user()}
    raise ParameterError(f"the ledger has no request {number}")


def _population(one: Any) -> dict[str, Any]:
    room = one.room
    return {
        "name": one.name,
        "unit": room.unit.value,
        "needs_approval": one.approval,
        "moved_to": one.moved_to,
        "limit": _number(room.limit),
        "spent": decimal(room.spent),
        "left": _number(room.limit and room.remaining),
        "delta_limit": _number(room.delta_limit),
        "spent_delta": decimal(room.spent_delta),
        "left_delta": _number(room.delta_limit and room.remaining_delta),
        "share": None if not room.limit else float(min(room.spent / room.limit, Fraction(1))),
        "is_overdrawn": room.is_overdrawn,
    }


def _record(one: Any, *names: str) -> dict[str, Any]:
    """What a page shows of a charge or a request."""
    found = {name: getattr(one, name) for name in ("number", "user", "table", "purpose", *names)}
    return found | {"time": _time(one.time), "epsilon": decimal(one.epsilon), "delta": decimal(one.delta)}


def _charge(charge: Any) -> dict[str, Any]:
    found = _record(charge, "request", "release", "error")
    if charge.imported_by is not None:
        found["user"] += f", imported by {charge.imported_by}"
    events = charge.events
    lines = None if events is None else [line.strip() for event in events for line in event_lines(event)]
    return found | {"lines": lines}


def _request(request: Any, account: Ledger) -> dict[str, Any]:
    left, left_delta = account.remaining, account.remaining_delta
    too_much = (left is not None and request.epsilon > left) or (left_delta is not None and request.delta > left_delta)
    is_too_much = too_much and request.state == "pending"
    return _record(request, "state", "decided_by", "why") | {"is_too_much": is_too_much}


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _number(value: Fraction | None) -> str | None:
    return None if value is None else decimal(value)


def spent_picture(populations: tuple[tuple[str, str, str | None, float | None], ...]) -> str:
    """What every population has spent of its limit, as SVG: name, spent, limit, share."""
    axes = canvas(560, 46 * len(populations) + 4, left=2, right=2, bottom=2, top=2)
    shares = [
        (cut(name, _LONGEST), f"epsilon {spent}" + (", no limit" if limit is None else f" of {limit}"), share)
        for name, spent, limit, share in populations
    ]
    draw_shares(axes, shares, [_color(share) for *_, share in populations])
    told = "; ".join(f"{name}: {spent} of {limit or 'no limit'}" for name, spent, limit, _ in populations)
    return standalone(to_svg(axes, name="spent", title="What is spent of each limit", description=f"Epsilon, {told}."))


def _color(share: float | None) -> str:
    if share is None:
        return "none"
    return WARM if share >= 1 else STRONG if share > 0.5 else BAR


# --------------------------------------------------------------------------------------------------------- ledger pages
# Pages of a ledger: what is spent and left, who charged what, and whether it is whole.


ledger_pages = Pages(nav=("Ledgers", "/ledgers"))

_FIELDS = ("epsilon", "delta", "purpose", "table")
_LARGEST = 10**6


@ledger_pages.get("/ledgers")
def listed(call: Call) -> Response:
    """All ledgers that are known, and a form to open another; a place that is named is opened."""
    place = call.query.get("place")
    if not place:
        return _opener(call)
    try:
        return call.redirect(f"/ledgers/{call.studio.ledgers.open(place).key}")
    except (PageError, SpinneyError) as err:
        return _opener(call, fault=str(err))


@ledger_pages.post("/ledgers")
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


@ledger_pages.get("/ledgers/{key}")
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


@ledger_pages.get("/ledgers/{key}/spent.svg")
def spent(call: Call) -> Response:
    """What is spent of every limit, drawn."""
    known = call.studio.ledgers.by_key(call.path["key"])
    populations = ledger_shown(known.place, None)["populations"]
    drawn = tuple((one["name"], one["spent"], one["limit"], one["share"]) for one in populations)
    return picture(call, spent_picture, drawn)


@ledger_pages.get("/ledgers/{key}/verify")
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
# Requests for budget: first a page that says what will be on record, then the entry; approval and denial.


@ledger_pages.post("/ledgers/{key}/requests")
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


@ledger_pages.get("/ledgers/{key}/requests/{number}")
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


@ledger_pages.post("/ledgers/{key}/requests/{number}/approve")
def approve(call: Call) -> Response:
    """Approve somebody else's request."""
    return _decided(call, is_approval=True)


@ledger_pages.post("/ledgers/{key}/requests/{number}/deny")
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
