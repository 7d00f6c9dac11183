"""`spinney ledger`: an account in a file that several releases of the same people share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.cli.command import Verb, check_output, json_option
from spinney.shown import json_text

if TYPE_CHECKING:
    from spinney.privacy.ledger import Ledger


@click.command(
    cls=Verb,
    examples=(
        "spinney ledger people.ledger --limit 2",
        "spinney ledger people.ledger --limit 2 --delta 1e-6",
        "spinney ledger people.ledger",
        "spinney ledger people.ledger --json | jq .remaining",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--limit", metavar="NUMBER", help="Create a new ledger whose releases may spend this epsilon in total.")
@click.option(
    "--delta",
    metavar="NUMBER",
    help="The delta that releases of a new ledger may spend in total. Default: 0, which is pure epsilon.",
)
@click.option(
    "--unit",
    type=click.Choice(["replace-one", "add-remove", "replace-one-person", "add-remove-person"]),
    help="The unit of a new ledger: one row, or one person with all their rows. Default: replace-one.",
)
@json_option
def ledger(file: str, limit: str | None, delta: str | None, unit: str | None, as_json: bool) -> None:
    """Create the ledger FILE with a limit, or show what was spent.

    The privacy losses of several releases about the same people add up. `spinney fit --ledger FILE` charges the ledger
    before noise is drawn, and is refused if the charge would exceed the limit.
    """
    from spinney.privacy.ledger import Ledger

    if limit is None:
        if unit is not None:
            raise click.UsageError(
                "--unit is for a new ledger, together with --limit; an existing ledger keeps its unit"
            )
        if delta is not None:
            raise click.UsageError(
                "--delta is for a new ledger, together with --limit; an existing ledger keeps its delta"
            )
        account = Ledger.open(file)
    else:
        check_output(file, force=False, can_force=False)
        account = Ledger.create(file, limit=limit, delta=delta or 0, unit=unit or "replace-one")
    click.echo(json_text(_described(account)) if as_json else _text(account))


def _described(account: Ledger) -> dict[str, object]:
    from spinney.privacy.ledger import event_to_dict

    return {
        "unit": account.unit.value,
        "limit": None if account.limit is None else str(account.limit),
        "spent": str(account.spent),
        "remaining": None if account.remaining is None else str(account.remaining),
        "delta": None if account.delta_limit is None else str(account.delta_limit),
        "spent_delta": str(account.spent_delta),
        "remaining_delta": None if account.remaining_delta is None else str(account.remaining_delta),
        "events": [event_to_dict(event) for event in account.events],
    }


def _text(account: Ledger) -> str:
    from spinney.privacy.ledger import decimal, event_lines

    limits = ", no limit"
    if account.limit is not None and account.remaining is not None:
        limits = f" of {decimal(account.limit)}, {decimal(account.remaining)} left"
    lines = [f"spent {decimal(account.spent)}{limits}, unit {account.unit.value}"]
    if account.delta_limit or account.spent_delta:
        limits = ", no limit"
        if account.delta_limit is not None and account.remaining_delta is not None:
            limits = f" of {decimal(account.delta_limit)}, {decimal(account.remaining_delta)} left"
        lines.append(f"delta {decimal(account.spent_delta)}{limits}")
    if account.is_overdrawn:
        lines.append("OVERDRAWN: the file records more than its limit allows, so it was changed by hand")
    return "\n".join([*lines, *(f"  {line}" for event in account.events for line in event_lines(event))])
