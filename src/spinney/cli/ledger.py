"""`spinney ledger`: an account that several releases of the same people share, in a file or on a server.

Reading a ledger and writing into it are verbs of their own; the ledger itself refuses what its rules do not
allow. Numbers are exact texts in JSON. `spinney ledger FILE`, without a verb, shows a ledger or creates one.

    rendering   a ledger as lines for a terminal, and as JSON
    entries     requests, approvals, limits, populations and tables
    ledger      the group, and the verbs that create, show and verify
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import (
    FILE,
    LEDGER,
    NEW_LEDGER,
    Verb,
    caution,
    check_output,
    json_option,
    option,
    population_option,
    tell,
)
from spinney.text import aligned, json_text, printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.rules import ChargeOnRecord, Decision
    from spinney.privacy.accounts.shared import SharedLedger
    from spinney.privacy.ledger import Room


# ------------------------------------------------------------------------------------------------------------ rendering
# A ledger as people read it on a terminal, and as JSON.


_SHORT = 12  # characters of a digest that tell one release from another
# What JSON says of records, after their numbers.
_CHARGE = ("time", "user", "epsilon", "delta", "table", "purpose", "request", "release", "error", "imported_by")
_REQUEST = ("time", "user", "state", "epsilon", "delta", "table", "purpose", "decided_by", "why")
_DECISION = ("time", "user", "population", "what", "why")


def described(account: SharedLedger) -> dict[str, Any]:
    """The ledger as JSON-ready data; numbers are exact texts."""
    from spinney.privacy.accounts.verifying import composed_together
    from spinney.privacy.mechanisms import event_to_dict

    room, together = account._room(), composed_together(account.events, account.unit)
    return {
        "address": account.address,
        "population": account.population,
        "approval": account.needs_approval,
        "unit": room.unit.value,
        "limit": _exact(room.limit),
        "spent": _exact(room.spent),
        "remaining": _exact(room.remaining),
        "delta": _exact(room.delta_limit),
        "spent_delta": _exact(room.spent_delta),
        "remaining_delta": _exact(room.remaining_delta),
        "together": together
        and {
            "epsilon": _exact(together.epsilon),
            "delta": _exact(together.delta),
            "too_much_work": together.epsilon is None,
        },
        "populations": [population.name for population in account.populations],
        "moved_to": account.moved_to,
        "brands": _brands(account, account.population),
        "decisions": [_plain(decision, _DECISION) for decision in account.decisions],
        "charges": [_plain(charge, _CHARGE) for charge in account.charges],
        "events": [event_to_dict(event) for event in account.events],
        "head": account.head,
    }


def overview(account: SharedLedger) -> dict[str, Any]:
    """All populations of a ledger as JSON-ready data; numbers are exact texts."""
    from spinney.privacy.accounts.rules import decisions_of

    return {
        "address": account.address,
        "populations": [population.name for population in account.populations],
        "overview": [
            {
                "population": each.name,
                "approval": each.approval,
                "unit": each.room.unit.value,
                "limit": _exact(each.room.limit),
                "spent": _exact(each.room.spent),
                "delta": _exact(each.room.delta_limit),
                "spent_delta": _exact(each.room.spent_delta),
                "moved_to": each.moved_to,
            }
            for each in account.populations
        ],
        "brands": _brands(account, None),
        "decisions": [_plain(decision, _DECISION) for decision in decisions_of(account._read())],
        "head": account.head,
    }


def _exact(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else value


def _plain(record: Any, names: Sequence[str], number: str = "entry") -> dict[str, Any]:
    return {number: record.number} | {name: _exact(getattr(record, name)) for name in names}


def _brands(account: SharedLedger, population: str | None) -> list[dict[str, Any]]:
    from spinney.privacy.accounts.rules import brands_of
    from spinney.privacy.mechanisms import event_to_dict

    return [{"entry": number, **event_to_dict(event)} for number, event in brands_of(account._read(), population)]


def text_of(account: SharedLedger) -> str:
    """The ledger as lines: what is spent and left, then every charge with what it was for."""
    from spinney.privacy.accounts.rules import brand_warning, brands_of
    from spinney.privacy.accounts.verifying import composed_together
    from spinney.privacy.mechanisms import decimal, event_lines

    room, names = account._room(), [population.name for population in account.populations]
    brands = brands_of(account._read(), account.population)

    def amount(spent: Fraction, limit: Fraction | None, left: Fraction | None) -> str:
        if room.is_closed or limit is None or left is None:
            return f"{decimal(spent)}{', closed' if room.is_closed else ', no limit'}"
        return f"{decimal(spent)} of {decimal(limit)}, {decimal(left)} left"

    lines = [
        brand_warning(brands),
        f"population {account.population}, one of {len(names)}" if len(names) > 1 else None,
        f"closed, moved to {account.moved_to}" if room.is_closed else None,
        f"spent {amount(room.spent, room.limit, room.remaining)}, unit {room.unit.value}",
    ]
    if room.delta_limit or room.spent_delta:
        lines.append(f"delta {amount(room.spent_delta, room.delta_limit, room.remaining_delta)}")
    together = composed_together(account.events, room.unit)
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
    if room.is_overdrawn:
        lines.append("OVERDRAWN: more is on record than the limit allows, so nothing more is granted")
    if imported := sum(charge.imported_by is not None for charge in account.charges):
        lines.append(f"{imported} charges were imported, and not held to limits and approvals here")
    lines += charge_lines(account.charges)
    lines += [f"  {line}" for _number, event in brands for line in event_lines(event)]
    lines += decision_lines(account.decisions)
    return _joined([*lines, f"head {account.head}"])


def overview_text(account: SharedLedger) -> str:
    """All populations of a ledger as lines: what each has spent, and who decided what."""
    from spinney.privacy.accounts.rules import brand_warning, brands_of, decisions_of
    from spinney.privacy.mechanisms import decimal

    def limited(room: Room, limit: Fraction | None) -> str:
        return "-" if limit is None or room.is_closed else decimal(limit)

    rows = [("population", "spent", "limit", "delta spent", "delta limit", "unit", "state")]
    for each in account.populations:
        room, state = each.room, "charges need approval" if each.approval else "-"
        if room.is_closed:
            state = f"closed, moved to {each.moved_to}"
        elif room.is_overdrawn:
            state = "OVERDRAWN"
        epsilons = decimal(room.spent), limited(room, room.limit)
        deltas = decimal(room.spent_delta), limited(room, room.delta_limit)
        rows.append((each.name, *epsilons, *deltas, room.unit.value, state))
    lines = [brand_warning(brands_of(account._read()))]
    lines += [f"{len(rows) - 1} populations; show one with --population NAME", *_table(rows)]
    lines += decision_lines(decisions_of(account._read()), of_all=True)
    return _joined([*lines, f"head {account.head}"])


def _joined(lines: Sequence[str | None]) -> str:
    return "\n".join(printable(line) for line in lines if line is not None)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in aligned(rows)]


def _time(record: Any) -> str:
    return str(record.time)[:19].replace("T", " ")


def decision_lines(decisions: Sequence[Decision], *, of_all: bool = False) -> list[str]:
    """Who decided what, when and why, as a table."""
    rows = [("entry", "time (UTC)", "user", "decided", "why")]
    for each in decisions:
        what = f"{each.population}: {each.what}" if of_all else each.what
        rows.append((str(each.number), _time(each), each.user, what, each.why or "-"))
    return ["decisions", *_table(rows)] if decisions else []


def charge_lines(charges: Sequence[ChargeOnRecord]) -> list[str]:
    """Charges as a table, and below each what it paid for."""
    from spinney.privacy.mechanisms import decimal, event_lines

    if not charges:
        return []
    rows = [("entry", "time (UTC)", "user", "epsilon", "delta", "table", "release", "purpose")]
    for charge in charges:
        user = charge.user
        if charge.imported_by is not None:
            user += ", imported" if charge.imported_by == charge.user else f", imported by {charge.imported_by}"
        came_of_it = f"failed: {charge.error}" if charge.error else (charge.release or "-")[:_SHORT]
        amounts = decimal(charge.epsilon), decimal(charge.delta)
        place = charge.table or "-", came_of_it, charge.purpose or "-"
        rows.append((str(charge.number), _time(charge), user, *amounts, *place))
    header, *table = _table(rows)
    lines = [header]
    for line, charge in zip(table, charges, strict=True):
        lines.append(line)
        if charge.events is None:
            lines.append("      what it lists cannot be read by this Spinney; upgrade it")
        lines += [f"      {part}" for event in charge.events or () for part in event_lines(event)]
    return lines


# -------------------------------------------------------------------------------------------------------------- entries
# What is written into a ledger besides charges: requests, approvals, limits, populations, tables.


_why = option("--why TEXT", "The reason, which stays on record.", required=True)


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@option("--epsilon NUMBER", "The epsilon that the release is going to cost.", required=True)
@option("--delta NUMBER", "The delta that it is going to cost. Default: 0.")
@option("--purpose TEXT", "What the release is for.", required=True)
@population_option
@option("--table NAME", "What the ledger calls the table.")
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

    Examples:
        spinney ledger request people.ledger --epsilon 0.5 --delta 1e-6 --purpose 'annual report'
        spinney ledger request postgresql://db/ledger --epsilon 0.5 --purpose trends --population patients
    """
    from spinney.privacy.ledger import Ledger
    from spinney.privacy.mechanisms import decimal

    account = Ledger.open(ledger, population=population)
    number = account.request(epsilon, delta or 0, purpose=purpose, table=table)
    asked = next(request for request in account.requests if request.number == number)
    amounts = ("epsilon", asked.epsilon, account.remaining), ("delta", asked.delta, account.remaining_delta)
    for name, wanted, left in amounts:
        if left is not None and wanted > left:  # approved or not, it could not be spent now
            caution(
                f"request {number} asks for {name} {decimal(wanted)}, and {decimal(left)} is left; it cannot be spent "
                "unless the limit is raised"
            )
    tell({"request": number, "head": account.head}, f"request {number}", as_json=as_json)


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@population_option
@json_option
def requests(ledger: str, population: str | None, as_json: bool) -> None:
    """List requests: who asked for how much, for what, whether it was approved, denied or used, and who decided.

    Examples:
        spinney ledger requests people.ledger
    """
    from spinney.privacy.ledger import Ledger
    from spinney.privacy.mechanisms import decimal

    found = Ledger.open(ledger, population=population).requests
    if as_json:
        click.echo(json_text({"requests": [_plain(each, _REQUEST, "request") for each in found]}))
        return
    rows = [("request", "time (UTC)", "user", "state", "epsilon", "delta", "table", "decided by", "purpose")]
    for each in found:
        decided = (each.decided_by or "-") + (f" ({each.why})" if each.why else "")
        amounts = decimal(each.epsilon), decimal(each.delta)
        place = each.table or "-", decided, each.purpose
        rows.append((str(each.number), _time(each), each.user, each.state, *amounts, *place))
    click.echo(_joined(aligned(rows)))


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@click.argument("request", type=int)
@json_option
def approve(ledger: str, request: int, as_json: bool) -> None:
    """Approve a REQUEST that somebody else made.

    Examples:
        spinney ledger approve people.ledger 12
    """
    _written(ledger, as_json, f"request {request} is approved", "approve", request)


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@click.argument("request", type=int)
@_why
@json_option
def deny(ledger: str, request: int, why: str, as_json: bool) -> None:
    """Deny a REQUEST.

    Examples:
        spinney ledger deny people.ledger 12 --why 'too much for a draft'
    """
    _written(ledger, as_json, f"request {request} is denied", "deny", request, why=why)


