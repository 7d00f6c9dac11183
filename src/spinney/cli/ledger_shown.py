"""A ledger as people read it on a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.records import ChargeOnRecord
    from spinney.privacy.accounts.shared import SharedLedger
    from spinney.privacy.accounts.spending import Together

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
        "together": None if together is None else {"epsilon": str(together.epsilon), "delta": str(together.delta)},
        "populations": [population.name for population in account.populations],
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
            }
            for charge in account.charges
        ],
        "events": [event_to_dict(event) for event in account.events],
        "head": account.head,
    }


def text_of(account: SharedLedger) -> str:
    """The ledger as lines: what is spent and left, then every charge with what it was for."""
    from spinney.privacy.ledger import Brand, decimal, event_lines

    names = [population.name for population in account.populations]
    lines = [f"population {account.population}, one of {len(names)}"] if len(names) > 1 else []
    limits = ", no limit"
    if account.limit is not None and account.remaining is not None:
        limits = f" of {decimal(account.limit)}, {decimal(account.remaining)} left"
    lines.append(f"spent {decimal(account.spent)}{limits}, unit {account.unit.value}")
    if account.delta_limit or account.spent_delta:
        limits = ", no limit"
        if account.delta_limit is not None and account.remaining_delta is not None:
            limits = f" of {decimal(account.delta_limit)}, {decimal(account.remaining_delta)} left"
        lines.append(f"delta {decimal(account.spent_delta)}{limits}")
    if (together := _together(account)) is not None:
        lines.append(
            f"together ({float(together.epsilon):.4g}, {decimal(together.delta)}), if all {together.n_composed} "
            "composed releases were planned before the first; limits are held to the sum"
        )
    if account.needs_approval:
        lines.append("a charge needs a request that somebody else has approved")
    if account.is_overdrawn:
        lines.append("OVERDRAWN: more is on record than the limit allows, so nothing more is granted")
    lines += charge_lines(account.charges)
    lines += [f"  {line}" for event in account.events if isinstance(event, Brand) for line in event_lines(event)]
    return "\n".join(printable(line) for line in [*lines, f"head {account.head}"])


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
                charge.user,
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
