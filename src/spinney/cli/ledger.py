"""`spinney ledger`: an account that several releases of the same people share, in a file or on a server."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import Verb, check_output, json_option
from spinney.cli.ledger_keeping import approve, bind, deny, import_, policy, population, raise_, request, requests
from spinney.cli.ledger_options import LEDGER, NEW_LEDGER, population_option
from spinney.cli.ledger_shown import described, overview, overview_text, text_of
from spinney.shown import json_text, printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.shared import SharedLedger

_UNITS = click.Choice(["replace-one", "add-remove", "replace-one-person", "add-remove-person"])
_OLD = "account"  # the verb behind `spinney ledger FILE`


class _Unnamed(click.Context):
    """Of the verb that nobody has to name: usage and errors do not name it either."""

    @property
    def command_path(self) -> str:
        return super().command_path.removesuffix(f" {_OLD}")


class _Account(Verb):
    context_class = _Unnamed


class Ledgers(click.Group):
    """The verbs of ledgers; `spinney ledger FILE`, without a verb, shows a ledger or creates one."""

    def __init__(self, *args: Any, examples: tuple[str, ...], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return [name for name in self.commands if name != _OLD]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_OLD, *args]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


@click.group(
    cls=Ledgers,
    examples=(
        "spinney ledger people.ledger --limit 2",
        "spinney ledger people.ledger",
        "spinney ledger verify people.ledger --head 12:9f2c...",
        "spinney ledger people.ledger --json | jq .remaining",
    ),
)
def ledger() -> None:
    """Keep account of several releases of the same people.

    The privacy losses of several releases about the same people add up. `spinney fit --ledger LEDGER` charges the
    ledger before noise is drawn, and is refused if the charge would exceed the limit. A LEDGER is a file, or
    postgresql://host/name where several people share it.

    `spinney ledger FILE` shows a ledger, and `spinney ledger FILE --limit NUMBER` creates one.
    """


_limit = click.option("--limit", metavar="NUMBER", help="The epsilon that all releases may spend in total.")
_delta = click.option(
    "--delta",
    metavar="NUMBER",
    help="The delta that releases of a new ledger may spend in total. Default: 0, which is pure epsilon.",
)
_unit = click.option(
    "--unit",
    type=_UNITS,
    help="The unit of a new ledger: one row, or one person with all their rows. Default: replace-one.",
)


@ledger.command(
    _OLD,
    cls=_Account,
    hidden=True,
    examples=(
        "spinney ledger people.ledger --limit 2",
        "spinney ledger people.ledger --limit 2 --delta 1e-6",
        "spinney ledger people.ledger",
        "spinney ledger people.ledger --json | jq .remaining",
    ),
)
@click.argument("file", type=NEW_LEDGER)
@_limit
@_delta
@_unit
@population_option
@json_option
def account(
    file: str, limit: str | None, delta: str | None, unit: str | None, population: str | None, as_json: bool
) -> None:
    """Create the ledger FILE with a limit, or show what was spent."""
    if limit is not None:
        _show(_created(file, limit, delta, unit, population, approval=False), as_json=as_json)
        return
    for option, value in (("--unit", unit), ("--delta", delta)):
        if value is not None:
            name = option[2:]
            raise click.UsageError(
                f"{option} is for a new ledger, together with --limit; an existing ledger keeps its {name}"
            )
    _show_at(file, population, as_json=as_json)


@ledger.command(
    cls=Verb,
    examples=(
        "spinney ledger create people.ledger --limit 2 --delta 1e-6",
        "spinney ledger create postgresql://db.example/ledger --limit 3 --population patients --approval",
    ),
)
@click.argument("ledger", type=NEW_LEDGER)
@click.option(
    "--limit", required=True, metavar="NUMBER", help="The epsilon that all releases of the population may spend."
)
@_delta
@_unit
@click.option("--population", metavar="NAME", help="Whose budget it is. Default: default.")
@click.option("--approval", is_flag=True, help="Charges need a request that somebody else has approved.")
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
    """Create LEDGER, a file or a database on a server, with the limits of one population."""
    _show(_created(ledger, limit, delta, unit, population, approval=approval), as_json=as_json)


@ledger.command(
    cls=Verb,
    examples=(
        "spinney ledger show people.ledger",
        "spinney ledger show postgresql://db.example/ledger --population patients --json",
    ),
)
@click.argument("ledger", type=LEDGER)
@population_option
@json_option
def show(ledger: str, population: str | None, as_json: bool) -> None:
    """Show what was spent on what: when, by whom, for which table and purpose, and which release came of it.

    Below that stands who raised or lowered limits, changed the policy, approved, denied or bound something, and why.
    Of several populations an overview is shown; name one to see its charges.

    Limits are held to the sum of all charges. Where several releases were composed of many parts, what they cost
    together is shown as well: it is less than the sum, and holds if all of them were planned before the first.
    """
    _show_at(ledger, population, as_json=as_json)


@ledger.command(cls=Verb, examples=("spinney ledger head people.ledger",))
@click.argument("ledger", type=LEDGER)
@json_option
def head(ledger: str, as_json: bool) -> None:
    """Print the head of LEDGER: the number and the hash of its last entry. Keep it where the ledger is not."""
    from spinney.privacy.accounts.verifying import head_of

    found = head_of(ledger)
    click.echo(json_text({"head": found}) if as_json else found)


@ledger.command(
    cls=Verb,
    examples=(
        "spinney ledger verify people.ledger",
        "spinney ledger verify people.ledger --head 12:9f2c...",
    ),
)
@click.argument("ledger", type=LEDGER)
@click.option("--head", metavar="HEAD", help="The last head that was written down, as `spinney ledger head` prints it.")
@json_option
def verify(ledger: str, head: str | None, as_json: bool) -> None:
    """Read LEDGER from its first entry to its last, and tell whether it is what it was.

    Every entry holds the hash of the one before. With a head that was written down elsewhere, verify tells an edited
    entry, a raised limit, a charge that was removed or moved, a tail that was cut off and a file that was replaced,
    also by an older copy of itself. Exits with status 1 and a reason if something is wrong.
    """
    from spinney.privacy.accounts.verifying import verify_ledger

    found = verify_ledger(ledger, head=head)
    if as_json:
        click.echo(json_text({"head": found.head, "checks": list(found.checks), "remarks": list(found.remarks)}))
        return
    lines = ["the ledger is whole", *(f"  {check}" for check in found.checks)]
    lines += [f"note: {remark}" for remark in found.remarks]
    click.echo("\n".join(printable(line) for line in [*lines, f"head {found.head}"]))


def _created(
    place: str, limit: str, delta: str | None, unit: str | None, population: str | None, *, approval: bool
) -> SharedLedger:
    from spinney.privacy.accounts.places import is_address
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
    from spinney.privacy.accounts.places import default_population, store_at
    from spinney.privacy.accounts.shared import SharedLedger
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