@click.command("raise", cls=Verb)
@click.argument("ledger", type=LEDGER)
@option("--limit NUMBER", "The epsilon that all releases may spend in total from now on.")
@option("--delta NUMBER", "The delta that they may spend in total from now on.")
@_why
@population_option
@json_option
def raise_(ledger: str, limit: str | None, delta: str | None, why: str, population: str | None, as_json: bool) -> None:
    """Raise or lower the limits of a population. Who did it, when and why stays on record.

    Examples:
        spinney ledger raise people.ledger --limit 3 --why 'the board agreed on 1 March'
    """
    if limit is None and delta is None:
        raise click.UsageError("give --limit, --delta or both")
    _written(ledger, as_json, "the limits are changed", "set_limits", limit, delta, population=population, why=why)


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@option("--approval/--no-approval", "Whether a charge needs a request that somebody else has approved.", required=True)
@_why
@population_option
@json_option
def policy(ledger: str, approval: bool, why: str, population: str | None, as_json: bool) -> None:
    """Say whether charges to a population need an approved request from now on.

    Examples:
        spinney ledger policy people.ledger --approval --why 'two people look at every release'
    """
    word = "need" if approval else "do not need"
    _written(
        ledger, as_json, f"charges {word} approval", "set_policy", population=population, approval=approval, why=why
    )


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@click.argument("name")
@option("--limit NUMBER", "The epsilon that its releases may spend in total.", required=True)
@option("--delta NUMBER", "The delta that they may spend in total. Default: 0.")
@option(
    "--unit replace-one|add-remove|replace-one-person|add-remove-person",
    "The unit of privacy: one row, or one person with all their rows.",
    default="replace-one",
)
@option("--approval", "Charges need a request that somebody else has approved.")
@json_option
def population(ledger: str, name: str, limit: str, delta: str | None, unit: str, approval: bool, as_json: bool) -> None:
    """Add the population NAME to LEDGER: other people, with limits of their own.

    The same people must not be in two populations: each would have the whole of its limit.

    Examples:
        spinney ledger population people.ledger staff --limit 1 --unit replace-one-person
    """
    from spinney.privacy.accounts.shared import SharedLedger, store_at

    account = SharedLedger(store_at(ledger)).add_population(
        name, limit=limit, delta=delta or 0, unit=unit, approval=approval
    )
    _told(account.head, as_json, f"added the population {name}")


