"""What is written into a ledger besides charges: requests, approvals, limits, populations, tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.cli.command import FILE, Verb, json_option
from spinney.cli.ledger_options import LEDGER, population_option
from spinney.cli.ledger_shown import aligned
from spinney.shown import json_text, printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.shared import SharedLedger

_why = click.option("--why", required=True, metavar="TEXT", help="The reason, which stays on record.")


@click.command(
    cls=Verb,
    examples=(
        "spinney ledger request people.ledger --epsilon 0.5 --delta 1e-6 --purpose 'annual report'",
        "spinney ledger request postgresql://db/ledger --epsilon 0.5 --purpose trends --population patients",
    ),
)
@click.argument("ledger", type=LEDGER)
@click.option("--epsilon", required=True, metavar="NUMBER", help="The epsilon that the release is going to cost.")
@click.option("--delta", metavar="NUMBER", help="The delta that it is going to cost. Default: 0.")
@click.option("--purpose", required=True, metavar="TEXT", help="What the release is for.")
@population_option
@click.option("--table", metavar="NAME", help="What the ledger calls the table.")
@json_option
def request(
    ledger: str,
    epsilon: str,
    delta: str | None,
    purpose: str,
    population: str | None,
    table: str | None,
    as_json: bool,
) -> None:
    """Ask for budget, and print the number of the request.

    Somebody else approves or denies it. `spinney fit --request NUMBER` then pays with it, once.
    """
    from spinney.privacy.ledger import Ledger

    account = Ledger.open(ledger, population=population)
    number = account.request(epsilon, delta or 0, purpose=purpose, table=table)
    _warn_of_too_much(account, number)
    click.echo(json_text({"request": number, "head": account.head}) if as_json else f"request {number}")


def _warn_of_too_much(account: SharedLedger, number: int) -> None:
    """Say on standard error where more was asked for than is left: approved or not, it could not be spent now."""
    from spinney.privacy.ledger import decimal

    asked = next(request for request in account.requests if request.number == number)
    for name, wanted, left in (
        ("epsilon", asked.epsilon, account.remaining),
        ("delta", asked.delta, account.remaining_delta),
    ):
        if left is not None and wanted > left:
            click.secho(
                f"caution: request {number} asks for {name} {decimal(wanted)}, and {decimal(left)} is left; it cannot "
                "be spent unless the limit is raised",
                err=True,
                fg="yellow",
            )


@click.command(cls=Verb, examples=("spinney ledger requests people.ledger",))
@click.argument("ledger", type=LEDGER)
@population_option
@json_option
def requests(ledger: str, population: str | None, as_json: bool) -> None:
    """List requests: who asked for how much, for what, whether it was approved, denied or used, and who decided."""
    from spinney.privacy.ledger import Ledger, decimal

    found = Ledger.open(ledger, population=population).requests
    if as_json:
        listed = [
            {
                "request": each.number,
                "time": each.time,
                "user": each.user,
                "state": each.state,
                "epsilon": str(each.epsilon),
                "delta": str(each.delta),
                "table": each.table,
                "purpose": each.purpose,
                "decided_by": each.decided_by,
                "why": each.why,
            }
            for each in found
        ]
        click.echo(json_text({"requests": listed}))
        return
    rows = [("request", "time (UTC)", "user", "state", "epsilon", "delta", "table", "decided by", "purpose")]
    rows += [
        (
            str(each.number),
            each.time[:19].replace("T", " "),
            each.user,
            each.state,
            decimal(each.epsilon),
            decimal(each.delta),
            each.table or "-",
            (each.decided_by or "-") + (f" ({each.why})" if each.why else ""),
            each.purpose,
        )
        for each in found
    ]
    click.echo("\n".join(printable(line) for line in aligned(rows)))


@click.command(cls=Verb, examples=("spinney ledger approve people.ledger 12",))
@click.argument("ledger", type=LEDGER)
@click.argument("request", type=int)
@json_option
def approve(ledger: str, request: int, as_json: bool) -> None:
    """Approve a REQUEST that somebody else made."""
    _written(ledger, as_json, f"request {request} is approved", "approve", request)


@click.command(cls=Verb, examples=("spinney ledger deny people.ledger 12 --why 'too much for a draft'",))
@click.argument("ledger", type=LEDGER)
@click.argument("request", type=int)
@_why
@json_option
def deny(ledger: str, request: int, why: str, as_json: bool) -> None:
    """Deny a REQUEST."""
    _written(ledger, as_json, f"request {request} is denied", "deny", request, why=why)


@click.command(
    "raise",
    cls=Verb,
    examples=("spinney ledger raise people.ledger --limit 3 --why 'the board agreed on 1 March'",),
)
@click.argument("ledger", type=LEDGER)
@click.option("--limit", metavar="NUMBER", help="The epsilon that all releases may spend in total from now on.")
@click.option("--delta", metavar="NUMBER", help="The delta that they may spend in total from now on.")
@_why
@population_option
@json_option
def raise_(ledger: str, limit: str | None, delta: str | None, why: str, population: str | None, as_json: bool) -> None:
    """Raise or lower the limits of a population. Who did it, when and why stays on record."""
    if limit is None and delta is None:
        raise click.UsageError("give --limit, --delta or both")
    _written(ledger, as_json, "the limits are changed", "set_limits", limit, delta, population=population, why=why)


@click.command(
    cls=Verb,
    examples=("spinney ledger policy people.ledger --approval --why 'two people look at every release'",),
)
@click.argument("ledger", type=LEDGER)
@click.option(
    "--approval/--no-approval", required=True, help="Whether a charge needs a request that somebody else has approved."
)
@_why
@population_option
@json_option
def policy(ledger: str, approval: bool, why: str, population: str | None, as_json: bool) -> None:
    """Say whether charges to a population need an approved request from now on."""
    word = "need" if approval else "do not need"
    _written(
        ledger, as_json, f"charges {word} approval", "set_policy", population=population, approval=approval, why=why
    )


@click.command(
    cls=Verb,
    examples=("spinney ledger population people.ledger staff --limit 1 --unit replace-one-person",),
)
@click.argument("ledger", type=LEDGER)
@click.argument("name")
@click.option("--limit", required=True, metavar="NUMBER", help="The epsilon that its releases may spend in total.")
@click.option("--delta", metavar="NUMBER", help="The delta that they may spend in total. Default: 0.")
@click.option(
    "--unit",
    type=click.Choice(["replace-one", "add-remove", "replace-one-person", "add-remove-person"]),
    default="replace-one",
    show_default=True,
    help="The unit of privacy: one row, or one person with all their rows.",
)
@click.option("--approval", is_flag=True, help="Charges need a request that somebody else has approved.")
@json_option
def population(ledger: str, name: str, limit: str, delta: str | None, unit: str, approval: bool, as_json: bool) -> None:
    """Add the population NAME to LEDGER: other people, with limits of their own.

    The same people must not be in two populations: each would have the whole of its limit.
    """
    from spinney.privacy.accounts.places import store_at
    from spinney.privacy.accounts.shared import SharedLedger

    account = SharedLedger(store_at(ledger)).add_population(
        name, limit=limit, delta=delta or 0, unit=unit, approval=approval
    )
    _told(account.head, as_json, f"added the population {name}")


@click.command(
    cls=Verb,
    examples=("spinney ledger bind people.ledger visits --schema visits.toml --population patients",),
)
@click.argument("ledger", type=LEDGER)
@click.argument("table")
@click.option("--schema", "schema_path", type=FILE, metavar="FILE", help="The schema that its releases have to state.")
@population_option
@json_option
def bind(ledger: str, table: str, schema_path: str | None, population: str | None, as_json: bool) -> None:
    """Bind TABLE, by the name that fits give, to a population and, with --schema, to one schema."""
    from spinney.schema.digests import schema_digest
    from spinney.schema.table import as_schema

    digest = None if schema_path is None else schema_digest(as_schema(schema_path))
    _written(ledger, as_json, f"bound the table {table}", "bind", table, population=population, schema=digest)


@click.command(
    "import",
    cls=Verb,
    examples=(
        "spinney ledger import people.ledger postgresql://db.example/ledger --population patients",
        "spinney ledger import clinic.ledger postgresql://db.example/ledger --from staff",
    ),
)
@click.argument("old", type=LEDGER)
@click.argument("ledger", type=LEDGER)
@click.option("--population", metavar="NAME", help="What it is called in LEDGER. Default: as in OLD.")
@click.option("--from", "source", metavar="NAME", help="Which population of OLD it is. Default: the only one.")
@json_option
def import_(old: str, ledger: str, population: str | None, source: str | None, as_json: bool) -> None:
    """Close a population of OLD, and take it over into LEDGER, once, with its limits and all that it spent.

    OLD may be of version 1, a JSON file. It stays where it is, and nothing can be charged to that population there. If
    the import is interrupted, the budget is in neither ledger; the same command again finishes it. What is imported is
    not held to limits and approvals: it was spent. Requests stay in OLD.
    """
    from spinney.privacy.accounts.places import store_at
    from spinney.privacy.accounts.shared import SharedLedger

    closed = store_at(old).address
    account = SharedLedger(store_at(ledger)).take_over(old, population=population, source=source)
    for table in account.tables_elsewhere:
        click.secho(
            printable(
                f"caution: the table {table} belongs to another population of {account.address}, and stays there"
            ),
            err=True,
            fg="yellow",
        )
    _told(account.head, as_json, f"closed {closed}, and imported it as the population {account.population}")


def _written(ledger: str, as_json: bool, said: str, verb: str, *values: object, **options: object) -> None:
    """Open a ledger, do what a verb does there, and say so with the new head."""
    from spinney.privacy.accounts.places import store_at
    from spinney.privacy.accounts.shared import SharedLedger

    account = SharedLedger(store_at(ledger), population=options.pop("population", None))  # type: ignore[arg-type]
    getattr(account, verb)(*values, **options)
    _told(account.head, as_json, said)


def _told(head: str, as_json: bool, said: str) -> None:
    click.echo(json_text({"head": head}) if as_json else f"{printable(said)}\nhead {head}")
