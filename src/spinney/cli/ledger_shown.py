"""A ledger as people read it on a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.records import ChargeOnRecord, Decision
    from spinney.privacy.accounts.shared import SharedLedger
    from spinney.privacy.accounts.spending import Together
    from spinney.privacy.events import Brand

_SHORT = 12  # characters of a digest that tell one release from another


def described(account: SharedLedger) -> dict[str, Any]:
    """The ledger as JSON-ready data; numbers are exact texts."""
    from spinney.privacy.ledger import event_to_dict

    together = _together(account)
    return {
        "address": account.address,
        "population": account.population,
        "approval": account.needs_approval,
        "unit": account.unit.value,
        "limit": None if account.limit is None else str(account.limit),
        "spent": str(account.spent),
        "remaining": None if account.remaining is None else str(account.remaining),
        "delta": None if account.delta_limit is None else str(account.delta_limit),
        "spent_delta": str(account.spent_delta),
        "remaining_delta": None if account.remaining_delta is None else str(account.remaining_delta),
        "together": None
        if together is None
        else {
            "epsilon": None if together.epsilon is None else str(together.epsilon),
            "delta": str(together.delta),
            "too_much_work": together.epsilon is None,
        },
        "populations": [population.name for population in account.populations],
        "moved_to": account.moved_to,
        "brands": [{"entry": number, **event_to_dict(event)} for number, event in _brands(account)],
        "decisions": [_decision(decision) for decision in account.decisions],
        "charges": [
            {
                "entry": charge.number,
                "time": charge.time,
                "user": charge.user,
                "epsilon": str(charge.epsilon),
                "delta": str(charge.delta),
                "table": charge.table,
                "purpose": charge.purpose,
                "request": charge.request,
                "release": charge.release,
                "error": charge.error,
                "imported_by": charge.imported_by,
            }
            for charge in account.charges
        ],
        "events": [event_to_dict(event) for event in account.events],
        "head": account.head,
    }


def text_of(account: SharedLedger) -> str:
    """The ledger as lines: what is spent and left, then every charge with what it was for."""
    from spinney.privacy.ledger import decimal, event_lines

    lines, brands = _warnings(account), _brands(account)
    names = [population.name for population in account.populations]
    if len(names) > 1:
        lines.append(f"population {account.population}, one of {len(names)}")
    if account.moved_to is not None:
        lines.append(f"closed, moved to {account.moved_to}")
    limits = ", no limit"
    if account.moved_to is not None:
        limits = ", closed"
    elif account.limit is not None and account.remaining is not None:
        limits = f" of {decimal(account.limit)}, {decimal(account.remaining)} left"
    lines.append(f"spent {decimal(account.spent)}{limits}, unit {account.unit.value}")
    if account.delta_limit or account.spent_delta:
        limits = ", no limit" if account.moved_to is None else ", closed"
        if account.moved_to is None and account.delta_limit is not None and account.remaining_delta is not None:
            limits = f" of {decimal(account.delta_limit)}, {decimal(account.remaining_delta)} left"
        lines.append(f"delta {decimal(account.spent_delta)}{limits}")
    together = _together(account)
    if together is not None and together.epsilon is None:
        lines.append(
            f"together: not worked out, as the parts of the {together.n_composed} composed releases are too many, or "
            "take too long; limits are held to the sum"
        )
    elif together is not None and together.epsilon is not None:
        lines.append(
            f"together ({float(together.epsilon):.4g}, {decimal(together.delta)}), if all {together.n_composed} "
            "composed releases were planned before the first; limits are held to the sum"
        )
    if account.needs_approval:
        lines.append("a charge needs a request that somebody else has approved")
    if account.is_overdrawn and account.moved_to is None:
        lines.append("OVERDRAWN: more is on record than the limit allows, so nothing more is granted")
    if imported := sum(charge.imported_by is not None for charge in account.charges):
        lines.append(f"{imported} charges were imported, and not held to limits and approvals here")
    lines += charge_lines(account.charges)
    lines += [f"  {line}" for _number, event in brands for line in event_lines(event)]
    lines += decision_lines(account.decisions)
    return "\n".join(printable(line) for line in [*lines, f"head {account.head}"])


def overview(account: SharedLedger) -> dict[str, Any]:
    """All populations of a ledger as JSON-ready data; numbers are exact texts."""
    from spinney.privacy.accounts.records import decisions_of
    from spinney.privacy.ledger import event_to_dict

    return {
        "address": account.address,
        "populations": [population.name for population in account.populations],
        "overview": [
            {
                "population": each.name,
                "approval": each.approval,
                "unit": each.room.unit.value,
                "limit": None if each.room.limit is None else str(each.room.limit),
                "spent": str(each.room.spent),
                "delta": None if each.room.delta_limit is None else str(each.room.delta_limit),
                "spent_delta": str(each.room.spent_delta),
                "moved_to": each.moved_to,
            }
            for each in account.populations
        ],
        "brands": [{"entry": number, **event_to_dict(event)} for number, event in _brands(account, of_all=True)],
        "decisions": [_decision(decision) for decision in decisions_of(account._read())],
        "head": account.head,
    }


def overview_text(account: SharedLedger) -> str:
    """All populations of a ledger as lines: what each has spent, and who decided what."""
    from spinney.privacy.accounts.records import decisions_of
    from spinney.privacy.ledger import decimal

    rows = [("population", "spent", "limit", "delta spent", "delta limit", "unit", "state")]
    for each in account.populations:
        room, state = each.room, "charges need approval" if each.approval else "-"
        if each.moved_to is not None:
            state = f"closed, moved to {each.moved_to}"
        elif room.is_overdrawn:
            state = "OVERDRAWN"
        limits = [
            "-" if limit is None or each.moved_to is not None else decimal(limit)
            for limit in (room.limit, room.delta_limit)
        ]
        spent = decimal(room.spent), decimal(room.spent_delta)
        rows.append((each.name, spent[0], limits[0], spent[1], limits[1], room.unit.value, state))
    lines = [*_warnings(account, of_all=True), f"{len(rows) - 1} populations; show one with --population NAME"]
    lines += [f"  {line}" for line in aligned(rows)]
    lines += decision_lines(decisions_of(account._read()), of_all=True)
    return "\n".join(printable(line) for line in [*lines, f"head {account.head}"])


def decision_lines(decisions: Sequence[Decision], *, of_all: bool = False) -> list[str]:
    """Who decided what, when and why, as a table."""
    rows = [("entry", "time (UTC)", "user", "decided", "why")]
    for each in decisions:
        what = f"{each.population}: {each.what}" if of_all else each.what
        rows.append((str(each.number), each.time[:19].replace("T", " "), each.user, what, each.why or "-"))
    return [] if len(rows) == 1 else ["decisions", *(f"  {line}" for line in aligned(rows))]


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "entry": decision.number,
        "time": decision.time,
        "user": decision.user,
        "population": decision.population,
        "what": decision.what,
        "why": decision.why,
    }


def _imported(charge: ChargeOnRecord) -> str:
    by = "" if charge.imported_by == charge.user else f" by {charge.imported_by}"
    return f"{charge.user}, imported{by}"


def _brands(account: SharedLedger, *, of_all: bool = False) -> tuple[tuple[int, Brand], ...]:
    from spinney.privacy.accounts.records import brands_of

    return brands_of(account._read(), None if of_all else account.population)


def _warnings(account: SharedLedger, *, of_all: bool = False) -> list[str]:
    from spinney.privacy.accounts.records import brand_warning

    warning = brand_warning(_brands(account, of_all=of_all))
    return [] if warning is None else [warning]


def charge_lines(charges: Sequence[ChargeOnRecord]) -> list[str]:
    """Charges as a table, and below each what it paid for."""
    from spinney.privacy.ledger import decimal, event_lines

    if not charges:
        return []
    rows = [("entry", "time (UTC)", "user", "epsilon", "delta", "table", "release", "purpose")]
    for charge in charges:
        came_of_it = f"failed: {charge.error}" if charge.error else (charge.release or "-")[:_SHORT]
        rows.append(
            (
                str(charge.number),
                charge.time[:19].replace("T", " "),
                charge.user if charge.imported_by is None else _imported(charge),
                decimal(charge.epsilon),
                decimal(charge.delta),
                charge.table or "-",
                came_of_it,
                charge.purpose or "-",
            )
        )
    table = aligned(rows)
    lines = [f"  {table[0]}"]
    for line, charge in zip(table[1:], charges, strict=True):
        lines.append(f"  {line}")
        if charge.events is None:
            lines.append("      what it lists cannot be read by this Spinney; upgrade it")
        lines += [f"      {part}" for event in charge.events or () for part in event_lines(event)]
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as lines with columns of equal width; the last column is as wide as it is."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in shown
    ]


def _together(account: SharedLedger) -> Together | None:
    from spinney.privacy.accounts.spending import composed_together

    return composed_together(account.events, account.unit)