@click.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@click.argument("table")
@option("--schema FILE", "The schema that its releases have to state.", name="schema_path", type=FILE)
@population_option
@json_option
def bind(ledger: str, table: str, schema_path: str | None, population: str | None, as_json: bool) -> None:
    """Bind TABLE, by the name that fits give, to a population and, with --schema, to one schema.

    Examples:
        spinney ledger bind people.ledger visits --schema visits.toml --population patients
    """
    from spinney.schema.linked import schema_digest
    from spinney.schema.schema import as_schema

    digest = None if schema_path is None else schema_digest(as_schema(schema_path))
    _written(ledger, as_json, f"bound the table {table}", "bind", table, population=population, schema=digest)


@click.command("import", cls=Verb)
@click.argument("old", type=LEDGER)
@click.argument("ledger", type=LEDGER)
@option("--population NAME", "What it is called in LEDGER. Default: as in OLD.")
@option("--from NAME", "Which population of OLD it is. Default: the only one.", name="source")
@json_option
def import_(old: str, ledger: str, population: str | None, source: str | None, as_json: bool) -> None:
    """Close a population of OLD, and take it over into LEDGER, once, with its limits and all that it spent.

    OLD may be of version 1, a JSON file. It stays where it is, and nothing can be charged to that population there. If
    the import is interrupted, the budget is in neither ledger; the same command again finishes it. What is imported is
    not held to limits and approvals: it was spent. Requests stay in OLD.

    Examples:
        spinney ledger import people.ledger postgresql://db.example/ledger --population patients
        spinney ledger import clinic.ledger postgresql://db.example/ledger --from staff
    """
    from spinney.privacy.accounts.shared import SharedLedger, store_at

    closed = store_at(old).address
    account = SharedLedger(store_at(ledger)).take_over(old, population=population, source=source)
    for table in account.tables_elsewhere:
        caution(f"the table {table} belongs to another population of {account.address}, and stays there")
    _told(account.head, as_json, f"closed {closed}, and imported it as the population {account.population}")


