"""A ledger as a notebook shows it: what is spent of which limit, and the events, from what every ledger tells."""

from __future__ import annotations

from typing import Any

from spinney.fragments import Lines, fragment
from spinney.privacy.events import decimal


def ledger_fragment(ledger: Any) -> str | None:
    """A piece of HTML; None without jinja2."""
    unit = getattr(ledger, "unit", None)
    facts = {
        "unit": getattr(unit, "value", unit),
        "spent": _amount(ledger, "spent", "spent_delta"),
        "limit": _amount(ledger, "limit", "delta_limit") or "none",
        "remaining": _amount(ledger, "remaining", "remaining_delta"),
        "state": "overdrawn" if getattr(ledger, "is_overdrawn", False) else None,
    }
    events = list(getattr(ledger, "events", ()))
    rows = [[_epsilon(event), getattr(event, "note", type(event).__name__)] for event in events]
    lines = Lines(f"{len(events):,} {'event' if len(events) == 1 else 'events'}", ("epsilon", "what"), rows)
    return fragment("Ledger", facts, tables=[lines])


def _amount(ledger: Any, epsilon: str, delta: str) -> str | None:
    amount, failing = getattr(ledger, epsilon, None), getattr(ledger, delta, None)
    if amount is None:
        return None
    return f"epsilon {decimal(amount)}" + (f", delta {decimal(failing)}" if failing else "")


def _epsilon(event: Any) -> str:
    amount = getattr(event, "epsilon", None)
    return "no finite one" if amount is None else decimal(amount)
