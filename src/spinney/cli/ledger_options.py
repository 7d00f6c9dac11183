"""Options that name a ledger, and what is recorded beside a charge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from spinney.privacy.accounts.shared import SharedLedger

    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # which takes no parameter in older versions of click


class LedgerPlace(_Text):
    """The path of a ledger, or the address of one on a PostgreSQL server."""

    name = "ledger"

    def __init__(self, *, exists: bool = True) -> None:
        self.exists = exists

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from spinney.privacy.accounts.places import check_scheme, is_address

        place = str(value)
        check_scheme(place)  # before a file of that name is looked for: it may hold a password
        if not is_address(place):
            if Path(place).is_dir():
                self.fail(f"{place!r} is a folder; name a file in it", param, ctx)
            if self.exists and not Path(place).exists():
                self.fail(f"File {place!r} does not exist.", param, ctx)
        return place


LEDGER = LedgerPlace()
NEW_LEDGER = LedgerPlace(exists=False)

population_option = click.option(
    "--population",
    metavar="NAME",
    help="Whose budget it is, where the ledger holds several. Default: SPINNEY_POPULATION, or the only one.",
)

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--ledger",
        "ledger_path",
        type=LEDGER,
        metavar="LEDGER",
        help="Charge this ledger, a file or postgresql://host/name; stop if too little of its budget is left. Default: "
        "the one that SPINNEY_LEDGER names, if any.",
    ),
    click.option("--no-ledger", is_flag=True, help="Charge no ledger, whatever SPINNEY_LEDGER says."),
    population_option,
    click.option(
        "--table",
        "table_name",
        metavar="NAME",
        help="What the ledger calls the table; from its first charge on it belongs to one population.",
    ),
    click.option("--purpose", metavar="TEXT", help="What the release is for; it stays on record in the ledger."),
    click.option(
        "--request",
        type=int,
        metavar="NUMBER",
        help="The approved request that pays for the release; see `spinney ledger request`.",
    ),
)
_DETAILS = {"population": "--population", "table_name": "--table", "purpose": "--purpose", "request": "--request"}


def ledger_options(command: Callable[..., None]) -> Callable[..., None]:
    """All of them; `take_ledger` reads what they say."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_ledger(parameters: dict[str, Any]) -> SharedLedger | Literal[False]:
    """The ledger that the options name, or else the machine's; False where there is none. They are taken out."""
    from spinney.privacy.accounts.places import default_place
    from spinney.privacy.ledger import Ledger

    place, refuses = parameters.pop("ledger_path"), parameters.pop("no_ledger")
    details = {name: parameters.pop(name) for name in _DETAILS}
    if place is not None and refuses:
        raise click.UsageError("--ledger and --no-ledger contradict each other; give one of them")
    place = None if refuses else place or default_place()
    if place is None:
        for name, value in details.items():
            if value is not None:
                raise click.UsageError(f"{_DETAILS[name]} is for a ledger, and none is charged; name one with --ledger")
        return False
    details["table"] = details.pop("table_name")
    return Ledger.open(place, **details)