def _written(ledger: str, as_json: bool, said: str, verb: str, *values: object, **options: object) -> None:
    """Open a ledger, do what a verb does there, and say so with the new head."""
    from spinney.privacy.accounts.shared import SharedLedger, store_at

    account = SharedLedger(store_at(ledger), population=options.pop("population", None))  # type: ignore[arg-type]
    getattr(account, verb)(*values, **options)
    _told(account.head, as_json, said)


def _told(head: str, as_json: bool, said: str) -> None:
    tell({"head": head}, f"{said}\nhead {head}", as_json=as_json)


# --------------------------------------------------------------------------------------------------------------- ledger
# The group of verbs, and those that create a ledger, show it, and verify it from its first entry to its last.


_OLD = "account"  # the verb behind `spinney ledger FILE`


class _Unnamed(click.Context):
    """Of the verb that nobody has to name: usage and errors do not name it either."""

    @property
    def command_path(self) -> str:
        return super().command_path.removesuffix(f" {_OLD}")


class _Account(Verb):
    context_class = _Unnamed


class Ledgers(click.Group, Verb):
    """The verbs of ledgers; `spinney ledger FILE`, without a verb, shows a ledger or creates one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return [name for name in self.commands if name != _OLD]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_OLD, *args]
        return super().parse_args(ctx, args)


@click.group(cls=Ledgers)
def ledger() -> None:
    """Keep account of several releases of the same people.

    The privacy losses of several releases about the same people add up. `spinney fit --ledger LEDGER` charges the
    ledger before noise is drawn, and is refused if the charge would exceed the limit. A LEDGER is a file, or
    postgresql://host/name where several people share it.

    `spinney ledger FILE` shows a ledger, and `spinney ledger FILE --limit NUMBER` creates one.

    Examples:
        spinney ledger people.ledger --limit 2
        spinney ledger people.ledger
        spinney ledger verify people.ledger --head 12:9f2c...
        spinney ledger people.ledger --json | jq .remaining
    """


_limit = option("--limit NUMBER", "The epsilon that all releases may spend in total.")
_delta = option(
    "--delta NUMBER", "The delta that releases of a new ledger may spend in total. Default: 0, which is pure epsilon."
)
_unit = option(
    "--unit replace-one|add-remove|replace-one-person|add-remove-person",
    "The unit of a new ledger: one row, or one person with all their rows. Default: replace-one.",
)


@ledger.command(_OLD, cls=_Account, hidden=True)
@click.argument("file", type=NEW_LEDGER)
@_limit
@_delta
@_unit
@population_option
@json_option
def account(
    file: str, limit: str | None, delta: str | None, unit: str | None, population: str | None, as_json: bool
) -> None:
    """Create the ledger FILE with a limit, or show what was spent.

    Examples:
        spinney ledger people.ledger --limit 2
        spinney ledger people.ledger --limit 2 --delta 1e-6
        spinney ledger people.ledger
        spinney ledger people.ledger --json | jq .remaining
    """
    if limit is not None:
        _show(_created(file, limit, delta, unit, population, approval=False), as_json=as_json)
        return
    for name, value in (("unit", unit), ("delta", delta)):
        if value is not None:
            raise click.UsageError(
                f"--{name} is for a new ledger, together with --limit; an existing ledger keeps its {name}"
            )
    _show_at(file, population, as_json=as_json)


@ledger.command(cls=Verb)
@click.argument("ledger", type=NEW_LEDGER)
@option("--limit NUMBER", "The epsilon that all releases of the population may spend.", required=True)
@_delta
@_unit
@option("--population NAME", "Whose budget it is. Default: default.")
@option("--approval", "Charges need a request that somebody else has approved.")
@json_option
def create(
    ledger: str,
    limit: str,
    delta: str | None,
    unit: str | None,
    population: str | None,
    approval: bool,
    as_json: bool,
) -> None:
    """Create LEDGER, a file or a database on a server, with the limits of one population.

    Examples:
        spinney ledger create people.ledger --limit 2 --delta 1e-6
        spinney ledger create postgresql://db.example/ledger --limit 3 --population patients --approval
    """
    _show(_created(ledger, limit, delta, unit, population, approval=approval), as_json=as_json)


@ledger.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@population_option
@json_option
def show(ledger: str, population: str | None, as_json: bool) -> None:
    """Show what was spent on what: when, by whom, for which table and purpose, and which release came of it.

    Below that stands who raised or lowered limits, changed the policy, approved, denied or bound something, and why.
    Of several populations an overview is shown; name one to see its charges.

    Limits are held to the sum of all charges. Where several releases were composed of many parts, what they cost
    together is shown as well: it is less than the sum, and holds if all of them were planned before the first.

    Examples:
        spinney ledger show people.ledger
        spinney ledger show postgresql://db.example/ledger --population patients --json
    """
    _show_at(ledger, population, as_json=as_json)


@ledger.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@json_option
def head(ledger: str, as_json: bool) -> None:
    """Print the head of LEDGER: the number and the hash of its last entry. Keep it where the ledger is not.

    Examples:
        spinney ledger head people.ledger
    """
    from spinney.privacy.accounts.verifying import head_of

    found = head_of(ledger)
    tell({"head": found}, found, as_json=as_json)


@ledger.command(cls=Verb)
@click.argument("ledger", type=LEDGER)
@option("--head HEAD", "The last head that was written down, as `spinney ledger head` prints it.")
@json_option
def verify(ledger: str, head: str | None, as_json: bool) -> None:
    """Read LEDGER from its first entry to its last, and tell whether it is what it was.

    Every entry holds the hash of the one before. With a head that was written down elsewhere, verify tells an edited
    entry, a raised limit, a charge that was removed or moved, a tail that was cut off and a file that was replaced,
    also by an older copy of itself. Exits with status 1 and a reason if something is wrong.

    Examples:
        spinney ledger verify people.ledger
        spinney ledger verify people.ledger --head 12:9f2c...
    """
    from spinney.privacy.accounts.verifying import verify_ledger

    found = verify_ledger(ledger, head=head)
    if as_json:
        click.echo(json_text({"head": found.head, "checks": list(found.checks), "remarks": list(found.remarks)}))
        return
    lines = ["the ledger is whole", *(f"  {check}" for check in found.checks)]
    lines += [f"note: {remark}" for remark in found.remarks]
    click.echo(_joined([*lines, f"head {found.head}"]))


def _created(
    place: str, limit: str, delta: str | None, unit: str | None, population: str | None, *, approval: bool
) -> SharedLedger:
    from spinney.privacy.accounts.shared import is_address
    from spinney.privacy.ledger import Ledger

    if not is_address(place):
        if Path(place).is_file():
            raise click.UsageError(
                f"{place!r} exists; to change the limits of an existing ledger, on record, say spinney ledger raise "
                f"{shlex.quote(place)} --limit {shlex.quote(limit)} --why ..., and for a new one choose another name"
            )
        check_output(place, force=False, can_force=False)
    return Ledger.create(
        place,
        limit=limit,
        delta=delta or 0,
        unit=unit or "replace-one",
        population=population or "default",
        approval=approval,
    )


def _show_at(place: str, population: str | None, *, as_json: bool) -> None:
    """Show one population of a ledger, or all where there are several and none is named."""
    from spinney.privacy.accounts.shared import SharedLedger, default_population, store_at
    from spinney.privacy.ledger import Ledger

    if population is None and default_population() is None:
        account = SharedLedger(store_at(place))
        if len(account.populations) > 1:
            click.echo(json_text(overview(account)) if as_json else overview_text(account))
            return
    _show(Ledger.open(place, population=population), as_json=as_json)


def _show(account: SharedLedger, *, as_json: bool) -> None:
    click.echo(json_text(described(account)) if as_json else text_of(account))


for verb in (request, requests, approve, deny, raise_, policy, population, bind, import_):
    ledger.add_command(verb)
