"""What is on record in a ledger, as a page shows it: what is spent and left, charges, requests, decisions, the head."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.accounts.places import store_at
from spinney.privacy.accounts.shared import SharedLedger
from spinney.privacy.accounts.spending import composed_together
from spinney.privacy.ledger import Ledger, decimal, event_lines
from spinney.report.svg import BAR, INK, LINE, QUIET, STRONG, WARM, bare_axes, new_figure, to_svg
from spinney.shown import printable
from spinney.studio.releases.pictures import standalone

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
        "left": None if room.limit is None else decimal(max(room.limit - room.spent, Fraction(0))),
        "delta_limit": _number(room.delta_limit),
        "spent_delta": decimal(room.spent_delta),
        "left_delta": None
        if room.delta_limit is None
        else decimal(max(room.delta_limit - room.spent_delta, Fraction(0))),
        "share": None if not room.limit else float(min(room.spent / room.limit, Fraction(1))),
        "is_overdrawn": room.is_overdrawn and one.moved_to is None,
    }


def _charge(charge: Any) -> dict[str, Any]:
    lines = None
    if charge.events is not None:
        lines = [line.strip() for event in charge.events for line in event_lines(event)]
    return {
        "number": charge.number,
        "time": _time(charge.time),
        "user": charge.user if charge.imported_by is None else f"{charge.user}, imported by {charge.imported_by}",
        "epsilon": decimal(charge.epsilon),
        "delta": decimal(charge.delta),
        "table": charge.table,
        "purpose": charge.purpose,
        "request": charge.request,
        "release": charge.release,
        "error": charge.error,
        "lines": lines,
    }


def _request(request: Any, account: Ledger) -> dict[str, Any]:
    left, left_delta = account.remaining, account.remaining_delta
    too_much = (left is not None and request.epsilon > left) or (left_delta is not None and request.delta > left_delta)
    return {
        "number": request.number,
        "time": _time(request.time),
        "user": request.user,
        "epsilon": decimal(request.epsilon),
        "delta": decimal(request.delta),
        "table": request.table,
        "purpose": request.purpose,
        "state": request.state,
        "decided_by": request.decided_by,
        "why": request.why,
        "is_too_much": too_much and request.state == "pending",
    }


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _number(value: Fraction | None) -> str | None:
    return None if value is None else decimal(value)


def spent_picture(populations: tuple[tuple[str, str, str | None, float | None], ...]) -> str:
    """What every population has spent of its limit, as SVG: name, spent, limit, share."""
    width, line = 560, 46
    figure = new_figure(width, line * len(populations) + 4)
    axes = bare_axes(figure, 2, 2, width - 4, line * len(populations))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(len(populations), 0)
    for place, (name, spent, limit, share) in enumerate(populations):
        axes.barh(place + 0.72, 1, height=0.3, color=LINE if limit is not None else "none")
        axes.barh(place + 0.72, share or 0.0, height=0.3, color=_color(share))
        short = printable(name)
        short = short if len(short) <= _LONGEST else short[: _LONGEST - 1] + "…"
        said = f"{spent} of {limit}" if limit is not None else f"{spent}, no limit"
        options: dict[str, Any] = {"va": "center_baseline", "fontsize": 14, "parse_math": False}
        axes.text(0, place + 0.34, short, color=INK, **options)
        axes.text(1, place + 0.34, f"epsilon {said}", ha="right", color=QUIET, **options)
    told = "; ".join(f"{name}: {spent} of {limit or 'no limit'}" for name, spent, limit, _ in populations)
    return standalone(
        to_svg(figure, name="spent", title="What is spent of each limit", description=f"Epsilon, {told}.")
    )


def _color(share: float | None) -> str:
    if share is None:
        return "none"
    return WARM if share >= 1 else STRONG if share > 0.5 else BAR
